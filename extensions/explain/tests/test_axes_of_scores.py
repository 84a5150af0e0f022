"""Metrics, class orders and subsets that people confuse, from stored outputs alone: compared with numpy and sklearn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score
from stored_cells import put, samples_of

from testbed.db.store import Store
from testbed.entities import Metric, Score
from testbed.extensions.explain.axis import Stage
from testbed.extensions.explain.search import explain
from testbed.registry import Catalog

N, C = 900, 12
RANDOM = np.random.default_rng(1)
NUMBERS = RANDOM.choice(C, N)  # the model's classes
OUTPUTS = RANDOM.normal(size=(N, C)).astype(np.float32)
OUTPUTS[np.arange(N), NUMBERS] += 1.2
OUTPUTS[np.arange(N), (NUMBERS + 1) % C] += 0.7  # so that shifts give something
FOLDERS = np.asarray(sorted(range(C), key=str))  # folder "10" is the third one: the setting's order
LABELS = np.argsort(FOLDERS)[NUMBERS]
GUESSES = OUTPUTS.argmax(axis=1)
RIGHT = GUESSES == NUMBERS


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "s.db")) as store:
        forward = {"class_columns": FOLDERS.tolist()}
        names = [str(each) for each in FOLDERS]
        found = put(store, "m", "s", samples_of(LABELS.tolist()), OUTPUTS[:, FOLDERS], names, forward=forward)
        scores = [Score("top1", RIGHT.astype(np.float32))]
        rates = [Metric("macro_f1", 0.4321, N), Metric("ece", 0.0721, N), Metric("nll", 0.55, N, unit="nats")]
        store.evaluations.complete(found.id, scores, [Metric("top1", float(RIGHT.mean()), N), *rates])
        yield store


def ask(store, value, *more):
    published = {"top1": (round(float(value), 4), 5e-5), **dict(more)}
    return explain(store, Catalog([], entry_points=False), "m", "s", published, stages=[Stage.SCORES])


def gives(store, value):
    return [row.name for row in ask(store, value).rows if row.verdict == "gives it"]


def test_each_stored_rate_and_what_is_missing_to_100_is_tried(store):
    assert "another metric: macro_f1" in gives(store, 0.4321)
    assert "another metric: 100 − macro_f1" in gives(store, 0.5679)
    assert "another metric: 100 − ece" in gives(store, 0.9279)
    assert "metric: 100 − top-1" in gives(store, 1 - RIGHT.mean())
    assert not any("nll" in row.name for row in ask(store, 0.55).rows)  # no rate


def test_metrics_that_the_store_lacks_are_computed(store):
    weighted = f1_score(NUMBERS, GUESSES, average="weighted")
    shifted = np.exp(OUTPUTS - OUTPUTS.max(axis=1, keepdims=True)).astype(np.float64)
    probability = (shifted / shifted.sum(axis=1, keepdims=True))[np.arange(N), NUMBERS].mean()
    assert "another metric: weighted_f1" in gives(store, weighted)
    assert "another metric: mean probability of the right class" in gives(store, probability)


def test_a_metric_of_all_samples_is_not_combined(store):
    told = ask(store, 0.1234)
    assert not any(len(row.variants) > 1 and "another metric" in row.name for row in told.combinations)
    assert "another metric" in ask(store, 0.3, ("top5", (0.9, 5e-5))).not_tried


@pytest.mark.parametrize(("by", "name"), [(1, "labels one too high"), (-1, "labels one too low")])
def test_labels_off_by_one_in_the_order_of_the_model(store, by, name):
    value = np.mean(NUMBERS + by == GUESSES)
    assert f"class order: {name}, in the model's order" in gives(store, value)


def test_the_models_outputs_with_the_folders_labels(store):
    assert any(each.startswith("class order: ") for each in gives(store, np.mean(GUESSES == LABELS)))


@pytest.mark.parametrize(
    "kept", [NUMBERS < 10, NUMBERS % 2 == 0, NUMBERS % 2 == 1, LABELS < 10, LABELS % 2 == 0, NUMBERS >= 6]
)
def test_some_of_the_classes(store, kept):
    assert any(each.startswith("candidate classes: ") for each in gives(store, RIGHT[kept].mean()))
    classes = np.unique(NUMBERS[kept])
    among = classes[OUTPUTS[kept][:, classes].argmax(axis=1)]
    assert any(each.startswith("candidate classes: ") for each in gives(store, np.mean(among == NUMBERS[kept])))


def test_the_first_samples_of_each_class(store):
    kept = np.concatenate([np.flatnonzero(each == NUMBERS)[:20] for each in range(C)])
    assert "first samples of classes: the first 20 of each class" in gives(store, RIGHT[kept].mean())


def test_what_cannot_be_tried_is_named(store):
    told = ask(store, 0.1234)
    assert {"batch statistics of training", "mean over several settings (mCE)", "another split"} <= set(told.not_tried)
    assert told.by_chance > 0
