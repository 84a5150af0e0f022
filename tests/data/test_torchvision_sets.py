"""torchvision's data sets against torchvision, on made files in the published formats."""

from __future__ import annotations

import csv
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from torchvision_world import EVERY, MAKERS, expected, pixels, save

from testbed.data.formats.image_lists import HDF5Images
from testbed.data.libraries.torchvision_sets import SETS, open_set
from testbed.errors import DataError, MissingExtraError, SampleError


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(("name", "split"), EVERY)
def test_images_and_labels_are_torchvisions(name, split, root, monkeypatch):
    MAKERS[name](root, monkeypatch)
    source = pickle.loads(pickle.dumps(open_set(name, split)))  # as in a worker process
    ours = sorted((np.asarray(source.image(place)).tobytes(), source.targets[place]) for place in range(len(source)))
    if name == "stl10":  # torchvision itself wants to see the files of all splits
        for file in ("unlabeled_X.bin",):
            (root / "stl10_binary" / file).write_bytes(b"")
        monkeypatch.setattr("torchvision.datasets.STL10._check_integrity", lambda self: True)
    theirs = sorted((np.asarray(image).tobytes(), target) for image, target in expected(name, split, root))
    if name == "caltech101":  # whose first class torchvision leaves out
        background = source.targets.index(0)
        ours.remove((np.asarray(source.image(background)).tobytes(), 0))
        theirs = sorted((image, target + 1) for image, target in theirs)
    assert ours == theirs
    assert all(type(target) is int for target in source.targets)
    assert len(set(source.ids)) == len(source.ids)
    assert len(set(source.digests(range(len(source))))) == len(source)


def test_torchvisions_order_is_kept_and_sun397s_is_made_sure_of(root, monkeypatch):
    MAKERS["food101"](root, monkeypatch)
    assert open_set("food101", "test").ids == [
        "images/pad_thai/test1.jpg", "images/apple_pie/test2.jpg", "images/apple_pie/test1.jpg",
    ]  # fmt: skip
    MAKERS["sun397"](root, monkeypatch)
    source = open_set("sun397", "test")
    assert source.ids == ["a/abbey/sun_a.jpg", "a/abbey/sun_z.jpg", "b/basilica/indoor_hall/sun_b.jpg"]
    MAKERS["mnist"](root, monkeypatch)
    assert open_set("mnist", "train").ids == [f"train/{index}" for index in range(5)]


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("cifar100", ["cat", "dog", "owl"]),
        ("food101", ["apple pie", "pad thai"]),
        ("sun397", ["abbey", "basilica indoor hall"]),
        ("dtd", ["polka-dotted", "striped"]),
        ("pets", ["Abyssinian", "American Bulldog"]),
        ("cars", ["AM General Hummer", "Audi TT"]),
        ("fgvc_aircraft", ["707-320", "Boeing 717"]),
        ("renderedsst2", ["negative", "positive"]),
        ("caltech101", ["BACKGROUND_Google", "Faces", "accordion"]),
        ("gtsrb", None),
        ("svhn", None),
    ],
)
def test_class_names_are_those_that_torchvision_has(name, names, root, monkeypatch):
    MAKERS[name](root, monkeypatch)
    assert open_set(name, "test").class_names == names


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_folder_of_the_data_sets_own_name_serves_too(name, root, monkeypatch):
    MAKERS[name](root / name, monkeypatch)
    assert len(open_set(name, "test")) >= 2


def test_a_digest_is_of_the_content(root, monkeypatch):
    MAKERS["dtd"](root, monkeypatch)
    MAKERS["mnist"](root, monkeypatch)
    before = [open_set(name, "test").digests([0, 1]) for name in ("dtd", "mnist")]
    save(root / "dtd/dtd/images/striped/striped_0.jpg", 99)
    file = root / "MNIST/raw/t10k-images-idx3-ubyte"
    data = bytearray(file.read_bytes())
    data[16] ^= 1
    file.write_bytes(data)
    after = [open_set(name, "test").digests([0, 1]) for name in ("dtd", "mnist")]
    assert [[a == b for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)] == [
        [False, True]
    ] * 2


@pytest.mark.parametrize("name", sorted(SETS))
def test_what_is_missing_is_named_with_where_to_get_it(name, root):
    for split in SETS[name].needs:
        with pytest.raises(DataError) as caught:
            open_set(name, split)
        message = str(caught.value)
        for word in (f"'{name}'", f"'{split}'", SETS[name].needs[split][0], "is missing", "download"):
            assert word in message
        assert str(root) in message
    assert not list(root.iterdir())  # torchvision's Caltech101 would have made a folder


def test_without_a_data_root_it_is_asked_for(monkeypatch):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    with pytest.raises(DataError, match=r"'cifar10': no data root is set; give --data-root DIR or set TESTBED_DATA"):
        open_set("cifar10", "test")


class Trap:
    def __reduce__(self):
        return (Path.touch, (Path("unpickled"),))


@pytest.mark.parametrize("file", ["test_batch", "batches.meta"])
def test_a_pickle_that_is_not_the_published_one_is_never_unpickled(file, root, monkeypatch):
    MAKERS["cifar10"](root, monkeypatch)
    monkeypatch.chdir(root)
    (root / "cifar-10-batches-py" / file).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(DataError, match=r"'cifar10', split 'test': the files in .* differ from the published ones"):
        open_set("cifar10", "test")
    assert not (root / "unpickled").exists()


def test_only_the_files_of_the_split_are_needed(root, monkeypatch):
    MAKERS["cifar10"](root, monkeypatch)
    MAKERS["mnist"](root, monkeypatch)
    for path in (*root.glob("cifar*/data_batch*"), *root.glob("MNIST/raw/train*")):
        path.unlink()
    assert len(open_set("cifar10", "test")) == 3
    assert len(open_set("mnist", "test")) == 4


def test_a_path_in_a_list_that_leads_away_is_refused(root, monkeypatch):
    MAKERS["food101"](root, monkeypatch)
    MAKERS["gtsrb"](root, monkeypatch)
    (root / "food-101/meta/test.json").write_text(
        json.dumps({"apple_pie": ["../../secret"], "pad_thai": ["pad_thai/test1"]})
    )
    with pytest.raises(DataError, match=r"leaves"):
        open_set("food101", "test")
    with (root / "gtsrb/GT-final_test.csv").open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows([["Filename", "ClassId"], ["/etc/passwd", 1]])
    with pytest.raises(DataError, match=r"differ from the published ones|leaves"):
        open_set("gtsrb", "test")


def test_another_number_of_classes_is_an_error(root, monkeypatch):
    MAKERS["country211"](root, monkeypatch)
    MAKERS["gtsrb"](root, monkeypatch)
    monkeypatch.setitem(SETS, "country211", replace(SETS["country211"], classes=211))
    monkeypatch.setitem(SETS, "gtsrb", replace(SETS["gtsrb"], classes=1))
    with pytest.raises(DataError, match=r"211 classes were expected; found 3"):
        open_set("country211", "test")
    with pytest.raises(DataError, match=r"1 classes were expected; .* labels up to 1"):
        open_set("gtsrb", "test")


def test_files_of_another_form_are_an_error_and_no_traceback(root, monkeypatch):
    MAKERS["food101"](root, monkeypatch)
    MAKERS["pets"](root, monkeypatch)
    (root / "food-101/meta/test.json").write_text("[not json")
    (root / "oxford-iiit-pet/annotations/test.txt").write_text("one two\n")
    for name in ("food101", "pets"):
        with pytest.raises(DataError, match=f"'{name}', split 'test': the files in .* differ from the published ones"):
            open_set(name, "test")


def test_an_image_that_is_gone_is_a_fault_of_its_sample(root, monkeypatch):
    MAKERS["dtd"](root, monkeypatch)
    source = open_set("dtd", "test")
    (there,) = source.digests([0])
    (root / "dtd/dtd/images/striped/striped_0.jpg").unlink()
    with pytest.raises(SampleError, match=r"striped_0\.jpg"):
        source.image(0)
    (gone,) = source.digests([0])
    assert gone not in (there, *source.digests([1]))  # it is that of this file, which is not there


# PatchCamelyon ----------------------------------------------------------------------------------------------------


def make_pcam(root: Path) -> None:
    import h5py

    (root / "pcam").mkdir(parents=True)
    for part, content in (("x", pixels(1, (3, 96, 96, 3))), ("y", np.array([1, 0, 1], np.uint8).reshape(3, 1, 1, 1))):
        with h5py.File(root / f"pcam/camelyonpatch_level_2_split_test_{part}.h5", "w") as file:
            file[part] = content


def test_pcam_is_read_from_its_hdf5_files(root):
    pytest.importorskip("h5py")
    make_pcam(root)
    source = open_set("pcam", "test")
    assert source.targets == [1, 0, 1]
    source.image(0)  # opens the file, which does not travel
    source = pickle.loads(pickle.dumps(source))
    theirs = list(expected("pcam", "test", root))
    assert [np.asarray(source.image(place)).tolist() for place in range(3)] == [
        np.asarray(image).tolist() for image, _ in theirs
    ]
    assert len(set(source.digests(range(3)))) == 3


def test_a_damaged_pcam_is_an_error(root):
    pytest.importorskip("h5py")
    make_pcam(root)
    (root / "pcam/camelyonpatch_level_2_split_test_x.h5").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"'pcam'.* cannot be read"):
        open_set("pcam", "test")


def test_without_h5py_its_extra_is_named(root, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"pcam needs the package h5py: pip install -e '\.\[h5\]'"):
        HDF5Images(root / "x", root / "y", "pcam", "test")
