"""How unlike the known classes a sample is, from its logits alone; high means unlike.

- ``msp``: the largest softmax probability, negated (Hendrycks & Gimpel 2017).
- ``max_logit``: the largest logit, negated (Hendrycks et al. 2022).
- ``energy``: −log Σ exp of the logits (Liu et al. 2020).
- ``kl_uniform``: KL(p ‖ uniform), negated: log C less the entropy of the probabilities p, with the sign turned.
- ``kl_matching``: the smallest KL(p ‖ d) over the mean probabilities d of the samples of each predicted class
  (Hendrycks et al. 2022); the means are those of other samples of known classes.
- ``gen``: the generalised entropy Σ p^γ (1 − p)^γ over the M largest probabilities, γ = 0.1 and M = 100 (Liu, Lochman
  & Zach 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.metric_specs import LOWER, MAIN, rate
from testbed.metrics.classification import log_softmax
from testbed.metrics.detection import anomaly_scores

Array = np.ndarray[Any, Any]

KL_MATCHING = "kl_matching"
SCORES = ("msp", "max_logit", "energy", "kl_uniform", KL_MATCHING, "gen")
GAMMA, LARGEST = 0.1, 100
CONFIDENCE = rate("confidence", LOWER, headline=MAIN)
_BLOCK = 2**20  # logits at a time, to bound memory


def ood_scores(logits: Array, names: Sequence[str] = SCORES, typical: Array | None = None) -> dict[str, Array]:
    """The scores of samples.

    Args:
        logits: Float array [n, C]; a sample with a logit that is not finite has no scores.
        names: Of `SCORES`.
        typical: What `typical_probabilities` returned, for ``kl_matching``.

    Returns:
        Float64 arrays [n], NaN for samples without scores.

    Raises:
        ValueError: If a name is none of `SCORES`, or ``typical`` is missing.
    """
    if strange := [each for each in names if each not in SCORES]:
        raise ValueError(f"there is no score {strange[0]!r}; there are {', '.join(SCORES)}")
    if KL_MATCHING in names and typical is None:
        raise ValueError(f"{KL_MATCHING} needs the typical probabilities of each class")
    found = {name: np.full(len(logits), np.nan) for name in names}
    rows = max(1, _BLOCK // max(1, logits.shape[1]))
    for start in range(0, len(logits), rows):
        values = np.asarray(logits[start : start + rows], dtype=np.float64)
        finite = np.isfinite(values).all(axis=1)
        if finite.any():
            for name, of in _scores(values[finite], names, typical).items():
                found[name][start : start + rows][finite] = of
    return found


def _scores(values: Array, names: Sequence[str], typical: Array | None) -> dict[str, Array]:
    logarithms = log_softmax(values)
    found = anomaly_scores(values)
    if "gen" in names:
        found["gen"] = generalised_entropy(np.exp(logarithms))
    if {"kl_uniform", KL_MATCHING} & set(names):
        probabilities = np.exp(logarithms)
        negentropy = np.einsum("ij,ij->i", probabilities, logarithms)
        found["kl_uniform"] = -(np.log(values.shape[1]) + negentropy)
        if typical is not None:
            found[KL_MATCHING] = negentropy - (probabilities @ typical.T).max(axis=1)
    return {name: found[name] for name in names}


def generalised_entropy(probabilities: Array, gamma: float = GAMMA, largest: int = LARGEST) -> Array:
    """GEN (Liu, Lochman & Zach 2023), equation 5: Σ p^γ (1 − p)^γ over the largest probabilities.

    Args:
        probabilities: Float array [n, C].
        gamma: The exponent, between 0 and 1.
        largest: How many probabilities count; all if there are fewer.
    """
    classes = probabilities.shape[1]
    kept = np.partition(probabilities, classes - largest, axis=1)[:, -largest:] if largest < classes else probabilities
    total: Array = (kept**gamma * (1 - kept).clip(0) ** gamma).sum(axis=1)
    return total


def typical_probabilities(logits: Array) -> Array:
    """The logarithms of the mean probabilities of the samples of each predicted class.

    Args:
        logits: Float array [n, C] of samples of known classes; those with a logit that is not finite do not count.

    Returns:
        Float64 array [classes, C], a row for each class that is predicted at least once.

    Raises:
        ValueError: If no sample has finite logits.
    """
    values = np.asarray(logits, dtype=np.float64)
    values = values[np.isfinite(values).all(axis=1)]
    if not len(values):
        raise ValueError("there are no samples with finite logits")
    logarithms = log_softmax(values)
    predicted = values.argmax(axis=1)
    means = [np.logaddexp.reduce(logarithms[predicted == label], axis=0) for label in np.unique(predicted)]
    sizes = np.unique(predicted, return_counts=True)[1]
    typical: Array = np.stack(means) - np.log(sizes)[:, None]
    return typical


def of_no_class(logits: Any, targets: Any, unreadable: Sequence[bool]) -> list[Any]:
    """How sure a model is about images of no class it knows: a setting's ``metrics_fn``.

    Args:
        logits: Tensor or array [n, C].
        targets: Not used; such samples have none.
        unreadable: For each of n samples whether it could not be read.

    Returns:
        The largest softmax probability of each sample as a score, NaN where it could not be read, and its mean.
    """
    values = np.asarray(logits, dtype=np.float64).copy()
    values[np.asarray(unreadable, dtype=bool)] = np.nan
    confidence = -ood_scores(values, ["msp"])["msp"]
    known = confidence[~np.isnan(confidence)]
    mean = float(known.mean()) if len(known) else None
    stderr = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else None
    return [CONFIDENCE.metric(mean, len(known), stderr), CONFIDENCE.score(confidence.astype(np.float32))]
