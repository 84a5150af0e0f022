"""A table of cases is one test, which names each case that fails."""

from __future__ import annotations

import inspect

import pytest
from tables import cases


def test_all_cases_are_tried_and_each_that_fails_is_named() -> None:
    tried = []

    @cases("number, word", [(1, "a"), (2, "b"), (3, "c")])
    def check(number: int, word: str, place: str) -> None:
        tried.append((number, word, place))
        assert number == 2

    with pytest.raises(AssertionError, match="2 of 3 cases fail") as raised:
        check(place="here")
    assert tried == [(1, "a", "here"), (2, "b", "here"), (3, "c", "here")]
    shown = str(raised.value)
    assert "number=1, word='a'" in shown
    assert "number=3, word='c'" in shown
    assert "word='b'" not in shown


def test_two_tables_are_all_pairs_and_pytest_asks_for_fixtures_alone() -> None:
    pairs = []

    @cases("left", "ab")
    @cases("right", [1, 2])
    def check(left: str, right: int, tmp_path: str) -> None:
        pairs.append((left, right))

    assert list(inspect.signature(check).parameters) == ["tmp_path"]
    check(tmp_path="")
    assert pairs == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


@pytest.mark.parametrize("row", [(1, 2, 3), (pytest.param(1, marks=pytest.mark.slow), 2)])
def test_rows_that_cannot_be_cases_are_refused(row: tuple) -> None:
    with pytest.raises(TypeError, match="cannot be"):
        cases("number, word", [row])


def test_no_cases_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        cases("number", [])(lambda number: None)
