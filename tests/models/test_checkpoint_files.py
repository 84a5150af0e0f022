"""Checkpoints as training scripts leave them: what torchvision and timm build for them, and what is said of others."""

from __future__ import annotations

import argparse
import collections
import copy
import pathlib
import re
import zipfile
from typing import Any

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torchvision import models
from torchvision.models import WeightsEnum

from testbed.errors import WeightsError
from testbed.models.checkpoint import CheckpointFamily
from testbed.models.model_base import LoadOptions
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")
CPU = LoadOptions("cpu")
CLASSES = 5


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(3)
    return models.resnet18(num_classes=CLASSES).eval()


def loaded(name: str) -> Any:
    return registry.get_model(name).load(CPU).network


def same(first: nn.Module, state: Any) -> bool:
    own = first.state_dict()
    return all(torch.equal(value, state[name]) for name, value in own.items() if name in state)


# What torchvision's builders set ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "auxiliary", "classes"),
    [("inception_v3", True, CLASSES), ("googlenet", False, CLASSES), ("googlenet", True, 1000)],
)
def test_a_network_with_auxiliary_heads_gives_the_logits_of_torchvisions_builder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, pictures: Any, architecture: str, auxiliary: bool, classes: int
) -> None:
    torch.manual_seed(1)
    trained = models.get_model(architecture, num_classes=classes, aux_logits=auxiliary, init_weights=False)
    torch.save(trained.state_dict(), tmp_path / "w.pth")
    state = models.get_model(architecture, num_classes=1000, aux_logits=True, init_weights=False).state_dict()
    monkeypatch.setattr(WeightsEnum, "get_state_dict", lambda self, **_: state)
    theirs = models.get_model(architecture, weights=next(iter(models.get_model_weights(architecture))))
    assert theirs.transform_input is True
    trained.transform_input = True
    made = registry.get_model(f"{architecture},{tmp_path}/w.pth")
    image = made.transform(pictures[0])[None]
    with torch.no_grad():
        expected = trained.eval()(made.normalization(image))
        torch.testing.assert_close(made.load(CPU).logits(image), expected, rtol=1e-3, atol=1e-4)
    assert made.num_classes == classes
    assert "transform_input True" in made.remarks


def test_one_that_torchvisions_script_trained_from_scratch_has_no_such_input(tmp_path: Any) -> None:
    state = models.inception_v3(num_classes=CLASSES, init_weights=False).state_dict()
    for weights, expected in ((None, False), ("IMAGENET1K_V1", True)):
        torch.save({"model": state, "args": argparse.Namespace(weights=weights, lr=0.1)}, tmp_path / "w.pth")
        assert loaded(f"inception_v3,{tmp_path}/w.pth").transform_input is expected


def test_every_published_weights_setting_that_changes_a_network_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every architecture and weights of torchvision: what its builder makes for them, and what is made for a file."""
    from testbed.models.checkpoint import builder_settings
    from testbed.models.loading.checkpoint_network import build

    monkeypatch.setattr(WeightsEnum, "get_state_dict", lambda self, **_: {})
    monkeypatch.setattr(nn.Module, "load_state_dict", lambda *_, **__: None)
    for name in ("inception_v3", "googlenet", "resnet50", "resnet50.imagenet1k_v2", "densenet121", "maxvit_t"):
        _compare(name, build, builder_settings)
    for weights in models.ViT_B_16_Weights:
        _compare(f"vit_b_16.{weights.name.lower()}", build, builder_settings)


def _compare(name: str, build: Any, builder_settings: Any) -> None:
    architecture, _, tag = name.partition(".")
    enum = models.get_model_weights(architecture)
    with torch.device("meta"):
        theirs = models.get_model(architecture, weights=enum[tag.upper()] if tag else next(iter(enum)))
        ours = build(architecture, None, builder_settings(registry.get_model(name)))
    for attribute in ("transform_input", "image_size"):
        assert getattr(ours, attribute, None) == getattr(theirs, attribute, None), name
    shapes = {key: value.shape for key, value in ours.state_dict().items()}
    assert shapes.items() >= {key: value.shape for key, value in theirs.state_dict().items()}.items(), name


# Old and wrapped state dicts --------------------------------------------------------------------------------------


def old_densenet(state: dict[str, Any]) -> dict[str, Any]:
    pattern = re.compile(r"(denselayer[0-9]+[.](?:norm|relu|conv))([12])[.]")
    return {pattern.sub(lambda found: f"{found[1]}.{found[2]}.", name): value for name, value in state.items()}


def uncounted(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if "num_batches_tracked" not in name}


@pytest.mark.parametrize(
    ("architecture", "change"),
    [
        ("resnet18", uncounted),
        ("densenet121", lambda state: old_densenet(uncounted(state))),
        ("timm/densenet121", old_densenet),
        ("mnasnet0_5", lambda state: state),
        ("timm/test_resnet", uncounted),
    ],
)
def test_what_the_libraries_take_of_older_versions_is_taken(tmp_path: Any, architecture: str, change: Any) -> None:
    if architecture.startswith("timm/"):
        trained = timm.create_model(architecture.removeprefix("timm/"), num_classes=CLASSES)
    else:
        trained = models.get_model(architecture, num_classes=CLASSES)
    torch.save(change(trained.state_dict()), tmp_path / "w.pth")
    assert same(loaded(f"{architecture},{tmp_path}/w.pth"), trained.state_dict())


def test_a_module_that_wants_its_version_is_loaded_from_safetensors(tmp_path: Any) -> None:
    trained = models.mnasnet0_5(num_classes=CLASSES)
    save_file(trained.state_dict(), tmp_path / "w.safetensors")
    assert same(loaded(f"mnasnet0_5,{tmp_path}/w.safetensors"), trained.state_dict())


def prefixed(prefix: str) -> Any:
    return lambda network: {f"{prefix}{name}": value for name, value in network.state_dict().items()}


WRAPPED = {
    "AveragedModel": lambda network: AveragedModel(network).state_dict(),
    "AveragedModel of DataParallel": lambda network: AveragedModel(nn.DataParallel(network)).state_dict(),
    "torchvision's script": lambda network: {
        "model": models.resnet18(num_classes=CLASSES).state_dict(),
        "model_ema": AveragedModel(network).state_dict(),
        "args": argparse.Namespace(lr=0.1),
    },
    "Lightning": lambda network: {"state_dict": prefixed("model.")(network), "epoch": 3},
    "Lightning with a loss": lambda network: {
        "state_dict": {**prefixed("net.")(network), "criterion.weight": torch.ones(CLASSES)}
    },
    "Lightning, compiled": lambda network: {"state_dict": prefixed("model._orig_mod.")(network)},
    "another entry": lambda network: {"weights": network.state_dict(), "epoch": 3},
    "numpy": lambda network: {
        "state_dict": network.state_dict(),
        "best": np.float64(0.5),
        "epoch": np.int64(3),
        "done": np.bool_(True),
        "name": np.str_("run"),
        "losses": np.arange(4.0),
        "half": np.float16(1),
    },
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapped_network_is_found_and_its_classes_are_counted(tmp_path: Any, network: nn.Module, kind: str) -> None:
    torch.save(WRAPPED[kind](network), tmp_path / "w.pth")
    made = registry.get_model(f"resnet18,{tmp_path}/w.pth")
    assert made.num_classes == CLASSES
    assert same(made.load(CPU).network, network.state_dict())


def test_averaged_weights_and_what_is_left_out_are_said(tmp_path: Any, network: nn.Module) -> None:
    torch.save(WRAPPED["torchvision's script"](network), tmp_path / "w.pth")
    assert (
        "averaged weights (EMA) from model_ema, not model" in registry.get_model(f"resnet18,{tmp_path}/w.pth").remarks
    )
    torch.save({"state_dict_ema": network.state_dict()}, tmp_path / "w.pth")
    assert "averaged weights (EMA) from state_dict_ema" in registry.get_model(f"resnet18,{tmp_path}/w.pth").remarks
    torch.save(WRAPPED["Lightning with a loss"](network), tmp_path / "w.pth")
    assert "not used: criterion.weight" in registry.get_model(f"resnet18,{tmp_path}/w.pth").remarks


def test_a_network_that_is_there_twice_is_not_chosen_from(tmp_path: Any, network: nn.Module) -> None:
    other = copy.deepcopy(network)
    torch.save({"state_dict": {**prefixed("net.")(network), **prefixed("target.")(other)}}, tmp_path / "w.pth")
    made = registry.get_model(f"resnet18,{tmp_path}/w.pth")
    assert made.num_classes is None
    with pytest.raises(
        WeightsError, match=r"several state dicts: 'state_dict\.net', 'state_dict\.target', and no rule"
    ):
        made.load(CPU)
    torch.save({"student": network.state_dict(), "teacher": other.state_dict()}, tmp_path / "two.pth")
    with pytest.raises(WeightsError, match="several state dicts: 'student', 'teacher'"):
        loaded(f"resnet18,{tmp_path}/two.pth")


def test_a_count_of_classes_is_only_said_where_the_file_has_a_head(tmp_path: Any, network: nn.Module) -> None:
    bare = {name: value for name, value in network.state_dict().items() if not name.startswith("fc.")}
    for state in (bare, models.resnet50(num_classes=CLASSES).state_dict(), {"a": torch.zeros(1)}):
        torch.save(state, tmp_path / "w.pth")
        made = registry.get_model(f"resnet18,{tmp_path}/w.pth")
        assert made.num_classes is None
        with pytest.raises(WeightsError, match=rf"{tmp_path}/w\.pth does not fit the architecture"):
            made.load(CPU)


# What is no checkpoint --------------------------------------------------------------------------------------------


class Own:
    """A user's own class."""


def zipped(path: Any) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("photos/a.jpg", "x")


FILES = {
    "a page": (
        lambda path: path.write_text("<html>404"),
        "it is an HTML page instead of the file (begins with '<html>404')",
    ),
    "empty": (lambda path: path.write_bytes(b""), "the file is empty"),
    "Git LFS": (lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer"),
    "HDF5": (lambda path: path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(99)), "HDF5 file, as Keras"),
    "a ZIP": (zipped, "a ZIP archive that torch.save did not write"),
    "gzip": (lambda path: path.write_bytes(b"\x1f\x8b" + bytes(99)), "a gzip archive"),
    "NumPy": (lambda path: path.write_bytes(b"\x93NUMPY" + bytes(99)), "a NumPy array"),
    "noise": (lambda path: path.write_bytes(bytes(range(200, 256))), "begins with the bytes c8 c9 ca"),
    "damaged": (lambda path: damaged(path), "it is damaged, or was not written to its end"),
    "a folder": (lambda path: path.mkdir(), "is a folder without checkpoint files"),
    "a tensor": (lambda path: torch.save(torch.zeros(3), path), "it holds a tensor"),
    "other entries": (lambda path: torch.save({"epoch": 3}, path), "it has the entries 'epoch'"),
}
OBJECTS = {
    "a network": (lambda: nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
    "a path": (lambda: {"args": pathlib.PurePosixPath("/a")}, "pathlib.PurePosixPath"),
    "a counter": (lambda: {"seen": collections.deque([1])}, "collections.deque"),
    "one's own": (lambda: {"config": Own()}, f"{Own.__module__}.Own"),
    "an object array": (lambda: {"log": np.array([Own()], dtype=object)}, "numpy.dtype('O8')"),
}


def damaged(path: Any) -> None:
    torch.save({"a": torch.zeros(5000)}, path)
    path.write_bytes(path.read_bytes()[:3000])


@pytest.mark.parametrize("kind", FILES)
def test_what_was_found_is_said(tmp_path: Any, kind: str) -> None:
    write, said = FILES[kind]
    write(tmp_path / "w.pth")
    with pytest.raises(WeightsError) as caught:
        loaded(f"resnet18,{tmp_path}/w.pth")
    assert said in str(caught.value)
    assert "run code" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_that_is_refused_is_named(tmp_path: Any, network: nn.Module, kind: str) -> None:
    make, name = OBJECTS[kind]
    held = make()
    torch.save({"state_dict": network.state_dict(), **held} if isinstance(held, dict) else held, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=re.escape(f"it holds the object {name}")) as caught:
        loaded(f"resnet18,{tmp_path}/w.pth")
    assert "could run code" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_safetensors_is_read_whatever_it_is_called(tmp_path: Any, network: nn.Module) -> None:
    save_file(network.state_dict(), tmp_path / "w.pth")
    assert same(loaded(f"resnet18,{tmp_path}/w.pth"), network.state_dict())


@pytest.mark.parametrize(
    "content",
    [
        {"arch": "resnet18", "epoch": 3},
        {"args": argparse.Namespace(lr=0.1, model="resnet18")},
        {"config": {"stages": [{"net": "resnet18"}]}},
    ],
)
def test_a_file_alone_gets_the_architecture_that_it_names(tmp_path, content):
    path = tmp_path / "mine.pth"
    torch.save({"state_dict": {"fc.weight": torch.zeros(2, 2)}, **content}, path)
    said = CheckpointFamily().explain(str(path)) or ""
    assert f"write resnet18,{path} or timm/resnet18,{path}, which the file names;" in said
