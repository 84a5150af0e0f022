"""StandardDataset: a name below the data root, or a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import StandardDataset


@pytest.mark.parametrize("arguments", [{}, {"name": "a", "path": "/b"}, {"name": ""}, {"path": ""}])
def test_either_a_name_or_a_path(arguments):
    with pytest.raises(DefinitionError, match="either a name or a path"):
        StandardDataset(**arguments)


@pytest.mark.parametrize("name", ["/etc", "../other", "a/../../other", "..", "a/.."])
def test_a_name_that_leaves_the_data_root_is_refused(name):
    with pytest.raises(DefinitionError, match=r"folder below the data root; use path="):
        StandardDataset(name=name)


def test_a_name_is_found_below_the_data_root(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    assert StandardDataset(name="val").get_root() == tmp_path / "val"
    assert StandardDataset("imagenet-c/fog/3").get_root() == tmp_path / "imagenet-c" / "fog" / "3"
    assert StandardDataset(name="..val").get_root() == tmp_path / "..val"


def test_without_a_data_root_the_error_says_what_to_set(monkeypatch):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    with pytest.raises(DataError) as caught:
        StandardDataset(name="val").get_root()
    for word in ("'val'", "--data-root", "TESTBED_DATA", "DIR/val", "one folder per class"):
        assert word in str(caught.value)


def test_a_path_needs_no_data_root(monkeypatch, tmp_path):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    assert StandardDataset(path=tmp_path / "x").get_root() == tmp_path / "x"
    assert StandardDataset(path=str(tmp_path)).spec() == {"root": str(tmp_path)}


def test_a_home_folder_is_expanded_and_a_relative_path_made_absolute(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert StandardDataset(path="~/data").get_root() == tmp_path / "data"
    assert StandardDataset(path="data").spec() == StandardDataset(path=Path("~/data")).spec()


def test_a_name_and_a_path_to_the_same_folder_are_the_same_data_set(monkeypatch, make_tree, tmp_path):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    make_tree(tmp_path / "val", each=2)
    by_name, by_path = StandardDataset(name="val"), StandardDataset(path=tmp_path / "val")
    assert by_name.spec() == by_path.spec()
    assert by_name.open().targets == by_path.open().targets == [0, 0, 1, 1, 2, 2]
