"""Clicks on screenshots, whose size the table's pictures give, and documents as JSON."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import pytest
from PIL import Image

from testbed.answers.scorings import SCORINGS
from testbed.answers.trees import Tree, tree_distance
from testbed.eval_settings.question_tables import QuestionTables

BOX = {"question": "q", "answer": "[100, 50, 200, 100]", "picture_size": "1000x500"}


def test_rows_of_a_benchmark_of_clicks_have_a_box_and_the_size_of_their_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 48)).save(file, "PNG")
    picture = base64.b64encode(file.getvalue()).decode()
    rows = [f"0\t{picture}\tOpen\t[6, 4, 20, 10]\ticon", f"1\t{picture[:200]}!\tClose\t[0, 0, 5, 5]\ttext"]
    header = "index\timage\tquestion\tbbox\tdata_type"
    (tmp_path / "ScreenSpot_Web.tsv").write_text("\n".join([header, *rows]) + "\n")
    monkeypatch.setenv("LMUData", str(tmp_path))
    setting = QuestionTables().build("ScreenSpot_Web")
    first, faulty = setting.dataset.open().targets
    assert (first["answer"], first["picture_size"]) == ("[6, 4, 20, 10]", "64x48")
    assert "picture_size" not in faulty
    read = SCORINGS[setting.task_options["scoring"]]
    assert read(first, "pyautogui.click(x=16, y=9)").score == 1
    assert read(first, "pyautogui.click(x=40, y=9)").score == 0


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("pyautogui.click(x=150, y=75)", 1),
        ("pyautogui.click(x=0.15, y=0.15)", 1),
        ("First x=1, y=2. Then click(x=150, y=75)", 1),
        ("(150, 75)", 1),
        ("[100, 50, 200, 100]", 1),
        ("x: 150, y: 75", 1),
        ("pyautogui.click(x=350, y=75)", 0),
        ("I cannot see it", 0),
    ],
)
def test_the_place_of_a_click(text: str, score: float) -> None:
    assert SCORINGS["click"](BOX, text).score == score


def test_fields_in_a_fence_or_a_sentence_are_compared_as_trees() -> None:
    columns = {"question": "q", "answer": '{"total": "3.50", "date": "2019"}'}
    read = SCORINGS["key_information"]
    for text in (
        '{"date": "2019", "total": "3.50"}',
        'Here it is:\n```json\n{"total": "3.50", "date": "2019"}\n```\nDone.',
        'The fields are {"total": "3.50", "date": "2019"}.',
        "```\n{'total': '3.50', 'date': '2019'}\n```",
    ):
        assert read(columns, text).score == 1
    # of 10 characters and 2 names, one character is another
    assert read(columns, '{"total": "3.58", "date": "2019"}').score == pytest.approx(1 - 1 / 10)
    assert read(columns, "no fields").score == 0


def test_the_distance_of_trees() -> None:
    first = Tree("a", (Tree("b", (Tree("c"), Tree("d"))), Tree("e")))
    second = Tree("a", (Tree("c"), Tree("d"), Tree("f")))

    def distance(one: Tree, other: Tree) -> float:
        return tree_distance(one, other, lambda label: 1, lambda a, b: float(a != b))

    assert distance(first, first) == 0
    assert distance(first, second) == distance(second, first) == 2  # without b, and f in place of e
    assert distance(Tree("a"), first) == 4
