"""Predicted classes, from stored logits as the metrics saw them. The setting's definition is not needed.

What an evaluation's logits are restricted to is part of its identity, and so is in the store with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.db.entities import DatasetInfo, Evaluation
from testbed.db.export import LOGITS, viewed_class_names
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.metrics.classification import predicted_classes

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ClassNames:
    """The name of each class, or its number; different for different classes.

    Attributes:
        worth: 2 for the names in prompts, which are meant to be read; 1 for those of the data set, which may be
            WordNet ids; 0 for numbers.
    """

    names: list[str]
    worth: int

    def of(self, label: int) -> str:
        """The name of a class."""
        return self.names[label] if 0 <= label < len(self.names) else str(label)


@dataclass(frozen=True)
class Predictions:
    """What a model took each sample for.

    Attributes:
        classes: Integer array [samples]; −1 where a sample could not be read.
        classes_named: The name of each class.
        own_metric: Whether the setting has a metric of its own, so that targets may be anything.
    """

    classes: Array
    classes_named: ClassNames
    own_metric: bool


def predictions_of(store: Store, evaluation: Evaluation, dataset: DatasetInfo) -> Predictions:
    """Reads the logits of an evaluation, and keeps the class of the largest one of each sample.

    Args:
        store: Where they are.
        evaluation: The evaluation.
        dataset: Its data set.

    Raises:
        StoreError: If it has no logits, or nothing is stored about which of them count.
        DataError: If there are not as many logits as the setting restricts them to.
    """
    from testbed.tasks.classification import viewed_logits

    what = f"{evaluation.model} on {evaluation.eval_setting}"
    if not has_logits(store, evaluation):
        raise StoreError(f"{what} has no stored logits, from which predicted classes could be told")
    identity = store.identity(evaluation)
    view = identity.get("view")
    if not isinstance(view, dict):
        raise StoreError(f"{what} does not say which of its logits count; python eval.py --override runs it again")
    restricted = bool(identity.get("forward", {}).get("restricted"))
    logits = viewed_logits(
        store.read_outputs(evaluation.id, LOGITS),
        view.get("class_sublist"),
        view.get("class_groups"),
        restricted,
        evaluation.eval_setting,
    )
    names = class_names(identity, dataset, logits.shape[1])
    return Predictions(predicted_classes(logits), names, "own" in view.get("metric", {}))


def class_names(identity: dict[str, Any], dataset: DatasetInfo, classes: int | None = None) -> ClassNames:
    """The names of the classes that targets index into.

    Args:
        identity: Of an evaluation, in full.
        dataset: Its data set.
        classes: How many there are; None where the logits were not read.
    """
    view = identity.get("view", {})
    prompted = bool(identity.get("forward", {}).get("prompts")) and not view.get("class_groups")
    if classes is None:
        prompts = identity["forward"]["prompts"].get("class_names") if prompted else None
        known = view.get("class_groups") or view.get("class_sublist") or prompts or dataset.class_names or ()
        classes = len(known)
    names = viewed_class_names(identity, dataset.class_names, classes)
    numbers = names == [str(index) for index in range(classes)]
    return ClassNames(_distinct(names), 0 if numbers else 1 + prompted)


def best_names(given: Iterable[ClassNames]) -> ClassNames:
    """The names that are best to read, of equally good ones the first."""
    return max(given, key=lambda each: each.worth, default=ClassNames([], 0))


def has_logits(store: Store, evaluation: Evaluation) -> bool:
    """Whether predicted classes can be told."""
    return LOGITS in store.kinds(evaluation.id)


def _distinct(names: list[str]) -> list[str]:
    """Names of classes, with the class's number behind those that several classes have (ImageNet's two cranes)."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [name if seen[name] == 1 else f"{name} ({place})" for place, name in enumerate(names)]
