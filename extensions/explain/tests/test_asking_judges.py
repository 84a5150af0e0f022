"""Judged answers: questions that are asked, and answers that are judged, in other ways."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from asked_world import COUNT, Model, asked_setting
from lab import lab, new_lab, work  # noqa: F401
from toy import WORK, toy_catalog

from testbed.db.store import Store
from testbed.extensions.explain.asking.race import ask
from testbed.extensions.explain.axis import asked_axes
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.named import changed_setting, command_for
from testbed.extensions.explain.search import explain
from testbed.models.model_base import Generation, Generator
from testbed.models.replay import Replay
from testbed.registry import registry

UNREADABLE = 11  # every so many-th answer is one that the judge cannot read


class Talker(Model):
    """Gives answers that rules cannot read."""

    def generate(self, messages, config):
        WORK["asked"] += len(messages)
        return [Generation(self.says(message, config)) for message in messages]

    def says(self, message, config):
        number = int(message.sample)
        return (
            f"{'Whatever' if number % UNREADABLE == 3 else 'It barks' if self.right(message, config) else 'It meows'}!"
        )


class Sleeper(Talker):
    """Another model, whose answers a judge has not read yet."""

    def says(self, message, config):
        return "It sleeps!"


class Judge:
    """Reads what rules cannot; a strict one takes every other answer for wrong."""

    def __init__(self, name, strict=False):
        self.name = name
        self.strict = strict

    def generate(self, messages, config):
        WORK[self.name] += len(messages)
        return [Generation(self.says(message.parts[0])) for message in messages]

    def says(self, text):
        number = int(re.search(r"What is in (\d+)", text)[1])
        right = "It barks" in text and not (self.strict and number % 2)
        if "Reply with CORRECT or INCORRECT" in text:
            return "CORRECT" if right or number % 4 == 0 else "INCORRECT"
        return "no idea" if "Whatever" in text else "B" if right else "A"


def accuracy(step):
    read = np.array([number for number in range(COUNT) if number % UNREADABLE != 3])
    return float(np.mean(read % step != 0))


STRICT = float(np.mean([n % 3 != 0 and n % 2 == 0 for n in range(COUNT) if n % UNREADABLE != 3]))


def model(name, load):
    return Generator(name, load, 16, weights="1", architecture={"toy": name})


def definitions(*settings):
    judges = [model(name, lambda name=name: Judge(name, name == "strict")) for name in ("judge", "strict")]
    return toy_catalog(model("talker", Talker), model("other", Sleeper), *judges, asked_setting(), *settings)


@pytest.fixture
def catalog(lab):  # noqa: F811
    made = definitions()
    assert lab.run(made, ["talker"], ["questions@judge"]).ok
    WORK.clear()
    return made


def told(lab, catalog, value, setting="questions@judge", axes=None, model="talker", **options):  # noqa: F811
    said = []
    given = None if axes is None else [each for each in asked_axes() if each.name in axes]
    with Store.open(lab.url, "write") as store:
        found = explain(store, catalog, model, setting, {"accuracy": (round(value, 4), 5e-5)})
        cell = EvaluatedCell.open(store, catalog, model, setting)
        ask(cell, found, say=lambda line: said.append((line, WORK.total())), given=given, **options)
    return found, said


def row_of(found, name):
    (row,) = [each for each in found.rows if each.name == name]
    return row


def stored(lab, catalog, setting):  # noqa: F811
    """The value that a run of a setting stores."""
    assert lab.run(catalog, ["talker"], [setting]).ok
    return lab.metrics("talker", setting)["accuracy"].value


def test_without_leave_the_requests_to_the_model_and_to_the_judge_are_told(lab, catalog):  # noqa: F811
    found, said = told(lab, catalog, 0.5, axes=["hint"])
    assert (said, WORK.total()) == ([], 0)
    most = f"at most {2 * COUNT} requests ({COUNT} to talker, {COUNT} to judge)"
    assert found.not_tried["hint"] == f"the model is asked again only with --ask: {most}"


def test_the_judge_reads_what_is_answered_to_questions_asked_otherwise(lab, catalog):  # noqa: F811
    variant = changed_setting(asked_setting(), "questions~hint=left-out", ["hint=left-out"])
    with_variant = definitions(variant)
    found, said = told(lab, catalog, accuracy(7), allow=True, requests=100_000)
    ((line, before),) = said
    assert before == 0
    plan = "asking talker in 11 other ways and having its answers judged in 3 other ways: at most"
    assert line == f"{plan} {25 * COUNT:,} requests ({11 * COUNT:,} to talker, {14 * COUNT:,} to judge)"
    assert found.asked == {"talker": WORK["asked"], "judge": WORK["judge"]}
    assert 0 < WORK["judge"] < WORK["asked"]  # other variants get the same answers, of which it is asked once
    row = row_of(found, "hint: left out")
    assert (row.verdict, row.estimates[0].value) == ("gives it", pytest.approx(accuracy(7)))
    asked = WORK["asked"]
    assert row.estimates[0].value == pytest.approx(stored(lab, with_variant, "questions~hint=left-out@judge"))
    assert command_for("talker", "questions@judge", row.variants) == (
        "testbed run talker --on 'questions~hint=left-out@judge'"
    )
    assert WORK["asked"] == asked + COUNT


def test_the_same_search_again_asks_nothing(lab, catalog):  # noqa: F811
    first, _ = told(lab, catalog, accuracy(7), allow=True, requests=700)
    assert first.requests == WORK.total() <= 700
    WORK.clear()
    again, _ = told(lab, catalog, accuracy(7), allow=True, requests=700)
    assert (again.requests, WORK.total()) == (0, 0)
    assert [(each.name, each.estimates, each.verdict) for each in again.rows] == [
        (each.name, each.estimates, each.verdict) for each in first.rows
    ]


def test_answers_that_a_run_has_stored_are_not_asked_for(lab):  # noqa: F811
    catalog = definitions(changed_setting(asked_setting(), "questions~hint=left-out", ["hint=left-out"]))
    assert lab.run(catalog, ["talker"], ["questions@judge"]).ok
    value = stored(lab, catalog, "questions~hint=left-out@judge")
    WORK.clear()
    found, _ = told(lab, catalog, value, allow=True, axes=["hint"], requests=100_000)
    assert row_of(found, "hint: left out").estimates[0].value == pytest.approx(value)
    assert (found.asked, WORK.total()) == ({}, 0)


def test_another_prompt_of_the_judge_is_said_to_the_judge_alone(lab, catalog):  # noqa: F811
    part, axis = "prompt-of-the-judge=whether-the-answer-is-correct", "prompt of the judge"
    setting = changed_setting(asked_setting(), f"questions~{part}", [part])
    value = (np.arange(COUNT) % 4 == 0) | ((np.arange(COUNT) % 3 != 0) & (np.arange(COUNT) % UNREADABLE != 3))
    found, _ = told(lab, catalog, float(value.mean()), allow=True, axes=[axis], requests=100_000)
    row = row_of(found, "prompt of the judge: whether the answer is correct")
    assert (row.verdict, row.estimates[0].value) == ("gives it", pytest.approx(float(value.mean())))
    assert found.asked == {"judge": WORK["judge"]}
    assert command_for("talker", "questions@judge", row.variants) == f"testbed run talker --on '{setting.name}@judge'"
    assert row.estimates[0].value == pytest.approx(stored(lab, definitions(setting), f"{setting.name}@judge"))
    assert WORK["asked"] == 0


def test_a_judge_that_judged_other_models_is_tried(lab, catalog):  # noqa: F811
    found, _ = told(lab, catalog, 0.5, axes=["judge"])
    assert found.not_tried["judge"] == "the store has no verdicts of another judge on this setting"
    assert lab.run(catalog, ["other"], ["questions@strict"]).ok
    WORK.clear()
    found, said = told(lab, catalog, STRICT, allow=True, axes=["judge"], requests=100_000)
    assert said == [(f"having its answers judged in 1 other way: at most {COUNT} requests ({COUNT} to strict)", 0)]
    row = row_of(found, "judge: strict")
    assert 0 < WORK["strict"] == found.asked["strict"] == found.requests
    assert command_for("talker", "questions@judge", row.variants) == "testbed run talker --on questions@strict"
    assert row.estimates[0].value == pytest.approx(stored(lab, catalog, "questions@strict"))
    assert WORK["asked"] == 0


def test_each_judge_of_a_panel_is_tried_alone_at_no_cost(lab, catalog):  # noqa: F811
    assert lab.run(catalog, ["talker"], ["questions@judge&strict"]).ok
    WORK.clear()
    found, _ = told(lab, catalog, STRICT, "questions@judge&strict", axes=["judge"], allow=True)
    assert (found.asked, WORK.total()) == ({}, 0)
    value = stored(lab, catalog, "questions@strict")
    assert row_of(found, "judge: strict").estimates[0].value == pytest.approx(value)


def test_a_judge_that_has_changed_is_not_asked(lab, catalog):  # noqa: F811
    changed = Generator("judge", lambda: Judge("judge"), 16, weights="2", architecture={"toy": "judge"})
    other = toy_catalog(model("talker", Talker), changed, asked_setting())
    found, _ = told(lab, other, accuracy(7), allow=True)
    assert "judge has changed since the answers were stored" in found.not_tried["hint"]
    assert WORK.total() == 0


def test_without_a_judge_it_is_said_that_there_is_none(lab, catalog):  # noqa: F811
    found, _ = told(lab, catalog, 0.5, "questions", axes=["judge", "prompt of the judge", "turns"])
    assert found.not_tried == {
        **found.not_tried,
        "judge": "no model judges these answers",
        "prompt of the judge": "no model judges these answers",
        "turns": "each question is a single turn",
    }


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("digits-vqa.choice~hint=left-out@digits-reader", ("digits-vqa.choice~hint=left-out", "digits-reader", False)),
        ("digits-vqa.choice~hint=left-out.vlmevalkit", ("digits-vqa.choice~hint=left-out", "", True)),
    ],
)
def test_names_of_variants_with_a_judge(name, parts):
    registry.load()
    found = registry.eval_settings.reference(name)
    assert (found.name, found.judge, found.rules) == parts
    assert registry.get_eval_setting(name).name == name


def test_recorded_answers_are_judged_again_but_not_asked_for(lab, tmp_path):  # noqa: F811
    file = tmp_path / "said.jsonl"
    said = [{"id": f"{number:03d}", "caption": "It barks!" if number % 3 else "It meows!"} for number in range(COUNT)]
    file.write_text("".join(f"{json.dumps(each)}\n" for each in said))
    recorded = Replay(f"replay:{file}")
    catalog = toy_catalog(recorded, model("judge", lambda: Judge("judge")), asked_setting())
    assert lab.run(catalog, [recorded.name], ["questions@judge"]).ok
    WORK.clear()
    found, _ = told(lab, catalog, 0.5, allow=True, model=recorded.name)
    assert found.not_tried["hint"] == f"the answers of {recorded.name} are recorded ones"
    assert {each.variants[0].axis for each in found.rows if each.estimates[0].samples} == {"prompt of the judge"}
    assert found.asked == {"judge": WORK.total()}


def test_labels_in_files_are_of_no_other_answers(lab, tmp_path):  # noqa: F811
    file = tmp_path / "human.csv"
    file.write_text(
        "".join(["model,id,label\n", *(f"talker,{number:03d},{int(number % 4 == 0)}\n" for number in range(COUNT))])
    )
    catalog, setting = definitions(), f"questions@labels:{file}"
    assert lab.run(catalog, ["talker"], [setting]).ok
    WORK.clear()
    found, _ = told(lab, catalog, 0.5, setting, allow=True)
    assert found.not_tried["hint"] == "these answers are judged by labels in files rather than by a model"
    assert found.not_tried["judge"] == "no model judges these answers"
    assert WORK.total() == 0
