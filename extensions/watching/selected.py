"""The best of several models, chosen by the samples that it is then measured on: it looks better than it is.

All functions take per-sample scores of models on the same samples, of which a higher one is better.
"""

from __future__ import annotations

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference.clusters import cluster_sums

FLIPS = 4_000
SPLITS = 20
_BLOCK = 2**23  # values at a time, to bound memory
_ROUNDING = 1e-6


def worse_than_chosen(new: Array, others: Array, chosen: int, clusters: Array | None = None) -> float:
    """Returns the p-value of "the new model is at least as good as the chosen one", however that was chosen.

    The difference to the chosen one, in standard errors, is compared with the largest such difference to any of the
    others under random signs of samples: a sample's sign is the same for all of them, so that what they share is kept
    (a single-step max-T test: Westfall and Young 1993). With one other model it is the one-sided sign-flip test.

    Args:
        new: Float array [n].
        others: Float array [models, n].
        chosen: The index of the chosen one.
        clusters: Integer array [n]: which samples belong together; None: each is alone.

    Returns:
        The one-sided p-value: a share of the draws, so at least one in `FLIPS`.
    """
    sums, _ = cluster_sums((others - new).T.astype(np.float64), clusters)
    lengths = np.sqrt(np.square(sums).sum(axis=0))
    if lengths[chosen] == 0:
        return 1.0
    own = float(sums[:, chosen].sum() / lengths[chosen])
    moving = (sums != 0).any(axis=1)
    scaled = (sums[moving][:, lengths > 0] / lengths[lengths > 0]).astype(np.float32)
    random = np.random.Generator(np.random.Philox(0))
    at_once, as_large = max(1, _BLOCK // len(scaled)), 0
    for start in range(0, FLIPS, at_once):
        signs = random.integers(2, size=(min(at_once, FLIPS - start), len(scaled)), dtype=np.int8)
        flipped = (signs.astype(np.float32) * 2 - 1) @ scaled
        as_large += int((flipped.max(axis=1) >= own - _ROUNDING * max(1.0, abs(own))).sum())
    return (as_large + 1) / (FLIPS + 1)


def decline(p: float, new: Array, others: Array, chosen: int, clusters: Array | None = None) -> float:
    """The two-sided p-value of a new model that scores lower than the best of others, allowing for its choice.

    Args:
        p: That of the paired test of the two alone.
        new: As of `worse_than_chosen`, like the others.
        others: Likewise.
        chosen: Likewise.
        clusters: Likewise.

    Returns:
        Bonferroni's where that is less: draws alone give no very small one.
    """
    return min(1.0, len(others) * p, max(p, 2 * worse_than_chosen(new, others, chosen, clusters)))


def expected_of_best(scores: Array, clusters: Array | None = None) -> float:
    """The mean score to expect, on other samples, of the model that is the best on these.

    It is chosen by one half of the samples and measured on the other, and the mean is taken over random halves. So it
    is about the common score where all models are equally good, and the best one's own where that is far ahead.

    Args:
        scores: Float array [models, n], n > 1; NaN where a sample does not count.
        clusters: Integer array [n]: which samples belong together; None: each is alone.
    """
    counted = np.isfinite(scores)
    sums, _ = cluster_sums(np.where(counted, scores, 0.0).T.astype(np.float64), clusters)
    sizes, _ = cluster_sums(counted.T.astype(np.float64), clusters)
    random = np.random.Generator(np.random.Philox(0))
    best = []
    for _ in range(SPLITS):
        first = random.permutation(len(sums)) % 2 == 0
        means = [sums[half].sum(axis=0) / np.maximum(sizes[half].sum(axis=0), 1) for half in (first, ~first)]
        best += [means[1][np.argmax(means[0])], means[0][np.argmax(means[1])]]
    return float(np.mean(best))
