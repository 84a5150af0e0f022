"""Mean corruption error of stored results, relative to AlexNet's published errors or to any stored model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, OVERALL, Result, groups_of
from testbed.errors import DataError, StoreError
from testbed.extensions.analyses.corruption_error import (
    ALEXNET,
    ALEXNET_CLEAN,
    corruption_error,
    mean_ratio_interval,
    relative_corruption_error,
)
from testbed.metrics.inference.clusters import clusters_of
from testbed.stored_results.side_by_side import Tell, matching_settings

METRIC = "top1"
SEVERITIES = 5
ON = "imagenet-c.*_on-disk"
CLEAN = "val"
_CELL = re.compile(
    r"(?P<family>.+)\.(?P<corruption>[a-z][a-z0-9_]*)\.(?P<severity>[1-5])(?P<form>(_on-disk|_in-memory)?(_10percent)?)"
)


@dataclass(frozen=True)
class CorruptionErrors:
    """A model under corruptions.

    Attributes:
        model: The model.
        clean: Its error without corruption; None if not stored.
        errors: Corruption → CE, if all its cells are stored.
        mce: The mean of CE; None if a cell is missing.
        low: Lower end of its 95 % interval; None if images are not stored, or differ between corruptions.
        high: Its upper end.
        relative: Relative mCE; None if a cell is missing.
        relative_low: Lower end of its 95 % interval; None as for mCE, or if the clean images differ.
        relative_high: Its upper end.
        missing: The settings without a result.
    """

    model: str
    clean: float | None
    errors: dict[str, float]
    mce: float | None = None
    low: float | None = None
    high: float | None = None
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cells:
    """The settings: corruption → the setting of each severity, and the clean one."""

    corrupted: dict[str, list[str]]
    clean: str


def corruption_errors(
    store: Store,
    models: Sequence[str] = (),
    on: Sequence[str] = (ON,),
    clean: str = CLEAN,
    baseline: str | None = None,
    tell: Tell = lambda note: None,
) -> list[CorruptionErrors]:
    """Computes the corruption errors of models, the smallest mCE first.

    Args:
        store: The results store.
        models: Names or patterns; empty means all with a result on one of the settings.
        on: Settings or patterns, FAMILY.CORRUPTION.SEVERITY of one family.
        clean: The setting without corruption.
        baseline: The model to normalize errors by; None for AlexNet's published errors, which are for ImageNet-C.
        tell: Called with notes on what was left out.

    Raises:
        DataError: If the settings are not corruptions of one family, or AlexNet's errors do not apply to them.
        StoreError: If the baseline has missing results, or makes no errors.
    """
    cells = _cells(matching_settings(store, on, imported=True), clean, baseline, tell)
    every = [setting for settings in cells.corrupted.values() for setting in settings]
    results = _results(store, [*every, clean])
    known = {model for model, of in results.items() if set(of) & set(every)}
    chosen = matching_names("model", models, known)
    if not chosen:
        raise StoreError(f"no model has results on {every[0]}, …; run: testbed run MODEL… --on '{on[0]}'")
    against = _Baseline.of(cells, None if baseline is None else results.get(baseline, {}), baseline)
    images = _Images(store, cells, against)
    rows = [_row(model, cells, results[model], against, images) for model in sorted(chosen)]
    for row in rows:
        if row.missing:
            first = " ".join(row.missing[:3]) + (" …" if len(row.missing) > 3 else "")
            lacking = f"{len(row.missing):,} of {len(every) + 1:,} cells"
            tell(f"{row.model} has no result on {lacking}; run: testbed run '{row.model}' --on {first}")
    return sorted(rows, key=lambda row: (row.mce is None, row.mce, row.model))


def _cells(settings: Sequence[str], clean: str, baseline: str | None, tell: Tell) -> _Cells:
    found = {setting: _CELL.fullmatch(setting) for setting in settings if setting != clean}
    strange = [setting for setting, match in found.items() if match is None]
    if strange or not found:
        raise DataError(
            f"{strange[0] if strange else clean} is not a corruption: expected FAMILY.CORRUPTION.SEVERITY with a"
            " severity from 1 to 5, such as imagenet-c.fog.3_on-disk"
        )
    matches = [name_match for name_match in found.values() if name_match is not None]
    families = sorted({(match["family"], match["form"]) for match in matches})
    if len(families) > 1:
        (one, form), (other, another) = families[:2]
        raise DataError(f"expected corruptions of one family; got {one}.*{form} or {other}.*{another}")
    (family, form) = families[0]
    if baseline is None and family != "imagenet-c":
        raise DataError(f"AlexNet's published errors are for imagenet-c, not for {family}; use --baseline MODEL")
    there = list(dict.fromkeys(match["corruption"] for match in matches))
    if family == "imagenet-c":  # mCE is defined on these
        left_out = [corruption for corruption in there if corruption not in ALEXNET]
        there = [*ALEXNET]
        if left_out:
            tell(f"mCE is the mean of 15 corruptions; not among them: {', '.join(left_out)}")
    whole = range(1, SEVERITIES + 1)
    severities = list(whole) if family == "imagenet-c" else sorted({int(match["severity"]) for match in matches})
    return _Cells(
        {corruption: [f"{family}.{corruption}.{severity}{form}" for severity in severities] for corruption in there},
        clean,
    )


def _results(store: Store, settings: Sequence[str]) -> dict[str, dict[str, Result]]:
    """Model → setting → its result; measured results take precedence over imported ones."""
    found: dict[str, dict[str, Result]] = {}
    for result in store.results.find(None, settings, [METRIC], [OVERALL]):
        if result.value is not None:
            of = found.setdefault(result.model, {})
            if result.eval_setting not in of or of[result.eval_setting].origin in ELSEWHERE:
                of[result.eval_setting] = result
    return found


def _error(of: Mapping[str, Result], setting: str) -> float:
    value = of[setting].value
    assert value is not None
    return 1 - value


@dataclass(frozen=True)
class _Baseline:
    """The mean error of each corruption, the clean error, and the results of a stored baseline."""

    errors: Mapping[str, float]
    clean: float
    results: Mapping[str, Result] | None

    @classmethod
    def of(cls, cells: _Cells, results: Mapping[str, Result] | None, name: str | None) -> _Baseline:
        if results is None:
            return cls(ALEXNET, ALEXNET_CLEAN, None)
        every = [cells.clean, *(setting for settings in cells.corrupted.values() for setting in settings)]
        lacking = [text for text in every if text not in results]
        if lacking:
            raise StoreError(
                f"the baseline {name} has no results for {len(lacking):,} of {len(every):,} cells, such as"
                f" {lacking[0]}; run: testbed run '{name}' --on {lacking[0]}"
            )
        errors = {
            corruption: float(np.mean([_error(results, setting) for setting in settings]))
            for corruption, settings in cells.corrupted.items()
        }
        perfect = [corruption for corruption, error in errors.items() if error <= 0]
        if perfect:
            raise StoreError(f"the baseline {name} makes no errors under {perfect[0]}, so errors cannot be normalized")
        return cls(errors, _error(results, cells.clean), results)


@dataclass(frozen=True)
class _PerImage:
    """The errors of each image, with the same images in all cells.

    Attributes:
        dataset: A data set of the images.
        errors: For each corruption the mean error over the severities, float array [n].
        clean: The error without corruption, [n]; None where that cell does not have the same images.
    """

    dataset: int
    errors: list[Array]
    clean: Array | None


class _Images:
    """Computes the errors of each image, if all cells of a model have the same images."""

    def __init__(self, store: Store, cells: _Cells, against: _Baseline) -> None:
        self._store, self._cells, self._against = store, cells, against
        self._ids = dict[int, list[str]]()
        self._base = None if against.results is None else self._errors(against.results)

    def intervals(self, of: Mapping[str, Result]) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
        """The intervals of mCE and of relative mCE; None without scores of images."""
        own, base = self._errors(of), self._base
        if own is None:
            return None, None
        below: Sequence[Array | float] = list(self._against.errors.values())
        below_clean: Array | float | None = self._against.clean
        if self._against.results is not None:
            if base is None or self._ids_of(own.dataset) != self._ids_of(base.dataset):
                return None, None
            below, below_clean = base.errors, base.clean
        groups = groups_of(self._store.datasets.get(own.dataset).samples)
        clusters = None if groups is None else clusters_of(groups)
        mce = mean_ratio_interval(own.errors, below, clusters)
        if mce is not None:
            mce = max(0.0, mce[0]), mce[1]
        if own.clean is None or below_clean is None:
            return mce, None
        lost = [error - own.clean for error in own.errors]
        return mce, mean_ratio_interval(lost, [errors_of - below_clean for errors_of in below], clusters)

    def _errors(self, of: Mapping[str, Result]) -> _PerImage | None:
        """The errors of each image; None unless all corruptions have the same images in the same order."""
        parts: list[tuple[int, Array]] = []
        for settings in self._cells.corrupted.values():
            part = self._mean_error([of[setting] for setting in settings])
            if part is None or (parts and self._ids_of(part[0]) != self._ids_of(parts[0][0])):
                return None
            parts.append(part)
        dataset = parts[0][0]
        clean = self._mean_error([of[self._cells.clean]]) if self._cells.clean in of else None
        if clean is not None and self._ids_of(clean[0]) != self._ids_of(dataset):
            clean = None
        return _PerImage(dataset, [errors for _, errors in parts], None if clean is None else clean[1])

    def _mean_error(self, used: Sequence[Result]) -> tuple[int, Array] | None:
        """A data set, and the mean error of each of its images; None if the results have different images."""
        if any(result.origin in ELSEWHERE for result in used):
            return None
        cells = [self._store.evaluations.get(result.evaluation_id) for result in used]
        datasets = list(dict.fromkeys(cell.dataset_id for cell in cells if cell.dataset_id is not None))
        scores = self._store.scores.of_each([result.evaluation_id for result in used], METRIC)
        if not datasets or len(scores) < len(used):
            return None
        if any(self._ids_of(dataset) != self._ids_of(datasets[0]) for dataset in datasets):
            return None
        right = np.array([scores[result.evaluation_id] for result in used], dtype=np.float64)
        return None if np.isnan(right).any() else (datasets[0], 1 - right.mean(axis=0))

    def _ids_of(self, dataset: int) -> list[str]:
        if dataset not in self._ids:
            ids = self._store.datasets.sample_ids(dataset, 0, self._store.datasets.head(dataset).size)
            self._ids[dataset] = next(
                (sample_id for sample_id in self._ids.values() if sample_id == ids), ids
            )  # held once
        return self._ids[dataset]


def _row(model: str, cells: _Cells, of: Mapping[str, Result], against: _Baseline, images: _Images) -> CorruptionErrors:
    every = [*(setting for settings in cells.corrupted.values() for setting in settings), cells.clean]
    missing = tuple(text for text in every if text not in of)
    clean = _error(of, cells.clean) if cells.clean in of else None
    whole = {
        corruption: [_error(of, setting) for setting in settings]
        for corruption, settings in cells.corrupted.items()
        if all(setting in of for setting in settings)
    }
    errors = {name: corruption_error(value, against.errors[name]) for name, value in whole.items()}
    if len(whole) < len(cells.corrupted):
        return CorruptionErrors(model, clean, errors, missing=missing)
    ends, relative_ends = images.intervals(of)
    lost = [
        None if clean is None else relative_corruption_error(value, clean, against.errors[name], against.clean)
        for name, value in whole.items()
    ]
    known = [loss for loss in lost if loss is not None]
    relative = float(np.mean(known)) if len(known) == len(lost) else None
    mce, (low, high) = float(np.mean(list(errors.values()))), ends or (None, None)
    relative_low, relative_high = (None if relative is None else relative_ends) or (None, None)
    return CorruptionErrors(
        model, clean, errors, mce, low, high, relative, relative_low, relative_high, missing=missing
    )
