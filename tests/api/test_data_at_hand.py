"""Objects that hold data in place of a setting's name: each gives the numbers of plain torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torchvision
from at_hand_world import COUNT, MODEL, RIGHT, evaluated, make_pictures, right_of
from PIL import Image

import testbed
from testbed.errors import DataError, DefinitionError
from testbed.paths import cache_dir

ALL = (RIGHT, COUNT)


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    return make_pictures(tmp_path / "pictures")


class Photos(torch.utils.data.Dataset):
    """A map-style data set that counts what is read."""

    def __init__(self, pictures, change=lambda image: image, label=lambda label: label, more=()):
        self.pictures, self.change, self.label, self.more, self.read = pictures, change, label, more, 0

    def __len__(self):
        return len(self.pictures.labels)

    def __getitem__(self, place):
        self.read += 1
        image, label = Image.open(self.pictures.paths[place]), self.pictures.labels[place]
        return self.change(image), self.label(label), *self.more


def tensor(image):
    return torchvision.transforms.functional.to_tensor(image)


FORMS = {
    "PIL": lambda p: Photos(p),
    "float tensors": lambda p: Photos(p, tensor, torch.tensor),
    "arrays": lambda p: Photos(p, np.asarray, np.int64),
    "labels as text": lambda p: Photos(p, label=str),
    "RGBA": lambda p: Photos(p, lambda image: image.convert("RGBA")),
    "Subset": lambda p: torch.utils.data.Subset(Photos(p), list(range(COUNT))),
    "ConcatDataset": lambda p: torch.utils.data.ConcatDataset([Photos(p)]),
    "TensorDataset": lambda p: torch.utils.data.TensorDataset(
        torch.from_numpy(p.pixels).permute(0, 3, 1, 2) / 255, torch.tensor(p.labels)
    ),
    "DataLoader": lambda p: torch.utils.data.DataLoader(Photos(p), batch_size=3, shuffle=True, num_workers=1),
    "three values": lambda p: Photos(p, label=str, more=("x.png",)),
    "two lists": lambda p: ([image for image, _ in Photos(p)], p.labels),
    "NHWC": lambda p: (p.pixels, p.labels),
    "NCHW": lambda p: (p.pixels.transpose(0, 3, 1, 2), np.array(p.labels)),
    "float torch NHWC": lambda p: (torch.from_numpy(p.pixels / 255).float(), torch.tensor(p.labels)),
    "float numpy": lambda p: (p.pixels / 255, pd.Series(p.labels).to_numpy()),
    "pairs": lambda p: p.rows,
    "pairs of Path and text": lambda p: tuple((Path(path), str(label)) for path, label in p.rows),
    "pairs of pictures": lambda p: [(Image.open(path), label) for path, label in p.rows],
    "rows": lambda p: [{"image": Image.open(path), "label": label, "note": 1} for path, label in p.rows],
    "frame of paths": lambda p: pd.DataFrame(p.rows, columns=["path", "label"]),
    "frame with other names": lambda p: pd.DataFrame(
        {"id": range(COUNT), "class_id": p.labels, "file_name": [path for path, _ in p.rows]}
    ),
    "frame of bytes": lambda p: pd.DataFrame({"image": [Path(path).read_bytes() for path, _ in p.rows], "y": p.labels}),
    "frame of pictures": lambda p: pd.DataFrame(
        {"photo": [Image.open(path) for path, _ in p.rows], "target": p.labels}
    ),
}


def test_each_form_gives_the_numbers_of_plain_torch(pictures, tmp_path):
    found = evaluated({name: make(pictures) for name, make in FORMS.items()}, tmp_path)
    assert found.failed.empty
    rows = found.frame.query("metric == 'top1' and slice == 'overall'")
    right = {row.eval_setting.rpartition("-")[0]: (round(row.value * row.n), row.n) for row in rows.itertuples()}
    assert right == {f"object/{name.lower().replace(' ', '-')}": ALL for name in FORMS}


def test_torchvisions_data_sets_are_read_before_their_transform(pictures, tmp_path):
    for (path, label), place in zip(pictures.rows, range(COUNT), strict=True):
        folder = tmp_path / "folders" / f"{label:02d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{place}.png").write_bytes(Path(path).read_bytes())
    normalize = torchvision.transforms.Compose(
        [torchvision.transforms.ToTensor(), torchvision.transforms.Normalize([0.5] * 3, [0.5] * 3)]
    )
    classes = sorted(set(pictures.labels))
    folders = torchvision.datasets.ImageFolder(tmp_path / "folders", normalize, target_transform=classes.__getitem__)
    assert right_of(folders, tmp_path) == ALL
    assert not list(cache_dir("data").glob("*/images"))  # the files stay where they are
    own = torchvision.datasets.ImageFolder(
        tmp_path / "folders", normalize, classes.__getitem__, lambda path: Image.open(path)
    )
    assert right_of(own, tmp_path) == ALL
    assert folders.transform is normalize
    assert own.transform is normalize
    cifar = torchvision.datasets.CIFAR10.__new__(torchvision.datasets.CIFAR10)
    cifar.data, cifar.targets, cifar.transform, cifar.target_transform = (
        pictures.pixels,
        pictures.labels,
        normalize,
        None,
    )
    assert right_of(cifar, tmp_path) == ALL
    assert cifar.transform is normalize


def test_data_can_be_read_again_without_the_object(pictures, tmp_path, monkeypatch):
    found = evaluated({"my photos": (pictures.pixels, pictures.labels)}, tmp_path)
    (name,) = set(found.frame.eval_setting)
    assert name.startswith("object/my-photos-")
    assert len(found.samples("at-hand", name)) == COUNT
    assert right_of(name, tmp_path, override=True) == ALL  # by name, as every command takes it
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "elsewhere"))
    failed = evaluated(name, tmp_path, override=True).failed
    assert "pass the object to testbed.evaluate again" in failed.reason.item()


def test_equal_content_is_one_data_set_and_stored_once(pictures, tmp_path):
    floats = torch.from_numpy(pictures.pixels).permute(0, 3, 1, 2) / 255
    first = evaluated((pictures.pixels, pictures.labels), tmp_path)
    second = evaluated({"b": torch.utils.data.TensorDataset(floats, torch.tensor(pictures.labels))}, tmp_path)
    assert len(os.listdir(cache_dir("data"))) == 1
    names = [next(iter(set(each.frame.eval_setting))) for each in (first, second)]
    assert names[0].rpartition("-")[2] == names[1].rpartition("-")[2]
    other = evaluated((pictures.pixels, [*pictures.labels[:-1], 0]), tmp_path)
    assert next(iter(set(other.frame.eval_setting))) != names[0]


def test_numbers_stay_what_they_are_and_texts_become_classes(pictures, tmp_path):
    rows = [(path, "wolf" if label % 2 else "ant") for path, label in pictures.rows]
    failed = evaluated(rows, tmp_path).frame
    name = failed.eval_setting.iloc[0]
    from testbed.registry import registry

    dataset = registry.get_eval_setting(name).dataset.open()
    assert dataset.class_names == ["ant", "wolf"]
    assert dataset.targets == [label % 2 for label in pictures.labels]
    plain = registry.get_eval_setting(evaluated(pictures.rows, tmp_path).frame.eval_setting.iloc[0]).dataset.open()
    assert (plain.class_names, plain.targets) == (None, pictures.labels)


def test_values_between_the_levels_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    images = np.random.default_rng(0).random((4, 8, 8, 3))
    images[0] = np.rint(images[0] * 255) / 255
    left = evaluated((images, [0, 1, 2, 3]), tmp_path).left_out
    assert "rounded to 8 bits" in str(left)
    assert "3" in str(left)


# What is refused --------------------------------------------------------------------------------------------------


class Counting:
    """Something with items that is no data set of a known kind."""

    read = 0

    def __len__(self):
        return 5000

    def __getitem__(self, place):
        Counting.read += 1
        return torch.zeros(3, 8, 8), 0

    def __iter__(self):
        return (self[place] for place in range(5000))


@pytest.mark.parametrize(
    "given", [Counting(), 5, None, object(), lambda image: image, b"x", {"a": 3}, [3], [Counting()]]
)
def test_another_object_is_refused_before_anything_is_read(given, tmp_path):
    Counting.read = 0
    with pytest.raises(
        DefinitionError, match=r"neither an eval setting nor data in a known form; expected a name, an"
    ) as raised:
        testbed.evaluate(MODEL, given, db=tmp_path / "results.db")
    assert Counting.read == 0
    assert "\n" not in str(raised.value)
    assert "a DataFrame" in str(raised.value)


def test_a_faulty_one_beside_others_is_refused_before_these_are_read(pictures, tmp_path):
    photos = Photos(pictures)
    with pytest.raises(DefinitionError, match="an object of type int"):
        evaluated([photos, 7], tmp_path)
    assert photos.read == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda p: torch.utils.data.DataLoader(Photos(p), collate_fn=list),
            "its own collate_fn; pass its dataset: loader.dataset",
        ),
        (
            lambda p: torch.utils.data.DataLoader(
                Photos(p), sampler=torch.utils.data.WeightedRandomSampler([1.0] * COUNT, COUNT)
            ),
            "draws other samples each time",
        ),
        (lambda p: torch.utils.data.ChainDataset([]), "is an iterable dataset, which has no positions"),
        (lambda p: p.pixels, r"no labels; pass both, as \(X, y\)"),
        (lambda p: (p.pixels.astype(float), p.labels), "values from 2 to 255; expected floats in .*divide them by 255"),
        (lambda p: (p.pixels / 127.5 - 1, p.labels), "sample 0 has values from -.*: already normalized?"),
        (lambda p: (p.pixels / np.nan, p.labels), "must be finite"),
        (lambda p: (p.pixels.astype(int), p.labels), "is an array of int64; expected"),
        (lambda p: (p.pixels.reshape(COUNT, -1), p.labels), r"X has the shape \[20, 192\]; expected images as"),
        (lambda p: (p.pixels, np.eye(40)[p.labels]), r"y has the shape \[20, 40\].*y.argmax\(1\)"),
        (lambda p: (p.pixels, p.labels[:3]), "X has 20 images, but y has 3 labels"),
        (lambda p: (p.pixels, [-1] * COUNT), "sample 0 has the label -1; .*hidden test splits"),
        (lambda p: (p.pixels, [0.5] * COUNT), "sample 0 has the label 0.5; expected a class index"),
        (
            lambda p: [*zip(p.pixels / 127.5 - 1, p.labels, strict=True)],
            "sample 0 has values from -.*already normalized?.*and the transform as transform=…",
        ),
        (lambda p: Photos(p, lambda image: torch.rand(3, 8, 8)), "another image each time that it is read"),
        (lambda p: Photos(p, lambda image: 1 / 0), "sample 0 cannot be read: ZeroDivisionError"),
        (lambda p: Photos(p, lambda image: sys.exit("no image")), "sample 0 cannot be read: SystemExit: no image"),
        (lambda p: Photos(p, lambda image: "x"), "Photos: sample 0"),
        (
            lambda p: [(path.with_suffix(".gone"), 0) for path in p.paths],
            "none of the 20 images exist; the first would",
        ),
        (lambda p: [(p.paths[0], 0), (p.paths[0], 1)], "lists the image p00.png twice"),
        (lambda p: pd.DataFrame({"a": p.labels, "b": p.labels}), "has the columns a, b; which one has the images?"),
        (lambda p: pd.DataFrame({"path": [r[0] for r in p.rows], "a": 1, "b": 2}), "which one has the labels?"),
        (lambda p: [("https://example.org/x.png", 0)], "nothing is downloaded: list files"),
    ],
)
def test_what_cannot_be_right_is_one_clear_line(make, message, pictures, tmp_path):
    with pytest.raises(DataError, match=message) as raised:
        evaluated(make(pictures), tmp_path)
    assert "\n" not in str(raised.value)


def test_files_that_are_gone_count_as_wrong_and_are_named(pictures, tmp_path):
    pictures.paths[0].unlink()
    found = evaluated(pictures.rows, tmp_path)
    row = found.frame.query("metric == 'top1' and slice == 'overall'").iloc[0]
    assert (round(row.value * row.n), row.n) == (RIGHT - 1, COUNT)
    assert "p00.png" in str(found.samples("at-hand", row.eval_setting).iloc[0].to_dict())


def test_names_and_definitions_stay_what_they_were(tmp_path):
    from testbed.api.data_at_hand import found_settings
    from testbed.api.data_at_hand import setting_names as names_of
    from testbed.eval_settings.digits import DigitsDataset
    from testbed.eval_settings.eval_setting_base import EvalSetting

    setting = EvalSetting("digits-at-hand", DigitsDataset("test"), size=540)

    def setting_names(given):
        return names_of(found_settings(given))

    assert setting_names(setting) == ["digits-at-hand"]
    assert setting_names(("digits", Path("x"), setting)) == ["digits", "x", "digits-at-hand"]
    assert setting_names(name for name in ("a", "b")) == ["a", "b"]
    assert setting_names({"a": 1}.keys()) == ["a"]
