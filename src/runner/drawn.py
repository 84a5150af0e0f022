"""Estimates for all samples of a setting from the first ones in random order, from stored scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from testbed.arrays import Array
from testbed.data.random_order import units_of
from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, DatasetInfo, Evaluation
from testbed.errors import StoreError
from testbed.metric_specs import LOWER, MetricSpec, main_metric, spec_of
from testbed.metrics.inference.sequential import ALPHA, EFFECTS, betting_interval
from testbed.registry.catalog import Catalog
from testbed.registry.references import SettingReference

_OF = {"accuracy": "score"}  # metrics that are the mean of a score of another name, and that
_AMONG_ALL = ("CIDEr",)  # metrics whose score of a sample depends on the other samples
_ROUNDED = 1e-6  # scores are stored as float32


@dataclass(frozen=True)
class Population:
    """All samples of a setting.

    Attributes:
        size: Their number.
        units: The number of what is drawn as a whole: of samples, or of groups of samples.
        largest: The number of samples in the largest of these.
    """

    size: int
    units: int
    largest: int

    @classmethod
    def of(cls, catalog: Catalog, setting: str) -> Population:
        """That of a setting by name: lists its data set, and reads no sample.

        Raises:
            TestbedError: If the data set cannot be opened.
        """
        definition = catalog.get_eval_setting(setting)
        source = definition.dataset.open()
        positions = definition.samples.positions(source)
        counted = Counter(units_of(source, positions))
        return cls(len(positions), len(counted), max(counted.values(), default=0))


@dataclass(frozen=True)
class MeanEstimate:
    """The mean score of all samples of a setting, or the difference of two models' means, from some of the samples.

    Attributes:
        metric: The metric.
        points: Whether it is shown in percent.
        value: Of the samples that were evaluated.
        low: The mean of all is above this, with 95 % confidence at all looks together.
        high: It is below this.
        n: The number of samples that were evaluated.
        units: The number of groups that these are; None if each sample is one.
        variance: Of the scores.
    """

    metric: str
    points: bool
    value: float
    low: float
    high: float
    n: int
    units: int | None
    variance: float

    @property
    def half_width(self) -> float:
        """Returns the largest distance of the mean of all samples from the value."""
        return max(self.high - self.value, self.value - self.low)


@dataclass(frozen=True)
class _Scores:
    spec: MetricSpec
    values: Array  # [n], in [0, 1]
    dataset: DatasetInfo


def mean_of(
    store: Store, evaluation: Evaluation, population: Population, metric: str | None, half: float
) -> MeanEstimate:
    """The mean score, by bets that are best for an interval ± ``half``.

    Args:
        evaluation: On the first samples in random order, or on all.
        population: All samples.
        metric: The metric; None for the main one.
        half: In points, or in the unit of a metric that is not a fraction.

    Raises:
        StoreError: If the metric is not a mean of scores with a declared range.
    """
    found = _scores(store, evaluation, metric)
    lowest, width = _range(found.spec)
    points = found.spec.unit == FRACTION
    target = (half / 100 if points else half) / width
    return _estimate(found, found.values, population, (target,), lowest, width)


def gain_of(
    store: Store, evaluation: Evaluation, other: Evaluation, population: Population, metric: str | None
) -> MeanEstimate:
    """Returns how much better a model is than another one on the same samples; arguments as in `mean_of`."""
    first, second = _scores(store, evaluation, metric), _scores(store, other, metric)
    if first.spec.better is None or first.spec.better not in ("higher", LOWER):
        raise StoreError(f"whether a higher or a lower {first.spec.name} is better is not declared")
    if first.dataset.fingerprint != second.dataset.fingerprint:
        raise StoreError(f"{other.model} has other samples of {evaluation.eval_setting}: the data have changed")
    gain = first.values - second.values if first.spec.better != LOWER else second.values - first.values
    _, width = _range(first.spec)
    targets = tuple(effect / 2 for effect in EFFECTS)
    return _estimate(first, (gain + 1) / 2, population, targets, -width, 2 * width)


def _estimate(
    found: _Scores, values: Array, population: Population, targets: tuple[float, ...], lowest: float, width: float
) -> MeanEstimate:
    units = None if population.units == population.size else population.units
    low = high = float(values.mean())
    if len(values) < population.size:
        keys = (sample.id if sample.group is None else f"{sample.group}\0" for sample in found.dataset.samples)
        sizes = np.array([len(list(members)) for _, members in groupby(keys)])  # a group's samples follow each other
        sums = np.add.reduceat(values, np.cumsum(sizes) - sizes)
        low, high = betting_interval(sums, population.size, targets, ALPHA, sizes, population.units, population.largest)
        units = None if units is None else len(sizes)
    return MeanEstimate(
        metric=found.spec.name,
        points=found.spec.unit == FRACTION,
        value=float(lowest + width * values.mean()),
        low=lowest + width * low,
        high=lowest + width * high,
        n=len(values),
        units=units,
        variance=float(width**2 * np.var(values)),
    )


def _scores(store: Store, evaluation: Evaluation, metric: str | None) -> _Scores:
    metrics = {spec_of(each): each for each in store.results.metrics(evaluation.id) if each.slice == OVERALL}
    specs = store.scores.specs([evaluation.id])[evaluation.id]
    ranged = [spec for spec in metrics if spec.lowest is not None and spec.highest is not None]
    alone = [spec.name for spec in ranged if spec.name not in _AMONG_ALL]
    means = sorted(name for name in alone if _OF.get(name, name) in specs)
    where = evaluation.eval_setting
    works = f"these work: {', '.join(means)}, as in --until {means[0]}:1" if means else "none of its metrics works"
    chosen = next((spec for spec in metrics if spec.name == metric), None) if metric else main_metric(metrics)
    if chosen is None:
        raise StoreError(f"{where} has no metric {metric or ''}; {works}")
    if chosen.name not in means:
        raise StoreError(
            f"the {'main ' if metric is None else ''}metric of {where}, {chosen.name}, is not a mean of scores of the"
            f" samples, each by itself and in a known range, so no interval is valid at every look; {works}"
        )
    score = _OF.get(chosen.name, chosen.name)
    values = store.scores.of_each([evaluation.id], score)[evaluation.id].astype(np.float64)
    lowest, width = _range(chosen)
    if np.isnan(values).any():
        raise StoreError(f"{int(np.isnan(values).sum()):,} samples of {where} have no {chosen.name}; {works}")
    value = metrics[chosen].value
    if value is None or abs(values.mean() - value) > _ROUNDED * width:
        raise StoreError(f"the {chosen.name} of {where} is not the mean of its samples' scores; {works}")
    if "idf" in SettingReference.parse(where).words:
        raise StoreError(f"the {chosen.name} of a sample of {where} depends on the other samples; {works}")
    scaled = (values - lowest) / width
    if scaled.min() < -_ROUNDED or scaled.max() > 1 + _ROUNDED:
        raise StoreError(f"the {chosen.name} of some samples of {where} is outside the range that it declares; {works}")
    if evaluation.dataset_id is None:
        raise StoreError(f"the evaluation on {where} has no samples")
    return _Scores(chosen, np.clip(scaled, 0, 1), store.datasets.get(evaluation.dataset_id))


def _range(spec: MetricSpec) -> tuple[float, float]:
    """The lowest value and the width of the range of a metric that declares it."""
    assert spec.lowest is not None
    assert spec.highest is not None
    return spec.lowest, spec.highest - spec.lowest
