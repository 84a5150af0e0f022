"""Agreement of models, by pair, and the number of models that get each sample right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.metrics.inference.agreement import (
    Agreement,
    MeanConsistency,
    agreement,
    mean_consistencies,
    right_counts,
    same_predictions,
)
from testbed.stored_results.predictions import has_logits, predictions_of
from testbed.stored_results.side_by_side import SampleTable, Tell, choose, clusters_in, require_binary, side_by_side
from testbed.stored_results.slices import GROUP, labels_by


class Pair(NamedTuple):
    """Two models: the agreement of their errors, and the share of samples with the same predicted class."""

    first: str
    second: str
    agreement: Agreement
    same_class: float | None


class MeanAgreement(NamedTuple):
    """A model and the mean agreement of its errors with those of some others."""

    model: str
    right: float
    others: int
    mean: MeanConsistency


class Agreements(NamedTuple):
    """Agreement of models on their common samples.

    Attributes:
        n: The number of samples.
        clusters: The number of groups of samples for intervals; None if samples are independent.
        right: Each model and its share of correct samples.
        pairs: Every pair.
        counts: The number of samples that exactly k models get right, for k = 0 … models.
    """

    n: int
    clusters: int | None
    right: list[tuple[str, float]]
    pairs: list[Pair]
    counts: list[int]


def agreements(
    store: Store, setting: str, models: Sequence[str], score: str, tell: Tell = lambda note: None
) -> Agreements:
    """Compares every pair of models, and all models together.

    Args:
        store: The results store.
        setting: The setting.
        models: Names or patterns; empty means all.
        score: A score of 0 and 1, such as ``top1``.
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If fewer than two models have such a score.
    """
    evaluations = choose(store, [setting], models, score, at_least=2, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    require_binary(table, score, "agreement")
    classes = {
        evaluation.model: predictions_of(store, evaluation, samples.of(evaluation)).classes[places]
        for evaluation, places in zip(table.evaluations, table.places, strict=True)
        if has_logits(store, evaluation)
    }
    scores = dict(zip(table.models, table.scores.T, strict=True))
    clusters = clusters_in(samples, table)
    pairs = [
        Pair(
            first,
            second,
            agreement(scores[first], scores[second], clusters),
            same_predictions(classes[first], classes[second]) if {first, second} <= set(classes) else None,
        )
        for first, second in combinations(table.models, 2)
    ]
    right = [(model, float(scores[model].mean())) for model in table.models]
    number = None if clusters is None else int(clusters.max()) + 1
    return Agreements(len(table.keys), number, right, pairs, right_counts(table.scores).tolist())


def agreement_with(
    store: Store,
    setting: str,
    others: Sequence[str],
    models: Sequence[str],
    score: str,
    by: str | None = None,
    tell: Tell = lambda note: None,
) -> tuple[int, list[MeanAgreement]]:
    """Compares each model with some others, such as people.

    Args:
        store: The results store.
        setting: The setting.
        others: Names or patterns of the others; each is also compared with the rest of them.
        models: Names or patterns; empty means all.
        score: A score of 0 and 1, such as ``top1``.
        by: Groups of samples within which errors are compared, as for ``testbed groups --by``; None: all samples.
        tell: Called with notes on what was left out.

    Returns:
        The number of samples; and each model, the one that agrees most first.

    Raises:
        StoreError: If there are no such others, or no such scores.
    """
    wanted = [*models, *others] if models else []
    evaluations = choose(store, [setting], wanted, score, at_least=2, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    require_binary(table, score, "agreement")
    chosen = matching_names("model", others, set(table.models))
    columns = [place for place, model in enumerate(table.models) if model in chosen]
    kept, groups = np.ones(len(table.keys), dtype=bool), None
    if by is not None:
        _, labels = labels_by(store, samples, table, by, tell=tell)
        kept = np.array([label is not None for label in labels], dtype=bool)
        groups = np.unique([label for label in labels if label is not None], return_inverse=True)[1]
    clusters = None if by == GROUP else clusters_in(samples, table)
    right = table.scores[kept]
    means = mean_consistencies(right, columns, groups, None if clusters is None else clusters[kept])
    rows = [
        MeanAgreement(model, float(right[:, place].mean()), len(columns) - (place in columns), mean)
        for place, (model, mean) in enumerate(zip(table.models, means, strict=True))
    ]
    if all(row.mean.consistency is None for row in rows):
        raise StoreError(
            f"no errors on {setting} can be compared: expected agreement is always 1, or there is only one model"
        )
    rows.sort(key=lambda row: -2.0 if row.mean.consistency is None else row.mean.consistency, reverse=True)
    return len(right), rows
