"""``testbed compare-recorded``: what VLMEvalKit recorded beside answers, against the same answers scored here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from table_world import PHOTOS, encoded, recorded_answers, write_table

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Answers to MMStar and all that VLMEvalKit writes beside them."""
    return recorded_answers(tmp_path)


def scored(program: Any, tmp_path: Path, *settings: str, model: Path) -> None:
    words = ("--models", f"replay:{model}", "--eval-settings", *settings, "--lmu-data", str(tmp_path / "lmu"))
    program("eval.py", *words, "--executor", "inline")


def test_reports_and_verdicts(program: Any, ask: Any, tmp_path: Path, recorded: Path) -> None:
    scored(program, tmp_path, "MMStar", model=recorded)
    answer = json.loads(ask("compare-recorded", f"replay:{recorded}", "MMStar", "--json").stdout)
    numbers = {each["column"]: each for each in answer["numbers"]}
    assert {name: each["ours"] for name, each in numbers.items()} == {
        "Overall": {"vlmevalkit": pytest.approx(2 / 6), "default": pytest.approx(4 / 6)},
        "seen": {"vlmevalkit": pytest.approx(2 / 6), "default": pytest.approx(4 / 6)},
        "beings": {"vlmevalkit": pytest.approx(2 / 3), "default": pytest.approx(2 / 3)},
        "things": {"vlmevalkit": 0, "default": pytest.approx(2 / 3)},
        "colour of the sky": {},
    }
    assert numbers["Overall"]["recorded"] == 0.5
    assert numbers["Overall"]["difference"]["vlmevalkit"] == pytest.approx(-1 / 6)
    assert (numbers["beings"]["metric"], numbers["beings"]["slice"]) == ("accuracy", "category/beings")
    assert numbers["colour of the sky"]["metric"] is None
    (rows,) = answer["rows"].values()
    assert (rows["recorded"], rows["same"]) == (6, {"vlmevalkit": 5, "default": 5})
    assert [(each["index"], each["recorded"]) for each in rows["different"]] == [("3", 1), ("5", 0)]
    assert rows["different"][0]["ours"] == {
        "vlmevalkit": {"extracted": None, "score": 0},
        "default": {"extracted": "A", "score": 1},
    }

    told = ask("compare-recorded", f"replay:{recorded}", "MMStar", "--limit", "1")
    (unknown,) = [line for line in told.stdout.splitlines() if "colour of the sky" in line]
    assert unknown.endswith("no known counterpart")
    assert "of 6 recorded scores of answers, 5 are the same under the rules vlmevalkit, 5 under" in told.stdout
    assert told.stdout.splitlines()[-1].split() == ["3", "A", '"A"', "1", "0", "nothing", "1", "A"]
    assert "1 more; --limit shows more, --json all of them" in told.stderr


def test_it_is_the_same_under_any_rules_and_for_a_relative_path(
    program: Any, ask: Any, tmp_path: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(program, tmp_path, "MMStar.vlmevalkit", model=recorded)
    monkeypatch.chdir(tmp_path)
    name = f"replay:{recorded.relative_to(tmp_path)}"
    assert "5 are the same under" in ask("compare-recorded", name, "MMStar.vlmevalkit").stdout


def test_rotations_count_together(program: Any, ask: Any, tmp_path: Path) -> None:
    header = ["index", "image", "question", "A", "B", "answer", "category", "g_index"]
    rows = []
    for base in (0, 1):
        for turn in (0, 1):
            options = [PHOTOS[base], PHOTOS[2]] if turn == 0 else [PHOTOS[2], PHOTOS[base]]
            picture = encoded(PHOTOS[base]) if turn == 0 else str(base)
            rows.append([str(base + turn * 10**6), picture, "What?", *options, "AB"[turn], "x", str(base)])
    write_table(tmp_path / "lmu" / "MMBench_DEV_EN.tsv", header, rows)
    predictions = tmp_path / "m_MMBench_DEV_EN.tsv"
    write_table(predictions, ["index", "prediction"], [["0", "A"], ["1000000", "B"], ["1", "A"], ["1000001", "A"]])
    write_table(tmp_path / "m_MMBench_DEV_EN_gpt4_result.tsv", ["index", "hit"], [["0", "1"], ["1", "1"], ["7", "0"]])
    write_table(tmp_path / "m_MMBench_DEV_EN_acc.csv", ["split", "Overall"], [["none", "1.0"]], delimiter=",")
    scored(program, tmp_path, "MMBench_DEV_EN", model=predictions)
    told = ask("compare-recorded", f"replay:{predictions}", "MMBench_DEV_EN", "--json")
    answer = json.loads(told.stdout)
    (number,) = answer["numbers"]
    assert (number["metric"], number["ours"]["default"]) == ("circular", 0.5)
    (rows,) = answer["rows"].values()
    assert [(each["index"], each["ours"]["default"]) for each in rows["different"]] == [
        ("1", {"extracted": "A, A", "score": 0})
    ]
    assert answer["unasked"] == {"m_MMBench_DEV_EN_gpt4_result.tsv": 1}


def test_what_cannot_be_compared(program: Any, refusal: Any, tmp_path: Path, recorded: Path) -> None:
    scored(program, tmp_path, "MMStar", model=recorded)
    for path in recorded.parent.iterdir():
        if path != recorded:
            path.unlink()
    assert f"nothing is recorded beside {recorded}" in refusal("compare-recorded", f"replay:{recorded}", "MMStar")
    assert "'MMBench'" in refusal("compare-recorded", f"replay:{recorded}", "MMBench")
    assert "'replay:no'" in refusal("compare-recorded", "replay:no", "MMStar")
