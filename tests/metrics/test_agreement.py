"""Agreement, hardest samples and confusions, against scikit-learn, brute force and hand-computed cases."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix, jaccard_score

from testbed.metrics.classification import predicted_classes
from testbed.metrics.inference.agreement import (
    agreement,
    confusions,
    consistency_interval,
    hardest_first,
    mean_consistencies,
    most_common,
    right_counts,
    same_predictions,
)
from testbed.metrics.inference.paired import error_consistency
from testbed.metrics.inference.statistics import wilson


def test_agreement_is_scikit_learns():
    rng = np.random.default_rng(0)
    first, second = (rng.uniform(size=300) < 0.7).astype(float), (rng.uniform(size=300) < 0.4).astype(float)
    found = agreement(first, second)
    assert found.n == 300
    assert found.observed == pytest.approx((first == second).mean())
    assert found.expected == pytest.approx(first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean()))
    assert found.consistency == pytest.approx(cohen_kappa_score(first, second))
    assert found.overlap == pytest.approx(jaccard_score(1 - first, 1 - second))


def test_where_nothing_is_wrong_there_is_nothing_to_share():
    found = agreement(np.ones(1), np.ones(1))
    assert (found.observed, found.expected, found.consistency, found.overlap) == (1, 1, None, None)
    assert (found.consistency_low, found.consistency_high) == (None, None)


# Both right, only the first, only the second, both wrong; κ's limits by statsmodels 0.14's cohens_kappa of the table
# with one more in each cell.
LIMITS = {
    (500, 20, 10, 10): (0.20748466169621496, 0.5476640797225475),
    (52, 11, 9, 28): (0.38879465118231626, 0.7178043335892571),
    (529, 3, 0, 8): (0.5889006804533643, 0.9670901781819625),
}


def scores(counts):
    kinds = np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0).astype(float)
    return kinds[:, 0], kinds[:, 1]


@pytest.mark.parametrize("counts", LIMITS)
def test_intervals_are_those_of_statsmodels_and_wilson(counts):
    found = agreement(*scores(counts))
    assert (found.consistency_low, found.consistency_high) == pytest.approx(LIMITS[counts], rel=1e-9)
    expected = [float(each) for each in wilson((counts[0] + counts[3]) / sum(counts), sum(counts))]
    assert (found.observed_low, found.observed_high) == pytest.approx(expected)


def test_intervals_stay_within_what_kappa_can_be():
    assert consistency_interval(*scores((2, 0, 0, 2)))[1] == 1
    assert consistency_interval(*scores((0, 2, 2, 0)))[0] == -1


@pytest.mark.parametrize("counts", [(50, 12, 8, 20), (40, 0, 0, 10)])
def test_samples_that_are_there_several_times_add_nothing_once_they_are_clusters(counts):
    first, second = scores(counts)
    again, clusters = (np.repeat(first, 5), np.repeat(second, 5)), np.repeat(np.arange(len(first)), 5)
    once, as_if_alone, clustered = agreement(first, second), agreement(*again), agreement(*again, clusters)
    for ends in ("consistency_low", "consistency_high"):
        assert getattr(clustered, ends) == pytest.approx(getattr(once, ends), abs=0.01)
    assert clustered.consistency_low < as_if_alone.consistency_low - 0.05
    if once.observed < 1:
        assert clustered.observed_low == pytest.approx(once.observed_low, abs=0.01)
    one = agreement(first, second, np.zeros(len(first)))
    assert (one.consistency_low, one.observed_low) == (None, None)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("n", "repeats"), [(300, 1), (3000, 1), (1200, 4)])
@pytest.mark.parametrize(
    ("right", "kappa"),
    [
        ((0.98, 0.97), 0.2),
        ((0.98, 0.98), 0.6),
        ((0.95, 0.9), 0.3),
        ((0.8, 0.7), 0.3),
        ((0.9, 0.9), 0),
        ((0.7, 0.7), 0.85),
    ],
)
def test_intervals_have_the_true_values_in_95_percent(right, kappa, n, repeats):
    """Samples of the four kinds; in clusters 70 % of them are of the kind of their cluster."""
    one, other = right
    by_chance = one * other + (1 - one) * (1 - other)
    same = kappa * (1 - by_chance) + by_chance
    both = (same - 1 + one + other) / 2
    shares = [both, one - both, other - both, 1 - one - other + both]
    rng, clusters = np.random.default_rng(0), np.repeat(np.arange(n // repeats), repeats)
    holds, holds_same = [], []
    for _ in range(10_000):
        kinds = rng.choice(4, n, p=shares)
        if repeats > 1:
            kinds = np.where(rng.random(n) < 0.7, kinds[clusters * repeats], kinds)
        found = agreement((kinds < 2) * 1.0, (kinds % 2 == 0) * 1.0, clusters if repeats > 1 else None)
        holds_same.append(found.observed_low <= same <= found.observed_high)
        if found.consistency is not None:
            holds.append(found.consistency_low <= kappa <= found.consistency_high)
    rates = np.array([np.mean(holds), np.mean(holds_same)])
    print(f"n {n} in groups of {repeats}, right {right}, κ {kappa}: {100 * rates} % covered (κ, both right or wrong)")
    few_errors = repeats > 1 and kappa == 0.2  # shared by the two models, and in few groups
    assert rates.min() >= (0.88 if few_errors else 0.93)
    assert len(holds) > 9900


def test_predictions_of_samples_that_either_could_not_read_do_not_count():
    assert same_predictions(np.array([1, 2, -1, -1, 3]), np.array([1, 0, -1, 4, 3])) == pytest.approx(2 / 3)
    assert same_predictions(np.array([-1]), np.array([-1])) is None


def test_how_many_models_are_right():
    scores = np.array([[1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]], dtype=float)
    assert right_counts(scores).tolist() == [2, 0, 1, 1]
    rng = np.random.default_rng(1)
    scores = (rng.uniform(size=(200, 7)) < 0.6).astype(float)
    assert right_counts(scores).tolist() == [sum(sum(row) == k for row in scores) for k in range(8)]


def test_the_hardest_come_first():
    wrong = np.array([1, 3, 3, 0, 3, 3])
    nll = np.array([9.0, 1.0, np.nan, 0.1, 2.0, 1.0])
    assert hardest_first(wrong, nll).tolist() == [4, 1, 5, 2, 0, 3]


def test_the_most_common_class():
    assert most_common([3, 1, 3, -1, -1, -1]) == (3, 2)
    assert most_common([4, 2, 2, 4]) == (2, 2)
    assert most_common([-1]) is None


def test_predicted_classes_are_numpys_but_for_nan(monkeypatch):
    monkeypatch.setattr("testbed.metrics.classification._BLOCK", 7)
    logits = np.random.default_rng(0).integers(0, 4, (40, 5)).astype(np.float16)  # many ties
    assert predicted_classes(logits).tolist() == logits.argmax(axis=1).tolist()
    logits[3, 2] = np.nan
    logits[5] = -np.inf
    found = predicted_classes(logits)
    assert (found[3], found[5]) == (-1, 0)


def test_confusions_of_single_labels_are_scikit_learns():
    rng = np.random.default_rng(2)
    targets, predicted = rng.integers(0, 6, 500), rng.integers(0, 6, 500)
    pairs, totals = confusions(predicted, [[label] for label in targets])
    matrix = confusion_matrix(targets, predicted)
    assert pairs == Counter(
        {(true, other): int(matrix[true, other]) for true in range(6) for other in range(6) if true != other}
    )
    assert totals == Counter(targets.tolist())


def test_of_several_right_classes_each_is_confused_unless_one_is_predicted():
    predicted = np.array([1, 2, 2, 0, -1, 5])
    labels = [[1, 0], [0, 1], [1], [0], [0], []]
    pairs, totals = confusions(predicted, labels)
    assert pairs == {(0, 2): 1, (1, 2): 2}
    assert totals == {0: 3, 1: 3}


def test_confusions_of_nothing():
    assert confusions(np.array([0, -1]), [[0], [1]]) == ({}, {0: 1})
    assert confusions(np.array([0]), [[]]) == ({}, {})


# The mean with several others ----------------------------------------------------------------------------------------


def test_the_mean_with_others_is_the_mean_of_pairs_within_groups():
    rng = np.random.default_rng(0)
    right = (rng.random((300, 5)) < [0.9, 0.6, 0.7, 0.5, 0.8]).astype(float)
    groups = rng.integers(3, size=300)
    found = mean_consistencies(right, [1, 2, 4], groups)
    for model, each in enumerate(found):
        pairs = [
            error_consistency(right[groups == group, model], right[groups == group, other])
            for group in range(3)
            for other in (1, 2, 4)
            if other != model
        ]
        assert each.consistency == pytest.approx(np.mean(pairs))
        assert each.low < each.consistency < each.high
    alone = mean_consistencies(right, [1])
    assert alone[0].consistency == pytest.approx(error_consistency(right[:, 0], right[:, 1]))
    assert alone[1].consistency is None  # nobody to be compared with


def test_a_group_in_which_chance_always_agrees_does_not_count():
    right = np.array([[1, 1], [1, 1], [1, 0], [0, 0], [1, 1]], dtype=float)
    groups = np.array([0, 0, 1, 1, 1])
    expected = error_consistency(right[2:, 0], right[2:, 1])
    assert mean_consistencies(right, [1], groups)[0].consistency == pytest.approx(expected)
    assert mean_consistencies(np.ones((4, 2)), [1])[0].consistency is None


def test_intervals_of_the_mean_know_clusters():
    rng = np.random.default_rng(1)
    right = (rng.random((100, 3)) < 0.6).astype(float)
    again = np.repeat(right, 4, axis=0)
    width = [each.high - each.low for each in (
        mean_consistencies(right, [1, 2])[0],
        mean_consistencies(again, [1, 2])[0],
        mean_consistencies(again, [1, 2], clusters=np.repeat(np.arange(100), 4))[0],
    )]  # fmt: skip
    assert width[1] < 0.7 * width[0]
    assert width[2] == pytest.approx(width[0], rel=0.15)
