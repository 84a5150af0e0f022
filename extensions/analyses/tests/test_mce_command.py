"""``testbed mce``: mean corruption error of stored results."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.extensions.analyses.corruption_error import ALEXNET, ALEXNET_CLEAN
from testbed.metric_specs import rate

N = 100
TARGETS = [0, 1] * (N // 2)
ERRORS = {"good": 10, "bad": 40}


def answers(wrong):
    return saying([2 if place < wrong else target for place, target in enumerate(TARGETS)])


def cell(store, model, setting, wrong, **fields):
    metric = replace(rate("top1", zero_one=True).metric(1 - wrong / N, N), headline=10)
    put(store, model, setting, samples_of(TARGETS, **fields), answers(wrong), metric=metric)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "testbed.db"
    with Store.create(str(path)) as opened:
        for model, wrong in ERRORS.items():
            cell(opened, model, "val", wrong)
            for severity in (1, 2, 3, 4, 5):
                for corruption in ALEXNET:
                    cell(opened, model, f"imagenet-c.{corruption}.{severity}_on-disk", wrong + severity * 6)
    return path


@pytest.fixture
def store(made, tmp_path):
    shutil.copy(made, tmp_path / "testbed.db")
    with Store.open(str(tmp_path / "testbed.db"), "write") as opened:
        yield opened


def rows_of(done):
    return {row["model"]: row for row in json.loads(done.stdout)}


def test_errors_are_divided_by_alexnets(store, ask):
    rows = rows_of(ask("mce", "--json"))
    assert list(rows) == ["good", "bad"]
    for model, wrong in ERRORS.items():
        row, error = rows[model], (wrong + 18) / N
        assert row["mce"] == pytest.approx(np.mean([error / each for each in ALEXNET.values()]))
        lost = [(error - wrong / N) / (each - ALEXNET_CLEAN) for each in ALEXNET.values()]
        assert (row["relative"], row["clean"]) == pytest.approx((np.mean(lost), wrong / N))
        assert row["errors"]["fog"] == pytest.approx(error / ALEXNET["fog"])
        assert row["low"] < row["mce"] < row["high"]
        assert row["relative_low"] < row["relative"] < row["relative_high"]


def test_any_model_can_be_the_baseline(store, ask):
    rows = rows_of(ask("mce", "--baseline", "bad", "--json"))
    assert (rows["bad"]["mce"], rows["bad"]["relative"], rows["bad"]["low"]) == (1, 1, None)
    assert rows["good"]["mce"] == pytest.approx(28 / 58)
    assert rows["good"]["baseline"] == "bad"
    for model in ("one", "two"):
        cell(store, model, "own", 5)
        for severity in (2, 4):
            cell(store, model, f"own-c.rain.{severity}", 20 if model == "one" else 40)
    row = rows_of(ask("mce", "--on", "own-c.*", "--clean", "own", "--baseline", "two", "--json"))["one"]
    assert (row["mce"], row["relative"]) == pytest.approx((0.5, 15 / 35))


def test_the_table(store, ask):
    done = ask("mce", "good", "bad")
    lines = done.stdout.splitlines()
    assert lines[2].split()[:2] == ["good", "10.00"]
    assert lines[5].split() == ["CE", "good", "bad"]
    assert len(lines) == 7 + 15
    assert "in % of the errors of AlexNet, as published" in done.stderr


def test_what_is_missing_is_said(store, ask):
    cell(store, "part", "imagenet-c.fog.1_on-disk", 5)
    done = ask("mce", "--json")
    row = rows_of(done)["part"]
    assert (row["mce"], row["clean"], len(row["missing"])) == (None, None, 75)
    assert (
        "part has no result on 75 of 76 cells; run: testbed run 'part' --on imagenet-c.gaussian_noise.1_on-disk"
        in done.stderr
    )
    cell(store, "good", "imagenet-c.spatter.1_on-disk", 5)
    assert "not among them: spatter" in ask("mce", "good").stderr


def test_groups_of_images_widen_the_interval(store, ask):
    groups = [f"scene {place // 10}" for place in range(N)]
    for model in ("one", "two"):
        cell(store, model, "own", 5, group=groups)
        cell(store, model, "own-c.rain.1", 20 if model == "one" else 60, group=groups)
        cell(store, model, "alone-c.rain.1", 20 if model == "one" else 60)
    words = ("--clean", "own", "--baseline", "two", "--json")
    alone, grouped = (rows_of(ask("mce", "one", "--on", f"{each}-c.*", *words))["one"] for each in ("alone", "own"))
    for low, high in (("low", "high"), ("relative_low", "relative_high")):
        assert grouped[high] - grouped[low] > 1.5 * (alone[high] - alone[low])


def test_relative_mce_has_no_interval_where_the_clean_images_are_others(store, ask):
    for model in ("one", "two"):
        cell(store, model, "own", 5, ids=[f"other {place}" for place in range(N)])
        cell(store, model, "own-c.rain.1", 20 if model == "one" else 60)
    words = ("mce", "one", "--on", "own-c.*", "--clean", "own", "--baseline", "two", "--json")
    row = rows_of(ask(*words))["one"]
    assert (row["relative"], row["relative_low"]) == (pytest.approx(15 / 55), None)
    assert row["low"] is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "own-c.*", "--clean", "val"), "AlexNet's published errors are for imagenet-c, not for own-c"),
        (("--on", "val2"), "val2 is not a corruption: expected FAMILY.CORRUPTION.SEVERITY"),
        (("--on", "own-c.rain.1", "imagenet-c.fog.1_on-disk"), "expected corruptions of one family"),
        (("--on", "nothing*"), "nothing*"),
        (("nobody",), "nobody"),
        (("--baseline", "part"), "the baseline part has no results for 75 of 76 cells, such as val"),
        (("--baseline", "nobody"), "nobody"),
        (("--on", "own-c.*", "--clean", "own", "--baseline", "perfect"), "perfect makes no errors under rain"),
        (("--on", "imagenet-c.fog.1_in-memory"), "no model has results on imagenet-c.gaussian_noise.1_in-memory"),
    ],
)
def test_a_mistake_gives_one_line(store, refusal, words, said):
    cell(store, "part", "imagenet-c.fog.1_on-disk", 5)
    cell(store, "perfect", "own-c.rain.1", 0)
    cell(store, "perfect", "own", 0)
    cell(store, "one", "val2", 1)
    assert said in refusal("mce", *words)
