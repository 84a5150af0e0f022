"""What the tests in ``fuzz/`` share: damaged copies of good inputs, and what must hold whatever a parser is given.

CI runs the same few examples of each test every time. ``TESTBED_FUZZ_EXAMPLES=5000 pytest -n 0 tests/fuzz`` runs that
many of each, drawn anew.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import os
import shutil
import signal
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from testbed.errors import TestbedError

GIVEN = os.environ.get("TESTBED_FUZZ_EXAMPLES")
EXAMPLES = 30
HANGS = 30  # seconds after which a parser counts as hanging; the examples take milliseconds
LONGEST_MESSAGE = 1_000_000  # characters; the inputs have up to some hundred thousand
ROOT = Path(__file__).resolve().parent.parent.parent

settings.register_profile(
    "ci",
    derandomize=GIVEN is None,
    deadline=None,
    database=None,
    # of many, a failing one is not made smaller, which takes minutes
    phases=[Phase.explicit, Phase.generate, *([] if GIVEN else [Phase.shrink])],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)
settings.load_profile("ci")


def fuzzed(cost: int = 1) -> Callable[[Any], Any]:
    """How many examples a test takes: fewer if each of them costs more."""
    return settings(max_examples=max(int(GIVEN or EXAMPLES) // cost, 5))


# What must hold -------------------------------------------------------------------------------------------------------


class HangError(BaseException):
    """No answer in time. It is no `Exception`, so that no parser takes it for a fault of the input."""


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Ends what takes much longer than it may."""

    def give_up(number: int, frame: Any) -> None:
        raise HangError(f"no answer within {HANGS} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, HANGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# Events of Python's audit hook, and which of their arguments are paths.
_WRITES = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rmdir": (0,),
    "os.rename": (0, 1),
    "os.link": (0, 1),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "shutil.rmtree": (0,),
}
_NEVER = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect")
_LIBRARIES = tuple(
    {
        os.path.realpath(path)
        for path in (sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *site.getsitepackages(), ROOT)
    }
)
_SYSTEM = ("/dev", "/proc", "/sys", "/usr", "/etc", "/lib")

_allowed: tuple[str, ...] | None = None
_strays: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _allowed is None:
        return
    if event in _NEVER:
        _strays.append(f"{event} {arguments!r:.200}")
    elif event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC))
        _check_place(event, path, (*_allowed, "/dev") if writes else (*_allowed, *_LIBRARIES, *_SYSTEM))
    elif event in _WRITES:
        for place in _WRITES[event]:
            _check_place(event, arguments[place], _allowed)


def _check_place(event: str, path: Any, allowed: Sequence[str]) -> None:
    if not isinstance(path, str | bytes | os.PathLike):
        return  # a file that is open already
    try:
        real = os.path.realpath(os.path.dirname(os.path.abspath(os.fsdecode(path))))
    except ValueError:  # no path at all
        return
    whole = os.path.join(real, os.path.basename(os.fsdecode(path)))
    if "__pycache__" in (os.path.basename(real), os.path.basename(whole)):  # Python itself, importing more of a library
        allowed = (*allowed, *_LIBRARIES)
    if not any(whole == folder or whole.startswith(f"{folder}/") for folder in allowed):
        _strays.append(f"{event} {whole}")


sys.addaudithook(_watch)


@contextlib.contextmanager
def only_within(*folders: Path) -> Iterator[None]:
    """Fails if a file outside of some folders, the cache and the libraries is opened, or anything there is changed."""
    global _allowed
    given = (*folders, Path(os.environ["TESTBED_CACHE"]))
    before, _allowed = _allowed, tuple(os.path.realpath(folder) for folder in given)
    _strays.clear()
    try:
        yield
    finally:
        _allowed = before
    assert not _strays, f"files elsewhere were used: {_strays}"


@contextlib.contextmanager
def robust(*folders: Path, errors: tuple[type[Exception], ...] = (TestbedError,)) -> Iterator[None]:
    """What a parser may do with any input: give a value, or say in testbed's own error what is wrong with it."""
    with only_within(*folders), no_hang():
        try:
            yield
        except errors as error:
            said = str(error)
            assert said.strip()
            assert len(said) < LONGEST_MESSAGE


_numbers = itertools.count()


@contextlib.contextmanager
def trial(folder: Path, *others: Path) -> Iterator[Path]:
    """An empty folder for one example, within which a parser must be `robust`; it is removed afterwards."""
    own = folder / f"trial{next(_numbers)}"
    own.mkdir()
    try:
        with robust(own, *others):
            yield own
    finally:
        shutil.rmtree(own)


# Damaged inputs -------------------------------------------------------------------------------------------------------

DEEP = 20_000  # brackets, more than Python's stack takes
LONG_NUMBER = "9" * 5000  # more digits than Python turns into a number
# fmt: off
TOKENS = (
    "\0", "\ufeff", "\ud800", "é", "日本語", "²", "٣", "\u2028", "\x1b[31m", "😀", "İ", "\r", "\r\n", "\n", "\t", "  ",
    "", '"', "'", ",", ";", ":", "\\", "/", "../", "../../etc/passwd", "/etc/passwd", "~nobody-here/x", "~", ".", "..",
    "%s", "{}", "{0.__class__}", "{c}", "$HOME", "`id`", "*", "?", "[", "]", "{", "}", "(", ")", "<", ">", "&", "@",
    "#", "=", "|", "-", "--", "+", "_", "0", "1", "-1", "1e999", "-1e999", "NaN", "Infinity", "null", "true", "1.5",
    "9" * 30, "9" * 400, LONG_NUMBER, "0x" + "f" * 5000, "1e-999999999", "1" + "0" * 60, "a" * 300, "a" * 5000,
    "[" * 50 + "]" * 50, "[" * DEEP, '{"a":' * DEEP, "(" * 500, "-" * 5000, "<a>" * 500, "\\u0000", "\\ud800",
)
# fmt: on


@st.composite
def mangled(draw: st.DrawFn, *good: str) -> str:
    """A good text, or one that was cut, put together anew, or has something odd in it."""
    text = draw(st.sampled_from(good))
    for _ in range(draw(st.integers(0, 4))):
        first, second = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        kind = draw(st.integers(0, 6))
        if kind == 0:
            text = text[:first] + text[second:]
        elif kind == 1:
            text = text[:first] + draw(st.sampled_from(TOKENS)) + text[first:]
        elif kind == 2:
            text = text[:first] + draw(st.sampled_from(TOKENS)) + text[second:]
        elif kind == 3:
            text = text[:second] + text[first:]
        elif kind == 4:
            text = text[:first] + draw(st.text(max_size=6)) + text[first:]
        elif kind == 5:
            other = draw(st.sampled_from(good))
            text = text[:first] + other[draw(st.integers(0, len(other))) :]
        else:
            text = text[:first] + text[first:second] * draw(st.sampled_from((2, 50))) + text[second:]
    return text


@st.composite
def mangled_bytes(draw: st.DrawFn, *good: bytes) -> bytes:
    """Good bytes, or some that were cut, changed, or put together anew."""
    data = draw(st.sampled_from(good))
    for _ in range(draw(st.integers(0, 4))):
        first, second = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            data = data[:first] + data[second:]
        elif kind == 1:
            data = data[:first] + draw(st.sampled_from(TOKENS)).encode("utf-8", "surrogatepass") + data[first:]
        elif kind == 2:
            new = draw(st.binary(max_size=8))
            data = data[:first] + new + data[first + len(new) :]
        elif kind == 3:
            data = data[:second] + data[first:]
        elif kind == 4:
            data = data[:first] + b"\0" * draw(st.sampled_from((1, 100, 1000))) + data[first:]
        elif first < len(data):
            data = data[:first] + bytes([data[first] ^ (1 << draw(st.integers(0, 7)))]) + data[first + 1 :]
    return data


def damaged_file(*good: str) -> st.SearchStrategy[bytes]:
    """The bytes of a text file, damaged as a text or as bytes."""
    return st.one_of(
        mangled(*good).map(lambda text: text.encode("utf-8", "surrogatepass")),
        mangled_bytes(*(each.encode() for each in good)),
    )


# fmt: off
_ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, 10**30, 10**400, -(10**400), 1e308, float("inf"), float("nan"),
    "", " ", "x", "\0", "\ud800", "../x", "/etc/passwd", "..\\x", "C:\\x", "a" * 2000, "~nobody-here/x", "1", "²",
    [], {}, [[]], [{}], {"": None}, [1], ["x"], ["x", "x"], [None], {"x": "x"}, [[1, 2], [3]], {"x": {"x": {}}},
    ["../x"], ["\0"], ["\ud800"], [True], [1e999], [10**400], [-1], [0.5],
)
# fmt: on


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _places(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _places(each, (*path, index))


def _changed(value: Any, path: Sequence[Any], change: Callable[[Any, Any], None]) -> Any:
    copy = json.loads(json.dumps(value))
    held = copy
    for key in path[:-1]:
        held = held[key]
    change(held, path[-1])
    return copy


@st.composite
def odd_values(draw: st.DrawFn, *good: Any) -> Any:
    """A good value of JSON, or one in which something was replaced, left out, renamed or added."""
    value = draw(st.sampled_from(good))
    for _ in range(draw(st.integers(0, 3))):
        places = list(_places(value))
        path = draw(st.sampled_from(places))
        odd = draw(st.sampled_from(_ODD_VALUES))
        if not path:
            if len(places) < 2 or draw(st.integers(0, 9)) == 0:
                return odd
            continue
        kind = draw(st.integers(0, 4))
        if kind == 0:
            value = _changed(value, path, lambda held, key: held.__delitem__(key))
        elif kind == 1 and isinstance(path[-1], str):
            name = draw(st.sampled_from([each for each in TOKENS if len(each) < 100]))
            value = _changed(value, path, lambda held, key, name=name: held.__setitem__(name, held[key]))
        elif kind == 2 and isinstance(path[-1], int):
            value = _changed(value, path, lambda held, key: held.append(held[key]))
        else:
            value = _changed(value, path, lambda held, key, odd=odd: held.__setitem__(key, odd))
    return value


def as_json(value: Any) -> str:
    """A value as JSON, half surrogates and odd numbers included."""
    return json.dumps(value)


@st.composite
def damaged_json(draw: st.DrawFn, *good: Any) -> bytes:
    """A JSON file: mostly one with an odd value in it, sometimes one that is damaged as a text."""
    if draw(st.integers(0, 4)):
        return as_json(draw(odd_values(*good))).encode()
    return draw(damaged_file(*(json.dumps(each, ensure_ascii=False) for each in good)))


@st.composite
def damaged_lines(draw: st.DrawFn, *good: Any) -> bytes:
    """A file with a JSON value in each line, damaged likewise."""
    lines = [draw(damaged_json(each)) for each in good if draw(st.integers(0, 9))]
    return draw(st.sampled_from((b"\n", b"\r\n", b"\n\n"))).join(lines)


@st.composite
def damaged_table(draw: st.DrawFn, *rows: Sequence[str], delimiter: str = ",", cells: Sequence[str] = ()) -> bytes:
    """A CSV file: mostly one with odd cells, rows or columns, sometimes one that is damaged as a text."""
    table = [list(row) for row in rows]
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.integers(0, len(table) - 1))
        place = draw(st.integers(0, max(len(table[row]) - 1, 0)))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            table[row] = [*table[row], draw(st.sampled_from(TOKENS))]
        elif kind == 1:
            table[row] = table[row][:place]
        elif kind == 2:
            table = [*table, table[row]]
        elif kind == 3:
            table = [[*each, each[place] if place < len(each) else ""] for each in table]
        elif place < len(table[row]):
            table[row][place] = draw(st.one_of(st.sampled_from((*TOKENS, *cells)), mangled(table[row][place])))
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=draw(st.sampled_from(("\n", "\r\n")))).writerows(table)
    whole = text.getvalue()
    if not draw(st.integers(0, 4)):
        whole = draw(mangled(whole))
    return whole.encode("utf-8", "surrogatepass")
