"""Agreement of models: for each pair, and the number of models that get each sample right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from testbed.analyses.predictions import has_logits, predictions_of
from testbed.analyses.side_by_side import Samples, Tell, choose, require_binary, side_by_side
from testbed.db.store import Store
from testbed.metrics.inference.agreement import Agreement, agreement, right_counts, same_predictions


class Pair(NamedTuple):
    """Two models: how far their errors agree, and the share of samples with the same predicted class."""

    first: str
    second: str
    agreement: Agreement
    same_class: float | None


class Agreements(NamedTuple):
    """Models on the samples that all of them have.

    Attributes:
        n: The number of samples.
        right: Each model and its share of correct samples.
        pairs: Every pair.
        counts: How many samples exactly k models get right, for k = 0 … models.
    """

    n: int
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
        models: Names or patterns; none means all.
        score: A score of 0 and 1, such as ``top1``.
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If fewer than two models have such a score.
    """
    evaluations = choose(store, [setting], models, score, at_least=2, tell=tell)[setting]
    samples = Samples(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    require_binary(table, score, "agreement")
    classes = {
        each.model: predictions_of(store, each, samples.of(each)).classes[places]
        for each, places in zip(table.evaluations, table.places, strict=True)
        if has_logits(store, each)
    }
    scores = dict(zip(table.models, table.scores.T, strict=True))
    pairs = [
        Pair(
            first,
            second,
            agreement(scores[first], scores[second]),
            same_predictions(classes[first], classes[second]) if {first, second} <= set(classes) else None,
        )
        for first, second in combinations(table.models, 2)
    ]
    right = [(model, float(scores[model].mean())) for model in table.models]
    return Agreements(len(table.keys), right, pairs, right_counts(table.scores).tolist())
