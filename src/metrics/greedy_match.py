"""Greedy matching of two sets of embeddings: the best match of each, averaged, as BERTScore does it.

Cosines are the same to the last bit however the pairs are cut into blocks and padded. Components of an embedding of
unit length are rounded to multiples of 2⁻⁴⁴ and written as a whole number of 2⁻²⁴ and one of 2⁻⁴⁴. The sums of products
of these are whole numbers below 2⁵³ for up to 2¹⁵ dimensions, which float64 holds, so they are exact in any order. The
rounding moves a cosine by about 2⁻⁴⁵; one of equal embeddings is exactly 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from testbed.arrays import Array

BLOCK_BYTES = 2**24

_HIGH, _LOW = 2.0**24, 2.0**20  # a component is (high + low / _LOW) / _HIGH
_SIDE = 256  # sentences of a tile, so that a long text is not one block
_COPIES = 6  # of the embeddings and of the cosines of a block, that are in memory at a time


def greedy_match(
    candidates: Sequence[Array],
    references: Sequence[Array],
    candidate_weights: Sequence[Array] | None = None,
    reference_weights: Sequence[Array] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[Array, Array]:
    """Computes precision and recall of greedy matching by cosine, for N pairs of sets of embeddings.

    Precision is the weighted mean, over a pair's candidates, of each one's largest cosine to a reference; recall the
    same over its references (Zhang et al. 2020, BERTScore). Cosines are as they are, from −1 to 1. That of an embedding
    of zeros is 0. Where an embedding is not finite, both values of its pair are NaN.

    Args:
        candidates: N float arrays [n_i, D] of any scale.
        references: N float arrays [m_i, D].
        candidate_weights: N float arrays [n_i], none negative; None weighs all alike, as do weights that sum to 0.
        reference_weights: N float arrays [m_i].
        block_bytes: About how much memory may be used besides a copy of the embeddings.

    Returns:
        Two float64 arrays [N]. Both values are 0 where a side is empty. A pair's values do not depend on the other
        pairs, on their order or on block_bytes, not in the last bit.

    Raises:
        ValueError: If shapes do not fit, or a weight is negative or not finite.
    """
    sides = [np.asarray(candidate) for candidate in [*candidates, *references]]
    if len(candidates) != len(references):
        raise ValueError(f"expected as many candidates as references, got {len(candidates)} and {len(references)}")
    if any(side.ndim != 2 for side in sides) or len({side.shape[1] for side in sides}) > 1:
        shapes = sorted({side.shape for side in sides})
        raise ValueError(f"expected embeddings [n, D] of one D, got the shapes {shapes[:4]}")
    if not sides:
        return np.zeros(0), np.zeros(0)
    ends = np.cumsum([0, *map(len, sides)])
    rows = [np.arange(start, end) for start, end in pairwise(ends)]
    half = len(candidates)
    return match_rows(
        np.concatenate(sides), rows[:half], rows[half:], candidate_weights, reference_weights, block_bytes
    )


def match_rows(
    embeddings: Array,
    candidates: Sequence[Array],
    references: Sequence[Array],
    candidate_weights: Sequence[Array] | None = None,
    reference_weights: Sequence[Array] | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[Array, Array]:
    """Computes `greedy_match` of sets that are rows of one table.

    Args:
        embeddings: Float array [R, D].
        candidates: N integer arrays [n_i]: rows of the table; a row may be in many sets.
        references: N integer arrays [m_i].
        candidate_weights: As for `greedy_match`.
        reference_weights: As for `greedy_match`.
        block_bytes: About how much memory may be used.
    """
    left, right = _Side(candidates, candidate_weights), _Side(references, reference_weights)
    groups: dict[tuple[int, int], list[_Tile]] = defaultdict(list)
    for tile in _tiles(left, right):
        groups[_padded(tile.left_count), _padded(tile.right_count)].append(tile)
    for (rows, columns), tiles in sorted(groups.items()):
        needed = 8 * _COPIES * ((rows + columns) * embeddings.shape[1] + rows * columns)
        at_once = max(1, block_bytes // needed)
        for start in range(0, len(tiles), at_once):
            _match_block(embeddings, left, right, np.array(tiles[start : start + at_once]), (rows, columns))
    matched = (left.counts > 0) & (right.counts > 0)
    return np.where(matched, left.means(), 0.0), np.where(matched, right.means(), 0.0)


class _Side:
    """The candidates, or the references, of all pairs in a row."""

    def __init__(self, sets: Sequence[Array], weights: Sequence[Array] | None) -> None:
        self.counts = np.array([len(vectors) for vectors in sets], dtype=np.int64)
        self.starts = np.cumsum(self.counts) - self.counts
        self.rows = _in_a_row(sets, np.int64)
        self.pair = np.repeat(np.arange(len(sets)), self.counts)
        self.weights = np.ones(len(self.rows)) if weights is None else self._checked(weights)
        self.best = np.full(len(self.rows), -np.inf)

    def _checked(self, weights: Sequence[Array]) -> Array:
        if [len(weight) for weight in weights] != self.counts.tolist():
            raise ValueError("expected a weight for each embedding of each pair")
        given = _in_a_row(weights, np.float64)
        if not np.isfinite(given).all() or (given < 0).any():
            raise ValueError("expected weights that are finite and not negative")
        sums = np.bincount(self.pair, weights=given, minlength=len(self.counts))
        return np.where(sums[self.pair] > 0, given, 1.0)

    def means(self) -> Array:
        """The weighted mean of the best matches of each pair, added up in their order: float64 [pairs]; 0 if empty."""
        pairs = len(self.counts)
        with np.errstate(invalid="ignore"):  # what an empty other side leaves at −inf
            sums = np.bincount(self.pair, weights=self.weights * self.best, minlength=pairs)
            weights = np.bincount(self.pair, weights=self.weights, minlength=pairs)
            return np.divide(sums, weights, out=np.zeros(pairs), where=weights > 0)


class _Tile(NamedTuple):
    """A part of a pair: where its candidates and its references start in their `_Side`, and how many they are."""

    left_start: int
    left_count: int
    right_start: int
    right_count: int


def _tiles(left: _Side, right: _Side) -> Iterator[_Tile]:
    for start, count, other, others in zip(
        left.starts.tolist(), left.counts.tolist(), right.starts.tolist(), right.counts.tolist(), strict=True
    ):
        for row in range(0, count, _SIDE):
            for column in range(0, others, _SIDE):
                yield _Tile(start + row, min(_SIDE, count - row), other + column, min(_SIDE, others - column))


def _padded(count: int) -> int:
    """A count rounded up to a power of two, or to three quarters of one."""
    power = 1 << (count - 1).bit_length()
    return power * 3 // 4 if power >= 4 and count <= power * 3 // 4 else power


def _match_block(embeddings: Array, left: _Side, right: _Side, tiles: Array, shape: tuple[int, int]) -> None:
    """Puts the largest cosines of some tiles into the sides' ``best``; pads are −inf, so none can win.

    Args:
        embeddings: The table.
        left: Candidates.
        right: References.
        tiles: Integer array [B, 4], rows as `_Tile`.
        shape: To how many candidates and references each is padded.
    """
    places, inside, vectors = [], [], []
    for side, start, count, width in zip((left, right), tiles.T[::2], tiles.T[1::2], shape, strict=True):
        within = np.arange(width) < count[:, None]
        place = start[:, None] + np.where(within, np.arange(width), 0)
        places.append(place)
        inside.append(within)
        vectors.append(_Vectors(embeddings[side.rows[place.ravel()]], len(tiles)))
    cosines = _cosines(*vectors)
    cosines[~(inside[0][:, :, None] & inside[1][:, None, :])] = -np.inf
    for axis, side in enumerate((left, right)):
        largest = cosines.max(axis=2 - axis)
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            np.maximum.at(side.best, places[axis][inside[axis]], largest[inside[axis]])


class _Vectors:
    """Embeddings of unit length in two parts of whole numbers: float64 arrays [B, n, D].

    Attributes:
        high: In 2⁻²⁴.
        low: In 2⁻⁴⁴.
        square: The length of the rounded embedding, squared [B, n]; NaN for one that is not finite, 1 for zeros.
    """

    def __init__(self, embeddings: Array, sets: int) -> None:
        given = embeddings.astype(np.float64)
        largest = np.abs(given).max(axis=1, initial=0.0)
        finite, directed = np.isfinite(largest), largest > 0
        given[~(finite & directed)] = 0
        given /= np.where(finite & directed, largest, 1.0)[:, None]  # so that squares neither overflow nor vanish
        length = np.sqrt(np.square(given).sum(axis=1))
        given *= _HIGH / np.where(length > 0, length, 1.0)[:, None]
        high = np.rint(given)
        given -= high
        given *= _LOW
        low = np.rint(given, out=given)
        square = _value(*(np.einsum("nd,nd->n", a, b) for a, b in ((high, high), (high, low), (low, high), (low, low))))
        shape = (sets, len(embeddings) // max(sets, 1))
        self.high, self.low = (part.reshape(*shape, embeddings.shape[1]) for part in (high, low))
        self.square = np.where(finite, np.where(directed, square, 1.0), np.nan).reshape(shape)


def _cosines(left: _Vectors, right: _Vectors) -> Array:
    """The cosines of each set's candidates and references: float64 array [B, n, m]."""
    high, low = right.high.transpose(0, 2, 1), right.low.transpose(0, 2, 1)
    products = _value(left.high @ high, left.high @ low, left.low @ high, left.low @ low)
    # The root of a product, not a product of roots: that of equal numbers is the number itself.
    products /= np.sqrt(left.square[:, :, None] * right.square[:, None, :])
    return np.clip(products, -1.0, 1.0, out=products)


def _value(high: Array, mixed: Array, other: Array, low: Array) -> Array:
    """Returns the value of the four exact sums of products, always rounded alike."""
    value: Array = (high + ((mixed + other) + low / _LOW) / _LOW) / _HIGH**2
    return value


def _in_a_row(arrays: Sequence[Array], dtype: Any) -> Array:
    return np.concatenate([np.zeros(0, dtype), *(np.asarray(array, dtype=dtype) for array in arrays)])
