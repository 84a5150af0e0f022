"""Evaluation leaves a training loop's objects, and its process, as they were."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import testbed
from testbed.contracts.borrowed import Loan
from testbed.contracts.surroundings import configured
from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.base.definition import LoadOptions
from testbed.models.base.runtime import prepared
from testbed.models.model_base import Model, StandardTransform

pytestmark = pytest.mark.usefixtures("shared_cache")


def small() -> nn.Sequential:
    """With dropout and batch norm, which differ between the modes."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5), nn.Linear(256, 10)
    )


class FrozenNorm(nn.Sequential):
    """Its batch norm stays in evaluation mode, as fine-tuning often has it."""

    def train(self, mode: bool = True) -> FrozenNorm:
        super().train(mode)
        self[1].eval()
        for parameter in self[1].parameters():
            parameter.requires_grad_(False)
        return self


class Adapter(nn.Linear):
    """Merges its adapter into its weights in evaluation mode, as LoRA's layers do."""

    def __init__(self) -> None:
        super().__init__(256, 10)
        self.extra = nn.Parameter(torch.ones(10, 256))
        self.merged = False

    def train(self, mode: bool = True) -> Adapter:
        super().train(mode)
        if mode == self.merged:
            self.weight.data += -self.extra.data if mode else self.extra.data
            self.merged = not mode
        return self

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return super().forward(values) if self.merged else super().forward(values) + values @ self.extra.T


def frozen_norm() -> nn.Module:
    return FrozenNorm(*small()).train()


def adapted() -> nn.Module:
    return nn.Sequential(*list(small())[:5], Adapter())


def partly_frozen() -> nn.Module:
    network = small()
    network[0].weight.requires_grad_(False)
    network[1].eval()
    return network


NUMBERS = itertools.count()


def definition(network: Any, name: str = "mine", **options: Any) -> Model:
    return Model(
        f"{name}-{next(NUMBERS)}",
        StandardTransform(32, 32),
        classifier_loader=lambda: network,
        eval_batch_size=20,
        **options,
    )


def evaluate(models: Any, db: Any, settings: Any = "digits", **options: Any) -> testbed.Results:
    return testbed.evaluate(
        models, settings, db=str(db), limit=20, executor="inline", workers=0, progress=False, **options
    )


def train(network: nn.Module, between: Callable[[], Any]) -> list[torch.Tensor]:
    """Some steps of training, with something between each two; returns losses, weights and momenta."""
    optimizer = torch.optim.SGD([each for each in network.parameters() if each.requires_grad], 0.1, momentum=0.9)
    found = []
    for _ in range(3):
        loss = nn.functional.cross_entropy(network(torch.rand(8, 3, 32, 32)), torch.randint(10, (8,)))
        optimizer.zero_grad()
        loss.backward()
        between()
        optimizer.step()
        found.append(loss.detach())
    moments = [each["momentum_buffer"] for each in optimizer.state.values()]
    return [*found, *(each.clone() for each in network.state_dict().values()), *moments]


@pytest.mark.parametrize("make", [small, frozen_norm, partly_frozen, adapted])
def test_training_goes_on_as_if_nothing_had_been_evaluated(tmp_path, make):
    runs = []
    for number, evaluating in enumerate((False, True)):
        torch.manual_seed(1)
        network = make()
        flags = [(each.training, each._forward_hooks) for each in network.modules()]
        model = definition(network)

        def between(model: Model = model, number: int = number, evaluating: bool = evaluating) -> None:
            if evaluating:
                assert evaluate(model, tmp_path / f"{number}.db").failed.empty

        runs.append(train(network, between))
        assert flags == [(each.training, each._forward_hooks) for each in network.modules()]
    rounding = 1e-5 if make is adapted else 0  # of merging
    for expected, found in zip(*runs, strict=True):
        torch.testing.assert_close(found, expected, rtol=rounding, atol=rounding)


def test_a_backbone_under_another_head_goes_on_learning(tmp_path):
    network, head = small(), nn.Linear(10, 10)
    optimizer = torch.optim.SGD([*network.parameters(), *head.parameters()], 0.1)

    def changed() -> int:
        before = [each.detach().clone() for each in network.parameters()]
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(network(torch.rand(8, 3, 32, 32))), torch.arange(8)).backward()
        optimizer.step()
        return sum(not torch.equal(old, new) for old, new in zip(before, network.parameters(), strict=True))

    first = changed()
    evaluate(definition(network), tmp_path / "a.db")
    assert changed() == first > 0


class Failing(nn.Module):
    def __init__(self, error: type[BaseException]) -> None:
        super().__init__()
        self.inner, self.error = small(), error

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if not self.training:
            raise self.error("in the middle")
        return self.inner(images)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_also_if_evaluation_ends_in_the_middle(tmp_path, error):
    network = Failing(error)
    try:
        found = evaluate(definition(network), tmp_path / "a.db")
        assert error is not KeyboardInterrupt
        assert len(found.failed) == 1
    except KeyboardInterrupt:
        assert error is KeyboardInterrupt
    assert all(each.training for each in network.modules())
    assert all(each.requires_grad for each in network.parameters())
    assert torch.is_grad_enabled()
    assert Loan._open == []


def test_an_attack_leaves_no_gradients(tmp_path):
    def towards(images, model, targets):
        images = images.clone().requires_grad_(True)
        nn.functional.cross_entropy(model(images), targets).backward()
        return images.detach() + 0.01 * images.grad.sign()

    attack = EvalSetting(
        "attacked-digits", DigitsDataset("test"), size=540, perturbation_fn_gpu=towards, adversarial_attack={"a": 1}
    )
    network = small()
    assert evaluate(definition(network), tmp_path / "a.db", attack).failed.empty
    assert all(each.grad is None and each.requires_grad for each in network.parameters())


def test_two_models_of_one_network_share_it_until_both_are_done(tmp_path):
    network = small()
    wider = nn.Sequential(network, nn.Softplus())
    models = [definition(network, "bare"), definition(wider, "wider"), definition(network, "again")]
    together = evaluate(models, tmp_path / "a.db").frame
    assert all(each.training for each in wider.modules())
    for model in models:
        alone = evaluate(model, tmp_path / f"{model.name}.db").frame
        mine = together[together.model == model.name]
        assert list(mine.value) == list(alone.value)


def test_loans_of_shared_networks_end_in_any_order():
    for order in ((0, 1), (1, 0)):
        network = small()
        loans = [Loan(), Loan()]
        for loan in loans:
            with loan.taking():
                prepared(network, LoadOptions())
        loans[order[0]].end()
        assert not network.training
        loans[order[1]].end()
        assert network.training
        assert all(each.requires_grad for each in network.parameters())


def test_layout_device_and_compiled_calls_are_put_back():
    network = small()
    before = [(each, each.data_ptr(), each.stride()) for each in network.parameters()]
    buffers = dict(network.named_buffers())
    loan = Loan()
    with loan.taking():
        prepared(network, LoadOptions(device="meta", compile=True, channels_last=True))
    assert {each.device.type for each in network.parameters()} == {"meta"}
    loan.end()
    assert [(each, each.data_ptr(), each.stride()) for each in network.parameters()] == before
    assert all(buffers[name] is each for name, each in network.named_buffers())
    assert network._compiled_call_impl is None


def test_nothing_is_kept_of_a_network_without_a_loan():
    network = prepared(small(), LoadOptions())
    assert not network.training
    assert Loan._open == []


class Weighted(nn.Module):
    """Uses the weights of a part without calling it, so that a trace has no forward method for that."""

    def __init__(self, network):
        super().__init__()
        self.network, self.part = network, nn.Linear(1, 1)

    def forward(self, images):
        return self.network(images) * self.part.weight.sum()


@pytest.mark.parametrize("kind", ["compiled", "scripted", "traced", "partly traced", "exported"])
def test_other_kinds_of_networks(tmp_path, kind):
    network: Any = small()
    example = torch.rand(20, 3, 32, 32)
    if kind == "compiled":
        network = torch.compile(network, backend="eager")
    elif kind == "scripted":
        network = torch.jit.script(network)
    elif kind == "traced":
        network = torch.jit.trace(network.eval(), example)
    elif kind == "partly traced":
        network = torch.jit.trace(Weighted(network).eval(), example)
    else:
        shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
        network = torch.export.export(network.eval(), (example,), dynamic_shapes=shapes).module()
    before = [each.training for each in network.modules()], [each.requires_grad for each in network.parameters()]
    model = definition(network, architecture={"kind": kind}, weights="given")
    found = evaluate(model, tmp_path / "a.db")
    assert found.failed.empty, found.failed.reason.tolist()
    after = [each.training for each in network.modules()], [each.requires_grad for each in network.parameters()]
    assert after == before


def test_a_program_exported_in_training_mode_is_refused(tmp_path):
    example = torch.rand(20, 3, 32, 32)
    network = torch.export.export(small().train(), (example,)).module()
    model = definition(nn.Sequential(network), architecture={"kind": "exported"}, weights="given")
    reason = evaluate(model, tmp_path / "a.db").failed.reason.item()
    assert "call network.eval() before torch.export.export" in reason


def state() -> dict[str, Any]:
    """All that a run could change in this process."""
    backends = torch.backends
    return {
        "random": random.getstate(),
        "numpy": [str(each) for each in np.random.get_state()],
        "torch": torch.get_rng_state().tolist(),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")),
        "threads": torch.get_num_threads(),
        "dtype": (torch.get_default_dtype(), torch.get_default_device()),
        "precision": torch.get_float32_matmul_precision(),
        "cudnn": (backends.cudnn.allow_tf32, backends.cudnn.benchmark, backends.cudnn.deterministic),
        "matmul": backends.cuda.matmul.allow_tf32,
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "path": list(sys.path),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
    }


def test_the_process_is_as_it_was(tmp_path):
    evaluate("digits-logreg", tmp_path / "first.db")  # imports what it needs
    model = definition(small())
    torch.manual_seed(5)
    random.seed(6)
    np.random.seed(7)
    before = state()
    evaluate(model, tmp_path / "a.db", ["digits", "digits-c.gaussian_noise.1"])
    assert state() == before


@pytest.mark.parametrize(
    "surrounding",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.inference_mode(),
        lambda: torch.no_grad(),
        lambda: torch.device("meta"),
    ],
)
def test_numbers_do_not_depend_on_the_block_around_the_call(tmp_path, surrounding):
    network = small()
    expected = evaluate(definition(network), tmp_path / "a.db", "digits-c.gaussian_noise.1")
    with surrounding():
        before = {key: value for key, value in state().items() if key != "random"}
        found = evaluate(definition(network), tmp_path / "b.db", "digits-c.gaussian_noise.1")
        assert {key: value for key, value in state().items() if key != "random"} == before
    assert list(found.frame.value) == list(expected.frame.value)


def test_a_network_that_was_made_in_inference_mode_is_evaluated_there(tmp_path):
    with torch.inference_mode():
        network = small()
        found = evaluate(definition(network), tmp_path / "a.db", "digits-c.gaussian_noise.1")
        assert all(parameter.requires_grad for parameter in network.parameters())
    plain = small()
    plain.load_state_dict({name: value.clone() for name, value in network.state_dict().items()})
    expected = evaluate(definition(plain), tmp_path / "b.db", "digits-c.gaussian_noise.1")
    assert list(found.frame.value) == list(expected.frame.value)


def test_settings_of_torch_are_put_back_after_an_error():
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    torch.set_default_dtype(torch.float64)
    torch.backends.cudnn.benchmark = True
    try:
        with pytest.raises(ValueError, match=r"highest torch\.float32"), configured("cpu", threads + 1):
            raise ValueError(f"{torch.get_float32_matmul_precision()} {torch.get_default_dtype()}")
        assert torch.get_float32_matmul_precision() == "medium"
        assert torch.get_default_dtype() == torch.float64
        assert torch.backends.cudnn.benchmark
        assert torch.get_num_threads() == threads
    finally:
        torch.set_float32_matmul_precision(precision)
        torch.set_default_dtype(torch.float32)
        torch.backends.cudnn.benchmark = False


def test_precisions_that_were_set_backend_by_backend_are_kept():
    code = (
        "import torch\n"
        "from testbed.contracts.surroundings import configured\n"
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'\n"
        "torch.backends.cudnn.conv.fp32_precision = 'ieee'\n"
        "with configured('cpu', 1):\n"
        "    assert torch.backends.cuda.matmul.fp32_precision == 'ieee'\n"
        "print(torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision)\n"
    )
    if not hasattr(torch.backends.cudnn, "conv"):
        pytest.skip("this torch has only the older settings")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tf32", "ieee"]
