"""Questions from tables: what models are told, what is stored, and what rules and judges make of the answers."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from reasoning_world import Model

from testbed.answers import prompts
from testbed.api.results import results
from testbed.data.rows import Picture, Row, RowSource
from testbed.db.store import Store
from testbed.errors import SampleError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.options import RunOptions
from testbed.identity.describe import digest, digest_bytes
from testbed.models.model_base import Generation, Generator
from testbed.registry import Catalog, registry
from testbed.runner.run import run

OPTIONS = {"A": "cat", "B": "dog", "C": "bird"}


def png(level: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (level, level, level)).save(file, "PNG")
    return file.getvalue()


class Table(RowSource):
    """A few rows, each with as many pictures as it says."""

    def __init__(self, rows: Sequence[dict[str, str]], pictures: int = 1) -> None:
        self.name = "table"
        self.pictures = pictures
        self.ids = [str(number) for number in range(len(rows))]
        self.targets = list(rows)

    def spec(self) -> dict[str, Any]:
        return {"table": digest([self.targets, self.pictures])}

    def open(self) -> Table:
        return self

    def row(self, position: int) -> Row:
        pictures = [Picture(png(10 * position + number), f"{position}/{number}") for number in range(self.pictures)]
        return Row(self.ids[position], self.targets[position], pictures)

    def digests(self, positions: Sequence[int]) -> list[str]:
        return [digest_bytes(repr(self.targets[place]).encode()) for place in positions]


class Lab:
    """A store, and definitions of its own."""

    def __init__(self, folder: Path) -> None:
        self.url = str(folder / "store.db")
        self.catalog = Catalog(packages=(), entry_points=False)
        self.models: dict[str, Model] = {}

    def model(self, name: str, says: Any, **options: Any) -> Model:
        made = self.models[name] = Model(says)
        self.catalog.add_model(Generator(name, lambda: made, 2, weights="1", architecture={"toy": name}, **options))
        return made

    def setting(self, name: str, table: RowSource, **options: Any) -> None:
        given = {"prompt": prompts.multiple_choice, **options}
        self.catalog.add_eval_setting(
            EvalSetting(name, table, None, task="question_answering", task_options=given)  # type: ignore[arg-type]
        )

    def run(self, models: Sequence[str], settings: Sequence[str], **options: Any) -> Any:
        given = RunOptions(db_url=self.url, executor="inline", data_workers=0, **options)
        return run(self.catalog, given, models, settings)

    def metrics(self, model: str, setting: str) -> dict[str, Any]:
        with Store.open(self.url) as store:
            return {each.metric: each.value for each in store.results.find([model], [setting], slices=["overall"])}

    def outputs(self, model: str, setting: str) -> list[Any]:
        with Store.open(self.url) as store:
            (evaluation,) = store.evaluations.find([model], [setting])
            return list(store.outputs.read(evaluation.id, "text"))

    def scores(self, model: str, setting: str) -> dict[str, list[float]]:
        with Store.open(self.url) as store:
            (evaluation,) = store.evaluations.find([model], [setting])
            return {name: values.tolist() for (_, name), values in store.scores.read(evaluation.id).items()}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def choices(*answers: str) -> list[dict[str, str]]:
    return [{"question": f"What is it, {number}?", **OPTIONS, "answer": each} for number, each in enumerate(answers)]


# What models are told ------------------------------------------------------------------------------------------------


def test_a_model_gets_the_bytes_of_the_table_and_the_prompt(lab: Lab) -> None:
    model = lab.model("model", lambda message: "A")
    lab.setting("set", Table(choices("A", "B"), pictures=2), data_set="Set")
    assert lab.run(["model"], ["set"]).ok
    first = model.seen[0]
    text = "Question: What is it, 0?\nOptions:\nA. cat\nB. dog\nC. bird\nPlease select the correct answer from the"
    assert [each.data for each in first.parts[:2]] == [png(0), png(1)]
    assert first.parts[2] == f"{text} options above. \n"
    assert (first.sample, first.data_set) == ("0", "Set")
    assert model.config.max_new_tokens == 2048


def test_a_prompt_of_the_models_own_comes_first_unless_the_set_forbids_it(lab: Lab) -> None:
    def own(row: Row, data_set: str) -> Any:
        return [[f"{data_set}: {row.columns['question']}"]] if row.index == "1" else None

    model = lab.model("model", lambda message: "A", prompt=own, generation={"max_new_tokens": 7})
    lab.setting("set", Table(choices("A", "B")), data_set="Set")
    lab.setting("forced", Table(choices("A", "B")), forced=True, generation={"max_new_tokens": 9})
    assert lab.run(["model"], ["set"]).ok
    assert [len(message.parts) for message in model.seen] == [2, 1]
    assert model.seen[1].parts == ["Set: What is it, 1?"]
    assert model.config.max_new_tokens == 7
    assert lab.run(["model"], ["forced"]).ok
    assert [len(message.parts) for message in model.seen[2:]] == [2, 2]
    assert model.config.max_new_tokens == 9


def test_a_model_without_eyes_is_asked_without_pictures(lab: Lab) -> None:
    class Blind(Generator):
        sees_images = False

    model = lab.models["blind"] = Model(lambda message: "A")
    lab.catalog.add_model(Blind("blind", lambda: model, weights="1", architecture={"toy": "blind"}))
    rows = [{"question": "See <image 1>. What is it?", **OPTIONS, "answer": "A"}]
    lab.setting("set", Table(rows), prompt=prompts.multiple_choice_placed)
    assert lab.run(["blind"], ["set"]).ok
    assert all(isinstance(part, str) for part in model.seen[0].parts)


def test_each_turn_is_answered_with_what_was_said_before(lab: Lab) -> None:
    model = lab.model("model", lambda message: f"turn {len(message.turns)}: A")
    rows = [{"question": '["Look at <ImageHere>.", "And which is it?"]', **OPTIONS, "answer": "A"}] * 3
    lab.setting("set", Table(rows), prompt=prompts.conversation)
    assert lab.run(["model"], ["set"]).ok
    output = lab.outputs("model", "set")[0]
    assert (output["text"], output["turns"]) == ("turn 3: A", ["turn 1: A"])
    last = model.seen[-1]
    assert [each.role for each in last.turns] == ["user", "assistant", "user"]
    assert [type(part) for part in last.turns[0].parts] == [str, Picture, str]
    assert list(last.turns[1].parts) == ["turn 1: A"]


def test_a_row_whose_text_names_a_picture_that_it_lacks_fails_alone(lab: Lab) -> None:
    lab.model("model", lambda message: "A")
    rows = [*choices("A"), {"question": "See <image 3>", **OPTIONS, "answer": "A"}]
    lab.setting("set", Table(rows), prompt=prompts.multiple_choice_placed)
    lab.run(["model"], ["set"])
    assert [each and each["text"] for each in lab.outputs("model", "set")] == ["A", None]
    assert lab.metrics("model", "set")["coverage"] == 0.5


# What is stored ------------------------------------------------------------------------------------------------------


def test_other_rules_read_the_stored_answers(lab: Lab) -> None:
    said = iter(["A", "b", "The answer is a dog", '"C"', "no idea"])
    model = lab.model("model", lambda message: next(said))
    table = Table(choices("A", "B", "B", "C", "A"))
    lab.setting("set", table)
    lab.setting("set.vlmevalkit", table, rules="vlmevalkit", data_set="set")
    lab.setting("own", table, data_set="set")
    assert lab.run(["model"], ["set"]).ok
    assert lab.run(["model"], ["set.vlmevalkit"]).ok
    assert len(model.seen) == 5
    ours, theirs = lab.metrics("model", "set"), lab.metrics("model", "set.vlmevalkit")
    assert (ours["accuracy"], ours["unparsed"], ours["rules_differ"]) == (0.8, 0.2, pytest.approx(0.6))
    assert (theirs["accuracy"], theirs["rules_differ"]) == (0.2, pytest.approx(0.6))
    assert theirs["expected_of_draw"] == pytest.approx((1 + 3 / 4 + 0) / 5)


def test_what_was_cut_off_or_not_answered_is_told(lab: Lab) -> None:
    said = iter([Generation("A", "length"), Generation("", "stop"), Generation("", "error: refused"), "A"])
    lab.model("model", lambda message: next(said))
    lab.setting("set", Table(choices("A", "A", "A", "A")))
    lab.run(["model"], ["set"])
    found = lab.metrics("model", "set")
    assert (found["coverage"], found["cut_off"]) == (1, 0.25)
    assert (found["accuracy"], found["empty"], found["refused"]) == (0.5, 0.5, 0.25)
    assert list(lab.scores("model", "set")["score"]) == [1, 0, 0, 1]


def test_a_growing_limit_asks_each_question_once(lab: Lab) -> None:
    model = lab.model("model", lambda message: "A")
    lab.setting("set", Table(choices(*"ABCABC")))
    lab.run(["model"], ["set"], limit=2)
    lab.run(["model"], ["set"])
    assert sorted(message.sample for message in model.seen) == list("012345")
    assert lab.metrics("model", "set")["accuracy"] == pytest.approx(1 / 3)


# What is checked before models are asked ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            choices("A", "D"),
            "1 of 2 right answers are unclear; row 1: its answer 'D' is not one of its options A, B, C",
        ),
        ([{**row, "question": "['What?', 'And now?']"} for row in choices("A", "B")], "its questions are lists"),
    ],
)
def test_what_cannot_be_scored_is_told_before_a_model_is_asked(lab: Lab, rows: Any, why: str) -> None:
    model = lab.model("model", lambda message: "A")
    lab.setting("set", Table(rows))
    (outcome,) = lab.run(["model"], ["set"]).of("failed")
    assert why in outcome.reason
    assert not model.seen


def test_right_answers_in_other_words_are_taken_and_counted_in_a_line(lab: Lab) -> None:
    lab.model("model", lambda message: "A")
    lab.setting("set", Table(choices("(A)", "cat", "A", "dog")))
    report = lab.run(["model"], ["set"])
    assert lab.scores("model", "set")["score"] == [1, 1, 1, 0]
    (told,) = next(iter(report.left_out.values()))
    assert (told.count, told.expected) == (3, True)
    assert "'(A)' is A in row 0" in str(told)


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ["default", "vlmevalkit"])
def test_a_refusal_counts_as_wrong_by_any_rules_and_its_reasons_are_counted(lab: Lab, rules: str) -> None:
    reasons = ["HTTP 400: too large", "HTTP 400: too large", *(f"no {number}" for number in range(6))]
    said = iter([*(Generation("", f"error: {reason}") for reason in reasons), "A", "A"])
    lab.model("model", lambda message: next(said))
    lab.setting("set", Table(choices(*"A" * 10)), rules=rules, scoring="mme_realworld")
    lab.run(["model"], ["set"])
    assert lab.metrics("model", "set")["accuracy"] == 0.2
    with Store.open(lab.url) as store:
        found = {each.slice: each.value for each in store.results.find(["model"], ["set"], ["refused"])}
    assert found.pop("overall") == 0.8
    assert found.pop("reason/HTTP 400: too large") == 0.2
    assert found.pop("reason/other reasons") == pytest.approx(0.2)
    assert len(found) == 4


def test_a_refused_answer_is_not_left_to_a_judge(lab: Lab) -> None:
    said = iter(["the second", Generation("", "error: no")])
    lab.model("model", lambda message: next(said))
    judge = lab.model("judge", lambda message: "B")
    lab.setting("set", Table(choices("B", "B")))
    lab.run(["model"], ["set", "set@judge"])
    assert lab.metrics("model", "set@judge")["accuracy"] == 0.5
    assert len(judge.seen) == 1


def test_what_cannot_be_sent_is_an_unreadable_sample_and_no_refusal(lab: Lab) -> None:
    def say(message: Any) -> str:
        if message.sample == "0":
            raise SampleError("the picture of 0 has no known format")
        return "A"

    lab.model("model", say)
    lab.setting("set", Table(choices("A", "A", "A")))
    lab.run(["model"], ["set"])
    found = lab.metrics("model", "set")
    assert (found["accuracy"], found["coverage"]) == (1, pytest.approx(2 / 3))
    assert "refused" not in found
    frame = results(lab.url).samples("model", "set")
    assert frame["error"].tolist()[0] == "the picture of 0 has no known format"


def test_the_frame_of_samples_has_reasons_and_whole_characters(lab: Lab) -> None:
    said = iter(["A \ud83d", Generation("", "error: RefusedError: HTTP 400: too \ud83d large"), "A"])
    lab.model("model", lambda message: next(said))
    lab.setting("set", Table(choices("A", "A", "A")))
    lab.run(["model"], ["set"])
    frame = results(lab.url).samples("model", "set")
    assert frame["text"].tolist()[0] == "A \ufffd"
    assert frame["error"].tolist()[1] == "HTTP 400: too \ufffd large"
    assert frame["text"].isna().tolist() == [False, True, False]
    assert frame["score"].tolist() == [1, 0, 1]


# Judges --------------------------------------------------------------------------------------------------------------


def reply(message: Any, known: dict[str, str]) -> str:
    return next(reply for text, reply in known.items() if f"Answer: {text}\n" in message.parts[0])


def judged_lab(lab: Lab) -> Model:
    said = iter(["A", "the second", "the last", "no idea"])
    model = lab.model("model", lambda message: next(said))
    lab.setting("set", Table(choices("A", "B", "B", "A")))
    replies = {"the second": "B", "the last": "C", "no idea": "I cannot say"}
    for name, changed in (("judge", {}), ("strict", {"the second": "Z"}), ("third", {"no idea": "A"})):
        lab.model(name, partial(reply, known={**replies, **changed}))
    return model


def test_a_judge_reads_what_rules_cannot(lab: Lab) -> None:
    model = judged_lab(lab)
    assert lab.run(["model"], ["set", "set@judge"]).ok
    assert len(lab.models["judge"].seen) == 3  # not the answer that rules can read
    found = lab.metrics("model", "set@judge")
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert (found["judged"], found["unread"]) == (0.75, pytest.approx(1 / 3))
    assert (found["rules_alone"], found["bound_wrong"], found["bound_right"]) == (0.25, 0.5, 0.75)
    assert lab.scores("model", "set@judge")["score"][:3] == [1, 1, 0]
    assert np.isnan(lab.scores("model", "set@judge")["score"][3])  # unread: neither wrong nor drawn
    assert lab.run(["model"], ["set@judge"]).ok
    assert (len(model.seen), len(lab.models["judge"].seen)) == (4, 3)


def test_a_judge_that_thinks_is_read_after_its_thoughts(lab: Lab) -> None:
    said = iter(["maybe", "perhaps"])
    lab.model("model", lambda message: next(said))
    lab.setting("set", Table(choices("Yes", "No")), prompt=prompts.question, scoring="yes_no")
    lab.model(
        "judge", lambda message: "<think>Yes? No? Yes!</think>No" if "perhaps" in message.parts[0] else "<think>Yes"
    )
    assert lab.run(["model"], ["set@judge"]).ok
    score = lab.scores("model", "set@judge")["score"]
    assert np.isnan(score[0])  # it did not come to a verdict
    assert score[1] == 1


def test_a_panel_decides_by_most_readable_verdicts(lab: Lab) -> None:
    judged_lab(lab)
    assert lab.run(["model"], ["set@judge&strict&third"]).ok
    found = lab.metrics("model", "set@judge&strict&third")
    assert lab.scores("model", "set@judge&strict&third")["score"][:3] == [1, 1, 0]
    assert found["unread"] == pytest.approx(1 / 3)  # only one of three can be read
    assert found["alpha"] is not None
    for judge in ("judge", "strict", "third"):  # each was asked once, whichever setting asks
        assert len(lab.models[judge].seen) == 3
    lab.run(["model"], ["set@strict"])
    assert len(lab.models["strict"].seen) == 3


# Digits --------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_cache")
def test_the_digits_are_asked_about_without_a_download(tmp_path: Path) -> None:
    options = RunOptions(db_url=str(tmp_path / "store.db"), executor="inline", data_workers=0, limit=160)
    settings = ["digits-vqa.choice", "digits-vqa.choice.vlmevalkit", "digits-vqa.yes-no"]
    settings.append("digits-vqa.choice+digits-c.contrast.5")
    assert run(registry, options, ["digits-reader", "digits-talker"], settings).ok
    with Store.open(options.db_url) as store:
        found = {
            (each.model.removeprefix("digits-"), each.eval_setting.removeprefix("digits-vqa."), each.metric): each.value
            for each in store.results.find(slices=["overall"])
        }
    assert found["reader", "choice", "accuracy"] > 0.97
    assert found["reader", "choice", "unparsed"] == 0
    assert found["talker", "choice", "accuracy"] == found["reader", "choice", "accuracy"]
    assert found["talker", "choice.vlmevalkit", "accuracy"] < 0.9
    assert found["talker", "choice", "rules_differ"] > 0.1
    assert found["talker", "yes-no", "accuracy"] == found["reader", "yes-no", "accuracy"] > 0.95
    assert found["reader", "choice+digits-c.contrast.5", "accuracy"] < found["reader", "choice", "accuracy"]
