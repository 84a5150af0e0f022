"""Checkpoints of one's own for torchvision's and timm's architectures."""

from __future__ import annotations

import pickle

import pytest
import timm
import torch
from safetensors.torch import save_file
from torchvision import models
from weights_world import Malicious, same

from testbed.errors import DefinitionError, WeightsError
from testbed.models.base.weights import of_files
from testbed.models.checkpoint import CheckpointFamily, checkpoint_model
from testbed.models.loading.checkpoint_network import load_checkpoint, plan
from testbed.models.model_base import LoadOptions, StandardNormalization, StandardTransform
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")
CPU = LoadOptions("cpu")
FAMILY = CheckpointFamily()


@pytest.fixture(scope="module")
def network():
    """A ResNet-18 of ten classes."""
    torch.manual_seed(3)
    return models.resnet18(num_classes=10).eval()


@pytest.fixture
def save(tmp_path):
    def save(content, name="w.pth"):
        path = tmp_path / name
        if path.suffix == ".safetensors":
            save_file(content, path)
        else:
            torch.save(content, path)
        return path

    return save


@pytest.mark.parametrize(
    ("name", "wrap"),
    [
        ("w.pt", lambda state: {"state_dict": state, "epoch": 90, "optimizer": {"lr": 0.1}}),
        ("w.tar", lambda state: {"state_dict": {f"module.{key}": value for key, value in state.items()}}),
        ("w.bin", lambda state: {"model": state, "args": {"lr": 0.1}}),
        ("w.safetensors", lambda state: state),
    ],
)
def test_a_checkpoint_with_a_head_of_its_own_is_loaded(network, save, pictures, name, wrap):
    path = save(wrap(network.state_dict()), name)
    made = registry.get_model(f"resnet18,{path}")
    assert made.name == f"resnet18,{path}"
    assert made.weights() == of_files([path])
    loaded = made.load(CPU)
    assert loaded.network.fc.out_features == 10
    assert same(loaded.network, network)
    with torch.no_grad():
        expected = network(models.ResNet18_Weights.IMAGENET1K_V1.transforms()(pictures[0])[None])
    torch.testing.assert_close(loaded.logits(made.transform(pictures[0])[None]), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classes", [1000, 7])
def test_a_checkpoint_of_timm_is_loaded(save, classes, pictures):
    torch.manual_seed(5)
    network = timm.create_model("test_vit", num_classes=classes).eval()
    path = save(network.state_dict(), "w.safetensors")
    made = registry.get_model(f"timm/test_vit,{path}")
    loaded = made.load(CPU)
    assert same(loaded.network, network)
    base = registry.get_model("timm/test_vit")
    assert repr(made.transform) == repr(base.transform)
    assert made.normalization.spec() == base.normalization.spec()
    assert loaded.logits(made.transform(pictures[0])[None]).shape == (1, classes)


@pytest.mark.parametrize("classes", [1000, 5])
@pytest.mark.parametrize("architecture", ["squeezenet1_1", "mobilenet_v3_small", "densenet121", "timm/test_resnet"])
def test_the_head_is_recognised_whatever_it_is_called(save, architecture, classes):
    if architecture.startswith("timm/"):
        network = timm.create_model(architecture.removeprefix("timm/"), num_classes=classes)
    else:
        network = models.get_model(architecture, num_classes=classes)
    assert same(load_checkpoint(architecture, save(network.state_dict())), network)


def test_two_heads_are_recognised_together():
    for classes in (1000, 12):
        state = models.googlenet(weights=None, init_weights=False, num_classes=classes).state_dict()
        assert plan("googlenet", state, {}, "w.pth").classes == classes


def test_values_of_half_precision_are_loaded_in_single(network, save):
    half = {key: value.half() if value.is_floating_point() else value for key, value in network.state_dict().items()}
    loaded = load_checkpoint("resnet18", save(half))
    assert loaded.fc.weight.dtype == torch.float32
    torch.testing.assert_close(loaded.fc.weight, network.fc.weight, rtol=1e-3, atol=1e-4)


# What does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state.pop("layer1.0.conv1.weight"), ["missing layer1.0.conv1.weight"]),
        (lambda state: state.pop("fc.bias"), ["missing fc.bias"]),
        (lambda state: state.update(extra=torch.zeros(1)), ["unexpected extra"]),
        (lambda state: state.update({"conv1.weight": torch.zeros(64, 1, 7, 7)}), ["conv1.weight", "(64, 1, 7, 7)"]),
        (lambda state: state.update({"conv1.weight": torch.zeros(32, 3, 7, 7)}), ["conv1.weight", "(32, 3, 7, 7)"]),
        (lambda state: state.update({"fc.weight": torch.zeros(10, 256)}), ["fc.weight", "(10, 256)"]),
        (lambda state: state.update({"fc.bias": torch.zeros(9)}), ["fc.weight of 10", "fc.bias of 9"]),
    ],
)
def test_a_state_that_does_not_fit_is_told_in_one_line(network, save, change, words):
    state = network.state_dict()
    change(state)
    path = save(state)
    with pytest.raises(WeightsError) as caught:
        registry.get_model(f"resnet18,{path}").load(CPU)
    assert "\n" not in str(caught.value)
    assert "does not fit the architecture" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_another_architecture_is_told_in_one_line(save):
    path = save(models.resnet34(num_classes=10).state_dict())
    with pytest.raises(WeightsError, match=r"w\.pth does not fit the architecture: unexpected layer1\.2.* more$"):
        load_checkpoint("resnet18", path)


def test_only_what_differs_is_called_wrong(save):
    state = models.resnet18().state_dict()
    state["conv1.weight"] = torch.zeros(32, 3, 7, 7)
    with pytest.raises(WeightsError) as caught:
        load_checkpoint("resnet18", save(state))
    assert "conv1.weight is (32, 3, 7, 7), not (64, 3, 7, 7)" in str(caught.value)
    assert "fc." not in str(caught.value)


@pytest.mark.parametrize("kind", ["missing", "torch", "pickle"])
def test_an_unreadable_or_malicious_file_is_one_line_and_runs_nothing(tmp_path, save, kind):
    path = tmp_path / "w.pth"
    if kind == "torch":
        save({"state_dict": Malicious(tmp_path / "made")})
    elif kind == "pickle":
        path.write_bytes(pickle.dumps(Malicious(tmp_path / "made"), protocol=2))
    made = registry.get_model(f"resnet18,{path}")
    with pytest.raises(WeightsError) as caught:
        made.load(CPU)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "made").exists()


def test_weights_of_a_missing_file_are_an_error(tmp_path):
    with pytest.raises(WeightsError, match=r"gone\.pth do not exist"):
        registry.get_model(f"resnet18,{tmp_path}/gone.pth").weights()


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("resnet18,/data/w.pth", "resnet18,/data/w.pth"),
        ("resnet50.imagenet1k_v2,/data/w.pth", "resnet50.imagenet1k_v2,/data/w.pth"),
        ("timm/resnet18,/data/w", "timm/resnet18,/data/w"),
        ("resnet18,/data/a,b.pth", "resnet18,/data/a,b.pth"),
        ("resnet18", None),
        ("resnet18,", None),
        ("resnet18,tag", None),
        ("resnet19,/data/w.pth", None),
        ("ViT-B-32,/data/w.pt", None),
        ("timm/nope,/data/w.pth", None),
    ],
)
def test_canonical_names(written, canonical):
    assert FAMILY.canonical(written) == canonical


def test_relative_paths_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert FAMILY.canonical("resnet18,w.pth") == f"resnet18,{tmp_path}/w.pth"
    assert FAMILY.canonical("resnet18,runs/w") == f"resnet18,{tmp_path}/runs/w"
    assert FAMILY.canonical("resnet18,~/w.pth") == "resnet18,/home/me/w.pth"


def test_no_checkpoint_is_listed():
    assert list(FAMILY.names()) == []


# In a definition file ---------------------------------------------------------------------------------------------


def test_a_definition_may_have_a_name_and_preprocessing_of_its_own(network, save):
    path = save(network.state_dict())
    transform, normalization = StandardTransform(40, 32), StandardNormalization([0.5] * 3, [0.5] * 3)
    made = checkpoint_model(
        "mine", "resnet18", path, transform, normalization, eval_batch_size=7, model_type="Standard training"
    )
    assert (made.name, made.transform, made.normalization) == ("mine", transform, normalization)
    assert (made.eval_batch_size, made.model_type) == (7, "Standard training")
    assert same(made.load(CPU).network, network)


def test_preprocessing_is_by_default_that_of_the_published_weights(save):
    path = save({"a": torch.zeros(1)})
    for arch in ("resnet18", "resnet50.imagenet1k_v2", "timm/resnet18.a1_in1k"):
        made, base = checkpoint_model("mine", arch, path), registry.get_model(arch)
        assert repr(made.transform) == repr(base.transform)
        assert made.normalization.spec() == base.normalization.spec()
        assert made.eval_batch_size == base.eval_batch_size


@pytest.mark.parametrize("arch", ["ViT-B-32,", "digits-cnn"])
def test_what_is_no_classifier_is_refused(arch):
    with pytest.raises(DefinitionError, match=f"mine: '{arch}' is not an architecture of torchvision or timm"):
        checkpoint_model("mine", arch, "/data/w.pth")
