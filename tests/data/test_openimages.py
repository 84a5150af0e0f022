"""Open Images in the form in which ImageNet-testbed uses it."""

from __future__ import annotations

import json
from pathlib import Path

import imagenet_world
import pytest

from testbed.data.sets.imagenet import synsets
from testbed.data.sets.openimages import CLASSES, INDICES, LABELS, OpenImages
from testbed.errors import DataError


@pytest.fixture
def folder(tmp_path, photos):
    imagenet_world.make_openimages(tmp_path, photos)
    return tmp_path


def pick(folder: Path, indices: list[int]) -> None:
    (folder / INDICES).write_text(json.dumps({"indices": indices}))


def test_images_with_one_verified_label_count_sorted_by_their_id(folder):
    source = OpenImages(folder, "openimages")
    assert source.ids == ["part0/0a.jpg", "part0/2c.jpg", "part0/4e.jpg", "part1/5f.jpg"]
    classes = [1, 99, 759, 954]  # as numbers; as text, 954 would come before 99
    assert [classes[target] for target in source.targets] == list(imagenet_world.OPENIMAGES_TARGETS.values())
    assert source.class_names == [synsets()[label] for label in classes]
    assert source.image(1).size == (imagenet_world.SIZE,) * 2
    assert len(set(source.digests(range(4)))) == 4


def test_a_label_that_two_tables_of_reviewers_give_is_one_label(folder):
    with (folder / LABELS).open("a") as file:
        file.write("2c,crowdsource-verification,/m/03fj2,1\n")
    assert OpenImages(folder, "openimages").ids[1] == "part0/2c.jpg"


def test_the_published_list_picks_among_all_sorted_images(folder):
    pick(folder, [2, 5])
    assert OpenImages(folder, "openimages").ids == ["part0/2c.jpg", "part1/5f.jpg"]


@pytest.mark.parametrize("indices", [[1], [0, 3], [7], ["a"]])
def test_a_list_that_does_not_fit_is_refused(folder, indices):
    pick(folder, indices)
    with pytest.raises(DataError, match=r"does not fit the 7 images.*whole test set"):
        OpenImages(folder, "openimages")
    (folder / INDICES).write_text("[]")
    with pytest.raises(DataError, match="does not fit"):
        OpenImages(folder, "openimages")


def test_missing_images_are_counted(folder):
    (folder / "part1" / "5f.jpg").unlink()
    with pytest.raises(DataError, match=r"1 of the 4 images.*the first is 5f.jpg"):
        OpenImages(folder, "openimages")


def test_a_table_without_such_labels_is_refused(folder):
    (folder / LABELS).write_text("ImageID,Source,LabelName,Confidence\n0a,verification,/m/09qck,0\n")
    with pytest.raises(DataError, match=r"0 of the 0 images"):
        OpenImages(folder, "openimages")


def test_a_table_of_another_form_is_named(folder):
    (folder / LABELS).write_text("ImageID,Label\n0a,/m/09qck\n")
    with pytest.raises(
        DataError, match=r"should have the columns ImageID, LabelName, Confidence; it has ImageID, Label"
    ):
        OpenImages(folder, "openimages")
    (folder / LABELS).unlink()
    with pytest.raises(DataError, match=rf"{LABELS} cannot be read.*storage.googleapis.com/openimages"):
        OpenImages(folder, "openimages")


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": "/m/1"}', '{"1000": "/m/1"}', '{"-1": "/m/1"}', "7"])
def test_a_map_of_another_form_is_named(folder, content):
    (folder / CLASSES).write_text(content)
    with pytest.raises(DataError, match=r"ilsvrc_to_openimages.json should be an object from ImageNet classes"):
        OpenImages(folder, "openimages")


def test_a_map_that_is_missing_or_damaged_is_named(folder):
    (folder / CLASSES).write_text("{")
    with pytest.raises(DataError, match=rf"{CLASSES} is not JSON"):
        OpenImages(folder, "openimages")
    (folder / CLASSES).unlink()
    with pytest.raises(DataError, match=rf"{CLASSES} is missing.*modestyachts/imagenet-testbed"):
        OpenImages(folder, "openimages")
