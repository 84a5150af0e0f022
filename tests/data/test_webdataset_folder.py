"""Where data sets called wds/… are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import wds_world as world
from web_world import files_below, serving

from testbed.data.webdataset.folder import WebDatasetFolder, find_webdataset
from testbed.errors import DataError, DefinitionError
from testbed.paths import data_root

pytestmark = pytest.mark.usefixtures("own_web")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def make(folder: Path) -> Path:
    shards = [world.samples({"s0": b"1", "s1": b"0"}), world.samples({"s2": b"1"})]
    return world.write_split(folder, shards, classnames="cat\ndog\n", templates="a {c}\n")


def test_the_first_folder_below_the_data_root_is_taken(root):
    places = ["wds_vtab-pets", "wds/vtab/pets", "vtab/pets"]
    for place in places:
        make(root / place)
    for place in places:
        assert find_webdataset("vtab/pets") == root / place
        shutil.rmtree(root / place)
    with pytest.raises(DataError, match=r"none of the folders wds_vtab-pets, wds_vtab-pets_test, .*--data-root"):
        find_webdataset("vtab/pets")


def test_a_data_root_that_is_a_data_set_itself_is_taken_last(root):
    make(root)
    assert find_webdataset("pets") == root
    make(root / "pets")
    assert find_webdataset("pets") == root / "pets"


@pytest.mark.parametrize("pattern", ["{dataset}/wds", "sets/wds_{dataset_cleaned}", "{dataset}-{dataset_cleaned}"])
def test_places_for_the_name_are_filled(tmp_path, monkeypatch, pattern):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path / pattern))
    filled = pattern.replace("{dataset_cleaned}", "vtab-pets").replace("{dataset}", "vtab/pets")
    assert find_webdataset("vtab/pets") == tmp_path / filled


def test_a_url_is_a_place_too(monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", "https://host/wds_{dataset_cleaned}/tree/main")
    assert find_webdataset("vtab/pets") == "https://host/wds_vtab-pets/tree/main"
    assert WebDatasetFolder("vtab/pets", "train").spec() == {
        "webdataset": "https://host/wds_vtab-pets/tree/main",
        "split": "train",
    }
    with pytest.raises(DataError, match=r"only data sets called wds/… are read from a URL"):
        data_root()


def test_without_a_data_root_the_remedy_is_named(monkeypatch):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    with pytest.raises(DataError, match=r"give --data-root DIR or set TESTBED_DATA, where DIR/wds_vtab-pets"):
        WebDatasetFolder("wds/vtab/pets").open()


@pytest.mark.parametrize("name", ["wds/", "../x", "a/../b", "/etc", "a//b", "a\\b", "./a"])
def test_names_stay_below_the_data_root(root, name):
    with pytest.raises(DefinitionError):
        WebDatasetFolder(name)


def test_a_name_or_a_root_is_given():
    for given in ({}, {"name": "a", "root": "b"}):
        with pytest.raises(DefinitionError, match="either a name or a root"):
            WebDatasetFolder(**given)


def test_a_folder_is_opened(root):
    make(root / "wds_pets")
    for folder in (WebDatasetFolder("pets"), WebDatasetFolder(root=root / "wds_pets")):
        assert folder.spec() == {"webdataset": str(root / "wds_pets"), "split": "test"}
        assert folder.open().targets == [1, 0, 1]
    assert WebDatasetFolder("wds/pets").open().name == "wds/pets-test"
    with pytest.raises(DataError, match=r"data set 'wds/pets-val': the split 'val' is missing"):
        WebDatasetFolder("pets", "val").open()


# A web server -----------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A web server with the data set wds_pets."""
    with serving(files_below(make(tmp_path / "served"), "/wds_pets")) as served:
        yield served


def test_a_data_set_on_a_web_server_is_copied_and_then_needs_none(server, monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", f"{server.url}/wds_{{dataset_cleaned}}")
    source = WebDatasetFolder("pets").open()
    assert (source.targets, source.class_names, source.templates) == ([1, 0, 1], ["cat", "dog"], ["a {c}"])
    assert np.array_equal(np.asarray(source.image(2)), world.pixels(0))
    assert {path.rpartition("/")[2] for path, _ in server.asked} >= {
        "0.tar",
        "1.tar",
        "nshards.txt",
        "dataset_type.txt",
    }
    server.asked.clear()
    assert WebDatasetFolder("pets").open().ids == source.ids
    assert server.asked == []
    with pytest.raises(DataError, match=r"train/nshards.txt does not exist"):
        WebDatasetFolder("pets", "train").open()
