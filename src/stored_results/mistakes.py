"""Mistakes that models share: the hardest samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import SampleInfo
from testbed.metrics.inference.agreement import hardest_first, most_common
from testbed.stored_results.predictions import best_names, has_logits, predictions_of
from testbed.stored_results.side_by_side import (
    SampleTable,
    SideBySide,
    Tell,
    choose,
    require_binary,
    scores_of,
    side_by_side,
)

NLL = "nll"


@dataclass(frozen=True)
class HardSample:
    """A sample and the models' results on it.

    Attributes:
        sample: Its id.
        target: Its true class, or list of classes, as in the data set.
        target_name: The same by name, or the right captions; None if the target is neither.
        wrong: How many models get it wrong.
        models: The number of models.
        mean_nll: The mean loss over the models that have one, in nats.
        predicted: The class that most models predict, with ties the lowest; None if not known.
        predicted_name: Its name.
        predicted_by: How many models predict it.
    """

    sample: str
    target: Any
    target_name: str | None
    wrong: int
    models: int
    mean_nll: float | None
    predicted: int | None
    predicted_name: str | None
    predicted_by: int | None


def hardest(
    store: Store, setting: str, models: Sequence[str], score: str, limit: int, tell: Tell = lambda note: None
) -> list[HardSample]:
    """The samples that most models get wrong; ties are ordered by mean loss, largest first, then by id.

    Args:
        models: Names or patterns; none means all.
        score: A score of 0 and 1, such as ``top1``.
        limit: The maximum number of samples.
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If there are no such scores.
    """
    evaluations = choose(store, [setting], models, score, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    require_binary(table, score, "hardest")
    wrong = (table.scores == 0).sum(axis=1)
    nll = mean_losses(store, table)
    order = hardest_first(wrong, nll)[:limit]
    said, names = np.full((len(order), len(table.models)), -1), []
    for column, (evaluation, places) in enumerate(zip(table.evaluations, table.places, strict=True)):
        if has_logits(store, evaluation):
            predictions = predictions_of(store, evaluation, samples.of(evaluation))
            said[:, column] = predictions.classes[places[order]]
            names.append(predictions.classes_named)
    named = best_names(names)
    infos = infos_of(samples, table)
    found = []
    for row, place in enumerate(order):
        info, common = infos[place], most_common(said[row])
        found.append(
            HardSample(
                sample=info.id,
                target=info.target,
                target_name=target_name(info.target, named.of),
                wrong=int(wrong[place]),
                models=len(table.models),
                mean_nll=None if np.isnan(nll[place]) else float(nll[place]),
                predicted=common[0] if common else None,
                predicted_name=named.of(common[0]) if common else None,
                predicted_by=common[1] if common else None,
            )
        )
    return found


def mean_losses(store: Store, table: SideBySide) -> Array:
    """The mean negative log-likelihood of each sample over the models that have one: float array [n], or NaN."""
    total, known = np.zeros(len(table.keys)), np.zeros(len(table.keys))
    names = store.scores.names(evaluation.id for evaluation in table.evaluations)
    for each, places in zip(table.evaluations, table.places, strict=True):
        if NLL in names[each.id]:
            values = scores_of(store, each, NLL)[places]
            known += ~np.isnan(values)
            total += np.where(np.isnan(values), 0, values)
    mean: Array = np.divide(total, known, out=np.full(len(total), np.nan), where=known > 0)
    return mean


def infos_of(samples: SampleTable, table: SideBySide) -> list[SampleInfo]:
    """The samples of a table, from the first model's data set."""
    dataset = samples.of(table.evaluations[0]).samples
    return [dataset[place] for place in table.places[0]]


def target_name(target: Any, name: Callable[[int], str]) -> str | None:
    """Returns a target's class by ``name``, or its right captions, for people; None if it has no name."""
    if isinstance(target, dict) and isinstance(target.get("captions"), list):
        captions, answer = target["captions"], target.get("answer")
        target = [captions[answer]] if type(answer) is int and 0 <= answer < len(captions) else captions
    labels = target if isinstance(target, list) else [target]
    if labels and all(isinstance(label, str) for label in labels) and labels != [target]:
        return " / ".join(labels)
    if not labels or not all(type(label) is int for label in labels):
        return None
    return ", ".join(name(label) for label in labels)
