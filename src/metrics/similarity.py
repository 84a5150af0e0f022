"""Cosine similarities that are the same however they are computed.

The last bits of a matrix product depend on its shape, on the number of threads and on the processor, so equal
embeddings can get similarities that differ, and which of them is first is then chance. Here the components of an
embedding of unit length are rounded to multiples of 2⁻²⁴: whole numbers that float32 holds. Their products and all sums
of these are whole numbers below 2⁵³, which float64 holds, so a product in float64 is exact in any order of summation.
The rounding moves a similarity by about 2.5 · 10⁻⁸, as computing it in float32 does.
"""

from __future__ import annotations

import numpy as np

from testbed.arrays import Array

UNIT = 2.0**24  # of a component; a similarity of 1 is UNIT²
_VALUES = 2**16  # at a time, so that they stay in the processor's cache


def fixed_point(embeddings: Array) -> tuple[Array, Array]:
    """Returns embeddings at unit length as whole numbers of 2⁻²⁴.

    Args:
        embeddings: Float array [n, D] of any scale.

    Returns:
        Float32 array [n, D] of whole numbers from −2²⁴ to 2²⁴; and a boolean array [n]: whether the embedding has a
        direction. One that is zero or has a component that is not finite has none, and is all zeros here.

    Raises:
        ValueError: If the shape is another.
    """
    given = np.asarray(embeddings)
    if given.ndim != 2:
        raise ValueError(f"expected embeddings [n, D], got {given.shape}")
    n, width = given.shape
    whole, directed = np.zeros((n, width), dtype=np.float32), np.zeros(n, dtype=bool)
    at_once = max(1, _VALUES // max(width, 1))
    for start in range(0, n if width else 0, at_once):
        part = slice(start, start + at_once)
        block = given[part].astype(np.float64, order="C")
        largest = np.abs(block).max(axis=1)
        directed[part] = known = np.isfinite(largest) & (largest > 0)
        block = block[known] / largest[known, None]  # so that squares neither overflow nor vanish
        block *= UNIT / np.sqrt(np.square(block).sum(axis=1))[:, None]
        whole[np.flatnonzero(known) + start] = np.rint(block)
    return whole, directed


def tolerance(width: int) -> float:
    """Returns the largest error of a float32 product of two embeddings in fixed point, in UNIT⁻².

    It is the standard bound of a sum's rounding error in any order, D · 2⁻²⁴ · ‖x‖ · ‖y‖, with room for rounding the
    borders of a comparison to float32.

    Args:
        width: The dimension D of the embeddings.
    """
    return (1.01 * width + 8) * UNIT


def pair_similarities(left: Array, right: Array) -> Array:
    """The exact similarities of pairs: float64 array [n], in UNIT⁻².

    Args:
        left: Fixed point, float32 array [n, D].
        right: The same.
    """
    similarities: Array = np.einsum("nd,nd->n", left, right, dtype=np.float64)
    return similarities
