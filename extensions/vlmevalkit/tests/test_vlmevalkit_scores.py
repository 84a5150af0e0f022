"""Which metric of ours each number in VLMEvalKit's files of scores is: against what its own functions wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from answered_world import WORLDS
from places import TESTS
from tables import cases

from testbed.answers.reports.report import REPORTS, report
from testbed.extensions.vlmevalkit.score_numbers import cells_of, numbers_of
from testbed.extensions.vlmevalkit.vlmevalkit_scores import filled, forms

PUBLISHED = json.loads((TESTS / "answers" / "published_reports.json").read_text())
SCORINGS = {"mme": "yes_no", "pope": "yes_no", "hallusion": "yes_no"}


# What VLMEvalKit reports and testbed has no metric of.
def lacks(name: str, row: str, column: str, number: float) -> bool:
    without_rows = name == "mme_realworld" and number == 0
    return without_rows or (name == "math_vista" and column in ("tot", "prefetch", "hit"))


def found(name: str) -> tuple[Any, Any]:
    metrics = {(each.name, each.slice): each for each in report(name, WORLDS[name](), "test@1")}
    return metrics, forms(name, SCORINGS.get(name, "multiple_choice"), list(metrics))


NAMES = [
    *("accuracy", "mme", "pope", "hallusion", "mmvp", "cv_bench_2d", "hr_bench", "ocrbench", "vqa", "mme_realworld"),
    "math_vista",
]


@cases("name", NAMES)
def test_each_number_of_a_published_report_is_ours(name: str) -> None:
    metrics, (form,) = found(name)
    cells, numbers = cells_of(form), numbers_of(PUBLISHED[name])
    assert numbers
    for key, number in numbers.items():
        if lacks(name, *key, number):
            assert key not in cells
        else:
            assert cells[key].value(metrics) == pytest.approx(number), key
    assert set(cells) <= set(numbers)


@pytest.mark.parametrize("name", ["ocrbench", "mme_realworld"])
def test_what_is_written_is_read_as_the_same_numbers(name: str) -> None:
    metrics, (form,) = found(name)
    assert form.fields is not None
    written = numbers_of(json.loads(json.dumps(filled(form.fields, metrics))))
    assert written == {key: cell.value(metrics) for key, cell in cells_of(form).items()}


def test_rotated_questions_have_two_files() -> None:
    metrics, (circular, together) = found("circular")
    (row,) = PUBLISHED["circular"]["circular"]
    assert {key: cell.value(metrics) for key, cell in cells_of(circular).items()} == pytest.approx(numbers_of([row]))
    kinds = {"vanilla_0": "vanilla_base", "vanilla_all": "vanilla_all", "circular": "circular"}
    rows = [{**PUBLISHED["circular"][ours][0], "split": theirs} for theirs, ours in kinds.items()]
    assert {key: cell.value(metrics) for key, cell in cells_of(together).items()} == pytest.approx(numbers_of(rows))
    assert (circular.suffix, together.suffix) == ("_acc.csv", "_acc_all.csv")


def test_captions_are_in_percent() -> None:
    known = [("Bleu_1", "overall"), ("CIDEr", "overall")]
    cells = cells_of(forms("captions", "caption", known)[0])
    recorded = numbers_of({"Bleu": [70.0, 50.0, 40.0, 30.0], "ROUGE_L": 50.0, "CIDEr": 110.0})
    assert set(recorded) == set(cells)
    assert cells["", "Bleu_2"].metric == "Bleu_2"
    assert {cell.scale for cell in cells.values()} == {100}


def test_the_validation_split_of_mmmu_has_the_subjects() -> None:
    known = [("accuracy", part) for part in ("overall", "split/dev", "split/validation", "category/Art")]
    cells = cells_of(forms("mmmu", "mmmu", known)[0])
    assert cells["validation", "Art"].slice == "category/Art"
    assert cells["dev", "Overall"].slice == "split/dev"
    assert ("accuracy", cells["dev", "Art"].slice) not in known


def test_every_report_has_forms_or_none() -> None:
    for name in REPORTS:
        assert isinstance(forms(name, "multiple_choice", []), list)
