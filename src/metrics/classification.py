"""Top-k accuracy from logits.

Ties: classes are ranked by descending logit, equal logits by ascending class index, as numpy's argmax and a stable sort
do. (torch.topk leaves the order of ties to the device.) A sample with a NaN among its logits is wrong for every k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NEVER = np.iinfo(np.int64).max  # the rank of a target that is right for no k
_BLOCK = 4096  # rows at a time, to bound the memory of comparisons


def target_ranks(logits: np.ndarray[Any, Any], targets: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The place of each sample's target among its logits, 0 for the best.

    Args:
        logits: Float array [n, C].
        targets: Integer array [n] with values in [0, C).

    Returns:
        Integer array [n]: the number of classes that are ranked before the target; `NEVER` where a logit is NaN.

    Raises:
        ValueError: If the shapes do not fit or a target is out of range.
    """
    logits, targets = np.asarray(logits), np.asarray(targets)
    if logits.ndim != 2 or targets.shape != logits.shape[:1]:
        raise ValueError(f"expected logits [n, C] and targets [n], got {logits.shape} and {targets.shape}")
    n, classes = logits.shape
    if n and (targets.min() < 0 or targets.max() >= classes):
        raise ValueError(
            f"expected targets from 0 to {classes - 1} for {classes} logits, got {targets.min()} to {targets.max()}"
        )
    ranks = np.empty(n, dtype=np.int64)
    index = np.arange(classes)
    for start in range(0, n, _BLOCK):
        block, wanted = logits[start : start + _BLOCK], targets[start : start + _BLOCK]
        own = np.take_along_axis(block, wanted[:, None], axis=1)
        before = (block > own) | ((block == own) & (index < wanted[:, None]))
        found = before.sum(axis=1)
        found[np.isnan(block).any(axis=1)] = NEVER
        ranks[start : start + _BLOCK] = found
    return ranks


def topk_correct(ranks: np.ndarray[Any, Any], k: int) -> np.ndarray[Any, Any]:
    """Whether each target is among the k best: boolean array [n]."""
    return ranks < k
