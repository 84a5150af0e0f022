"""Hugging Face data sets on this machine: saved, as parquet, as image folders. Needs the package datasets."""

from __future__ import annotations

import json
import pickle
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from at_hand_world import MODEL
from PIL import Image
from torchvision_world import pixels, save

import testbed
from testbed.data.libraries.huggingface import HuggingFaceImages, columns, parse_name, split_names
from testbed.errors import DataError, MissingExtraError, SampleError


def feature(kind: str, **attributes: Any) -> Any:
    return type(kind, (SimpleNamespace,), {})(**attributes)


IMAGE, LABEL, NUMBER = feature("Image"), feature("ClassLabel"), feature("Value", dtype="int64")
TEXT = feature("Value", dtype="string")


def test_a_name_is_a_repository_and_perhaps_a_configuration():
    assert parse_name("hf/owner/na.me-1") == ("owner/na.me-1", None)
    assert parse_name("hf/owner/name@plain") == ("owner/name", "plain")
    for name in ("hf/owner", "hf/../x", "hf/a/b/c", "hf/a/..", "hf//x", "hf/a/b@../c", "hf/a/b@"):
        with pytest.raises(DataError, match="is not a data set of the hub; write hf/<owner>/<name>"):
            parse_name(name)


@pytest.mark.parametrize(
    ("features", "found"),
    [
        ({"img": IMAGE, "y": LABEL, "id": NUMBER}, ("img", "y")),
        ({"photo": IMAGE, "label": NUMBER}, ("photo", "label")),
        ({"photo": IMAGE, "label": TEXT}, ("photo", "label")),
        ({"image": IMAGE, "mask": IMAGE, "label": LABEL, "coarse": LABEL}, ("image", "label")),
        ({"img": IMAGE, "fine_label": LABEL, "coarse_label": LABEL}, ("img", "fine_label")),
    ],
)
def test_columns_are_found_by_their_types(features, found):
    assert columns("hf/a/b", features) == found


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"text": TEXT, "label": LABEL}, r"no image column among text \(Value\), label \(ClassLabel\)"),
        ({"image": IMAGE, "caption": TEXT}, "no label column among"),
        ({"a": IMAGE, "b": IMAGE, "label": LABEL}, r"2 image columns \(a, b\)"),
        ({"image": IMAGE, "a": LABEL, "b": LABEL}, r"2 label columns \(a, b\)"),
    ],
)
def test_columns_that_are_missing_or_many_are_listed(features, message):
    with pytest.raises(DataError, match=f"'hf/a/b' has {message}"):
        columns("hf/a/b", features)


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"hf/….* needs the package datasets: pip install -e '\.\[hf\]'"):
        HuggingFaceImages("hf/a/b", "test")


# With the package -------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")
    (tmp_path / "hf" / "a").mkdir(parents=True)
    return tmp_path


def rows(labels: Any = (0, 1, 1, 0), names: Any = ("cat", "dog")) -> Any:
    import datasets

    label = datasets.ClassLabel(names=list(names)) if names else datasets.Value("string")
    features = datasets.Features({"image": datasets.Image(), "label": label})
    images = [Image.fromarray(pixels(number)) for number in range(len(labels))]
    return datasets.Dataset.from_dict({"image": images, "label": list(labels)}, features=features)


def saved(root: Path) -> None:
    import datasets

    datasets.DatasetDict({"test": rows(), "validation": rows().select([1])}).save_to_disk(str(root / "hf/a/b"))


def one_split(root: Path) -> None:
    rows().save_to_disk(str(root / "hf/a/b"))


def parquet(root: Path) -> None:
    (root / "hf/a/b/data").mkdir(parents=True)
    rows().select([0, 1]).to_parquet(str(root / "hf/a/b/data/test-00000-of-00002.parquet"))
    rows().select([2, 3]).to_parquet(str(root / "hf/a/b/data/test-00001-of-00002.parquet"))
    rows().to_parquet(str(root / "hf/a/b/data/train-00000-of-00001.parquet"))


def folders(root: Path) -> None:
    for number, label in enumerate((0, 1, 1, 0)):
        save(root / "hf/a/b/test" / ("cat", "dog")[label] / f"{label ^ (number > 1)}{number}.png", number)
        save(root / "hf/a/b/train" / ("cat", "dog")[label] / f"{number}.png", number)


@pytest.mark.parametrize("make", [saved, one_split, parquet])
def test_images_and_labels_are_read(make, root):
    make(root)
    source = pickle.loads(pickle.dumps(HuggingFaceImages("hf/a/b", "test")))
    assert source.ids == ["test/0", "test/1", "test/2", "test/3"]
    assert source.targets == [0, 1, 1, 0]
    assert source.class_names == ["cat", "dog"]
    for number in range(4):
        np.testing.assert_array_equal(np.asarray(source.image(number)), pixels(number))
    assert len(set(source.digests(range(4)))) == 4


def test_image_folders_are_read(root):
    folders(root)
    source = HuggingFaceImages("hf/a/b", "test")
    assert (sorted(source.targets), source.class_names) == ([0, 0, 1, 1], ["cat", "dog"])
    assert {np.asarray(source.image(place)).tobytes() for place in range(4)} == {pixels(n).tobytes() for n in range(4)}
    assert split_names("hf/a/b") == ("test", "train")


def test_splits_have_one_word_each(root):
    saved(root)
    assert split_names("hf/a/b") == ("test", "val")
    assert HuggingFaceImages("hf/a/b", "val").targets == [1]
    with pytest.raises(DataError, match="'hf/a/b' has no split 'train'; it has test, validation"):
        HuggingFaceImages("hf/a/b", "train")


def test_a_configuration_is_a_folder_of_its_own(root):
    rows().save_to_disk(str(root / "hf/a/b/plain"))
    assert len(HuggingFaceImages("hf/a/b@plain", "test")) == 4


def test_labels_that_are_texts_become_classes(root):
    rows(["dog", "cat", "dog"], names=None).save_to_disk(str(root / "hf/a/b"))
    source = HuggingFaceImages("hf/a/b", "test")
    assert (source.targets, source.class_names) == ([1, 0, 1], ["cat", "dog"])


def test_hidden_labels_are_an_error(root):
    rows([0, -1]).save_to_disk(str(root / "hf/a/b"))
    with pytest.raises(DataError, match=r"row 1 has the label -1 .*hidden test splits"):
        HuggingFaceImages("hf/a/b", "test")


@pytest.mark.parametrize("path", ["https://example.org/x.png", "../../../outside.png", "/etc/passwd", "gone.png", ""])
def test_an_image_is_never_fetched_and_never_outside(path, root):
    rows().save_to_disk(str(root / "hf/a/b"))
    save(root.parent / "outside.png", 1)
    source = HuggingFaceImages("hf/a/b", "test")
    source.images = [{"image": {"bytes": None, "path": path}}]
    with pytest.raises(SampleError) as raised:
        source.image(0)
    assert path == "gone.png" or "save_to_disk" in str(raised.value)
    other = HuggingFaceImages("hf/a/b", "test")
    other.images, other.name = source.images, "hf/a/c"
    assert len({*source.digests([0]), *other.digests([0])}) == 1 + (path != "gone.png")


def test_the_error_of_one_data_set_is_not_shown_for_another(root):
    """Both name the same pictures outside of their folders, as ``to_parquet`` writes them."""
    import datasets

    save(root.parent / "outside.png", 1)
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    outside = {"image": [str(root.parent / "outside.png")], "label": [0]}
    for name in ("b", "c"):
        (root / "hf/a" / name / "data").mkdir(parents=True)
        datasets.Dataset.from_dict(outside, features=features).to_parquet(
            str(root / "hf/a" / name / "data/test.parquet")
        )
    found = testbed.evaluate(MODEL, ["hf/a/b", "hf/a/c"], data_root=root, db=root / "results.db", executor="inline")
    reasons = dict(zip(found.failed.eval_setting, found.failed.reason, strict=True))
    assert "outside of " + str(root / "hf/a/b") in reasons["hf/a/b"]
    assert "outside of " + str(root / "hf/a/c") in reasons["hf/a/c"]
    assert "save_to_disk" in reasons["hf/a/c"]


def test_what_is_not_there_is_not_downloaded(root, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", False)

    def refuse(*address: object, **options: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(
        DataError, match=r"'hf/a/none' cannot be read from the hub's cache.*testbed run --download gets it"
    ):
        HuggingFaceImages("hf/a/none", "test")
    assert constants.HF_HUB_OFFLINE is False


def test_a_folder_of_another_form_is_named(root):
    (root / "hf/a/b").mkdir()
    (root / "hf/a/b/notes.txt").write_text("x")
    with pytest.raises(DataError, match="holds neither a saved data set"):
        HuggingFaceImages("hf/a/b", "test")
    (root / "hf/a/b/state.json").write_text(json.dumps({}))
    with pytest.raises(DataError, match=r"'hf/a/b' cannot be read from .*hf/a/b"):
        HuggingFaceImages("hf/a/b", "test")


# Splits, and what is left out ---------------------------------------------------------------------------------------


def labelled(*labels: Any, names: Any = None) -> Any:
    return rows([names.index(each) for each in labels] if names else list(labels), names)


@pytest.mark.parametrize("names", [None, True], ids=["texts", "class labels"])
@pytest.mark.parametrize(
    ("test", "train", "expected"),
    [
        (["ant", "cow"], ["ant", "bee", "cow"], ["ant", "bee", "cow"]),  # test lacks one in the middle
        (["ant", "bee", "cow"], ["bee", "cow"], ["ant", "bee", "cow"]),  # train lacks the first
        (["bee", "cow"], ["ant", "bee"], None),  # each lacks one
    ],
)
def test_all_splits_number_the_classes_alike_by_name(test, train, expected, names, root):
    import datasets

    splits = {"test": labelled(*test, names=names and test), "train": labelled(*train, names=names and train)}
    for split, each in splits.items():  # each with features of its own, as files of several splits may have
        each.save_to_disk(str(root / "hf/a/b" / split))
    (root / "hf/a/b/dataset_dict.json").write_text(json.dumps({"splits": list(splits)}))
    assert set(datasets.load_from_disk(str(root / "hf/a/b"))) == {"test", "train"}
    found = {split: HuggingFaceImages("hf/a/b", split) for split in splits}
    assert found["test"].class_names == found["train"].class_names
    assert expected is None or found["test"].class_names == expected
    for split, given in (("test", test), ("train", train)):
        assert [found[split].class_names[target] for target in found[split].targets] == given
        absent = sorted({*test, *train} - set(given))
        assert [name for each in found[split].left_out for name in each.names] == absent


def test_the_files_of_an_image_folder_that_are_not_read_are_counted(root):
    folders(root)
    (root / "hf/a/b/test/cat/notes.txt").write_text("x")
    (root / "hf/a/b/test/cat/._0.png").write_bytes(b"x")
    found = {each.reason: (each.count, each.names) for each in HuggingFaceImages("hf/a/b", "test").left_out}
    assert found == {
        "files with other extensions left out": (1, ("test/cat/notes.txt",)),
        "hidden or system files left out": (1, ("test/cat/._0.png",)),
    }


def test_hidden_parquet_files_are_not_read_twice(root):
    parquet(root)
    copy = root / "hf/a/b/data/.ipynb_checkpoints/test-00000-of-00002.parquet"
    copy.parent.mkdir()
    copy.write_bytes((root / "hf/a/b/data/test-00000-of-00002.parquet").read_bytes())
    assert HuggingFaceImages("hf/a/b", "test").targets == [0, 1, 1, 0]
