"""Non-finite outputs: the sign of a network that is broken or overflows its precision."""

from __future__ import annotations

import numpy as np

from testbed.arrays import Array

_BLOCK = 4096  # rows at a time, to bound the memory of comparisons


def not_finite(outputs: Array) -> Array:
    """Marks the samples with an output that is NaN or +∞, or nothing but −∞.

    A −∞ beside finite numbers is how models mask a class out, and is not a fault.

    Args:
        outputs: Array [n, …].

    Returns:
        Boolean array [n]; all False if the outputs are not floats (texts, integers).
    """
    broken = np.zeros(len(outputs), dtype=bool)
    if not np.issubdtype(outputs.dtype, np.floating):
        return broken
    for start in range(0, len(outputs), _BLOCK):
        block = outputs[start : start + _BLOCK].reshape(len(outputs[start : start + _BLOCK]), -1)
        if block.shape[1] and not np.isfinite(block).all():
            broken[start : start + _BLOCK] = ~np.isfinite(block.max(axis=1))
    return broken
