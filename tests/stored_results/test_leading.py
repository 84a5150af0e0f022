"""One sentence on the best models by their values alone."""

from __future__ import annotations

from testbed.metric_specs import MetricSpec
from testbed.stored_results.leading import in_order


def test_the_best_are_in_order_and_a_single_model_is_compared_with_none():
    top1, nll = MetricSpec("top1", "fraction", better="higher"), MetricSpec("nll", "nats", better="lower")
    untested = "so the differences are not tested"
    said = in_order([("a", 0.5), ("b", 0.75)], top1, published=True)
    assert said == f"highest top1: b 75.00 %, a 50.00 %; these values are published, {untested}"
    assert in_order([("a", 0.5), ("b", 0.75)], nll, published=False).startswith("lowest nll: a 0.5000, b 0.7500; ")
    assert in_order([("a", 0.5)], top1, published=False) == "a 50.00 % (top1)"
    assert in_order([("a", 0.5)], MetricSpec("other"), published=False) == ""
