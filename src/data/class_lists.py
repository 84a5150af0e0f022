"""One list of classes for all splits of a data set, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from testbed.data.left_out import NO_IMAGES, NOT_EVALUATED, LeftOut, LeftOutLog, composed, printable
from testbed.entities import DatasetInfo
from testbed.errors import DataError


def lacking(names: Sequence[str], other: Sequence[str]) -> list[str]:
    """Returns the names of another list that are missing in a list, in order; names that look the same are equal."""
    there = set(map(composed, names))
    return [name for name in other if composed(name) not in there]


def union(lists: Sequence[Sequence[str]]) -> list[str]:
    """Merges several lists: the names of the longest in their order, then those missing in it."""
    longest = max(range(len(lists)), key=lambda place: len(lists[place]))
    names_of_all = list(lists[longest])
    for names in lists:
        names_of_all += lacking(names_of_all, names)
    return names_of_all


def places(names: Sequence[str], classes: Sequence[str], where: str) -> list[int]:
    """The place of each name in a list that has them all.

    Raises:
        DataError: If a name stands twice in one of the lists.
    """
    for entries in (names, classes):
        twice = [name for name, number in Counter(map(composed, entries)).items() if number > 1]
        if twice:
            raise DataError(
                f"{where} have different class lists, which cannot be matched by name: {printable(twice[0])} is the"
                " name of two classes"
            )
    place = {composed(name): number for number, name in enumerate(classes)}
    return [place[composed(name)] for name in names]


def in_classes_of(own: DatasetInfo, others: Mapping[str, DatasetInfo]) -> dict[str, DatasetInfo]:
    """Returns other data sets with their targets as places in the class list of one data set.

    Classes that this one lacks get the places after its own. Data sets without class names stay as they are.

    Args:
        own: The data set.
        others: The others by role; their targets are class indices.

    Raises:
        DataError: If the lists differ, and cannot be matched by name.
    """
    others_after = dict(others)
    classes = list(own.class_names or ())
    for role, other in others.items():
        if not classes or not other.class_names or list(other.class_names) == classes:
            continue
        classes += lacking(classes, other.class_names)
        place = places(other.class_names, classes, f"the data sets {own.name} and {other.name}")
        if place != list(range(len(place))):
            others_after[role] = _with_targets(other, [place[target] for target in other.targets], classes)
    return others_after


def differences(own: DatasetInfo, other: DatasetInfo) -> tuple[LeftOut, ...]:
    """Describes the classes that only one of two data sets has."""
    leaving = LeftOutLog()
    if own.class_names and other.class_names:
        for name in lacking(own.class_names, other.class_names):
            leaving.out(name, NOT_EVALUATED, expected=True)
        for name in lacking(other.class_names, own.class_names):
            leaving.out(name, NO_IMAGES, expected=True)
    return leaving.found()


def _with_targets(dataset: DatasetInfo, targets: Sequence[int], classes: Sequence[str]) -> DatasetInfo:
    from testbed.data.source import dataset_of

    samples = [replace(sample, target=target) for sample, target in zip(dataset.samples, targets, strict=True)]
    return dataset_of(dataset.name, samples, classes)
