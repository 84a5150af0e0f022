"""Chooses anchors of a setting from the stored scores of models, and measures the errors of their estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import FRACTION
from testbed.errors import DataError, StoreError
from testbed.eval_settings.base.anchor_file import Anchor, AnchorFile, Errors, KnownModel
from testbed.eval_settings.base.made import ONE_BY_ONE
from testbed.extensions.estimates.families import declared_family, folds_of
from testbed.extensions.estimates.methods import anchors as methods
from testbed.extensions.estimates.methods.held_out import BY_CHANCE, HeldOut, Way, blend_of, hold_out, known_of
from testbed.stored_results.main_scores import larger_is_better, score_spec
from testbed.stored_results.mistakes import NLL
from testbed.stored_results.side_by_side import SampleTable, SideBySide, Tell, all_scores, choose, side_by_side

LEAST = 4  # models
_JUDGED = ("judged_answers",)  # scorers of questions, each of which is judged separately
BEST = "best"
_NAMED = 5


@dataclass(frozen=True)
class AnchorChoice:
    """Anchors, and the performance of each way to choose them.

    Attributes:
        file: The anchors.
        errors: The errors of each way on held-out models, the best one first.
        families: The families, and their numbers of models.
        undeclared: Models without a declared family; each was held out separately.
    """

    file: AnchorFile
    errors: Mapping[Way, Errors]
    families: Mapping[str, int]
    undeclared: Sequence[str]


def choose_anchors(
    store: Store,
    setting: str,
    models: Sequence[str],
    score: str,
    size: int,
    method: str = BEST,
    estimator: str | None = None,
    families: Mapping[str, str] | None = None,
    seed: int = 0,
    tell: Tell = lambda note: None,
    progress: Callable[[str, float], None] = lambda what, share: None,
    first: Collection[int] = (),
) -> AnchorChoice:
    """Chooses anchors.

    Args:
        store: The results store.
        setting: The setting.
        models: Names or patterns of the models to choose by; empty means all.
        score: The per-sample score.
        size: The number of anchors.
        method: One of `testbed.extensions.estimates.methods.anchors.METHODS`, or ``best``.
        estimator: The estimator of the mean; None for the best one.
        families: Model → family; the default is the declaration of each model.
        seed: Random seed.
        tell: Called with notes on what was left out.
        progress: Progress callback.
        first: Ids of evaluations that take precedence over the reported ones.

    Raises:
        StoreError: If there are too few models, or it is unknown which scores are better.
        DataError: If there are not more samples than anchors, the method does not apply to such scores, or samples are
            not scored independently.
    """
    _check_task(store, setting)
    cells = choose(store, [setting], models, score, at_least=LEAST, tell=tell, first=first)[setting]
    spec = score_spec(store, cells.values(), score)
    larger = larger_is_better(spec)
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, cells, score, tell)
    n = len(table.keys)
    if size >= n:
        raise DataError(
            f"{setting} has {n:,} samples that all models have; expected fewer anchors, got {size:,} (--size)"
        )
    own, undeclared = families_of(store, table, families or {})
    best = float(larger) if table.binary else spec.highest if larger else spec.lowest
    confidence = _confidence(store, table) if table.binary else None
    folds = folds_of(own, seed)
    held = hold_out(table.scores, best, confidence, folds, size, seed, progress=progress)
    among = _among(held, method, estimator, score, setting)
    way = held.best(among)
    known = known_of(table.scores, best, confidence)
    anchors = methods.choose(known, size, way[0], np.random.default_rng(seed))
    file = AnchorFile(
        eval_setting=setting,
        score=score,
        n=n,
        method=way[0],
        estimator=way[1],
        seed=seed,
        offset=anchors.offset,
        blend=blend_of(held, way[0]),
        expected=[] if anchors.curve is None else anchors.curve.all.tolist(),
        larger_is_better=larger,
        fraction=table.binary or spec.unit == FRACTION,
        families=len(set(own)) < len(own),
        held_out=held.best_errors(among),
        random=held.errors(BY_CHANCE),
        models=[
            KnownModel(model, family, float(value))
            for model, family, value in zip(table.models, own, table.scores.mean(axis=0), strict=True)
        ],
        samples=_samples(table, anchors),
    )
    order = sorted(held.estimates, key=lambda each: held.errors(each).mean_absolute)
    return AnchorChoice(
        file,
        {entry: held.errors(entry) for entry in order},
        Counter(own),
        undeclared,
    )


def families_of(store: Store, table: SideBySide, given: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The family of each model, and the models without a declared family, each of which is its own family."""
    found, undeclared = [], []
    for evaluation in table.evaluations:
        family = given.get(evaluation.model)
        if family is None:
            model = store.evaluations.identity(evaluation).get("model")
            spec = model.get("spec") if isinstance(model, dict) else None
            family = declared_family(spec) if isinstance(spec, dict) else None
        if family is None:
            undeclared.append(evaluation.model)
        found.append(family or f"{evaluation.model} alone")
    if len(set(found)) < 2:
        raise StoreError(
            f"all {len(found)} models on {table.eval_setting} are of one family, {found[0]}, so none can be"
            " held"
            " out; provide a table of families with --families"
        )
    _check_left(found)
    return found, undeclared


def _check_left(families: Sequence[str]) -> None:
    family, size = Counter(families).most_common(1)[0]
    if len(families) - size < 2:
        raise StoreError(
            f"{size} of {len(families)} models are of the family {family}; holding that one out requires at least two"
            " of other"
            " families"
        )


def _check_task(store: Store, setting: str) -> None:
    task, _ = store.names.tasks().get(setting, (None, None))
    if task not in (None, *ONE_BY_ONE, *_JUDGED):
        raise DataError(
            f"the samples of {setting}, a setting for {task}, are not scored independently, so a subset"
            " cannot"
            " represent them"
        )


def _confidence(store: Store, table: SideBySide) -> Array | None:
    """Each model's probability of the right class; None if a model has no such score."""
    names = store.scores.names(evaluation.id for evaluation in table.evaluations)
    if not all(NLL in names[evaluation.id] for evaluation in table.evaluations):
        return None
    found = np.empty_like(table.scores)
    for column, (_, values) in enumerate(all_scores(store, table.evaluations, NLL)):
        found[:, column] = np.nan_to_num(np.exp(-values[table.places[column]]))
    return found


def _among(held: HeldOut, method: str, estimator: str | None, score: str, setting: str) -> list[Way]:
    """The candidate ways for choosing the best one."""
    found = [way for way in held.estimates if method in (BEST, way[0]) and estimator in (None, way[1])]
    if not found:
        asked = " with ".join(word for word in (method, estimator) if word and word != BEST)
        ways = ", ".join(dict.fromkeys(way[0] for way in held.estimates))
        raise DataError(f"{asked} does not apply to {score} on {setting}, which is not 0 or 1; use one of {ways}")
    return found


def _samples(table: SideBySide, anchors: methods.Anchors) -> list[Anchor]:
    curve = anchors.curve
    return [
        Anchor(
            id=table.keys[anchors.places[row]][0],
            digest=table.keys[anchors.places[row]][1],
            weight=float(anchors.weights[row]),
            discrimination=None if curve is None else float(curve.discrimination[row]),
            easiness=None if curve is None else float(curve.easiness[row]),
        )
        for row in np.argsort(anchors.places)
    ]
