"""Which entry of a checkpoint has the weights: found by what it holds, chosen by a rule that is said, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from testbed.errors import WeightsError
from testbed.inputs import Inputs, using
from testbed.models.checkpoint import checkpoint_model
from testbed.models.checkpoints.entries import is_averaged
from testbed.models.loading.checkpoint_network import other_entries
from testbed.models.model_base import LoadOptions
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")
CPU = LoadOptions("cpu")
ARCH = "timm/test_resnet"
State = dict[str, torch.Tensor]


def network(seed: int, name: str = "test_resnet", **arguments: Any) -> nn.Module:
    torch.manual_seed(seed)
    return timm.create_model(name, num_classes=5, **arguments).eval()


@pytest.fixture(scope="module")
def good() -> nn.Module:
    """The network that is meant."""
    return network(1)


@pytest.fixture(scope="module")
def bad() -> State:
    """Weights of the same shapes that are not meant."""
    return network(2).state_dict()


def below(prefix: str, state: State) -> State:
    return {f"{prefix}{name}": value for name, value in state.items()}


def moments(state: State) -> State:
    return {name: torch.zeros_like(value) for name, value in state.items()}


# What a training script saves → the entry that is taken, and the words about it.
SAVED = {
    "RT-DETR": (lambda g, b: {"model": b, "ema": {"module": g, "updates": 9}}, "ema.module", "not model"),
    "lucidrains, two entries": (lambda g, b: {"model": b, "ema_model": g}, "ema_model", "not model"),
    "lucidrains, one state dict": (
        lambda g, b: {**below("online_model.", b), **below("ema_model.", g), "step": torch.tensor(3)},
        "ema_model",
        "not online_model",
    ),
    "BasicSR": (lambda g, b: {"params": b, "params_ema": g}, "params_ema", "not params"),
    "ultralytics": (lambda g, b: {"epoch": 3, "model": b, "ema": g}, "ema", "not model"),
    "SWA": (lambda g, b: {"model": b, "swa": {"averaged": below("module.", g)}}, "swa.averaged", "not model"),
    "Lightning's callback": (
        lambda g, b: {
            "state_dict": below("model.", b),
            "callbacks": {"EMACallback": {"ema_state_dict": below("model.", g)}},
        },
        "callbacks.EMACallback.ema_state_dict",
        "not state_dict",
    ),
    "Lightning, both in one": (
        lambda g, b: {"state_dict": {**below("model.", b), **below("model_ema.module.", g)}},
        "state_dict.model_ema.module",
        "not state_dict.model",
    ),
    "two levels down": (
        lambda g, b: {"checkpoint": {"weights": {"model": b, "model_ema": g}}},
        "checkpoint.weights.model_ema",
        "not checkpoint.weights.model",
    ),
    "a list": (lambda g, b: {"networks": [{"average": g}, {"last": b}]}, "networks.0.average", "not networks.1.last"),
    "DeiT": (lambda g, b: {"model": b, "model_ema": g, "optimizer": moments(g)}, "model_ema", "not model"),
}


@pytest.mark.parametrize("kind", SAVED)
def test_averaged_weights_are_found_wherever_they_are_and_said(
    tmp_path: Path, pictures: Any, good: nn.Module, bad: State, kind: str
) -> None:
    make, entry, instead = SAVED[kind]
    torch.save(make(good.state_dict(), bad), tmp_path / "w.pth")
    made = registry.get_model(f"{ARCH},{tmp_path}/w.pth")
    assert made.num_classes == 5
    assert any(entry in each and instead in each and "averaged" in each for each in made.remarks), made.remarks
    image = made.transform(pictures[0])[None]
    with torch.no_grad():
        torch.testing.assert_close(made.load(CPU).logits(image), good(made.normalization(image)), rtol=1e-4, atol=1e-5)


def test_an_average_that_torch_made_is_found(tmp_path: Path, good: nn.Module, bad: State) -> None:
    torch.save({"net": bad, "averaged_model": AveragedModel(good).state_dict()}, tmp_path / "w.pth")
    made = registry.get_model(f"{ARCH},{tmp_path}/w.pth")
    assert "averaged weights (EMA) from averaged_model, not net" in made.remarks
    assert same(made.load(CPU).network, good)


def same(loaded: nn.Module, wanted: nn.Module) -> bool:
    state = wanted.state_dict()
    return all(torch.equal(value, state[name]) for name, value in loaded.state_dict().items())


@pytest.mark.parametrize(
    ("path", "averaged"),
    [
        ("ema.module", True),
        ("modelEMA", True),
        ("EMACallback.state", True),
        ("swa_model", True),
        ("averaged", True),
        ("model", False),
        ("schema", False),  # the letters alone mean nothing
        ("avgpool", False),
        ("teacher", False),
    ],
)
def test_an_average_is_recognised_by_its_words(path: str, averaged: bool) -> None:
    assert is_averaged(path) is averaged


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda state: {"exp_avg": state, "exp_avg_sq": state},
        lambda state: {"state": {name: {"exp_avg": value} for name, value in state.items()}},
        lambda state: {"state": {"momentum_buffer": state}},
    ],
)
@pytest.mark.parametrize("entry", ["optimizer", "optim_ema", "gan_optimizers"])
def test_moments_of_an_optimizer_are_never_taken(tmp_path: Path, good: nn.Module, optimizer: Any, entry: str) -> None:
    torch.save({"net": good.state_dict(), entry: optimizer(moments(good.state_dict()))}, tmp_path / "w.pth")
    made = registry.get_model(f"{ARCH},{tmp_path}/w.pth")
    assert made.remarks == ()
    assert same(made.load(CPU).network, good)


def test_an_optimizer_is_refused_by_name_and_alone(tmp_path: Path, good: nn.Module) -> None:
    held = {"exp_avg": moments(good.state_dict())}
    torch.save({"net": good.state_dict(), "optimizer": held}, tmp_path / "w.pth")
    made = checkpoint_model("m", ARCH, tmp_path / "w.pth", weights_entry="optimizer.exp_avg")
    with pytest.raises(WeightsError, match="belongs to an optimizer"):
        made.load(CPU)
    torch.save({"optimizer": held}, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"no state dict.*'optimizer\.exp_avg' are of an optimizer"):
        registry.get_model(f"{ARCH},{tmp_path}/w.pth").load(CPU)


def test_what_fits_the_architecture_is_taken(tmp_path: Path, good: nn.Module) -> None:
    """A teacher with more layers has all names of its student, and some more."""
    student = network(1, "resnet18")
    torch.save({"teacher": network(2, "resnet34").state_dict(), "student": student.state_dict()}, tmp_path / "w.pth")
    made = registry.get_model(f"timm/resnet18,{tmp_path}/w.pth")
    assert "weights from student, not teacher (it fits the architecture best)" in made.remarks
    assert same(made.load(CPU).network, student)


def test_of_two_that_no_rule_decides_between_none_is_taken(tmp_path: Path, good: nn.Module, bad: State) -> None:
    torch.save({"student": below("module.", bad), "teacher": good.state_dict(), "epoch": 1}, tmp_path / "w.pth")
    name = f"{ARCH},{tmp_path}/w.pth"
    with pytest.raises(WeightsError, match=r"several state dicts: 'student', 'teacher'.*--weights-entry NAME"):
        registry.get_model(name).load(CPU)
    with using(replace(Inputs(), weights_entry="teacher")):
        made = registry.get_model(name)
    assert made.remarks == ("weights from teacher, not student (as --weights-entry says)",)
    assert same(made.load(CPU).network, good)
    assert other_entries(made) == ("student",)


def test_an_entry_is_chosen_by_name_and_is_part_of_the_identity(tmp_path: Path, good: nn.Module, bad: State) -> None:
    path = tmp_path / "w.pth"
    torch.save({"model": bad, "ema": {"module": good.state_dict()}}, path)
    usual = checkpoint_model("m", ARCH, path)
    plain = checkpoint_model("m", ARCH, path, weights_entry="model")
    short = checkpoint_model("m", ARCH, path, weights_entry="ema")  # which leads to one entry only
    assert same(usual.load(CPU).network, good)
    assert same(short.load(CPU).network, good)
    assert torch.equal(plain.load(CPU).network.state_dict()["fc.weight"], bad["fc.weight"])
    assert usual.spec() == short.spec()
    assert plain.spec()["network"] == {"checkpoint": ARCH}  # as stored results have it
    assert usual.spec()["network"] == {"checkpoint": ARCH, "entry": "ema.module"}
    with pytest.raises(WeightsError, match=r"'swa' is not one of its entries with weights \('model', 'ema\.module'\)"):
        checkpoint_model("m", ARCH, path, weights_entry="swa").load(CPU)


def test_a_word_that_leads_to_several_entries_is_refused(tmp_path: Path, good: nn.Module, bad: State) -> None:
    torch.save({"ema": {"fast": bad, "slow": good.state_dict()}}, tmp_path / "w.pth")
    made = checkpoint_model("m", ARCH, tmp_path / "w.pth", weights_entry="ema")
    with pytest.raises(WeightsError, match=r"'ema' stands for several entries: 'ema\.fast', 'ema\.slow'"):
        made.load(CPU)


def test_defining_a_model_reads_no_file(tmp_path: Path) -> None:
    made = checkpoint_model("m", ARCH, tmp_path / "missing.pth", weights_entry="ema")
    assert made.spec()["network"] == {"checkpoint": ARCH}


def test_without_an_architecture_usual_names_come_before_larger_entries(tmp_path: Path) -> None:
    from testbed.models.loading.checkpoint_file import load_state_dict

    small, large = {"a": torch.ones(1)}, {str(place): torch.zeros(1) for place in range(9)}
    torch.save({"state_dict": small, "features": large}, tmp_path / "w.pth")
    assert load_state_dict(tmp_path / "w.pth").keys() == small.keys()
