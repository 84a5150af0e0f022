"""Logs of Inspect AI: its own reader opens them, and what others logged is read without guesses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from exchange_world import QUESTION, SAID, made_store

from testbed.errors import StoreError
from testbed.extensions.exchange.inspect_logs import as_json, inspect_log, read_log
from testbed.extensions.exchange.recorded import write_samples
from testbed.stored_results.measured_cells import measured_cells


@pytest.fixture
def store(tmp_path):
    with made_store(tmp_path / "own.db") as opened:
        yield opened


def log_of(store, model="talker", setting=QUESTION, picture=lambda place, name: f"pictures/{name}.png"):
    ((cell,), _) = measured_cells(store, [model], [setting])
    return inspect_log(store, cell, picture)


def test_inspect_reads_it(store, tmp_path):
    log = pytest.importorskip("inspect_ai.log")
    (tmp_path / "x.json").write_text(as_json(log_of(store)))
    read = log.read_eval_log(str(tmp_path / "x.json"))
    assert (read.status, read.eval.task, read.eval.model) == ("success", QUESTION, "local/talker")
    assert [each.id for each in read.samples] == [str(number) for number in range(6)]
    assert read.samples[1].output.completion == SAID[1]["text"]
    assert read.samples[1].choices == ["zero", "one"]
    assert read.samples[1].target == ["B"]
    assert read.samples[1].scores["score"].value == 1
    assert read.samples[1].scores["score"].answer == "B"
    assert read.samples[0].input[0].content[0].image == "pictures/0.png"
    assert [each.output.stop_reason for each in read.samples[:3]] == ["stop", "stop", "max_tokens"]
    assert read.samples[0].output.usage.input_tokens == 30
    assert read.samples[4].error.message == "error: the service said 500"
    assert (read.results.scores[0].scored_samples, read.results.scores[0].unscored_samples) == (3, 3)
    assert read.results.scores[0].metrics["accuracy"].value == 2 / 3


def test_what_a_log_says(store):
    log = log_of(store, picture=lambda place, name: "")
    assert log["results"]["scores"][0]["metrics"]["stderr"]["value"] == 1 / 3
    assert log["samples"][1]["input"] == [{"role": "user", "content": [{"type": "text", "text": "Which digit?"}]}]
    assert log["samples"][1]["messages"][1]["content"][0] == {"type": "reasoning", "reasoning": "Hm: one."}
    assert [sorted(each["scores"]) for each in log["samples"]] == [["score"]] * 3 + [[]] * 3
    assert as_json(log) == as_json(log_of(store, picture=lambda place, name: ""))


def test_answers_come_back(store, tmp_path):
    (tmp_path / "x.json").write_text(as_json(log_of(store)))
    read = read_log(tmp_path / "x.json")
    assert read.model == "talker"
    samples = read.samples[QUESTION].values()
    assert [each.text for each in samples] == ["A", SAID[1]["text"], "B", None, None, None]
    assert [each.score for each in samples] == [1, 1, 0, None, None, None]
    assert [each.right for each in samples] == [["A"], ["B"]] * 3
    done = write_samples([read], tmp_path / "out", lambda _: True)
    assert done.left_out == {
        "answers were cut off; recorded answers do not mark this": 1,
        "samples have no answer in text": 3,
    }
    answers, _ = done.files
    rows = json.loads(Path(answers).read_text())
    assert [row["index"] for row in rows] == ["0", "1", "2", "4"]
    assert rows[1] == {
        "index": "1", "prediction": SAID[1]["text"], "thinking": "Hm: one.", "question": "Which digit?", "answer": "B",
    }  # fmt: skip
    assert rows[3]["prediction"] == "Failed to obtain answer via API."


def test_only_answers_in_text_are_logged(store):
    with pytest.raises(StoreError, match="lab/net on val has no answers in text"):
        log_of(store, "lab/net", "val")


THEIRS = {
    "version": 2,
    "eval": {"task": "mmstar", "model": "openai/gpt", "dataset": {}},
    "samples": [
        {
            "id": 7, "epoch": 1, "target": "A",
            "input": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Why?"}]}],
            "output": {"choices": [{"message": {"content": [{"type": "text", "text": "A."}]}, "stop_reason": "stop"}]},
            "scores": {"choice": {"value": "C", "answer": "A"}},
        }
    ],
}  # fmt: skip


def written(path, log):
    path.write_text(json.dumps(log))
    return path


def test_a_log_of_others(tmp_path):
    again = {**THEIRS["samples"][0], "epoch": 2}
    read = read_log(written(tmp_path / "x.json", {**THEIRS, "samples": [*THEIRS["samples"], again]}))
    (sample,) = read.samples["mmstar"].values()
    assert (read.model, list(read.samples["mmstar"])) == ("openai/gpt", ["7"])
    assert (sample.text, sample.question, sample.right, sample.correct) == ("A.", "Why?", ["A"], True)
    assert read.left_out == {"samples are of further epochs": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"eval": None}, "is not a log of Inspect AI"),
        ({"eval": {"task": "x"}}, "is not a log of Inspect AI"),
        ({"samples": [5]}, "sample 1: id should be a text or a whole number, not 'None'"),
        ({"samples": [{"id": True}]}, "id should be a text or a whole number, not 'True'"),
        ({"samples": [{"id": " "}]}, "id should be a text or a whole number"),
        ({"samples": [{"id": "1", "output": [1]}]}, "sample 1: output should have choices"),
        ({"samples": [{"id": "1", "output": {"choices": [1]}}]}, "sample 1: output should have choices"),
        ({"samples": [{"id": "1", "input": [{"content": 5}]}]}, "should be a text or a list of parts"),
        ({"samples": [{"id": "1", "scores": {"x": 1}}]}, "scores should have a score, with a value"),
    ],
)
def test_damaged_logs(change, said, tmp_path):
    with pytest.raises(StoreError, match=re.escape(said)):
        read_log(written(tmp_path / "x.json", {**THEIRS, **change}))


def test_other_files(tmp_path):
    (tmp_path / "x.json").write_bytes(b"PK\x03\x04")
    with pytest.raises(StoreError, match="inspect log convert --to json"):
        read_log(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("[" * 100_000)
    with pytest.raises(StoreError, match="cannot be read as JSON"):
        read_log(tmp_path / "x.json")
    assert read_log(written(tmp_path / "x.json", {**THEIRS, "samples": None})).left_out == {
        "records have no samples": 1
    }
