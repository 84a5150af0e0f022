"""``testbed borda`` and ``export clip-cc``: from the store alone."""

from __future__ import annotations

import json

import pytest
from scored_captions import MISSING, put_scored, row

from testbed.db.store import Store

VALUES = {"gte": {"a": 0.9, "b": 0.8, "c": 0.1}, "nv-embed": {"a": 0.5, "b": 0.8, "c": 0.5}}


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for decoder, values in VALUES.items():
            for name, value in values.items():
                put_scored(opened, f"replay:{name}", f"clip-cc-bench@{decoder}", {"v1": row(value, value, value)})
        yield opened


def test_the_ranking_of_all_decoders(store, ask):
    rows = json.loads(ask("borda", "--json").stdout)
    assert [(each["rank"], each["model"], each["points"]) for each in rows] == [
        (1, "replay:b", 3.0),
        (2, "replay:a", 2.5),
        (3, "replay:c", 0.5),
    ]
    assert rows[0]["metric"] == "hm_cf"
    assert rows[0]["eval_settings"] == [
        {"eval_setting": "clip-cc-bench@gte", "value": pytest.approx(0.9), "points": 1.0},
        {"eval_setting": "clip-cc-bench@nv-embed", "value": pytest.approx(0.9), "points": 2.0},
    ]
    assert rows[1]["mean"] == pytest.approx((0.95 + 0.75) / 2)
    assert json.loads(ask("borda", "clip-cc-bench@*", "--json").stdout) == rows


def test_the_table_says_how_it_is_counted(store, ask):
    done = ask("borda", "clip-cc-bench@gte", "clip-cc-bench@nv-embed")
    lines = done.stdout.splitlines()
    assert lines[0].split() == "rank points mean hm_cf model @gte @nv-embed".split()
    assert lines[3].split() == ["2", "2.5", "0.8500", "replay:a", "0.9500", "(2)", "0.7500", "(0.5)"]
    assert "Borda count over 2 settings of clip-cc-bench: on each" in done.stderr
    assert "ties in points are broken by the mean" in done.stderr


def test_another_metric_and_some_of_the_models(store, ask):
    rows = json.loads(ask("borda", "*@gte", "--metric", "hm_cf_raw", "--models", "*:a", "*:c", "--json").stdout)
    assert [(each["model"], each["points"], each["mean"]) for each in rows] == [
        ("replay:a", 1.0, pytest.approx(0.9)),
        ("replay:c", 0.0, pytest.approx(0.1)),
    ]


def test_who_lacks_a_decoder_is_named(store, ask):
    put_scored(store, "replay:d", "clip-cc-bench@gte", {"v1": row(1, 1, 1)})
    done = ask("borda", "--json")
    assert "note: left out: replay:d (no hm_cf on clip-cc-bench@nv-embed)" in done.stderr
    assert [each["model"] for each in json.loads(done.stdout)] == ["replay:b", "replay:a", "replay:c"]


def test_means_of_other_samples_are_told(store, ask):
    assert "note" not in ask("borda").stderr
    put_scored(store, "replay:d", "clip-cc-bench@gte", {"v1": row(1, 1, 1), "v2": row(1, 1, 1)})
    put_scored(store, "replay:e", "clip-cc-bench@gte", {"v1": row(1, 1, 1), "v2": MISSING})
    said = ask("borda", "clip-cc-bench@gte", "--models", "replay:d", "replay:e").stderr
    assert "note: means on clip-cc-bench@gte cover 1 (replay:e) to 2 samples, those with a score; testbed rank" in said
    assert "evaluated on different" not in said
    said = ask("borda", "clip-cc-bench@gte", "--models", "replay:a", "replay:b", "replay:d").stderr
    assert "on clip-cc-bench@gte, replay:d was evaluated on different samples or references than most; run all" in said


@pytest.mark.parametrize("command", [["borda"], ["rank", "clip-cc-bench@gte", "--score", "hm_cf"]])
def test_another_version_of_a_decoder_is_told(store, ask, command):
    put_scored(store, "replay:a", "clip-cc-bench@gte", {"v1": row(1, 1, 1)}, view="an instruction")
    said = ask(*command).stderr
    assert said.count("different version") == 1
    assert "note: on clip-cc-bench@gte, replay:a was scored by a different version of the judge, or by" in said


def test_different_captions_are_not_mixed_unasked(store, ask, refusal):
    put_scored(store, "replay:a", "captions:/x.json@gte", {"v1": row(1, 1, 1)})
    said = refusal("borda")
    assert "hm_cf of 2 settings (captions:/x.json, clip-cc-bench), which are not ranked together by default" in said
    assert [each["model"] for each in json.loads(ask("borda", "*@gte", "--json").stdout)] == ["replay:a"]
    assert "no model has top5 on all of captions:/x.json@gte, clip" in refusal("borda", "*@*", "--metric", "top5")


def test_nothing_to_rank(tmp_path, refusal):
    with Store.create(str(tmp_path / "testbed.db")):
        pass
    assert "no setting with a judge (SETTING@JUDGE) and the metric hm_cf" in refusal("borda")
    assert "no captions scored by a decoder" in refusal("export", "clip-cc", tmp_path / "out")


def test_clip_cc_benchs_files(store, ask, tmp_path):
    done = ask("export", "clip-cc", tmp_path / "out", "--on", "*@gte", "--scale", "raw")
    assert f"3 evaluations by gte: 13 files written to {tmp_path / 'out'}" in done.stderr
    files = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert "decoders/individual_results/csv/gte/a_results.csv" in files
    assert "decoders/aggregated_results/gte/per_model/c_summary.json" in files
    assert "decoders/aggregated_results/ranking.csv" in files
    assert len(files) == 13
