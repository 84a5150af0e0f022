"""Metrics out of what a benchmark's own ``evaluate`` returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from testbed.errors import DataError
from testbed.metrics.scorers.reported import flat, main_of, reported_metrics


def found(report: Any, *primary: str) -> list[tuple[str, str, float | None]]:
    metrics = reported_metrics(report, 4, "s@1", dict.fromkeys(primary, 0.125))
    return [(each.name, each.slice, each.value) for each in metrics]


def test_a_table_has_a_metric_in_each_column_of_numbers_and_a_slice_in_each_row() -> None:
    table = {"split": ["dev", "test"], "Overall": [0.5, np.float64(0.25)], "OCR": ["75.0", "50"], "maths": [None, 1]}
    for report in (table, pd.DataFrame(table)):
        assert found(report, "split=test|Overall") == [
            ("Overall", "split=test", 0.25),
            ("Overall", "split=dev", 0.5),
            ("OCR", "split=dev", 75.0),
            ("maths", "split=dev", None),
            ("OCR", "split=test", 50.0),
            ("maths", "split=test", 1.0),
            ("score", "overall", 0.125),
        ]
    assert found(pd.DataFrame({"split": ["none"], "Overall": [0.5]})) == [
        ("Overall", "overall", 0.5),
        ("score", "overall", 0.5),
    ]
    twice = found({"task": ["a", "a"], "acc": [1, 0]})
    assert twice == [("acc", "task=a", 1.0), ("acc", "task=a, row=2", 0.0), ("score", "overall", 1.0)]


def test_a_dictionary_within_others_has_names_with_dots() -> None:
    report = {"Bleu": [0.1, 0.2], "CIDEr": np.float32(0.5), "maths": {"acc": 1, "by": {"dev": 0.5}}, "judge": "gpt"}
    assert found(report) == [
        ("maths.acc", "overall", 1.0),  # VLMEvalKit looks for such a word
        ("Bleu_1", "overall", 0.1),
        ("Bleu_2", "overall", 0.2),
        ("CIDEr", "overall", 0.5),
        ("maths.by.dev", "overall", 0.5),
        ("score", "overall", 1.0),
    ]
    assert reported_metrics({"acc": 1}, 4, "s@1")[0].n == 4


@pytest.mark.parametrize(
    ("report", "main"),
    [  # what VLMEvalKit's report_primary_metric chooses
        ({"split": ["dev", "test"], "Overall": [0.1, 0.2]}, "split=test|Overall"),
        ({"split": ["dev", "validation"], "Overall": [0.1, 0.2]}, "split=validation|Overall"),
        ({"split": ["dev", "val"], "x_acc": [0.1, 0.2], "Overall": [0.3, 0.4]}, "split=val|Overall"),
        ({"split": ["b", "a"], "Overall": [0.1, 0.2]}, "split=a|Overall"),
        ({"Existence": 0.1, "Avg ACC": 0.2, "my_score": 0.3}, "Avg ACC"),
        ({"final score": 0.1, "score": 0.2, "other": 0.3}, "score"),
        ({"split": ["dev", "test"], "Overall": [0.1, None]}, "split=dev|Overall"),  # hidden answers
        ({"b": 0.1, "a": 0.2}, "b"),
    ],
)
def test_the_main_metric_is_vlmevalkits(report: Any, main: str) -> None:
    assert list(main_of(flat(report))) == [main]


def test_names_as_in_vlmevalkits_status() -> None:
    assert flat({"split": ["dev"], "Overall": [0.5]}) == {"split=dev|Overall": 0.5}
    assert flat({"acc": 0.5}) == {"acc": 0.5}


@pytest.mark.parametrize(("report", "why"), [(None, "returned None"), ("0.5", "returned str"), ({}, "no number")])
def test_a_report_without_numbers_is_refused(report: Any, why: str) -> None:
    with pytest.raises(DataError, match=why):
        reported_metrics(report, 4, "s@1")
