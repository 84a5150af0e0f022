"""Values from stored outputs alone, compared with numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stored_cells import SPECS, put, samples_of

from testbed.db.store import Store
from testbed.entities import Metric, Score
from testbed.errors import StoreError
from testbed.extensions.explain.axis import Axis, Stage
from testbed.extensions.explain.search import explain
from testbed.registry import Catalog

N, C = 530, 12
RANDOM = np.random.default_rng(0)
LABELS = RANDOM.choice(C, N, p=np.asarray([6, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1]) / 31)
LOGITS = RANDOM.normal(size=(N, C)).astype(np.float32)
LOGITS[np.arange(N), LABELS] += 1.5
GUESSES = LOGITS.argmax(axis=1)
NAMES = [f"class {chr(ord('z') - place)}" for place in range(C)]


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "s.db")) as store:
        yield store


def found(store, published=0.5, model="m", setting="s", metric="top1", rounding=0.00005):
    published = {metric: (published, rounding)}
    return explain(store, Catalog([], entry_points=False), model, setting, published, stages=[Stage.SCORES])


def value(explanation, name):
    [row] = [each for each in explanation.rows if each.variants[0].name == name]
    [estimate] = row.estimates
    assert (estimate.error, estimate.samples) == (0, 0)
    return estimate.value


def test_class_orders_that_people_confuse(store):
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)
    told = found(store)
    as_text = sorted(range(C), key=str)  # 0, 1, 10, 11, 2, …
    place = [as_text.index(label) for label in range(C)]
    expected = {
        "folders 0, 1, 10, 2 sorted as text": np.mean(np.asarray(place)[LABELS] == GUESSES),
        "numbers for folders that were sorted as text": np.mean(np.asarray(as_text)[LABELS] == GUESSES),
        "classes sorted by name": np.mean(GUESSES == C - 1 - LABELS),  # the names go from z down
        "labels one too high (1 for the first class)": np.mean(GUESSES == LABELS + 1),
        "labels one too low (a background class first)": np.mean(GUESSES == LABELS - 1),
    }
    for name, wanted in expected.items():
        assert value(told, name) == pytest.approx(wanted, abs=1e-12), name
    assert told.targets[0].stored == pytest.approx(np.mean(GUESSES == LABELS), abs=1e-12)
    assert told.images_read == told.forwards == told.texts == 0


def test_samples_that_are_left_out(store):
    samples = samples_of(LABELS.tolist(), slices=[{"part": "ab"[place % 2]} for place in range(N)])
    samples[7] = replace(samples[7], digest=samples[3].digest)
    logits = LOGITS.copy()
    logits[11] = np.nan
    evaluation = put(store, "m", "s", samples, logits, NAMES)
    store.outputs.append([], {evaluation.id: {11: "damaged"}})
    right = GUESSES == LABELS
    right[11] = False
    told = found(store)
    alone = ~np.isin(np.arange(N), [3, 7])
    for name, wanted in {
        "the first 100": right[:100],
        "the last 18 dropped (batches of 32, 64, 128, 256, 512)": right[:512],
        "only part = b": right[1::2],
        "repeated images count once": np.delete(right, 7),
        "repeated images left out": right[alone],
        "unreadable images left out": np.delete(right, 11),
    }.items():
        assert value(told, name) == pytest.approx(np.mean(wanted), abs=1e-12), name
    assert not any(each.variants[0].name == "the first 1,000" for each in told.rows)


def test_other_metrics_and_classes(store):
    sublist = [0, 1, 2, 5, 8]
    kept = np.isin(LABELS, sublist)
    targets = [sublist.index(label) for label in LABELS[kept]]
    view = {"class_sublist": sublist, "metric": {"scorer": "classification@2"}}
    put(store, "m", "s", samples_of(targets), LOGITS[kept], None, view=view)
    told = found(store)
    among = LOGITS[kept][:, sublist].argmax(axis=1)
    assert told.targets[0].stored == pytest.approx(np.mean(among == targets), abs=1e-12)
    assert value(told, "all 12 classes compete") == pytest.approx(np.mean(GUESSES[kept] == LABELS[kept]), abs=1e-12)
    recalls = [np.mean(among[np.asarray(targets) == label] == label) for label in range(5)]
    assert value(told, "mean per class") == pytest.approx(np.mean(recalls), abs=1e-12)
    assert "top-5" not in [each.variants[0].name for each in told.rows]  # of five classes


def test_only_classes_that_have_samples(store):
    kept = LABELS < 4
    put(store, "m", "s", samples_of(LABELS[kept].tolist()), LOGITS[kept], NAMES)
    wanted = np.mean(LOGITS[kept][:, :4].argmax(axis=1) == LABELS[kept])
    assert value(found(store), "only the 4 classes that have samples compete") == pytest.approx(wanted, abs=1e-12)


def test_other_labels_of_the_same_images(store):
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)
    real = [[int(label), int((label + 1) % C)] if place % 3 else [] for place, label in enumerate(LABELS)]
    put(store, "other", "real", samples_of(real), LOGITS, NAMES, scores=[])
    right = [GUESSES[place] in each for place, each in enumerate(real) if each]
    assert value(found(store), "the labels of real") == pytest.approx(np.mean(right), abs=1e-12)


def test_other_labels_in_another_order_of_the_classes(store):
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)
    others = [int(label) for label in RANDOM.permutation(LABELS)]
    put(store, "other", "shuffled", samples_of(others), LOGITS, NAMES, scores=[])
    told = found(store, float(np.mean(np.asarray(others) + 1 == GUESSES)))
    wanted = {"the labels of shuffled", "labels one too high (1 for the first class)"}
    assert any({each.name for each in row.variants} == wanted for row in told.combinations)


def answers(store, setting, scores):
    metric = Metric("accuracy", float(np.mean(scores)), len(scores))
    evaluation = put(store, "m", setting, samples_of([""] * len(scores)), None, None, scores=[])
    store.evaluations.complete(evaluation.id, [Score("score", np.asarray(scores, dtype=np.float32))], [metric])


def test_answers_have_the_variants_of_samples(store):
    scores = (np.arange(150) % 3 == 0).astype(float)
    answers(store, "questions", scores)
    told = found(store, 0.34, setting="questions", metric="accuracy")
    assert value(told, "the first 100") == pytest.approx(0.34)
    assert told.rows[0].verdict == "gives it"
    assert told.not_tried["metric"] == "the task is not classification"
    with pytest.raises(StoreError, match="'top1' of m on questions is neither a share of right answers"):
        found(store, setting="questions")


def test_pairs_are_tried_where_no_single_variant_gives_it_and_chance_is_said(store):
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)
    top5 = (np.argsort(-LOGITS, axis=1)[:, :5] == (LABELS[:, None] + 1)).any(axis=1)
    told = found(store, float(np.mean(top5)))
    pairs = {frozenset(each.name for each in row.variants) for row in told.combinations if row.verdict == "gives it"}
    assert not [each for each in told.rows if each.verdict == "gives it"]
    assert {"labels one too high (1 for the first class)", "top-5"} in pairs
    assert told.combinations_tried > 100
    assert "No single variant gives it" in told.sentence() or "no single variant gives it" in told.sentence()
    assert SPECS["top1"].zero_one  # what the targets are shares of


def test_several_metrics_exclude_what_one_does_not(store):
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)
    right = GUESSES[:200] == LABELS[:200]
    top5 = (np.argsort(-LOGITS[:200], axis=1)[:, :5] == LABELS[:200, None]).any(axis=1)
    published = {"top1": (float(np.mean(right)), 5e-5), "top5": (float(np.mean(top5)), 5e-5)}
    catalog = Catalog([], entry_points=False)
    told = explain(store, catalog, "m", "s", published, stages=[Stage.SCORES])
    assert [each.name for each in told.giving] == ["first samples: the first 200"]
    assert told.not_tried["metric"] == "several published metrics are given"
    wrong = explain(store, catalog, "m", "s", {**published, "top5": (0.2, 5e-5)}, stages=[Stage.SCORES])
    assert not any(each.verdict == "gives it" for each in wrong.rows)


def test_pairs_of_large_effects_are_among_those_that_are_tried(store, monkeypatch):
    """Where each of two changes leaves a quarter of the answers right, both leave a sixteenth, not less than none."""
    monkeypatch.setattr("testbed.extensions.explain.search.MOST_COMBINATIONS", 10)
    put(store, "m", "s", samples_of(LABELS.tolist()), LOGITS, NAMES)

    def axis(name, share):
        wrong = np.flatnonzero(np.random.default_rng(len(name) + ord(name[0])).random(N) < share)

        def change(table):
            right = np.where(np.isin(table.rows, wrong)[:, None], C, table.right)  # a class that has no logit
            return replace(table, right=right)

        return Axis(name, Stage.SCORES, lambda cell: [("wrong", change)]), wrong

    axes, wrongs = zip(*(axis(name, share) for name, share in [("a", 0.75), ("bb", 0.75)]), strict=True)
    mild = [axis(f"{letter} mild", 0.01)[0] for letter in "cdefghij"]
    right = GUESSES == LABELS
    right[np.concatenate(wrongs)] = False
    published = {"top1": (float(right.mean()), 5e-5)}
    told = explain(store, Catalog([], entry_points=False), "m", "s", published, given=[*axes, *mild])
    assert "a: wrong + bb: wrong" in [row.name for row in told.giving]
    assert told.combinations_tried == 10
