"""Another release of testbed that adds a metric, drops one, or computes one otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toy import toy_catalog, toy_model, toy_setting

from testbed.cli.run.checks import describe_certificate, print_checks
from testbed.db.store import Store
from testbed.entities import OVERALL, Metric, Score
from testbed.metrics.scorers import classification
from testbed.provenance import manifest
from testbed.scoring.changes import compared_metrics
from testbed.scoring.deep_check import deep_faults
from testbed.scoring.rescore import rescore

Change = Callable[[list[Score], list[Metric]], tuple[list[Score], list[Metric]]]


def added(scorer: str, part: str = OVERALL) -> Change:
    """A metric of a scorer, and its scores of samples."""

    def change(scores: list[Score], metrics: list[Metric]) -> tuple[list[Score], list[Metric]]:
        score = replace(scores[0], scorer=scorer, name="sharpness", values=np.zeros(len(scores[0].values)))
        return [*scores, score], [
            *metrics,
            replace(metrics[0], scorer=scorer, name="sharpness", slice=part, value=0.25),
        ]

    return change


def without(name: str) -> Change:
    return lambda scores, metrics: (
        [each for each in scores if each.name != name],
        [each for each in metrics if each.name != name],
    )


def another_version(scores: list[Score], metrics: list[Metric]) -> tuple[list[Score], list[Metric]]:
    return [replace(each, scorer="classification@3") for each in scores], [
        replace(each, scorer="classification@3") for each in metrics
    ]


def otherwise(scores: list[Score], metrics: list[Metric]) -> tuple[list[Score], list[Metric]]:
    return scores, [replace(each, value=0.5) if each.name == "nll" else each for each in metrics]


def both(first: Change, second: Change) -> Change:
    return lambda scores, metrics: second(*first(scores, metrics))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Has testbed's own code be another release, whose classification scorer computes something else."""
    before = classification._one_class_each

    def call(change: Change) -> None:
        monkeypatch.setattr(manifest.Today, "testbed", "another release")
        monkeypatch.setattr(classification, "_one_class_each", lambda *given: change(*before(*given)))

    return call


def names(lab: Any) -> set[str]:
    return set(lab.metrics("toy", "toy-all"))


ADDED = [
    added(classification.SCORER),
    added("sharpness@1"),
    added(classification.SCORER, "class/3"),
    both(added("sharpness@1"), added(classification.SCORER, "class/3")),
]


@pytest.mark.parametrize("change", ADDED, ids=["same scorer", "own scorer", "slice", "several"])
def test_an_added_metric_is_new_and_nothing_differs(lab, upgrade, capsys, change):
    catalog = toy_catalog(toy_model(), toy_setting())
    (first,) = lab.run(catalog).outcomes
    before = lab.metrics("toy", "toy-all")
    upgrade(change)
    report = lab.run(catalog)
    (check,) = report.checks
    assert (check.result, check.certificate.equal, check.certificate.same_metrics) == ("equal", True, True)
    assert describe_certificate(check.certificate).startswith("0 of 299 samples differ")
    assert describe_certificate(check.certificate).endswith("0 answers flipped; sharpness is new")
    print_checks(report.checks)
    said = capsys.readouterr().out.replace("\n", " ")
    assert ": 1 equal (at most 1 % of their samples may differ" in said
    assert ", 0 differ; sharpness is new." in said
    assert [(each.status, each.evaluation_id) for each in report.outcomes] == [("stored", first.evaluation_id)]
    after = lab.metrics("toy", "toy-all")
    assert {name: each.value for name, each in after.items() if name in before} == {
        name: each.value for name, each in before.items()
    }
    with lab.open() as store:
        assert "sharpness" in {name for _, name in store.scores.read(first.evaluation_id)}
        assert "sharpness" in {each.name for each in store.results.metrics(first.evaluation_id)}
        assert len(store.evaluations.find()) == 1
    assert not any(each.certificate.new_metrics for each in lab.run(catalog).checks)  # it is said once


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (without("top5"), "top5 (overall) is gone"),
        (another_version, "brier (overall) is of classification@2, computed by classification@3"),
        (otherwise, "computed 0.5 of 600"),
    ],
    ids=["gone", "another version", "another value"],
)
@pytest.mark.parametrize("more", [False, True], ids=["", "and one is added"])
def test_what_is_gone_or_differs_is_named(lab, upgrade, change, told, more):
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog)
    upgrade(both(change, added("sharpness@1")) if more else change)
    report = lab.run(catalog)
    (check,) = report.checks
    assert check.result == "differs"
    text = describe_certificate(check.certificate)
    assert told in text
    assert text.endswith("; sharpness is new") == more
    assert [each.status for each in report.outcomes] == ["derived"]
    assert ("sharpness" in names(lab)) == more


def test_scoring_again_adds_what_is_new(lab, upgrade):
    catalog = toy_catalog(toy_model(), toy_setting())
    (first,) = lab.run(catalog).outcomes
    upgrade(added(classification.SCORER))
    with Store.open(lab.url, "write") as store:
        (done,) = rescore(store, catalog)
        assert (done.status, done.reason, done.evaluation) == ("added", "sharpness is new", first.evaluation_id)
        (done,) = rescore(store, catalog)
        assert done.status == "current"
    assert "sharpness" in names(lab)


def test_scoring_again_says_which_metric_differs(lab, upgrade):
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog)
    upgrade(without("top5"))
    with Store.open(lab.url, "write") as store:
        (done,) = rescore(store, catalog)
        assert done.status == "rescored"
        (before,) = [each for each in store.evaluations.find() if each.id != done.evaluation]
        because = store.evaluations.identity(before)["set_aside"]["because"]
    assert "top5 (overall) is gone" in because[0]


def test_a_deep_check_lists_what_is_new_and_finds_what_differs(lab, upgrade):
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog)
    upgrade(added(classification.SCORER))
    new: list[str] = []
    with lab.open() as store:
        faults = deep_faults(store, catalog, lambda *_: None, lambda evaluation, names: new.extend(names))
        assert [each.text for each in faults] == []
    assert new == ["sharpness"]
    upgrade(both(otherwise, added(classification.SCORER)))
    with lab.open() as store:
        (fault,) = deep_faults(store, catalog, lambda *_: None)
    assert "nll (overall)" in fault.text
    assert "sharpness" not in fault.text


def test_metrics_are_compared_one_by_one():
    def metric(name: str, value: float | None = 1.0, count: int = 5, **other: str) -> Metric:
        return Metric(name, value, count, **{"scorer": "a@1", **other})

    before = [
        metric("same"),
        metric("undefined", None),
        metric("value"),
        metric("count"),
        metric("gone"),
        metric("old"),
    ]
    now = [
        metric("same", 1.0 + 1e-9),
        metric("undefined", None),
        metric("value", 2.0),
        metric("count", count=6),
        metric("old", scorer="a@2"),
        metric("new"),
        metric("same", slice="class/1"),
    ]
    new, differing = compared_metrics(before, now)
    assert [(each.name, each.slice) for each in new] == [("new", OVERALL), ("same", "class/1")]
    assert differing == [
        "count (overall) is 1.0 of 5, computed 1.0 of 6",
        "gone (overall) is gone, it was 1.0 of 5",
        "old (overall) is of a@1, computed by a@2",
        "value (overall) is 1.0 of 5, computed 2.0 of 5",
    ]
