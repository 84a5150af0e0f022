# ruff: noqa
"""Definitions of many kinds; `tests/identity/test_identity_versions.py` identifies them under several versions of Python."""

import abc
import asyncio
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import json
import math
import operator
import os
import pathlib
import re
import types
import typing
from dataclasses import dataclass, field

K = 2
TABLE = {"b": 1, "a": (2, 3), 4: [5]}
T = typing.TypeVar("T")


def plain(x, k=2, *args, named: int = K, **others) -> int:
    "Says."
    return x * k + named + K


def chained(x):
    if 0 < x <= 3 or not x:
        return -(x**-2), (yield_ := x), x[1:2, ::3], x @ x, ~x
    del x.a, x[0]
    return (lambda: 0)(), (lambda *a, b=1, **c: (a, b, c))


def unpacking(x):
    first, *rest = x
    for i, *j in [*x, *rest]:
        print(*j, **{"sep": ""}, end="")
    else:
        pass
    return {**TABLE, "x": x}, {*x}, (*x, 1), x[(0, 1)], x[0, 1], [first]


def comprehended(x):
    return [y for y in x if y > K], {y: z for y, z in x}, {y for y in x}, (y * K for y in x for z in y if z)


class ComprehendsInClass:
    table = [K * y for y in range(3)]
    both = {y: [z + K for z in range(y)] for y in range(2)}

    def run(self, x):
        return [self.table[y] for y in x], __class__


def matched(x):
    match x:
        case 0 | 1:
            return "few"
        case [a, *_] if a > K:
            return a
        case {"k": v, **rest}:
            return v, rest
        case Point(x=0, y=y):
            return y
        case str() as s:
            return s
        case -1.5 | "text" | None:
            return 1
        case _:
            return 0


def walrus(x):
    while (y := x.pop()) and (z := y):
        if any((w := each) for each in z):
            return w
    return [last := 1, last**2]


first_of_a_line, second_of_a_line, third_of_a_line = lambda x: x + 1, lambda x: x + K, (lambda x: lambda y: x * y)
made_by_a_lambda = third_of_a_line(5)
constant_lambda = [lambda: 1, lambda: 2][1]
captured_in_a_loop = [lambda x, i=i: x + i for i in range(3)][2]


def tried(x):
    try:
        x()
    except (ValueError, KeyError) as error:
        raise RuntimeError("no") from error
    except Exception:
        raise
    else:
        return 1
    finally:
        x = None
    assert x, f"{x}"


def tried_group(x):
    try:
        x()
    except* ValueError as group:
        return_ = group
    except* (TypeError, OSError):
        pass
    with open("a") as a, contextlib.suppress(ValueError):
        return a
    global K2
    K2 = 1


async def asynchronous(x):
    async with x as y:
        async for z in y:
            await z
    return [w async for w in y if await w]


def generator(x):
    got = yield x
    yield from got
    return (yield)


def nested_strings(x, d):
    a = f"{x!r:>{K}} and {d['key']:{'>'}{10}.{K}f} {{braces}} {x=} {x = !s:^5}"
    b = f"{f'{x}' + f'{K}'!a}{ {1: 2}[1] }tail" if False else f"{x:}"
    c = f"""{d["a"]} 'single' "double" \n \\ {(lambda y: y)(x)} {x:%Y-%m-%d} {(y := x)}"""
    return a + b + c + f"{(x,)} {x if x else K} {','.join(x)}" + rf"\d{x}" + f"" + f"{'ab'}"


def texts(x):
    return (
        "ü\u4e00\U0001fae8\u2fff",
        'it\'s "so"',
        "\\\n\t\0\x7f\ud800",
        b"by\xfftes",
        r"\d",
        "u",
        "ab",
        """long
    text""",
    )


def numbers(x):
    return 1_000, 0x1F, 1e309, 1e-7, 2j, -0.0, 10**40, 1.0, ..., None, True


def documented(x):
    """A docstring."""
    """Another text."""

    class Inner(T2 if False else object):
        """Inner."""

        k: int = K
        name = __name__

        def method(self):
            return super().__init__(), self.k

    def inner():
        nonlocal x
        x = Inner

    return inner


def annotated(x: "list[int]", y: typing.Optional[int] = None) -> dict[str, typing.Any]:
    z: int = 1
    w: typing.List[int]
    (v): int = 2
    return {"z": z}


def times(k):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * k

        return wrapper

    return decorate


@times(3)
@times(k=K)
def decorated(x):
    return x


@functools.lru_cache(maxsize=None)
def cached(x):
    return x + K


@contextlib.contextmanager
def managed(x):
    yield x * K


@functools.singledispatch
def dispatched(x):
    return x


@dispatched.register
def _(x: int):
    return x + K


@dispatched.register(str)
@dispatched.register(list)
def _(x):
    return len(x)


class Plain:
    """Says."""

    __slots__ = ("a", "b", "__weakref__")
    k = K

    def __init__(self, a):
        self.a = a

    @property
    def double(self):
        return self.a * 2

    @double.setter
    def double(self, value):
        self.a = value / 2

    @staticmethod
    def still(x):
        return x + K

    @classmethod
    def make(cls, x=1):
        return cls(x)

    def __eq__(self, other):
        return self.a == other.a


slotted = Plain(3)
bound = Plain(4).make
method = Plain(5).__eq__


class Base:
    def __init_subclass__(cls, **options):
        cls.options = options

    def __class_getitem__(cls, item):
        return cls

    def __init__(self):
        self.z = 1
        self.a = {"b": 1, "a": 2}


class Derived(Base, option=1):
    __private = 1

    def __init__(self):
        super().__init__()
        self.y = self.__private

    @functools.cached_property
    def lazy(self):
        return K

    @functools.singledispatchmethod
    def kind(self, x):
        return x

    @kind.register
    def _(self, x: int):
        return x + 1

    partly = functools.partialmethod(Base.__init__)


derived = Derived()


class Meta(type):
    k = K

    def __call__(cls, *args):
        return super().__call__(*args)


class WithMeta(metaclass=Meta):
    pass


with_meta = WithMeta()


@dataclass
class Point:
    x: int
    y: "int" = 0
    tags: list[str] = field(default_factory=list, compare=False)
    table: dict = field(default_factory=lambda: {"k": K}, metadata={"unit": "px"})
    shared: typing.ClassVar[int] = K
    start: dataclasses.InitVar[int] = 1
    other: typing.Optional["Point"] = None

    def __post_init__(self, start):
        self.x += start


@dataclass(frozen=True, order=True)
class Frozen:
    x: float = math.inf
    y: tuple[int, ...] = (1, 2)

    def norm(self):
        return self.x


@dataclass(slots=True, kw_only=True)
class Slotted:
    x: int
    y: int = 2


@dataclass(frozen=True, slots=True, eq=True, unsafe_hash=True, repr=False)
class FrozenSlotted(Frozen):
    z: int = field(default=3, kw_only=True, repr=False)


@dataclass(eq=False, match_args=False)
class Written(typing.Generic[T]):
    x: T = None

    def __repr__(self):
        return f"{self.x!r}"

    def __eq__(self, other):
        return True


point = Point(1, 2, ["a"])
frozen = Frozen(2.0)
slotted_data = Slotted(x=1)
frozen_slotted = FrozenSlotted(1.0, z=4)
written = Written([1])


class Mode(enum.Enum):
    A = 1
    B = "two"
    C = A
    D = (1, 2)

    @property
    def double(self):
        return self.value

    @classmethod
    def _missing_(cls, value):
        return cls.A

    def method(self):
        return K


class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    MARS = (0.6, 3.4)

    def __init__(self, mass, radius):
        self.mass = mass

    @functools.cached_property
    def gravity(self):
        return self.mass


class Coded(int, enum.Enum):
    def __new__(cls, value, label):
        made = int.__new__(cls, value)
        made._value_ = value
        made.label = label
        return made

    ONE = (1, "one")
    TWO = (2, "two")


class Number(enum.IntEnum):
    @staticmethod
    def _generate_next_value_(name, start, count, last):
        return count * 10

    A = enum.auto()
    B = enum.auto()


class Permission(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    X = 4
    ALL = R | W | X


class Loose(enum.IntFlag, boundary=enum.KEEP):
    R = 1
    W = 2


class Text(enum.StrEnum):
    A = enum.auto()
    B = "bee"

    def __str__(self):
        return self.value


FUNCTIONAL = enum.Enum("FUNCTIONAL", "RED GREEN")

mode, planet, coded, number, permission, loose, text, functional = (
    Mode.B,
    Planet.EARTH,
    Coded.TWO,
    Number.B,
    Permission.R | Permission.W,
    Loose.R | Loose.W,
    Text.B,
    FUNCTIONAL.RED,
)

Pair = collections.namedtuple("Pair", "a b", defaults=[K])


class Named(typing.NamedTuple):
    a: int
    b: "str" = "x"

    def both(self):
        return self.a, self.b * K

    def __repr__(self):
        return "Named"


class SubPair(Pair):
    __slots__ = ()

    def total(self):
        return self.a + self.b


pair, named, sub_pair = Pair(1), Named(1), SubPair(1, 2)


class Sized(typing.Protocol):
    size: int

    def area(self) -> float: ...


@typing.runtime_checkable
class Callable_(typing.Protocol[T]):
    def __call__(self, x: T) -> T: ...


class Implements(Sized):
    size = 3

    def area(self):
        return self.size


class Abstract(abc.ABC):
    @abc.abstractmethod
    def run(self): ...

    @property
    @abc.abstractmethod
    def width(self): ...


class Concrete(Abstract):
    width = 3

    def run(self):
        return K


class Box(typing.Generic[T]):
    item: T

    def get(self) -> T:
        return self.item


class StrBox(Box[str], collections.UserDict):
    pass


class Typed(typing.TypedDict, total=False):
    a: int


implements, concrete, str_box = Implements(), Concrete(), StrBox(a=1)


@functools.total_ordering
class Ordered:
    def __lt__(self, other):
        return False


class Sneaky:
    def __init__(self):
        self.a = 1

    def __getattr__(self, name):
        return lambda *args: args


sneaky = Sneaky()


def uses_classes(x):
    return Point(1), Mode.A, Pair(1), Named(2), dispatched(x), cached(x), TABLE, sneaky, typing.cast(T, x)


def reads_the_environment(x):
    return os.environ["PATH_OF_NOBODY"] if "PATH_OF_NOBODY" in os.environ else os.getenv("HOME_OF_NOBODY", x)


values = {
    "partial": functools.partial(plain, 1, named=2),
    "path": pathlib.PurePosixPath("a/b"),
    "pattern": re.compile(r"\d+", re.IGNORECASE),
    "decimal": decimal.Decimal("1.5"),
    "fraction": fractions.Fraction(1, 3),
    "date": datetime.date(2020, 1, 2),
    "time": datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc),
    "counter": collections.Counter("aab"),
    "ordered": collections.OrderedDict(b=1, a=2),
    "default": collections.defaultdict(list, a=[1]),
    "deque": collections.deque([1, 2], maxlen=3),
    "namespace": types.SimpleNamespace(a=1),
    "frozen": types.MappingProxyType({"a": 1}),
    "slice": slice(1, 2),
    "complex": 1 + 2j,
    "sets": {frozenset({1, 2}), frozenset({"a"})},
    "getter": operator.itemgetter(1, 2),
    "alias": list[int],
    "optional": typing.Optional[int],
    "union": int | None,
    "ellipsis": ...,
    "exception": ValueError("a"),
    "bytes": bytearray(b"a"),
    "big": 10**50,
    "nan": math.nan,
    "functions": [math.sin, len, str.upper, dict.fromkeys, itertools.chain, json.dumps, asyncio.sleep],
}

_apart = {"K", "TABLE", "T", "dataclass", "field"}
NAMES = [
    name
    for name, thing in list(globals().items())
    if not name.startswith("_") and name not in _apart and not isinstance(thing, types.ModuleType)
]
