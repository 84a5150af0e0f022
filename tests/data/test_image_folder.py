"""Image folders, against torchvision's ImageFolder on trees that are awkward to sort."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torchvision.datasets import ImageFolder as Theirs

from testbed.data.formats.image_folder import ImageFolder
from testbed.errors import DataError, SampleError


def plant(root: Path, *names: str) -> Path:
    """Writes files that are never read."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())
    return root


def assert_equal_to_torchvision(root: Path) -> None:
    ours, theirs = ImageFolder(root, "data"), Theirs(str(root), allow_empty=True)
    assert list(ours.class_names) == theirs.classes
    expected = [(Path(path).relative_to(root).as_posix(), target) for path, target in theirs.samples]
    assert list(zip(ours.ids, ours.targets, strict=True)) == expected
    assert len(ours) == len(expected) > 0


def test_upper_and_lower_case_digits_and_accents_sort_as_in_torchvision(tmp_path):
    classes = ["Zebra", "apple", "Apple", "10", "9", "n0001", "n00010", "b", "b-1", "b_2", "b.3", "ä", "_x"]
    for name in classes:
        plant(
            tmp_path, *(f"{name}/{file}" for file in ("b.png", "B.png", "a-1.png", "a.png", "a1.png", "_.png", "é.png"))
        )
    assert_equal_to_torchvision(tmp_path)


def test_nested_folders_with_hyphens_sort_as_in_torchvision(tmp_path):
    # '-' sorts before '/', so the folder x-y is met between x and what lies inside x.
    plant(
        tmp_path,
        *("c/x/1.png", "c/x/z/2.png", "c/x-y/3.png", "c/x-y/z/4.png", "c/x.png", "c/x y/5.png", "c/x/0/6.png"),
        *(
            *("c/X/7.png", "c/x/z-/8.png", "c/x0/9.png", "c/a.png", "c/zz.png", "c-/1.png", "c0/1.png"),
            "c/deep/er/er/1.png",
        ),
    )
    assert_equal_to_torchvision(tmp_path)


def test_extensions_are_told_as_in_torchvision(tmp_path):
    plant(
        tmp_path,
        *(f"c/{name}" for name in ("a.jpg", "a.JPEG", "a.PnG", "a.ppm", "a.bmp", "a.pgm", "a.tif", "a.TIFF", "a.webp")),
        *(f"c/{name}" for name in ("a.txt", "a.jpg.bak", "a.gif", "a.npy", "png", ".DS_Store", "a.", "jpg.")),
        *("loose.png", "c/folder.png/inside.jpg", "c/folder.jpg/notes.txt"),
    )
    assert_equal_to_torchvision(tmp_path)
    assert "c/a.gif" not in ImageFolder(tmp_path, "data").ids


def test_links_are_followed_as_in_torchvision(tmp_path):
    elsewhere = plant(tmp_path / "elsewhere", "1.png", "sub/2.png", "note.txt")
    root = plant(tmp_path / "root", "a/1.png", "b/1.png")
    (root / "linked-class").symlink_to(elsewhere)
    (root / "a" / "linked-folder").symlink_to(elsewhere)
    (root / "a" / "again").symlink_to(elsewhere)
    (root / "a" / "file.png").symlink_to(elsewhere / "1.png")
    (root / "b" / "gone.png").symlink_to(elsewhere / "never.png")
    (root / "linked-file.png").symlink_to(elsewhere / "1.png")
    (root / "aa").mkdir()  # without images
    assert_equal_to_torchvision(root)


def test_circular_links_end(tmp_path):
    plant(tmp_path, "a/1.png", "b/1.png", "c/1.png", "d/2.png")
    (tmp_path / "a" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "c" / "there").symlink_to(tmp_path / "d")
    (tmp_path / "d" / "back").symlink_to(tmp_path / "c")
    source = ImageFolder(tmp_path, "data")
    assert len(set(source.ids)) == len(source.ids)
    found = {name: [each for each in source.ids if each.startswith(f"{name}/")] for name in "abcd"}
    assert found["a"] == ["a/1.png"]
    assert found["c"] == ["c/1.png", "c/there/2.png"]
    assert found["d"] == ["d/2.png", "d/back/1.png"]
    # Through the link to the root every other class is seen once more, as torchvision does too.
    assert {"b/1.png", "b/up/a/1.png", "b/up/c/1.png", "b/up/d/2.png"} <= set(found["b"])
    assert not any("up/b" in each for each in found["b"])


@pytest.mark.parametrize("make", [lambda root: None, lambda root: root.write_text("a file")])
def test_a_root_that_is_no_folder_is_named(tmp_path, make):
    make(tmp_path / "root")
    with pytest.raises(DataError) as caught:
        ImageFolder(tmp_path / "root", "imagenet")
    for word in ("'imagenet'", str(tmp_path / "root"), "does not exist", "one folder per class"):
        assert word in str(caught.value)


def test_a_root_without_folders_says_so(tmp_path):
    plant(tmp_path, "1.png", "2.png")
    with pytest.raises(DataError, match=r"has no folders; it should contain one folder per class"):
        ImageFolder(tmp_path, "data")


def test_a_root_whose_folders_hold_no_images_says_so(tmp_path):
    plant(tmp_path, "a/readme.txt", "b/x/readme.txt")
    with pytest.raises(DataError, match=r"has 2 folders without images.*\.jpg .*\.webp"):
        ImageFolder(tmp_path, "data")


def test_images_are_decoded_from_their_files(make_tree, tmp_path):
    root = make_tree(tmp_path, each=2)
    source = ImageFolder(root, "data")
    for position, name in enumerate(source.ids):
        with Image.open(root / name) as expected:
            np.testing.assert_array_equal(np.asarray(source.image(position)), np.asarray(expected.convert("RGB")))


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    source = ImageFolder(plant(tmp_path, "a/1.png"), "data")
    with pytest.raises(SampleError, match=r"a/1\.png"):
        source.image(0)


def fingerprint(root: Path) -> str:
    source = ImageFolder(root, "data")
    return source.describe_samples(range(len(source))).fingerprint


@pytest.mark.usefixtures("own_cache")
def test_samples_are_described_by_id_content_and_target(tmp_path):
    root = plant(tmp_path / "root", "a/1.png", "a/2.png", "b/1.png")
    source = ImageFolder(root, "data")
    described = source.describe_samples([2, 0])
    assert [(sample.id, sample.target) for sample in described.samples] == [("b/1.png", 1), ("a/1.png", 0)]
    assert described.samples[0].digest != described.samples[1].digest
    assert described.class_names == ["a", "b"]
    assert described.name == "data"
    assert described.fingerprint != source.describe_samples([0, 2]).fingerprint
    assert described.fingerprint == source.describe_samples([2, 0]).fingerprint


@pytest.mark.usefixtures("own_cache")
def test_the_fingerprint_does_not_depend_on_the_place_or_the_time(tmp_path):
    root = plant(tmp_path / "root", "a/1.png", "b/1.png")
    copied = shutil.copytree(root, tmp_path / "somewhere else")
    os.utime(copied / "a" / "1.png", (1, 1))
    assert fingerprint(copied) == fingerprint(root)


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("change", ["content", "name", "class", "fewer", "target"])
def test_the_fingerprint_changes_with_the_data(tmp_path, change):
    root = plant(tmp_path / "root", "b/1.png", "b/2.png", "c/1.png")
    before = fingerprint(root)
    if change == "content":
        (root / "b/1.png").write_bytes(b"other bytes")
    elif change == "name":
        (root / "b/1.png").rename(root / "b/0.png")
    elif change == "class":
        (root / "b").rename(root / "a")
    elif change == "fewer":
        (root / "b/2.png").unlink()
    else:
        (root / "a").mkdir()  # shifts every target by one
    assert fingerprint(root) != before
