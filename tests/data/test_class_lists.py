"""Class lists of splits, matched by name."""

from __future__ import annotations

import unicodedata

import pytest

from testbed.data.class_lists import differences, in_classes_of, union
from testbed.data.source import dataset_of
from testbed.entities import DatasetInfo, SampleInfo
from testbed.errors import DataError


def dataset(names: list[str] | None, targets: list[int]) -> DatasetInfo:
    samples = [SampleInfo(str(place), f"{place:032}", target) for place, target in enumerate(targets)]
    return dataset_of("pets", samples, names)


def targets(own: list[str] | None, *others: tuple[list[str] | None, list[int]]) -> list[list[int]]:
    roles = {str(number): dataset(*each) for number, each in enumerate(others)}
    return [list(each.targets) for each in in_classes_of(dataset(own, []), roles).values()]


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (["a", "b", "c"], ["a", "b", "c"], [0, 1, 2]),
        (["a", "b", "c"], ["a", "c"], [0, 2]),
        (["a", "c"], ["a", "b", "c"], [0, 2, 1]),
        (["a", "b"], ["b", "a"], [1, 0]),
        (["a", "b"], ["c", "d"], [2, 3]),
        (None, ["a", "b"], [0, 1]),
        (["a", "b"], None, [0, 1]),
        (["x", "x"], ["x", "x"], [0, 1]),  # equal lists need no names
    ],
)
def test_targets_are_places_in_the_own_list_with_others_after_it(own, other, expected):
    assert targets(own, (other, list(range(len(expected))))) == [expected]


def test_two_splits_never_share_a_place_for_different_classes():
    assert targets(["a"], (["a", "b"], [0, 1]), (["a", "c"], [0, 1])) == [[0, 1], [0, 2]]


def test_names_are_equal_in_both_unicode_forms():
    one, two = (unicodedata.normalize(form, "é") for form in ("NFC", "NFD"))
    assert targets(["a", one, "z"], (["z", two], [0, 1])) == [[2, 1]]
    assert union([[one, "a"], [two]]) == [one, "a"]


def test_a_name_of_two_classes_cannot_be_matched():
    with pytest.raises(DataError, match="cannot be matched by name: crane is the name of two classes"):
        targets(["crane", "crane"], (["crane"], [0]))


def test_a_data_set_with_other_numbers_has_another_fingerprint():
    other = dataset(["a", "c"], [0, 1])
    (found,) = in_classes_of(dataset(["a", "b", "c"], []), {"train": other}).values()
    assert found.fingerprint != other.fingerprint
    assert in_classes_of(dataset(["a", "c"], []), {"train": other})["train"] is other


def test_differences_are_said_both_ways():
    said = differences(dataset(["a", "b"], []), dataset(["b", "c"], []))
    assert [(each.reason, each.names) for each in said] == [
        ("classes that the evaluated split lacks", ("c",)),
        ("classes without images", ("a",)),
    ]
