"""Borda count: candidates ranked by several voters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.metrics.inference.ranks import ranks


@dataclass(frozen=True)
class BordaPlace:
    """A candidate's place.

    Attributes:
        candidate: Its column.
        rank: 1 + the number of candidates that are better; those with equal points and means share a rank.
        points: Over all voters.
        of_voters: The points from each voter.
        mean: The mean of its values over the voters, which decides between equal points.
    """

    candidate: int
    rank: int
    points: float
    of_voters: tuple[float, ...]
    mean: float


def borda_points(values: Array, larger_is_better: bool = True) -> Array:
    """The points that each voter gives: the number of candidates that are beaten, and half of those that are equal.

    Args:
        values: Float array [voters, candidates] of finite numbers; those that agree to 12 digits are equal.
        larger_is_better: True if the largest value is best.

    Returns:
        Float64 array [voters, candidates], from 0 to candidates − 1.

    Raises:
        ValueError: If there are no voters or no candidates, or a value is not finite.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"expected finite values [voters, candidates], got {list(values.shape)}")
    best, worst = ranks(values, larger_is_better)
    points: Array = values.shape[1] - (best + worst) / 2
    return points


def borda(values: Array, larger_is_better: bool = True, names: Sequence[str] | None = None) -> list[BordaPlace]:
    """Ranks candidates by the sum of their points; of equal ones the better mean over voters is first.

    Args:
        values: As `borda_points` takes them: float array [voters, candidates].
        larger_is_better: True if the largest value is best.
        names: The names of the candidates: the order of those that share a rank.

    Returns:
        The places, from the first to the last.
    """
    given = borda_points(values, larger_is_better)
    points, means = given.sum(axis=0), np.asarray(values, dtype=np.float64).mean(axis=0)
    rounded = np.round(means if larger_is_better else -means, 12)
    keys = [(-float(total), -float(mean)) for total, mean in zip(points, rounded, strict=True)]
    order = sorted(range(len(keys)), key=lambda column: (keys[column], names[column] if names else column))
    return [
        BordaPlace(
            candidate=column,
            rank=1 + sum(key < keys[column] for key in keys),
            points=float(points[column]),
            of_voters=tuple(given[:, column].tolist()),
            mean=float(means[column]),
        )
        for column in order
    ]
