"""Answers that VLMEvalKit recorded, on a table in its folder, with the programs."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pytest
import table_world as world

PLUGIN = Path(__file__).parent.parent / "plugins" / "photo_questions.py"
SAID = {"0": "An astronaut.", "1": "None", "2": "", "3": "Failed to obtain answer via API."}


@pytest.fixture
def tables(tmp_path):
    """VLMEvalKit's folder of tables."""
    world.questions(tmp_path / "LMU" / "Photos.tsv")
    return tmp_path / "LMU"


@pytest.fixture
def recorded(tmp_path):
    """The same answers in each of VLMEvalKit's forms."""
    folder = tmp_path / "outputs"
    folder.mkdir()
    rows = [[index, "q", text, "I looked." if index == "0" else ""] for index, text in SAID.items()]
    header = ["index", "question", "prediction", "thinking"]
    world.write_table(folder / "one_Photos.tsv", header, rows, quoting=1)
    records = [dict(zip(header, row, strict=True)) for row in rows]
    (folder / "two_Photos.json").write_text(json.dumps(records))
    book = openpyxl.Workbook()
    for row in (header, *rows):
        book.active.append(row)
    book.save(folder / "three_Photos.xlsx")
    return folder


@pytest.mark.slow
def test_recorded_answers_are_replayed_on_their_table(program, tables, recorded, tmp_path):
    common = ["--plugin", str(PLUGIN), "--eval-settings", "photo-questions", "--executor", "inline"]
    missing = program(
        "eval.py", *common, "--models", f"replay:{recorded}/one_Photos.tsv", code=1, LMUData=str(tmp_path)
    )
    assert f"the table Photos is not there: looked for Photos.tsv, Photos_local.tsv in {tmp_path}" in missing.stdout
    done = program(
        "eval.py", *common, "--lmu-data", str(tables), "--json", "--models", f"replay:{recorded}/*.tsv",
        f"replay:{recorded}/*.json", f"replay:{recorded}/*.xlsx", code=None,
    )  # fmt: skip
    outcomes = json.loads(done.stdout)["outcomes"]
    assert sorted(Path(each["model"]).name for each in outcomes) == [
        "one_Photos.tsv",
        "three_Photos.xlsx",
        "two_Photos.json",
    ]
    from testbed.db.store import Store

    with Store.open(str(tmp_path / "testbed.db")) as store:
        for each in outcomes:
            values = store.outputs.read(each["evaluation_id"], "text")
            assert [value["text"] for value in values] == ["An astronaut.", "None", "", ""]
            assert values[0]["extra"] == {"thinking": "I looked."}
            assert values[3]["finish_reason"] == f"error: {SAID['3']}"
            assert values[1]["finish_reason"] == values[2]["finish_reason"] == "stop"
