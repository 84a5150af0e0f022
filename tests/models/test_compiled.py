"""Networks that are compiled, or compute with the channels last: the same numbers up to rounding, and recorded."""

from __future__ import annotations

import shutil
from typing import ClassVar

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from toy import toy_catalog, toy_model, toy_setting
from toy_towers import everything, toy_encoder

from testbed.cli.eval import command
from testbed.db.store import Store
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.models.model_base import LoadOptions
from testbed.runner.run import run


class Convolutions(torch.nn.Module):
    """Notes the memory layout of what it is given."""

    layouts: ClassVar[set[bool]] = set()

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3))
        self.head = torch.nn.Linear(8, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling():
            self.layouts.add(images.is_contiguous(memory_format=torch.channels_last))
        return self.head(self.layers(images).mean((2, 3)))


def outputs(url, made, model, settings, **options):
    """The outputs of each setting, and the environment of the last."""
    assert run(made, RunOptions(db_url=url, executor="inline", **options), [model], settings, SilentProgress()).ok
    with Store.open(url) as store:
        found = [store.evaluations.find([model], [setting])[0] for setting in settings]
        arrays = [np.array(store.outputs.read(each.id, next(iter(store.outputs.kinds(each.id))))) for each in found]
        return arrays, found[-1].environment


def test_channels_last_changes_rounding_alone(tmp_path):
    made = toy_catalog(toy_model("conv", classifier_loader=Convolutions), toy_setting())
    (plain,), environment = outputs(str(tmp_path / "plain.db"), made, "conv", ["toy-all"])
    assert "channels_last" not in environment
    assert Convolutions.layouts == {False}
    Convolutions.layouts.clear()
    (last,), environment = outputs(str(tmp_path / "last.db"), made, "conv", ["toy-all"], channels_last=True)
    assert environment["channels_last"] is True
    assert Convolutions.layouts == {True}
    np.testing.assert_allclose(last, plain, atol=1e-5)


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a C++ compiler")
def test_compiled_networks_give_the_same_numbers_and_are_recorded(tmp_path):
    made = toy_catalog(toy_model("conv", classifier_loader=Convolutions), toy_setting(), toy_encoder(), *everything())
    for model, settings in (("conv", ["toy-all"]), ("tower", ["shown", "captions"])):
        plain, _ = outputs(str(tmp_path / f"{model}.db"), made, model, settings)
        compiled, environment = outputs(str(tmp_path / f"{model}-fast.db"), made, model, settings, compile=True)
        assert environment["compile"] is True
        for ours, theirs in zip(compiled, plain, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_networks_are_compiled_when_asked_for():
    fast, plain = LoadOptions(compile=True), LoadOptions()
    conv, tower = toy_model("conv", classifier_loader=Convolutions), toy_encoder()
    assert conv.load(fast).network._compiled_call_impl is not None
    assert conv.load(plain).network._compiled_call_impl is None
    for method in ("encode_image", "encode_text"):
        assert hasattr(getattr(tower.load(fast).network, method), "_torchdynamo_orig_callable")
        assert not hasattr(getattr(tower.load(plain).network, method), "_torchdynamo_orig_callable")


class Sizes(Convolutions):
    """Notes the sizes of the batches that it is given."""

    seen: ClassVar[set[int]] = set()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen.add(len(images))
        return super().forward(images)


def test_a_compiled_network_gets_batches_of_one_size(tmp_path, monkeypatch):
    """Else torch.compile would compile it again for the last batch: some minute for each model."""
    monkeypatch.setattr(torch.nn.Module, "compile", lambda network: None)
    made = toy_catalog(toy_model("conv", classifier_loader=Sizes), toy_setting())
    (plain,), _ = outputs(str(tmp_path / "plain.db"), made, "conv", ["toy-all"], batch_size=64)
    assert Sizes.seen == {64, 600 % 64}
    Sizes.seen.clear()
    (compiled,), _ = outputs(str(tmp_path / "fast.db"), made, "conv", ["toy-all"], batch_size=64, compile=True)
    assert Sizes.seen == {64}
    np.testing.assert_allclose(compiled, plain, atol=1e-5)


def test_compiling_without_a_compiler_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    done = CliRunner().invoke(command, ["--models", "digits-cnn", "--eval-settings", "digits", "--compile", "--no-db"])
    assert done.exit_code == 1
    assert "--compile needs a C++ compiler on the CPU (g++ or clang++), and none was found; install one" in str(
        done.output
    ) + str(done.exception)
