"""Logits as metrics see them: of the classes that a setting evaluates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError

if TYPE_CHECKING:
    import numpy as np

Groups = Sequence[Sequence[int]] | Mapping[str, Sequence[Sequence[int]]]


def viewed_logits(
    logits: np.ndarray[Any, Any],
    class_sublist: Sequence[int] | None,
    class_groups: Groups | None,
    restricted: bool,
    what: str,
) -> np.ndarray[Any, Any]:
    """Logits as metrics see them: float array [n, classes that targets index].

    Args:
        logits: Float array [n, C], the model's output.
        class_sublist: The evaluated classes, if not all are.
        class_groups: Groups of the evaluated classes; the logit of a group is its largest one, or as
            `testbed.metrics.classification.grouped` says.
        restricted: Whether the model has restricted the logits to the sublist itself.
        what: The setting, for messages.

    Raises:
        DataError: If there are fewer logits.
    """
    if class_sublist is not None and not restricted:
        logits = restrict(logits, class_sublist, what)
    return logits if class_groups is None else _grouped(logits, class_groups, what)


def restrict(logits: np.ndarray[Any, Any], class_sublist: Sequence[int], what: str) -> np.ndarray[Any, Any]:
    """The logits [n, C] of some classes, in the order of the list; raises DataError if there are fewer."""
    if max(class_sublist) >= logits.shape[1]:
        raise DataError(
            f"{what} restricts the logits to classes up to {max(class_sublist)}, but there are {logits.shape[1]} logits"
        )
    return logits[:, list(class_sublist)]


def _grouped(logits: np.ndarray[Any, Any], groups: Groups, what: str) -> np.ndarray[Any, Any]:
    """One logit for each group of classes."""
    from testbed.metrics.classification import grouped

    each = next(iter(groups.values())) if isinstance(groups, Mapping) else groups
    largest = max(max(group) for group in each)
    if largest >= logits.shape[1]:
        raise DataError(f"{what} groups classes up to {largest}, but there are {logits.shape[1]} logits")
    return grouped(logits, groups)
