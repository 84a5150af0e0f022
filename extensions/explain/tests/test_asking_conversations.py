"""Conversations of several turns that are held again in other ways."""

from __future__ import annotations

import pytest
from asked_world import COUNT, Model, Questions, accuracy
from lab import lab, new_lab, work  # noqa: F401
from toy import WORK, toy_catalog

from testbed.answers import prompts
from testbed.db.store import Store
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.explain.asking.race import ask
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.named import changed_setting
from testbed.extensions.explain.search import explain
from testbed.identity.describe import digest
from testbed.models.model_base import Generator


class Dialogues(Questions):
    """Of each row, two questions are asked one after the other."""

    def __init__(self):
        super().__init__()
        self.name = "dialogues"
        for each, row in zip(self.ids, self.targets, strict=True):
            row["question"] = f"['Look at {each}.', 'What is it?']"

    def spec(self):
        return {"dialogues": digest(self.targets)}


class Model(Model):
    """Is right about all but every third row, every fifth if it is asked all at once, every seventh without context."""

    def right(self, message, config):
        text = "".join(part for part in message.parts if isinstance(part, str))
        step = 3 if len(message.turns) > 1 else 5 if "Look at" in text else 7
        return int(message.sample) % step != 0


def dialogues():
    return EvalSetting(
        *("dialogues", Dialogues(), COUNT),
        task="question_answering",
        task_options={"prompt": prompts.conversation},
    )


def definitions(*settings):
    return toy_catalog(Generator("talker", Model, 16, weights="1", architecture={"toy": 1}), dialogues(), *settings)


def told(lab, catalog, value, **options):  # noqa: F811
    said = []
    with Store.open(lab.url, "write") as store:
        found = explain(store, catalog, "talker", "dialogues", {"accuracy": (round(value, 4), 5e-5)})
        cell = EvaluatedCell.open(store, catalog, "talker", "dialogues")
        ask(cell, found, say=said.append, **options)
    return found, said


@pytest.mark.parametrize(("variant", "step", "turns"), [("all in one message", 5, 1), ("the last one alone", 7, 1)])
def test_turns_at_once_and_the_last_one_alone(lab, variant, step, turns):  # noqa: F811
    part = f"turns={variant.replace(' ', '-')}"
    catalog = definitions(changed_setting(dialogues(), f"dialogues~{part}", [part]))
    assert lab.run(catalog, ["talker"], ["dialogues"]).ok
    assert WORK["questions asked"] == 2 * COUNT
    WORK.clear()
    found, _ = told(lab, catalog, accuracy(step), allow=True, requests=100_000)
    row = next(each for each in found.rows if each.name == f"turns: {variant}")
    assert (row.verdict, row.estimates[0].value) == ("gives it", pytest.approx(accuracy(step)))
    assert found.asked == {"talker": WORK["questions asked"]}
    assert lab.run(catalog, ["talker"], [f"dialogues~{part}"]).ok
    assert lab.metrics("talker", f"dialogues~{part}")["accuracy"].value == pytest.approx(row.estimates[0].value)


def test_each_turn_is_a_request_and_none_is_made_twice(lab):  # noqa: F811
    catalog = definitions()
    assert lab.run(catalog).ok
    WORK.clear()
    found, said = told(lab, catalog, accuracy(5), allow=True, requests=500)
    assert said == ["asking talker in 4 other ways: at most 500 requests"]
    assert 300 < WORK["questions asked"] == found.requests <= 500
    samples = {each.name: each.estimates[0].samples for each in found.rows if each.estimates[0].samples}
    assert len(samples) == 4
    assert found.requests == sum((1 if name.startswith("turns") else 2) * each for name, each in samples.items())
    told(lab, catalog, accuracy(5), allow=True, requests=500)
    assert WORK["questions asked"] == found.requests


def test_what_means_nothing_for_conversations_is_said_by_name(lab):  # noqa: F811
    catalog = definitions()
    assert lab.run(catalog).ok
    found, _ = told(lab, catalog, 0.5)
    why = {str(variant): reason for variant, reason in found.failed}
    assert why["form of the prompt: the question alone"] == (
        "the questions have several turns, and this prompt makes a single one"
    )
    assert len(why) == 6


class Unreached(Model):
    """Cannot be reached for a second turn under a system prompt."""

    def generate(self, messages, config):
        if config.system and any(len(each.turns) > 1 for each in messages):
            WORK["lost"] += len(messages)
            raise ConnectionError("connection reset by peer")
        return super().generate(messages, config)


def test_a_turn_that_does_not_get_through_is_asked_again_another_time(lab):  # noqa: F811
    catalog = toy_catalog(Generator("talker", Unreached, 16, weights="1", architecture={"toy": 1}), dialogues())
    assert lab.run(catalog).ok
    WORK.clear()
    found, _ = told(lab, catalog, accuracy(5), allow=True, requests=500)
    (row,) = [each for each in found.rows if each.name.startswith("system prompt")]
    assert row.verdict == "undecided"
    asked, lost = WORK["questions asked"], WORK["lost"]
    assert lost > 0
    told(lab, catalog, accuracy(5), allow=True, requests=500)
    assert (WORK["questions asked"], WORK["lost"]) == (asked, 2 * lost)
