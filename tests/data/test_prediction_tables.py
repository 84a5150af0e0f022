"""Recorded answers in VLMEvalKit's files, and the scores beside them."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import table_world as world

from testbed.data.formats.predictions import Predictions
from testbed.data.tables.answers import is_prediction_table, read_prediction_table
from testbed.data.tables.scores import recorded_scores
from testbed.errors import DataError, MissingExtraError, TestbedError

FORMS = ("xlsx", "tsv", "json")
HEADER = ["index", "question", "A", "answer", "prediction", "thinking"]
FAILED = "Failed to obtain answer via API."
ASSETS = Path(__file__).parent / "assets"


def write(path: Path, header: list[str], rows: list[list[Any]]) -> Path:
    """A file of results in the form that its name says."""
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in (header, *rows):
            book.active.append(row)
        book.save(path)
    elif path.suffix == ".json":
        records = [{name: None if text == "" else text for name, text in zip(header, row, strict=True)} for row in rows]
        path.write_text(json.dumps(records), encoding="utf-8")
    else:
        texts = [["" if value is None else str(value) for value in row] for row in rows]
        world.write_table(path, header, texts, delimiter="," if path.suffix == ".csv" else "\t", quoting=1)
    return path


# Answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_answers(tmp_path: Path, form: str) -> None:
    said = ["A", "None", "NA", "N/A", "nan", "", 'The answer is B.\n\n\tSo 5" wide.', "5", "é 🎈", FAILED]
    rows = [[number, "q", "x", "A", text, "so" if number == 0 else ""] for number, text in enumerate(said)]
    found = read_prediction_table(write(tmp_path / f"m_Set.{form}", HEADER, rows))
    assert isinstance(found, Predictions)
    assert found.texts == {str(number): text for number, text in enumerate(said) if text != FAILED}
    assert found.faults == {"9": FAILED}
    assert found.absent == frozenset()
    assert found.extras == {"0": {"thinking": "so"}}
    assert found.coverage([str(number) for number in range(10)]) == 9


def test_a_workbook_that_pandas_wrote() -> None:
    found = read_prediction_table(ASSETS / "vlmevalkit_answers.xlsx")
    said = ["A", "None", "NA", "", "5", "1.50", "=1+1", "http://x.y/z", "a\r\nb\tc", "True", "é🎈", "nan"]
    assert found.texts == {str(number): text for number, text in enumerate(said)}
    assert found.faults == {"12": FAILED}
    assert found.extras == {"0": {"thinking": "because"}}


def test_numbers_and_formulas_in_a_workbook_are_texts(tmp_path: Path) -> None:
    header = ["index", "prediction", "extra_records"]
    rows = [[1, 5, None], [2.0, 1.5, '{"tokens": 3}'], ["3", True, None], [4, None, None]]
    rows += [["5", '=HYPERLINK("http://x")', None], ["6", "=1+1", None]]
    found = read_prediction_table(write(tmp_path / "m_Set.xlsx", header, rows))
    texts = {"1": "5", "2": "1.5", "3": "True", "4": "", "5": '=HYPERLINK("http://x")', "6": "=1+1"}
    assert (found.texts, found.extras) == (texts, {"2": {"extra_records": '{"tokens": 3}'}})


def test_answers_that_a_workbook_may_have_cut_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [["1", "x" * 32_767], ["2", "x" * 32_766]]
    read_prediction_table(write(tmp_path / "m_Set.xlsx", ["index", "prediction"], rows))
    assert "m_Set.xlsx: 1 of 2 answers have 32,767 characters" in caplog.text


def test_json_without_numbers(tmp_path: Path) -> None:
    path = tmp_path / "m_Set.json"
    path.write_text('[{"index": 1, "prediction": NaN, "thinking": NaN}, {"index": 2, "prediction": "x"}]')
    found = read_prediction_table(path)
    assert (found.texts, found.extras) == ({"1": "", "2": "x"}, {})


@pytest.mark.parametrize(
    ("value", "is_theirs"),
    [
        ([{"index": 1, "prediction": "x"}], True),
        ([{"index": 1, "id": 7, "question": "q", "prediction": "x"}], True),
        ([{"index": 1, "id": 7, "prediction": "x"}], False),  # as it was read before
        ([{"id": "1", "prediction": "x"}], False),
        ({"index": "x", "prediction": "y"}, False),
        ([], False),
        ([[1]], False),
    ],
)
def test_which_json_files_are_vlmevalkits(tmp_path: Path, value: Any, is_theirs: bool) -> None:
    path = tmp_path / "m_Set.json"
    path.write_text(json.dumps(value))
    assert is_prediction_table(path) == is_theirs


@pytest.mark.parametrize("form", FORMS)
def test_files_that_are_not_right(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"m_Set.{form}"
    for header, rows, message in (
        (["index", "answer"], [["1", "x"]], "has no predictions, .*; it has 'answer, index'"),
        (["id", "prediction"], [["1", "x"]], "record 1 has no index; it has 'id, prediction'"),
        (["index", "prediction"], [["1", "x"], ["1", "y"]], "has the index '1' twice"),
        (["index", "prediction"], [], "has no predictions, .*; it has no records"),
    ):
        with pytest.raises(DataError, match=rf"m_Set\.{form}.* {message}"):
            read_prediction_table(write(path, header, rows))
    whole = write(path, ["index", "prediction"], [["1", "x" * 500]]).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=rf"m_Set\.{form}.* may be incomplete"):
        read_prediction_table(path)
    path.unlink()
    with pytest.raises(DataError, match="does not exist"):
        read_prediction_table(path)


def test_a_workbook_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m_Set.xlsx", ["index", "prediction"], [["1", "x"]])
    monkeypatch.setattr("testbed.data.tables.files.MAX_UNPACKED", 1000)
    with pytest.raises(DataError, match="bytes unpacked; the maximum is 1,000"):
        read_prediction_table(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m_Set.xlsx", ["index", "prediction"], [["1", "x"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", bytes(80 << 20))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("openpyxl.load_workbook", None)  # whoever calls it fails otherwise
    with pytest.raises(DataError, match="more than 100 times as many; no table of answers is like that"):
        read_prediction_table(path)


def test_a_bomb_that_declares_another_size_is_not_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "m_Set.xlsx", ["index", "prediction"], [["1", "x"]])
    with zipfile.ZipFile(path) as archive:
        parts = {each.filename: archive.read(each) for each in archive.infolist()}
    sheet = parts["xl/worksheets/sheet1.xml"].replace(b"<sheetData>", b"<sheetData>" + b" " * (80 << 20))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**parts, "xl/worksheets/sheet1.xml": sheet}.items():
            archive.writestr(name, data)
    honest = len(sheet).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(honest, (2000).to_bytes(4, "little")))
    with pytest.raises(DataError, match=r"m_Set\.xlsx cannot be read as a workbook"):
        read_prediction_table(path)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000 + "]" * 100_000,
        '[{"index": 1, "prediction": ' + "[" * 100_000 + "]" * 100_000 + "}]",
        '[{"index": 1, "prediction": "A", "more": ' + '{"a": ' * 100_000 + "1" + "}" * 100_000 + "}]",
    ],
    ids=range(3),
)
def test_deep_json_is_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m_Set.json"
    path.write_text(text)
    assert is_prediction_table(path) is False
    with pytest.raises(DataError, match=r"m_Set\.json is not valid JSON: maximum recursion depth exceeded"):
        read_prediction_table(path)


def test_workbooks_need_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "m_Set.xlsx", ["index", "prediction"], [["1", "x"]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"m_Set\.xlsx needs the package openpyxl: pip install -e '\.\[xlsx\]'"):
        read_prediction_table(path)


# Scores -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def answered(tmp_path: Path) -> Path:
    """A file of answers, with what VLMEvalKit writes beside it."""
    rows = [[number, "q", "x", "A", text, ""] for number, text in enumerate("AAB")]
    write(tmp_path / "m_MMBench_gpt4_result.xlsx", ["index", "hit", "log"], [[0, 1, "ok"], [1, 1, "ok"], [2, 0, "no"]])
    write(tmp_path / "m_MMBench_acc.csv", ["split", "Overall", "beings"], [["dev", "0.6666666666666666", ""]])
    (tmp_path / "m_MMBench_gpt4_result.pkl").write_bytes(b"cos\nsystem\n(S'touch CODE_RAN'\ntR.")
    return write(tmp_path / "m_MMBench.xlsx", HEADER, rows)


def test_scores_beside_answers(answered: Path) -> None:
    found = recorded_scores(answered)
    assert found.predictions == answered
    assert found.reports == {"m_MMBench_acc.csv": [{"split": "dev", "Overall": pytest.approx(2 / 3)}]}
    assert found.answers == {"m_MMBench_gpt4_result.xlsx": {"0": 1.0, "1": 1.0, "2": 0.0}}


def test_scores_of_the_other_kinds(tmp_path: Path) -> None:
    path = write(tmp_path / "m_Set.tsv", ["index", "prediction"], [["1", "Yes"], ["2", "No"]])
    write(
        tmp_path / "m_Set_auxmatch.tsv", ["index", "extracted", "score"], [["1", "Yes", "True"], ["2", "No", "False"]]
    )
    write(tmp_path / "m_Set_results.json", ["index", "eval_score"], [[1, 0.5], [2, None]])
    write(tmp_path / "m_Set_gpt-4-turbo_score.csv", ["Category", "acc"], [["Overall", "51.5"], ["nan", "1"]])
    (tmp_path / "m_Set_score.json").write_text('{"Bleu": [0.5, 0.25], "CIDEr": 1.25}')
    (tmp_path / "m_Set_rating.json").write_text('{"short": {"overall": "0.7"}}')
    found = recorded_scores(path)
    assert found.answers == {
        "m_Set_auxmatch.tsv": {"1": 1.0, "2": 0.0},
        "m_Set_results.json": {"1": 0.5},
    }
    assert found.reports == {
        "m_Set_gpt-4-turbo_score.csv": [{"Category": "Overall", "acc": 51.5}, {"Category": "nan", "acc": 1.0}],
        "m_Set_score.json": {"Bleu": [0.5, 0.25], "CIDEr": 1.25},
        "m_Set_rating.json": {"short": {"overall": "0.7"}},
    }


def test_scores_of_a_set_with_a_longer_name_belong_to_that_one(answered: Path, tmp_path: Path) -> None:
    longer = write(tmp_path / "m_MMBench_V11.tsv", ["index", "prediction"], [["1", "A"]])
    write(tmp_path / "m_MMBench_V11_acc.csv", ["split", "Overall"], [["dev", "1.0"]])
    write(tmp_path / "m_MMBench_V11_gpt4_result.tsv", ["index", "hit"], [["1", "1"]])
    assert set(recorded_scores(answered).reports) == {"m_MMBench_acc.csv"}
    assert set(recorded_scores(answered).answers) == {"m_MMBench_gpt4_result.xlsx"}
    assert set(recorded_scores(longer).reports) == {"m_MMBench_V11_acc.csv"}
    assert set(recorded_scores(longer).answers) == {"m_MMBench_V11_gpt4_result.tsv"}


def test_scores_are_found_through_the_link_that_vlmevalkit_makes(tmp_path: Path) -> None:
    run = tmp_path / "m" / "T20260818-120000"
    run.mkdir(parents=True)
    write(run / "m_Set.tsv", ["index", "prediction"], [["1", "A"]])
    write(run / "m_Set_acc.csv", ["split", "Overall"], [["none", "1.0"]])
    (tmp_path / "m" / "m_Set.tsv").symlink_to("T20260818-120000/m_Set.tsv")
    assert recorded_scores(tmp_path / "m" / "m_Set.tsv").reports == {
        "m_Set_acc.csv": [{"split": "none", "Overall": 1.0}]
    }


def test_no_scores_and_no_answers(tmp_path: Path) -> None:
    path = write(tmp_path / "m_Set.tsv", ["index", "prediction"], [["1", "A"]])
    found = recorded_scores(path)
    assert (found.reports, found.answers) == ({}, {})
    with pytest.raises(DataError, match="does not exist"):
        recorded_scores(tmp_path / "none.tsv")
    (tmp_path / "m_Set_score.json").write_text("{")
    with pytest.raises(TestbedError, match=r"m_Set_score\.json is not valid JSON"):
        recorded_scores(path)
