"""Analyses of results in Python, as a notebook uses them: the same numbers as the commands give."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_world import in_process
from stored_cells import put, samples_of, saying

import testbed
from testbed.api.results import HEADS, ROWS, Results
from testbed.db.store import Store
from testbed.entities import Result, TrainingCheckpoint
from testbed.errors import StoreError, UnknownNameError
from testbed.extensions.published.importing import import_results


@pytest.fixture
def db(tmp_path: Path) -> str:
    """Three models on two settings: the first is the best, and the last the worst."""
    url = str(tmp_path / "testbed.db")
    samples = samples_of([0, 1, 2, 3] * 25)
    with Store.create(url) as store:
        for place, model in enumerate(("good", "fair", "bad")):
            for number, setting in enumerate(("val", "val-dim")):
                right = 96 - 4 * place * (place + number)
                put(store, model, setting, samples, saying([0, 1, 2, 3] * (right // 4) + [0] * (100 - right)))
    return url


@pytest.fixture
def told(db: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that gives the JSON of a command."""
    with in_process(monkeypatch, capsys) as run:
        yield lambda *words: json.loads(run(*words, "--json", "--db-url", db).stdout)


def test_models_are_compared_as_the_command_does(db: str, told: Callable[..., Any]) -> None:
    frame = testbed.results(db).compare()
    expected = told("compare", *dict.fromkeys([*frame.model, *frame.other]), "--on", "val", "val-dim")
    assert len(frame) == len(expected) == 6
    for (_, row), each in zip(frame.iterrows(), expected, strict=True):
        assert (row.model, row.other, row.n) == (each["first_model"], each["second_model"], each["n"])
        for name in ("eval_setting", "difference", "low", "high", "p", "p_holm", "verdict", "score"):
            assert row[name] == each[name]
    chosen = testbed.results(db).compare(["good", "b*"], "val")
    assert chosen[["model", "other"]].to_numpy().tolist() in ([["good", "bad"]], [["bad", "good"]])


def test_models_are_ranked_as_the_command_does(db: str, told: Callable[..., Any]) -> None:
    frame = testbed.results(db).rank()
    expected = told("rank", "val", "val-dim")
    for (_, row), each in zip(frame.iterrows(), expected, strict=True):
        assert row.to_dict() == {name: each[name] for name in row.index}
    assert frame.model.iloc[0] == "good"


def test_analyses_are_of_these_results_and_not_of_the_reported_ones(db: str) -> None:
    before = testbed.results(db)
    samples = samples_of([0, 1, 2, 3] * 5)
    with Store.open(db, "write") as store:
        for model in ("good", "fair"):
            put(store, model, "val", samples, saying([0, 1, 2, 3] * 5))
    after = testbed.results(db)
    assert set(before.compare(["good", "fair"], "val").n) == {100}
    assert before.rank("val", ["good", "fair"]).value.iloc[0] == pytest.approx(0.97)
    assert set(after.compare(["good", "fair"], "val").n) == {20}


def test_figures_are_of_these_models(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = testbed.results(db, ["good", "fair"]).plot("ranking")
    (figure,) = drawn.values()
    assert "good" in figure.to_json()
    assert "bad" not in figure.to_json()
    shown: list[Any] = []
    monkeypatch.setattr(type(figure), "show", lambda self: shown.append(self))
    drawn._ipython_display_()
    assert shown == [figure]


def test_mistakes_are_said(db: str) -> None:
    found = testbed.results(db)
    with pytest.raises(UnknownNameError, match="other"):
        found.compare(["good", "other"])
    with pytest.raises(StoreError, match="expected at least two models; got good"):
        found.compare("good")
    with pytest.raises(StoreError, match="unknown figure kind 'pie'; expected one of shifts"):
        found.plot("pie")
    with pytest.raises(StoreError, match="nothing was drawn"):
        found.plot("severity")


def test_the_table_of_a_large_store_stays_small() -> None:
    fields = Result("", "", "top1", "overall", 0.5, 10, None, "fraction", "", "run", None, None, None, False, 1, None)
    names = [(f"m{model}", f"s{setting}") for model in range(1000) for setting in range(100)]
    cells = [replace(fields, model=model, eval_setting=setting, zero_one=True) for model, setting in names]
    found = Results(None, cells)
    page = found._repr_html_()
    assert (page.count("<tr>"), page.count("scope='col'")) == (ROWS + 1, HEADS + 1)
    assert "40 of 1,000 models, 40 of 100 settings; .frame has all" in page
    assert len(repr(found).splitlines()) == ROWS + 3


def test_published_results_are_drawn_and_say_that_they_have_no_samples(tmp_path: Path) -> None:
    url = str(tmp_path / "published.db")
    (tmp_path / "table.csv").write_text("model,val,imagenet-a\nresnet18,69.8,1.1\nresnet50,76.1,2.2\nvgg19,72.4,2.0\n")
    with Store.create(url) as store:
        import_results(store, tmp_path / "table.csv")
    found = testbed.results(url, "resnet*")
    (figure,) = found.plot("shifts", labels="resnet18").values()
    assert {each.text for each in figure.layout.annotations} == {"<b>resnet18</b>", "resnet50"}
    for ask in (found.rank, found.compare):
        with pytest.raises(StoreError, match="none of these results was measured here, so there are no samples"):
            ask()
    with pytest.raises(UnknownNameError, match="no outputs of model 'nope"):
        found.plot("shifts", labels="nope*")


def test_a_gate_says_what_the_command_says(db: str, told: Callable[..., Any], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("margin: 5\nrules:\n  - val\n  - {setting: val-dim, tier: should}\n  - absent\n")
    frame = testbed.results(db).gate(policy, "bad", "good")
    expected = told("gate", str(policy), "--candidate", "bad", "--baseline", "good")
    assert frame.attrs["verdict"] == expected["verdict"] == "fails"
    assert frame.verdict.tolist() == [each["verdict"] for each in expected["rules"]] == ["loses", "missing", "loses"]
    assert frame.gain[0] == expected["rules"][0]["change"]["gain"]
    assert frame.margin[0] == 0.05
    assert frame.missing[1] == expected["rules"][1]["missing"]


def test_curves_are_rows_by_run_and_step_of_these_results(tmp_path: Path, db: str) -> None:
    with Store.open(db, "write") as store:
        for step, model in enumerate(("bad", "fair", "good"), 1):
            noted = store.evaluations.find([model], ["val"])
            store.checkpoints.note([each.id for each in noted], TrainingCheckpoint("/runs/a", step, "epoch", step))
    frame = testbed.results(db).curves()
    assert list(zip(frame["eval_setting"], frame["step"], frame["model"], strict=True)) == [
        (setting, step, model)
        for setting in ("val", "val-dim")
        for step, model in enumerate(("bad", "fair", "good"), 1)
    ]
    assert set(frame["unit"]) == {"epoch"}
    assert frame["value"].tolist() == [0.5] * 6  # as the store has it
    assert frame["best"].tolist() == [True, False, False] * 2  # of equal ones the first
    some = testbed.results(db, ["fair", "good"], "val").curves("top1")
    assert some["model"].tolist() == ["fair", "good"]
    assert some["best"].tolist() == [True, False]
    with pytest.raises(StoreError, match="none of these results has the metric top5; they have top1"):
        testbed.results(db).curves("top5")


def test_curves_of_a_store_without_training_runs_are_empty(db: str) -> None:
    frame = testbed.results(db).curves()
    assert len(frame) == 0
    assert {"run", "step", "value", "best"} <= set(frame.columns)
