"""Certificates: comparisons of stored outputs with recomputed ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

DIFFERING = "differing_samples"  # in the environment of a certificate: the ids of samples that differ
MAY_DIFFER = "may_differ"  # also there: the largest share of all samples that may differ though those compared do not
NEW_METRICS, METRIC_CHANGES = "new_metrics", "metric_changes"  # also there: names of metrics, and how others differ


@dataclass(frozen=True)
class Certificate:
    """A comparison of stored outputs with recomputed outputs of the same samples.

    Attributes:
        samples: The number of recomputed samples.
        differing: The number of them that differ by more than the tolerance.
        flips: The number with a different answer (class or text); None if outputs are not answers.
        largest_difference: The largest absolute difference, relative to the sample's largest number; None for text.
        tolerance: The largest relative difference at which two outputs are equal.
        same_metrics: True if metrics recomputed from the stored outputs equal the stored ones; None if they were not
            recomputed.
        because: The reasons for the comparison: a line for each changed file, version or variable.
        environment: The environment of the recomputed outputs, as in `Evaluation.environment`.
    """

    samples: int
    differing: int
    flips: int | None = None
    largest_difference: float | None = None
    tolerance: float | None = None
    same_metrics: bool | None = None
    because: Sequence[str] = ()
    environment: dict[str, Any] | None = field(default=None, compare=False)
    created_at: datetime | None = field(default=None, compare=False)

    @property
    def equal(self) -> bool:
        """True if the stored outputs and metrics equal the recomputed ones."""
        return not self.differing and self.same_metrics is not False

    @property
    def differing_samples(self) -> list[str]:
        """The ids of samples that differ, as far as they are known."""
        return self._noted(DIFFERING)

    @property
    def new_metrics(self) -> list[str]:
        """The names of metrics that today's code adds to the stored ones."""
        return self._noted(NEW_METRICS)

    @property
    def metric_changes(self) -> list[str]:
        """The differences of stored metrics from those computed from the same outputs; for people."""
        return self._noted(METRIC_CHANGES)

    @property
    def may_differ(self) -> float | None:
        """The largest share of samples that may differ though those that were compared are equal; None if unknown."""
        share = (self.environment or {}).get(MAY_DIFFER)
        return share if isinstance(share, float) else None

    def _noted(self, name: str) -> list[str]:
        lines = self.environment.get(name) if isinstance(self.environment, dict) else None
        return [str(value) for value in lines] if isinstance(lines, list) else []

    @property
    def flip_rate(self) -> float | None:
        """The share of the samples with a different answer."""
        return None if self.flips is None or not self.samples else self.flips / self.samples
