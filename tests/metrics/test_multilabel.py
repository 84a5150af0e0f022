"""Average precision: by hand, against scikit-learn where nothing ties, against loops where something does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from testbed.metrics.multilabel import average_precisions, label_matrix, map_over_all, map_over_present


def by_loops(scores, labels):
    """The definition for one class: a stable sort, then the precision at each of its samples."""
    ranked = sorted(range(len(scores)), key=lambda place: (bool(np.isnan(scores[place])), -scores[place], place))
    hits, total = 0, 0.0
    for rank, place in enumerate(ranked, start=1):
        if labels[place]:
            hits += 1
            total += hits / rank
    return total / max(hits, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_equal_to_scikit_learn_where_nothing_ties(dtype, share):
    rng = np.random.default_rng(3)
    scores = rng.permuted(np.tile(np.linspace(-5, 5, 400), (9, 1)), axis=1).T.astype(dtype)
    labels = rng.random((400, 9)) < share
    labels[0] = True
    found = average_precisions(scores, labels)
    assert found == pytest.approx(average_precision_score(labels, scores, average=None), abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8])
def test_equal_to_loops_where_many_scores_tie(dtype, monkeypatch):
    rng = np.random.default_rng(4)
    scores = rng.integers(5, size=(120, 11)).astype(dtype)
    labels = rng.random((120, 11)) < 0.2
    expected = [by_loops(scores[:, label].astype(float), labels[:, label]) for label in range(11)]
    assert average_precisions(scores, labels) == pytest.approx(expected, abs=1e-12)
    monkeypatch.setattr("testbed.metrics.multilabel._BLOCK", 300)
    assert average_precisions(scores, labels) == pytest.approx(expected, abs=1e-12)


def test_nan_comes_last_even_after_minus_infinity():
    scores = np.array([np.nan, -np.inf, np.inf, 0.0, np.nan])[:, None]
    for place, rank in enumerate([4, 3, 1, 2, 5]):
        labels = np.arange(5)[:, None] == place
        assert average_precisions(scores, labels).tolist() == [1 / rank]


def test_without_samples_or_classes():
    assert average_precisions(np.empty((0, 3)), np.empty((0, 3), bool)).tolist() == [0, 0, 0]
    assert map_over_present(np.zeros(3), np.zeros((2, 3), bool)) is None
    assert map_over_all(np.empty(0)) is None
    assert label_matrix([], 3).shape == (0, 3)


@pytest.mark.parametrize("label", [-1, 3])
def test_labels_out_of_range_raise(label):
    with pytest.raises(ValueError, match="classes from 0 to 2"):
        label_matrix([[0], [label]], 3)


def test_shapes_that_do_not_fit_raise():
    with pytest.raises(ValueError, match=r"scores \[n, C\] and labels \[n, C\]"):
        average_precisions(np.zeros((2, 3)), np.zeros((3, 2), bool))
