"""Confidence measures of a model's answers, from logits alone; larger means surer.

With the logits z of a sample, its probabilities p = softmax(z), and k the class of the largest:

- ``msp``: pₖ, the maximum softmax probability (Hendrycks & Gimpel 2017).
- ``log_odds``: log pₖ / (1 − pₖ): the same order, which still tells apart probabilities that a float rounds to 1.
- ``margin``: pₖ less the second largest probability p₂ (Scheffer, Decomain & Wrobel 2001), as −log(1 − margin), which
  still tells apart margins that a float rounds to 1.
- ``negative_entropy``: Σ p log p, in nats (Shannon 1948).
- ``kl_uniform``: KL(p ‖ uniform), which is log C more.
- ``kl_matching``: minus the smallest KL(p ‖ d) over some typical probabilities d (Hendrycks et al. 2022).
- ``max_logit``: zₖ (Hendrycks et al. 2022).
- ``energy``: log Σ exp z, the free energy with its sign turned (Liu et al. 2020).
- ``gen``: the generalised entropy with its sign turned: −Σ p^γ (1 − p)^γ over the M largest probabilities, γ = 0.1 and
  M = 100 (Liu, Lochman & Zach 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np

from testbed.arrays import Array

MSP, LOG_ODDS, MARGIN = "msp", "log_odds", "margin"
NEGATIVE_ENTROPY, KL_UNIFORM, KL_MATCHING = "negative_entropy", "kl_uniform", "kl_matching"
MAX_LOGIT, ENERGY, GEN = "max_logit", "energy", "gen"
GAMMA, LARGEST = 0.1, 100
_BLOCK = 2**20  # logits at a time, to bound memory


class Softmax:
    """Common parts of the measures; each is computed when first needed.

    Args:
        logits: Float64 array [n, C] of finite numbers.
        typical: The logarithms of typical probabilities [m, C], for ``kl_matching``.
    """

    def __init__(self, logits: Array, typical: Array | None = None) -> None:
        self.largest: Array = logits.max(axis=1)
        self.rest: Array = logits - self.largest[:, None]
        self.typical = typical

    @cached_property
    def total(self) -> Array:
        """The sum of the probabilities in units of the largest, [n]."""
        total: Array = np.exp(self.rest).sum(axis=1)
        return total

    @cached_property
    def others(self) -> Array:
        """`rest` with −∞ in the place of the first of the largest, [n, C]."""
        others = self.rest.copy()
        np.put_along_axis(others, others.argmax(axis=1)[:, None], -np.inf, axis=1)
        return others

    @cached_property
    def logarithms(self) -> Array:
        """The logarithms of the probabilities, [n, C]."""
        logarithms: Array = self.rest - np.log(self.total)[:, None]
        return logarithms

    @cached_property
    def probabilities(self) -> Array:
        """Float array [n, C]."""
        probabilities: Array = np.exp(self.logarithms)
        return probabilities

    @cached_property
    def negative_entropy(self) -> Array:
        """Σ p log p, [n]."""
        entropies: Array = (self.probabilities * self.logarithms).sum(axis=1)
        return entropies


def _log_odds(of: Softmax) -> Array:
    from scipy.special import logsumexp

    odds: Array = -logsumexp(of.others, axis=1)
    return odds


def _margin(of: Softmax) -> Array:
    from scipy.special import logsumexp

    # 1 − margin is the sum of the other probabilities, the second largest counted twice.
    twice = np.concatenate([of.others, of.others.max(axis=1, keepdims=True)], axis=1)
    margins: Array = np.log(of.total) - logsumexp(twice, axis=1)
    return margins


def _kl_uniform(of: Softmax) -> Array:
    divergences: Array = np.log(of.rest.shape[1]) + of.negative_entropy
    return divergences


def _kl_matching(of: Softmax) -> Array:
    if of.typical is None:
        raise ValueError(f"{KL_MATCHING} needs the typical probabilities of each class")
    divergences: Array = (of.probabilities @ of.typical.T).max(axis=1) - of.negative_entropy
    return divergences


MEASURES: Mapping[str, Callable[[Softmax], Array]] = {
    MSP: lambda of: np.exp(-np.log(of.total)),
    LOG_ODDS: _log_odds,
    MARGIN: _margin,
    NEGATIVE_ENTROPY: lambda of: of.negative_entropy,
    KL_UNIFORM: _kl_uniform,
    KL_MATCHING: _kl_matching,
    MAX_LOGIT: lambda of: of.largest,
    ENERGY: lambda of: of.largest + np.log(of.total),
    GEN: lambda of: -generalised_entropy(of.probabilities),
}


def how_sure(
    logits: Array, names: Sequence[str], temperature: float = 1.0, typical: Array | None = None
) -> dict[str, Array]:
    """Computes how confident logits are.

    Args:
        logits: Float array [n, C].
        names: Names in `MEASURES`.
        temperature: The divisor of the logits.
        typical: The logarithms of typical probabilities [m, C], for ``kl_matching``.

    Returns:
        Float64 arrays [n], NaN for a sample with a logit that is not finite, as one that could not be read.
    """
    scores = {name: np.full(len(logits), np.nan) for name in names}
    rows = max(1, _BLOCK // max(1, logits.shape[1]))
    for start in range(0, len(logits), rows):
        values = np.asarray(logits[start : start + rows], dtype=np.float64) / temperature
        finite = np.isfinite(values).all(axis=1)
        if finite.any():
            of = Softmax(values[finite], typical)
            for name, into in scores.items():
                into[start : start + rows][finite] = MEASURES[name](of)
    return scores


def generalised_entropy(probabilities: Array, gamma: float = GAMMA, largest: int = LARGEST) -> Array:
    """Computes GEN (Liu, Lochman & Zach 2023), equation 5: Σ p^γ (1 − p)^γ over the largest probabilities.

    Args:
        probabilities: Float array [n, C].
        gamma: The exponent, between 0 and 1.
        largest: The number of probabilities that count; all if there are fewer.
    """
    classes = probabilities.shape[1]
    kept = np.partition(probabilities, classes - largest, axis=1)[:, -largest:] if largest < classes else probabilities
    total: Array = (kept**gamma * (1 - kept).clip(0) ** gamma).sum(axis=1)
    return total
