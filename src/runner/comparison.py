"""Comparing outputs of the same samples, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.db.entities import Certificate, DatasetInfo, SampleInfo

# Up to which difference, relative to the largest number of a sample's outputs, two outputs are equal: what other batch
# sizes, processors and releases of a library move. A changed definition moves outputs by more.
TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}


class Comparison:
    """Outputs of samples, stored and recomputed, compared one by one.

    Args:
        tolerance: Up to which relative difference two outputs are equal.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.samples = self.differing = 0
        self.flips: int | None = None
        self.largest: float | None = None
        self.same_metrics: bool | None = None

    def add(self, before: Any, now: Any, answers: bool = False) -> None:
        """Compares the outputs of a sample: two arrays, or two JSON values.

        Args:
            before: The stored one.
            now: The recomputed one.
            answers: Whether the largest number is the answer, which may flip.
        """
        self.samples += 1
        if not isinstance(before, np.ndarray) or not isinstance(now, np.ndarray):
            self.flips = (self.flips or 0) + (before != now)
            self.differing += before != now
            return
        self.differing += not self._equal(before, now)
        if answers:
            flipped = before.shape != now.shape or (before.size and np.argmax(before) != np.argmax(now))
            self.flips = (self.flips or 0) + bool(flipped)

    def add_texts(self, before: Any, now: Any) -> None:
        """Compares embeddings [n, D] of texts, from which the metrics are computed together with the outputs."""
        for old, new in zip(before, now, strict=True):
            if not self._equal(old, new):
                self.same_metrics = False

    def _equal(self, before: Any, now: Any) -> bool:
        difference = relative_difference(before, now)
        self.largest = max(self.largest or 0.0, difference)
        return difference <= self.tolerance

    def certificate(self) -> Certificate:
        """What came out."""
        return Certificate(
            samples=self.samples,
            differing=self.differing,
            flips=self.flips,
            same_metrics=self.same_metrics,
            largest_difference=self.largest,
            tolerance=None if self.largest is None else self.tolerance,
        )


def relative_difference(before: Any, now: Any) -> float:
    """The largest difference of two arrays, relative to their largest finite number; infinite where shapes differ.

    Numbers that are NaN, or the same infinity, in both are equal; those that are so in one alone are infinitely far
    apart.
    """
    if before.shape != now.shape:
        return math.inf
    old, new = before.astype(np.float64), now.astype(np.float64)
    same = (old == new) | (np.isnan(old) & np.isnan(new))
    finite = np.isfinite(old) & np.isfinite(new)
    if not (same | finite).all():
        return math.inf
    scale = max((float(np.abs(each[finite]).max(initial=0.0)) for each in (old, new)), default=0.0)
    gap = float(np.abs(old[finite] - new[finite]).max(initial=0.0))
    return gap / scale if gap else 0.0


def places_in(dataset: DatasetInfo, samples: Sequence[SampleInfo]) -> list[int | None]:
    """For each sample its position in another data set; the same sample has the same name and content.

    Embedded images are named by their content.
    """
    there: dict[tuple[str, str], int] = {}
    for position, sample in enumerate(dataset.samples):
        there.setdefault((sample.id, sample.digest), position)
    return [there.get((sample.id, sample.digest), there.get((sample.digest, sample.digest))) for sample in samples]
