"""Classes that models confuse with each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.db.store import Store
from testbed.entities import Evaluation, SampleInfo
from testbed.errors import DataError, StoreError
from testbed.metrics.inference.agreement import confusions
from testbed.metrics.scorers.classification import right_classes
from testbed.stored_results.predictions import Predictions, best_names, predictions_of
from testbed.stored_results.side_by_side import SampleTable, Tell, choose, side_by_side


@dataclass(frozen=True)
class Confusion:
    """A class that is predicted as another.

    Attributes:
        model: The model; None for all models together.
        count: How many predictions (one per sample and model) take the class for the other.
        n: The number of predictions for samples of the class.
    """

    model: str | None
    true_class: int
    true_name: str
    predicted_class: int
    predicted_name: str
    count: int
    n: int

    @property
    def share(self) -> float:
        """The share of the class's predictions."""
        return self.count / self.n


def confused_classes(
    store: Store, setting: str, models: Sequence[str], each_model: bool, limit: int, tell: Tell = lambda note: None
) -> list[Confusion]:
    """The most frequent pairs of a true class and a wrong prediction, on the samples that all models have.

    Args:
        store: The results store.
        setting: The setting.
        models: Names or patterns; none means all.
        each_model: Whether to list each model separately instead of the sum over models.
        limit: The maximum number of pairs (for each model).
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If the targets are not classes, or there are no logits.
    """
    evaluations = choose(store, [setting], models, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, tell=tell)
    counted: list[tuple[str | None, Counter[tuple[int, int]], Counter[int]]] = []
    names = []
    unread = 0
    for evaluation, places in zip(table.evaluations, table.places, strict=True):
        predictions = predictions_of(store, evaluation, samples.of(evaluation))
        dataset = samples.of(evaluation).samples
        labels = _labels(evaluation, predictions, [dataset[place] for place in places])
        predicted = predictions.classes[places]
        unread += int((predicted < 0).sum())
        counted.append((evaluation.model, *confusions(predicted, labels)))
        names.append(predictions.classes_named)
    if unread:
        tell(f"{unread:,} predictions are missing, for samples that could not be read; they are not counted")
    if not each_model:
        pairs: Counter[tuple[int, int]] = Counter()
        totals: Counter[int] = Counter()
        for _, of_pairs, of_classes in counted:
            pairs.update(of_pairs)
            totals.update(of_classes)
        counted = [(None, pairs, totals)]
    named = best_names(names)
    return [
        Confusion(model, true, named.of(true), other, named.of(other), number, totals[true])
        for model, pairs, totals in counted
        for (true, other), number in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:limit]
    ]


def _labels(evaluation: Evaluation, predictions: Predictions, infos: Sequence[SampleInfo]) -> list[list[int]]:
    """The true classes of each sample."""
    setting = evaluation.eval_setting
    if predictions.own_metric and not all(type(info.target) is int for info in infos):
        raise StoreError(
            f"{setting} has its own metric and targets that are not single class indices, so its logits do not show"
            " what is right or wrong"
        )
    classes = len(predictions.classes_named.names)
    try:
        return [right_classes(info, classes, setting) for info in infos]
    except DataError as error:
        raise StoreError(f"confusions need class indices as targets: {error}") from None
