"""Estimates accuracy on unlabelled samples from confidence there, and from confidence and accuracy elsewhere.

All methods transfer something from a labelled data set to another one, and none is right on every shift (Garg et
al.\n2022, section 3): compare them with the truth if labels are available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from testbed.arrays import Array
from testbed.metrics.sureness import LOG_ODDS, MSP, NEGATIVE_ENTROPY, how_sure

AC, DOC, ATC_MC, ATC_NE = "confidence", "DoC", "ATC-MC", "ATC-NE"
ALINE_S, ALINE_D = "ALine-S", "ALine-D"
LEAST = 3  # models for a line of agreement


@dataclass(frozen=True)
class Sureness:
    """A model's confidence in each sample, by `testbed.metrics.sureness`; minimal for unreadable samples.

    Attributes:
        confidence: The probability, float array [n].
        odds: Log odds, [n].
        negative_entropy: Negative entropy in nats, [n].
    """

    confidence: Array
    odds: Array
    negative_entropy: Array


def sureness(logits: Array, temperature: float = 1.0) -> Sureness:
    """Computes the confidence of logits.

    Args:
        logits: Float array [n, C] of two classes or more; samples with NaN were unreadable.
        temperature: Divisor of the logits.

    Raises:
        ValueError: If there are fewer classes.
    """
    if np.ndim(logits) != 2 or np.shape(logits)[1] < 2:
        raise ValueError(f"expected logits [n, C] with C ≥ 2, got {np.shape(logits)}")
    least = {MSP: 0.0, LOG_ODDS: -np.inf, NEGATIVE_ENTROPY: -np.inf}
    found = how_sure(logits, tuple(least), temperature)
    return Sureness(*(np.where(np.isnan(found[name]), of, found[name]) for name, of in least.items()))


# One model ------------------------------------------------------------------------------------------------------------


def average_confidence(known: Sureness, right: Array, shifted: Sureness) -> float:
    """The mean confidence, which equals the accuracy of a calibrated model (Hendrycks and Gimpel 2017)."""
    return float(shifted.confidence.mean())


def difference_of_confidences(known: Sureness, right: Array, shifted: Sureness) -> float:
    """The accuracy on known samples, minus the drop in confidence (DoC; Guillory et al. 2021)."""
    return float(np.clip(right.mean() - (known.confidence.mean() - shifted.confidence.mean()), 0, 1))


def thresholded(known: Array, right: Array, shifted: Array) -> float:
    """The share of samples above a confidence threshold fitted to the known error rate (ATC; Garg et al. 2022).

    Args:
        known: Confidence on known samples, float array [n].
        right: Correctness there, [n].
        shifted: Confidence on the unlabelled samples, [m].
    """
    wrong = len(right) - int(np.asarray(right).sum())
    if wrong == len(right):
        return 0.0
    return float((shifted >= np.sort(known)[wrong]).mean())


ALONE: Mapping[str, Callable[[Sureness, Array, Sureness], float]] = {
    AC: average_confidence,
    DOC: difference_of_confidences,
    ATC_MC: lambda known, right, shifted: thresholded(known.odds, right, shifted.odds),
    ATC_NE: lambda known, right, shifted: thresholded(known.negative_entropy, right, shifted.negative_entropy),
}


# Several models -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgreementLine:
    """Agreement on the line (Baek et al. 2022).

    Attributes:
        slope: Slope of the line of pairwise agreements, on probit scales.
        bias: Its intercept.
        r2: Coefficient of determination; above 0.95 the estimates are usually good.
        simple: The accuracy of each model by the line alone (ALine-S), float array [models].
        by_pairs: By the pairs of models (ALine-D), [models].
    """

    slope: float
    bias: float
    r2: float
    simple: Array
    by_pairs: Array


def agreement_on_the_line(known: Array, right: Array, shifted: Array) -> AgreementLine | None:
    """Estimates accuracies from agreement of models, which lies on the same line as accuracy (Baek et al. 2022).

    Args:
        known: The predicted classes on labelled samples, integer array [n, models], −1 if missing.
        right: The accuracy of each model there, float array [models].
        shifted: The predicted classes on samples without labels, [m, models].

    Returns:
        None if there are fewer than three models, or all pairs agree equally often on the labelled samples.
    """
    from scipy.special import ndtr

    models = known.shape[1]
    if models < LEAST:
        return None
    pairs = list(combinations(range(models), 2))
    before, after = (_probit(_agreements(predicted, pairs), len(predicted)) for predicted in (known, shifted))
    apart = before - before.mean()
    spread = float(apart @ apart)
    if spread < 1e-12:
        return None
    slope = float(apart @ after) / spread
    bias = float(after.mean() - slope * before.mean())
    rest, total = after - slope * before - bias, after - after.mean()
    r2 = 1 - float(rest @ rest) / max(float(total @ total), 1e-12)
    accuracy = _probit(right, len(known))
    halves = np.zeros((len(pairs), models))
    for row, pair in enumerate(pairs):
        halves[row, list(pair)] = 0.5
    found = np.linalg.lstsq(halves, after + slope * (halves @ accuracy - before), rcond=None)[0]
    return AgreementLine(slope, bias, r2, np.asarray(ndtr(slope * accuracy + bias)), np.asarray(ndtr(found)))


def _agreements(classes: Array, pairs: Sequence[tuple[int, int]]) -> Array:
    """The share of samples on which each pair predicts the same class, float array [pairs]."""
    return np.array([((classes[:, one] == classes[:, two]) & (classes[:, one] >= 0)).mean() for one, two in pairs])


def _probit(share: Array, n: int) -> Array:
    """Transforms shares of n samples to a probit scale; 0 and 1 are moved by half a sample."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(share, 0.5 / n, 1 - 0.5 / n)))
