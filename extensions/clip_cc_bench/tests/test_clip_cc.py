"""CLIP-CC-Bench's files, written from stored scores."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_captions import EMPTY, ERROR, MISSING, NAMES, put_scored, row

from testbed.db.parts.outputs import Outputs
from testbed.db.store import Store
from testbed.errors import StoreError, UnknownNameError
from testbed.extensions.clip_cc_bench.clip_cc_files import export_clip_cc, short_name

HEADER = "video_id,coarse_similarity,fine_precision,fine_recall,fine_f1,hm_cf"
ROWS: dict[str, Any] = {
    "v1": row(0.5308, 0.4468, 0.4912),
    "v2": MISSING,
    "v3": row(0.2, -0.1, 0.3),
    "v4": EMPTY,
    "v5": ERROR,
    "v, 6": row(0.9, 0.8, 0.7),
}


@pytest.fixture
def backend() -> str:
    """Files are written and read alike whatever the database is."""
    return "sqlite"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(folder: Path, decoder: str, captioner: str, what: str = "results") -> Path:
    return folder / "decoders" / "individual_results" / "csv" / decoder / f"{captioner}_{what}.csv"


def summary(folder: Path, decoder: str, captioner: str) -> dict[str, Any]:
    path = folder / "decoders" / "aggregated_results" / decoder / "per_model" / f"{captioner}_summary.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def ranking(folder: Path) -> list[dict[str, str]]:
    return read(folder / "decoders" / "aggregated_results" / "ranking.csv")


def test_the_files_of_one_captioner(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:/x/internvl.json", "clip-cc-bench@nv-embed", ROWS)
    notes: list[str] = []
    written = export_clip_cc(store, tmp_path / "out", tell=notes.append)
    assert (written.captioners, written.decoders, written.files, written.ranked) == (1, ("nv-embed",), 5, True)
    assert notes == []
    found = lines(results(tmp_path / "out", "nv-embed", "internvl"))
    # The page's second example: unit precision 0.7234, recall 0.7456 give F1 0.7343, with coarse 0.7654 hm_cf 0.7495.
    assert found[:2] == [HEADER, "v1,0.7654,0.7234,0.7456,0.7343,0.7495"]
    assert found[2].split(",")[0] == "v3"
    assert found[3] == "v4,0.0000,0.0000,0.0000,0.0000,0.0000"
    assert found[4].startswith('"v, 6",0.9500,0.9000,0.8500,')
    assert len(found) == 5
    statuses = read(results(tmp_path / "out", "nv-embed", "internvl", "status"))
    assert [(each["video_id"], each["status"]) for each in statuses] == [
        ("v1", "scored"),
        ("v2", "missing"),
        ("v3", "scored"),
        ("v4", "empty"),
        ("v5", "error"),
        ("v, 6", "scored"),
    ]
    assert list(statuses[0]) == ["video_id", "status", "reason"]


def test_the_summary_has_clip_cc_benchs_schema(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:/x/internvl.json", "clip-cc-bench@nv-embed", ROWS)
    export_clip_cc(store, tmp_path / "out")
    found = summary(tmp_path / "out", "nv-embed", "internvl")
    scored = [ROWS["v1"], ROWS["v3"], dict.fromkeys(ROWS["v1"], 0.0), ROWS["v, 6"]]
    values = {name: np.array([each[name] for each in scored]) for name in NAMES}

    def told(name: str, *what: str) -> dict[str, float]:
        means = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}
        return {each: round(float(means[each](values[name])), 4) for each in what}

    assert found == {
        "model_name": "internvl",
        "decoder_name": "nv-embed",
        "total_videos": 6,
        "successful_evaluations": 4,
        "metrics": {
            "coarse_similarity": told("coarse_similarity", "mean", "std", "min", "max"),
            "fine_grained_precision": told("fine_precision", "mean", "std"),
            "fine_grained_recall": told("fine_recall", "mean", "std"),
            "fine_grained_f1": told("fine_f1", "mean", "std"),
            "hm_cf": told("hm_cf", "mean", "std"),
        },
    }


def test_raw_scores_say_so(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:/x/internvl.json", "clip-cc-bench@nv-embed", ROWS)
    export_clip_cc(store, tmp_path / "out", scale="raw")
    found = read(results(tmp_path / "out", "nv-embed", "internvl"))
    assert [found[0][name] for name in NAMES[:3]] == ["0.5308", "0.4468", "0.4912"]
    assert found[1]["fine_precision"] == "-0.1000"
    assert found[1]["fine_f1"] == "0.0000"
    assert summary(tmp_path / "out", "nv-embed", "internvl")["scale"] == "raw"
    assert list(ranking(tmp_path / "out")[0])[:4] == ["rank", "model", "points", "mean_hm_cf_raw"]


def test_without_sentences_the_fine_columns_are_empty(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:a", "clip-cc-bench.coarse@gte", {"v1": row(0.5, 0, 0), "v2": MISSING}, fine=False)
    notes: list[str] = []
    written = export_clip_cc(store, tmp_path / "out", tell=notes.append)
    assert not written.ranked
    assert "no ranking was written: no model has hm_cf on all of clip-cc-bench.coarse@gte" in notes[0]
    assert lines(results(tmp_path / "out", "gte", "a")) == [HEADER, "v1,0.7500,,,,"]
    assert summary(tmp_path / "out", "gte", "a")["metrics"]["hm_cf"] == {"mean": None, "std": None}


def test_a_captioner_without_any_score(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:a", "clip-cc-bench@gte", {"v1": EMPTY, "v2": MISSING})
    export_clip_cc(store, tmp_path / "out")
    assert lines(results(tmp_path / "out", "gte", "a")) == [HEADER, "v1,0.0000,0.0000,0.0000,0.0000,0.0000"]


def test_the_ranking_counts_decoders_and_leaves_out_who_lacks_one(store: Store, tmp_path: Path) -> None:
    order = {"gte": ("a", "b", "c"), "nv-embed": ("b", "a", "c")}
    for decoder, names in order.items():
        for place, name in enumerate(names):
            put_scored(
                store, f"replay:/x/{name}.json", f"clip-cc-bench@{decoder}", {"v1": row(0.9 - place / 10, 0.5, 0.5)}
            )
    put_scored(store, "replay:/x/d.json", "clip-cc-bench@gte", {"v1": row(0.99, 0.9, 0.9)})
    notes: list[str] = []
    written = export_clip_cc(store, tmp_path / "out", tell=notes.append)
    assert (written.captioners, written.decoders, written.files) == (7, ("gte", "nv-embed"), 29)
    assert notes == ["left out: replay:/x/d.json (no hm_cf on clip-cc-bench@nv-embed)"]
    found = ranking(tmp_path / "out")
    assert [(each["rank"], each["model"], each["points"]) for each in found] == [
        ("1", "a", "3"),
        ("1", "b", "3"),
        ("3", "c", "0"),
    ]
    columns = ["hm_cf_gte", "points_gte", "hm_cf_nv-embed", "points_nv-embed"]
    assert list(found[0]) == ["rank", "model", "points", "mean_hm_cf", *columns]
    assert found[0]["points_gte"] == "2"


def test_models_and_settings_can_be_chosen(store: Store, tmp_path: Path) -> None:
    for name in ("a", "b"):
        for setting in ("clip-cc-bench@gte", "clip-cc-bench.sentencex@gte", "clip-cc-bench@nv-embed"):
            put_scored(store, f"replay:{name}", setting, ROWS)
    with pytest.raises(StoreError, match=r"clip-cc-bench.* and on .* whose file names would be the same; choose"):
        export_clip_cc(store, tmp_path / "out")
    written = export_clip_cc(store, tmp_path / "out", ["replay:a"], ["clip-cc-bench@*"])
    assert (written.captioners, written.decoders) == (2, ("gte", "nv-embed"))
    assert not results(tmp_path / "out", "gte", "b").exists()
    with pytest.raises(UnknownNameError, match="no outputs of model 'replay:c'"):
        export_clip_cc(store, tmp_path / "out", ["replay:c"], ["clip-cc-bench@*"])
    put_scored(store, "replay:/other/A.json", "clip-cc-bench@gte", ROWS)
    with pytest.raises(StoreError, match=r"the captioners .* would both have files named [aA];"):
        export_clip_cc(store, tmp_path / "out", [], ["clip-cc-bench@*"])


def test_scores_of_other_tasks_are_skipped(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no captions scored by a decoder; run: testbed run"):
        export_clip_cc(store, tmp_path / "out")
    put_scored(store, "replay:a", "clip-cc-bench", ROWS)
    with pytest.raises(StoreError, match="no captions scored by a decoder on clip-cc-bench; run"):
        export_clip_cc(store, tmp_path / "out", settings=["clip-cc-bench"])
    assert not (tmp_path / "out").exists()


def test_a_part_of_the_samples_is_said_and_a_folder_that_cannot_be_written(store: Store, tmp_path: Path) -> None:
    put_scored(store, "replay:a", "clip-cc-bench@gte", ROWS, sample_limit=6)
    notes: list[str] = []
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file cannot be written"):
        export_clip_cc(store, tmp_path / "file", tell=notes.append)
    assert notes == ["1 of 1 evaluations used part of the samples or random weights"]


def test_reasons_come_from_what_captioners_said(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_scored(store, "replay:a", "clip-cc-bench@gte", ROWS)
    said: list[Any] = [{"text": "x", "finish_reason": "stop"} for _ in ROWS]
    said[1] = {"text": "", "finish_reason": "missing"}
    said[4] = {"text": "", "finish_reason": "error: a text was expected, the value 3 was found"}
    monkeypatch.setattr(Outputs, "kinds", lambda self, evaluation_id: {"text": "json"})
    monkeypatch.setattr(Outputs, "read", lambda self, evaluation_id, kind: np.array(said, dtype=object))
    export_clip_cc(store, tmp_path / "out")
    found = {each["video_id"]: each["reason"] for each in read(results(tmp_path / "out", "gte", "a", "status"))}
    assert found == {
        "v1": "",
        "v2": "no prediction",
        "v3": "",
        "v4": "the prediction is blank",
        "v5": "a text was expected, the value 3 was found",
        "v, 6": "",
    }


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("replay:/data/models/internvl.json", "internvl"),
        ("replay:internvl", "internvl"),
        ("replay:/x/video_xl.v2.jsonl", "video_xl.v2"),
        ("coca_ViT-L-14,mscoco.captioner", "coca_ViT-L-14,mscoco.captioner"),
        ("sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers_all-MiniLM-L6-v2"),
        ("../../etc/passwd", "etc_passwd"),
        ("replay:/x/Modell Ü.json", "Modell"),
        ("replay:/x/....json", "captioner"),
    ],
)
def test_names_in_files(name: str, short: str) -> None:
    assert short_name(name) == short


def test_a_runs_own_evaluation_stands_before_a_later_one(store: Store, tmp_path: Path) -> None:
    """A run finds an older evaluation again where a change was taken back; its files must have what its table has."""
    own = put_scored(store, "replay:a", "cc@gte", {"v1": row(0.5, 0.5, 0.5)})
    put_scored(store, "replay:a", "cc@gte", {"v1": row(0.9, 0.9, 0.9)}, view="another version")
    for first, written in (({own.id}, "0.7500"), ((), "0.9500")):
        export_clip_cc(store, tmp_path / "out", first=first)
        folder = tmp_path / "out" / "decoders"
        assert f"v1,{written}" in (folder / "individual_results/csv/gte/a_results.csv").read_text()
        assert f"1,a,0,{written}" in (folder / "aggregated_results/ranking.csv").read_text()
