"""Units, directions and ranges are what metrics declare; no view guesses them from a name."""

from __future__ import annotations

import ast
import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stored_cells import put, samples_of

import testbed
from testbed.db.store import Store
from testbed.entities import CellRecord, Metric, Score
from testbed.errors import DefinitionError
from testbed.eval_settings.base.metric import accuracy_topk, as_metrics
from testbed.extensions.explorer.overview import Overview
from testbed.metric_specs import HIGHER, LOWER, MetricSpec, main_metric, rate, spec_of
from testbed.metrics.inference.intervals import interval
from testbed.plotting.frame import load_grid
from testbed.plotting.own.source import best
from testbed.plotting.picture import Choice
from testbed.plotting.ranking import data as ranking_picture
from testbed.registry import registry

ROOT = Path(__file__).resolve().parents[2]
VALUES = {"anna": 0.9, "bert": 0.5, "carl": 0.1}
# Names that say the opposite of what is declared, and names that say nothing.
NAMES = ("top1", "nll", "ece", "loss", "error_rate", "zorp", "chair_i", "image_retrieval_recall@5")


def fill(path: Path, spec: MetricSpec, score: MetricSpec | None = None) -> None:
    """Three models on the settings ``photos`` and ``more``: anna has the largest values, carl the smallest."""
    with Store.create(str(path)) as store:
        for setting in ("photos", "more"):
            for place, (model, value) in enumerate(VALUES.items()):
                samples = samples_of([0, 1] * 15)
                scores = np.float32(np.linspace(value - 0.02, value + 0.02, 30))
                metrics = [spec.metric(value, 30, 0.2, scorer="t@1")]
                each = put(store, model, setting, samples, None, scores=[])
                store.evaluations.complete(each.id, [(score or spec).score(scores, f"t@{place}")], metrics)


def order(ask, *words: str) -> list[str]:
    return [each["model"] for each in json.loads(ask(*words, "--json").stdout)]


@pytest.mark.parametrize("better", [HIGHER, LOWER])
@pytest.mark.parametrize("name", NAMES)
def test_every_view_puts_the_model_first_that_the_declaration_says(ask, tmp_path, name, better):
    fill(tmp_path / "testbed.db", MetricSpec(name, "things", better, headline=10))
    wanted = ["anna", "bert", "carl"] if better == HIGHER else ["carl", "bert", "anna"]
    assert order(ask, "rank", "photos") == wanted
    assert order(ask, "borda", "photos", "more", "--metric", name) == wanted
    assert order(ask, "grid", "photos", "--metric", name) == wanted
    assert order(ask, "grid", "photos") == wanted
    (compared,) = json.loads(ask("compare", "anna", "carl", "--on", "photos", "--json").stdout)
    assert compared["verdict"] == f"{wanted[0]} is better"
    grid = load_grid(str(tmp_path / "testbed.db"), name)
    assert list(ranking_picture(grid, Choice(x="photos")).table.index) == wanted
    assert best(grid.values[["photos"]].rename(columns={"photos": "value"}), 1, grid.specs["photos"]) == wanted[:1]
    frame = testbed.results(str(tmp_path / "testbed.db")).frame
    assert set(frame["better"]) == {better}
    with Store.open(str(tmp_path / "testbed.db")) as store:
        index = Overview(store, registry, ["more", "photos"], "here").document("index")
    assert {(each["metric"], each["better"], each["percent"]) for each in index["columns"]} == {(name, better, False)}


@pytest.mark.parametrize("name", NAMES)
def test_the_worst_group_is_on_the_side_that_is_declared(ask, tmp_path, name):
    for better, worst in ((LOWER, "bee"), (HIGHER, "ant")):
        path = tmp_path / "testbed.db"
        path.unlink(missing_ok=True)
        spec = MetricSpec(name, "", better, lowest=0, headline=10)
        with Store.create(str(path)) as store:
            samples = samples_of([0, 0, 1, 1])
            each = put(store, "net", "photos", samples, None, scores=[])
            store.evaluations.complete(each.id, [spec.score(np.float32([0, 0.02, 5, 9]), "t@1")], [spec.metric(3.5, 4)])
        (found,) = json.loads(ask("groups", "photos", "--json").stdout)
        assert found["worst"]["name"] == worst
        assert all(group["low"] >= 0 for group in found["groups"])


@pytest.mark.parametrize("name", ["top1", "nll", "zorp"])
def test_what_declares_no_direction_is_not_ranked_until_somebody_says_it(ask, tmp_path, name):
    fill(tmp_path / "testbed.db", MetricSpec(name, "", headline=10))
    for words in (
        ("rank", "photos"),
        ("groups", "photos", "--by", "class"),
        ("borda", "photos", "--metric", name),
    ):
        assert "--better higher or --better lower" in ask(*words, code=1).stderr
    assert "direction unknown" in ask("grid", "photos", "--metric", name).stderr
    assert order(ask, "grid", "photos", "--metric", name) == ["anna", "bert", "carl"]
    (compared,) = json.loads(ask("compare", "anna", "carl", "--on", "photos", "--json").stdout)
    assert compared["verdict"] == "anna is higher"
    assert "direction unknown" in ask("compare", "anna", "carl", "--on", "photos").stderr
    for better, wanted in (("higher", ["anna", "bert", "carl"]), ("lower", ["carl", "bert", "anna"])):
        assert order(ask, "rank", "photos", "--better", better) == wanted
        assert order(ask, "borda", "photos", "--metric", name, "--better", better) == wanted
        assert order(ask, "grid", "photos", "--metric", name, "--better", better) == wanted


def test_what_is_neither_good_nor_bad_is_not_ranked(ask, tmp_path):
    fill(tmp_path / "testbed.db", MetricSpec("words", "words", "neither", headline=10))
    assert "neither is better" in ask("rank", "photos", code=1).stderr


def test_a_grid_prints_each_column_in_its_unit(ask, tmp_path):
    fill(tmp_path / "testbed.db", MetricSpec("nll", "nats", LOWER, lowest=0))
    first, _, *rows = ask("grid", "photos", "--metric", "nll").stdout.splitlines()
    assert first.split() == ["nll,", "nats", "photos"]
    assert [row.split() for row in rows] == [["carl", "0.1000"], ["bert", "0.5000"], ["anna", "0.9000"]]


def test_intervals_stay_within_the_range(ask, tmp_path):
    fill(tmp_path / "testbed.db", rate("ece", LOWER), replace(rate("ece", LOWER), headline=10))
    frame = testbed.results(str(tmp_path / "testbed.db")).frame.set_index("model")
    assert frame.loc["carl", "low"].min() == 0  # 0.1 − 2.3 · 0.2
    assert frame.loc["anna", "high"].max() == 1
    assert interval(MetricSpec("x", ""), 0.1, 0.2, 9) == pytest.approx((-0.36120, 0.56120), abs=1e-5)
    assert interval(rate("x", zero_one=True), 0.5, 0.01, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)  # Wilson


def test_print_eval_says_what_is_declared(ask, tmp_path):
    fill(tmp_path / "testbed.db", MetricSpec("loss", "bits", LOWER, 0, 8))
    (found,) = json.loads(ask("--print-eval", "anna", "photos", "--json").stdout)
    assert {key: found[key] for key in ("unit", "better", "lowest", "highest")} == {
        "unit": "bits",
        "better": "lower",
        "lowest": 0,
        "highest": 8,
    }


# Declarations -----------------------------------------------------------------------------------------------------


def test_metrics_and_scores_are_made_by_what_declares_them():
    """So that nothing can be stored by testbed without a declaration."""
    allowed = {"src/metric_specs.py", "db/connection/lookup.py", "db/parts/results.py"}
    made = []
    for folder in ("src", "db", "plotting", "extensions"):
        for path in (ROOT / folder).rglob("*.py"):
            if "tests" in path.relative_to(ROOT).parts:  # an extension's own
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Name)
                    and node.func.id in ("Metric", "Score")
                ):
                    made.append(path.relative_to(ROOT).as_posix())
    assert set(made) <= allowed


def test_a_metrics_fn_may_declare(caplog):
    declared = MetricSpec("angle", "degrees", LOWER, 0, 180)
    angle, plain = as_metrics([declared.metric(12.5, 4), Metric("other", 3.0, 4, unit="")], 4, "own", "photos")
    assert spec_of(angle) == replace(declared, headline=angle.headline)
    assert spec_of(plain) == MetricSpec("other", "")
    assert main_metric([spec_of(angle), spec_of(plain)]).name == "angle"
    metrics = as_metrics({"renamed": accuracy_topk(np.eye(3), [0, 1, 1])["top1"], "mine": (0.5, "dB")}, 3, "own", "x")
    assert [(each.name, each.unit, each.better) for each in metrics] == [
        ("renamed", "fraction", "higher"),
        ("mine", "dB", None),
    ]
    assert metrics[0].value == pytest.approx(2 / 3)
    with pytest.raises(DefinitionError, match="photos: the metric 'x': better is 'up'; expected higher"):
        as_metrics([Metric("x", 1.0, better="up")], 1, "own", "photos")
    with pytest.raises(DefinitionError, match="lowest is 2, above highest, 1"):
        MetricSpec("x", lowest=2, highest=1)


def test_undeclared_scores_are_stored_as_they_are(tmp_path):
    with Store.create(str(tmp_path / "s.db")) as store:
        each = store.evaluations.begin(CellRecord("m", "s", "f"), None, {}, {})
        store.evaluations.complete(each.id, [Score("top1", np.float32([1]))], [Metric("top1", 0.5)])
        assert store.scores.specs([each.id]) == {each.id: {"top1": MetricSpec("top1", "")}}
        assert [spec_of(metric) for metric in store.results.metrics(each.id)] == [MetricSpec("top1")]


# Imports ----------------------------------------------------------------------------------------------------------


def table(path: Path, rows: list[list[object]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@pytest.mark.parametrize("column", ["param_count", "vall", "val_pm5", "model_type"])
def test_a_column_that_is_no_setting_is_refused(ask, tmp_path, column):
    path = table(tmp_path / "t.csv", [["model", "val", column], ["net", 76.1, 25.6]])
    said = ask("import", path, code=1).stderr
    assert repr(column) in said
    assert "eval setting" in said
    with Store.open(str(tmp_path / "testbed.db")) as store:
        assert store.results.find() == []
    ask("import", path, "--override")
    with Store.open(str(tmp_path / "testbed.db")) as store:
        assert len(store.results.find()) == 2
    ask("import", path)  # what the store knows by now


def test_of_two_tables_of_a_cell_the_preferred_one_counts_in_any_order(ask, tmp_path):
    first = table(tmp_path / "a.csv", [["model", "val"], ["net", 76.1], ["other", 50]])
    second = table(tmp_path / "b.csv", [["model", "val"], ["net", 77], ["other", 50]])

    def shown():
        with Store.open(str(tmp_path / "testbed.db")) as store:
            return [each.published for each in store.results.find(["net"])]

    for path in (second, first, second):
        ask("import", path)
    assert shown() == ["76.1"]
    assert ask("published", "prefer", "b").stdout == "b\na\n"
    assert shown() == ["77"]
    ask("import", first)
    assert shown() == ["77"]
    assert "nothing from 'c' is stored; stored sources: b, a" in ask("published", "prefer", "c", code=1).stderr


def test_imported_values_carry_what_the_reader_knows(ask, tmp_path):
    ask("import", table(tmp_path / "a.csv", [["model", "val", "imagenet-vid-robust_pm0"], ["net", 76.1, 60]]))
    with Store.open(str(tmp_path / "testbed.db")) as store:
        assert {(each.metric, each.better, each.highest) for each in store.results.find()} == {
            ("top1", "higher", 1),
            ("pm0", "higher", 1),
        }
