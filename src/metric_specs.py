"""Declarations of metrics and per-sample scores, beside their formulas: unit, direction, range.

Declarations are stored with every value; sorting, ranking, shading and printing read them from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from testbed.entities import FRACTION, OVERALL, Better, Metric, Result, Score
from testbed.errors import DefinitionError

if TYPE_CHECKING:
    import numpy as np

HIGHER: Better = "higher"
LOWER: Better = "lower"
NEITHER: Better = "neither"
DIRECTIONS = (HIGHER, LOWER, NEITHER)

# How much a metric is the main one; see `MetricSpec.headline`.
PREFERRED = 20  # what a benchmark itself reports, before the usual accuracy
MAIN = 10
LAST = 1  # if there is nothing else, such as the share of samples with an answer
NEVER = -1


# Decimals by the unit, in which the value is shown (fractions in percent); those of other units.
DECIMALS = {FRACTION: 2, "percent": 2, "%": 2, "points": 2, "rank": 2, "words": 2, "sentences": 2}
OTHER_DECIMALS = 4


@dataclass(frozen=True)
class MetricSpec:
    """The declaration of a metric or a per-sample score.

    Attributes:
        name: Such as ``top1``.
        unit: ``fraction`` (shown in percent), ``nats``, ``points``, …; empty if it has none.
        better: ``higher`` or ``lower``, the better direction; ``neither`` for what is neither good nor bad, such as a
            length; None if it is not declared.
        lowest: The smallest possible value; None if there is none or it is not known.
        highest: The largest possible value, likewise.
        headline: The main metric of a setting is the one with the largest number; a score needs a positive one.
        zero_one: True if each sample has 0 (wrong) or 1 (right).

    Raises:
        DefinitionError: If a field has no possible value.
    """

    name: str
    unit: str = FRACTION
    better: Better | None = None
    lowest: float | None = None
    highest: float | None = None
    headline: int = 0
    zero_one: bool = False

    def __post_init__(self) -> None:
        if self.better is not None and self.better not in DIRECTIONS:
            raise DefinitionError(
                f"the metric {self.name!r}: better is {self.better!r}; expected {', '.join(DIRECTIONS)} or None"
            )
        if self.lowest is not None and self.highest is not None and not self.lowest <= self.highest:
            raise DefinitionError(f"the metric {self.name!r}: lowest is {self.lowest}, above highest, {self.highest}")

    def metric(
        self,
        value: float | None,
        n: int | None = None,
        stderr: float | None = None,
        slice: str = OVERALL,
        scorer: str = "",
        published: str | None = None,
        clusters: int | None = None,
    ) -> Metric:
        """Returns the metric with a value; see `Metric`. A standard error of 0 is uninformative and not kept."""
        error = known_error(stderr, value)
        return Metric(
            self.name, value, n, error, slice, self.unit, scorer, published, **self.declared(), clusters=clusters
        )

    def score(self, values: np.ndarray[Any, Any], scorer: str = "") -> Score:
        """The score with a value for each sample, array of shape [n]."""
        return Score(self.name, values, scorer, self.unit, **self.declared())

    @property
    def decimals(self) -> int:
        """The decimals with which values are shown; see `testbed.formatting`."""
        return decimals_of(self.unit)

    def declared(self) -> dict[str, Any]:
        """The fields besides the name and the unit."""
        return {name: getattr(self, name) for name in DECLARED}

    def clip(self, low: float, high: float) -> tuple[float, float]:
        """An interval, cut to the range of the values."""
        if self.lowest is not None:
            low, high = max(low, self.lowest), max(high, self.lowest)
        if self.highest is not None:
            low, high = min(low, self.highest), min(high, self.highest)
        return low, high


def decimals_of(unit: str) -> int:
    """The decimals with which values, differences and ends of intervals of this unit are shown."""
    return DECIMALS.get(unit, OTHER_DECIMALS)


def known_error(stderr: float | None, value: float | None = None) -> float | None:
    """Returns an informative standard error: None for one that is unknown, not finite, or 0 up to rounding.

    It is 0 where all samples are equal, or where a linearised metric is at an end of its range. The next sample may
    still differ.
    """
    if stderr is None or not math.isfinite(stderr) or stderr <= 1e-12 * abs(value or 0.0):
        return None
    return float(stderr)


DECLARED = tuple(field.name for field in fields(MetricSpec) if field.name not in ("name", "unit"))


def rate(name: str, better: Better = HIGHER, headline: int = 0, zero_one: bool = False) -> MetricSpec:
    """A share: from 0 to 1, shown in percent."""
    return MetricSpec(name, FRACTION, better, 0, 1, headline, zero_one)


def spec_of(stored: Metric | Score | Result) -> MetricSpec:
    """Returns the declaration of a stored value."""
    name = stored.metric if isinstance(stored, Result) else stored.name
    return MetricSpec(name, stored.unit, **{field: getattr(stored, field) for field in DECLARED})


def agreed(specs: Iterable[MetricSpec]) -> MetricSpec:
    """Returns the fields on which several declarations of a metric agree, such as those of its values on a setting.

    A field that one declares and another leaves open is taken from the one; where two differ, nothing is declared.
    """
    several = list(dict.fromkeys(specs))
    if len(several) == 1:
        return several[0]
    units = {spec.unit for spec in several}
    common: dict[str, Any] = {}
    for name in ("better", "lowest", "highest"):
        values = {getattr(spec, name) for spec in several} - {None}
        common[name] = values.pop() if len(values) == 1 else None
    headline = max(spec.headline for spec in several)
    zero_one = all(spec.zero_one for spec in several)
    unit = units.pop() if len(units) == 1 else ""
    return MetricSpec(several[0].name, unit, **common, headline=headline, zero_one=zero_one)


def main_metric(specs: Iterable[MetricSpec]) -> MetricSpec | None:
    """The main one of a setting's metrics: that with the largest ``headline``; of equal ones a fraction comes first."""
    return next(iter(_in_order(specs)), None)


def main_score_of(specs: Iterable[MetricSpec]) -> MetricSpec | None:
    """The main one of per-sample scores; None if none is declared as such."""
    return next((spec for spec in _in_order(specs) if spec.headline > 0), None)


def right_or_wrong(specs: Iterable[MetricSpec]) -> MetricSpec | None:
    """Returns the per-sample score that marks a sample as right or wrong; None if there is none."""
    return main_score_of(spec for spec in specs if spec.zero_one)


def _in_order(specs: Iterable[MetricSpec]) -> Sequence[MetricSpec]:
    return sorted(specs, key=lambda spec: (-spec.headline, spec.unit != FRACTION, len(spec.name), spec.name))
