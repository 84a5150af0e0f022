"""Folders of images that are given one level too high or too low: the message names the folder that is meant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from testbed.data.sets.imagenet import ImageNetFolder
from testbed.errors import DataError
from testbed.eval_settings.eval_setting_base import StandardDataset
from testbed.inputs import Inputs, using
from testbed.registry import registry

CLASSES = ("bat", "cat", "dog", "owl")


def plant(folder: Path, classes: Sequence[str] = CLASSES, below: str = "") -> Path:
    for each in classes:
        place = folder / each / below
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(place / "x.png")
    return folder


def opened(root: Path, name: str) -> tuple[int, int]:
    with using(Inputs(data_root=str(root))):
        setting = registry.get_eval_setting(f"folder/{name}")
        return setting.num_classes, len(setting.dataset.open())


def refused(root: Path, name: str) -> str:
    with pytest.raises(DataError) as error:
        opened(root, name)
    return str(error.value)


def test_the_one_folder_that_holds_the_classes_is_named(tmp_path):
    plant(tmp_path / "wrap/photos2")
    (tmp_path / "wrap/__MACOSX").mkdir()
    (tmp_path / "wrap/README.md").write_text("about")
    assert refused(tmp_path, "wrap") == (
        "folder/wrap has one folder, photos2, which has 4 folders of images: did you mean folder/wrap/photos2"
        f" ({tmp_path / 'wrap/photos2'})?"
    )
    assert opened(tmp_path, "wrap/photos2") == (4, 4)


def test_so_is_one_two_levels_below_and_one_beside_folders_without_images(tmp_path):
    plant(tmp_path / "deep/a/b")
    assert "images only in the folder a/b" in refused(tmp_path, "deep")
    assert f"did you mean folder/deep/a/b ({tmp_path / 'deep/a/b'})?" in refused(tmp_path, "deep")
    plant(tmp_path / "birds/images")
    (tmp_path / "birds/annotations").mkdir()
    (tmp_path / "birds/annotations/1.xml").write_text("<a/>")
    assert "images only in the folder images" in refused(tmp_path, "birds")
    assert "did you mean folder/birds/images (" in refused(tmp_path, "birds")


def test_folders_of_splits_that_are_not_read_as_splits_are_named(tmp_path):
    for split in ("Train", "Valid"):
        plant(tmp_path / "upper" / split)
    assert "has folders of splits (Train, Valid)" in refused(tmp_path, "upper")
    assert "did you mean folder/upper/Valid (" in refused(tmp_path, "upper")
    for split in ("train", "test"):
        plant(tmp_path / "wrapped/data" / split)
    assert "has one folder, data, which has the splits test, train: did you mean folder/wrapped/data (" in refused(
        tmp_path, "wrapped"
    )
    assert opened(tmp_path, "wrapped/data.train") == (4, 4)
    plant(tmp_path / "inner/train/images")
    assert "folder/inner/train has one folder, images" in refused(tmp_path, "inner.train")


def test_a_split_that_is_not_there_names_those_that_are(tmp_path):
    for split in ("train", "trainval"):
        plant(tmp_path / "pets" / split)
    assert refused(tmp_path, "pets").endswith("name one of its splits: folder/pets.train, folder/pets.trainval")
    assert opened(tmp_path, "pets.train") == (4, 4)
    for split, classes in (("train", CLASSES), ("valid", CLASSES[:2])):
        plant(tmp_path / "birds" / split, classes)
    assert opened(tmp_path, "birds") == opened(tmp_path, "birds.valid") == (4, 2)


def test_images_without_class_folders_have_no_labels(tmp_path):
    plant(tmp_path / "only", [""])
    assert "folder/only has images without class folders, and so without labels" in refused(tmp_path, "only")
    plant(tmp_path / "pets")
    assert f"did you mean folder/pets ({tmp_path / 'pets'})?" in refused(tmp_path, "pets/cat")


def test_a_table_of_labels_beside_the_images_is_named(tmp_path):
    plant(tmp_path / "flat", [""])  # as Hugging Face's ImageFolder has it
    (tmp_path / "flat/notes.csv").write_text("a,b\n1,2\n")
    (tmp_path / "flat/metadata.csv").write_text("file_name,label\nx.png,cat\n")
    assert refused(tmp_path, "flat").endswith(
        f"without labels; the labels are in a table: give {tmp_path}/flat/metadata.csv in place of the folder"
    )
    plant(tmp_path / "tiny", ["images"])  # as Tiny ImageNet's val
    (tmp_path / "tiny/val_annotations.txt").write_text("x.png\tn01443537\t0\t32\t44\t62\n")
    assert "has one folder of images, images, and no classes; the labels are in a table: give " in refused(
        tmp_path, "tiny"
    )


@pytest.mark.parametrize(
    ("classes", "below", "found"),
    [
        (["cat"], "", (1, 1)),
        (["cat", "dog"], "images", (2, 2)),
        (["cat/indoor", "cat/outdoor", "dog/indoor", "dog/outdoor"], "", (2, 4)),
        (["test", "train"], "", (2, 2)),
        (["n01440764"], "images", (1, 1)),
    ],
)
def test_classes_stay_classes(classes, below, found, tmp_path):
    plant(tmp_path / "mine", classes, below)
    assert opened(tmp_path, "mine") == found


def test_own_settings_and_imagenets_folders_say_it_too(tmp_path):
    inner = plant(tmp_path / "val/val")
    with pytest.raises(DataError, match=f"has one folder, val, .* did you mean {inner}\\?"):
        StandardDataset(path=str(tmp_path / "val")).open()
    with pytest.raises(DataError, match=f"did you mean {inner}\\?"):
        ImageNetFolder(tmp_path / "val", "val")
