"""Questions that are asked again in other ways."""

from __future__ import annotations

import re

import pytest
from asked_world import COUNT, Model, Questions, accuracy, asked_setting
from chat_server import Reply, completion, serving
from lab import lab, new_lab, work  # noqa: F401
from toy import WORK, toy_catalog

from testbed.answers import prompts
from testbed.db.store import Store
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.explain.asking.race import ask
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.named import changed_setting, command_for
from testbed.extensions.explain.search import explain
from testbed.models.api import ApiModel
from testbed.models.model_base import Generation, Generator


def definitions():
    return toy_catalog(Generator("talker", Model, 16, weights="1", architecture={"toy": 1}), asked_setting())


@pytest.fixture
def catalog(lab):  # noqa: F811
    made = definitions()
    assert lab.run(made).ok
    assert lab.metrics("talker", "questions")["accuracy"].value == pytest.approx(accuracy(3))
    WORK.clear()
    return made


def told(lab, catalog, value, **options):  # noqa: F811
    said = []
    with Store.open(lab.url, "write") as store:
        found = explain(store, catalog, "talker", "questions", {"accuracy": (round(value, 4), 5e-5)})
        cell = EvaluatedCell.open(store, catalog, "talker", "questions")
        ask(cell, found, say=lambda line: said.append((line, WORK["questions asked"])), **options)
    return found, said


def test_nothing_is_asked_without_leave(lab, catalog):  # noqa: F811
    found, said = told(lab, catalog, accuracy(7))
    assert said == []
    assert WORK["questions asked"] == 0
    for axis in ("hint", "system prompt", "form of options", "temperature"):
        assert found.not_tried[axis] == "the model is asked again only with --ask: at most 1,000 requests"


def test_the_way_of_asking_that_gives_a_value_is_found(lab, catalog):  # noqa: F811
    found, said = told(lab, catalog, accuracy(7), allow=True, requests=100_000)
    (row,) = [each for each in found.rows if each.name == "hint: left out"]
    assert (row.verdict, row.estimates[0].value) == ("gives it", pytest.approx(accuracy(7)))
    verdicts = {each.name: each.verdict for each in found.rows}
    assert verdicts["system prompt: “You are a helpful assistant.”"] == "excluded"
    assert verdicts["pictures: after the text"] == "excluded"
    idle = set(map(str, found.idle))
    assert {"temperature: 0", "system prompt: none"} <= idle
    ((line, before),) = said
    assert (line.split(":")[0], before) == ("asking talker in 11 other ways", 0)
    assert 0 < WORK["questions asked"] == found.requests <= 11 * COUNT
    assert command_for("talker", "questions", row.variants) == "testbed run talker --on 'questions~hint=left-out'"


def test_some_questions_tell_what_is_excluded(lab, catalog):  # noqa: F811
    found, _ = told(lab, catalog, accuracy(7), allow=True, requests=600)
    assert WORK["questions asked"] <= 600
    rows = {each.name: each for each in found.rows if each.estimates[0].samples}
    assert len(rows) == 11
    truths = dict.fromkeys(rows, accuracy(3))
    truths |= {name: accuracy(7) for name in rows if name == "hint: left out" or "prompt: the question" in name}
    truths["system prompt: “You are a helpful assistant.”"] = accuracy(5)
    for name, row in rows.items():
        (estimate,) = row.estimates
        assert abs(estimate.value - truths[name]) <= 3 * estimate.error, name
    assert rows["hint: left out"].verdict in ("gives it", "undecided")
    assert rows["pictures: after the text"].verdict == "excluded"


def inverted(pixels):
    return 1 - pixels


class SeesWhite:
    """Is right if the picture, which is black, comes inverted."""

    def generate(self, messages, config):
        pictures = [next(part for part in each.parts if not isinstance(part, str)) for each in messages]
        return [Generation("B" if each.image().getpixel((0, 0)) == (255, 255, 255) else "A") for each in pictures]


def test_pictures_are_perturbed_as_the_setting_says(lab):  # noqa: F811
    setting = EvalSetting(
        *("questions", Questions(), COUNT),
        task="question_answering",
        task_options={"prompt": prompts.multiple_choice},
        perturbation_fn_cpu=inverted,
    )
    catalog = toy_catalog(Generator("talker", SeesWhite, 16, weights="1", architecture={"toy": 1}), setting)
    assert lab.run(catalog).ok
    assert lab.metrics("talker", "questions")["accuracy"].value == 1
    found, _ = told(lab, catalog, 0.9, allow=True, requests=100_000)
    asked = [each for each in found.rows if each.estimates[0].samples]
    assert len(asked) >= 8
    assert [each.estimates[0].value for each in asked] == pytest.approx([1.0] * len(asked))


def test_a_variant_is_a_setting_of_its_own(lab):  # noqa: F811
    for part, step in (("hint=left-out", 7), ("system-prompt=you-are-a-helpful-assistant", 5)):
        setting = changed_setting(asked_setting(), f"questions~{part}", [part])
        catalog = toy_catalog(Generator("talker", Model, 16, weights="1", architecture={"toy": 1}), setting)
        assert lab.run(catalog).ok
        assert lab.metrics("talker", setting.name)["accuracy"].value == pytest.approx(accuracy(step))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            "form-of-options=letters-in-brackets-a",
            ["Hint: Look.\nQuestion: What is in 000?\nOptions:\n(A) cat\n(B) dog\n"],
        ),
        ("form-of-the-prompt=the-question-alone", ["What is in 000?"]),
        ("hint=left-out", ["Question: What is in 000?\nOptions:\nA. cat\nB. dog\n"]),
    ],
)
def test_what_is_said_to_the_model(part, expected):
    setting = changed_setting(asked_setting(prompt=prompts.bare_choice), "x", [part])
    (turn,) = setting.task_options["prompt"](Questions().row(0))
    assert [each for each in turn if isinstance(each, str)] == expected


def test_a_served_model_gets_each_request_that_is_counted(lab, monkeypatch):  # noqa: F811
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "not a key")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    def says(asked):
        (text,) = [part["text"] for part in asked.parts if part["type"] == "text"]
        step = 7 if "Hint:" not in text else 3
        return Reply(completion("B" if int(re.search(r"\d{3}", text)[0]) % step else "A"))

    with serving(says) as server:
        catalog = toy_catalog(ApiModel("talker", "toy-model", server.url), asked_setting())
        assert lab.run(catalog).ok
        server.take()
        told(lab, catalog, accuracy(7))
        assert server.take() == []
        found, _ = told(lab, catalog, accuracy(7), allow=True, requests=500)
        sent = [each.body["messages"] for each in server.take()]
        part = "system-prompt=you-are-a-helpful-assistant"
        variant = changed_setting(asked_setting(), f"questions~{part}", [part])
        assert lab.run(toy_catalog(ApiModel("talker", "toy-model", server.url), variant)).ok
        left = len(server.take())
    assert 0 < len(sent) == found.requests <= 500
    (row,) = [each for each in found.rows if each.name == "system prompt: “You are a helpful assistant.”"]
    system = {"role": "system", "content": "You are a helpful assistant."}
    assert len([messages for messages in sent if system in messages]) == row.estimates[0].samples
    assert left == COUNT - row.estimates[0].samples  # a run takes what was asked from the store
