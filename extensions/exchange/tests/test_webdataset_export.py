"""Writing webdatasets: what is written is what is read, the same bytes each time, and never half a split."""

from __future__ import annotations

import hashlib
import io
import tarfile

import numpy as np
import pytest
import wds_world as world
from PIL import Image

from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.data.webdataset.source import WebDataset
from testbed.errors import DataError, SampleError
from testbed.extensions.exchange.webdataset_export import export

NAMES = ("cat", "", "owl")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """A cache of the test's own."""
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))


def tree(root):
    """The digest of each file."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def pictures(count=7):
    return world.Pictures([number % 3 for number in range(count)], NAMES)


def members(path):
    with tarfile.open(path) as archive:
        return archive.getmembers()


# What is written --------------------------------------------------------------------------------------------------


def test_seven_samples_by_three_give_shards_of_three_three_and_one(tmp_path):
    assert export(pictures(), tmp_path, "test", "classification", max_count=3) == 3
    folder = tmp_path / "test"
    assert (folder / "nshards.txt").read_text() == "3\n"
    assert sorted(path.name for path in folder.iterdir()) == ["0.tar", "1.tar", "2.tar", "nshards.txt"]
    names = [[each.name for each in members(folder / f"{number}.tar")] for number in range(3)]
    assert [len(each) for each in names] == [6, 6, 2]
    assert names[1][:3] == ["s0000003.cls", "s0000003.webp", "s0000004.cls"]


def test_a_shard_is_full_when_it_has_so_many_bytes(tmp_path):
    export(pictures(3), tmp_path, "all", "classification")
    size = sum(each.size for each in members(tmp_path / "all" / "0.tar")[:2])
    for split, limit, expected in (("one", 1, 1), ("full", size, 1), ("more", size + 1, 2)):
        export(pictures(3), tmp_path, split, "classification", max_size=limit)
        assert len(members(tmp_path / split / "0.tar")) == 2 * expected, split


def test_members_are_in_the_order_of_their_extensions_with_fixed_attributes(tmp_path):
    export(pictures(1), tmp_path, "test", "classification")
    export(world.Pictures([["a"]]), tmp_path / "captions", "test", "retrieval", image_format="png")
    first = members(tmp_path / "test" / "0.tar")
    assert [each.name for each in first] == ["s0000000.cls", "s0000000.webp"]
    assert {(each.mode, each.mtime, each.uid, each.gid, each.uname, each.gname) for each in first} == {
        (0o444, 0, 0, 0, "testbed", "testbed")
    }
    assert [each.name for each in members(tmp_path / "captions" / "test" / "0.tar")] == ["s0000000.png", "s0000000.txt"]


def test_the_small_files_are_those_of_the_kind(tmp_path):
    export(pictures(), tmp_path, "test", "classification", templates=["a {c}", "{c}"])
    assert (tmp_path / "classnames.txt").read_bytes() == b"cat\n\nowl\n"
    assert (tmp_path / "zeroshot_classification_templates.txt").read_bytes() == b"a {c}\n{c}\n"
    assert not (tmp_path / "dataset_type.txt").exists()
    export(world.Pictures([["a"]]), tmp_path / "captions", "test", "retrieval", ["left out"], ["left out"])
    assert sorted(path.name for path in (tmp_path / "captions").iterdir()) == ["dataset_type.txt", "test"]
    assert (tmp_path / "captions" / "dataset_type.txt").read_text() == "retrieval\n"


def test_two_exports_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        export(pictures(), tmp_path / name, "test", "classification", NAMES, ["a {c}"], max_count=3)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")
    assert len(tree(tmp_path / "one")) == 6


def test_what_else_an_image_holds_is_not_written(tmp_path):
    class Marked(world.Pictures):
        def image(self, position):
            image = super().image(position)
            image.info.update(dpi=(300, 300), icc_profile=b"a profile", exif=b"Exif\0\0")
            return image

    for form in ("webp", "png", "jpg"):
        export(Marked([0, 0]), tmp_path / "marked", form, "classification", image_format=form)
        export(world.Pictures([0, 0]), tmp_path / "plain", form, "classification", image_format=form)
    assert tree(tmp_path / "marked") == tree(tmp_path / "plain")


# What is read again -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["webp", "png"])
def test_digits_come_back_pixel_by_pixel(tmp_path, form):
    digits = Digits("test")
    export(digits, tmp_path, "test", "classification", templates=["a {c}"], image_format=form, max_count=200)
    source = WebDataset(tmp_path)
    assert source.targets == digits.targets
    assert source.class_names == list(CLASS_NAMES)
    assert source.templates == ["a {c}"]
    assert source.ids[539] == "test/s0000539"
    for position in range(0, 540, 7):
        assert np.array_equal(np.asarray(source.image(position)), np.asarray(digits.image(position)))


def test_jpeg_is_read_again_but_not_pixel_by_pixel(tmp_path):
    export(Digits("test", [0, 1]), tmp_path, "test", "classification", image_format="jpg")
    image = np.asarray(WebDataset(tmp_path).image(3), np.int16)
    assert 0 < np.abs(image - np.asarray(Digits("test", [0, 1]).image(3))).mean() < 4


def test_several_labels_come_back(tmp_path):
    targets = [[0, 2], [], [1], [0, 1, 2]]
    export(world.Pictures(targets, NAMES), tmp_path, "test", "multilabel", max_count=2)
    source = WebDataset(tmp_path)
    assert (source.kind, source.targets, source.class_names) == ("multilabel", targets, list(NAMES))
    with tarfile.open(tmp_path / "test" / "0.tar") as archive:
        vector = np.load(io.BytesIO(archive.extractfile("s0000000.npy").read()), allow_pickle=False)
    assert vector.dtype == np.float32
    assert vector.tolist() == [1, 0, 1]


def test_captions_come_back_whatever_they_hold(tmp_path):
    targets = [
        ["a dog", "a cat"],
        [],
        [""],
        ["two\nlines", "a backslash\\n", "\\"],
        ["a\u2028b\u0085c\rd", "last\n", ""],
        ["ein Hündchen", "犬"],
    ]
    export(world.Pictures(targets), tmp_path, "test", "retrieval")
    source = WebDataset(tmp_path)
    assert (source.kind, source.targets) == ("retrieval", targets)


def test_what_was_read_can_be_written_again_to_the_same_bytes(tmp_path):
    export(pictures(), tmp_path / "one", "test", "classification", templates=["a {c}"], max_count=3)
    source = WebDataset(tmp_path / "one")
    export(source, tmp_path / "two", "test", source.kind, source.class_names, source.templates, max_count=3)
    assert tree(tmp_path / "one") == tree(tmp_path / "two")


# Several splits ---------------------------------------------------------------------------------------------------


def test_a_train_split_stands_next_to_a_test_split(tmp_path):
    for split in ("test", "train"):
        export(Digits(split, [1, 2]), tmp_path, split, "classification", templates=["a {c}"])
    assert len(WebDataset(tmp_path, "test")) == 108
    assert WebDataset(tmp_path, "train").targets == Digits("train", [1, 2]).targets


def test_splits_of_one_folder_have_the_same_classes(tmp_path):
    export(pictures(), tmp_path, "test", "classification", templates=["a {c}"])
    before = tree(tmp_path)
    others = world.Pictures([0], ("cat", "dog", "owl"))
    with pytest.raises(DataError, match=r"holds the split test with other class names \(3: cat, , owl; here 3: cat, d"):
        export(others, tmp_path, "train", "classification", templates=["a {c}"])
    with pytest.raises(DataError, match=r"with other templates \(1: a \{c\}; here none\)"):
        export(pictures(), tmp_path, "train", "classification")
    with pytest.raises(DataError, match=r"with other kind \(classification; here retrieval\)"):
        export(world.Pictures([["a"]]), tmp_path, "train", "retrieval")
    assert tree(tmp_path) == before


def test_a_split_that_is_there_is_replaced_only_when_told_to(tmp_path):
    export(pictures(), tmp_path, "test", "classification", max_count=1)
    before = tree(tmp_path)
    with pytest.raises(DataError, match=r"test already exists; .* --overwrite"):
        export(pictures(2), tmp_path, "test", "classification")
    assert tree(tmp_path) == before
    export(world.Pictures([0, 0], ["one"]), tmp_path, "test", "classification", overwrite=True)
    source = WebDataset(tmp_path)
    assert (len(source), source.class_names) == (2, ["one"])
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["classnames.txt", "test"]


def test_a_kind_that_changes_leaves_no_file_of_the_old_one(tmp_path):
    export(pictures(), tmp_path, "test", "classification", templates=["a {c}"])
    export(world.Pictures([["a"]]), tmp_path, "test", "retrieval", overwrite=True)
    assert WebDataset(tmp_path).targets == [["a"]]
    assert not (tmp_path / "classnames.txt").exists()


# What cannot be written -------------------------------------------------------------------------------------------


class Broken(world.Pictures):
    def image(self, position):
        if position == 5:
            raise SampleError("picture/5 cannot be decoded")
        return super().image(position)


def test_an_export_that_fails_leaves_nothing_behind(tmp_path):
    with pytest.raises(SampleError, match=r"picture/5"):
        export(Broken([0] * 7), tmp_path / "out", "test", "classification", max_count=2)
    assert list((tmp_path / "out").iterdir()) == []
    export(pictures(), tmp_path / "out", "test", "classification")
    before = tree(tmp_path / "out")
    with pytest.raises(SampleError):
        export(Broken([0] * 7), tmp_path / "out", "test", "classification", overwrite=True)
    assert tree(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("source", "kind", "options", "message"),
    [
        (world.Pictures([3], NAMES), "classification", {}, r"'picture/0' does not fit.* there are 3 classes"),
        (world.Pictures([[0, 1]]), "classification", {}, r"'picture/0' does not fit.*index of a class"),
        (world.Pictures([[0]]), "multilabel", {}, r"'picture/0' does not fit.*give class names"),
        (world.Pictures([0], NAMES), "retrieval", {}, r"'picture/0' does not fit.*list of captions"),
        (world.Pictures([["\ud800"]]), "retrieval", {}, r"'picture/0' does not fit.*surrogates"),
        (world.Pictures([0]), "selection", {}, r"'pictures' has the kind 'selection'"),
        (world.Pictures([]), "classification", {}, r"has 0 samples"),
        (world.Pictures([0]), "classification", {"image_format": "gif"}, r"webp, png, jpg, not 'gif'"),
        (world.Pictures([0]), "classification", {"max_count": 0}, r"at least one sample"),
        (world.Pictures([0]), "classification", {"templates": {"cat": ["a"]}}, r"not prompts for each class"),
        (world.Pictures([0], ["a\nb"]), "classification", {}, r"class name 'a\\nb' contains a line break"),
        (world.Pictures([0]), "classification", {"split": "../x"}, r"a split is the name of a folder"),
    ],
)
def test_what_does_not_fit_the_format_is_named(tmp_path, source, kind, options, message):
    with pytest.raises(DataError, match=message):
        export(source, tmp_path / "out", **{"split": "test", "kind": kind, **options})
    assert not (tmp_path / "out" / "test").exists()


def test_an_image_too_large_for_the_format_is_named(tmp_path):
    class Wide(world.Pictures):
        def image(self, position):
            return Image.new("RGB", (16384, 1))

    with pytest.raises(DataError, match=r"image of 16384 × 1 pixels cannot be written as webp.*png has no such"):
        export(Wide([0]), tmp_path, "test", "classification")
    export(Wide([0]), tmp_path, "test", "classification", image_format="png")
    assert WebDataset(tmp_path).image(0).size == (16384, 1)
