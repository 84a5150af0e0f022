"""torchvision's classifiers: names, the transforms they were published with, and weights where torch.hub keeps them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torchvision import models
from weights_world import Malicious, difference, same

from testbed.errors import WeightsError
from testbed.models.base.weights import of_files
from testbed.models.model_base import LoadOptions, Model
from testbed.models.torchvision_models import TorchvisionFamily, TorchvisionWeights, weights_of

FAMILY = TorchvisionFamily()
CPU = LoadOptions("cpu")


def test_every_classifier_is_fed_as_its_weights_were_published(pictures):
    seen = {}
    for architecture in models.list_models(module=models):
        for number, weights in enumerate(models.get_model_weights(architecture)):
            if weights.meta["categories"] is None:  # a network without its classifier
                continue
            name = f"{architecture}.{weights.name.lower()}" if number else architecture
            made, preset = FAMILY.build(name), weights.transforms()
            assert weights_of(name) is weights
            assert made.num_classes == len(weights.meta["categories"]) == 1000
            assert (made.name, made.arch) == (name, architecture)
            # Many share a preset; each different one is compared on a photo.
            key = (repr(preset), repr(made.transform), repr(made.normalization.spec()))
            if key not in seen:
                seen[key] = difference(made, preset, pictures[:1])
            assert seen[key] < 1e-6, name
    assert len(seen) > 10


@pytest.mark.usefixtures("library_lists")
@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("resnet50", "resnet50"),
        ("resnet50.imagenet1k_v1", "resnet50"),
        ("resnet50.IMAGENET1K_V1", "resnet50"),
        ("resnet50.IMAGENET1K_V2", "resnet50.imagenet1k_v2"),
        ("torchvision/resnet50", "resnet50"),
        ("torchvision/vit_b_16.IMAGENET1K_SWAG_E2E_V1", "vit_b_16.imagenet1k_swag_e2e_v1"),
        ("resnet50.imagenet1k_v9", None),
        ("resnet50.", None),
        ("resnet51", None),
        ("ResNet50", None),
        ("timm/resnet50", None),
        ("resnet50,/path/to.pth", None),
        ("fasterrcnn_resnet50_fpn", None),
        ("", None),
    ],
)
def test_canonical_names(written, canonical):
    assert FAMILY.canonical(written) == canonical


@pytest.mark.usefixtures("library_lists")
def test_names_are_canonical_and_complete():
    names = list(FAMILY.names())
    assert len(names) == len(set(names))
    assert all(FAMILY.canonical(name) == name for name in names)
    classifiers = [
        weights
        for each in models.list_models(module=models)
        for weights in models.get_model_weights(each)
        if weights.meta["categories"]  # VGG-16's features alone classify nothing
    ]
    assert len(names) == len(classifiers)
    assert {"resnet50", "resnet50.imagenet1k_v2", "densenet121", "alexnet"} <= set(names)


def test_other_weights_are_another_definition_and_the_same_architecture():
    first, second = FAMILY.build("resnet50"), FAMILY.build("resnet50.imagenet1k_v2")
    assert first.architecture == second.architecture
    assert repr(first.transform) != repr(second.transform)


# Weights in torch.hub's folder ------------------------------------------------------------------------------------

NAME = "squeezenet1_1"


def file_name():
    return models.SqueezeNet1_1_Weights.IMAGENET1K_V1.url.rpartition("/")[2]


@pytest.fixture
def network():
    torch.manual_seed(3)
    return models.squeezenet1_1().eval()


def test_weights_in_the_folder_of_torch_hub_are_found_loaded_and_told_by_content(torch_home, network, pictures):
    made = FAMILY.build(NAME)
    assert made.weights(fetch=False) is None
    torch.save(network.state_dict(), torch_home / file_name())
    weights = made.weights(fetch=False)
    assert weights == made.weights() == of_files([torch_home / file_name()])
    loaded = made.load(CPU)
    assert same(loaded.network, network)
    image = made.transform(pictures[0])[None]
    torch.testing.assert_close(
        loaded.logits(image), network(models.SqueezeNet1_1_Weights.DEFAULT.transforms()(pictures[0])[None])
    )


def test_each_weights_file_has_its_place(torch_home):
    for name, weights in (
        ("resnet50", models.ResNet50_Weights.IMAGENET1K_V1),
        ("resnet50.imagenet1k_v2", models.ResNet50_Weights.IMAGENET1K_V2),
    ):
        path = torch_home / weights.url.rpartition("/")[2]
        assert TorchvisionWeights(name).files(fetch=False) is None
        path.write_bytes(name.encode())
        assert TorchvisionWeights(name).files(fetch=False) == [path]


def test_a_checkpoint_in_the_folder_of_torch_hub_runs_no_code(torch_home, tmp_path):
    torch.save({"features": Malicious(tmp_path / "made")}, torch_home / file_name())
    with pytest.raises(WeightsError):
        FAMILY.build(NAME).load(CPU)
    assert not (tmp_path / "made").exists()


def test_a_download_is_checked_against_the_hash_in_its_name(torch_home, monkeypatch):
    asked = []

    def download(url, path, hash_prefix=None, progress=True):
        asked.append(hash_prefix)
        Path(path).write_bytes(b"weights")

    monkeypatch.setattr("torch.hub.download_url_to_file", download)
    monkeypatch.setattr("testbed.models.loading.hub.require_host", lambda *args: None)
    assert TorchvisionWeights(NAME).files(fetch=True) == [torch_home / file_name()]
    assert asked == [file_name().removesuffix(".pth").rpartition("-")[2]]


def test_weights_that_do_not_fit_are_one_line(torch_home):
    torch.save({"features.0.weight": torch.zeros(1)}, torch_home / file_name())
    with pytest.raises(WeightsError) as caught:
        FAMILY.build(NAME).load(CPU)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{NAME}: ")


# Random weights ---------------------------------------------------------------------------------------------------


def test_random_weights_need_no_file_and_follow_from_the_seed(torch_home, pictures):
    made = FAMILY.build(NAME)
    assert isinstance(made, Model)
    one, again, other = (made.load(LoadOptions("cpu", random_seed=seed)).network for seed in (0, 0, 1))
    assert same(one, again)
    assert not same(one, other)
    torch.manual_seed(0)
    assert same(one, models.squeezenet1_1(weights=None))
    assert list(torch_home.iterdir()) == []
