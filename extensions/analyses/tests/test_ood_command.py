"""``testbed ood``: stored logits of samples of known classes against those of others."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from stored_cells import put, samples_of

from testbed.db.store import Store

N = 120
NUMBERS = ("auroc", "fpr95", "aupr_out", "aupr_in")


def logits_of(seed, sure, n=N):
    """Logits of four classes, the larger the surer."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 4))
    values[np.arange(n), rng.integers(4, size=n)] += sure
    return values.astype(np.float32)


KNOWN = {"a": logits_of(0, 4), "b": logits_of(1, 2)}
NEAR = {"a": logits_of(2, 2), "b": logits_of(3, 1.5)}
FAR = {"a": logits_of(4, 0), "b": logits_of(5, 0)}


def named(prefix, targets, **fields):
    return samples_of(targets, [f"{prefix}/{place}.png" for place in range(len(targets))], **fields)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for setting, of, targets in (("val", KNOWN, [0, 1] * 60), ("near", NEAR, [2] * N), ("far", FAR, [3] * N)):
            for model, logits in of.items():
                put(opened, model, setting, named(setting, targets), logits)
        yield opened


def rows_of(done):
    return {(row["model"], row["score"], row["eval_setting"]): row for row in json.loads(done.stdout)}


def softmax(logits):
    values = np.exp(logits.astype(np.float64))
    return values / values.sum(axis=1, keepdims=True)


def test_the_numbers_are_scikit_learns_with_what_is_unknown_as_positive(store, ask):
    done = ask("ood", "a", "b", "--in", "val", "--out", "near", "--score", "msp", "--json")
    rows = rows_of(done)
    assert list(rows) == [("a", "msp", "near"), ("b", "msp", "near")]
    unlike = -np.concatenate([softmax(each).max(axis=1) for each in (NEAR["a"], KNOWN["a"])])
    out = np.arange(2 * N) < N
    row = rows["a", "msp", "near"]
    assert (row["in"], row["kind"], row["n_in"], row["n_out"]) == ("val", "out", N, N)
    assert row["auroc"]["value"] == pytest.approx(roc_auc_score(out, unlike), abs=1e-9)
    assert row["aupr_out"]["value"] == pytest.approx(average_precision_score(out, unlike), abs=1e-9)
    assert row["aupr_in"]["value"] == pytest.approx(average_precision_score(~out, -unlike), abs=1e-9)
    for number in NUMBERS:
        assert row[number]["low"] < row[number]["value"] < row[number]["high"]
    threshold = np.sort(unlike[:N])[int(0.05 * N)]
    assert row["fpr95"]["value"] == pytest.approx((unlike[N:] >= threshold).mean())


def test_near_and_far_have_means(store, ask):
    for model in ("a", "b"):
        put(store, model, "near2", named("near2", [2] * 40), logits_of(9, 3, 40))
    rows = rows_of(ask("ood", "*", "--in", "val", "--near", "near*", "--far", "far", "--score", "energy", "--json"))
    assert [key[2] for key in rows if key[0] == "a"] == ["near", "near2", "mean", "far"]
    one, two, mean = (rows["a", "energy", each] for each in ("near", "near2", "mean"))
    assert (mean["n_out"], mean["kind"]) == (160, "near")
    for number in NUMBERS:
        assert mean[number]["value"] == pytest.approx((one[number]["value"] + two[number]["value"]) / 2)
        assert mean[number]["stderr"] < max(one[number]["stderr"], two[number]["stderr"])


def test_the_table_says_each_name_once(store, ask):
    done = ask("ood", "a", "b", "--in", "val", "--near", "near", "--far", "far", "--score", "msp", "gen")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[0][:2] == ["model", "score"]
    assert [line[0] for line in lines[2:]] == ["a", "far", "gen", "far", "b", "far", "gen", "far"]
    assert "positive: those out of it" in done.stderr


def test_kl_matching_sets_a_tenth_aside_or_fits_on_another_setting(store, ask):
    words = ("ood", "a", "--in", "val", "--out", "far", "--score", "kl_matching", "msp", "--json")
    done = ask(*words)
    assert {row["n_in"] for row in json.loads(done.stdout)} == {108}
    assert "a tenth of the samples of val fit kl_matching; 12 of the 120 samples" in done.stderr
    put(store, "a", "val-part", named("val", [0, 1] * 20), KNOWN["a"][:40])
    done = ask(*words, "--fit", "val-part")
    assert {row["n_in"] for row in json.loads(done.stdout)} == {80}
    assert "samples of val-part fit kl_matching; 40 of the 120 samples of val are among them" in done.stderr
    assert all(row["auroc"]["value"] > 0.7 for row in json.loads(done.stdout))


def test_samples_of_no_class_are_the_unknown_ones_of_a_setting_with_both(store, ask):
    both = named("both", [-1] * 60 + [0] * 60)
    put(store, "a", "both", both, FAR["a"], scores=[])
    done = ask("ood", "a", "--in", "val", "--out", "both", "--score", "msp", "--json")
    assert json.loads(done.stdout)[0]["n_out"] == 60
    assert "only the 60 samples of both without a class count" in done.stderr


def test_unreadable_samples_count_as_wrong(store, ask):
    unread = FAR["a"].copy()
    unread[:30] = np.nan
    put(store, "a", "torn", named("torn", [3] * N), unread)
    words = ("ood", "a", "--in", "val", "--out", "far", "torn", "--score", "msp", "--json")
    rows = rows_of(ask(*words))
    whole, torn = rows["a", "msp", "far"]["auroc"]["value"], rows["a", "msp", "torn"]["auroc"]["value"]
    assert whole - 0.26 < torn < whole - 0.15


def test_groups_of_the_data_set_widen_the_interval(store, ask):
    rng = np.random.default_rng(7)
    videos = rng.normal(size=(12, 4)).repeat(10, axis=0) * 2
    groups = [f"video {place // 10}" for place in range(N)]
    put(store, "a", "alone", named("alone", [2] * N), videos)
    put(store, "a", "videos", named("videos", [2] * N, group=groups), videos)
    rows = rows_of(ask("ood", "a", "--in", "val", "--out", "alone", "videos", "--score", "max_logit", "--json"))
    alone, grouped = (rows["a", "max_logit", each]["auroc"] for each in ("alone", "videos"))
    assert alone["value"] == grouped["value"]
    assert grouped["stderr"] > 1.5 * alone["stderr"]


def test_classes_are_restricted_as_in_the_distribution(store, ask):
    sublist = {"class_sublist": [0, 1], "metric": {"scorer": "classification@2"}}
    put(store, "a", "val-two", named("two", [0, 1] * 60), KNOWN["a"], view=sublist)
    done = ask("ood", "a", "--in", "val-two", "--out", "far", "--score", "msp", "--json")
    unlike = -np.concatenate([softmax(each[:, :2]).max(axis=1) for each in (FAR["a"], KNOWN["a"])])
    assert json.loads(done.stdout)[0]["auroc"]["value"] == pytest.approx(roc_auc_score(np.arange(2 * N) < N, unlike))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a", "--in", "val"), "no settings out of the distribution were given; use --out, --near or --far"),
        (("a", "--in", "val", "--out", "val"), "val is in the distribution, so it cannot also be out of it"),
        (("a", "--in", "val", "--out", "far", "--far", "far"), "far is given twice"),
        (("a", "--in", "val", "--out", "far", "--score", "mps"), "unknown score 'mps'; expected any of msp, max_logit"),
        (
            ("a", "--in", "val", "--out", "far", "--score", "gen", "--fit", "near"),
            "near would fit kl_matching, which is",
        ),
        (("a", "--in", "val", "--out", "farther"), "farther"),
        (("a", "--in", "val", "--out", "x*"), "x*"),
        (("c", "--in", "val", "--out", "far"), "c"),
        (
            ("a", "--in", "val", "--out", "far", "--fit", "val"),
            "all samples of val are used to fit",
        ),
        (("a", "--in", "val", "--out", "far", "--fit", "nothing"), "nothing"),
        (("a", "--in", "val", "--out", "wide"), "a has 6 classes on wide, but 4 on val; both need the same"),
        (("a", "--in", "val", "--out", "bare"), "a on bare has no stored logits"),
    ],
)
def test_a_mistake_gives_one_line(store, refusal, words, said):
    put(store, "a", "wide", named("wide", [0] * 6), np.zeros((6, 6)), class_names=None)
    put(store, "a", "bare", named("bare", [0] * 6), None)
    assert said in refusal("ood", *words)
