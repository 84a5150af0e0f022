"""The photographs of scikit-image and scikit-learn: where they are found, and what is refused."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from PIL import Image

from testbed.data.libraries import photographs
from testbed.data.libraries.photographs import PHOTOGRAPHS, Photographs
from testbed.data.sets.imagenet import class_names
from testbed.errors import DataError, MissingExtraError
from testbed.eval_settings.photos import SIZE
from testbed.registry import registry
from testbed.registry.select import select

NAMES = [["tripod"], ["tabby cat", "tiger cat"], ["espresso", "tea cup"], ["palace", "tile roof"]]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that stands in the place of scikit-image, with its photographs, and cannot be imported."""
    installed = importlib.util.find_spec("skimage")
    assert installed
    assert installed.origin
    copy = tmp_path / "skimage"
    (copy / "data").mkdir(parents=True)
    (copy / "__init__.py").write_text("raise ImportError('this need not be imported')")
    for photograph in PHOTOGRAPHS:
        if photograph.file.startswith("skimage/"):
            shutil.copy(Path(installed.origin).parent.parent / photograph.file, tmp_path / photograph.file)
    real = importlib.util.find_spec
    spec = importlib.util.spec_from_file_location(
        "skimage", copy / "__init__.py", submodule_search_locations=[str(copy)]
    )
    monkeypatch.setattr(photographs.importlib.util, "find_spec", lambda name: spec if name == "skimage" else real(name))
    return copy


def test_each_photograph_has_all_its_classes_and_is_found_without_an_import(package):
    source = Photographs()
    assert [[class_names()[label] for label in labels] for labels in source.targets] == NAMES
    assert len(source) == SIZE
    assert len(set(source.digests(range(SIZE)))) == SIZE
    assert all(source.image(position).mode == "RGB" and source.image(position).width > 400 for position in range(SIZE))


def test_another_picture_in_the_place_of_a_labelled_one_is_refused(package):
    Image.new("RGB", (64, 64)).save(package / "data" / "coffee.png")
    with pytest.raises(
        DataError, match=r"coffee\.png is another picture than the one that was labelled .* expected cc"
    ):
        Photographs()


def test_a_missing_picture_is_named(package):
    (package / "data" / "chelsea.png").unlink()
    with pytest.raises(DataError, match=r"chelsea\.png cannot be read: No such file"):
        Photographs()


def test_a_package_that_is_not_installed_is_named_with_the_extra(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(photographs.importlib.util, "find_spec", lambda name: None if name == "skimage" else real(name))
    with pytest.raises(
        MissingExtraError, match=r"^photos needs the package scikit-image: pip install .*'\.\[photos\]'$"
    ):
        Photographs()


def test_the_collection_has_every_corruption_that_needs_no_file():
    registry.load()
    names = select(registry.eval_settings, registry.eval_setting_collections, ["photos-c"])
    assert len(names) == 14 * 5
    assert "photos+imagenet-c.fog.3" in names
    assert not [name for name in names if "frost" in name]
