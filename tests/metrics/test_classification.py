"""Top-k accuracy: against scikit-learn where nothing ties, against a stable sort where something does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support, top_k_accuracy_score
from tables import cases

from testbed.metrics import classification
from testbed.metrics.classification import NEVER, f1_of_classes, target_ranks, topk_correct


def ranks_by_stable_sort(logits, targets):
    """The definition: descending logits, ties by ascending class; -0.0 and 0.0 tie."""
    order = np.argsort(-logits.astype(np.float64), axis=1, kind="stable")
    return np.array([list(row).index(target) for row, target in zip(order, targets, strict=True)])


@cases("classes", [3, 10, 100])
@cases("k", [1, 2, 5])
@cases("dtype", [np.float32, np.float64])
def test_topk_equals_scikit_learn_on_random_logits(classes, k, dtype):
    rng = np.random.default_rng(classes)
    logits = rng.normal(size=(500, classes)).astype(dtype)
    targets = rng.integers(classes, size=500)
    got = topk_correct(target_ranks(logits, targets), k).mean()
    if k >= classes:
        assert got == 1
    else:
        assert got == pytest.approx(top_k_accuracy_score(targets, logits, k=k, labels=range(classes)), abs=1e-12)


@pytest.mark.parametrize("values", [2, 3, 7])
def test_ranks_equal_a_stable_sort_when_many_logits_tie(values):
    rng = np.random.default_rng(values)
    logits = rng.integers(values, size=(400, 12)).astype(np.float32)
    targets = rng.integers(12, size=400)
    np.testing.assert_array_equal(target_ranks(logits, targets), ranks_by_stable_sort(logits, targets))


def test_infinite_logits_are_ranked_like_others():
    inf = np.inf
    logits = np.array([[inf, 0, -inf], [-inf, -inf, 0], [inf, inf, 1]])
    assert target_ranks(logits, np.array([0, 1, 1])).tolist() == [0, 2, 1]


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_row_with_nan_is_wrong_for_every_k(where):
    logits = np.array([[5.0, 1.0, 0.0], [5.0, 1.0, 0.0]])
    logits[0, where] = np.nan
    ranks = target_ranks(logits, np.array([0, 0]))
    assert ranks.tolist() == [NEVER, 0]
    for k in (1, 2, 3, 5):
        assert topk_correct(ranks, k).tolist() == [False, True]


def test_single_sample_and_single_class():
    assert target_ranks(np.array([[0.1, 0.7, 0.2]]), np.array([2])).tolist() == [1]
    assert target_ranks(np.array([[-3.0], [8.0]]), np.array([0, 0])).tolist() == [0, 0]


def test_no_samples_give_no_ranks():
    ranks = target_ranks(np.empty((0, 5), dtype=np.float32), np.empty(0, dtype=np.int64))
    assert ranks.shape == (0,)
    assert np.issubdtype(ranks.dtype, np.integer)


@pytest.mark.parametrize("offset", [-1, 0, 1, 700])
def test_float16_and_more_rows_than_a_block(offset, monkeypatch):
    monkeypatch.setattr(classification, "_BLOCK", 9 * 1000)  # logits
    n = 2 * 1000 + offset
    rng = np.random.default_rng(abs(offset))
    # Multiples of 1/8 in float16 are exact, and tie often.
    logits = (rng.integers(-40, 40, size=(n, 9)) / 8).astype(np.float16)
    targets = rng.integers(9, size=n)
    np.testing.assert_array_equal(target_ranks(logits, targets), ranks_by_stable_sort(logits, targets))


def test_nan_rows_are_found_in_every_block():
    n = 2 * classification._BLOCK + 10
    logits = np.zeros((n, 3), dtype=np.float32)
    bad = [0, classification._BLOCK - 1, classification._BLOCK, n - 1]
    logits[bad, 1] = np.nan
    ranks = target_ranks(logits, np.zeros(n, dtype=np.int64))
    assert np.flatnonzero(ranks == NEVER).tolist() == bad
    assert (np.delete(ranks, bad) == 0).all()


@pytest.mark.parametrize("target", [-1, 3, 1000])
def test_targets_out_of_range_raise(target):
    with pytest.raises(ValueError, match=rf"targets from 0 to 2 for 3 logits.*{target}"):
        target_ranks(np.zeros((2, 3)), np.array([0, target]))


@pytest.mark.parametrize(("logits", "targets"), [((3,), (3,)), ((3, 2), (2,)), ((3, 2), (3, 1)), ((3, 2, 1), (3,))])
def test_shapes_that_do_not_fit_raise(logits, targets):
    with pytest.raises(ValueError, match=r"logits \[n, C\] and targets \[n\]"):
        target_ranks(np.zeros(logits), np.zeros(targets, dtype=np.int64))


def test_inputs_stay_as_they_are():
    logits, targets = np.array([[1.0, np.nan]]), np.array([1])
    before = logits.copy(), targets.copy()
    target_ranks(logits, targets)
    np.testing.assert_array_equal(logits, before[0])
    np.testing.assert_array_equal(targets, before[1])


# F1 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "classes", "present"), [(300, 12, 12), (40, 12, 7), (5, 3, 1), (1, 2, 2)])
def test_f1_is_scikit_learns_over_the_classes_that_have_samples(n, classes, present):
    rng = np.random.default_rng(n)
    targets = rng.integers(present, size=n)
    predicted = np.where(rng.random(n) < 0.5, targets, rng.integers(classes, size=n))
    found = f1_of_classes(predicted, targets)
    labels = np.unique(targets)
    expected = precision_recall_fscore_support(targets, predicted, labels=labels, zero_division=0)
    assert found.classes.tolist() == labels.tolist()
    for got, wanted in zip((found.precision, found.recall, found.f1), expected, strict=False):
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    assert found.errors.sum() == pytest.approx(0, abs=1e-12)


def test_a_sample_without_a_prediction_is_missed_by_its_class_alone():
    found = f1_of_classes(np.array([0, -1, 1]), np.array([0, 0, 1]))
    assert found.f1.tolist() == pytest.approx([2 / 3, 1])
    assert found.precision.tolist() == [1, 1]
    with pytest.raises(ValueError, match="with n > 0"):
        f1_of_classes(np.array([], dtype=int), np.array([], dtype=int))


def test_the_error_of_the_mean_f1_is_that_of_resampled_samples():
    rng = np.random.default_rng(0)
    targets = rng.integers(4, size=1500) ** 2 // 3
    predicted = np.where(rng.random(1500) < 0.7, targets, rng.integers(4, size=1500))
    errors = f1_of_classes(predicted, targets).errors
    places = rng.integers(1500, size=(1000, 1500))
    drawn = [f1_of_classes(predicted[each], targets[each]).f1.mean() for each in places]
    assert np.sqrt(1500 / 1499 * (errors**2).sum()) == pytest.approx(np.std(drawn), rel=0.08)
