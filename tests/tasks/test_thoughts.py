"""A reply is scored by what it says finally, in whatever form its thoughts come, in every kind of task."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answered_world import FORMS
from chat_server import completion
from reasoning_world import World
from toy_captions import captioner, catalog, hash_encoder
from toy_towers import Targets

from testbed.db.store import Store
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation
from testbed.models.base.chat import generation_of
from testbed.models.replay import ReplayFamily
from testbed.runner.run import run

ALL = "overall"
DOUBT = "Could it be a cat? The answer is A. No, 12. Yes."  # what nobody is to read
Row = Mapping[str, str]
OPTIONS = {"A": "cat", "B": "dog", "C": "bird", "D": "fish"}


def served(content: Any, reason: str, **more: Any) -> Generation:
    """What comes of a server's message."""
    return generation_of(completion(content, reason, **more), None)


def parts(*thoughts: dict[str, Any], final: str | None) -> list[dict[str, Any]]:
    return [*thoughts, *([] if final is None else [{"type": "text", "text": final}])]


def replies(final: str | None, reason: str) -> dict[str, Generation]:
    """The same reply in every form; without a final part it was cut off."""
    found = {}
    for name, form in FORMS.items():
        beginning = form.partition("{}")[0]
        if final is not None or beginning:
            text = f"{beginning}{DOUBT}" if final is None else form.format(DOUBT, final)
            found[f"text, {name}"] = served(text, reason)
    found["begun by the prompt"] = Generation(
        DOUBT if final is None else f"{DOUBT}</think>{final}", reason, {"thinking_begun": True}
    )
    for name in ("reasoning", "reasoning_content"):
        found[name] = served(final, reason, **{name: DOUBT})
    found["reasoning, blank"] = served(final or "", reason, reasoning=DOUBT)
    found["thinking part"] = served(parts({"type": "thinking", "thinking": DOUBT}, final=final), reason)
    nested = {"type": "thinking", "thinking": [{"type": "text", "text": DOUBT}]}
    found["nested part"] = served(parts(nested, final=final), reason)
    found["reasoning part"] = served(parts({"type": "reasoning", "text": DOUBT}, final=final), reason)
    return found


CHOICE = {"question": "What?", **OPTIONS, "answer": "B", "category": "x"}
FORMULA = {"question": "?", "choices": "[]", "category": "a", "level": "1"}
# Kind → the table, its row, the final part, the judge's replies by what it is told, and the score.
KINDS: Mapping[str, tuple[str, Row, str, Mapping[str, str], float]] = {
    "multiple choice": ("MMStar", CHOICE, "B", {}, 1),
    "yes or no": ("VSR-zeroshot", {"question": "Is it?", "answer": "No"}, "No", {}, 1),
    "open": ("DocVQA_VAL", {"question": "Who?", "answer": "['Ada']"}, "Ada", {}, 1),
    "number": ("CountBenchQA", {"question": "How many?", "answer": "7"}, "There are 7.", {}, 1),
    "written": ("OCRBench", {"question": "?", "answer": "['a']", "category": "Scene Text-centric VQA"}, "A", {}, 1),
    "mathematics": ("MathVision", {**FORMULA, "answer": "7"}, "7", {}, 1),
    "extracted": ("MathVision@judge", {**FORMULA, "answer": "(2,3)"}, "2, 3", {"2, 3": "Extracted: (2, 3)"}, 1),
    "judged": (
        "MMVet@judge",
        {"question": "?", "answer": "Ada", "category": "rec"},
        "Lady A.",
        {"Lady A.": "0.5"},
        0.5,
    ),
    "read by a judge": ("MMStar@judge", CHOICE, "It barks", {"It barks": "B"}, 1),
    "captions": ("COCO_VAL", {"answer": "['a dog barks']"}, "a dog barks", {}, 1),
}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] if place % 2 else []) for place, kind in enumerate(KINDS)]
)
def test_the_same_reply_has_the_same_score_in_every_form(world: World, kind: str) -> None:
    setting, row, final, verdicts, score = KINDS[kind]
    whole, cut = replies(final, "stop"), replies(None, "length")
    stopped = replies(None, "stop")
    said = [*whole.values(), *cut.values(), *stopped.values()]
    world.table(setting.partition("@")[0], [row] * len(said), said)
    judge = world.judge(verdicts)
    (found,) = world.run(setting).values()
    scores = world.scores(setting)
    right, wrong = scores[: len(whole)], scores[len(whole) :]
    assert dict(zip(whole, right, strict=True)) == dict.fromkeys(whole, pytest.approx(score))
    assert dict(zip([*cut, *stopped], wrong, strict=False)) == dict.fromkeys([*cut, *stopped], 0)
    assert found["cut_off", ALL] == pytest.approx(1 - len(whole) / len(said))
    assert found["empty", ALL] == pytest.approx(1 - len(whole) / len(said))
    with Store.open(world.url) as store:
        counted = {each.metric: each.n for each in store.results.find(["model"], [setting], slices=[ALL])}
    assert counted["cut_off"] == len(said)
    assert not any(DOUBT[:12] in part for message in judge.seen for part in message.parts)
    assert len(judge.seen) == bool(verdicts)


@pytest.mark.parametrize("kind", ["multiple choice", "judged", "captions"])
def test_recorded_answers_are_read_alike(world: World, kind: str, tmp_path: Path) -> None:
    setting, row, final, verdicts, _ = KINDS[kind]
    said = [*replies(final, "stop").values(), *replies(None, "length").values()]
    told = [each for each in said if "thinking_begun" not in each.extra]  # files cannot say that
    world.judge(verdicts)
    world.table(setting.partition("@")[0], [row] * len(told), told)
    path = tmp_path / f"recorded_{setting.partition('@')[0]}.tsv"
    with path.open("w", newline="") as file:
        lines = [[number, each.text, each.extra.get("thinking", "")] for number, each in enumerate(told)]
        csv.writer(file, delimiter="\t").writerows([["index", "prediction", "thinking"], *lines])
    world.catalog.add_model_family(ReplayFamily())
    (served_found,) = world.run(setting).values()
    (found,) = world.run(setting, model=f"replay:{path}").values()
    assert world.scores(setting, f"replay:{path}") == pytest.approx(world.scores(setting))
    assert found == pytest.approx(served_found)
    assert found["cut_off", ALL] > 0


def test_published_rules_read_replies_whole_and_what_is_cut_off_is_wrong(world: World) -> None:
    row = {"question": "?", "answer": "B", "choices": "['cat', 'dog']", "category": "a", "level": "1"}
    said = ["<think>Is it A?</think>B", "<think>So the answer is B", "<think>Hm", "It barks"]
    world.table("MathVision", [row] * 4, said)
    judge = world.judge({"It barks": "Extracted: B"})
    world.run("MathVision.vlmevalkit", "MathVision.vlmevalkit@judge")
    assert world.scores("MathVision.vlmevalkit") == pytest.approx([np.nan, 1, 0, np.nan], nan_ok=True)
    world.judge({"It barks": "Extracted: B", "B": "Extracted: B"}, "other")
    world.run("MathVision.vlmevalkit@other")
    assert world.scores("MathVision.vlmevalkit@other") == [1, 1, 0, 1]
    assert not any("think" in message.parts[0] for message in judge.seen)


def test_captions_are_compared_without_thoughts(tmp_path: Path) -> None:
    whole, cut = replies("en 0 of 3 a dog", "stop"), replies(None, "length")
    said = [*whole.values(), *cut.values()]
    dataset = Targets("captions", count=len(said))
    setting = EvalSetting(name="captions", dataset=dataset, size=len(said), task="captioning")  # type: ignore[arg-type]
    made = catalog(captioner("forms", lambda number: said[number]), hash_encoder(), setting)
    url = str(tmp_path / "store.db")
    options = RunOptions(db_url=url, executor="inline", data_workers=0)
    assert run(made, options, ["forms"], ["captions", "captions@hash"]).ok
    with Store.open(url) as store:
        found = {}
        for evaluation in store.evaluations.find(["forms"]):
            found |= {name: values for (_, name), values in store.scores.read(evaluation.id).items()}
    words = dict(zip([*whole, *(f"cut: {each}" for each in cut)], found["words"].tolist(), strict=True))
    assert words == dict.fromkeys(whole, 6) | {f"cut: {each}": 0 for each in cut}
    assert set(found["status"][: len(whole)]) == {0}
    assert set(found["status"][len(whole) :]) == {2}
