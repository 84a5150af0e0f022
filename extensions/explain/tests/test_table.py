"""Metrics as sums over samples, compared with scikit-learn and with what testbed reports."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, top_k_accuracy_score

from testbed.entities import SampleInfo
from testbed.extensions.explain.table import NONE, WRONG, Table, margins, metric_of, right_classes, values
from testbed.metrics.scorers.classification import score_classes


@pytest.fixture
def logits():
    return np.random.default_rng(0).normal(size=(400, 7)).astype(np.float32)


@pytest.fixture
def labels():
    return np.random.default_rng(1).choice(7, 400, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05])


def table(logits, targets, **fields):
    return Table(logits, right_classes(targets), np.arange(len(logits)), **fields)


def test_accuracies_are_those_of_scikit_learn(logits, labels):
    targets, guesses = labels.tolist(), logits.argmax(axis=1)
    assert values(table(logits, targets)).value == pytest.approx(accuracy_score(labels, guesses), abs=1e-12)
    assert values(table(logits, targets, by_class=True)).value == pytest.approx(
        balanced_accuracy_score(labels, guesses), abs=1e-12
    )
    assert values(table(logits, targets, k=3)).value == pytest.approx(
        top_k_accuracy_score(labels, logits, k=3, labels=range(7)), abs=1e-12
    )


def test_they_are_those_that_a_run_reports_on_ties_and_nan_too(logits, labels):
    logits = np.round(logits)
    logits[5] = np.nan
    samples = [SampleInfo(str(place), str(place), int(label)) for place, label in enumerate(labels)]
    reported = {
        each.name: each.value for each in score_classes(logits, samples, None, "x")[1] if each.slice == "overall"
    }
    for name in ("top1", "top5", "mean_per_class_recall"):
        k, by_class = metric_of(name)
        assert values(table(logits, labels.tolist(), k=k, by_class=by_class)).value == pytest.approx(reported[name])


def test_any_of_several_right_classes_counts_and_samples_without_one_do_not(logits):
    targets = [[int(each), (int(each) + 1) % 7] for each in logits.argmax(axis=1)]
    targets[0], targets[1] = [], [int(logits[1].argmin())]
    found = values(table(logits, targets))
    assert 0 not in found.rows
    assert found.value == pytest.approx(398 / 399)
    assert right_classes([[], [3]]).tolist() == [[NONE], [3]]


def test_a_label_without_a_logit_is_wrong_but_counts(logits):
    assert values(table(logits[:4], [7, 9, 7, 8])).value == 0
    assert len(values(table(logits[:4], [7, 9, 7, 8])).rows) == 4


def test_weights_of_some_samples_are_parts_of_the_whole(logits, labels):
    whole = table(logits, labels.tolist(), by_class=True)
    found = values(whole)
    assert found.weights.sum() == pytest.approx(1)
    assert np.isnan(values(whole.take(np.zeros(400, dtype=bool))).value)


def test_margins_say_how_far_a_right_class_is_above_the_others():
    logits = np.asarray([[1.0, 4.0, 2.5], [np.nan, 1, 2], [3, 1, 2]])
    assert margins(table(logits, [1, 1, 1])).tolist() == [1.5, -WRONG, -2]
    assert margins(table(logits, [1, 1, 1], k=2)).tolist() == [3, -WRONG, -1]
    assert margins(table(logits, [[1, 2], [0], []])).tolist() == [3, -WRONG]
    assert margins(table(logits, [7, 1, 2])).tolist() == [-WRONG, -WRONG, -1]


def test_right_answers_are_those_with_a_positive_margin(logits, labels):
    for k in (1, 3):
        given = table(logits, labels.tolist(), k=k)
        assert ((margins(given) > 0) == values(given).correct.astype(bool)).all()


def test_metrics_that_are_no_sums():
    assert [metric_of(name) for name in ("top1", "top10", "mean_per_class_recall", "nll", "topline")] == [
        *((1, False), (10, False), (1, True), None, None)
    ]
