"""Errors of estimates from anchors, for models that the anchors were not chosen by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.eval_settings.base.anchor_file import Errors
from testbed.extensions.estimates.methods.anchors import (
    ASSISTED,
    CLUSTERS,
    GP_IRT,
    IRT,
    LURE,
    METHODS,
    P_IRT,
    RANDOM,
    STRATIFIED,
    WEIGHTED,
    KnownScores,
    blend,
    choose,
    estimates,
)
from testbed.extensions.estimates.methods.item_response import fit

Way = tuple[str, str]  # method for choosing anchors, estimator of the mean

BY_CHANCE: Way = (RANDOM, WEIGHTED)
# The ways, sorted by the strength of their assumptions about new models.
IN_DOUBT: Sequence[Way] = [
    (method, estimator)
    for method in (STRATIFIED, RANDOM, LURE, IRT, CLUSTERS)
    for estimator in (WEIGHTED, ASSISTED, GP_IRT, P_IRT)
]
LEVEL = 0.9  # confidence of intervals, given enough families
DRAWS = 10  # draws of anchors for each fold
_CLUSTERINGS = 2  # slower and with less variation


@dataclass(frozen=True)
class HeldOut:
    """Estimates for models, each from anchors that were chosen by models of other folds.

    Attributes:
        true: The mean score of each model, float array [models].
        folds: The fold of each model, integer array [models].
        estimates: For each way, float array [draws, models].
    """

    true: Array
    folds: Array
    estimates: Mapping[Way, Array]

    def errors(self, way: Way) -> Errors:
        """The errors of a way."""
        return errors(self.estimates[way], self.true, self.folds)

    def best(self, among: Sequence[Way], models: Array | None = None) -> Way:
        """Selects a way: the first of `IN_DOUBT` that is not significantly worse than the best one.

        This is the one-standard-error rule (Breiman et al. 1984): its mean absolute error is at most one standard error
        above the least, by the differences of folds.

        Args:
            among: The candidate ways.
            models: Booleans [models] that select models; None for all.
        """
        chosen = np.ones(len(self.true), dtype=bool) if models is None else models
        folds = [self.folds == fold for fold in np.unique(self.folds[chosen])]
        apart = {way: np.abs(self.estimates[way] - self.true).mean(axis=0) for way in among}
        of_folds = {way: np.array([apart[way][fold].mean() for fold in folds]) for way in among}
        least = min(among, key=lambda way: float(apart[way][chosen].mean()))

        def worse(way: Way) -> bool:
            gap = of_folds[way] - of_folds[least]
            error = float(gap.std(ddof=1)) / len(gap) ** 0.5 if len(gap) > 1 else np.inf
            return float(gap.mean()) > error

        return next((way for way in IN_DOUBT if way in among and not worse(way)), least)

    def best_errors(self, among: Sequence[Way]) -> Errors:
        """The errors of the best way, which is selected for each fold by the other folds."""
        found = np.empty_like(self.estimates[among[0]])
        for fold in np.unique(self.folds):
            own = self.folds == fold
            found[:, own] = self.estimates[self.best(among, ~own)][:, own]
        return errors(found, self.true, self.folds)


def errors(found: Array, true: Array, folds: Array) -> Errors:
    """Computes errors of estimates [draws, models] of the true values [models], by held-out folds [models]."""
    from scipy.stats import rankdata

    apart = np.abs(found - true)
    ranks = rankdata(found, axis=1) - (len(true) + 1) / 2
    own = rankdata(true) - (len(true) + 1) / 2
    spreads = np.sqrt(np.square(ranks).sum(axis=1) * np.square(own).sum())
    told = spreads > 0
    correlation = float((ranks[told] @ own / spreads[told]).mean()) if told.any() else None
    quantile, level = _bound(apart, folds)
    return Errors(float(apart.mean()), quantile, correlation, level)


def _bound(apart: Array, folds: Array) -> tuple[float, float]:
    """Computes an error bound for models of a new family, and its confidence.

    Families are exchangeable, models are not: each family counts once, whatever its size, and the new family counts
    with an infinite error (hierarchical conformal prediction: Lee, Barber and Willett 2023). So m families give at
    most the confidence m / (m + 1).

    Args:
        apart: Absolute errors, float array [draws, models].
        folds: Integer array [models].
    """
    _, place, sizes = np.unique(folds, return_inverse=True, return_counts=True)
    level = min(LEVEL, len(sizes) / (len(sizes) + 1))
    shares = 1.0 / ((len(sizes) + 1) * len(apart) * sizes[place.reshape(-1)])
    order = np.argsort(apart, axis=None)
    reached = np.cumsum(np.broadcast_to(shares, apart.shape).ravel()[order])
    first = min(int(np.searchsorted(reached, level - 1e-9)), apart.size - 1)
    return float(apart.ravel()[order[first]]), level


def known_of(scores: Array, best: float | None, confidence: Array | None) -> KnownScores:
    """Collects the models' scores, with their item responses if scores are 0 or 1."""
    return KnownScores(scores, best, fit(scores) if np.isin(scores, (0, 1)).all() else None, confidence)


def hold_out(
    scores: Array,
    best: float | None,
    confidence: Array | None,
    folds: Array,
    size: int,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Callable[[str, float], None] = lambda what, share: None,
) -> HeldOut:
    """Estimates the mean of each model from anchors that are chosen without its fold.

    Args:
        scores: Float array [n, models].
        best: The best possible score; None if unbounded.
        confidence: The models' probabilities of the right class, [n, models]; None if unknown.
        folds: The fold of each model, integer array [models]; at least two models must remain without any one fold.
        size: The number of anchors.
        seed: Random seed.
        draws: Number of draws of anchors for each fold.
        progress: Progress callback.
    """
    found: dict[Way, Array] = {}
    numbers = np.unique(folds)
    for place, fold in enumerate(numbers):
        progress("holding models out", place / len(numbers))
        others, own = folds != fold, np.flatnonzero(folds == fold)
        known = known_of(scores[:, others], best, None if confidence is None else confidence[:, others])
        for method in ways_to_choose(known):
            rng = np.random.default_rng([seed, place])
            number = min(draws, _CLUSTERINGS) if method in (IRT, CLUSTERS) else draws
            several = [choose(known, size, method, rng) for _ in range(number)]
            for draw in range(draws):
                anchors = several[draw % number]
                for model in own:
                    for estimator, value in estimates(anchors, scores[anchors.places, model]).items():
                        way = (method, estimator)
                        found.setdefault(way, np.empty((draws, scores.shape[1])))[draw, model] = value
    true = scores.mean(axis=0)
    _blend(found, true, folds)
    return HeldOut(true, folds, found)


def ways_to_choose(known: KnownScores) -> list[str]:
    """The methods that are possible with the available data."""
    lacking = {LURE} if known.best is None else set[str]()
    return [method for method in METHODS if method not in lacking | ({IRT} if known.responses is None else set())]


def blend_of(held_out: HeldOut, method: str) -> float:
    """The share of ``weighted`` in ``gp-irt`` that is best for all models."""
    if (method, P_IRT) not in held_out.estimates:
        return 0.5
    return _blend_of(held_out.estimates, method, held_out.true, np.ones(len(held_out.true), dtype=bool))


def _blend(found: dict[Way, Array], true: Array, folds: Array) -> None:
    """Blends ``gp-irt`` anew for each fold, by the errors of the others."""
    for method, estimator in list(found):
        if estimator != GP_IRT:
            continue
        weighted, p_irt = found[method, WEIGHTED], found[method, P_IRT]
        for fold in np.unique(folds):
            own = folds == fold
            share = _blend_of(found, method, true, ~own)
            found[method, GP_IRT][:, own] = share * weighted[:, own] + (1 - share) * p_irt[:, own]


def _blend_of(found: Mapping[Way, Array], method: str, true: Array, models: Array) -> float:
    weighted, p_irt = found[method, WEIGHTED][:, models], found[method, P_IRT][:, models]
    return blend(weighted.ravel(), p_irt.ravel(), np.broadcast_to(true[models], weighted.shape).ravel())
