"""Comparing outputs of the same samples, sample by sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from testbed.certificates import Certificate
from testbed.entities import DatasetInfo, SampleInfo

# Two outputs are equal up to this difference, relative to the largest number of a sample's outputs. Batch sizes,
# processors and library releases cause differences of this size; a changed definition causes larger ones.
TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "float16": 1e-2, "bfloat16": 5e-2}


_CONFIDENCE = 0.95


def may_differ(samples: int, size: int) -> float:
    """The largest share of ``size`` samples that may differ if none of those compared does, at 95 % confidence."""
    return 0.0 if samples >= size else 1 - (1 - _CONFIDENCE) ** (1 / max(1, samples))


def enough(share: float) -> int:
    """Returns how many equal samples show that less than a share of all differ."""
    return math.ceil(math.log(1 - _CONFIDENCE) / math.log(1 - share))


def tolerance(precision: str) -> float:
    """Returns the relative difference allowed for outputs at a precision; see `RunOptions.precision`."""
    return max(TOLERANCE.get(each, TOLERANCE["float32"]) for each in precision.split("/"))


class OutputComparison:
    """Compares stored and recomputed outputs by sample; two are equal up to a relative difference."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self.samples = self.differing = 0
        self.flips: int | None = None
        self.largest: float | None = None
        self.same_metrics: bool | None = None

    def add(self, before: Any, now: Any, answers: bool = False) -> bool:
        """Compares the outputs of a sample: two arrays, or two JSON values; returns whether they differ.

        Args:
            before: The stored output.
            now: The recomputed output.
            answers: Whether the largest number is the answer, so that flips are counted.
        """
        self.samples += 1
        if not isinstance(before, np.ndarray) or not isinstance(now, np.ndarray):
            differs = _said(before) != _said(now)
            self.flips = (self.flips or 0) + differs
            self.differing += differs
            return bool(differs)
        differs = not self._equal(before, now)
        self.differing += differs
        if answers:
            flipped = before.shape != now.shape or (before.size and np.argmax(before) != np.argmax(now))
            self.flips = (self.flips or 0) + bool(flipped)
        return differs

    def add_texts(self, before: Any, now: Any) -> None:
        """Compares embeddings [n, D] of texts, which the metrics depend on besides the outputs."""
        for old, new in zip(before, now, strict=True):
            if not self._equal(old, new):
                self.same_metrics = False

    def add_answers(self, before: Sequence[Any], now: Sequence[Any]) -> None:
        """Compares answers to requests, which the metrics depend on besides the outputs; None stands for no answer."""
        if any(old is not None and _said(old) != _said(new) for old, new in zip(before, now, strict=True)):
            self.same_metrics = False

    def _equal(self, before: Any, now: Any) -> bool:
        difference = relative_difference(before, now)
        self.largest = max(self.largest or 0.0, difference)
        return difference <= self.tolerance

    def certificate(self) -> Certificate:
        """The outcome."""
        return Certificate(
            samples=self.samples,
            differing=self.differing,
            flips=self.flips,
            same_metrics=self.same_metrics,
            largest_difference=self.largest,
            tolerance=None if self.largest is None else self.tolerance,
        )


def _said(value: Any) -> Any:
    """An answer without what is stored besides it, such as the server's name of the request."""
    return {name: each for name, each in value.items() if name != "extra"} if isinstance(value, dict) else value


def relative_difference(before: Any, now: Any) -> float:
    """The largest difference of two arrays, relative to their largest finite number; infinite if shapes differ.

    NaN equals NaN and infinity equals the same infinity; a number that is non-finite in only one array makes the
    difference infinite.
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
    """For each sample its position in another data set; samples are the same if id and content are.

    The ids of embedded images are their content digests.
    """
    there: dict[tuple[str, str], int] = {}
    for position, sample in enumerate(dataset.samples):
        there.setdefault((sample.id, sample.digest), position)
    return [there.get((sample.id, sample.digest), there.get((sample.digest, sample.digest))) for sample in samples]
