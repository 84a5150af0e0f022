"""Files of answers and the sets that they answer: matched by name, and by what they say was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import table_world as world

pytestmark = pytest.mark.slow
SETS = ("MMStar", "RealWorldQA", "MyOwn")
HEADER = ["index", "question", "A", "B", "answer"]


def rows_of(name: str, rows: int = 4) -> list[list[str]]:
    return [[str(place), f"{name}: number {place}?", "cat", "dog", "AB"[place % 2]] for place in range(rows)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """VLMEvalKit's folder of tables, and its outputs: a run in its folder, to which links lead."""
    run = tmp_path / "out" / "m" / "T20260101-000000"
    for name in SETS:
        rows = [[*row, world.encoded("astronaut")] for row in rows_of(name)]
        world.write_table(tmp_path / "LMU" / f"{name}.tsv", [*HEADER, "image"], rows)
        recorded(run / f"m_{name}.tsv", name)
        (run.parent / f"m_{name}.tsv").symlink_to(f"{run.name}/m_{name}.tsv")
    world.write_table(
        run / "m_MMStar_exact_matching_result.tsv",
        [*HEADER, "prediction", "hit"],
        [[*row, "A", "1"] for row in rows_of("MMStar")],
    )
    return tmp_path


def recorded(path: Path, name: str, rows: Sequence[Sequence[str]] = ()) -> Path:
    return world.write_table(path, [*HEADER, "prediction"], [[*row, "A"] for row in rows or rows_of(name)])


def run(program: Any, folder: Path, *words: str) -> dict[tuple[str, str], Mapping[str, Any]]:
    common = ["--executor", "inline", "--lmu-data", str(folder / "LMU"), "--json"]
    done = json.loads(program("eval.py", *common, *words, code=None).stdout)
    return {(Path(each["model"]).name, each["setting"]): each for each in done["outcomes"]}


def statuses(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    return {cell: each["status"] for cell, each in found.items()}


def test_a_folder_is_scored_by_one_command(program: Any, folder: Path) -> None:
    done = run(program, folder, "--recorded", str(folder / "out"))
    assert statuses(done) == {(f"m_{name}.tsv", name): "complete" for name in SETS}  # once, not twice by the links
    some = run(program, folder, "--recorded", str(folder / "out"), "--eval-settings", "MMStar", "MMStar.vlmevalkit")
    assert some["m_MMStar.tsv", "MMStar"]["status"] == "stored"
    assert some["m_MMStar.tsv", "MMStar.vlmevalkit"]["status"] == "derived"
    assert {each["status"] for cell, each in some.items() if cell[0] != "m_MMStar.tsv"} == {"unsupported"}


def test_a_folder_without_answers_is_told(program: Any, folder: Path) -> None:
    done = program("eval.py", "--lmu-data", str(folder / "LMU"), "--recorded", str(folder / "LMU"), code=None)
    assert done.returncode
    assert "VLMEvalKit answer files: MODEL_SET.xlsx" in done.stderr


def test_files_are_scored_on_their_own_sets(program: Any, folder: Path) -> None:
    files = f"replay:{folder}/out/m/T*/*.tsv"
    done = run(program, folder, "--models", files, "--eval-settings", "MMStar", "RealWorldQA")
    own = {("m_MMStar.tsv", "MMStar"): "complete", ("m_RealWorldQA.tsv", "RealWorldQA"): "complete"}
    others = [("m_MyOwn.tsv", name) for name in SETS[:2]]
    others += [("m_MMStar_exact_matching_result.tsv", name) for name in SETS[:2]]
    assert statuses(done) == own | dict.fromkeys(others, "unsupported")
    assert "has answers to MyOwn, not to MMStar" in done["m_MyOwn.tsv", "MMStar"]["reason"]
    assert "scores of answers" in done["m_MMStar_exact_matching_result.tsv", "MMStar"]["reason"]


@pytest.mark.parametrize("setting", ["RealWorldQA", "RealWorldQA.vlmevalkit", "MyOwn"])
def test_a_single_file_of_another_set_is_not_scored(program: Any, folder: Path, setting: str) -> None:
    done = run(program, folder, "--models", f"replay:{folder}/out/m/m_MMStar.tsv", "--eval-settings", setting)
    assert statuses(done) == {("m_MMStar.tsv", setting): "unsupported"}


def test_what_was_asked_counts_where_the_name_says_nothing(program: Any, folder: Path) -> None:
    renamed = recorded(folder / "answers.tsv", "MMStar")
    done = run(program, folder, "--models", f"replay:{renamed}", "--eval-settings", *SETS)
    assert [done["answers.tsv", name]["status"] for name in SETS] == ["complete", "failed", "failed"]
    reason = done["answers.tsv", "MyOwn"]["reason"]
    assert "answers to other questions: 4 of 4 differ" in reason
    assert "'MMStar: number 0?'" in reason
    assert "'MyOwn: number 0?'" in reason


def test_a_file_with_the_name_of_the_set_but_other_questions_is_refused(program: Any, folder: Path) -> None:
    wrong = recorded(folder / "m_MMStar.tsv", "RealWorldQA")
    done = run(program, folder, "--models", f"replay:{wrong}", "--eval-settings", "MMStar")
    assert done["m_MMStar.tsv", "MMStar"]["status"] == "failed"
    options = recorded(folder / "o_MMStar.tsv", "", [[*row[:2], "lion", *row[3:]] for row in rows_of("MMStar")])
    done = run(program, folder, "--models", f"replay:{options}", "--eval-settings", "MMStar")
    assert done["o_MMStar.tsv", "MMStar"]["status"] == "failed"


def test_a_corrected_question_and_a_part_of_a_table_are_no_other_set(program: Any, folder: Path) -> None:
    rows = rows_of("MMStar")
    rows[0][1] = "corrected"
    rows[1][1] = "  MMSTAR: number  1 "
    mended = recorded(folder / "m_MMStar.tsv", "", rows)
    part = [[*row, world.encoded("astronaut")] for row in rows_of("MMStar")[:2]]
    world.write_table(folder / "part.tsv", [*HEADER, "image"], part)
    settings = ["MMStar", f"tsv:{folder}/part.tsv"]
    done = run(program, folder, "--models", f"replay:{mended}", "--eval-settings", settings[0])
    assert done["m_MMStar.tsv", "MMStar"]["status"] == "complete"
    done = run(program, folder, "--models", f"replay:{folder}/out/m/m_MMStar.tsv", "--eval-settings", settings[1])
    assert [each["status"] for each in done.values()] == ["complete"]
