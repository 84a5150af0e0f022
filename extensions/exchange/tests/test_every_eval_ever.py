"""Every Eval Ever's records: valid by its schemas, equal for equal stores, and read back as they were."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from exchange_world import QUESTION, ROWS, SAID, SCORES, answered, made_store, put_texts
from places import ASSETS
from stored_cells import samples_of

from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.extensions.exchange.every_eval_ever.reading import read_samples, records_in
from testbed.extensions.exchange.every_eval_ever.writing import write
from testbed.extensions.exchange.recorded import write_samples
from testbed.extensions.published.adding import add, read_folder

# The fields, types and requirements of its schemas (evaleval/every_eval_ever, 0.3.0), without their prose.
SCHEMAS = ASSETS / "every_eval_ever"
RECORD, SAMPLES = (
    json.loads((SCHEMAS / f"{name}.schema.json").read_text()) for name in ("eval", "instance_level_eval")
)


@pytest.fixture
def store(tmp_path):
    with made_store(tmp_path / "own.db") as opened:
        yield opened


@pytest.fixture
def folder(store, tmp_path):
    write(store, tmp_path / "data")
    return tmp_path / "data"


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lines(folder: Path, setting: str) -> list[dict]:
    (path,) = folder.glob(f"{setting}/*/*/*.jsonl")
    # Their reader splits at all that Python takes for the end of a line.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_records_are_valid_and_where_their_data_store_has_them(store, folder):
    found = sorted(folder.rglob("*.json"))
    assert [path.parent.relative_to(folder).as_posix() for path in found] == [
        f"{QUESTION}/local/talker", "own-captions/local/talker", "photos/lab/net",
    ]  # fmt: skip
    for path in found:
        record = json.loads(path.read_text())
        jsonschema.validate(record, RECORD)
        told = record["detailed_evaluation_results"]
        beside = path.with_name(f"{path.stem}_samples.jsonl")
        assert told["file_path"] == f"data/{beside.relative_to(folder).as_posix()}"
        rows = [json.loads(line) for line in beside.read_text().splitlines()]
        assert told["total_rows"] == len(rows)
        for row in rows:
            jsonschema.validate(row, SAMPLES)
            assert row["evaluation_id"] == record["evaluation_id"]
            assert row["model_id"] == record["model_info"]["id"]
            assert row["evaluation_result_id"] in {
                each["evaluation_result_id"] for each in record["evaluation_results"]
            }


def test_equal_stores_give_equal_bytes(folder, store, tmp_path):
    with closing(sqlite3.connect(tmp_path / "own.db")) as own, closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        own.backup(copy)
    with Store.open(str(tmp_path / "copy.db")) as other:
        write(other, tmp_path / "again")
    assert files(folder) == files(tmp_path / "again")


def test_what_a_sample_says(folder):
    answers = lines(folder, QUESTION)
    assert answers[1]["input"] == {"raw": "Which digit?", "reference": ["B"], "choices": ["zero", "one"]}
    assert answers[1]["output"] == {"raw": [SAID[1]["text"]], "reasoning_trace": ["Hm: one."]}
    assert answers[1]["answer_attribution"][0]["extracted_value"] == "B"
    assert answers[0]["token_usage"] == {"input_tokens": 30, "output_tokens": 1, "total_tokens": 31}
    assert [each.get("error") for each in answers] == [
        *[None] * 3, "missing", "error: the service said 500", "1.png cannot be read",
    ]  # fmt: skip
    photos = lines(folder, "photos")
    assert [each["output"]["raw"] for each in photos] == [["ant"], ["bee"], ["bee"], ["dog"], []]
    assert [each["input"]["reference"] for each in photos] == [["ant"], ["bee"], ["cat"], ["dog"], ["ant"]]
    assert json.loads(photos[2]["metadata"]["top5"])[0] == ["bee", 2.0]


def test_numbers_come_back_as_claims_bit_by_bit(store, folder, tmp_path):
    with Store.create(str(tmp_path / "other.db")) as other:
        add(other, read_folder(folder), "ours", own_names=True, settings=None)
        claims = {
            (each.model, each.eval_setting, each.metric, each.slice): (
                each.value, each.n, each.stderr, each.unit, each.better, each.lowest, each.highest, each.headline,
                each.zero_one,
            )
            for each in other.claims.find()
        }  # fmt: skip
        assert add(other, read_folder(folder), "ours", own_names=True, settings=None).new == 0
    measured = {
        (each.model, each.eval_setting, each.metric, each.slice): (
            each.value, each.n, each.stderr, each.unit, each.better, each.lowest, each.highest, each.headline,
            each.zero_one,
        )
        for each in store.results.find()
        if each.value is not None
    }  # fmt: skip
    assert len(measured) == 6
    assert claims == measured


def test_samples_come_back(store, folder):
    (path,) = (each for each in records_in(folder) if QUESTION in str(each))
    read = read_samples(path)
    samples = read.samples[QUESTION]
    assert list(samples) == [str(number) for number in range(len(ROWS))]
    assert [each.text for each in samples.values()] == ["A", SAID[1]["text"], "B", None, None, None]
    assert [each.score for each in samples.values()] == [1, 1, 0, None, None, None]
    assert [each.correct for each in samples.values()] == [True, True, False, None, None, None]
    assert samples["1"].thinking == "Hm: one."
    done = write_samples([read], folder.parent / "back", lambda _: True)
    assert done.left_out == {"answers were cut off; recorded answers do not mark this": 1}
    captions = read_samples(next(folder.glob("own-captions/*/*/*.json"))).samples["own-captions"].values()
    assert [each.score for each in captions] == [0.1, 0.2, 0.30000000000000004, 2.5]
    assert {each.correct for each in captions} == {None}
    photos = read_samples(next(folder.glob("photos/*/*/*.json"))).samples["val"]
    (net,) = store.evaluations.find(["lab/net"])
    for (_, name), values in store.scores.read(net.id).items():
        found = [each.scores.get(name) for each in photos.values()]
        assert found == [None if value != value else value for value in values.tolist()]


def test_what_is_not_carried_is_counted(store, tmp_path):
    assert write(store, tmp_path / "data").left_out == {
        "metrics have no value": 1,
        "samples have no score; their line has 0": len([each for each in SCORES if each != each]),
        "samples are scored in degrees; is_correct marks the full score": 4,
    }


def test_nothing_tells_of_this_machine(store, tmp_path):
    secret = "https://me:hunter2@host/v1?key=hunter2"
    said = [{"text": "A", "finish_reason": "stop"}, {"text": None, "finish_reason": f"error: {secret} said 500"}]
    name, setting = "replay:/home/me/secret/m_x.json", "tsv:/home/me/secret/x.tsv"
    put_texts(store, name, setting, samples_of(ROWS[:2], ids=["0", "1"]), said, answered([1.0, float("nan")]))
    write(store, tmp_path / "data", [name])
    everything = b"".join([*files(tmp_path / "data").values(), *map(str.encode, files(tmp_path / "data"))])
    assert b"hunter2" not in everything
    assert b"/home/me" not in everything
    assert b"replay:m_x.json" in everything


FOREIGN = {
    "schema_version": "0.3.0",
    "evaluation_id": "MMStar/org/vlm/1",
    "retrieved_timestamp": "1",
    "source_metadata": {"source_type": "evaluation_run", "source_organization_name": "x"},
    "eval_library": {"name": "lmms-eval", "version": "1"},
    "model_info": {"name": "VLM", "id": "org/vlm", "additional_details": {}},
    "evaluation_results": [
        {
            "evaluation_name": QUESTION,
            "source_data": {"dataset_name": "d", "source_type": "other"},
            "metric_config": {"lower_is_better": False, "metric_id": "acc", "min_score": 0, "max_score": 100},
            "score_details": {"score": 62.5, "uncertainty": {"standard_error": {"value": 1.5}, "num_samples": 400}},
        }
    ],
}  # fmt: skip
LINE = {
    "evaluation_name": QUESTION,
    "sample_id": "7",
    "interaction_type": "single_turn",
    "input": {"raw": "<image> Which digit is it? A. zero", "reference": ["A"]},
    "output": {"raw": ["A."]},
    "evaluation": {"score": 1, "is_correct": True},
}


def foreign(folder: Path, *changes: dict, record: dict | None = None) -> Path:
    place = folder / "MMStar" / "org" / "vlm"
    place.mkdir(parents=True)
    path = place / "00000000-0000-4000-8000-000000000000.json"
    path.write_text(json.dumps(record or FOREIGN))
    content = "\n".join(json.dumps({**LINE, **change}) for change in changes)
    path.with_name(f"{path.stem}_samples.jsonl").write_text(content)
    return path


def test_other_harnesses_samples_are_recorded_answers_if_the_setting_is_known(tmp_path):
    foreign(
        tmp_path / "in", {}, {"sample_id": "8", "output": {"raw": ["B", "A"]}},
        {"sample_id": "9", "interaction_type": "agentic"}, {"sample_id": "7", "output": {"raw": ["C"]}},
        {"evaluation_name": "their own"},
    )  # fmt: skip
    done = write_samples(
        map(read_samples, records_in(tmp_path / "in")), tmp_path / "out", lambda name: name == QUESTION
    )
    (answers,) = done.answers
    assert json.loads(Path(answers).read_text()) == [{"index": "7", "prediction": "A."}]
    assert Path(answers).name == f"org_vlm_{QUESTION}.json"
    assert done.left_out == {
        "samples have several answers": 1,
        "samples have several turns, or tools": 1,
        "samples occur twice with different answers": 1,
        "samples are of eval settings that testbed does not have; only their values are written": 1,
    }
    (table,) = (tmp_path / "out").glob("*their*.csv")
    (row,) = csv.DictReader(table.open())
    assert (row["sample"], row["said"], row["score"], row["correct"]) == ("7", "A.", "1.0", "True")


def test_scores_of_several_metrics_are_one_samples(tmp_path):
    path = foreign(
        tmp_path, {"evaluation_result_id": "acc"},
        {"evaluation_result_id": "f1", "evaluation": {"score": 0.5, "is_correct": False}},
    )  # fmt: skip
    (sample,) = read_samples(path).samples[QUESTION].values()
    assert sample.scores == {"acc": 1, "f1": 0.5}


def test_percentages_are_fractions_with_their_errors(tmp_path):
    foreign(tmp_path / "in")
    with Store.create(str(tmp_path / "s.db")) as store:
        (claim,) = add(store, read_folder(tmp_path / "in"), "theirs").claims
    assert (claim.model, claim.value, claim.stderr, claim.n) == ("org/vlm", 0.625, 0.015, 400)


@pytest.mark.parametrize("results", [None, {}, [[]], [None], ["x"]])
def test_records_without_results(results, tmp_path):
    foreign(tmp_path / "in", record={**FOREIGN, "evaluation_results": results})
    said = "evaluation_results should be a list of objects"
    with Store.create(str(tmp_path / "s.db")) as store, pytest.raises(StoreError, match=said):
        add(store, read_folder(tmp_path / "in"), "theirs")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample_id": "\ud800"}, "line 1: sample_id holds half of a surrogate pair"),
        ({"sample_id": None}, "line 1: sample_id should be a text, not 'None'"),
        ({"evaluation_name": " "}, "line 1: evaluation_name should be a text"),
        (
            {"evaluation": {"score": "1", "is_correct": True}},
            "evaluation should have a score, a number, and is_correct",
        ),
        ({"evaluation": {"score": 10**400, "is_correct": True}}, "evaluation should have a score, a number"),
        ({"evaluation": None}, "line 1: evaluation should be a JSON object"),
        ({"output": {"raw": "A"}}, "line 1: raw should be a list of texts"),
        ({"output": ["A"]}, "line 1: output should be a JSON object"),
        ({"metadata": ["x"]}, "line 1: metadata should be a JSON object"),
    ],
)
def test_damaged_samples(change, said, tmp_path):
    path = foreign(tmp_path, change)
    with pytest.raises(StoreError, match=re.escape(said)):
        read_samples(path)


def test_a_line_that_was_cut_off(tmp_path):
    path = foreign(tmp_path, {})
    file = path.with_name(f"{path.stem}_samples.jsonl")
    file.write_text(file.read_text()[:-5])
    with pytest.raises(StoreError, match="line 1 cannot be read as JSON"):
        read_samples(path)


def test_a_folder_without_records(tmp_path):
    with pytest.raises(StoreError, match="has no records of Every Eval Ever"):
        records_in(tmp_path)


def test_two_records_of_a_cell(tmp_path):
    path = foreign(tmp_path, {})
    for each in (path, path.with_name(f"{path.stem}_samples.jsonl")):
        shutil.copy(each, each.with_name(each.name.replace("0000-4000", "0001-4000")))
    with pytest.raises(StoreError, match="both have samples of org/vlm on"):
        write_samples(map(read_samples, records_in(tmp_path)), None, lambda _: True)


@pytest.mark.parametrize(
    "details",
    [
        {"headline": "1" * 30}, {"better": '"up"'}, {"zero_one": "0"}, {"unit": "x" * 61}, {"metric": ""},
        {"headline": "[" * 5000}, {"metric": "m" * 300},
    ],
)  # fmt: skip
def test_damaged_details_of_our_own(details, folder, tmp_path):
    path = next(folder.glob("photos/*/*/*.json"))
    record = json.loads(path.read_text())
    record["evaluation_results"][0]["metric_config"]["additional_details"].update(details)
    path.write_text(json.dumps(record))
    with Store.create(str(tmp_path / "s.db")) as store, pytest.raises(StoreError, match="are not as testbed writes"):
        add(store, read_folder(folder), "ours", own_names=True, settings=None)


def test_every_sample_is_in_one_line(folder, store):
    counted = Counter(row["sample_id"] for row in lines(folder, QUESTION))
    assert counted == Counter(str(number) for number in range(6))
