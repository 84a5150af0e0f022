"""Estimates, anchors, abstention and runs until a goal in Python: the numbers of the commands."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_world import in_process
from places import PLUGINS
from stored_cells import put, samples_of

import testbed
from testbed.db.store import Store
from testbed.errors import DataError, RunError, StoreError, UnknownNameError
from testbed.extensions.analyses import frames as analyses
from testbed.extensions.estimates import frames as estimates

pytestmark = pytest.mark.usefixtures("shared_cache")

COUNT = 60
TARGETS = [place % 4 for place in range(COUNT)]
MODELS = ("vgg11", "vgg13", "resnet18", "resnet34", "vit_b_16")
PLUGIN = PLUGINS / "drawn_world.py"


def logits_of(accuracy: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    said = np.where(rng.random(COUNT) < accuracy, TARGETS, (np.array(TARGETS) + 1) % 4)
    logits = rng.normal(0, 0.3, (COUNT, 4))
    logits[np.arange(COUNT), said] += 4 * rng.random(COUNT)
    return logits


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    with Store.create("testbed.db") as store:
        for place, model in enumerate(MODELS):
            put(store, model, "val", samples_of(TARGETS), logits_of(0.9 - 0.05 * place, place), architecture=model)
            if model != "vgg13":
                put(store, model, "rain", samples_of(TARGETS), logits_of(0.7, 9 + place), architecture=model)
    return "testbed.db"


@pytest.fixture
def told(db: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that gives the JSON of a command."""
    with in_process(monkeypatch, capsys) as run:
        yield lambda *words: json.loads(run(*words, "--json", "--db-url", db).stdout)


def test_abstention_is_as_the_command_has_it(db: str, told: Callable[..., Any]) -> None:
    frame = testbed.results(db).selective("val", ["vgg*", "vit_b_16"], risk=4, by="margin")
    expected = told("selective", "vgg11", "vgg13", "vit_b_16", "--on", "val", "--risk", 4, "--by", "margin")
    assert frame.model.tolist() == [each["model"] for each in expected]
    for (_, row), each in zip(frame.iterrows(), expected, strict=True):
        assert (row.n, row.error, row.aurc, row.excess) == (each["n"], each["error"], *area(each, "value", "excess"))
        assert (row.aurc_low, row.aurc_high) == area(each, "low", "high")
        at = each["at_risk"]
        assert (row.coverage, row.coverage_low, row.coverage_high) == (at["coverage"], at["low"], at["high"])
        assert row.threshold == at["threshold"] or at["threshold"] is None
    assert frame.attrs["notes"] == []


def area(each: dict[str, Any], *names: str) -> tuple[float, ...]:
    return tuple(each["aurc"][name] for name in names)


def test_estimates_without_labels_are_those_of_the_command(db: str, told: Callable[..., Any]) -> None:
    frame = testbed.results(db).estimate("rain", known="val")
    expected = told("estimate", "*", "--on", "rain", "--from", "val")
    rows = {each["model"]: each for each in expected["estimates"]}
    assert len(frame) == len(rows) == 4
    for _, row in frame.iterrows():
        each = rows[row.model]
        assert (row.known, row.true, row.n) == (each["known"], each["true"], COUNT)
        assert {name: row[name] for name in each["estimates"]} == each["estimates"]
    assert frame.attrs["summary"] == expected["summary"]
    assert frame.attrs["lines"] == expected["lines"]
    assert frame.attrs["notes"] == ["left out: vgg13 (no outputs on rain)"]


def test_the_examples_of_the_docstrings_run_and_anchors_are_those_of_the_command(
    db: str, told: Callable[..., Any]
) -> None:
    known: dict[str, Any] = {"testbed": testbed}
    modules = (analyses, estimates)
    found = [each for module in modules for each in doctest.DocTestFinder().find(module, globs=known) if each.examples]
    said: list[str] = []
    for each in sorted(found, key=lambda each: each.lineno or 0):
        doctest.DocTestRunner().run(each, out=said.append, clear_globs=False)
        known |= each.globs
    assert len(found) == 4
    assert not said, "".join(said)
    stored, frame = testbed.results(db), known["frame"]
    expected = told("anchors", "choose", "val", "--size", 10, "--method", "stratified", "-o", "own.json")
    assert Path("own.json").read_text() == Path("anchors.json").read_text()
    ways = [{name: row[name] for name in expected["ways"][0]} for _, row in frame.iterrows()]
    assert [each["mean_absolute"] for each in ways] == [each["mean_absolute"] for each in expected["ways"]]
    assert [each["method"] for each in ways] == [each["method"] for each in expected["ways"]]
    assert frame.attrs["chosen"] == {name: expected[name] for name in ("method", "estimator", "held_out", "random")}
    estimated = stored.estimate_from_anchors("anchors.json", ["vgg11", "vit_b_16"])
    for (_, row), each in zip(
        estimated.iterrows(), told("anchors", "estimate", "vgg11", "vit_b_16", "--anchors", "anchors.json"), strict=True
    ):
        assert {name: each[name] for name in row.index} == row.to_dict()
    assert estimated.attrs == {"eval_setting": "val", "score": "top1", "anchors": 10, "n": COUNT, "level": 0.75}


def test_a_run_until_a_goal_says_what_the_command_says(
    db: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    like: dict[str, Any] = {"db": "drawn.db", "plugins": [PLUGIN], "executor": "inline", "progress": False}
    found = testbed.evaluate(["says-good", "says-bad"], "drawn", until=12, **like)
    with in_process(monkeypatch, capsys) as run:
        words = ("run", "says-good", "says-bad", "--on", "drawn", "--until", "12", "--plugin", PLUGIN, "--json")
        expected = json.loads(run(*words, "--executor", "inline", "--db-url", "drawn.db").stdout)["cells"]
    frame = found.until
    assert frame is not None
    for (_, row), each in zip(frame.iterrows(), expected, strict=True):
        assert row.decided
        assert (row.model, row.eval_setting, row["size"]) == (each["model"], "drawn", each["population"]["size"])
        assert {name: row[name] for name in ("metric", "value", "low", "high", "n")} == {
            name: each["estimate"][name] for name in ("metric", "value", "low", "high", "n")
        }
        assert row.high - row.value <= 0.12
    assert set(found.frame.eval_setting) == {f"drawn.random-{n}" for n in frame.n}
    better = testbed.evaluate("says-good", "drawn", until="better:says-bad", **like).until
    assert better is not None
    assert better.low[0] > 0
    for given, other in (({"until": 0.5, "limit": 5}, "limit"), ({"until": 0.5, "override": True}, "override")):
        with pytest.raises(RunError, match=f"it cannot be used with {other}"):
            testbed.evaluate("says-good", "drawn", **given, **like)
    with pytest.raises(RunError, match="'soon': expected how close the metric must be known"):
        testbed.evaluate("says-good", "drawn", until="soon", **like)


def test_a_run_that_cannot_reach_its_goal_says_why(db: str) -> None:
    like: dict[str, Any] = {"db": "drawn.db", "plugins": [PLUGIN], "executor": "inline", "progress": False}
    found = testbed.evaluate("says-good", "drawn", until="nothing:4", **like)
    assert found.until is not None
    assert not found.until.decided[0]
    assert "nothing" in found.until.why[0]
    assert found.failed.reason[0] == found.until.why[0]
    with pytest.raises(RunError, match="nothing"):
        testbed.evaluate("says-good", "drawn", until="nothing:4", raise_on_failure=True, **like)


def test_mistakes_are_said(db: str) -> None:
    found = testbed.results(db)
    mistakes: dict[Callable[[], Any], tuple[type[Exception], str]] = {
        lambda: found.selective("val", risk=0): (DataError, "risk must be a percentage between 0 and 100; got 0"),
        lambda: found.selective("val", by="luck"): (DataError, "by must be one of probability, margin, .*; got 'luck'"),
        lambda: found.selective("vall"): (UnknownNameError, "vall"),
        lambda: found.estimate("val", known="val"): (DataError, "val is the setting whose labels are used"),
        lambda: found.estimate("rain", known="val", models="vgg13"): (StoreError, "no outputs of vgg13 on rain"),
        lambda: found.choose_anchors("val", "a.txt"): (DataError, "expected a path that ends in .json"),
        lambda: found.choose_anchors("val", "a.json", size=0): (DataError, "at least 1; got 0"),
        lambda: found.estimate_from_anchors("none.json"): (DataError, "none.json cannot be read"),
    }
    for ask, (kind, said) in mistakes.items():
        with pytest.raises(kind, match=said):
            ask()
