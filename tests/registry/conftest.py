"""What the tests of the registry share: a registry of their own, plug-in files, packages of definitions."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from testbed.registry import Catalog

_numbers = itertools.count()


@pytest.fixture
def make_catalog(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Catalog]:
    """Makes the catalog to which files register while the test runs, in place of the program's own."""

    def make_catalog(*packages: str, entry_points: bool = False) -> Catalog:
        catalog = Catalog(packages=packages, entry_points=entry_points)
        monkeypatch.setattr("testbed.registry.registry", catalog)
        return catalog

    return make_catalog


@pytest.fixture
def catalog(make_catalog: Callable[..., Catalog]) -> Catalog:
    """An empty catalog in place of the program's own."""
    return make_catalog()


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Writes a file below the test's folder; plug-ins made of it are forgotten afterwards."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    yield write
    for name in set(sys.modules) - before:
        if name.startswith("testbed_plugin_"):
            del sys.modules[name]


@pytest.fixture
def make_package(
    write: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Mapping[str, str]], str]]:
    """Makes a package of definition files and gives its name, another one each time."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make_package(files: Mapping[str, str]) -> str:
        made.append(f"package_{next(_numbers)}")
        write(f"{made[-1]}/__init__.py", "")
        for name, text in files.items():
            write(f"{made[-1]}/{name}", text)
        return made[-1]

    yield make_package
    for name in list(sys.modules):
        if name.split(".")[0] in made:
            del sys.modules[name]
