"""From files of predictions to CLIP-CC-Bench's files, with the programs: each number against a literal loop."""

from __future__ import annotations

import csv
import importlib.util
import json
import random
from pathlib import Path

import numpy as np
import pytest

from testbed.registry import registry

PLUGIN = Path(__file__).parent.parent / "plugins" / "word_bags.py"
DECODERS = ("bag-1", "bag-2")
WORDS = "the dog runs over hills while people watch from houses near old rivers and sing".split()


def sentences(rng, count):
    return [" ".join(rng.choices(WORDS, k=6)).capitalize() + "." for _ in range(count)]


@pytest.fixture(scope="module")
def captions():
    """References and three captioners' predictions, as lists of sentences; None for what is missing."""
    rng = random.Random(0)
    ids = [f"video_{number:03d}" for number in range(8)]
    truth = {each: sentences(rng, rng.randint(1, 4)) for each in ids}
    mixed = {each: sentences(rng, rng.randint(1, 4)) for each in ids}
    mixed |= {"video_001": [], "video_002": None, "video_003": 7}
    noise = {each: sentences(rng, 2) for each in ids}
    return truth, {"copy": truth, "mixed": mixed, "noise": noise}


@pytest.fixture
def bench(tmp_path, captions):
    """CLIP-CC-Bench's folder of data."""
    truth, predictions = captions
    folder = tmp_path / "bench"
    (folder / "data" / "ground_truth").mkdir(parents=True)
    (folder / "data" / "models").mkdir()
    records = [{"id": each, "summary": " ".join(own)} for each, own in truth.items()]
    (folder / "data" / "ground_truth" / "clip_cc_dataset.json").write_text(json.dumps(records))
    for name, said in predictions.items():
        texts = {each: " ".join(own) if isinstance(own, list) else own for each, own in said.items() if own is not None}
        (folder / "data" / "models" / f"{name}.json").write_text(json.dumps(texts))
    return folder


@pytest.fixture(scope="module")
def bags():
    """The class of the decoders, and their seeds by name."""
    spec = importlib.util.spec_from_file_location("word_bags_alone", PLUGIN)
    module = importlib.util.module_from_spec(spec)
    before = registry.models.snapshot()
    spec.loader.exec_module(module)
    registry.models.restore(before)
    return {name: module.WordBag(int(name[-1])) for name in DECODERS}


def by_hand(decoder, said, truth, scale):
    """The five numbers of a caption, as CLIP-CC-Bench's README describes them."""

    def vector(text):
        found = decoder.encode([text])[0].astype(np.float64)
        return found / np.linalg.norm(found)

    def harmonic(one, other):
        return 2 * one * other / (one + other) if one > 0 and other > 0 else 0.0

    def best(candidates, references):
        return np.mean([scale(max(vector(one) @ vector(other) for other in references)) for one in candidates])

    coarse = scale(vector(" ".join(said)) @ vector(" ".join(truth)))
    precision, recall = best(said, truth), best(truth, said)
    fine = harmonic(precision, recall)
    return [coarse, precision, recall, fine, harmonic(coarse, fine)]


def rows(path):
    with path.open(newline="") as file:
        return {each["video_id"]: each for each in csv.DictReader(file)}


SCALES = {"unit": lambda x: (x + 1) / 2, "raw": lambda x: x}


def run(program, bench, *words, models=("replay:*",), **options):
    place = {"TESTBED_CLIP_CC_GROUND_TRUTH": str(bench / "data" / "ground_truth" / "clip_cc_dataset.json")}
    common = ["--plugin", PLUGIN, "--predictions", bench / "data" / "models", "--executor", "inline"]
    return program("eval.py", *map(str, common), "--models", *models, *words, **{**place, **options})


@pytest.mark.slow
def test_scores_files_and_ranking(program, bench, captions, bags, tmp_path):
    truth, predictions = captions
    settings = [f"clip-cc-bench@{decoder}" for decoder in DECODERS]
    done = run(program, bench, "--eval-settings", *settings, "--json")
    outcomes = {(each["model"], each["setting"]): each["status"] for each in json.loads(done.stdout)["outcomes"]}
    assert set(outcomes) == {(f"replay:{name}", setting) for name in predictions for setting in settings}
    means = {}
    for scale, change in SCALES.items():
        out = tmp_path / scale
        program("testbed", "export", "clip-cc", str(out), "--scale", scale)
        for decoder in DECODERS:
            for name, said in predictions.items():
                folder = out / "decoders" / "individual_results" / "csv" / decoder
                found, status = rows(folder / f"{name}_results.csv"), rows(folder / f"{name}_status.csv")
                assert list(status) == list(truth)
                expected = {}
                for each, own in said.items():
                    kind = "missing" if own is None else "error" if own == 7 else "scored" if own else "empty"
                    assert status[each]["status"] == kind
                    if kind == "scored":
                        expected[each] = by_hand(bags[decoder], own, truth[each], change)
                    elif kind == "empty":
                        expected[each] = [0.0] * 5
                assert list(found) == list(expected)
                for each, numbers in expected.items():
                    printed = [float(value) for column, value in found[each].items() if column != "video_id"]
                    assert printed == pytest.approx(numbers, abs=6e-5)
                means[scale, decoder, name] = np.mean([numbers[-1] for numbers in expected.values()])
                path = out / "decoders" / "aggregated_results" / decoder / "per_model" / f"{name}_summary.json"
                summary = json.loads(path.read_text())
                assert summary["total_videos"] == len(truth)
                assert summary["successful_evaluations"] == len(expected)
                values = np.array(list(expected.values()))
                of = summary["metrics"]
                assert of["hm_cf"]["std"] == pytest.approx(values[:, -1].std(), abs=6e-5)
                assert of["coarse_similarity"]["min"] == pytest.approx(values[:, 0].min(), abs=6e-5)
    ranking = json.loads(program("testbed", "borda", "--json").stdout)
    for place in ranking:
        name = place["model"].removeprefix("replay:")
        for decoder, on in zip(DECODERS, place["eval_settings"], strict=True):
            own = means["unit", decoder, name]
            assert on["value"] == pytest.approx(own, abs=1e-6)
            assert on["points"] == sum(own > means["unit", decoder, other] for other in predictions if other != name)
    assert ranking[0]["model"] == "replay:copy"


@pytest.mark.slow
def test_predictions_that_cannot_be_used_fail_by_themselves(program, bench):
    models = bench / "data" / "models"
    (models / "elsewhere.json").write_text('{"video_1.mp4": "A dog."}')
    (models / "cut.json").write_text('{"video_001": ')
    words = ["--eval-settings", "clip-cc-bench.coarse@bag-1", "--json"]
    done = run(
        program, bench, *words, models=("replay:copy", "replay:elsewhere", "replay:cut", "replay:absent"), code=1
    )
    outcomes = {each["model"]: each for each in json.loads(done.stdout)["outcomes"]}
    assert outcomes["replay:copy"]["status"] != "failed"
    reasons = {name: outcomes[f"replay:{name}"]["reason"] for name in ("elsewhere", "cut", "absent")}
    assert "has predictions for 'video_1.mp4', but none of the 8 samples has such an id" in reasons["elsewhere"]
    assert "cut.json is not valid JSON" in reasons["cut"]
    assert "absent.json is missing in" in reasons["absent"]


@pytest.mark.slow
def test_a_changed_file_is_evaluated_again_and_an_equal_one_is_not(program, bench):
    words = ["--eval-settings", "clip-cc-bench.coarse@bag-1", "--json"]

    def statuses():
        done = json.loads(run(program, bench, *words, models=("replay:noise",)).stdout)
        return [each["status"] for each in done["outcomes"]], [
            each["value"] for each in done["results"] if each["metric"] == "coarse_similarity"
        ]

    first, before = statuses()
    assert first != ["stored"]
    assert statuses() == (["stored"], before)
    path = bench / "data" / "models" / "noise.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"video_000": "Something else."}))
    again, after = statuses()
    assert again != ["stored"]
    assert after != before


CONFIG = """
decoder: {name: nv-embed, path: decoder_models/nv-embed, type: nvembed, fine_grained: {enabled: true}}
processing: {device: cpu, clear_cache_interval: 3, progress_interval: 5}
models_to_evaluate: [copy, mixed]
"""


@pytest.mark.slow
def test_clip_cc_benchs_command_writes_its_files(program, bench):
    file = bench / "src" / "configs" / "nv-embed.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(CONFIG)
    common = ["--clip-cc", str(file), "--plugin", str(PLUGIN), "--executor", "inline"]
    done = program("eval.py", *common, "--eval-settings", "clip-cc-bench@bag-1")
    assert f"2 evaluations by bag-1: 9 files written to {bench / 'results'}" in done.stderr
    folder = bench / "results" / "decoders"
    assert "video_000" in rows(folder / "individual_results" / "csv" / "bag-1" / "mixed_results.csv")
    assert (folder / "aggregated_results" / "ranking.csv").read_text().splitlines()[1].startswith("1,copy,1,")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = program("eval.py", *common, "--eval-settings", "clip-cc-bench@bag-1", "--limit", "5")
    assert f"with --limit nothing is written to {bench / 'results'}" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    words = ["--models", "noise", "--eval-settings", "clip-cc-bench.coarse@bag-2", "--no-db", "--base-dir", str(bench)]
    done = program("eval.py", *common, *words)
    assert "1 evaluation by bag-2: 4 files written to" in done.stderr
    done = program("eval.py", *common, "--dry-run", "--json", code=None)  # the decoder's weights are not here
    planned = {(each["model"], each["eval_setting"]) for each in json.loads(done.stdout)["cells"]}
    models = [f"replay:{bench / 'data' / 'models' / name}.json" for name in ("copy", "mixed")]
    assert {(model, "clip-cc-bench@nv-embed") for model in models} <= planned
