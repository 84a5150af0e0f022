"""The curves of a training run, from what is stored of its checkpoints."""

from __future__ import annotations

import pytest
from stored_cells import put, samples_of, saying

import testbed.db.parts.checkpoints
import testbed.db.parts.evaluations
from testbed.db.rows import entity
from testbed.db.store import Store
from testbed.entities import CellRecord, Checkpoint
from testbed.metrics.inference.statistics import wilson
from testbed.metrics.scorers.classification import top
from testbed.plotting.figures import figures
from testbed.stored_results.checkpoints import Failure, curves, failures

TARGETS = [0, 1] * 50
RIGHT = {1: 50, 2: 80, 10: 90}  # epoch → how many of 100 samples are right


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for epoch, right in RIGHT.items():
            for setting in ("val", "shift"):
                evaluation = cell(store, f"net,{tmp_path}/runs/a/e{epoch}.pt", setting, right)
                if setting == "val":  # the other one was run by hand
                    checkpoint = Checkpoint(str(tmp_path / "runs" / "a"), epoch, "epoch", epoch)
                    store.checkpoints.note([evaluation.id], checkpoint)
        cell(store, "another", "val", 70)
    return str(tmp_path / "testbed.db")


def cell(store, model, setting, right):
    said = [target if place < right else 2 for place, target in enumerate(TARGETS)]
    return put(store, model, setting, samples_of(TARGETS), saying(said), metric=top(1).metric(right / 100, 100))


def test_checkpoints_are_drawn_by_step_with_intervals(url):
    drawn, passed = figures(url, ["training"])
    assert list(drawn) == ["training--runs_a"]
    assert passed == []
    lines = [each for each in drawn["training--runs_a"].data if each.name]
    assert [each.name for each in lines] == ["shift (top1)", "val (top1)"]
    for each in lines:
        assert list(each.x) == [1, 2, 10]
        assert list(each.y) == pytest.approx([50, 80, 90])
    assert drawn["training--runs_a"].layout.xaxis.title.text == "epoch"
    bands = [each for each in drawn["training--runs_a"].data if not each.name]
    low, high = wilson(0.9, 100)
    assert (bands[0].y[2], bands[0].y[3]) == pytest.approx((100 * high, 100 * low))


def test_only_chosen_models_are_drawn(url):
    drawn, passed = figures(url, ["training"], models=["another"])
    assert drawn == {}
    assert [each.why for each in passed] == ["no training run was watched"]


def test_a_setting_that_was_run_by_hand_is_a_curve_too(url):
    with Store.open(url) as store:
        found = curves(store)
    assert [curve.eval_setting for curve in found] == ["shift", "val"]
    assert [each.checkpoint.step for each in found[0].points] == [*RIGHT]


def test_a_setting_that_was_run_by_hand_is_a_curve_where_only_it_is_asked_for(url):
    with Store.open(url) as store:
        (curve,) = curves(store, settings=["shift"])
    assert [each.checkpoint.step for each in curve.points] == [*RIGHT]


def test_only_the_evaluations_of_the_runs_are_read(url, monkeypatch):
    with Store.open(url, "write") as store:
        for number in range(20):
            cell(store, f"other{number}", "val", 70)
        run = curves(store)[0].run
        read = []
        for part in (testbed.db.parts.checkpoints, testbed.db.parts.evaluations):
            monkeypatch.setattr(part, "entity", lambda *row: read.append(row[1]) or entity(*row))
        assert len(curves(store, [run])) == 2
    assert len(read) == 3 + 6  # those that are noted, then those of the same models
    assert all(model.startswith("net,") for model in read)


def test_failures_are_those_without_a_result_of_another_attempt(url):
    with Store.open(url, "write") as store:
        run = curves(store)[0].run
        for epoch, setting in ((2, "val"), (3, "val"), (3, "shift")):
            record = CellRecord(f"net,{run}/e{epoch}.pt", setting, "unidentified")
            store.evaluations.record_failure(record, "failed", "torn", {}, {})
            (failed,) = store.evaluations.find([record.model], [setting], statuses=("failed",))
            store.checkpoints.note([failed.id], Checkpoint(run, epoch, "epoch", epoch))
        expected = [Failure(Checkpoint(run, 3, "epoch", 3), setting, "torn") for setting in ("shift", "val")]
        assert failures(store) == failures(store, [run]) == expected
        assert failures(store, ["elsewhere"]) == []


def test_a_note_without_a_step_is_left_out(url):
    with Store.open(url, "write") as store:
        (other,) = store.evaluations.find(["another"])
        store.checkpoints.claim(other.id, "told")  # a note of something else
        assert {each.model for curve in curves(store) for each in curve.points}.isdisjoint({"another"})


def test_the_best_is_the_first_of_equals(url):
    with Store.open(url, "write") as store:
        (model,) = {each.model for each in store.evaluations.find() if each.model.endswith("e2.pt")}
        later = cell(store, model.replace("e2", "e20"), "val", 90)
        run = curves(store)[0].run
        store.checkpoints.note([later.id], Checkpoint(run, 20, "epoch", 20))
        (curve,) = curves(store, [run], ["val"])
    assert curve.best().checkpoint.step == 10
    assert curve.best(before=10).checkpoint.step == 2
    assert curve.best(before=1) is None
