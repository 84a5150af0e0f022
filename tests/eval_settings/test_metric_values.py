"""accuracy_topk against torch.topk, and what a setting's own metric may return."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tables import cases

from testbed.entities import Metric
from testbed.errors import DefinitionError
from testbed.eval_settings.base.metric import as_metrics
from testbed.eval_settings.eval_setting_base import Percent, accuracy_topk
from testbed.metric_specs import MAIN


def accuracy_of_imagenet_testbed(logits, targets, topk=(1, 5)):
    """Percent of samples whose target is among the k largest logits, the way ImageNet-testbed computes it."""
    _, predicted = logits.topk(max(topk), dim=1, largest=True, sorted=True)
    correct = predicted.t().eq(targets.view(1, -1).expand_as(predicted.t()))
    return {f"top{k}": correct[:k].reshape(-1).float().sum().item() * 100 / len(targets) for k in topk}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("topk", [(1, 5), (1,), (2, 3, 7)])
def test_accuracy_topk_equals_imagenet_testbeds_in_percent(dtype, topk):
    generator = torch.Generator().manual_seed(3)
    # Distinct multiples of 1/8: no ties, also after a conversion to float32.
    logits = torch.stack([torch.randperm(20, generator=generator) for _ in range(300)]).to(dtype) / 8
    targets = torch.randint(20, (300,), generator=generator)
    got = accuracy_topk(logits, targets, topk)
    expected = accuracy_of_imagenet_testbed(logits, targets, topk)
    assert got == pytest.approx(expected, abs=1e-4)
    assert list(got) == list(expected)
    assert all(isinstance(value, Percent) for value in got.values())


def test_accuracy_topk_by_hand_in_percent():
    logits = [[3.0, 2, 1, 0, -1, -2], [0, 1, 2, 3, 4, 5], [1, 5, 2, 3, 4, 0], [2, 1, 0, 5, 4, 3]]
    assert accuracy_topk(np.array(logits), np.array([0, 0, 2, 3])) == {"top1": 50.0, "top5": 75.0}


def test_accuracy_topk_takes_half_precision_tensors_and_numpy_arrays():
    logits, targets = torch.tensor([[1.0, 2.0, 0.0], [3.0, 0.0, 1.0]]), torch.tensor([1, 2])
    expected = {"top1": 50.0, "top2": 100.0}
    for values in (logits, logits.half(), logits.bfloat16(), logits.numpy(), logits.half().numpy()):
        assert accuracy_topk(values, targets, (1, 2)) == expected
    assert accuracy_topk(logits.numpy(), targets.numpy(), (1, 2)) == expected


def test_accuracy_topk_is_nan_where_it_is_not_defined():
    got = accuracy_topk(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert got["top1"] == 50
    assert math.isnan(got["top5"])
    assert math.isnan(accuracy_topk(torch.zeros(0, 10), torch.zeros(0, dtype=torch.long))["top1"])


# as_metrics -------------------------------------------------------------------------------------------------------


def only(returned, n=40):
    (metric,) = as_metrics({"m": returned}, n, "scorer", "setting")
    return metric


@cases(
    ("returned", "value"),
    [
        (0.25, 0.25),
        (7, 7.0),
        (-3.5, -3.5),
        (np.float32(0.25), 0.25),
        (np.float16(0.25), 0.25),
        (np.int64(7), 7.0),
        (np.array(0.25), 0.25),
        (torch.tensor(0.25), 0.25),
        (torch.tensor(7), 7.0),
        (torch.tensor([0.25]), 0.25),
    ],
)
def test_numbers_are_stored_as_they_are_without_a_unit(returned, value):
    metric = only(returned)
    assert metric == Metric("m", value, 40, None, "overall", "", "scorer", headline=MAIN)
    assert type(metric.value) is float


def test_a_pair_carries_its_unit():
    assert only((76.1, "percent")) == Metric("m", 76.1, 40, unit="percent", scorer="scorer", headline=MAIN)
    assert only((torch.tensor(2.5), "ms")).value == 2.5


def test_percent_is_stored_as_fractions_in_the_given_order():
    returned = accuracy_topk(torch.eye(6), torch.tensor([0, 1, 2, 0, 0, 0]))
    found = as_metrics({**returned, "a": Percent(76.5), 5: 3}, 6, "own", "setting")
    assert [each.name for each in found] == ["top1", "top5", "a", "5"]
    assert [each.unit for each in found] == ["fraction", "fraction", "fraction", ""]
    assert (found[0].value, found[2].value) == (pytest.approx(0.5), pytest.approx(0.765, abs=1e-15))
    assert type(found[2].value) is float


def test_metric_objects_keep_what_they_say_and_get_the_scorer():
    given = Metric("inner", 0.5, n=3, stderr=0.1, slice="cats", unit="points", scorer="somebody")
    assert as_metrics({"outer": given}, 40, "scorer", "setting") == [
        Metric("outer", 0.5, 3, 0.1, "cats", "points", "scorer")
    ]
    assert as_metrics([given, Metric("b", None)], 40, "scorer", "setting") == [
        Metric("inner", 0.5, 3, 0.1, "cats", "points", "scorer"),
        Metric("b", None, None, scorer="scorer", headline=MAIN),
    ]


@cases(
    "garbage",
    [None, "high", [0.1, 0.2], {"nested": 1}, object(), np.array([0.1, 0.2]), (0.5, "percent", 3), 1j,
     torch.tensor([0.1, 0.2]), "x" * 10_000],
)  # fmt: skip
def test_a_value_that_is_no_number_is_named(garbage):
    with pytest.raises(DefinitionError, match=r"setting: the metric 'm' is .* not a number") as caught:
        only(garbage)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("garbage", [None, 0.5, "top1", [], [0.5], [Metric("a", 1.0), 0.5], torch.tensor([1.0])])
def test_what_is_no_dictionary_is_refused(garbage):
    with pytest.raises(DefinitionError, match=r"setting: metrics_fn must return a dictionary"):
        as_metrics(garbage, 1, "scorer", "setting")
