"""Scoring again from the store: what changes, what stays, and that nothing is run."""

from __future__ import annotations

import numpy as np
import pytest
from stored_cells import put_numbers
from toy import toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.entities import Metric
from testbed.errors import UnknownNameError
from testbed.scoring.rescore import rescore


def first(logits, targets):
    return {"mine": 1}


def second(logits, targets):
    return {"mine": float(logits.argmax(dim=1).float().mean())}


def broken(logits, targets):
    raise KeyError("gone")


@pytest.fixture
def scored(lab):
    """A store with two evaluations by the metric `first`, one by the usual metrics, and one derived."""
    parts = [toy_setting("part", idx_subsample_list=range(0, 600, 7), size=86, metrics_fn=first)]
    lab.run(toy_catalog(toy_model(), toy_setting(), toy_setting("own", metrics_fn=first), *parts))
    with Store.open(lab.url, "write") as store:
        yield store


def again(metric):
    part = toy_setting("part", idx_subsample_list=range(0, 600, 7), size=86, metrics_fn=metric)
    return toy_catalog(toy_model(), toy_setting(), toy_setting("own", metrics_fn=metric), part)


def values(store, setting):
    return {each.metric: each.value for each in store.results.find(["toy"], [setting], slices=["overall"])}


def test_a_changed_metric_is_computed_from_the_stored_outputs_and_counts_from_now_on(scored, work):
    old = {each.eval_setting: each for each in scored.evaluations.find()}
    work.clear()
    done = {each.eval_setting: each for each in rescore(scored, again(second))}
    assert {name: each.status for name, each in done.items()} == {
        "toy-all": "current",
        "own": "rescored",
        "part": "rescored",
    }
    assert work["images through networks"] == work["images read"] == work["models loaded"] == 0
    for name in ("own", "part"):
        new = scored.evaluations.get(done[name].evaluation)
        root = old[name].derived_from or old[name].id
        assert (new.origin, new.derived_from, new.dataset_id) == ("derived", root, old[name].dataset_id)
        logits = scored.outputs.read(new.id, "logits")
        assert values(scored, name) == {"mine": pytest.approx(logits.argmax(axis=1).mean())}
        # What there was is still there.
        (kept,) = scored.results.metrics(old[name].id)
        assert kept == Metric("mine", 1.0, len(logits), unit="", scorer="metrics_fn", headline=kept.headline)


def test_the_result_is_that_of_a_run_and_a_run_finds_it(scored, lab, work):
    done = {each.eval_setting: each for each in rescore(scored, again(second))}
    work.clear()
    report = lab.run(again(second))
    assert {each.status for each in report.outcomes} == {"stored"}
    assert {each.setting: each.evaluation_id for each in report.outcomes} == {
        name: each.evaluation for name, each in done.items()
    }
    assert report.checks == []
    assert work["images through networks"] == 0
    before = scored.evaluations.find()
    assert {each.status for each in rescore(scored, again(second))} == {"current"}
    assert scored.evaluations.find() == before


def test_a_metric_that_fails_is_told_and_the_old_one_counts(scored):
    done = {each.eval_setting: each for each in rescore(scored, again(broken))}
    assert done["own"].status == done["part"].status == "failed"
    assert "KeyError" in done["own"].reason
    assert values(scored, "own") == {"mine": 1.0}


def test_settings_that_are_defined_no_longer_are_skipped(scored):
    done = {each.eval_setting: each for each in rescore(scored, toy_catalog(toy_model(), toy_setting()))}
    assert done["toy-all"].status == "current"
    assert done["own"].status == done["part"].status == "skipped"
    assert "--plugin" in done["own"].reason


def test_a_model_that_is_defined_no_longer_is_no_hindrance(scored):
    catalog = toy_catalog(toy_model(name="another"), toy_setting("own", metrics_fn=second))
    (one,) = rescore(scored, catalog, eval_settings=["own"])
    assert one.status == "rescored"


def test_names_and_patterns_choose(scored):
    told = []
    assert [each.eval_setting for each in rescore(scored, again(second), ["to*"], ["o*"], told.append)] == ["own"]
    assert [each.eval_setting for each in told] == ["own"]
    with pytest.raises(UnknownNameError, match=r"no outputs of model 'net'.*testbed list models --stored"):
        rescore(scored, again(second), ["net"])
    with pytest.raises(UnknownNameError, match=r"eval setting 'val'.*testbed list settings --stored"):
        rescore(scored, again(second), [], ["val"])


def test_imported_numbers_have_nothing_to_score(scored):
    put_numbers(scored, "published", "own", Metric("top1", 0.5))
    assert {each.model for each in rescore(scored, again(second))} == {"toy"}


def test_unreadable_samples_stay_wrong(lab):
    catalog = toy_catalog(toy_model(), toy_setting(broken=[3, 599]))
    lab.run(catalog)

    def right(logits, targets):
        return {"right": float((logits.argmax(dim=1) == targets).float().mean())}

    with Store.open(lab.url, "write") as store:
        before = values(store, "toy-all")["top1"]
        (one,) = rescore(store, toy_catalog(toy_model(), toy_setting(broken=[3, 599], metrics_fn=right)))
        assert values(store, "toy-all") == {"right": pytest.approx(before)}
        assert np.isnan(store.outputs.read(one.evaluation, "logits")[[3, 599]]).all()
