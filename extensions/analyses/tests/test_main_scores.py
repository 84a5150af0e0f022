"""Analyses of settings without top1: their main score, or the names of those that there are."""

from __future__ import annotations

import json

import numpy as np
import pytest
from stored_cells import put, samples_of

from testbed.db.store import Store
from testbed.entities import Score

CAPTIONS = [["a cat", "one cat"], ["a dog"], ["an owl"], ["a bee"]]
CHOICES = [{"captions": ["a cat", "a dog"], "answer": answer} for answer in (0, 1, 0)]
RECALLS = {"ours": [1, 1, 0.5, 1], "theirs": [0.5, 0, 0, 1]}


@pytest.fixture
def filled(tmp_path):
    """Two models on a setting for retrieval and one for selection, and one without per-sample scores."""
    with Store.create(str(tmp_path / "testbed.db")) as store:
        for model, values in RECALLS.items():
            recalls = [Score("image_retrieval_recall@5", np.float32(values), "t@1")]
            recalls += [Score("text_retrieval_recall@5", np.ceil(np.float32(values)).astype(np.uint8), "t@1")]
            recalls += [Score("text_retrieval_rank", np.float32([1, 2, 3, 1]), "t@1")]
            put(store, model, "captions", samples_of(CAPTIONS), None, scores=recalls)
            right = np.float32([model == "ours", 0, 1])
            put(store, model, "choices", samples_of(CHOICES), None, scores=[Score("acc", right, "t@1")])
            put(store, model, "labels", samples_of([[0, 1]]), None, scores=[])
            put(store, model, "own", samples_of([0]), None, scores=[Score("speed", np.float32([3]), "t@1")])


@pytest.mark.usefixtures("filled")
def test_models_are_ranked_and_compared_by_the_main_score(ask):
    ranked = json.loads(ask("rank", "captions", "--json").stdout)
    assert [(each["model"], each["score"], each["value"]) for each in ranked] == [
        ("ours", "image_retrieval_recall@5", 0.875),
        ("theirs", "image_retrieval_recall@5", 0.375),
    ]
    assert "larger is better" in ask("rank", "captions").stderr
    (compared,) = json.loads(ask("compare", "ours", "theirs", "--on", "choices", "--json").stdout)
    assert (compared["score"], compared["difference"]) == ("acc", pytest.approx(1 / 3))


@pytest.mark.usefixtures("filled")
def test_the_hardest_samples_are_those_of_a_score_of_0_and_1(ask):
    hard = json.loads(ask("hardest", "captions", "--json").stdout)
    assert [(each["target_name"], each["wrong"]) for each in hard] == [
        *(("a dog", 1), ("an owl", 1), ("a cat / one cat", 0), ("a bee", 0)),
    ]
    said = ask("hardest", "choices")
    assert "a dog" in said.stdout.splitlines()[2]
    assert "by acc;" in said.stderr
    assert "text_retrieval_recall@5" in ask("agreement", "captions").stdout


@pytest.mark.usefixtures("filled")
def test_without_a_main_score_the_others_are_listed(ask):
    assert "labels has no per-sample scores; its metrics are top1" in ask("rank", "labels", code=1).stderr
    message = "there is no main per-sample score: own has speed; --score chooses one"
    assert message in ask("compare", "ours", "theirs", "--on", "own", code=1).stderr
    message = "no common main per-sample score: captions has image_retrieval_recall@5, text_retrieval_rank"
    assert message in ask("rank", "captions", "choices", code=1).stderr
    assert "--better higher" in ask("rank", "own", "--score", "speed", code=1).stderr
    assert "larger is better" in ask("rank", "own", "--score", "speed", "--better", "higher").stderr


def test_the_grid_and_exports_go_by_the_main_metric_of_each_setting(program, ask, tmp_path):
    settings = ("digits", "digits-captions", "digits-selection", "digits-pairs")
    program("eval.py", "--models", "digits-clip", "--eval-settings", *settings, "--executor", "inline")
    said = ask("grid", "digits", "digits-*", "--format", "markdown").stdout.splitlines()
    assert said[0] == (
        "| top1 (or the metric named), % | digits | digits-captions (image_retrieval_recall@5)"
        " | digits-pairs (mean_average_precision) | digits-selection (acc) |"
    )
    (row,) = json.loads(ask("grid", *settings, "--json").stdout)
    assert (row["digits-captions"], row["metrics"]["digits-selection"]) == (1, "acc")
    assert "no column" in ask("grid", "digits-captions", "--metric", "top1", code=1).stderr
    from testbed.extensions.explorer.arrays import right_counts
    from testbed.extensions.explorer.export import choose_samples
    from testbed.stored_results.evaluated import SettingSamples

    with Store.open(str(tmp_path / "testbed.db")) as store:
        spread, hardest = choose_samples(store, ["digits-selection"], 2)["digits-selection"]
        samples = SettingSamples.of(store, "digits-selection")
        assert samples is not None
        assert samples.right == "acc"
        right, counted = right_counts(samples)
    assert (spread, right[hardest], counted[hardest]) == (0, 0, 1)
