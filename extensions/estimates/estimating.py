"""Estimates models' scores on a setting from their scores on its anchors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import DataError, StoreError, UnknownNameError
from testbed.eval_settings.base.anchor_file import AnchorFile
from testbed.extensions.estimates.methods import anchors as methods
from testbed.registry.references import anchored
from testbed.stored_results.side_by_side import SampleTable, dataset_id, evaluation_of, scores_of

Find = Callable[[Store, str, str], Evaluation]


@dataclass(frozen=True)
class ScoreEstimate:
    """An estimate, as opposed to a measured value.

    Attributes:
        model: The model.
        value: The estimate of its score on all samples.
        low: The value minus the error bound for a share of models of new families: ``AnchorFile.held_out.level``.
        high: The value plus that error.
        rank: Its rank among the models that the anchors were chosen by, 1 for the best.
        rank_low: The best rank within the interval.
        rank_high: The worst one.
        true: Its score on all samples, if stored; else None.
        full: Whether the scores of the anchors were taken from an evaluation of all samples.
    """

    model: str
    value: float
    low: float
    high: float
    rank: int
    rank_low: int
    rank_high: int
    true: float | None
    full: bool


def estimate(
    store: Store, models: Sequence[str], file: AnchorFile, path: Path, find: Find = evaluation_of
) -> list[ScoreEstimate]:
    """Estimates the scores of models.

    Args:
        store: The results store.
        models: Their names.
        file: The anchors.
        path: Their path.
        find: Function from a model and a setting to the evaluation; by default the reported one.

    Raises:
        StoreError: If a model has not been evaluated on the anchors; the message has the command.
        DataError: If its samples differ.
    """
    samples = SampleTable(store)
    anchors = _anchors(file)
    return [_estimated(store, samples, model, file, anchors, path, find) for model in models]


def _estimated(
    store: Store, samples: SampleTable, model: str, file: AnchorFile, anchors: methods.Anchors, path: Path, find: Find
) -> ScoreEstimate:
    name = anchored(file.eval_setting, path)
    full = _found(store, model, file.eval_setting, find)
    own = _found(store, model, name, find) or full
    if own is None:
        raise StoreError(f"{model} has not been evaluated on these anchors; run: testbed run '{model}' --on '{name}'")
    scores = _scores_of_anchors(store, samples, own, file)
    value = methods.estimates(anchors, scores)[file.estimator]
    error = file.held_out.quantile
    low, high = value - error, value + error
    if file.fraction:
        value, low, high = (min(1.0, max(0.0, number)) for number in (value, low, high))
    known = np.array([known_model.value for known_model in file.models if known_model.name != model])
    place, best, worst = (_rank(known, number, file.larger_is_better) for number in (value, high, low))
    true = None if full is None else scores_of(store, full, file.score)
    return ScoreEstimate(
        model=model,
        value=value,
        low=low,
        high=high,
        rank=place,
        rank_low=min(best, worst),
        rank_high=max(best, worst),
        true=None if true is None else float(np.nanmean(true)),
        full=own is full,
    )


def _found(store: Store, model: str, setting: str, find: Find) -> Evaluation | None:
    """The evaluation of all samples of a setting; None if not stored."""
    try:
        found = find(store, model, setting)
    except (StoreError, UnknownNameError):
        return None
    return found if found.sample_limit is None else None


def _scores_of_anchors(store: Store, samples: SampleTable, evaluation: Evaluation, file: AnchorFile) -> Array:
    """The scores of the anchors in the order of the file: float array [k].

    Raises:
        DataError: If a sample is missing, has another content, or has no score.
    """
    places = samples.places(dataset_id(evaluation))
    lacking = [sample.id for sample in file.samples if (sample.id, sample.digest) not in places]
    where = f"{evaluation.model} on {evaluation.eval_setting}"
    if lacking:
        raise DataError(
            f"{where} has {len(lacking):,} of the {len(file.samples):,} anchors missing or with another content, such"
            f" as {lacking[0]}; the anchors were chosen for other data"
        )
    scores = scores_of(store, evaluation, file.score)
    found = scores[[places[sample.id, sample.digest] for sample in file.samples]]
    if not np.isfinite(found).all():
        bad = file.samples[int(np.flatnonzero(~np.isfinite(found))[0])].id
        raise DataError(f"{where} has no {file.score} of the anchor {bad}, so it cannot be estimated")
    return found


def _anchors(file: AnchorFile) -> methods.Anchors:
    """The contents of the file for `testbed.extensions.estimates.methods.anchors.estimates`."""
    a, e = ([getattr(sample, name) for sample in file.samples] for name in ("discrimination", "easiness"))
    curve = methods.Curve(file.n, np.array(file.expected), np.array(a), np.array(e)) if file.expected else None
    weights = np.array([sample.weight for sample in file.samples])
    return methods.Anchors(np.arange(len(weights)), weights, file.offset, curve, file.blend)


def _rank(known: Array, value: float, larger: bool) -> int:
    return 1 + int((known > value).sum() if larger else (known < value).sum())
