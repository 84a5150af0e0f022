"""Anchors: a few samples that represent the mean score over all, chosen by the scores of other models.

Random draws need no assumption about new models: ``random`` draws uniformly, ``stratified``
one sample from each stratum of equally hard ones, ``lure`` the samples that others got wrong more often, with weights
that undo it (Farquhar, Gal and Rainforth 2021). ``irt`` and ``clusters`` take the middle of each cluster of samples,
with the cluster's share as its weight (Polo et al. 2024, tinyBenchmarks; Vivek et al. 2024): that assumes that a new
model behaves like the others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from testbed.arrays import Array
from testbed.extensions.estimates.methods.item_response import ABILITIES, ItemResponses, ability_of, chance

RANDOM, STRATIFIED, LURE, IRT, CLUSTERS = "random", "stratified", "lure", "irt", "clusters"
WEIGHTED, P_IRT, GP_IRT, ASSISTED = "weighted", "p-irt", "gp-irt", "assisted"
_ROUNDS = 50  # iterations of k-means


@dataclass(frozen=True)
class KnownScores:
    """The scores of other models on all samples.

    Attributes:
        scores: Float array [n, models].
        best: The best possible score; None if unbounded.
        responses: Their item responses; None if scores are not 0 or 1.
        confidence: The models' probabilities of the right class, float array [n, models]; None if unknown.
    """

    scores: Array
    best: float | None
    responses: ItemResponses | None
    confidence: Array | None = None

    @cached_property
    def curve(self) -> Array:
        """The expected mean score over all samples for each of `ABILITIES`."""
        assert self.responses is not None
        a, e = self.responses.discrimination, self.responses.easiness
        return np.array([chance(a, e, ABILITIES[place : place + 1]).mean() for place in range(len(ABILITIES))])


@dataclass(frozen=True)
class Curve:
    """The expected scores of models with each of `ABILITIES`.

    Attributes:
        n: The number of all samples.
        all: Its mean score on all samples, float array of the length of `ABILITIES`.
        discrimination: Discrimination of each anchor, float array [k].
        easiness: Easiness of each anchor, [k].
    """

    n: int
    all: Array
    discrimination: Array
    easiness: Array


@dataclass(frozen=True)
class Anchors:
    """Anchor samples, and the parameters for estimating the mean over all samples.

    Attributes:
        places: The k samples, integer array.
        weights: The weight of each score, [k].
        offset: Constant added to the weighted sum.
        curve: For estimates by item responses; None if scores are not 0 or 1.
        blend: The share of ``weighted`` in ``gp-irt``; the rest is ``p-irt``.
    """

    places: Array
    weights: Array
    offset: float = 0.0
    curve: Curve | None = None
    blend: float = 0.5


def choose(known: KnownScores, size: int, method: str, rng: np.random.Generator) -> Anchors:
    """Chooses anchors.

    Args:
        known: The scores of other models.
        size: Number of anchors, fewer than there are samples.
        method: One of `METHODS`; ``irt`` needs responses, ``lure`` a best score.
        rng: Random generator.

    Raises:
        ValueError: If there are not more samples, or the method requires unavailable data.
    """
    if not 0 < size < len(known.scores):
        raise ValueError(f"expected a number of anchors below {len(known.scores)}, got {size}")
    found = METHODS[method](known, size, rng)
    if known.responses is None:
        return found
    a, e = known.responses.discrimination[found.places], known.responses.easiness[found.places]
    return replace(found, curve=Curve(len(known.scores), known.curve, a, e))


# Choosing -------------------------------------------------------------------------------------------------------------


def _random(known: KnownScores, size: int, rng: np.random.Generator) -> Anchors:
    return Anchors(rng.choice(len(known.scores), size, replace=False), np.full(size, 1 / size))


def _stratified(known: KnownScores, size: int, rng: np.random.Generator) -> Anchors:
    """Draws one sample from each of equal strata of the samples, sorted by mean score."""
    n = len(known.scores)
    order = np.lexsort((rng.random(n), known.scores.mean(axis=1)))
    strata = np.array_split(order, size)
    places = np.array([rng.choice(stratum) for stratum in strata])
    return Anchors(places, np.array([len(stratum) / n for stratum in strata]))


def _lure(known: KnownScores, size: int, rng: np.random.Generator) -> Anchors:
    """Draws samples one by one by expected loss; weights as in Farquhar et al., equation 9."""
    if known.best is None:
        raise ValueError("lure needs a best possible score")
    losses = np.square(known.best - known.scores)
    typical = float(losses.mean()) or 1.0
    likely = np.sqrt((losses.sum(axis=1) + typical) / (losses.shape[1] + 1))
    likely /= likely.sum()
    places = np.argsort(-(np.log(likely) + rng.gumbel(size=len(likely))))[:size]
    left = 1 - np.concatenate([[0.0], np.cumsum(likely[places])[:-1]])  # remaining probability before each draw
    weights = lure_weights(likely[places] / left, len(likely)) / size
    return Anchors(places, weights, offset=known.best * (1 - float(weights.sum())))


def lure_weights(likely: Array, n: int) -> Array:
    """Computes weights that make the mean of weighted losses unbiased (LURE; Farquhar et al. 2021).

    Args:
        likely: The probability of each sample among the remaining ones when it was drawn, float array [m].
        n: The number of all samples.

    Returns:
        Float array [m].
    """
    m = len(likely)
    place = np.arange(1, m + 1)
    if m == n:
        return np.ones(m)
    return np.asarray(1 + (n - m) / (n - place) * (1 / ((n - place + 1) * likely) - 1))


def _irt(known: KnownScores, size: int, rng: np.random.Generator) -> Anchors:
    if known.responses is None:
        raise ValueError("irt needs scores of 0 and 1")
    features = np.stack([known.responses.discrimination, known.responses.easiness], axis=1)
    return _clustered(features / np.maximum(features.std(axis=0), 1e-12), size, rng)


def _clusters(known: KnownScores, size: int, rng: np.random.Generator) -> Anchors:
    return _clustered(known.scores if known.confidence is None else known.confidence, size, rng)


def _clustered(features: Array, size: int, rng: np.random.Generator) -> Anchors:
    """Selects the sample nearest to the centre of each cluster of features [n, d]."""
    from sklearn.cluster import KMeans

    n = len(features)
    order = rng.permutation(n)
    points = features[order]
    found = KMeans(size, n_init=1, max_iter=_ROUNDS, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different points than clusters
        cluster = found.fit_predict(points)
    apart = np.square(points - found.cluster_centers_[cluster]).sum(axis=1)
    nearest = np.lexsort((apart, cluster))
    first = nearest[np.unique(cluster[nearest], return_index=True)[1]]
    others = np.setdiff1d(np.arange(n), first)
    more = rng.choice(others, size - len(first), replace=False)
    chosen = np.concatenate([first, more])
    share = np.bincount(cluster, minlength=size) / n
    taken = np.bincount(cluster[chosen], minlength=size)
    return Anchors(order[chosen], share[cluster[chosen]] / taken[cluster[chosen]])


METHODS: Mapping[str, Callable[[KnownScores, int, np.random.Generator], Anchors]] = {
    RANDOM: _random,
    STRATIFIED: _stratified,
    LURE: _lure,
    IRT: _irt,
    CLUSTERS: _clusters,
}


# Estimating -----------------------------------------------------------------------------------------------------------


def estimates(anchors: Anchors, scores: Array) -> dict[str, float]:
    """Estimates the mean score over all samples with each estimator.

    ``weighted`` is the weighted sum. The others are for scores of 0 and 1. ``p-irt`` uses the anchors' scores, and
    expectations of item response theory for the other samples; ``gp-irt`` is between both (Polo et al. 2024).
    ``assisted`` is the expectation for all samples, corrected by the anchors' deviation from it. If anchors are drawn
    at random, it is unbiased for any model, even if the expectation is wrong (the difference estimator of surveys;
    Särndal, Swensson and Wretman 1992; Zhang, Dorner and Hardt 2025).

    Args:
        anchors: The anchors.
        scores: A model's scores of them, float array [k].
    """
    weighted = anchors.offset + float(anchors.weights @ scores)
    curve = anchors.curve
    if curve is None:
        return {WEIGHTED: weighted}
    ability = ability_of(curve.discrimination, curve.easiness, scores)
    expected = chance(curve.discrimination, curve.easiness, ABILITIES) @ ability
    everywhere = float(curve.all @ ability)
    p_irt = everywhere + float((scores - expected).sum()) / curve.n
    return {
        WEIGHTED: weighted,
        P_IRT: p_irt,
        GP_IRT: anchors.blend * weighted + (1 - anchors.blend) * p_irt,
        ASSISTED: everywhere + float(anchors.weights @ (scores - expected)),
    }


def blend(weighted: Array, p_irt: Array, true: Array) -> float:
    """Computes the share of ``weighted`` in ``gp-irt`` that minimizes the squared errors of held-out models; 0 to 1.

    Args:
        weighted: Estimates of models, float array [models].
        p_irt: Likewise.
        true: Their mean scores.
    """
    apart = weighted - p_irt
    total = float(np.square(apart).sum())
    return 0.5 if total == 0 else float(np.clip(apart @ (true - p_irt) / total, 0, 1))
