"""Average precision, AUROC and false positives against scikit-learn, with ties."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from tables import cases

from testbed.metrics import Metric, Score
from testbed.metrics.detection import auroc, average_precision, fpr_at_tpr, ood_detection

ALL = (average_precision, auroc, fpr_at_tpr)


def random_case(seed, n, values):
    """Scores with as many different values as said, the positive ones somewhat higher."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    positive[:2] = True, False
    return np.round(rng.normal(size=n) * values + values * positive).clip(-values, values), positive


@cases("n", [2, 3, 20, 500])
@cases("values", [1, 3, 1000])
@cases("seed", range(5))
def test_they_are_scikit_learns_on_scores_with_ties(seed, values, n):
    scores, positive = random_case(seed, n, values)
    assert average_precision(scores, positive) == pytest.approx(average_precision_score(positive, scores), abs=1e-12)
    assert auroc(scores, positive) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)
    fpr, tpr, _ = roc_curve(positive, scores, drop_intermediate=False)
    for wanted in (0.95, 0.5, 1.0):
        assert fpr_at_tpr(scores, positive, wanted) == pytest.approx(fpr[np.argmax(tpr >= wanted - 1e-9)], abs=1e-12)


def test_19_of_20_are_95_percent():
    scores = np.append(np.arange(20.0), 0.5)
    positive = np.arange(21) < 20
    assert fpr_at_tpr(scores, positive) == 0
    assert fpr_at_tpr(scores, positive, 0.96) == 1


@pytest.mark.parametrize("measure", ALL)
def test_what_has_one_kind_only_has_no_value(measure):
    for positive in ([], [True, True], [False, False, False]):
        assert measure(np.arange(float(len(positive))), np.array(positive, dtype=bool)) is None


@pytest.mark.parametrize("measure", ALL)
def test_infinite_scores_are_ranked_and_nan_is_refused(measure):
    positive = np.array([True, False, True, False])
    assert measure(np.array([np.inf, -np.inf, np.inf, -np.inf]), positive) == (0.0 if measure is fpr_at_tpr else 1.0)
    with pytest.raises(ValueError, match="NaN"):
        measure(np.array([1, np.nan, 2, 3]), positive)
    with pytest.raises(ValueError, match="expected scores"):
        measure(np.zeros(3), positive)


# The metric of settings -------------------------------------------------------------------------------------------


def measured(logits, targets, unreadable=None):
    returned = ood_detection(
        torch.as_tensor(logits), torch.tensor(targets), [False] * len(targets) if unreadable is None else unreadable
    )
    metrics = {each.name: each for each in returned if isinstance(each, Metric)}
    return metrics, {each.name: each.values for each in returned if isinstance(each, Score)}


def test_samples_of_no_class_are_the_positive_ones():
    logits = np.array([[0.1, 0, 0], [0, 0.2, 0], [5, 0, 0], [0, 0, 4]])
    metrics, scores = measured(logits, [-1, -1, 0, 2])
    assert len(metrics) == 9
    for name in ("msp", "max_logit", "energy"):
        values = [metrics[f"{measure}_{name}"].value for measure in ("aupr", "auroc", "fpr95")]
        assert values == [1.0, 1.0, 0.0]
        assert metrics[f"aupr_{name}"].n == 4
        assert scores[name].shape == (4,)
    metrics, _ = measured(logits, [0, 1, -1, -1])
    assert metrics["auroc_msp"].value == 0


@pytest.mark.parametrize("how", ["unreadable", "nan", "inf"])
@pytest.mark.parametrize("place", [0, 3])
def test_samples_without_logits_are_wrong_on_either_side(how, place):
    logits = np.array([[0.1, 0, 0], [0, 0.2, 0], [5, 0, 0], [0, 0, 4]])
    unreadable = np.arange(4) == place
    if how == "unreadable":
        logits[place] = 0  # as the task fills them: the most unlike of all, to look at
        metrics, scores = measured(logits, [-1, -1, 0, 2], unreadable)
    else:
        logits[place] = np.nan if how == "nan" else np.inf
        metrics, scores = measured(logits, [-1, -1, 0, 2])
    assert np.isnan(scores["msp"]).tolist() == unreadable.tolist()
    # Of the four pairs of an unknown and a familiar sample, the two with this one are ranked the wrong way round.
    assert metrics["auroc_msp"].value == metrics["auroc_energy"].value == 0.5


def test_one_kind_only_gives_no_numbers_but_scores():
    metrics, scores = measured(np.eye(3), [0, 1, 2])
    assert {each.value for each in metrics.values()} == {None}
    assert scores["msp"].shape == (3,)
