"""Networks that normalize their images themselves: the numbers in the file become the preprocessing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

from testbed.errors import WeightsError
from testbed.inputs import Inputs, Preprocessing, using
from testbed.models.loading import saved as saved_options
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2471, 0.2435, 0.2616)
State = dict[str, Any]


def tensors(numbers: tuple[float, ...], *shape: int) -> torch.Tensor:
    return torch.tensor(numbers).view(*(shape or (-1,)))


def below(prefix: str, state: State) -> State:
    return {f"{prefix}{name}": value for name, value in state.items()}


SAVED: dict[str, Callable[[State], Any]] = {
    "a first layer": lambda s: {
        "0.mean": tensors(MEAN, 1, 3, 1, 1),
        "0.std": tensors(STD, 1, 3, 1, 1),
        **below("1.", s),
    },
    "RobustBench": lambda s: {"mu": tensors(MEAN, 3, 1, 1), "sigma": tensors(STD, 3, 1, 1), **below("model.", s)},
    "robustness, whose attacker shares the network": lambda s: {
        "model": {
            "module.normalizer.new_mean": tensors(MEAN, 3, 1, 1),
            "module.normalizer.new_std": tensors(STD, 3, 1, 1),
            **below("module.model.", s),
            **below("module.attacker.model.", s),
            "module.attacker.normalize.new_mean": tensors(MEAN, 3, 1, 1),
            "module.attacker.normalize.new_std": tensors(STD, 3, 1, 1),
        },
        "epoch": 90,
    },
    "levels of 8 bits": lambda s: {
        "pixel_mean": tensors(tuple(255 * value for value in MEAN)),
        "pixel_std": tensors(tuple(255 * value for value in STD)),
        **below("backbone.", s),
    },
}


@pytest.fixture(scope="module")
def state() -> State:
    return dict(timm.create_model("test_resnet", num_classes=5).state_dict())


def saved(tmp_path: Path, content: Any) -> str:
    torch.save(content, tmp_path / "net.pth")
    return f"timm/test_resnet,{tmp_path}/net.pth"


@pytest.mark.parametrize("kind", SAVED)
def test_the_normalization_in_the_file_is_used_and_said(tmp_path: Path, state: State, kind: str) -> None:
    model: Any = registry.get_model(saved(tmp_path, SAVED[kind](state)))
    assert (model.normalization.mean, model.normalization.std) == (pytest.approx(MEAN), pytest.approx(STD))
    assert "in net.pth, the rest from the published weights" in model.preprocessing_from
    assert not [remark for remark in model.remarks if "mean" in remark or "mu" in remark]


def test_a_file_is_read_once_for_it(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    name = saved(tmp_path, SAVED["RobustBench"](state))
    first: Any = registry.get_model(name)
    opened: list[Any] = []
    monkeypatch.setattr(saved_options, "open_checkpoint", lambda *given, **_: opened.append(given))
    saved_options._opened.cache_clear()  # as a new process has it
    again: Any = registry.get_model(name)
    assert (again.normalization.mean, opened) == (first.normalization.mean, [])


def test_pixels_that_the_network_takes_as_they_are_are_not_normalized(tmp_path: Path, state: State) -> None:
    plain = {"norm.mean": torch.zeros(3), "norm.std": torch.ones(3), **below("net.", state)}
    model: Any = registry.get_model(saved(tmp_path, plain))
    assert (model.normalization.mean, model.normalization.std) == ([0, 0, 0], [1, 1, 1])


def test_the_command_line_comes_first_and_decides_between_two(tmp_path: Path, state: State) -> None:
    name = saved(tmp_path, {**SAVED["a first layer"](state), "2.mean": torch.zeros(3), "2.std": torch.ones(3)})
    with pytest.raises(WeightsError, match=r"several normalizations .*\(0\.mean 0\.4914 .*2\.mean .*--mean and --std"):
        registry.get_model(name)
    with using(Inputs(preprocessing=Preprocessing(mean=(0.5, 0.5, 0.5), std=(0.1, 0.1, 0.1)))):
        assert registry.get_model(name).normalization.mean == [0.5, 0.5, 0.5]  # type: ignore[attr-defined]


def test_other_small_tensors_are_not_a_normalization(tmp_path: Path, state: State) -> None:
    others = {"loss.mean": torch.tensor([-1.0, 2.0, 3.0]), "loss.std": torch.ones(3), "x.mean": torch.zeros(3)}
    plain: Any = registry.get_model("timm/test_resnet")
    model: Any = registry.get_model(saved(tmp_path, {**others, **below("net.", state)}))
    assert model.normalization.mean == plain.normalization.mean
    assert any(remark.startswith("not used: ") for remark in model.remarks)
