"""Data sets with a transform of their own, for a network that has none: the numbers of a loop of plain torch."""

from __future__ import annotations

import numpy as np
import pytest
import timm
import torch
from at_hand_world import make_pictures
from PIL import Image
from torch.utils.data import BatchSampler, DataLoader, Dataset, Subset, SubsetRandomSampler, TensorDataset
from torchvision import datasets, transforms

import testbed
from testbed.errors import TestbedError

HALF = [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
CROP = transforms.Compose([transforms.Resize(10), transforms.CenterCrop(8), *HALF])
SOME = np.array([3, 5, 7])
GREY = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.4], [0.3])])


class Named:
    """A transform that is called by name, as albumentations' are."""

    def __call__(self, *, image):
        return {"image": torch.from_numpy(image.transpose(2, 0, 1) / 127.5 - 1).float()}


class Own(Dataset):
    """A data set as people write it."""

    def __init__(self, paths, labels, preprocess=None, mode="RGB", by_name=False):
        self.paths, self.labels, self.preprocess, self.mode, self.by_name = paths, labels, preprocess, mode, by_name

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, place):
        image = Image.open(self.paths[place]).convert(self.mode)
        if self.by_name:
            image = self.preprocess(image=np.array(image))["image"]
        elif self.preprocess:
            image = self.preprocess(image)
        return {"image": image, "label": self.labels[place]} if self.mode == "L" else (image, self.labels[place])


class Wrapped(Dataset):
    """Another data set with a transform."""

    def __init__(self, inner, change):
        self.inner, self.change = inner, change

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, place):
        image, label = self.inner[place]
        return self.change(image), label


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    made = make_pictures(tmp_path / "pictures")
    made = made._replace(labels=[place % 5 for place in range(len(made.labels))])
    for place, (path, label) in enumerate(zip(made.paths, made.labels, strict=True)):
        folder = tmp_path / "folders" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{place}.png").write_bytes(path.read_bytes())
    return made


def network(channels=3):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(channels, 5, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    ).eval()


def own(photos, *options):
    return Own(photos.paths, photos.labels, *options)


def tensors(photos):
    return TensorDataset(torch.from_numpy(photos.pixels).permute(0, 3, 1, 2) / 255, torch.tensor(photos.labels))


CASES = {
    "ImageFolder": lambda p, root: datasets.ImageFolder(root, CROP),
    "own class": lambda p, root: own(p, CROP),
    "called by name": lambda p, root: own(p, Named(), "RGB", True),
    "wrapper": lambda p, root: Wrapped(own(p), CROP),
    "wrapper of ImageFolder": lambda p, root: Wrapped(datasets.ImageFolder(root), CROP),
    "wrapper of one that transforms": lambda p, root: Wrapped(own(p, CROP), lambda image: image),
    "grey": lambda p, root: own(p, GREY, "L"),
    "tensors": lambda p, root: tensors(p),
    "Subset": lambda p, root: Subset(own(p, CROP), [7, 3, 5]),
    "part that a sampler draws": lambda p, root: DataLoader(
        own(p, CROP), 2, sampler=SubsetRandomSampler(np.array([3, 5, 7]))
    ),
    "bfloat16": lambda p, root: own(p, lambda image: CROP(image).bfloat16()),
    "loader": lambda p, root: DataLoader(datasets.ImageFolder(root, CROP), 4, shuffle=True),
}


def by_hand(net, data):
    """The number of right answers and of samples."""
    if not isinstance(data, DataLoader):
        data = DataLoader(data, 1)
    pairs = [(batch["image"], batch["label"]) if isinstance(batch, dict) else batch for batch in data]
    with torch.no_grad():
        right = sum(int((net(images).argmax(1) == labels).sum()) for images, labels in pairs)
    return right, sum(len(labels) for _, labels in pairs)


@pytest.mark.parametrize("case", CASES)
def test_the_network_gets_what_the_data_set_returns(photos, tmp_path, case):
    data, net = CASES[case](photos, tmp_path / "folders"), network(1 if case == "grey" else 3)
    net = net.bfloat16() if case == "bfloat16" else net
    before = torch.get_rng_state()
    found = testbed.evaluate(net, data, db=tmp_path / "results.db", executor="inline", progress=False)
    assert torch.equal(before, torch.get_rng_state())
    assert found.failed.empty, found.failed.reason.tolist()
    row = found.frame.query("metric == 'top1' and slice == 'overall'").iloc[0]
    assert (round(row.value * row.n), row.n) == by_hand(net, data)
    of = "the data set's tensors as they are" if case == "tensors" else "the transform of the data set"
    assert f"from {of}" in found.preprocessing[0]


def test_the_transform_of_a_data_set_counts_more_than_timms_configuration(photos, tmp_path, capsys):
    net = timm.create_model("test_vit", num_classes=5, img_size=8, patch_size=4).eval()
    data = datasets.ImageFolder(tmp_path / "folders", CROP)
    found = testbed.evaluate(net, data, db=tmp_path / "results.db", executor="inline")
    row = found.frame.query("metric == 'top1' and slice == 'overall'").iloc[0]
    assert (round(row.value * row.n), row.n) == by_hand(net, data)
    assert "instead of the network's pretrained_cfg (timm)" in capsys.readouterr().err
    without = testbed.evaluate(net, tmp_path / "folders", db=tmp_path / "results.db", executor="inline", progress=False)
    assert "instead of" not in without.preprocessing[0]


def test_the_generator_of_a_loader_goes_on_as_without_the_call(photos, tmp_path):
    generator = torch.Generator().manual_seed(1)
    before = generator.get_state()
    loader = DataLoader(own(photos, CROP), 4, shuffle=True, generator=generator)
    testbed.evaluate(network(), loader, db=tmp_path / "results.db", executor="inline", progress=False)
    assert torch.equal(before, generator.get_state())


def test_what_is_not_used_is_said(photos, tmp_path, capsys):
    class WithPaths(Own):
        def __getitem__(self, place):
            return (*super().__getitem__(place), str(self.paths[place]))

    loader = DataLoader(WithPaths(photos.paths, photos.labels, CROP), 7, drop_last=True)
    testbed.evaluate(network(), loader, db=tmp_path / "results.db", executor="inline")
    said = capsys.readouterr().err
    assert "its other values (1) are not" in said
    assert "the DataLoader drops its last 6 samples; here they count" in said


def test_what_a_run_prints_about_its_results_is_said_here_as_well(photos, tmp_path, capsys):
    words = {0: "zero", 1: "one", 2: "two", 3: "three", 4: "four"}

    class Constant(torch.nn.Module):
        def forward(self, images):
            return torch.zeros(len(images), 5).index_fill(1, torch.tensor([4]), torch.nan)

    texts = Own(photos.paths, [words[label] for label in photos.labels], CROP)
    found = testbed.evaluate(Constant(), texts, db=tmp_path / "results.db", executor="inline")
    said = capsys.readouterr().err
    for line in (
        "Class order? Constant-",
        "in alphabetical order: 0 four, 1 one, 2 three, 3 two, 4 zero.",
        "guessing among 5 classes gives 20.00 %. Check the preprocessing, the order of the classes, and the weights",
        "20 of 20 samples have outputs that are NaN or infinite",
    ):
        assert line in said
        assert any(line in remark for remark in found.remarks)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (lambda p: own(p, transforms.Compose([transforms.RandomCrop(8, 2), *HALF])), "already normalized?"),
        (lambda p: [own(p, CROP), own(p, HALF[0])], "the data sets have 2 different transforms; give transform="),
        (lambda p: DataLoader(own(p), None, sampler=BatchSampler(range(4), 2, False)), "draws other things than pos"),
        (lambda p: own(p), "does not say how to prepare images for it"),
    ],
    ids=["random", "two", "batches", "none"],
)
def test_what_cannot_be_found_is_asked_for(photos, tmp_path, data, said):
    with pytest.raises(TestbedError, match=said):
        testbed.evaluate(network(), data(photos), db=tmp_path / "results.db", progress=False)
