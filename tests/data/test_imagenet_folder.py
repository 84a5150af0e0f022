"""Folders of ImageNet's classes, and ObjectNet's mappings: what is read, and what is said of other folders."""

from __future__ import annotations

import json
from pathlib import Path

import imagenet_world
import numpy as np
import pytest

from testbed.data.sets.imagenet import ImageNetFolder, of_classes, synsets, with_real_labels
from testbed.data.sets.objectnet import ObjectNet, read_mapping
from testbed.errors import DataError

CLASSES = [0, 7, 500, 999]


@pytest.fixture
def folder(tmp_path, photos):
    imagenet_world.make_classes(tmp_path / "some", [synsets()[label] for label in CLASSES], photos, "x{number}.jpg")
    return tmp_path / "some"


def test_targets_are_places_among_the_given_classes(folder):
    source = ImageNetFolder(folder, "some", CLASSES)
    assert source.targets == [0, 1, 2, 3]
    assert source.class_names == [synsets()[label] for label in CLASSES]
    backwards = ImageNetFolder(folder, "some", CLASSES[::-1])
    assert backwards.targets == [3, 2, 1, 0]


def test_folders_called_by_numbers_are_numbers(tmp_path, photos):
    imagenet_world.make_classes(tmp_path / "v2", [str(number) for number in range(12)], photos, "{number}.jpg")
    source = ImageNetFolder(tmp_path / "v2", "v2", range(12))
    assert source.ids[:3] == ["0/1.jpg", "1/2.jpg", "10/11.jpg"]
    assert source.targets[:5] == [0, 1, 10, 11, 2]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda root: (root / synsets()[7]).rename(root / "cat"), ["4 folders", "is n01514668", "the first is cat"]),
        (lambda root: (root / "extra").mkdir(), ["5 folders", "1 are others, the first is extra"]),
        (
            lambda root: [each.rename(each.with_name(f"{n + 1}")) for n, each in enumerate(sorted(root.iterdir()))],
            ["4"],
        ),
    ],
)
def test_other_folders_are_told_from_those_that_are_expected(folder, change, words):
    change(folder)
    with pytest.raises(DataError) as caught:
        ImageNetFolder(folder, "some", CLASSES)
    for word in [*words, "should hold 4 folders", "n01440764", str(folder)]:
        assert word in str(caught.value)


def test_all_1000_classes_are_expected_where_none_are_given(folder):
    with pytest.raises(DataError, match=r"should hold 1,000 folders.*996 of those are missing"):
        ImageNetFolder(folder, "val")


def test_the_samples_of_groups_of_classes(folder):
    source = ImageNetFolder(folder, "some", CLASSES)
    chosen = of_classes(source, [[3], [0, 1]])
    assert chosen.ids == [source.ids[place] for place in (0, 1, 3)]
    assert chosen.targets == [1, 1, 0]
    assert chosen.class_names == [synsets()[999], f"{synsets()[0]}, {synsets()[7]}"]
    assert chosen.digests([2, 0]) == source.digests([3, 0])
    np.testing.assert_array_equal(chosen.image(2), source.image(3))


def test_real_labels_need_the_names_of_validation_images(folder):
    with pytest.raises(DataError, match=r"ILSVRC2012_val_00000001 to.*unlike n01440764/x1.jpg"):
        with_real_labels(ImageNetFolder(folder, "some", CLASSES))


@pytest.fixture
def objectnet(tmp_path, photos):
    imagenet_world.make_objectnet(tmp_path, photos)
    return tmp_path


def test_objectnets_classes_are_found_by_name_line_and_logit(objectnet):
    mapping = read_mapping(objectnet)
    assert mapping.folders == ["alarm_clock", "backpack", "banana"]
    assert mapping.labels == ["Alarm clock", "Backpack", "Banana"]
    assert mapping.classes == [[409, 530], [414, 636], [954]]


def test_objectnet_has_the_images_of_shared_classes(objectnet):
    source = ObjectNet(objectnet, "objectnet")
    assert source.targets == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert source.ids[4] == "backpack/1.png"
    assert source.image(4).size == (imagenet_world.SIZE + 4,) * 2


@pytest.mark.parametrize(
    "name",
    [
        "folder_to_objectnet_label.json",
        "objectnet_to_imagenet_1k.json",
        "imagenet_to_label_2012_v2",
        "pytorch_to_imagenet_2012_id.json",
    ],
)
def test_mappings_that_are_missing_or_damaged_are_named(objectnet, name):
    path: Path = objectnet / "mappings" / name
    path.unlink()
    with pytest.raises(DataError, match=rf"{name}.*images/ and mappings/"):
        read_mapping(objectnet)
    path.write_text('{"a": ')
    with pytest.raises(DataError, match="mappings"):
        read_mapping(objectnet)


def test_mappings_that_do_not_fit_together_are_refused(objectnet):
    path = objectnet / "mappings" / "objectnet_to_imagenet_1k.json"
    path.write_text(json.dumps({"Banana": "no such class"}))
    with pytest.raises(DataError, match=r"are inconsistent.*no such class"):
        read_mapping(objectnet)
    path.write_text(json.dumps({"Banana": "banana", "Backpack": "banana"}))
    with pytest.raises(DataError, match="overlap"):
        read_mapping(objectnet)
    path.write_text(json.dumps({}))
    with pytest.raises(DataError, match="give 0 shared classes"):
        read_mapping(objectnet)


def test_a_missing_folder_of_objectnet_is_named(objectnet):
    (objectnet / "images" / "banana").rename(objectnet / "images" / "plantain")
    with pytest.raises(DataError, match=r"images/banana is missing"):
        ObjectNet(objectnet, "objectnet")
