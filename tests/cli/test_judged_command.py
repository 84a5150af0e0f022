"""Judges from the command line: stored answers are judged, and judged scores are corrected with labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.db.store import Store
from testbed.entities import CellRecord, DatasetInfo, SampleInfo, Score
from testbed.extensions.analyses.calibrated import prediction_powered

pytestmark = pytest.mark.usefixtures("shared_cache")
JUDGE = """
from testbed.models.model_base import Generation, Generator
from testbed.registry import registry


class Judge:
    '''Finds the name of an option in the answer.'''

    def generate(self, messages, config):
        return [Generation(self.reply(message.parts[0])) for message in messages]

    def reply(self, text):
        options, _, answer = text.partition("Answer: ")
        found = [line[0] for line in options.splitlines() if line[1:3] == ". " and line[3:] in answer]
        return found[0] if len(found) == 1 else "I cannot tell"


registry.add_model(Generator("finder", Judge, weights="1", architecture={"finder": 1}))
"""
SETTING = "digits-vqa.choice.vlmevalkit"


def test_stored_answers_are_judged_and_calibrated(program: Any, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    words = ("--models", "digits-talker", "--eval-settings", SETTING, "--limit", "120", "--executor", "inline")
    program("eval.py", *words)
    done = program("testbed", "rescore", "--judge", "finder", "--on", SETTING, "--plugin", "judge.py", "--json")
    answer = json.loads(done.stdout)
    values = {each["metric"]: each["value"] for each in answer["results"] if each["slice"] == "overall"}
    assert [each["status"] for each in answer["outcomes"]] == ["scored"]  # nobody answered again
    assert values["accuracy"] > values["rules_alone"] + 0.1
    with Store.open(str(tmp_path / "testbed.db")) as store:
        (evaluation,) = store.evaluations.find(["digits-talker"], [f"{SETTING}@finder"])
        (scores,) = (found for (_, name), found in store.scores.read(evaluation.id).items() if name == "score")
        ids = [sample.id for sample in store.datasets.get(evaluation.dataset_id).samples]
    labels = np.full(len(ids), np.nan)
    labels[::4] = np.where(np.arange(len(ids))[::4] % 12, 1, 0)
    with (tmp_path / "labels.csv").open("w", newline="") as file:
        rows = [[each, int(label)] for each, label in zip(ids, labels, strict=True) if not np.isnan(label)]
        csv.writer(file).writerows([["id", "label"], *rows])
    words = ("calibrate", f"{SETTING}@finder", "--labels", "labels.csv", "--json")
    (found,) = json.loads(program("testbed", *words).stdout)
    expected = prediction_powered(labels, scores.astype(np.float64))
    assert found["corrected"]["value"] == pytest.approx(expected.value)
    assert (found["corrected"]["low"], found["corrected"]["labels"]) == (pytest.approx(expected.low), expected.labels)


def test_mistakes_are_told(program: Any, tmp_path: Path) -> None:
    words = ("--models", "digits-reader", "--eval-settings", SETTING, "--limit", "5", "--executor", "inline")
    program("eval.py", *words)
    done = program("testbed", "rescore", "--judge", "finder", code=1)
    assert "--judge needs --on" in done.stderr
    (tmp_path / "labels.csv").write_text("id,label\n0,maybe\n")
    done = program("testbed", "calibrate", SETTING, "--labels", "labels.csv", code=1)
    assert "labels.csv, line 2: the label 'maybe' is neither a number from 0 to 1" in done.stderr
    (tmp_path / "labels.csv").write_text("id,label\nnone,1\n")
    done = program("testbed", "calibrate", SETTING, "--labels", "labels.csv", code=1)
    assert "'none', which is not a sample" in done.stderr


def test_labels_say_whose_answers_they_are_of(program: Any, tmp_path: Path) -> None:
    """An answer that is right for one model says nothing of another one's."""
    models = ("digits-reader", "digits-talker")
    program("eval.py", "--models", *models, "--eval-settings", SETTING, "--limit", "5", "--executor", "inline")
    (tmp_path / "labels.csv").write_text("id,label\n0,1\n108,0\n")
    words = ("calibrate", SETTING, "--labels", "labels.csv", "--json")
    assert "the labels have no column 'model'" in program("testbed", *words, code=1).stderr
    (found,) = json.loads(program("testbed", *words, "--models", "*-reader").stdout)
    assert (found["model"], found["labels"]["value"]) == ("digits-reader", 0.5)


COUNTING = JUDGE.replace(
    "return [Generation(self.reply(message.parts[0])) for message in messages]",
    """
        with open("asked", "a") as file:
            file.write("x" * len(messages))
        return [Generation(self.reply(message.parts[0])) for message in messages]""",
)


def values_of(stdout: str) -> dict[str, float]:
    results = json.loads(stdout)["results"]
    return {each["metric"]: each["value"] for each in results if each["slice"] == "overall"}


def test_what_files_of_labels_tell_is_not_asked_and_verdicts_are_such_a_file(program: Any, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(COUNTING)
    run = ("--models", "digits-talker", "--limit", "60", "--executor", "inline", "--plugin", "judge.py", "--json")
    judged = values_of(program("eval.py", *run, "--eval-settings", f"{SETTING}@finder").stdout)
    asked = len((tmp_path / "asked").read_text())
    program(
        *("testbed", "export", "verdicts", "verdicts.csv", "--on", f"{SETTING}@finder"),
        *("--plugin", "judge.py"),
    )
    with (tmp_path / "verdicts.csv").open(newline="") as file:
        verdicts = list(csv.DictReader(file))
    assert {(each["model"], each["annotator"]) for each in verdicts} == {("digits-talker", "finder")}
    assert all(each["reply"] and len(each["question_sha256"]) == 64 for each in verdicts)
    again = values_of(program("eval.py", *run, "--eval-settings", f"{SETTING}@labels:verdicts.csv").stdout)
    assert {name: again[name] for name in judged} == judged
    assert again["labelled"] == pytest.approx(1 - judged["unread"])

    # People have looked at some, and say that all of these are wrong; the judge is asked about the others alone.
    half = [each["id"] for each in verdicts][::2]
    rows = [["id", "model", "label", "annotator"]]
    rows += [[each, "digits-talker", label, who] for each in half for who, label in (("a", 0), ("b", 0), ("c", 1))]
    with (tmp_path / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([*rows, [verdicts[1]["id"], "digits-talker", "", "a"]])
    words = ("--eval-settings", f"{SETTING}@labels:people.csv&finder", "--override")
    mixed = values_of(program("eval.py", *run, *words).stdout)
    assert mixed["labelled"] == pytest.approx(len(half) / len(verdicts))
    others = [each for number, each in enumerate(verdicts) if number % 2]
    assert len((tmp_path / "asked").read_text()) - asked == len({each["question"] for each in others})
    right = sum(float(each["label"] or 0) for each in verdicts) - sum(float(each["label"] or 0) for each in others)
    assert mixed["bound_wrong"] == pytest.approx(judged["bound_wrong"] - right / 60)

    # Labels of what a model said before count for nothing.
    (tmp_path / "verdicts.csv").write_text(
        "\n".join(["id,model,label,answer", *(f"{each['id']},digits-talker,1,Something else" for each in verdicts)])
    )
    done = program("eval.py", *run, "--eval-settings", f"{SETTING}@labels:verdicts.csv")
    assert values_of(done.stdout)["labelled"] == 0
    assert f"labels of other answers left out: {len(verdicts)}" in done.stderr
    done = program("testbed", "calibrate", f"{SETTING}@finder", "--labels", "verdicts.csv", code=1)
    assert "all labels of digits-talker are for answers other than the stored ones" in done.stderr

    # A file that has changed is another evaluation; one that does not say whose answers it labels is refused.
    (tmp_path / "people.csv").write_text((tmp_path / "people.csv").read_text().replace(",0,", ",1,"))
    changed = values_of(program("eval.py", *run, *words[:2]).stdout)
    assert changed["bound_wrong"] > mixed["bound_wrong"]
    (tmp_path / "nobody.csv").write_text("id,label\n0,1\n")
    done = program("eval.py", *run, "--eval-settings", f"{SETTING}@labels:nobody.csv", code=1)
    assert "expected the column model" in done.stdout + done.stderr
    done = program("eval.py", *run, "--eval-settings", f"{SETTING}@labels:none.csv", code=1)
    assert "none.csv cannot be read" in done.stdout + done.stderr


def test_answers_to_label_are_drawn(program: Any, tmp_path: Path) -> None:
    program("eval.py", "--models", "digits-talker", "--eval-settings", SETTING, "--limit", "60", "--executor", "inline")
    program("testbed", "export", "answers", "20", "human.csv", "--on", f"{SETTING[:-1]}?", "--models", "digits-*")
    with (tmp_path / "human.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["id"] for row in rows}) == 20
    assert all(row["answer"] and row["question"] and row["right_answer"] and not row["label"] for row in rows)
    done = program("testbed", "export", "answers", "20", "human.csv", "--on", SETTING, code=1)
    assert "human.csv already exists" in done.stderr
    more = ("digits-vqa.yes-no", "--limit", "5", "--executor", "inline")
    program("eval.py", "--models", "digits-talker", "--eval-settings", *more)
    done = program("testbed", "export", "answers", "20", "all.csv", code=1)
    assert "a file has one setting" in done.stderr
    with (tmp_path / "human.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": number % 2} for number, row in enumerate(rows))
    (found,) = json.loads(program("testbed", "calibrate", SETTING, "--labels", "human.csv", "--json").stdout)
    assert (found["labels"]["labels"], found["outdated"]) == (20, 0)


COMPARING = """
from testbed.models.model_base import Generation, Generator
from testbed.registry import registry


class Judge:
    '''Prefers the longer answer; of two as long, the first one.'''

    def generate(self, messages, config):
        return [Generation(self.reply(message.parts[0])) for message in messages]

    def reply(self, text):
        first, second = text.partition("Answer 1: ")[2].partition("Reply with")[0].split("Answer 2: ")
        if "cannot tell" in text:
            return "Both are fine."
        return "Better: 1" if len(first.strip()) >= len(second.strip()) else "I think so.\\n**Better: 2**"


class Talker:
    def generate(self, messages, config):
        return [Generation(message.parts[-1].partition("Say ")[2].split("\\n")[0]) for message in messages]


registry.add_model(Generator("lengthy", Judge, weights="1", architecture={"lengthy": 1}))
registry.add_model(Generator("echo", Talker, weights="1", architecture={"echo": 1}))
"""


def test_pairs_are_asked_about_in_both_orders(program: Any, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(COMPARING)
    rows = ["index\tquestion\tanswer", "0\tSay four\tone", "1\tSay one\tthree", "2\tSay one\ttwo"]
    (tmp_path / "pairs.tsv").write_text("\n".join([*rows, "3\tSay cannot tell\tso"]) + "\n")
    setting = f"tsv:{tmp_path / 'pairs.tsv'}.pairs@lengthy"
    run = ("--models", "echo", "--executor", "inline", "--plugin", "judge.py", "--eval-settings")
    values = values_of(program("eval.py", *run, setting, "--json").stdout)
    found = {name: values[name] for name in ("win_rate", "wins", "ties", "losses", "unread", "swap_consistency")}
    # Won, lost, and twice the first one preferred, which is a tie; the last cannot be read.
    assert found == pytest.approx(
        {"win_rate": 0.5, "wins": 1 / 3, "ties": 1 / 3, "losses": 1 / 3, "unread": 0.25, "swap_consistency": 2 / 3}
    )
    program("testbed", "export", "verdicts", "v.csv", "--on", setting, "--plugin", "judge.py")
    with (tmp_path / "v.csv").open(newline="") as file:
        said = {each["id"]: each for each in csv.DictReader(file)}
    assert (said["0"]["label"], said["0"]["reply"], said["3"]["label"]) == ("1", "Better: 1", "")
    assert said["0"]["second_reply"].endswith("**Better: 2**")
    done = program("eval.py", *run, "mscoco_captions.captioning.pairs@lengthy", code=1)
    assert "'pairs' is for answers" in done.stdout + done.stderr


def test_intervals_are_those_of_the_groups_of_the_data_set(program: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    right = np.repeat(rng.random(40) < 0.7, 5).astype(np.float32)  # five questions of an image, all right or all wrong
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for setting, group in (("asked", "picture {}"), ("alone", None)):
            samples = [SampleInfo(str(n), "", None, group and group.format(n // 5)) for n in range(200)]
            dataset = store.datasets.ensure(DatasetInfo(setting, setting, samples))
            record = CellRecord("finder", setting, setting, size=200)
            evaluation = store.evaluations.begin(record, dataset, {}, {})
            store.evaluations.complete(evaluation.id, [Score("score", right)], [])
    rows = "".join(f"{n},{int(right[n])}\n" for n in range(0, 200) if n // 5 % 2)
    (tmp_path / "labels.csv").write_text(f"id,label\n{rows}")
    asked, alone = (
        json.loads(program("testbed", "calibrate", setting, "--labels", "labels.csv", "--json").stdout)[0]
        for setting in ("asked", "alone")
    )
    assert (asked["n"], asked["clusters"], alone["clusters"]) == (200, 40, None)
    for name in ("labels", "corrected"):
        assert asked[name]["value"] == alone[name]["value"]
        assert asked[name]["stderr"] == pytest.approx(np.sqrt(5) * alone[name]["stderr"], rel=0.05)
    assert asked["stderr"] == pytest.approx(np.sqrt(5) * alone["stderr"], rel=0.05)
    done = program("testbed", "calibrate", "asked", "--labels", "labels.csv")
    assert "200 in 40" in done.stdout
    assert "intervals account for the groups of samples of the data set" in done.stderr
