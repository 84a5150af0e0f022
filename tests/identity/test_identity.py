"""Digests of definitions: equal for equal content, another for any change of it, refused where neither is certain.

Definitions are written to real files and loaded as ``--plugin`` would load them, always at the same path, so that
nothing but their content can make a difference.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import linecache
import math
import operator
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tables import cases

from testbed.errors import IdentityError
from testbed.identity.alike import IdentityComparison
from testbed.identity.describe import describe, describe_fields, digest, digest_bytes
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.registry import Catalog, discovery
from testbed.tracing import own_code

Load = Callable[..., ModuleType]
Identify = Callable[..., str]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Writes a definition file, over the one before if it has the same name, and loads it as a plug-in."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loaded: list[str] = []

    def load(source: str, file: str = "definitions.py") -> ModuleType:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        linecache.clearcache()
        module = discovery.load_plugin_file(path)
        loaded.append(module.__name__)
        return module

    yield load
    for name in loaded:
        sys.modules.pop(name, None)


@pytest.fixture
def identify(load: Load) -> Identify:
    """The digest of what a definition file names ``thing``."""

    def identify(source: str, file: str = "definitions.py") -> str:
        return digest(load(source, file).thing)

    return identify


def identify_or_refuse(load: Load, source: str) -> str | None:
    try:
        return digest(load(source).thing)
    except IdentityError:
        return None


def write_module(path: Path, name: str, source: str) -> ModuleType:
    """A module of any name, made from a file and registered as an import would register it."""
    path.write_text(textwrap.dedent(source))
    linecache.clearcache()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# What does not count ----------------------------------------------------------------------------------------------

PLAIN_FUNCTION = "def thing(x, k=2):\n    y = x * k\n    return y + 1\n"

WRITTEN_OTHERWISE = {
    "comments": "# above\ndef thing(x, k=2):  # at the side\n    # within\n    y = x * k\n    return y + 1\n# below\n",
    "line breaks": "def thing(\n    x,\n    k=2,\n):\n    y = (\n        x\n        * k\n    )\n    return y + 1\n",
    "needless brackets": "def thing(x, k=(2)):\n    y = (x * k)\n    return ((y) + 1)\n",
    "a docstring": 'def thing(x, k=2):\n    """Scales."""\n    y = x * k\n    return y + 1\n',
    "other definitions": "other = 5\n\ndef another(x):\n    return other\n\n" + PLAIN_FUNCTION + "\nmore = [1]\n",
}


@pytest.mark.parametrize("written", WRITTEN_OTHERWISE.values(), ids=WRITTEN_OTHERWISE)
def test_layout_comments_and_docstrings_of_a_function_do_not_count(identify: Identify, written: str) -> None:
    assert identify(written) == identify(PLAIN_FUNCTION)


EQUAL = {
    "the docstring of a class": ("class thing:\n    k = 1\n", 'class thing:\n    """Says."""\n\n    k = 1  # one\n'),
    "the docstring of a method": (
        "class T:\n    def __call__(self, x):\n        return x\n\nthing = T()\n",
        "class T:\n    def __call__(self, x):\n        'Returns it.'\n        return x\n\nthing = T()\n",
    ),
    "a comment inside a lambda": (
        "thing = lambda x: x + 1\n",
        "thing = (\n    lambda x: (\n        x  # what comes in\n        + 1\n    )\n)\n",
    ),
    "what else is on a lambda's line": (
        "thing = [lambda x: x + 1, lambda x: x + 2][0]\n",
        "thing = [lambda x: x + 1, lambda x: x + 3, lambda x: x + 1][0]\n",
    ),
    "globals that are not read": ("K = 1\ndef thing(x):\n    return x.K\n", "K = 2\ndef thing(x):\n    return x.K\n"),
    "the order of a set": ("thing = {'a', 'b', 'c', 1}\n", "thing = {1, 'c', 'b', 'a'}\n"),
    "the order in which attributes are set": (
        "class T:\n    def __init__(self):\n        self.a, self.b = 1, 2\n\nthing = vars(T())\nthing = T()\n"
        "thing.__init__ = None\n",
        "class T:\n    def __init__(self):\n        self.a, self.b = 1, 2\n\nthing = T.__new__(T)\n"
        "thing.__init__ = None\nthing.b = 2\nthing.a = 1\n",
    ),
    "the order of the keys of a spec": (
        "class T:\n    def __init__(self, fields):\n        self._fields = fields\n\n"
        "    def spec(self):\n        return self._fields\n\nthing = T({'a': 1, 'b': 2})\n",
        "class T:\n    def __init__(self, fields):\n        self._fields = fields\n\n"
        "    def spec(self):\n        return self._fields\n\nthing = T({'b': 2, 'a': 1})\n",
    ),
    "the order of a set of functions that call each other": (
        "def f(x):\n    return g\n\ndef g(x):\n    return f\n\nthing = {f, g}\n",
        "def g(x):\n    return f\n\ndef f(x):\n    return g\n\nthing = {g, f}\n",
    ),
    "quotes within an f-string": (
        "def thing(d):\n    return f\"{d['a']:>{d['b']}} it's\"\n",
        'def thing(d):\n    return f\'{d["a"]:>{d["b"]}} it\\\'s\'\n',
    ),
    "the memory layout of an array": (
        "import numpy as np\nthing = np.arange(6).reshape(2, 3)\n",
        "import numpy as np\nthing = np.asfortranarray(np.arange(12).reshape(2, 6)[:, :3] - [[0], [3]])\n",
    ),
    "the memory layout of a tensor": (
        "import torch\nthing = torch.arange(6.0).reshape(2, 3)\n",
        "import torch\nthing = torch.arange(6.0, requires_grad=True).reshape(2, 3).t().contiguous().t()\n",
    ),
}


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_equal_content_gives_equal_digests(identify: Identify, one: str, other: str) -> None:
    assert identify(one) == identify(other)


@pytest.mark.parametrize(
    "definition",
    [
        "thing = lambda x: x * 2\n",
        "class T:\n    def spec(self):\n        return {'k': 2}\n\nthing = T()\n",
        "class T:\n    pass\n\nK = T()\n\ndef thing(x):\n    return T(), K\n",
    ],
    ids=["lambda", "object with spec", "function that uses a class"],
)
def test_a_definition_file_may_lie_anywhere(identify: Identify, definition: str) -> None:
    assert identify(definition, "mine/definitions.py") == identify(definition, "theirs/definitions.py")


# What counts: functions -------------------------------------------------------------------------------------------

# In each, the word VALUE is replaced by 2 and by 3, or by the two texts that stand beside.
CHANGED: dict[str, str | tuple[str, str, str]] = {
    "order: a dictionary": ("thing = VALUE\n", "{'a': 1, 'b': [2]}", "{'b': [2], 'a': 1}"),
    "order: numbered keys": ("thing = VALUE\n", "{1: 'a', (3, 4): 'c'}", "{(3, 4): 'c', 1: 'a'}"),
    "order: an ordered dictionary": (
        "from collections import OrderedDict\nthing = OrderedDict(VALUE)\n",
        "a=1, b=2",
        "b=2, a=1",
    ),
    "order: keywords": ("import functools\nthing = functools.partial(dict, VALUE)\n", "a=1, b=2", "b=2, a=1"),
    "order: an attribute that is a dictionary": (
        "class T:\n    def __init__(self, **ops):\n        self.ops = ops\n\nthing = T(VALUE)\n",
        "a=1, b=2",
        "b=2, a=1",
    ),
    "order: layers": (
        "from collections import OrderedDict\nfrom torch import nn\nthing = nn.Sequential(OrderedDict(VALUE))\n",
        "a=nn.ReLU(), b=nn.Tanh()",
        "b=nn.Tanh(), a=nn.ReLU()",
    ),
    "function: a constant": "def thing(x):\n    return x * VALUE\n",
    "function: a text that is no docstring": "def thing(x):\n    x += 'VALUE'\n    return x\n",
    "function: its name": ("def VALUE(x):\n    return x\n\nthing = VALUE\n", "scale", "grow"),
    "function: a parameter's name": ("def thing(VALUE):\n    return 1\n", "images", "model"),
    "function: a default": "def thing(x, k=VALUE):\n    return x * k\n",
    "function: a captured variable": (
        "def make(k):\n    def inner(x):\n        return x * k\n    return inner\n\nthing = make(VALUE)\n"
    ),
    "function: a module variable": "K = VALUE\n\ndef thing(x):\n    return x * K\n",
    "function: a module variable in a lambda in a comprehension in a function": """
        K = VALUE

        def thing(x):
            def inner():
                return [(lambda: y + K)() for y in x]
            return inner()
        """,
    "function: a helper's helper": """
        def lowest(x):
            return x * VALUE

        def lower(x):
            return lowest(x)

        def thing(x):
            return lower(x)
        """,
    "function: a helper in a table": (
        "def helper(x):\n    return x * VALUE\n\nALL = {'a': [helper]}\n\ndef thing(x):\n    return ALL['a'][0](x)\n"
    ),
    "function: functions that call each other": """
        def odd(x):
            return even(x - 1) if x else VALUE

        def even(x):
            return odd(x - 1) if x else 1

        thing = even
        """,
    "function: an own class it uses": (
        "class T:\n    def __call__(self, x):\n        return x * VALUE\n\ndef thing(x):\n    return T()(x)\n"
    ),
    "function: which library function it uses": (
        "import math\nf = math.VALUE\n\ndef thing(x):\n    return f(x)\n",
        "sin",
        "cos",
    ),
    "function: which of two library modules that end alike a name means": (
        "import VALUE as F\n\ndef thing(x):\n    return F.crop(x)\n",
        "torch.nn.functional",
        "torchvision.transforms.functional",
    ),
    "function: a decorator's body": """
        def twice(function):
            def wrapper(x):
                return function(x) * VALUE
            return wrapper

        @twice
        def thing(x):
            return x
        """,
    "function: a decorated function": """
        import functools

        def twice(function):
            @functools.wraps(function)
            def wrapper(x):
                return function(x) * 2
            return wrapper

        @twice
        def thing(x):
            return x + VALUE
        """,
    "function: a cached function": "import functools\n\n@functools.cache\ndef thing(x):\n    return x * VALUE\n",
    "function: a function without gradients": "import torch\n\n@torch.no_grad()\ndef thing(x):\n    return x * VALUE\n",
    "function: the decorator of torch": (
        "import torch\n\n@torch.VALUE()\ndef thing(x):\n    return x\n",
        "no_grad",
        "inference_mode",
    ),
    "function: an async function": "async def thing(x):\n    return x * VALUE\n",
    "function: a method's class": "class T:\n    def run(self, x):\n        return x * VALUE\n\nthing = T().run\n",
    "function: which method": (
        "class T:\n    def up(self):\n        return 1\n\n    def down(self):\n        return 1\n\nthing = T().VALUE\n",
        "up",
        "down",
    ),
    "function: a method's object": """
        class T:
            def __init__(self, k):
                self.k = k

            def run(self, x):
                return x * self.k

        thing = T(VALUE).run
        """,
    "function: a partial's argument": "import functools\nthing = functools.partial(pow, VALUE)\n",
    "function: one of the functions behind a dispatcher": """
        import functools

        @functools.singledispatch
        def thing(x):
            return x

        @thing.register
        def _(x: int):
            return x * VALUE
        """,
    "function: a wrapped dispatcher": """
        import functools

        def logged(function):
            @functools.wraps(function)
            def wrapper(x):
                return function(x)
            return wrapper

        @logged
        @functools.singledispatch
        def thing(x):
            return x * VALUE
        """,
    "lambda: a constant": "thing = lambda x: x * VALUE\n",
    "lambda: the middle of several on a line": "thing = [lambda x: x + 9, lambda x: x + VALUE, lambda x: x + 8][1]\n",
    "lambda: one that returns a constant": "thing = [lambda: 1, lambda: VALUE][1]\n",
    "lambda: one made by another": "thing = (lambda x: lambda y: x + y + VALUE)(1)\n",
    "lambda: one of two that begin on a line": "thing = [lambda x: x + 1, lambda x:\nx + VALUE][1]\n",
    "lambda: which of those made in a loop, by capture": (
        "thing = [(lambda i: lambda x: x + i)(i) for i in range(9)][VALUE]\n"
    ),
    "lambda: a keyword's default": "thing = lambda x, *, k=VALUE: x + k\n",
    "lambda: in a class body": "class T:\n    both = [lambda s: 9, lambda s: VALUE]\n\nthing = T.both[1]\n",
    "lambda: after non-ASCII text": "thing = {'ä': lambda x: 'ö', 'ü': lambda x: 'éVALUE'}['ü']\n",
    "object: a field": "class T:\n    def __init__(self, k):\n        self.k = k\n\nthing = T(VALUE)\n",
    "object: a field's name": (
        "class T:\n    def __init__(self, **fields):\n        vars(self).update(fields)\n\nthing = T(VALUE=1)\n",
        "low",
        "high",
    ),
    "object: a method": "class T:\n    def __call__(self, x):\n        return x * VALUE\n\nthing = T()\n",
    "object: a default of a data class": (
        "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass T:\n    k: int = VALUE\n\nthing = T()\n"
    ),
    "object: what spec says": """
        class T:
            def __init__(self, k):
                self.k = k

            def spec(self):
                return {"k": self.k}

        thing = T(VALUE)
        """,
    "object: the class of an object with spec": """
        class T:
            def spec(self):
                return {}

            def __call__(self, x):
                return x * VALUE

        thing = T()
        """,
    "object: an object of testbed": (
        "from testbed.models.model_base import StandardTransform\nthing = StandardTransform(VALUE, 2)\n"
    ),
    "object: a member of an enumeration": (
        "from enum import Enum\n\nclass M(Enum):\n    A = 1\n    B = 2\n\nthing = M.VALUE\n",
        "A",
        "B",
    ),
    "object: an own module's forward": """
        from torch import nn

        class Scale(nn.Module):
            def forward(self, x):
                return x * VALUE

        thing = Scale()
        """,
    "object: a property": "class T:\n    @property\n    def k(self):\n        return VALUE\n\nthing = T()\n",
    "object: a method of an own enumeration": (
        "from enum import Enum\n\nclass M(Enum):\n    A = 1\n\n    def __call__(self, x):\n        return x * VALUE\n\n"
        "thing = M.A\n"
    ),
    "object: an own metaclass": (
        "class Meta(type):\n    def __call__(cls):\n        return VALUE\n\nclass thing(metaclass=Meta):\n    pass\n"
    ),
    "object: a constant of a method made by exec": (
        "made = {}\nexec('def run(self, x):\\n    return x * VALUE', made)\n\nclass T:\n    run = made['run']\n\n"
        "thing = T()\n"
    ),
    "object: a cached property": (
        "import functools\n\nclass T:\n    @functools.cached_property\n    def k(self):\n        return VALUE\n\n"
        "thing = T()\n"
    ),
    "object: a field of an object that answers to every name": (
        "class T:\n    def __init__(self, k):\n        self.k = k\n\n    def __getattr__(self, name):\n"
        "        return lambda *a: a\n\nthing = T(VALUE)\n"
    ),
    "object: which function of the standard library a method is": (
        "import dataclasses\n\nclass T:\n    plain = dataclasses.VALUE\n\nthing = T()\n",
        "asdict",
        "astuple",
    ),
    "object: a data class made by a function": (
        "from dataclasses import field, make_dataclass\n"
        "thing = make_dataclass('T', [('k', int, field(default=VALUE))])\n"
    ),
    "object: a factory of a data class": (
        "from dataclasses import dataclass, field\n\n@dataclass\nclass T:\n"
        "    k: list = field(default_factory=lambda: [VALUE])\n\nthing = T\n"
    ),
    "object: the names in a named tuple": (
        "from typing import NamedTuple\n\nclass T(NamedTuple):\n    a: int\n    VALUE: int = 2\n\nthing = T\n",
        "b",
        "c",
    ),
    "object: a hook of a network": """
        from torch import nn

        def double(module, images, output):
            return output * VALUE

        thing = nn.ReLU()
        thing.register_forward_hook(double)
        """,
    "object: an own base class": (
        "class Base:\n    def __call__(self):\n        return VALUE\n\nclass T(Base):\n    pass\n\nthing = T()\n"
    ),
    "object: a class attribute that is a variable": (
        "K = VALUE\n\nclass T:\n    k = K\n\n    def __call__(self, x):\n        return x * self.k\n\nthing = T()\n"
    ),
    "object: a slot of a base class": """
        class Base:
            __slots__ = ("k",)

        class T(Base):
            def __init__(self, k):
                self.k = k

        thing = T(VALUE)
        """,
    "object: the value of an own enumeration's member": (
        "from enum import Enum\n\nclass M(Enum):\n    A = VALUE\n\nthing = M.A\n"
    ),
    "object: the class of a list of one's own": (
        "class VALUE(list):\n    def __call__(self, x):\n        return x\n\nthing = VALUE([1])\n",
        "Up",
        "Down",
    ),
    "object: the second of two classes of one name": "class T:\n    k = 1\n\nclass T:\n    k = VALUE\n\nthing = T()\n",
    "object: an attribute of a function": "def thing(x):\n    return x * thing.k\n\nthing.k = VALUE\n",
    "object: the seed of a random generator": (
        "import random\nGENERATOR = random.Random(VALUE)\n\ndef thing(x):\n    return x * GENERATOR.random()\n"
    ),
    "object: the content of an array of an own class": (
        "import numpy as np\n\nclass Kernel(np.ndarray):\n    pass\n\nthing = np.array([1, VALUE]).view(Kernel)\n"
    ),
    "object: the object of a built-in method": "thing = {1: VALUE}.get\n",
    "object: the number of dimensions of a scalar": ("import numpy as np\nthing = np.array(VALUE)\n", "2", "[2]"),
    "object: the fields of a structured array": (
        "import numpy as np\nthing = np.zeros(2, [('a', 'VALUE'), ('b', 'i4')])\n",
        "f4",
        "i4",
    ),
    "object: a dictionary that looks like a description": ("thing = VALUE\n", "{'float': 'nan'}", "float('nan')"),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
def test_a_changed_definition_has_another_digest_or_is_refused(load: Load, change: str | tuple[str, str, str]) -> None:
    text, *values = (change, "2", "3") if isinstance(change, str) else change
    one, other = (identify_or_refuse(load, text.replace("VALUE", value)) for value in values)
    assert one is None or one != other


def test_a_configuration_counts_by_what_was_written_not_by_what_it_has_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As OmegaConf keeps them, and Hydra, whose configurations hold the time at which they were composed."""
    library = ModuleType("omegaconf")
    monkeypatch.setitem(sys.modules, "omegaconf", library)

    class Config:
        def __init__(self, written: Any, root: Any = None, looked_up: str = "") -> None:
            self.written, self.root, self.looked_up = written, root, looked_up

        def _get_root(self) -> Any:
            return self.root or self

    Config.__module__ = "omegaconf.dictconfig"
    library.OmegaConf = SimpleNamespace(to_container=lambda config: config.written)  # type: ignore[attr-defined]
    assert digest(Config({"k": 1}, looked_up="10:00")) == digest(Config({"k": 1}, looked_up="10:01"))
    assert digest(Config({"k": 1})) != digest(Config({"k": 2}))
    low, high = Config({"seed": 1}), Config({"seed": 2})
    assert digest(Config({"k": 1}, low)) == digest(Config({"k": 1}, high))
    assert digest(Config({"k": "${seed}"}, low)) != digest(Config({"k": "${seed}"}, high))


def test_a_function_that_torch_compiles_counts_as_it_was_written(load: Load) -> None:
    compiled = "import torch\n\n@torch.compile(backend='eager')\ndef thing(x):\n    return x * 0.5\n"
    assert digest(load(compiled).thing) == digest(load(compiled).thing)
    assert digest(load(compiled).thing) != digest(load(compiled.replace("0.5", "0.8")).thing)


def test_lambdas_on_one_line_are_each_described_by_their_own_text(load: Load) -> None:
    module = load("first, second = lambda x: x + 1, (lambda y: (lambda z: y * z))\nthird = second(5)\n")
    assert describe(module.first) == {"!source": "lambda x: x + 1"}
    assert describe(module.second) == {"!source": "lambda y: lambda z: y * z"}
    assert describe(module.third) == {"!source": "lambda z: y * z", "variables": {"y": 5}}


def test_a_function_edited_and_loaded_again_is_read_again(tmp_path: Path, load: Load) -> None:
    before = digest(load("def thing(x):\n    return x * 22\n").thing)
    path = tmp_path / "definitions.py"
    path.write_text("def thing(x):\n    return x * 3\n")
    assert digest(discovery.load_plugin_file(path).thing) != before


def test_lambdas_on_one_line_are_never_mixed_up_where_python_keeps_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "definitions.py"
    path.write_text("both = [lambda x: x + 1, lambda x: x + 2]\n")
    script = f"""
from pathlib import Path
from testbed.errors import IdentityError
from testbed.identity.describe import digest
from testbed.registry.discovery import load_plugin_file
both = load_plugin_file(Path({str(path)!r})).both
try:
    print(digest(both[0]) == digest(both[1]))
except IdentityError:
    print("refused")
"""
    said = in_new_process(script, PYTHONNODEBUGRANGES="1").strip()
    assert said in ("False", "refused")


# What counts: values ----------------------------------------------------------------------------------------------

DIFFERENT_VALUES: dict[str, tuple[Any, Any]] = {
    "number and truth": (1, True),
    "number and fraction": (1, 1.0),
    "number and text": (1, "1"),
    "nothing and text": (None, "None"),
    "nothing and zero": (None, 0),
    "zeros": (0.0, -0.0),
    "NaN and infinity": (math.nan, math.inf),
    "infinities": (math.inf, -math.inf),
    "NaN and its name": (math.nan, "nan"),
    "list and set": ([1, 2], {1, 2}),
    "list and tuple": ([1, 2], (1, 2)),
    "order of a list": ([1, 2], [2, 1]),
    "nesting of a list": ([1, [2, 3]], [[1, 2], 3]),
    "keys": ({"a": 1}, {"b": 1}),
    "numbered and named keys": ({1: 2}, {"1": 2}),
    "items of numbered keys": ({1: 2, 3: 4}, {1: 4, 3: 2}),
    "sets": ({1, 2}, {1, 3}),
    "ranges": (range(0, 9, 2), range(0, 9, 3)),
    "bytes": (b"a", b"b"),
    "bytes and text": (b"a", "a"),
    "paths": (Path("a/b"), Path("a/c")),
    "path and text": (Path("a"), "a"),
    "library classes": (dict, list),
    "built-in functions": (abs, max),
    "library functions": (json.dumps, json.loads),
    "modules": (json, math),
    "types of array": (np.zeros(2, "float32"), np.zeros(2, "int32")),
    "byte orders of array": (np.zeros(2, "<f4"), np.zeros(2, ">f4")),
    "shapes of array": (np.zeros((2, 3)), np.zeros((3, 2))),
    "contents of array": (np.array([0.0, 1.0]), np.array([0.0, 2.0])),
    "object arrays": (np.array(["a", None], object), np.array(["b", None], object)),
    "texts in arrays": (np.array(["a", "b"]), np.array(["a", "c"])),
    "array and list": (np.array([1, 2]), [1, 2]),
    "types of numpy's numbers": (np.float32(1), np.float16(1)),
    "numpy's numbers": (np.float32(1), np.float32(2)),
    "numpy's functions": (np.sqrt, np.exp),
    "dispatched functions of numpy": (np.mean, np.median),
    "contents of tensor": (torch.tensor([1.0]), torch.tensor([2.0])),
    "low bits of a bfloat16": (
        torch.tensor([1.0], dtype=torch.bfloat16),
        torch.tensor([1.0078125], dtype=torch.bfloat16),
    ),
    "types of tensor": (torch.zeros(2, dtype=torch.bfloat16), torch.zeros(2, dtype=torch.float16)),
    "shapes of tensor": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "tensors without dimensions": (torch.tensor(1.0), torch.tensor([1.0])),
    "tensor and array": (torch.zeros(2), np.zeros(2, "float32")),
    "empty tensors": (torch.zeros(0, 2), torch.zeros(0, 3)),
    "types of torch": (torch.float32, torch.bfloat16),
    "devices": (torch.device("cpu"), torch.device("cuda")),
    "functions of torch": (torch.relu, torch.sigmoid),
    "sizes": (torch.Size([1, 2]), torch.Size([2, 1])),
}


@cases(("one", "other"), DIFFERENT_VALUES.values())
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert digest([one]) != digest([other])


def test_a_digest_is_32_hexadecimal_digits() -> None:
    assert len(digest("anything")) == 32
    assert int(digest("anything"), 16) >= 0
    assert len(digest_bytes(b"a", memoryview(b"b"))) == 32


def test_a_description_that_was_stored_as_json_has_the_same_digest(load: Load) -> None:
    module = load("K = {'b': (1, 2), 'a': {3: 4}}\n\ndef thing(x, path=None):\n    return x, K\n")
    described = describe([module.thing, Path("a"), {"z": 1, "a": {2, 1}}, np.zeros(2), module.K])
    stored = json.loads(json.dumps(described))
    assert list(stored[2]) == ["z", "a"]
    assert digest(stored) == digest(described)
    assert digest(describe(stored)) == digest(describe(described))


def test_the_order_of_the_fields_of_a_record_does_not_count() -> None:
    one, other = describe_fields({"b": 1, "a": {"d": 1, "c": 2}}), describe_fields({"a": {"d": 1, "c": 2}, "b": 1})
    assert json.dumps(one) == json.dumps(other)
    assert digest(one) == digest(other)
    assert digest(describe_fields({"a": {"c": 2, "d": 1}, "b": 1})) != digest(one)


def test_a_normalization_may_be_given_as_tuples() -> None:
    assert digest(StandardNormalization((0.5,) * 3, (0.5,) * 3)) == digest(StandardNormalization([0.5] * 3, [0.5] * 3))
    assert digest(StandardTransform((4, 4), 2)) == digest(StandardTransform([4, 4], 2))


# Networks and transforms ------------------------------------------------------------------------------------------


def small_network(seed: int = 0, width: int = 3) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(2, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU())


def changed_weight(network: torch.nn.Module) -> torch.nn.Module:
    with torch.no_grad():
        next(network.parameters())[0, 0] += 1e-6
    return network


def changed_buffer(network: torch.nn.Module) -> torch.nn.Module:
    dict(network.named_buffers())["1.running_mean"][0] = 0.5
    return network


def changed_layer(network: torch.nn.Module) -> torch.nn.Module:
    network[2] = torch.nn.GELU()  # type: ignore[operator]
    return network


@pytest.mark.parametrize(
    "change",
    [changed_weight, changed_buffer, changed_layer, torch.nn.Module.eval, torch.nn.Module.double],
    ids=["weight", "buffer", "layer", "evaluation", "precision"],
)
def test_a_changed_network_has_another_digest(change: Callable[[torch.nn.Module], torch.nn.Module]) -> None:
    assert digest(change(small_network())) != digest(small_network())


# Library, testbed, definition rooms -------------------------------------------------------------------------------


def test_library_functions_and_classes_count_by_name() -> None:
    assert describe(json.dumps) == {"!function": "json.dumps", "revision": 1}
    assert describe(operator.mul) == {"!function": "_operator.mul"}
    assert describe(torch.nn.Linear) == {"!class": "torch.nn.modules.linear.Linear"}
    assert describe(inspect.FullArgSpec) == {"!class": "inspect.FullArgSpec"}  # with a method that namedtuple has made


def replaced(self: Any, x: Any) -> Any:
    return -x


@functools.wraps(torch.nn.ReLU.forward)
def replaced_and_wrapped(self: Any, x: Any) -> Any:
    return -x


@pytest.mark.parametrize(
    ("owner", "name", "member"),
    [
        (torch.nn.ReLU, "forward", replaced),
        (torch.nn.ReLU, "forward", replaced_and_wrapped),
        (torch.nn.ReLU, "forward", staticmethod(replaced)),
        (torch.nn.ReLU, "inplace", property(lambda self: False)),
        (torch.nn.Module, "__call__", replaced),
    ],
    ids=["a method", "wrapped", "static", "a property", "of a base"],
)
def test_a_method_of_a_librarys_class_that_was_replaced_counts(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, member: Any
) -> None:
    network = small_network()
    before = digest(network)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, member, raising=False)
        assert digest(network) != before
    assert digest(network) == before


NAMES_OF_ITS_OWN = """
k, s, g = {values}

def outer(s):
    def scale(x):
        k = x + s
        def of_a_module():
            global g
            return g
        return [k * each * of_a_module() for each in (1, 2)]
    return scale

scale = outer(1)
"""


def test_a_functions_own_variables_are_not_those_of_the_module_with_their_names(load: Load) -> None:
    found = [digest(load(NAMES_OF_ITS_OWN.format(values=values)).scale) for values in ("1, 2, 3", "0, 0, 3", "1, 2, 4")]
    assert found[0] == found[1] != found[2]


def test_a_method_spec_that_asks_for_arguments_is_no_description(load: Load) -> None:
    text = "class Kind:\n    k = {k}\n    def spec(self, name):\n        return name\n\nthing = Kind()\n"
    assert digest(load(text.format(k=1)).thing) != digest(load(text.format(k=2)).thing)


def test_code_may_refer_to_registered_settings(load: Load, own_registry: Any) -> None:
    text = """
        from testbed.registry import registry

        setting = registry.get_eval_setting({name!r})

        def f(x):
            return setting
    """
    found = [digest(load(text.format(name=name)).f) for name in ("digits", "digits-c.contrast.1")]
    assert found[0] != found[1]


USES_A_LIBRARY = """
import torch.nn.functional as F

def scale(x):
    return F.relu(x)
"""


def test_a_function_that_was_put_into_a_librarys_module_counts(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = load(USES_A_LIBRARY)
    before = digest(mine.scale)
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.functional, "relu", replaced)
        assert digest(mine.scale) != before
    assert digest(mine.scale) == before


def test_what_a_module_holds_that_was_made_by_hand_counts(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("made_by_hand")
    made.k = 0.5  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    mine = load("import made_by_hand\n\ndef scale(x):\n    return x * made_by_hand.k\n")
    before = digest(mine.scale)
    made.k = 0.8  # type: ignore[attr-defined]
    assert digest(mine.scale) != before
    assert not any(map(own_code.is_own_module, (sys, sys.modules["pyexpat.errors"], sys.modules["torch._C._nn"])))


def two_texts_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[str, str]:
    """The digests of a function in a module of that name, before and after a change to its text."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for value in (2, 3):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))  # so that it is gone afterwards
        module = write_module(tmp_path / "room.py", name, f"def scale(x):\n    return x * {value}\n")
        found.append(digest(module.scale))
    return found[0], found[1]


BY_SOURCE = ("testbed.models.my_family", "testbed.eval_settings.my_family", "my_definitions")
BY_NAME = ("testbed.models.my_base", "testbed.eval_settings.my_base", "testbed.tasks.my_task")  # to be tidied up


@pytest.mark.parametrize("name", [*BY_SOURCE, *BY_NAME])
def test_functions_in_definition_rooms_and_own_files_count_by_source_and_testbeds_own_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    before, after = two_texts_of_a_module(tmp_path, monkeypatch, name)
    assert (before != after) == (name in BY_SOURCE)


def test_a_raised_revision_changes_the_identity_of_testbeds_own_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "testbed.corruptions.mine", ModuleType("testbed.corruptions.mine"))
    module = write_module(tmp_path / "mine.py", "testbed.corruptions.mine", "def blur(x):\n    return x\n")
    before = digest(module.blur)
    module.blur.revision = 2
    assert digest(module.blur) != before


# Written otherwise ------------------------------------------------------------------------------------------------

# A function's text with X → whether it says the same with each of the others.
ALIKE = {
    "a local variable": ("def f(x):\n    X = x + 1\n    return X\n", "a", ["b", "z"], True),
    "a loop's variable": ("def f(x):\n    for X in x:\n        pass\n    return X\n", "a", ["b"], True),
    "a comprehension's variable": ("def f(x):\n    return [X for X in x]\n", "a", ["b"], True),
    "an exception's name": (
        "def f(x):\n    try:\n        x()\n    except E as X:\n        return X\n",
        "a",
        ["b"],
        True,
    ),
    "a hint": (
        "def f(x: X):\n    def g(y: X) -> X:\n        z: X = y\n        return z\n    return g\n",
        "a",
        ["b"],
        True,
    ),
    "a constant": ("def f(x):\n    return x * X\n", "2", ["3", "2.0", "-2"], False),
    "a comparison": ("def f(x):\n    return x X 2\n", "<", ["<=", "=="], False),
    "which local variable": ("def f(x):\n    a, b = x\n    return X\n", "a", ["b"], False),
    "which captured variable": ("def f(x):\n    a, b = x\n    return lambda y: (y - X) / b\n", "a", ["b"], False),
    "a parameter": ("def f(X):\n    return X\n", "a", ["b"], False),
    "a keyword": ("def f(x):\n    return g(X=1)\n", "a", ["b"], False),
    "an attribute": ("def f(x):\n    return x.X\n", "a", ["b"], False),
    "a default": ("def f(x):\n    def g(y=X):\n        return y\n    return g\n", "1", ["2"], False),
}


@cases(("text", "before", "others", "same"), ALIKE.values())
def test_renamed_variables_and_hints_are_told_from_what_counts(
    text: str, before: str, others: list[str], same: bool
) -> None:
    compare = IdentityComparison([]).alike
    old, *new = ({"!source": text.replace("X", each)} for each in (before, *others))
    assert [compare(old, each) for each in new] == [same] * len(new)


def test_another_order_of_a_mapping_is_not_written_otherwise() -> None:
    assert not IdentityComparison([]).alike({"a": 1, "b": 2}, {"b": 2, "a": 1})


# Cycles and depth -------------------------------------------------------------------------------------------------


def test_cycles_can_be_described_and_compared(load: Load) -> None:
    def ring(value: int) -> list[Any]:
        first: list[Any] = [value]
        first.append({"back": [first]})
        return first

    assert digest(ring(1)) == digest(ring(1))
    assert digest(ring(1)) != digest(ring(2))


def test_what_is_nested_too_deeply_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(120):
        nested = [nested]
    with pytest.raises(IdentityError, match="nested too deeply"):
        digest(nested)


def test_a_description_is_not_much_longer_than_the_source(load: Load) -> None:
    lines = ["def f0(x):\n    return x\n"]
    for number in range(1, 10):
        lines.append(f"def f{number}(x):\n    return {' + '.join(f'f{i}(x)' for i in range(number))}\n")
    source = "\n".join([*lines, "thing = f9\n"])
    assert len(json.dumps(describe(load(source).thing))) < 10 * len(source)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (iter([1]), iter([2])),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (torch.Generator().manual_seed(0), torch.Generator().manual_seed(1)),
        (operator.itemgetter(1), operator.itemgetter(2)),
        (1j, 2j),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objects_without_visible_fields_count_by_what_copying_them_would_take(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert digest(one) == digest(one)


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (threading.Lock(), "lock"),
        ((number for number in [1]), "generator"),
        (sys._getframe(), "frame"),
        (memoryview(b"ab"), "memoryview"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_has_no_content_to_compare_is_refused_with_its_type_and_the_way_out(value: Any, kind: str) -> None:
    for within in (value, [value], {"deep": {"inside": [value]}}, functools.partial(pow, value)):
        with pytest.raises(IdentityError) as raised:
            digest(within)
        assert kind in str(raised.value)
        assert "spec()" in str(raised.value)


def test_a_refusal_names_the_variable_that_holds_the_object(load: Load) -> None:
    module = load("import threading\nLOCK = threading.Lock()\n\ndef thing(x):\n    with LOCK:\n        return x\n")
    with pytest.raises(IdentityError, match=r"LOCK.*thing refers to"):
        digest(module.thing)


@pytest.mark.parametrize("code", ["lambda x: x + 1", "(lambda x: (lambda y: y))(1)"])
def test_a_lambda_without_a_file_is_refused_with_the_advice_to_write_it_into_one(code: str) -> None:
    with pytest.raises(IdentityError, match="define it in a file") as raised:
        digest(eval(code))
    assert "<lambda>" in str(raised.value)


def test_a_function_made_by_exec_is_refused() -> None:
    names: dict[str, Any] = {}
    exec("def made(x):\n    return x + 1\n", names)
    with pytest.raises(IdentityError, match="define it in a file"):
        digest(names["made"])


def test_what_else_is_registered_does_not_count_for_a_function_that_asks_the_registry(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = Catalog(packages=(), entry_points=False)
    monkeypatch.setattr("testbed.registry.registry", catalog)
    asks = "from testbed.registry import registry\n\ndef thing():\n    return registry.get_model('a').load()\n"
    before = digest(load(asks).thing)
    transform, normalization = StandardTransform(4, 4), StandardNormalization([0.5] * 3, [0.5] * 3)
    catalog.add_model(Model("unrelated", transform, dict, 1, normalization=normalization))
    assert digest(load(asks).thing) == before


# What is reached by way of a module -------------------------------------------------------------------------------

HELPER = """
import json
import os
from pathlib import Path

K = json.loads(Path(__file__).with_name("k.json").read_text())
FROM_SURROUNDINGS = os.environ.get("MY_K", "")
SETTINGS = {"k": 1}

def configure(k):
    SETTINGS["k"] = k

def scale(x):
    return x * K

def configured(x):
    return x * SETTINGS["k"]
"""

THROUGH_MODULE = {
    "a variable": "import mine\n\ndef thing(x):\n    return x * mine.K\n",
    "a variable that a function reads": "import mine\n\ndef thing(x):\n    return mine.scale(x)\n",
    "a variable of a submodule": "import folder.mine\n\ndef thing(x):\n    return x * folder.mine.K\n",
    "a function of a submodule": "import folder.mine\n\ndef thing(x):\n    return folder.mine.scale(x)\n",
    "a captured module": (
        "import mine as m\n\ndef make(module):\n    def inner(x):\n        return x * module.K\n    return inner\n\n"
        "thing = make(m)\n"
    ),
    "a variable within a nested function": (
        "import mine\n\ndef thing(x):\n    return [(lambda: y * mine.K)() for y in x]\n"
    ),
}


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Writes the helper modules ``mine`` and ``folder.mine``, and forgets those imported before."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str, content: str) -> None:
        for folder in (tmp_path, tmp_path / "folder"):
            folder.mkdir(exist_ok=True)
            (folder / "mine.py").write_text(source)
            (folder / "k.json").write_text(content)
        linecache.clearcache()
        importlib.invalidate_caches()
        forget()

    def forget() -> None:
        for name in ("mine", "folder", "folder.mine"):
            sys.modules.pop(name, None)

    yield write
    forget()


@pytest.mark.parametrize("written", THROUGH_MODULE.values(), ids=THROUGH_MODULE)
def test_data_that_a_helper_module_has_read_count(
    identify: Identify, helper: Callable[[str, str], None], written: str
) -> None:
    found = []
    for content in ("1", "1", "2"):
        helper(HELPER, content)
        found.append(identify(written))
    assert found[0] == found[1] != found[2]


# Those that use its function.
THROUGH_FUNCTION = {name: text for name, text in THROUGH_MODULE.items() if "scale" in text}


@pytest.mark.parametrize("written", THROUGH_FUNCTION.values(), ids=THROUGH_FUNCTION)
def test_an_edit_to_a_helper_module_counts(
    identify: Identify, helper: Callable[[str, str], None], written: str
) -> None:
    helper(HELPER, "1")
    before = identify(written)
    helper(HELPER.replace("x * K", "x + K"), "1")
    assert identify(written) != before


# Files of code ----------------------------------------------------------------------------------------------------


def test_the_files_of_all_code_that_was_met_are_listed(
    load: Load, helper: Callable[[str, str], None], tmp_path: Path
) -> None:
    helper(HELPER, "1")
    thing = load(
        "import json\nimport folder.mine\n\ndef thing(x):\n    return json.dumps(folder.mine.scale(x))\n"
    ).thing
    files: set[str] = set()
    assert describe(thing, files) == describe(thing)
    assert files == {str(tmp_path / "definitions.py"), str(tmp_path / "folder" / "mine.py")}


def test_the_files_of_an_installed_plugin_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_code, "_plugin_packages", lambda: frozenset({"h1_plugin"}))
    monkeypatch.setitem(sys.modules, "h1_plugin", ModuleType("h1_plugin"))
    path = tmp_path / "site-packages" / "h1_plugin.py"
    path.parent.mkdir()
    module = write_module(path, "h1_plugin", "def scale(x):\n    return x\n\nclass T:\n    pass\n")
    for thing in (module.scale, module.T(), module):
        files: set[str] = set()
        describe(thing, files)
        assert files == {str(path)}


# Other processes --------------------------------------------------------------------------------------------------


def in_new_process(script: str, **variables: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=True,
        timeout=120,
    )
    return finished.stdout


MANY_THINGS = """
import functools
import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np

NAMES = {"ant", "bee", "cat", "dog", "emu"}

class Mode(Enum):
    A = 1

@dataclass
class Box:
    inside: object

def helper(x):
    return [x for name in NAMES if name in {"ant", "emu"}]

def function(x, k={"one": 1, 2: {"b", "a"}}):
    return helper(x), math.pi, k

thing = {
    "set": NAMES,
    "sets": {frozenset(NAMES), frozenset({"ant", 1, None, 2.5})},
    "keys": {("a", 1): NAMES, 2: frozenset(NAMES), "c": {1}},
    "function": function,
    "lambdas": [lambda x: x in NAMES, lambda x: (x, *NAMES)],
    "partial": functools.partial(function, k=NAMES),
    "object": Box([Mode.A, Path("a"), np.arange(3), float("nan"), NAMES]),
}
"""


def test_digests_are_the_same_in_other_processes_whatever_their_hash_seed(load: Load, tmp_path: Path) -> None:
    here = {name: digest(value) for name, value in load(MANY_THINGS).thing.items()}
    script = f"""
import json, sys
from pathlib import Path
from testbed.identity.describe import digest
from testbed.registry.discovery import load_plugin_file
thing = load_plugin_file(Path({str(tmp_path / "definitions.py")!r})).thing
print(json.dumps([{{name: digest(value) for name, value in thing.items()}}, list(thing["set"]), list(sys.modules)]))
"""
    orders = set()
    for seed in ("1", "2", "3"):
        there, order, modules = json.loads(in_new_process(script, PYTHONHASHSEED=seed))
        assert there == here
        assert "torch" not in modules
        orders.add(tuple(order))
    assert len(orders) > 1, "the hash seed made no difference, so that this test shows nothing"


@pytest.fixture
def on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path of imports."""
    caches = (own_code._library_places, own_code.is_library_file, own_code.is_standard_file)
    monkeypatch.syspath_prepend(tmp_path / "more")
    for cache in caches:
        cache.cache_clear()
    yield tmp_path / "more"
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    ("listed", "theirs"),
    [
        ({"RECORD": "theirs/code.py,sha256=x,1\ntheirs-1.0.dist-info/METADATA,,\n"}, "theirs/code.py"),
        ({"RECORD": "theirs.py,,\n../../bin/theirs,,\n"}, "theirs.py"),
        ({"top_level.txt": "theirs\n"}, "theirs/part/code.py"),
        ({}, "theirs/code.py"),
    ],
)
def test_in_a_folder_that_pip_filled_libraries_are_what_it_installed(
    on_the_path: Path, listed: dict[str, str], theirs: str
) -> None:
    info = on_the_path / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    for name, text in listed.items():
        (info / name).write_text(text)
    library = str(on_the_path / theirs)
    assert not own_code.is_own("theirs", library)
    assert not own_code.is_standard_file(library)
    for mine in ("mine.py", "theirs_too/code.py", "helpers/__init__.py"):
        assert own_code.is_own("mine", str(on_the_path / mine))


# What functools makes, and what a __getattr__ answers --------------------------------------------------------------

CACHED = """
import functools

class T:
    def __init__(self, k):
        self.k = k

    @functools.cached_property
    def twice(self):
        return 2 * self.k
"""


def test_reading_a_cached_property_changes_no_identity(load: Load) -> None:
    kind = load(CACHED + "\nthing = T\n").thing
    read, other = kind(3), kind(4)
    fresh = digest(read)
    assert read.twice == 6
    assert digest(read) == fresh != digest(other)


def test_a_refusal_names_the_attribute_or_the_default_that_holds_the_object(load: Load) -> None:
    text = """
    import functools
    import threading

    class Answers:
        def __init__(self):
            self.name, self.lock = "a", threading.Lock()

    @functools.singledispatch
    def chosen(x, lock=threading.Lock()):
        return x
    """
    made = load(text)
    for thing, place in ((made.Answers(), "'lock', which Answers refers to"), (made.chosen, "a default of chosen")):
        with pytest.raises(IdentityError, match=f"type _thread.lock cannot be identified .*{place}"):
            digest(thing)
