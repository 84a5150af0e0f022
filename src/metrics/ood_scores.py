"""Out-of-distribution scores of samples, from logits alone; high means unlike the known classes.

Scores are measures of `testbed.metrics.sureness` with their sign turned. The typical probabilities of ``kl_matching``
are the mean ones of other samples of known classes, by predicted class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.metric_specs import LOWER, MAIN, rate
from testbed.metrics.classification import log_softmax
from testbed.metrics.sureness import ENERGY, GEN, KL_MATCHING, KL_UNIFORM, MAX_LOGIT, MSP, how_sure

SCORES = (MSP, MAX_LOGIT, ENERGY, KL_UNIFORM, KL_MATCHING, GEN)
CONFIDENCE = rate("confidence", LOWER, headline=MAIN)


def ood_scores(logits: Array, names: Sequence[str] = SCORES, typical: Array | None = None) -> dict[str, Array]:
    """Computes the scores of samples.

    Args:
        logits: Float array [n, C]; a sample with a logit that is not finite has no scores.
        names: Names in `SCORES`.
        typical: The result of `typical_probabilities`, for ``kl_matching``.

    Returns:
        Float64 arrays [n], NaN for samples without scores.

    Raises:
        ValueError: If a name is not in `SCORES`, or ``typical`` is missing.
    """
    if strange := [name for name in names if name not in SCORES]:
        raise ValueError(f"there is no score {strange[0]!r}; there are {', '.join(SCORES)}")
    return {name: -sure for name, sure in how_sure(logits, names, typical=typical).items()}


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
    """Scores a model's confidence about images that belong to none of its classes: a setting's ``metrics_fn``.

    Args:
        logits: Tensor or array [n, C].
        targets: Not used; such samples have none.
        unreadable: True for each of n samples that could not be read.

    Returns:
        The largest softmax probability of each sample as a score, NaN where it could not be read, and its mean.
    """
    values = np.asarray(logits, dtype=np.float64).copy()
    values[np.asarray(unreadable, dtype=bool)] = np.nan
    confidence = how_sure(values, [MSP])[MSP]
    known = confidence[~np.isnan(confidence)]
    mean = float(known.mean()) if len(known) else None
    stderr = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else None
    return [CONFIDENCE.metric(mean, len(known), stderr), CONFIDENCE.score(confidence.astype(np.float32))]
