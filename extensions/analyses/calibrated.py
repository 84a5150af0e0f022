"""Scores of a judge, corrected with a few human labels, with confidence intervals.

N samples have a judge's verdict; people also labelled some of them. Arrays are float [N] of scores: 1 is right, 0 is
wrong. NaN stands for a missing value: a sample without a label, or an unreadable verdict, which is left out and never
counted as wrong or as right.

Where samples come in clusters, such as the questions of an image, the standard error is multiplied by the square root
of the ratio of two variances of each sample's influence on the estimate, summed over clusters and over samples; it
never gets smaller.

The right estimate: `post_stratified` (verdicts of 0 and 1) or `prediction_powered` (any scores) if labels were
drawn at random from the samples, whatever the judge does; `rogan_gladen` if they were chosen by their truth or come
from another set, and only if the judge errs there as often as here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.errors import DataError
from testbed.metrics.inference.statistics import mean_and_stderr, wilson

LEVEL = 0.95


@dataclass(frozen=True)
class CorrectedMean:
    """A corrected mean.

    Attributes:
        value: The mean score that people would give.
        stderr: Its standard error; None, like the interval, if there are too few labels.
        low: Lower end of the interval.
        high: Its upper end.
        n: The number of samples that count, labelled or not.
        labels: The number of them with a label.
        power: The weight of the judge in [0, 1]; None where the method has none.
    """

    value: float
    stderr: float | None
    low: float | None
    high: float | None
    n: int
    labels: int
    power: float | None = None


def labels_alone(labels: Array, confidence: float = LEVEL, clusters: Array | None = None) -> CorrectedMean:
    """Returns the mean of the labels, without a judge: the baseline for every correction.

    Args:
        labels: Float array [N] of scores in [0, 1]; NaN where there is no label.
        confidence: The confidence of the interval, which is normal.
        clusters: Integer array [N]: which samples belong together; None: each is alone. As for the other estimates.

    Raises:
        DataError: If no sample has a label.
    """
    given = np.asarray(labels, dtype=np.float64)
    labelled = ~np.isnan(given)
    given = given[labelled]
    if not len(given):
        raise DataError("no sample has a label; a mean needs at least one")
    mean, stderr = mean_and_stderr(given)
    assert mean is not None
    stderr = _widened(stderr, given - mean, clusters, labelled)
    return CorrectedMean(mean, stderr, *_normal(mean, stderr, confidence, (0.0, 1.0)), len(given), len(given))


def prediction_powered(
    labels: Array,
    verdicts: Array,
    power: float | None = None,
    confidence: float = LEVEL,
    bounds: tuple[float, float] = (0.0, 1.0),
    clusters: Array | None = None,
) -> CorrectedMean:
    """Estimates by prediction-powered inference with a tuned weight (PPI++; Angelopoulos et al., arXiv 2311.01453).

    With n samples that have a label Y and a verdict f, M that have only a verdict, and the judge's weight λ, the mean
    is λ·(mean of the M verdicts) + the mean of Y − λf, and its variance λ²·var(f)/M + var(Y − λf)/n. λ = 0 is the mean
    of the labels alone, λ = 1 plain PPI (arXiv 2301.09633). By default λ = cov(Y, f) / ((1 + n/M)·var f), kept in
    [0, 1], which is asymptotically never worse than the labels alone. It makes no assumption about the judge, only that
    the labelled samples were drawn at random. The variances are those of the package ppi-python: with n in the
    denominator, and n − 1 in var f over all verdicts.

    Args:
        labels: Float array [N]; NaN where there is no label. A label of a sample without a verdict does not count.
        verdicts: Float array [N]; NaN where there is none.
        power: λ; None to tune it.
        confidence: The confidence of the interval, which is normal and cut at the bounds.
        bounds: The smallest and the largest possible mean.
        clusters: Integer array [N], or None.

    Raises:
        DataError: If no sample has both a label and a verdict.
    """
    given, judged, rest = _parts(labels, verdicts)
    n, more = len(given), len(rest)
    if not more:
        power = 0.0  # everything is labelled
    elif power is None:
        power = _tuned(given, judged, rest)
    corrected = given - power * judged
    value = float(corrected.mean()) + (power * float(rest.mean()) if more else 0.0)
    stderr = None
    if n > 1:
        spread = power**2 * float(rest.var()) / more if more else 0.0
        stderr = math.sqrt(spread + float(corrected.var()) / n)
        influence = [(corrected - corrected.mean()) / n, power * (rest - rest.mean()) / more if more else rest]
        stderr = _widened(stderr, np.concatenate(influence), clusters, *_masks(labels, verdicts))
    return CorrectedMean(value, stderr, *_normal(value, stderr, confidence, bounds), n + more, n, float(power))


def post_stratified(
    labels: Array, verdicts: Array, confidence: float = LEVEL, clusters: Array | None = None
) -> CorrectedMean:
    """The mean of binary labels by strata of a binary judge: the efficient estimate of arXiv 2601.05420.

    With p the share of verdicts 1, and μ₁ and μ₀ the mean label where the verdict is 1 and 0, it is p·μ₁ + (1 − p)·μ₀
    and its variance p²·var(μ₁) + (1 − p)²·var(μ₀) + (μ₁ − μ₀)²·p(1 − p)/N. Labels may be drawn with another chance in
    each stratum. The interval is Wilson's for as many labels as would have this variance, so that it stays in [0, 1];
    for the variance alone, one right and one wrong label are added to each stratum, or no errors among few labels would
    make the interval too short.

    Args:
        labels: Float array [N] of 0 and 1; NaN where there is no label.
        verdicts: Float array [N] of 0 and 1; NaN where there is none.
        confidence: The confidence of the interval.
        clusters: Integer array [N], or None.

    Raises:
        DataError: If a stratum has no label, or a label or verdict is not 0 or 1.
    """
    given, judged, rest = _parts(labels, verdicts)
    everything = np.concatenate([judged, rest])
    if not all(np.isin(values, (0, 1)).all() for values in (given, everything)):
        raise DataError(
            "post-stratification needs labels and verdicts of 0 and 1; other scores need prediction-powered inference"
        )
    n, share = len(everything), float(everything.mean())
    value, variance = _stratified(given, judged, share, n, added=0)
    centre, widened = _stratified(given, judged, share, n, added=1)
    means = [float(given[judged == verdict].mean()) if (judged == verdict).any() else 0.0 for verdict in (0, 1)]
    weights = [(1 - share) / max((judged == 0).sum(), 1), share / max((judged == 1).sum(), 1)]
    of_labels = (given - np.where(judged == 1, means[1], means[0])) * np.where(judged == 1, weights[1], weights[0])
    of_verdicts = (means[1] - means[0]) * (everything - share) / n
    influence = of_verdicts + np.concatenate([of_labels, np.zeros(len(rest))])
    wider = _widened(1.0, influence, clusters, *_masks(labels, verdicts))
    if wider is None:
        return CorrectedMean(value, None, None, None, n, len(given))
    low, high = wilson(value, centre * (1 - centre) / (widened * wider**2), confidence)
    return CorrectedMean(value, math.sqrt(variance) * wider, float(low), float(high), n, len(given))


def rogan_gladen(
    share: float,
    specificity: float,
    sensitivity: float,
    n: int,
    wrong_labels: int,
    right_labels: int,
    confidence: float = LEVEL,
    wider: float = 1.0,
) -> CorrectedMean:
    """The share of right answers, from a judge's error rates (Rogan & Gladen 1978).

    θ = (share + specificity − 1) / (specificity + sensitivity − 1), cut to [0, 1]. The interval is that of Lee et al.
    (arXiv 2511.21140), which also carries the uncertainty of the two rates. The judge must err on this model's answers
    as often as on those of the labels.

    Args:
        share: The share of verdicts 1 among the n.
        specificity: The share of verdicts 0 among answers that people call wrong.
        sensitivity: The share of verdicts 1 among answers that people call right.
        n: The number of verdicts.
        wrong_labels: The number of answers that people call wrong.
        right_labels: The number of answers that people call right.
        confidence: The confidence of the interval.
        wider: The ratio of the standard error to that of single samples, where they come in clusters.

    Raises:
        DataError: If the judge is no better than chance: specificity + sensitivity is not above 1.
    """
    if specificity + sensitivity <= 1:
        raise DataError(
            f"the judge is no better than chance: specificity {specificity:.3g} + sensitivity {sensitivity:.3g} is not"
            " above 1; use prediction-powered inference, or another judge"
        )
    z = _z(confidence)
    value = _corrected(share, specificity, sensitivity)
    share_, n_ = (n * share + z**2 / 2) / (n + z**2), n + z**2
    low_rate = (wrong_labels * specificity + 1) / (wrong_labels + 2)
    high_rate = (right_labels * sensitivity + 1) / (right_labels + 2)
    labels = wrong_labels + right_labels
    if low_rate + high_rate <= 1:  # too few labels to distinguish the judge from chance
        return CorrectedMean(value, None, None, None, n, labels)
    centre = _corrected(share_, low_rate, high_rate)
    of_low = low_rate * (1 - low_rate) / (wrong_labels + 2)
    of_high = high_rate * (1 - high_rate) / (right_labels + 2)
    shift = 2 * z**2 * (centre * of_high - (1 - centre) * of_low)
    variance = share_ * (1 - share_) / n_ + (1 - centre) ** 2 * of_low + centre**2 * of_high
    stderr = wider * math.sqrt(variance) / (low_rate + high_rate - 1)
    return CorrectedMean(value, stderr, *_normal(centre + shift, stderr, confidence, (0.0, 1.0)), n, labels)


def rogan_gladen_of(
    labels: Array, verdicts: Array, confidence: float = LEVEL, clusters: Array | None = None
) -> CorrectedMean:
    """Computes `rogan_gladen` with the rates of the labelled samples, and the share among those with a verdict alone.

    Args:
        labels: Float array [N] of 0 and 1; NaN where there is no label.
        verdicts: Float array [N] of 0 and 1; NaN where there is none.
        confidence: The confidence of the interval.
        clusters: Integer array [N], or None.

    Raises:
        DataError: If people call none right, or none wrong, or no sample is without a label; or as there.
    """
    given, judged, rest = _parts(labels, verdicts)
    right, wrong = judged[given == 1], judged[given == 0]
    if not len(right) or not len(wrong) or not len(rest):
        raise DataError(
            f"Rogan–Gladen needs labels 1 and 0, and verdicts without a label; there are {len(right)}, {len(wrong)} and"
            f" {len(rest)}"
        )
    rates = 1 - float(wrong.mean()), float(right.mean())
    value = _corrected(float(rest.mean()), *rates)
    of_right, of_wrong = -value * (judged - rates[1]) / len(right), (value - 1) * (judged - wrong.mean()) / len(wrong)
    of_labels = np.where(given == 1, of_right, of_wrong)
    influence = np.concatenate([of_labels, (rest - rest.mean()) / len(rest)])
    wider = _widened(1.0, influence, clusters, *_masks(labels, verdicts))
    if wider is None:
        return CorrectedMean(value, None, None, None, len(rest), len(given))
    return rogan_gladen(float(rest.mean()), *rates, len(rest), len(wrong), len(right), confidence, wider)


def _parts(labels: Array, verdicts: Array) -> tuple[Array, Array, Array]:
    """The labels and the verdicts of samples that have both; the verdicts of those that have no label."""
    given, judged = np.asarray(labels, dtype=np.float64), np.asarray(verdicts, dtype=np.float64)
    if given.shape != judged.shape or given.ndim != 1:
        raise ValueError(f"expected labels [N] and verdicts [N], got {given.shape} and {judged.shape}")
    labelled, read = ~np.isnan(given), ~np.isnan(judged)
    if not (labelled & read).any():
        raise DataError(
            f"no sample has both a label and a verdict ({labelled.sum()} have a label, {read.sum()} a verdict of"
            f" {len(given)}); label some that the judge has read"
        )
    return given[labelled & read], judged[labelled & read], judged[read & ~labelled]


def _masks(labels: Array, verdicts: Array) -> tuple[Array, Array]:
    """Returns two masks: the samples with both, and those with a verdict alone, in the order of `_parts`."""
    labelled, read = ~np.isnan(np.asarray(labels, np.float64)), ~np.isnan(np.asarray(verdicts, np.float64))
    return labelled & read, read & ~labelled


def _widened(stderr: float | None, influence: Array, clusters: Array | None, *parts: Array) -> float | None:
    """A standard error of single samples as one of clusters.

    Args:
        stderr: That of single samples.
        influence: The contribution of each sample to the estimate, float array [n] of mean 0 in each part.
        clusters: Integer array [N]; None: each sample is alone.
        parts: Boolean arrays [N]: which samples have an influence, part after part.

    Returns:
        None where there is a single cluster.
    """
    if stderr is None or clusters is None:
        return stderr
    own = np.concatenate([np.asarray(clusters)[part] for part in parts])
    sums = np.bincount(np.unique(own, return_inverse=True)[1], weights=influence)
    alone = float(np.square(influence).sum())
    if len(sums) < 2:
        return None
    together = len(sums) / (len(sums) - 1) * float(np.square(sums).sum())
    return stderr * math.sqrt(max(1.0, together / alone)) if alone > 0 else stderr


def _tuned(labels: Array, judged: Array, rest: Array) -> float:
    variance = float(np.var(np.concatenate([judged, rest]), ddof=1))
    if variance == 0:
        return 0.0
    covariance = float(((labels - labels.mean()) * (judged - judged.mean())).mean())
    return min(1.0, max(0.0, covariance / ((1 + len(labels) / len(rest)) * variance)))


def _stratified(labels: Array, judged: Array, share: float, n: int, added: int) -> tuple[float, float]:
    """The mean and its variance, with some right and as many wrong labels added to each stratum."""
    means, variance = [], 0.0
    for verdict, weight in ((0, 1 - share), (1, share)):
        own = labels[judged == verdict]
        if not len(own):
            if weight > 0:
                raise DataError(f"no sample with the verdict {verdict} has a label; label some")
            means.append(0.0)
            continue
        size = len(own) + 2 * added
        mean = (float(own.sum()) + added) / size
        means.append(mean)
        variance += weight**2 * mean * (1 - mean) / size
    value = (1 - share) * means[0] + share * means[1]
    return value, variance + (means[1] - means[0]) ** 2 * share * (1 - share) / n


def _corrected(share: float, specificity: float, sensitivity: float) -> float:
    return min(1.0, max(0.0, (share + specificity - 1) / (specificity + sensitivity - 1)))


def _normal(
    value: float, stderr: float | None, confidence: float, bounds: tuple[float, float]
) -> tuple[float | None, float | None]:
    if stderr is None:
        return None, None
    half = _z(confidence) * stderr
    low, high = (min(bounds[1], max(bounds[0], value + sign * half)) for sign in (-1, 1))
    return low, high


def _z(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))
