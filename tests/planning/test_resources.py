"""On which devices a run goes, and with how many processes."""

from __future__ import annotations

import pytest
import torch

from testbed.errors import RunError
from testbed.execution import resources
from testbed.execution.resources import choose_resources
from testbed.graph.options import RunOptions
from testbed.models.base.definition import PRECISIONS, LoadOptions
from testbed.models.base.runtime import autocast


@pytest.fixture
def gpus(monkeypatch):
    """A machine with two GPUs and 48 processors, or so it seems."""
    monkeypatch.setattr(resources, "visible_gpus", lambda: 2)
    monkeypatch.setattr(resources, "cores", lambda: 48)
    capability = [(9, 0)]
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability[0])
    return capability


def test_each_gpu_has_its_share_of_the_processors_for_decoding(gpus):
    chosen = choose_resources(RunOptions())
    assert (chosen.devices, chosen.data_workers, chosen.threads) == (["cuda:0", "cuda:1"], 16, 24)
    assert choose_resources(RunOptions(gpus=(0,) * 8)).data_workers == 6


def test_a_gpu_may_be_named_twice_for_two_processes(gpus):
    assert choose_resources(RunOptions(gpus=(0, 0))).devices == ["cuda:0", "cuda:0"]


def test_a_gpu_that_is_not_there_is_refused(gpus):
    with pytest.raises(RunError, match=r"--gpus 2: torch sees 2 \(numbered from 0\)"):
        choose_resources(RunOptions(gpus=(0, 2)))


def test_tensor_float_32_is_refused_where_there_is_none(gpus):
    assert choose_resources(RunOptions(dtype="tf32")).devices == ["cuda:0", "cuda:1"]
    gpus[0] = (7, 5)
    with pytest.raises(RunError, match="this run would use cuda:0, which has no TensorFloat-32; use --dtype float32"):
        choose_resources(RunOptions(dtype="tf32"))
    with pytest.raises(RunError, match="this run would use cpu"):
        choose_resources(RunOptions(dtype="tf32", cpu_processes=1))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_tensor_float_32_is_used_within_forward_passes_of_that_precision_alone(dtype):
    switches = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [each.allow_tf32 for each in switches]
    for each in switches:
        each.allow_tf32 = False
    try:
        with autocast(LoadOptions("cuda", dtype)):
            assert {each.allow_tf32 for each in switches} == {dtype == "tf32"}
        assert {each.allow_tf32 for each in switches} == {False}
        switches[1].allow_tf32 = True  # as by default, in a user's own process
        with autocast(LoadOptions("cuda")):
            assert {each.allow_tf32 for each in switches} == {False}
        assert switches[1].allow_tf32
    finally:
        for each, allowed in zip(switches, before, strict=True):
            each.allow_tf32 = allowed
