"""``testbed compare``: paired, from the store alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from stored_cells import declared, put_numbers

from testbed.db.store import Store
from testbed.entities import CellRecord, DatasetInfo, Metric, SampleInfo, Score
from testbed.identity.describe import digest
from testbed.metrics.inference.paired import compare, holm


def put(store, model, setting, scores, samples=None, name="top1", groups=None):
    """A complete evaluation with the score of each sample; None stands for a sample without one."""
    ids = samples if samples is not None else [f"{number}.png" for number in range(len(scores))]
    infos = [
        SampleInfo(each, f"content of {each}", 0, group)
        for each, group in zip(ids, groups or [None] * len(ids), strict=True)
    ]
    dataset = store.datasets.ensure(DatasetInfo(setting, digest([setting, ids]), infos))
    record = CellRecord(model, setting, digest([model, setting]), size=len(ids), dtype="float32")
    evaluation = store.evaluations.begin(record, dataset, {}, {})
    values = np.array([np.nan if each is None else each for each in scores], dtype=np.float32)
    metrics = [declared(Metric(name, float(np.nanmean(values))))]
    store.evaluations.complete(evaluation.id, [declared(Score(name, values, "test@1"))], metrics)


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return {
        name: (rng.uniform(size=300) < chance).astype(float)
        for name, chance in zip("abc", (0.9, 0.6, 0.62), strict=True)
    }


@pytest.fixture
def filled(tmp_path, scores):
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for model, values in scores.items():
            put(store, model, "val", values)
            put(store, model, "shift", values[::-1])
        put_numbers(store, "a", "val", Metric("top1", 0.5))
    return tmp_path


def test_two_models_on_a_setting(program, filled, scores):
    done = program("testbed", "compare", "a", "b", "--on", "val")
    expected = compare(scores["a"], scores["b"])
    line = done.stdout.splitlines()[2]
    for words in (
        "val",
        "300",
        f"{100 * expected.difference:+.2f} points".replace("-", "−"),
        f"{expected.only_first}",
        "a is better",
    ):
        assert words in line
    assert "McNemar" in done.stderr


def test_a_table_is_adjusted_as_a_whole(program, filled, scores):
    words = ("compare", "a", "b", "c", "--on", "val", "shift", "--json")
    rows = json.loads(program("testbed", *words).stdout)
    assert [(each["eval_setting"], each["first_model"], each["second_model"]) for each in rows] == [
        (setting, *pair) for setting in ("val", "shift") for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    pairs = [(scores[each["first_model"]], scores[each["second_model"]]) for each in rows]
    found = [compare(*pair) for pair in pairs]
    assert [each["p"] for each in rows] == pytest.approx([each.p for each in found])
    assert [each["p_holm"] for each in rows] == pytest.approx(holm([each.p for each in found]))
    assert [each["difference"] for each in rows] == pytest.approx([each.difference for each in found])
    assert [each["verdict"] for each in rows] == ["a is better", "a is better", "tied"] * 2


def test_settings_are_named_or_matched(program, filled):
    named = program("testbed", "compare", "a", "b", "--on", "shift", "val", "--json").stdout
    assert program("testbed", "compare", "a", "b", "--on", "*", "--json").stdout == named


def test_samples_are_paired_by_what_they_are(program, filled):
    with Store.open(str(filled / "testbed.db"), "write") as store:
        put(store, "late", "pets", [1, 0, 1, None], ["b", "c", "d", "e"])
        put(store, "early", "pets", [0, 1, 1, 1], ["a", "b", "d", "e"])
    (row,) = json.loads(program("testbed", "compare", "early", "late", "--on", "pets", "--json").stdout)
    assert (row["n"], row["first"], row["second"]) == (2, 1.0, 1.0)


def test_other_scores_can_be_compared(program, filled):
    with Store.open(str(filled / "testbed.db"), "write") as store:
        for name in ("nll", "width"):
            put(store, "x", f"pets-{name}", [0.5, 1.5, 0.2] * 20, name=name)
            put(store, "y", f"pets-{name}", [0.25, 1.0, 0.3] * 20, name=name)
    words = ("compare", "x", "y", "--on", "pets-nll", "--score", "nll")
    (row,) = json.loads(program("testbed", *words, "--json").stdout)
    assert row["difference"] == pytest.approx(0.65 / 3)
    assert row["consistency"] is None
    assert row["verdict"] == "y is better"  # of two losses the smaller one
    assert "0.7333" in program("testbed", *words).stdout  # no percent
    (row,) = json.loads(
        program("testbed", "compare", "x", "y", "--on", "pets-width", "--score", "width", "--json").stdout
    )
    assert row["verdict"] == "x is higher"  # nobody said which way is better


def test_mistakes_are_told(program, filled):
    with Store.open(str(filled / "testbed.db"), "write") as store:
        put(store, "other", "val", [1, 0], ["x", "y"])
    cases = {
        ("a", "--on", "val"): "at least two models",
        ("a", "a", "--on", "val"): "at least two models",
        ("a", "nobody", "--on", "val"): "nobody",
        ("a", "b", "--on", "nothing"): "nothing",
        ("a", "b", "--on", "val", "--score", "speed"): "no per-sample score 'speed'; it has top1",
        ("a", "other", "--on", "val"): "have no samples of val in common",
        ("a", "b"): "--on is missing; write: testbed compare a b --on SETTING",
    }
    for words, told in cases.items():
        done = program("testbed", "compare", *words, code=None)
        assert done.returncode != 0
        assert told in done.stderr


def test_samples_of_a_group_are_compared_as_one(tmp_path, ask):
    rng = np.random.default_rng(1)
    videos = (rng.uniform(size=(2, 30)) < [[0.9], [0.4]]).astype(float)
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for model, each in zip("ab", videos, strict=True):
            put(store, model, "alone", each)
            groups = [f"video {number}" for number in range(30) for _ in range(8)]
            put(store, model, "frames", np.repeat(each, 8), groups=groups)
    done = ask("compare", "a", "b", "--on", "frames")
    assert "240 in 30" in done.stdout
    assert "whole groups of samples of the data set are drawn and tested" in done.stderr
    assert "drawn and tested" not in ask("compare", "a", "b", "--on", "alone").stderr
    rows = {
        name: json.loads(ask("compare", "a", "b", "--on", name, "--json").stdout)[0] for name in ("alone", "frames")
    }
    assert (rows["frames"]["clusters"], rows["alone"]["clusters"]) == (30, None)
    width = {name: row["high"] - row["low"] for name, row in rows.items()}
    assert width["frames"] == pytest.approx(width["alone"], rel=0.1)
    done = ask("rank", "frames")
    assert "drawn and tested, 30 of them" in done.stderr
