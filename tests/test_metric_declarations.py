"""Every metric and score of every task, and of every registered setting, declares its direction and stays in range."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import SCORED, golden_catalog

from testbed.answers.reports.report import REPORTS, report
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.db.store import Store
from testbed.entities import OVERALL, Metric, Score
from testbed.errors import DataError, TestbedError
from testbed.graph.options import RunOptions
from testbed.metric_specs import main_metric, main_score_of, spec_of
from testbed.metrics.inference.intervals import interval
from testbed.metrics.scorers.datacomp import OBJECTIVES, Faces
from testbed.registry import registry
from testbed.runner.run import run

# Of whom testbed knows nothing but what they declare themselves.
OWN = {"metrics_fn"}


def check(metric: Metric, where: str) -> None:
    """It declares a direction, and it and its interval are within its range."""
    spec = spec_of(metric)
    assert spec.better is not None, f"{where}: {metric.name}"
    if metric.value is None:
        return
    found = interval(spec, metric.value, metric.stderr, metric.n) or ()
    for number in (metric.value, *found):
        assert spec.lowest is None or number >= spec.lowest - 1e-9, (where, metric)
        assert spec.highest is None or number <= spec.highest + 1e-9, (where, metric)


@pytest.mark.slow
def test_every_task_declares_what_it_stores(tmp_path: Path) -> None:
    catalog = golden_catalog()
    options = RunOptions(db_url=str(tmp_path / "s.db"), executor="inline", data_workers=0)
    run(catalog, options, catalog.model_names(), [*catalog.eval_setting_names(), *SCORED])
    seen: set[str] = set()
    with Store.open(str(tmp_path / "s.db")) as store:
        for each in store.evaluations.find(statuses=["complete"]):
            where = f"{each.model} on {each.eval_setting}"
            metrics = [metric for metric in store.results.metrics(each.id) if metric.scorer not in OWN]
            for metric in metrics:
                check(metric, where)
                seen.add(metric.scorer)
            for (scorer, name), values in store.scores.read(each.id).items():
                if not scorer:
                    continue  # of a metrics_fn
                spec = store.scores.specs([each.id])[each.id][name]
                assert spec.better is not None, f"{where}: {name}"
                finite = values[np.isfinite(values.astype(np.float64))].astype(np.float64)
                assert spec.lowest is None or not (finite < spec.lowest - 1e-6).any(), (where, name)
                assert spec.highest is None or not (finite > spec.highest + 1e-6).any(), (where, name)
                if spec.zero_one:
                    assert set(finite.tolist()) <= {0, 1}, (where, name)
    assert len(seen) >= 6, seen


def test_what_registered_settings_return_is_declared() -> None:
    """Their metrics_fn are functions of testbed, called here with three samples."""
    functions: dict[Any, str] = {}
    for name in registry.eval_setting_names():
        try:
            setting = registry.get_eval_setting(name)
        except TestbedError:  # it needs data
            continue
        if setting.metrics_fn is not None:
            functions.setdefault(setting.metrics_fn, name)
    assert len(functions) >= 2
    given = {
        "logits": np.float32([[3, 1], [1, 3], [3, 1]]),
        "slices": [
            {"set": each, "anchor": where != 1, "texture": "a", "group": each, "group_training_share": 0.5}
            | dict.fromkeys(("slide", "region", "year", "income_ds", "age", "gender", "race", "race_binary"), where % 2)
            for where, each in enumerate("aab")
        ],
        "unreadable": [False, False, False],
        "image_paths": ["a", "b", "c"],
        "class_names": ["a", "b"],
    }
    names = [f"{objective}:{each}" for objective in OBJECTIVES for each in "ab"]
    faces = {"class_names": names, "logits": np.float32(np.eye(3, len(names)))}
    for function, name in functions.items():
        wanted = inspect.signature(function).parameters
        usual = np.array([0, 1, 1] if "class_names" in wanted else [0, -1, -1])
        targets = [[0], [1], [1]] if "slices" in wanted and "class_names" not in wanted else usual
        every = {**given, **(faces if isinstance(function, Faces) else {}), "targets": targets}
        returned = function(**{key: value for key, value in every.items() if key in wanted})
        assert main_metric(spec_of(each) for each in returned if isinstance(each, Metric)).headline > 0
        for each in returned:
            assert isinstance(each, Metric | Score)
            assert spec_of(each).better is not None
            if isinstance(each, Metric):
                check(each, name)


def answered(name: str) -> AnsweredQuestions:
    """Rows that every report can be made of."""
    columns = [
        {
            **{"question": "q", "answer": "yes", "category": "OCR", "l2-category": "all", "source": "COCO", "A": "x"},
            **{"cycle_category": "0", "qid": "1", "skill": "spatial", "key": "2steps_1", "ID": "1"},
            **{"image_path": f"{place // 2}.png", "g_index": str(place), "split": "dev"},
        }
        for place in range(4)
    ]
    ids = ["a_b_c_1_1_1" if name == "hallusion" else str(place) for place in range(4)]
    verdicts = [Verdict("yes", score, "rule") for score in (1.0, 0.0, 1.0, 1.0)]
    return AnsweredQuestions(ids, columns, verdicts, ["yes"] * 4)


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_the_primary_metric_of_a_report_is_the_main_one_that_it_declares(name: str) -> None:
    try:
        metrics = report(name, answered(name), "t@1", cut_off=[False] * 4)
    except DataError:
        pytest.skip("needs other rows")
    overall = [spec_of(each) for each in metrics if each.slice == OVERALL]
    main = main_metric(overall)
    assert main is not None
    assert main.name == REPORTS[name].primary
    for each in metrics:
        check(each, name)


def test_the_main_score_is_the_one_with_the_largest_headline() -> None:
    from testbed.metrics.scorers.classification import CONFIDENCE, NLL, top

    assert main_score_of([CONFIDENCE, NLL, top(5), top(1)]) == top(1)
    assert main_score_of([CONFIDENCE, NLL]) is None
