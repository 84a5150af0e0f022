"""``testbed estimate``: accuracies without labels, beside the truth where it is stored."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_world import in_process
from stored_cells import put, samples_of

from testbed.db.store import Store

COUNT = 240
TARGETS = [place % 4 for place in range(COUNT)]


def logits_of(accuracy, seed, targets=TARGETS):
    """Logits of a model that is right this often, and less sure where it is wrong."""
    rng = np.random.default_rng(seed)
    right = rng.random(len(targets)) < accuracy
    said = np.where(right, targets, (np.array(targets) + 1) % 4)
    logits = rng.normal(0, 0.3, (len(targets), 4))
    logits[np.arange(len(targets)), said] += np.where(right, 4, 2) * rng.random(len(targets)) + 1
    return logits


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for place, model in enumerate(("good", "middling", "poor")):
            put(opened, model, "val", samples_of(TARGETS), logits_of(0.9 - 0.12 * place, place))
            put(
                opened, model, "rain", samples_of(TARGETS[:200]), logits_of(0.7 - 0.1 * place, 9 + place, TARGETS[:200])
            )
            put(opened, model, "wild", samples_of([[]] * COUNT), logits_of(0.7, 20 + place))  # nobody knows the classes
        yield opened


@pytest.fixture
def estimate(store, monkeypatch, capsys):
    with in_process(monkeypatch, capsys) as program:
        yield lambda *words: program("estimate", *words)


def test_the_error_stands_beside_where_labels_are_stored(estimate):
    done = estimate("*", "--on", "rain", "wild", "--from", "val")
    found = json.loads(estimate("*", "--on", "rain", "wild", "--from", "val", "--json").stdout)
    assert done.returncode == 0
    rows = {(row["model"], row["eval_setting"]): row for row in found["estimates"]}
    assert len(rows) == 6
    for (model, setting), row in rows.items():
        assert (row["true"] is None) == (setting == "wild")
        assert set(row["estimates"]) == {*("confidence", "DoC", "ATC-MC", "ATC-NE", "ALine-S", "ALine-D")}
        line = next(line for line in done.stdout.splitlines() if line.startswith(model) and setting in line)
        value = row["estimates"]["DoC"]
        shown = f"{100 * value:.2f}"
        if row["true"] is not None:
            shown += f" ({100 * (value - row['true']):+.1f})".replace("-", "−")
        assert shown in line
    for each in found["summary"]:
        errors = [
            abs(rows[model, "rain"]["estimates"][each["method"]] - rows[model, "rain"]["true"])
            for model in ("good", "middling", "poor")
        ]
        assert each["mean_absolute"] == pytest.approx(np.mean(errors))
        assert (each["cells"], each["largest"]) == (3, pytest.approx(max(errors)))
    order = [each["mean_absolute"] for each in found["summary"]]
    assert order == sorted(order)
    assert "not measured values, from val, where labels are used" in done.stderr
    bent = [setting for setting, line in found["lines"].items() if line["r2"] < 0.95]
    assert f"agreements do not lie on a line (R² below 0.95) on {', '.join(bent)}: ALine is" in done.stderr


def test_labels_of_the_shift_are_not_used(estimate, store):
    before = json.loads(estimate("good", "--on", "rain", "--from", "val", "--json").stdout)["estimates"][0]
    others = [(target + 2) % 4 for target in TARGETS[:200]]
    put(store, "good", "rain", samples_of(others), logits_of(0.7, 9, TARGETS[:200]))
    after = json.loads(estimate("good", "--on", "rain", "--from", "val", "--json").stdout)["estimates"][0]
    assert after["true"] != before["true"]
    assert after["estimates"] == before["estimates"]


def test_a_temperature_makes_confidence_that_of_the_known_setting(estimate, store):
    put(store, "boasting", "val", samples_of(TARGETS), 10 * logits_of(0.8, 3))
    put(store, "boasting", "rain", samples_of(TARGETS[:200]), 10 * logits_of(0.8, 4, TARGETS[:200]))
    words = ("boasting", "--on", "rain", "--from", "val", "--json")
    plain, calibrated = (json.loads(estimate(*words, *more).stdout) for more in ((), ("--calibrate",)))
    errors = [abs(each["summary"][0]["mean_absolute"]) for each in (plain, calibrated)]
    by_confidence = [each["estimates"][0]["estimates"]["confidence"] for each in (plain, calibrated)]
    assert calibrated["temperatures"]["boasting"] > 5
    assert by_confidence[0] > 0.97 > by_confidence[1]
    assert max(errors) < 0.15


def test_one_or_two_models_have_no_line(estimate):
    done = estimate("good", "poor", "--on", "rain", "--from", "val")
    assert "ALine" not in done.stdout
    assert "ALine requires at least three models" in done.stderr


def test_other_classes_and_missing_models_are_told(estimate, store):
    put(
        store, "good", "two", samples_of([0, 1] * 50), logits_of(0.8, 5, [0, 1] * 50)[:, :2], class_names=("ant", "bee")
    )
    done = estimate("*", "--on", "two", "--from", "val")
    assert "two has 2 classes to choose from, val 4" in done.stderr
    put(store, "stranger", "rain", samples_of(TARGETS[:200]), logits_of(0.5, 8, TARGETS[:200]))
    done = estimate("*", "--on", "rain", "--from", "val")
    assert "left out on rain: stranger (no outputs on val)" in done.stderr
    assert done.stdout.splitlines()[2].startswith("good ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["good", "--on", "val", "--from", "val"],
            "val is the setting whose labels are used; estimate the accuracy on",
        ),
        (["good", "--on", "rian", "--from", "val"], "unknown eval setting 'rian' in the store; did you mean 'rain'"),
        (["good", "--on", "rain", "--from", "vall"], "unknown eval setting 'vall' in the store; did you mean 'val'"),
        (["goood", "--on", "rain", "--from", "val"], "unknown model 'goood' in the store; did you mean 'good'"),
        (["good", "--on", "nothing*", "--from", "val"], "nothing*"),
        (["good", "--on", "rain", "--from", "wild"], "no samples with top1"),
    ],
)
def test_a_wrong_question_is_refused_in_a_line(estimate, words, said):
    done = estimate(*words)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_outputs_without_logits_are_refused(estimate, store):
    put(store, "good", "said", samples_of(TARGETS), None)
    done = estimate("good", "--on", "said", "--from", "val")
    assert done.stderr.splitlines()[-1] == "Error: good on said has no stored logits to take predicted classes from"
