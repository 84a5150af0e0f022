"""Imports in the body of a function count as those at the top of its file: what they lead to is in identities."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.identity.describe import describe, digest
from testbed.registry.discovery import load_plugin_file
from testbed.tracing import own_code

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes files into a folder on the path of imports."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            if name.startswith("pack__"):
                path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    yield write
    forget(tmp_path)


def forget(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


def identity(folder: Path, run: bool = False) -> str:
    """The digest of ``mine.f`` in a new process, before or after it has run."""
    forget(folder)
    linecache.clearcache()
    importlib.invalidate_caches()
    f = importlib.import_module("mine").f
    if run:
        f()
    return digest(describe(f))


HELPER = """
import math
from other import FACTOR

TABLE = {"a": 1}
TABLE.update(b=2)

def unused():
    return 1

def dim():
    return inner() * FACTOR

def inner():
    \"\"\"Dims.\"\"\"
    return math.sqrt(TABLE["b"]) * 0.5  # dims
"""
LAZY = {
    "from helper import dim": "def f():\n    from helper import dim\n    return dim()\n",
    "import helper": "def f():\n    import helper\n    return helper.dim()\n",
    "import helper as h": "def f():\n    import helper as h\n    return h.dim()\n",
    "by its name": "import importlib\n\ndef f():\n    return importlib.import_module('helper').dim()\n",
    "an attribute by its name": "def f():\n    import helper\n    return getattr(helper, 'dim')()\n",
    "through another one": "def f():\n    from between import dim\n    return dim()\n",
    "within an inner function": (
        "def f():\n    def g():\n        from helper import dim\n        return dim()\n    return g()\n"
    ),
    "all of a module": "def f():\n    from everything import dim\n    return dim()\n",
    "a package": "def f():\n    from pack import part\n    return part.dim()\n",
    "a module of a package": "def f():\n    import pack.part\n    return pack.part.dim()\n",
}
FILES = {
    "other": "FACTOR = 2\nOTHER = 3\n",
    "between": "from helper import dim\n",
    "everything": "from helper import *\n",
    "pack____init__": "",
    "pack__part": "def dim():\n    from . import deep\n    return deep.dim()\n",
    "pack__deep": "from helper import dim\n",
}
CHANGES = {
    "what is called": ("helper", "inner() * FACTOR", "inner() + FACTOR"),
    "what that calls": ("helper", "* 0.5", "* 0.9"),
    "a constant of another module": ("other", "FACTOR = 2", "FACTOR = 4"),
    "a table": ("helper", '"a": 1', '"a": 3'),
    "an entry of it that is set apart": ("helper", "b=2", "b=4"),
}


@pytest.mark.parametrize("mine", LAZY.values(), ids=LAZY)
def test_what_a_lazy_import_leads_to_counts(write: Write, tmp_path: Path, mine: str) -> None:
    files = {**FILES, "helper": HELPER, "mine": mine}
    write(**files)
    before = identity(tmp_path)
    assert identity(tmp_path, run=True) == before, "an import that has run"
    for what, (name, old, new) in CHANGES.items():
        assert old in files[name]
        write(**{name: files[name].replace(old, new)})
        assert identity(tmp_path) != before, what
        write(**{name: files[name]})
    assert identity(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("helper", "# dims", "# darkens"),
        ("helper", "Dims.", "Darkens."),
        ("helper", "return 1\n", "return 2\n"),
        ("other", "OTHER = 3", "OTHER = 4"),
    ],
    ids=["a comment", "a docstring", "a function that is not reached", "a constant that is not reached"],
)
@pytest.mark.parametrize("mine", LAZY.values(), ids=LAZY)
def test_what_it_does_not_lead_to_does_not_count(
    write: Write, tmp_path: Path, mine: str, name: str, old: str, new: str
) -> None:
    files = {**FILES, "helper": HELPER, "mine": mine}
    write(**files)
    before = identity(tmp_path)
    assert old in files[name]
    write(**{name: files[name].replace(old, new)})
    assert identity(tmp_path) == before


def test_the_files_that_it_leads_to_are_listed_and_none_is_run(write: Write, tmp_path: Path) -> None:
    write(**FILES, helper=HELPER + "\nraise SystemExit\n", mine=LAZY["through another one"])
    files: set[str] = set()
    describe(importlib.import_module("mine").f, files)
    assert files == {str(tmp_path / f"{name}.py") for name in ("mine", "between", "helper", "other")}
    assert "helper" not in sys.modules


LIBRARIES = """
def f():
    import json
    import torch.nn.functional
    import a_library_that_nobody_has
    from testbed.errors import TestbedError
    return json.dumps(1)
"""


def test_imports_of_libraries_do_not_count(write: Write, tmp_path: Path) -> None:
    write(mine=LIBRARIES)
    described = describe(importlib.import_module("mine").f)
    assert "imported" not in described


def test_modules_that_import_each_other_are_followed_once(write: Write, tmp_path: Path) -> None:
    write(
        mine="def f():\n    import one\n    return one.a(3)\n",
        one="def a(n):\n    import two\n    return n and two.b(n - 1)\n",
        two="import one\n\ndef b(n):\n    return n and one.a(n - 1)\n",
    )
    before = identity(tmp_path)
    write(two="import one\n\ndef b(n):\n    return n and one.a(n - 2)\n")
    assert identity(tmp_path) != before


def test_a_long_chain_of_functions_is_followed_to_its_end(write: Write, tmp_path: Path) -> None:
    links = [f"def f{n}():\n    return f{n + 1}()\n" for n in range(2000)]
    write(mine="def f():\n    import helper\n    return helper.f0()\n")
    write(helper="\n".join([*links, "def f2000():\n    return 1\n"]))
    before = identity(tmp_path)
    write(helper="\n".join([*links, "def f2000():\n    return 2\n"]))
    assert identity(tmp_path) != before


def test_a_package_of_an_installed_plugin_is_followed(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_code, "_plugin_packages", lambda: frozenset({"lab_plugin"}))
    package = tmp_path / "site-packages" / "lab_plugin"
    package.mkdir(parents=True)
    monkeypatch.syspath_prepend(package.parent)
    (package / "__init__.py").write_text("def f():\n    from .ops import dim\n    return dim()\n")
    found = []
    for number in ("0.5", "0.9"):
        (package / "ops.py").write_text(f"def dim():\n    return {number}\n")
        forget(tmp_path)
        importlib.invalidate_caches()
        found.append(digest(describe(importlib.import_module("lab_plugin").f)))
    assert found[0] != found[1]


def test_what_lies_beside_a_plugin_is_followed(tmp_path: Path) -> None:
    """Its imports mean what `testbed.plugins.import_names` says."""
    found = []
    for number in ("0.5", "0.9", "0.5"):
        folder = tmp_path / "made" / "deep"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "beside_it.py").write_text(f"def dim():\n    return {number}\n")
        (folder / "plugin.py").write_text("def f():\n    from beside_it import dim\n    return dim()\n")
        module = load_plugin_file(folder / "plugin.py")
        found.append(digest(describe(module.f)))
    assert found[0] == found[2] != found[1]
