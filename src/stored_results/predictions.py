"""Predicted classes, from stored logits as the metrics saw them. The setting's definition is not needed.

The restriction of an evaluation's logits is part of its stored identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.arrays import Array
from testbed.data.language.class_vocabulary import names_read, wordnet_names
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation
from testbed.errors import StoreError
from testbed.metrics.classification import predicted_classes

LOGITS = "logits"  # the kind of outputs


@dataclass(frozen=True)
class ClassNames:
    """The name of each class, or its number; names are unique.

    Attributes:
        worth: 2 for names from prompts, the most readable; 1 for names from the data set, which may be WordNet ids; 0
            for numbers.
    """

    names: list[str]
    worth: int

    def of(self, label: int) -> str:
        """The name of a class."""
        return self.names[label] if 0 <= label < len(self.names) else str(label)


@dataclass(frozen=True)
class Predictions:
    """The predicted class of each sample.

    Attributes:
        classes: Integer array [samples]; −1 where a sample could not be read.
        classes_named: The name of each class.
        own_metric: Whether the setting has its own metric, so that targets may be anything.
    """

    classes: Array
    classes_named: ClassNames
    own_metric: bool


def predictions_of(store: Store, evaluation: Evaluation, dataset: DatasetInfo) -> Predictions:
    """Reads the logits of an evaluation and returns the class with the largest logit for each sample.

    Raises:
        StoreError: If it has no logits, or the store does not record which of them count.
        DataError: If there are fewer logits than the setting restricts them to.
    """
    identity, logits = viewed(store, evaluation)
    names = class_names(identity, dataset, logits.shape[1])
    return Predictions(predicted_classes(logits), names, "own" in identity["view"].get("metric", {}))


def viewed(store: Store, evaluation: Evaluation) -> tuple[dict[str, Any], Array]:
    """The identity of an evaluation, and its logits [n, C] as the metrics saw them.

    Raises:
        StoreError: If it has no logits, or the store does not record which of them count.
        DataError: If there are fewer logits than the setting restricts them to.
    """
    from testbed.tasks.parts.logits import viewed_logits

    what = f"{evaluation.model} on {evaluation.eval_setting}"
    if not has_logits(store, evaluation):
        raise StoreError(f"{what} has no stored logits to take predicted classes from")
    identity = store.evaluations.identity(evaluation)
    view = identity.get("view")
    if not isinstance(view, dict):
        raise StoreError(f"{what} has no record of which logits count; run it again with testbed run --override")
    restricted = bool(identity.get("forward", {}).get("restricted"))
    logits = store.outputs.read(evaluation.id, LOGITS)
    sublist, groups = view.get("class_sublist"), view.get("class_groups")
    return identity, viewed_logits(logits, sublist, groups, restricted, evaluation.eval_setting)


def class_names(identity: dict[str, Any], dataset: DatasetInfo, classes: int | None = None) -> ClassNames:
    """The names of the classes that targets index."""
    view = identity.get("view", {})
    prompted = bool(identity.get("forward", {}).get("prompts")) and not view.get("class_groups")
    if classes is None:
        prompts = identity["forward"]["prompts"].get("class_names") if prompted else None
        groups = view.get("class_groups")
        groups = next(iter(groups.values())) if isinstance(groups, dict) else groups
        known = groups or view.get("class_sublist") or prompts or dataset.class_names or ()
        classes = len(known)
    names = viewed_class_names(identity, dataset.class_names, classes)
    names = wordnet_names(names) or names
    numbers = names == [str(index) for index in range(classes)]
    return ClassNames(_distinct(names), 0 if numbers else 1 + prompted)


def best_names(given: Iterable[ClassNames]) -> ClassNames:
    """The most readable names; with ties the first. Classes that only other models know are named by these."""
    lists = list(given)
    best = max(lists, key=lambda each: each.worth, default=ClassNames([], 0))
    longest = max(lists, key=lambda each: len(each.names), default=best)
    return ClassNames([*best.names, *longest.names[len(best.names) :]], best.worth)


def has_logits(store: Store, evaluation: Evaluation) -> bool:
    """Returns whether an evaluation has logits, and so predicted classes."""
    return LOGITS in store.outputs.kinds(evaluation.id)


def _distinct(names: list[str]) -> list[str]:
    """Class names, with the class's number appended to names that several classes share (ImageNet's two cranes)."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [name if seen[name] == 1 else f"{name} ({index})" for index, name in enumerate(names)]


def viewed_class_names(identity: dict[str, Any], dataset_names: Sequence[str] | None, classes: int) -> list[str]:
    """The names of the classes that targets index, or their numbers if there are no names."""
    view = identity.get("view", {})
    if (read := names_read(view)) is not None:
        return read
    sublist = view.get("class_sublist")
    of_prompts = (identity.get("forward", {}).get("prompts") or {}).get("class_names")
    if view.get("class_groups"):  # prompts name the members of the groups; the data set names the groups
        names, sublist = dataset_names, None
    else:
        names = of_prompts or dataset_names
    if sublist and names and (of_prompts or len(names) > len(sublist)):
        # All classes are named. (A data set of only the listed classes names just those, in the list's order.)
        names = [names[index] for index in sublist] if len(names) > max(sublist) else None
    return list(names) if names and len(names) == classes else [str(index) for index in range(classes)]
