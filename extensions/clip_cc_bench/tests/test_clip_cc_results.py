"""Published results of CLIP-CC-Bench: imported from its CSV and its JSON, and ranked as its board ranks them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scored_captions import MISSING, put_scored, row

from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.extensions.clip_cc_bench.clip_cc_files import export_clip_cc
from testbed.extensions.published.importing import import_results
from testbed.stored_results.borda import borda_ranking, usual_metric

DECODERS = ("gte-qwen2-7b", "kalm", "nemo")
CAPTIONERS = ("Qwen2.5-32B", "internvl", "longva", "video_xl")


def published(folder: Path, seed: int = 0) -> dict[tuple[str, str], float]:
    """A folder as CLIP-CC-Bench publishes it; gives the hm_cf of each decoder and captioner."""
    rng = np.random.default_rng(seed)
    means, lines = {}, {name: [name] for name in CAPTIONERS}
    for decoder in DECODERS:
        (folder / decoder).mkdir(parents=True)
        for name in CAPTIONERS:
            coarse, precision, recall, f1, hm_cf = (round(float(value), 6) for value in rng.uniform(0.3, 0.8, 5))
            if (decoder, name) == ("kalm", "longva"):
                hm_cf = round(means["kalm", "internvl"] + 0.00001, 6)  # the CSV's four digits may not tell them apart
            means[decoder, name] = hm_cf
            stats = {"std": 0.1, "min": -0.1, "max": 0.9}
            content = {
                "decoder_name": decoder,
                "model_name": name,
                "total_evaluations": 199,
                "successful_evaluations": 199,
                "error_rate": 0.0,
                "coarse_grained_stats": {"mean": coarse, **stats},
                "fine_grained_stats": {
                    key: {"mean": value, **stats}
                    for key, value in {"precision": precision, "recall": recall, "f1": f1}.items()
                },
                "hybrid_stats": {"hm_cf": {"mean": hm_cf, **stats}},
            }
            (folder / decoder / f"{name}.json").write_text(json.dumps(content))
            lines[name] += [f"{value:.4f}" for value in (coarse, f1, hm_cf)]
    header = ["Model Name", *(f"{decoder}_{what}" for decoder in DECODERS for what in ("coarse", "fine_f1", "hm_cf"))]
    (folder / "aggregated_results.csv").write_text("\n".join(",".join(each) for each in (header, *lines.values())))
    (folder / "cross_decoder_stats.json").write_text(json.dumps({"internvl": {"decoder_comparisons": {}}}))
    return means


@pytest.fixture
def backend() -> str:
    """Files are written and read alike whatever the database is."""
    return "sqlite"


def board(means: dict[tuple[str, str], float]) -> list[tuple[str, float]]:
    """CLIP-CC-Bench's rule: by each decoder V − rank points; ties by the mean hm_cf."""
    points = dict.fromkeys(CAPTIONERS, 0)
    for decoder in DECODERS:
        ordered = sorted(CAPTIONERS, key=lambda name: -means[decoder, name])
        for rank, name in enumerate(ordered, 1):
            points[name] += len(CAPTIONERS) - rank
    mean = {name: np.mean([means[decoder, name] for decoder in DECODERS]) for name in CAPTIONERS}
    return [(name, points[name]) for name in sorted(CAPTIONERS, key=lambda name: (-points[name], -mean[name]))]


@pytest.mark.parametrize("seed", range(3))
def test_the_board_of_the_published_files_is_theirs(store: Store, tmp_path: Path, seed: int) -> None:
    means = published(tmp_path / "aggregated_results", seed)
    report = import_results(store, tmp_path / "aggregated_results")
    assert (report.form, report.cells, report.values, report.new) == ("CLIP-CC-Bench's results", 12, 60, 60)
    assert import_results(store, tmp_path / "aggregated_results").new == 0
    metric = usual_metric(store, ["clip-cc-bench@*"])
    assert metric == "hm_cf_raw"
    found = borda_ranking(store, ["clip-cc-bench@*"], metric=metric)
    assert list(zip(found.models, [each.points for each in found.places], strict=True)) == board(means)
    (one,) = store.results.find(["internvl"], ["clip-cc-bench@kalm"], metrics=["hm_cf_raw"])
    assert (one.value, one.n, one.origin) == (means["kalm", "internvl"], 199, "published")
    assert one.stderr == pytest.approx(0.1 / np.sqrt(198))


def test_the_csv_has_three_means_of_four_digits(store: Store, tmp_path: Path) -> None:
    means = published(tmp_path / "aggregated_results")
    report = import_results(store, tmp_path / "aggregated_results" / "aggregated_results.csv")
    assert (report.cells, report.values) == (12, 36)
    (one,) = store.results.find(["longva"], ["clip-cc-bench@nemo"], metrics=["hm_cf_raw"])
    assert one.value == round(means["nemo", "longva"], 4)
    assert import_results(store, tmp_path / "aggregated_results" / "kalm" / "longva.json").cells == 1


def test_ones_own_captioner_is_ranked_among_published_ones(store: Store, tmp_path: Path) -> None:
    published(tmp_path / "aggregated_results")
    import_results(store, tmp_path / "aggregated_results")
    for decoder in DECODERS:
        put_scored(store, "replay:/x/mine.json", f"clip-cc-bench@{decoder}", {"v1": row(0.99, 0.99, 0.99)})
    found = borda_ranking(store, ["clip-cc-bench@*"], metric="hm_cf_raw")
    assert found.models[0] == "replay:/x/mine.json"
    assert len(found.models) == 5


@pytest.mark.parametrize("form", ["decoders", "embedding_models"])
def test_what_is_exported_is_imported_with_the_same_numbers(store: Store, tmp_path: Path, form: str) -> None:
    rows = {"v1": row(0.5, 0.4, 0.3), "v2": MISSING, "v3": row(0.2, 0.1, 0.3)}
    put_scored(store, "replay:/x/internvl.json", "clip-cc-bench@kalm", rows)
    scale = "raw" if form == "embedding_models" else "unit"
    export_clip_cc(store, tmp_path / "out", scale=scale, form=form)
    with Store.create(str(tmp_path / "other.db")) as other:
        import_results(other, tmp_path / "out" / form / "aggregated_results")
        suffix = "_raw" if scale == "raw" else ""
        (found,) = other.results.find(["internvl"], ["clip-cc-bench@kalm"], metrics=[f"hm_cf{suffix}"])
        (own,) = store.results.find(metrics=[f"hm_cf{suffix}"])
        assert (found.value, found.n) == (pytest.approx(own.value, abs=1e-4), 2)


@pytest.mark.parametrize("value", [2, "0.x", True])
def test_a_mean_that_is_no_cosine(store: Store, tmp_path: Path, value: Any) -> None:
    published(tmp_path)
    path = tmp_path / "kalm" / "longva.json"
    content = json.loads(path.read_text())
    content["hybrid_stats"]["hm_cf"]["mean"] = value
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=r"longva\.json, hybrid_stats\.hm_cf\.mean: a number between -1 and 1 was"):
        import_results(store, tmp_path)
    assert store.evaluations.find() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kalm_hm_cf", "kalm_rouge", "has the column 'kalm_rouge'; after 'Model Name' CLIP-CC-Bench's columns end in"),
    ],
)
def test_a_csv_of_another_form(store: Store, tmp_path: Path, old: str, new: str, said: str) -> None:
    published(tmp_path)
    path = tmp_path / "aggregated_results.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(StoreError, match=said):
        import_results(store, path)


def test_the_files_of_todays_form(store: Store, tmp_path: Path) -> None:
    rows = {"v1": row(0.5, 0.4, 0.3), "v2": MISSING}
    put_scored(store, "replay:/x/internvl.json", "clip-cc-bench@kalm", rows)
    written = export_clip_cc(store, tmp_path, scale="raw", form="embedding_models")
    root = tmp_path / "embedding_models"
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert found == [
        *("aggregated_results/aggregated_results.csv", "aggregated_results/kalm/internvl.json"),
        *("aggregated_results/ranking.csv", "individual_results/csv/kalm/internvl.csv"),
        *("individual_results/csv/kalm/internvl_status.csv", "individual_results/json/kalm/internvl.json"),
    ]
    assert written.files == len(found)
    videos = json.loads((root / "individual_results/json/kalm/internvl.json").read_text())
    assert list(videos) == ["v1"]  # who has no prediction is left out, as in CLIP-CC-Bench
    assert videos["v1"]["reference"] == "Reference of v1."
    scores = videos["v1"]["similarity_data"]
    assert scores["coarse_grained"] == {"cosine_similarity": 0.5, "normalized_cosine": 0.5}
    assert scores["fine_grained"]["precision"] == 0.4
    assert scores["hybrid"]["hm_cf"] == pytest.approx(row(0.5, 0.4, 0.3)["hm_cf_raw"])
    assert scores["metadata"] == {"success": True, "error_message": "", "is_fallback_score": False}
    summary = json.loads((root / "aggregated_results/kalm/internvl.json").read_text())
    assert (summary["embedding_model_name"], summary["total_evaluations"]) == ("kalm", 1)
    assert summary["fine_grained_stats"]["recall"] == {"mean": 0.3, "std": 0, "min": 0.3, "max": 0.3}
