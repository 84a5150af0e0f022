"""Sets whose right answers are hidden: asked and exported, not scored, and this is said before anything is asked."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import table_world as world

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("shared_cache")]
HEADER = ["index", "image", "question", "A", "B", "answer"]


def table(folder: Path, name: str, answers: list[str]) -> None:
    rows = [
        [str(place), world.encoded("astronaut"), f"q{place}", "cat", "dog", each] for place, each in enumerate(answers)
    ]
    hidden = not any(answers)
    world.write_table(
        folder / f"{name}.tsv", HEADER[:-1] if hidden else HEADER, [row[:5] if hidden else row for row in rows]
    )


@pytest.mark.parametrize("name", ["MMMU_TEST", "DocVQA_TEST", "MyTest"])
def test_a_hidden_test_split_is_exported(program: Any, ask: Any, tmp_path: Path, name: str) -> None:
    table(tmp_path / "lmu", name, ["", "", ""])
    words = ("--models", "digits-reader", "--eval-settings", name, "--lmu-data", str(tmp_path / "lmu"))
    told = "no row has a right answer in its column 'answer', as in hidden test splits"
    assert told in program("eval.py", *words, "--dry-run").stderr  # before anything is paid
    done = program("eval.py", *words, "--executor", "inline", "--json")
    assert told in done.stderr
    answer = json.loads(done.stdout)
    assert [each["status"] for each in answer["outcomes"]] == ["complete"]
    assert {each["metric"]: each["value"] for each in answer["results"]} == {"coverage": 1.0, "empty": 0.0}
    ask("export", "vlmevalkit", str(tmp_path / "out"))
    files = {path.name for path in (tmp_path / "out" / "digits-reader").iterdir()}
    assert files == {f"digits-reader_{name}.tsv", "status.json"}  # no report that would say 0
    with (tmp_path / "out" / "digits-reader" / f"digits-reader_{name}.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["index"] for row in rows] == ["0", "1", "2"]
    assert all(row["prediction"] for row in rows)


def test_rows_without_an_answer_do_not_count(program: Any, tmp_path: Path) -> None:
    table(tmp_path / "lmu", "MyTest", ["A", "", "B", ""])
    recorded = world.write_table(
        tmp_path / "m_MyTest.tsv", ["index", "question", "prediction"], [[str(n), f"q{n}", "A"] for n in range(4)]
    )
    words = ("--models", f"replay:{recorded}", "--eval-settings", "MyTest", "--lmu-data", str(tmp_path / "lmu"))
    answer = json.loads(program("eval.py", *words, "--executor", "inline", "--json").stdout)
    found = {each["metric"]: (each["value"], each["n"]) for each in answer["results"] if each["slice"] == "overall"}
    assert found["accuracy"] == (0.5, 2)
