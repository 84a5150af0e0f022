"""Tables of questions by their names and by their files, asked and scored with the programs."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from table_world import encoded, questions, write_table

pytestmark = pytest.mark.usefixtures("shared_cache")
PREDICTIONS = [("0", "A"), ("1", "B"), ("2", "The answer is A"), ("3", '"A"'), ("4", "None"), ("5", "a")]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder of tables, and answers to one of them that VLMEvalKit recorded."""
    folder = tmp_path / "lmu"
    for name in ("MMStar", "mine", "Design2Code"):
        questions(folder / f"{name}.tsv", 6)
    lines = ["index\tprediction", *("\t".join([index, json.dumps(text)]) for index, text in PREDICTIONS)]
    (folder / "seen_MMStar.tsv").write_text("\n".join(lines).replace('\\"', '""') + "\n")
    return folder


def run(program: Any, tables: Path, *settings: str, models: tuple[str, ...] = ("replay:lmu/seen_MMStar.tsv",)) -> Any:
    words = ("--models", *models, "--eval-settings", *settings, "--lmu-data", str(tables), "--executor", "inline")
    return program("eval.py", *words, "--json")


def test_recorded_answers_are_scored_by_both_rules(program: Any, tables: Path) -> None:
    done = run(program, tables, "MMStar", "MMStar.vlmevalkit")
    answer = json.loads(done.stdout)
    found = {
        (each["eval_setting"], each["metric"]): each["value"]
        for each in answer["results"]
        if each["slice"] == "overall"
    }
    assert found["MMStar", "accuracy"] == pytest.approx(4 / 6)
    assert found["MMStar.vlmevalkit", "accuracy"] == pytest.approx(2 / 6)
    assert found["MMStar", "rules_differ"] == found["MMStar.vlmevalkit", "rules_differ"] == pytest.approx(2 / 6)
    statuses = {each["setting"]: each["status"] for each in answer["outcomes"]}
    assert statuses == {"MMStar": "complete", "MMStar.vlmevalkit": "derived"}
    assert "has the md5" in done.stderr  # this is not the published table, which is said and not mended
    slices = {each["slice"] for each in answer["results"] if each["metric"] == "accuracy"}
    assert {"category/beings", "category/things", "l2-category/seen", "split/dev"} <= slices


def test_a_table_of_any_name_is_asked_by_its_columns(program: Any, tables: Path) -> None:
    answer = json.loads(run(program, tables, "mine", f"tsv:{tables}/mine.tsv", models=("digits-reader",)).stdout)
    assert [each["status"] for each in answer["outcomes"]] == ["complete", "derived"]
    values = {each["eval_setting"]: each["value"] for each in answer["results"] if each["metric"] == "coverage"}
    assert set(values.values()) == {1}


def test_what_rules_leave_to_a_judge_is_told(program: Any, tables: Path) -> None:
    row = {"answer_type": "integer", "question_type": "free_form", "task": "t", "skills": "['s']"}
    rows = [[str(number), encoded("coffee"), "How many?", "7", *row.values()] for number in range(3)]
    write_table(tables / "MathVista_MINI.tsv", ["index", "image", "question", "answer", *row], rows)
    answers = [["0", "There are 7."], ["1", "8"], ["2", "some"]]
    write_table(tables / "seen_MathVista_MINI.tsv", ["index", "prediction"], answers)
    done = run(program, tables, "MathVista_MINI", models=("replay:lmu/seen_MathVista_MINI.tsv",))
    told = (
        "MathVista_MINI: 1 of 3 answers are not scored, since rules cannot read them; MathVista_MINI@JUDGE has a judge"
    )
    assert told in done.stderr
    found = {each["metric"]: each["value"] for each in json.loads(done.stdout)["results"] if each["slice"] == "overall"}
    assert (found["accuracy"], found["prefetch"]) == (0.5, pytest.approx(2 / 3))
    assert (found["unread"], found["bound_wrong"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert found["bound_right"] == pytest.approx(2 / 3)


def test_what_rules_alone_cannot_score_and_what_is_not_there_is_told(program: Any, tables: Path) -> None:
    words = ("--models", "digits-reader", "--lmu-data", str(tables), "--executor", "inline", "--eval-settings")
    done = program("eval.py", *words, "Design2Code", code=1)
    assert "not scored by rules alone" in done.stdout
    done = program("eval.py", *words, "BLINK", code=1)
    assert "BLINK.tsv" in done.stdout
    assert "opencompass.openxlab.space/utils/VLMEval/BLINK.tsv" in done.stdout


def test_the_names_of_sets_that_are_scored_are_listed(program: Any) -> None:
    listed = program("testbed", "list", "settings", "--scored").stdout.splitlines()
    assert {"MMStar", "VMCBench_DEV", "digits"} <= set(listed)
    assert "Design2Code" not in listed
    assert "Design2Code" in program("testbed", "list", "settings").stdout.splitlines()


def test_hostile_rows_cost_themselves_alone(program: Any, tmp_path: Path) -> None:
    """Code, paths, sizes and bytes that are meant to harm: an error for each row, and the answers to the others."""
    from testbed.db.store import Store

    large = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(large, "PNG")
    run_code = f"touch {tmp_path}/CODE_RAN"
    good = encoded("coffee")
    cells = {  # index → image, image_path, question, and what is said of it
        "good": (good, "", "What?", ""),
        "code": (f"[__import__('os').system('{run_code}')]", "", "What?", "expected a list of texts"),
        "code in a path": ("", f"[__import__('os').system('{run_code}')]", "What?", "expected a list of texts"),
        "100 megapixels": (base64.b64encode(large.getvalue()).decode(), "", "What?", "megapixels"),
        "outside": ("", "../../secret.png", "What?", "is outside the folder of pictures"),
        "of the system": ("", "/etc/passwd", "What?", "is outside the folder of pictures"),
        "broken": (good[:-3] + "=*=", "", "What?", "is not valid base64"),
        "NUL": (good, "", "What\0?", "holds the character NUL"),
        "deep": ("[" * 100_000 + "]" * 100_000, "", "What?", "expected a list of texts"),
        "after it": (good, "", "What?", ""),
    }
    (tmp_path / "secret.png").write_bytes(base64.b64decode(good))
    header = ["index", "image", "image_path", "question", "A", "B", "answer"]
    rows = [[index, *own[:3], "cat", "dog", "A"] for index, own in cells.items()]
    table = write_table(tmp_path / "lmu" / "Hostile.tsv", header, rows)
    done = run(program, tmp_path / "lmu", f"tsv:{table}", models=("digits-reader",))
    (outcome,) = json.loads(done.stdout)["outcomes"]
    assert outcome["status"] == "complete"
    assert not (tmp_path / "CODE_RAN").exists()
    with Store.open(f"sqlite:///{tmp_path}/testbed.db") as store:
        evaluation = store.evaluations.get(outcome["evaluation_id"])
        errors = store.outputs.errors(evaluation.id)
        outputs = store.outputs.read(evaluation.id, "text")
    for place, (index, (*_, message)) in enumerate(cells.items()):
        said = errors.get(place) or (outputs[place]["finish_reason"] if outputs[place] is not None else "")
        assert message in said, index
        assert (said == "stop") == (message == ""), index


@pytest.mark.parametrize(("second", "message"), [("0", "has the index '0' twice, in lines 2 and 3"), ("1\0", "NUL")])
def test_hostile_indexes_are_an_error_of_the_file(program: Any, tmp_path: Path, second: str, message: str) -> None:
    rows = [[index, "q", "cat", "dog", "A"] for index in ("0", second)]
    table = write_table(tmp_path / "lmu" / "Hostile.tsv", ["index", "question", "A", "B", "answer"], rows)
    words = ("--models", "digits-reader", "--eval-settings", f"tsv:{table}", "--executor", "inline")
    assert message in program("eval.py", *words, code=1).stdout


def test_a_picture_that_cannot_be_read_is_not_scored_and_not_said_to_be_wrong(program: Any, tables: Path) -> None:
    pictures = [encoded("coffee"), encoded("coffee"), base64.b64encode(b"no picture").decode()]
    rows = [[str(number), each, "What?", "cat", "dog", "A"] for number, each in enumerate(pictures)]
    write_table(tables / "mine.tsv", ["index", "image", "question", "A", "B", "answer"], rows)
    words = ("--models", "digits-reader", "--eval-settings", "mine", "--lmu-data", str(tables), "--executor", "inline")
    told = "1 sample could not be read and is not scored"
    assert f"Unreadable: digits-reader on mine: {told}" in program("eval.py", *words).stdout
    shown = program("db.py", "--print-eval", "digits-reader", "mine").stdout
    assert told in shown
    assert "counted as wrong" not in shown
