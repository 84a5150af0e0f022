"""Estimates accuracies on settings without labels from stored logits, and compares them with stored accuracies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import DataError
from testbed.extensions.estimates.methods.label_free import (
    ALINE_D,
    ALINE_S,
    ALONE,
    AgreementLine,
    Sureness,
    agreement_on_the_line,
    sureness,
)
from testbed.metrics.classification import predicted_classes
from testbed.metrics.combining import fit_temperature
from testbed.stored_results.main_scores import main_score_on
from testbed.stored_results.predictions import viewed
from testbed.stored_results.side_by_side import (
    SampleTable,
    SideBySide,
    Tell,
    choose,
    require_binary,
    scores_of,
    side_by_side,
)

METHODS = (*ALONE, ALINE_S, ALINE_D)
_FITTED = 5000  # samples that a temperature is fitted on


@dataclass(frozen=True)
class OnShift:
    """A model on a setting.

    Attributes:
        known: Its accuracy where the labels are known.
        estimates: Method → the estimated accuracy; those that use several models are absent if there are too few.
        true: The accuracy, if stored; else None.
    """

    model: str
    eval_setting: str
    n: int
    known: float
    estimates: Mapping[str, float]
    true: float | None


@dataclass(frozen=True)
class MethodErrors:
    """The errors of a method over all models and settings with a known accuracy."""

    method: str
    mean_absolute: float
    largest: float
    cells: int


@dataclass(frozen=True)
class LabelFree:
    """Estimates without labels.

    Attributes:
        rows: Each setting, and each model on it.
        lines: Setting → the line of agreements; None if missing.
        summary: Each method with a known truth, the best first.
        temperatures: Model → the divisor of its logits; empty without calibration.
    """

    rows: Sequence[OnShift]
    lines: Mapping[str, AgreementLine | None]
    summary: Sequence[MethodErrors]
    temperatures: Mapping[str, float]


@dataclass(frozen=True)
class _Outputs:
    """A model's outputs on a setting: the samples of a table, in its order."""

    sure: Sureness
    predicted: Array
    classes: int


def label_free(
    store: Store,
    models: Sequence[str],
    shifts: Sequence[str],
    known: str,
    calibrate: bool = False,
    tell: Tell = lambda note: None,
    first: Collection[int] = (),
) -> LabelFree:
    """Estimates accuracies without the labels of the settings.

    Args:
        store: The results store.
        models: Names or patterns; empty means all.
        shifts: The settings.
        known: A setting with labels, of the same classes.
        calibrate: Whether to divide each model's logits by a temperature fitted there.
        tell: Called with notes on what was left out.
        first: Ids of evaluations that take precedence over the reported ones.

    Raises:
        StoreError: If there are no logits, or no score of 0 and 1 on the known setting.
        DataError: If a shift is the known setting itself.
    """
    if known in shifts:
        raise DataError(f"{known} is the setting whose labels are used; estimate the accuracy on others")
    score = main_score_on(store, [known], binary=True, first=first)
    cells = choose(store, [known], models, score, tell=tell, first=first)[known]
    samples = SampleTable(store)
    table = side_by_side(store, samples, known, cells, score, tell)
    require_binary(table, score, "an estimate without labels")
    temperatures = _temperatures(store, samples, table) if calibrate else {}
    before = _seen(store, table, temperatures)
    right = dict(zip(table.models, table.scores.T, strict=True))
    rows: list[OnShift] = []
    lines: dict[str, AgreementLine | None] = {}
    for shift in shifts:
        there = choose(store, [shift], models, tell=tell, first=first)[shift]
        if lacking := sorted(set(there) - set(cells)):
            tell(f"left out on {shift}: {', '.join(lacking)} (no outputs on {known})")
        there = {model: value for model, value in there.items() if model in cells}
        if not there:
            raise DataError(f"no model on {shift} also has outputs on {known}")
        on = side_by_side(store, samples, shift, there, None, tell)
        after = _seen(store, on, temperatures)
        _tell_of_classes(before, after, known, shift, tell)
        lines[shift], by_lines = _by_lines(before, after, right)
        for evaluation in on.evaluations:
            model = evaluation.model
            alone = {
                name: estimated(before[model].sure, right[model], after[model].sure)
                for name, estimated in ALONE.items()
            }
            true = _true(store, evaluation, score)
            rows.append(
                OnShift(model, shift, len(on.keys), float(right[model].mean()), alone | by_lines.get(model, {}), true)
            )
    return LabelFree(rows, lines, _summary(rows), temperatures)


def _seen(store: Store, table: SideBySide, temperatures: Mapping[str, float]) -> dict[str, _Outputs]:
    found = {}
    for evaluation, places in zip(table.evaluations, table.places, strict=True):
        logits = viewed(store, evaluation)[1][places]
        sure = sureness(logits, temperatures.get(evaluation.model, 1.0))
        found[evaluation.model] = _Outputs(sure, predicted_classes(logits), logits.shape[1])
    return found


def _by_lines(
    before: Mapping[str, _Outputs], after: Mapping[str, _Outputs], right: Mapping[str, Array]
) -> tuple[AgreementLine | None, dict[str, dict[str, float]]]:
    """The line of a setting, and for each model the estimates by it."""
    models = list(after)
    line = agreement_on_the_line(
        np.stack([before[model].predicted for model in models], axis=1),
        np.array([right[model].mean() for model in models]),
        np.stack([after[model].predicted for model in models], axis=1),
    )
    if line is None:
        return None, {}
    return line, {
        model: {ALINE_S: float(line.simple[place]), ALINE_D: float(line.by_pairs[place])}
        for place, model in enumerate(models)
    }


def _tell_of_classes(
    before: Mapping[str, _Outputs], after: Mapping[str, _Outputs], known: str, shift: str, tell: Tell
) -> None:
    """Adds a note if the number of classes differs from that of the known setting."""
    numbers = {(before[model].classes, value.classes) for model, value in after.items()}
    for one, other in sorted(numbers):
        if one != other:
            tell(
                f"{shift} has {other:,} classes to choose from, {known} {one:,}: confidence is not"
                " comparable,"
                " so these estimates are unreliable; use a known setting with the same classes"
            )


def _true(store: Store, evaluation: Evaluation, score: str) -> float | None:
    if score not in store.scores.names([evaluation.id])[evaluation.id]:
        return None
    values = scores_of(store, evaluation, score)
    counted = values[~np.isnan(values)]
    return float(counted.mean()) if len(counted) else None


def _temperatures(store: Store, samples: SampleTable, table: SideBySide) -> dict[str, float]:
    """The temperature of each model, fitted on a limited number of known samples."""
    chosen = np.random.default_rng(0).permutation(len(table.keys))[:_FITTED]
    found = {}
    for evaluation, places in zip(table.evaluations, table.places, strict=True):
        infos = samples.of(evaluation).samples
        rows = places[chosen]
        targets = [infos[int(place)].target for place in rows]
        if not all(type(target) is int for target in targets):
            raise DataError(f"{table.eval_setting} has samples with several true classes; leave out --calibrate")
        logits = viewed(store, evaluation)[1][rows]
        read = np.isfinite(logits).all(axis=1)
        try:
            found[evaluation.model] = fit_temperature(logits[read], np.array(targets)[read])
        except DataError as error:
            raise DataError(f"{evaluation.model} on {table.eval_setting}: {error}; leave out --calibrate") from error
    return found


def _summary(rows: Sequence[OnShift]) -> list[MethodErrors]:
    found = []
    for method in METHODS:
        errors = [
            abs(row.estimates[method] - row.true) for row in rows if row.true is not None and method in row.estimates
        ]
        if errors:
            found.append(MethodErrors(method, float(np.mean(errors)), max(errors), len(errors)))
    return sorted(found, key=lambda each: each.mean_absolute)
