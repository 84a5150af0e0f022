"""Identities go on naming what has moved within testbed by its first name."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import types
from pathlib import Path

import pytest

from testbed import first_names, sourcecode
from testbed.first_names import first_name
from testbed.identity import describe
from testbed.normalform import normal_text


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A table of its own, in place of what has moved."""
    table = {
        "parts.scales": "models.scales_base",
        "seeds.seed": "models.old.seed",
        "seeds.SEED": "models.old.SEED",
        "models.networks.cnn": "models._cnn",
    }
    monkeypatch.setattr(first_names, "MOVED", table)
    first_name.cache_clear()
    yield table
    first_name.cache_clear()


def normal(text: str) -> str:
    return normal_text(ast.parse(text))


def test_what_is_within_a_moved_module_has_moved_too(moved: dict[str, str]) -> None:
    assert first_name("testbed.parts.scales.Scales.load") == "testbed.models.scales_base.Scales.load"
    assert first_name("testbed.seeds.seed") == "testbed.models.old.seed"
    assert first_name("testbed.seeds.other") == "testbed.seeds.other"
    assert first_name("testbed.parts.scales_too") == "testbed.parts.scales_too"
    assert first_name("mine.parts.weights") == "mine.parts.weights"


def test_imports_are_written_by_first_names_and_in_their_order(moved: dict[str, str]) -> None:
    before = """
def load():
    import torch
    from testbed.models import _cnn as networks
    from testbed.models.old import SEED, more, seed
    from testbed.models.old import other as another
    from testbed.models.scales_base import Scales
    from testbed.paths import cache_dir
"""
    after = """
def load():
    import torch
    from testbed.models.networks import cnn as networks
    from testbed.models.old import more
    from testbed.models.old import other as another
    from testbed.parts.scales import Scales
    from testbed.paths import cache_dir
    from testbed.seeds import SEED, seed
"""
    assert normal(after) == normal(before) == before.strip()


def test_imports_of_what_has_not_moved_keep_their_order(moved: dict[str, str]) -> None:
    text = "from testbed.seeds import other\nfrom testbed.paths import cache_dir\nfrom . import mine"
    assert normal(text) == text


def test_a_module_that_was_described_by_its_source_still_is(moved: dict[str, str]) -> None:
    assert sourcecode.is_own("testbed.models.networks.cnn", "cnn.py")
    assert not sourcecode.is_own("testbed.models.networks.transformer", "transformer.py")
    assert not sourcecode.is_own("testbed.models.networks", "networks/__init__.py")
    assert not sourcecode.is_own("testbed.parts.scales", "scales.py")


def test_functions_and_classes_are_described_by_first_names(
    moved: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scales.py"
    path.write_text("def plain():\n    return 1\n\n\nclass Scales:\n    pass\n")
    spec = importlib.util.spec_from_file_location("testbed.parts.scales", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "testbed.parts.scales", module)
    spec.loader.exec_module(module)
    assert describe(module.plain)["!function"] == "testbed.models.scales_base.plain"
    assert describe(module.Scales) == {"!class": "testbed.models.scales_base.Scales"}
    assert describe(module) == {"!module": "testbed.models.scales_base"}


@pytest.mark.parametrize("name", sorted(first_names.MOVED))
def test_whatever_has_moved_is_where_the_table_says(name: str) -> None:
    module, _, last = f"testbed.{name}".rpartition(".")
    try:
        found: object = importlib.import_module(f"{module}.{last}")
    except ModuleNotFoundError:
        found = getattr(importlib.import_module(module), last)
        assert not isinstance(found, types.ModuleType)
    assert found is not None
