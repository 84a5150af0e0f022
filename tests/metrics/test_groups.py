"""Means of groups, against pandas, scikit-learn and hand-computed cases."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from sklearn.metrics import balanced_accuracy_score

from testbed.metrics.inference.groups import by_group
from testbed.metrics.inference.statistics import wilson


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 30), (7, 30), (30, 30), (481, 1000)])
def test_wilsons_interval_is_scipys(successes, n):
    theirs = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes / n, n) == (pytest.approx(theirs.low, abs=1e-12), pytest.approx(theirs.high, abs=1e-12))


def test_a_hand_case():
    found = by_group(np.array([1, 0, 1, 1, 0, 0]), ["b", "b", "a", "a", "c", None])
    assert (found.n, found.ungrouped) == (5, 1)
    assert found.mean == pytest.approx(3 / 5)
    assert found.balanced == pytest.approx((1 + 0.5 + 0) / 3)
    assert [(each.name, each.n, each.value) for each in found.groups] == [("a", 2, 1), ("b", 2, 0.5), ("c", 1, 0)]
    assert (found.worst.name, found.best.name, found.gap) == ("c", "a", 1)
    assert (found.worst.low, found.worst.high) == wilson(0, 1)


def test_means_are_those_of_pandas_and_balanced_accuracy_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    targets, predicted = rng.integers(0, 9, 400), rng.integers(0, 2, 400)
    predicted = np.where(predicted == 1, targets, 0)
    right = (predicted == targets).astype(float)
    found = by_group(right, [f"class {label}" for label in targets])
    frame = pd.DataFrame({"right": right, "group": targets}).groupby("group")["right"]
    assert [each.value for each in found.groups] == pytest.approx(frame.mean().tolist())
    assert [each.n for each in found.groups] == frame.size().tolist()
    assert found.balanced == pytest.approx(balanced_accuracy_score(targets, predicted))
    assert found.worst.value == frame.mean().min()


def test_of_a_loss_the_worst_group_is_the_largest():
    losses = np.array([0.1, 0.3, 2.0, 4.0, 1.0])
    found = by_group(losses, ["a", "a", "b", "b", "c"], larger_is_better=False)
    assert (found.worst.name, found.best.name) == ("b", "a")
    assert found.gap == pytest.approx(2.8)
    half = scipy.stats.t.ppf(0.975, 1) * scipy.stats.sem([2.0, 4.0])
    assert (found.worst.low, found.worst.high) == (pytest.approx(3 - half), pytest.approx(3 + half))
    (alone,) = [each for each in found.groups if each.name == "c"]
    assert (alone.low, alone.high) == (None, None)


def test_of_equal_groups_the_first_by_name_is_named():
    found = by_group(np.array([1, 1, 0, 0]), ["d", "c", "b", "a"])
    assert (found.worst.name, found.best.name) == ("a", "c")
    found = by_group(np.array([1.0]), ["only"])
    assert (found.worst, found.gap) == (found.best, 0)


@pytest.mark.parametrize(("scores", "labels"), [([1], [None]), ([], []), ([1, 0], ["a"])])
def test_what_has_no_groups_is_refused(scores, labels):
    with pytest.raises(ValueError, match="expected"):
        by_group(np.array(scores), labels)
