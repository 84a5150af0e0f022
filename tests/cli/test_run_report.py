"""Which metric of a setting stands in the table at the end of a run."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from stored_cells import SPECS

from testbed.api.results import Results
from testbed.cli.run.report import print_report
from testbed.entities import Result
from testbed.execution.report import Outcome, Report
from testbed.graph.cells import Plan
from testbed.metric_specs import MetricSpec


def result(setting: str, metric: str, value: float, unit: str = "fraction", part: str = "overall") -> Any:
    given: dict[str, Any] = dict.fromkeys(Result.__dataclass_fields__)
    given.update(model="net", eval_setting=setting, metric=metric, value=value, unit=unit, slice=part)
    given.update(SPECS.get(metric, MetricSpec(metric)).declared())
    return Result(**given)


@pytest.mark.parametrize(
    ("results", "lines"),
    [
        ([result("val", "top1", 0.5), result("val", "top5", 0.1)], ["top-1, % val", "net 50.00"]),
        ([result("val", "top1", 0.5), result("val", "top1", 0.9, part="class/cat")], ["top-1, % val", "net 50.00"]),
        (
            [result("coco", "image_retrieval_recall@1", 0.1), result("coco", "image_retrieval_recall@5", 0.25)],
            ["top-1 (or the metric named), % coco (image_retrieval_recall@5)", "net 25.00"],
        ),
        (
            [result("coco", "text_retrieval_recall@3", 0.2)],
            ["top-1 (or the metric named), % coco (text_retrieval_recall@3)", "net 20.00"],
        ),
        (
            [result("pairs", "acc", 0.4), result("pairs", "text_acc", 0.6)],
            ["top-1 (or the metric named), % pairs (acc)", "net 40.00"],
        ),
        ([result("own", "acc", 40.0, "percent")], ["top-1 (or the metric named), % own (acc)", "net 40.00 percent"]),
        ([result("own", "loss", 2.25, "nats")], ["top-1 (or the metric named), % own (loss)", "net 2.2500 nats"]),
        (
            [result("own", "loss", 2.25, "nats"), result("own", "agreement", 0.4)],
            ["top-1 (or the metric named), % own (agreement)", "net 40.00"],
        ),
    ],
)
def test_the_main_metric_is_shown(results: list[Any], lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    setting = results[0].eval_setting
    report = Report(Plan(), [Outcome("net", setting, "complete", evaluation_id=1)], passes=1)
    print_report(report, results, {}, ["net"], [setting], override=False, where=None)
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown if line and line[0] in "nt"] == lines, shown


def test_a_cell_without_any_metric_has_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [Outcome(name, "val", "complete", evaluation_id=1) for name in ("net", "bare")]
    report = Report(Plan(), outcomes, passes=1)
    print_report(report, [result("val", "top1", 0.5)], {}, ["net", "bare"], ["val"], override=False, where=None)
    assert any(line.split() == ["bare", "–"] for line in capsys.readouterr().out.splitlines())


def test_samples_without_a_caption_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    results = [result("cc@gte", "hm_cf", 0.9), result("cc@gte", "coverage", 0.875), result("cc@nv", "coverage", 0.875)]
    results += [dataclasses.replace(results[1], model=name) for name in "abc"]
    results += [result("all@gte", "coverage", 1.0)]
    results = [dataclasses.replace(each, n=40) for each in results]
    report = Report(Plan(), [Outcome("net", "cc@gte", "scored", evaluation_id=1)], passes=1)
    print_report(report, results, {}, ["net"], ["cc@gte", "cc@nv", "all@gte"], override=False, where=None)
    said = [line for line in capsys.readouterr().out.splitlines() if "no caption" in line]
    assert said == ["net, a, b and 1 more: no caption for 5 of 40 samples"]


def test_the_first_line_says_which_models_answers_were_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    shares = {"net": 0.123, "few": 0.02, "none": 0.0}
    results = [dataclasses.replace(result("quiz", "unparsed", share), model=name) for name, share in shares.items()]
    results += [dataclasses.replace(result("quiz", "accuracy", 0.5), model=name) for name in shares]
    # a judge was asked about half of the answers, and left a tenth of these without a verdict
    results += [
        result("quiz@judge", name, share) for name, share in (("judged", 0.5), ("unread", 0.1), ("unparsed", 0.0))
    ]
    outcomes = [Outcome(name, "quiz", "complete", evaluation_id=1) for name in shares]
    print_report(Report(Plan(), outcomes, passes=1), results, {}, [*shares], ["quiz", "quiz@judge"], False, None)
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("Unread answers on quiz: net 12.3 %.")
    assert second.startswith("Unread answers on quiz@judge: net 5.0 %.")
    assert not any("Unread" in line for line in rest)
    shown = repr(Results(None, results)).splitlines()
    assert shown[:2] == [first, second]
    assert "Unread" not in repr(Results(None, results[1:4]))
