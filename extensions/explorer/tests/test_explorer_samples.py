"""Samples in the explorer: what its documents say, pictures, exports, and the pages in a real browser."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sample_world import BROKEN, COUNT, SMALL
from scipy.special import softmax
from stored_cells import NAMES, put, samples_of, saying
from toy_captions import hashed, vary

from testbed.db.parts.samples import SampleRows
from testbed.db.store import Store
from testbed.extensions.explorer.export import choose_samples
from testbed.extensions.explorer.samples import SamplesPart
from testbed.extensions.explorer.thumbnails import store_thumbnails
from testbed.registry import Catalog
from testbed.stored_results.evaluated import SettingSamples
from testbed.stored_results.pictures import CLEAN, OWN, SIDE, Pictures
from testbed.stored_results.unread import without_folder

TYPES = {"u8": "u1", "u16": "<u2", "u32": "<u4", "f32": "<f4"}


@pytest.fixture(scope="module")
def opened(world: tuple[str, Catalog]) -> Iterator[Store]:
    with Store.open(world[0]) as store:
        yield store


@pytest.fixture(scope="module")
def names(opened: Store) -> list[str]:
    return sorted({each.eval_setting for each in opened.evaluations.find()})


@pytest.fixture
def part(opened: Store, world: tuple[str, Catalog], names: list[str]) -> SamplesPart:
    return SamplesPart(opened, world[1], names)


@pytest.fixture
def of(part: SamplesPart, names: list[str]) -> Callable[..., Any]:
    """A document of a setting: its head, or what follows ``samples/S/``."""

    def document(setting: str, rest: str = "") -> Any:
        found = part.document(f"samples/{names.index(setting)}{rest}")
        return json.loads(json.dumps(found, allow_nan=False))

    return document


def unpacked(given: dict[str, Any]) -> np.ndarray[Any, Any]:
    """A packed array as numbers; NaN where there is none."""
    raw = np.frombuffer(base64.b64decode(given["data"]), dtype=TYPES[given["type"]])
    values = raw.astype(np.float64) * given.get("scale", 1)
    return np.where(raw == given["none"], np.nan, values) if "none" in given else values


# Documents --------------------------------------------------------------------------------------------------------


def test_a_sample_has_every_models_five_best_classes_with_their_confidence(opened, of):
    head, chunk = of("plain"), of("plain", "/chunk/1")
    assert head["n"] == COUNT
    assert [each["model"] for each in head["evaluations"]] == ["one", "two"]
    assert head["classes"][3] == "class 3"
    classes, shares = (unpacked(chunk["top"][name]).reshape(2, -1, 5) for name in ("classes", "shares"))
    for row, evaluation in enumerate(head["evaluations"]):
        logits = opened.outputs.read(evaluation["id"], "logits")[head["chunk"] :]
        probabilities = softmax(logits, axis=1)
        best = np.argsort(-logits, axis=1)[:, :5]
        assert (classes[row] == best).all()
        assert shares[row] == pytest.approx(np.take_along_axis(probabilities, best, axis=1), abs=1e-4)
        right = opened.scores.read(evaluation["id"], "top1")["classification@2", "top1"][head["chunk"] :]
        assert (unpacked(chunk["scores"]["top1"]).reshape(2, -1)[row] == right).all()
    samples = chunk["samples"]
    assert [each["position"] for each in samples] == list(range(head["chunk"], COUNT))
    assert samples[0]["id"] == f"toy/{head['chunk']:04d}"


def test_a_sample_that_could_not_be_read_shows_its_error_and_no_classes(of):
    chunk = of("plain", "/chunk/0")
    assert chunk["errors"] == {model: {str(BROKEN): f"toy/{BROKEN:04d} is broken"} for model in ("0", "1")}
    assert np.isnan(unpacked(chunk["top"]["classes"]).reshape(2, -1, 5)[:, BROKEN]).all()


def test_a_reason_does_not_name_the_folder_of_the_data():
    reason = "/data/my own/val/n01/a.jpg cannot be decoded"
    assert without_folder("/data/val/n01/a.jpg cannot be decoded", "n01/a.jpg") == "n01/a.jpg cannot be decoded"
    assert without_folder(reason, "b.jpg") == reason


def test_labels_of_several_classes_are_ranked_by_their_logits(opened, of):
    chunk = of("labels", "/chunk/0")
    logits = opened.outputs.read(of("labels")["evaluations"][0]["id"], "logits")
    assert chunk["top"]["meaning"] == "logit"
    assert unpacked(chunk["top"]["shares"]).reshape(2, SMALL, 5)[0] == pytest.approx(-np.sort(-logits)[:, :5], abs=1e-5)
    assert chunk["samples"][0]["target"] == opened.datasets.get(of("labels")["dataset"]).samples[0].target


def test_captions_come_with_references_and_scores_and_answers_with_verdicts(of):
    described = of("described", "/chunk/0")
    assert described["samples"][1]["target"] == [
        "A picture of 1. It has 1 corners. Nothing else is there.",
        "a picture",
    ]
    models = [each["model"] for each in of("described")["evaluations"]]
    assert described["texts"][models.index("varied")][1]["text"] == described["samples"][1]["target"][0]
    overlap = unpacked(described["scores"]["ROUGE_L"]).reshape(2, -1)
    assert overlap[models.index("varied")] == pytest.approx(1)
    assert overlap[models.index("lettered")].max() < 0.5
    asked = of("questions", "/chunk/0")
    models = [each["model"] for each in of("questions")["evaluations"]]
    answers = asked["texts"][models.index("lettered")]
    assert answers[1] == {"text": "The answer is B.", "extracted": "B", "method": "answer is", "read": 1.0}
    assert answers[2] == {"text": "I cannot tell.", "extracted": None, "method": "none", "read": 0.0}
    assert asked["samples"][1]["target"]["answer"] == "B"
    assert asked["samples"][1]["slices"] == {"category": "odd"}


def test_retrieved_items_are_in_the_order_of_the_ranks(opened, part, of):
    (evaluation,) = of("captions")["evaluations"]
    assert evaluation["details"] == "retrieval"
    details = part.document(f"details/{evaluation['id']}/0")
    ranks = next(iter(opened.scores.read(evaluation["id"], "text_retrieval_rank").values()))
    first = next(iter(opened.scores.read(evaluation["id"], "image_retrieval_rank.1").values()))
    shown = 0
    for position, found in enumerate(details):
        right = [each["right"] for each in found["captions"]]
        assert (right.index(True) + 1 if True in right else None) == (ranks[position] if ranks[position] <= 5 else None)
        images = found["images"][0]["found"]
        own = [each["position"] for each in images]
        assert (own.index(position) + 1 if position in own else None) == (
            first[position] if first[position] <= 5 else None
        )
        assert [each["cosine"] for each in images] == sorted((each["cosine"] for each in images), reverse=True)
        shown += position in own
    assert shown > 0


def test_choices_are_compared_by_cosine_and_pairs_have_a_score_for_each_caption(opened, part, of):
    (evaluation,) = of("choices")["evaluations"]
    right = next(iter(opened.scores.read(evaluation["id"], "text_acc").values()))
    for position, found in enumerate(part.document(f"details/{evaluation['id']}/0")):
        (row,) = found["images"]
        assert (row["cosines"][0] > row["cosines"][1]) == bool(right[position])
    assert set(of("pairs", "/chunk/0")["scores"]) == {"clip_score", "cosine.1", "cosine.2"}


def test_judged_captions_are_compared_with_each_reference(part, of):
    (varied,) = [each for each in of("described@hash")["evaluations"] if each["model"] == "varied"]
    found = part.document(f"details/{varied['id']}/0")[3]
    assert [each["reference"] for each in found] == [vary(3), "a picture"]
    one, other = (hashed([text])[0].numpy() for text in (vary(3), "a picture"))
    assert found[0]["cosine"] == 1
    assert found[1]["cosine"] == pytest.approx(one @ other / np.linalg.norm(one) / np.linalg.norm(other), abs=1e-4)


def test_judged_answers_show_what_the_judge_said_of_those_that_it_was_asked_about(part, of):
    chunk = of("questions@judge", "/chunk/0")
    models = {each["model"]: each for each in of("questions@judge")["evaluations"]}
    found = part.document(f"details/{models['lettered']['id']}/0")
    assert found[1] == []  # rules read "The answer is B."
    for position in (0, 2, 4):
        (said,) = found[position]
        assert (said["judge"], said["reply"]) == ("judge", "A")
        assert said["score"] == (chunk["samples"][position]["target"]["answer"] == "A")


def test_filters_count_the_models_that_are_right(opened, of, part):
    found = of("plain", "/filters")
    scores = [next(iter(opened.scores.read(each["id"], "top1").values())) for each in of("plain")["evaluations"]]
    assert (unpacked(found["right"]) == np.sum(scores, axis=0)).all()
    assert (unpacked(found["counted"]) == 2).all()
    targets = [each.target for each in opened.datasets.get(of("plain")["dataset"]).samples]
    assert unpacked(found["target"]).tolist() == targets
    assert of("questions", "/filters")["slices"]["category"]["names"] == ["even", "odd"]
    packed = part.document(f"packed/{of('plain')['evaluations'][0]['id']}")
    logits = opened.outputs.read(packed["id"], "logits")
    known = np.arange(COUNT) != BROKEN
    assert (unpacked(packed["prediction"])[known] == logits.argmax(axis=1)[known]).all()
    assert unpacked(packed["confidence"])[known] == pytest.approx(softmax(logits, axis=1).max(axis=1)[known], abs=1e-4)
    assert packed["errors"] == [BROKEN]


def test_there_are_documents_of_all_paths_and_of_no_others(part):
    paths = list(part.paths())
    assert len(set(paths)) == len(paths)
    for path in paths:
        json.dumps(part.document(path), allow_nan=False)
    for path in ("samples/99", "samples/0/chunk/99", "packed/999", "details/1/0", "samples/0/ids/1", "elsewhere"):
        with pytest.raises(KeyError):
            part.document(path)


def test_models_that_saw_other_samples_are_shown_where_they_did(sqlite_store):
    everything = samples_of([0, 1, 2, 3, 1, 2])
    put(sqlite_store, "all", "photos", everything, saying([0, 1, 2, 3, 1, 2]))
    put(sqlite_store, "all too", "photos", everything, saying([3, 1, 2, 3, 1, 0]))
    put(sqlite_store, "few", "photos", [everything[5], everything[1]], saying([2, 0]))
    part = SamplesPart(sqlite_store, Catalog(packages=(), entry_points=False), ["photos"])
    chunk, head = part.document("samples/0/chunk/0"), part.document("samples/0")
    assert head["classes"] == list(NAMES)
    best = unpacked(chunk["top"]["classes"]).reshape(3, 6, -1)[:, :, 0]
    assert best[2].tolist()[1::4] == [0, 2]
    assert np.isnan(best[2][[0, 2, 3, 4]]).all()
    right = unpacked(part.document(f"packed/{head['evaluations'][2]['id']}")["values"])
    assert right[[1, 5]].tolist() == [0, 1]


def test_rows_are_read_from_both_databases_as_the_whole_is(store, tmp_path):
    logits = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    one = put(store, "a", "photos", samples_of([0, 1, 2, 3, 1, 2]), logits)
    rows: SampleRows = store
    found = rows.samples.output_rows("logits", {one.id: [4, None, 0]})[one.id]
    assert (found[0] == logits[4]).all()
    assert found[1] is None
    assert (found[2] == logits[0]).all()
    whole = next(iter(store.scores.read(one.id, "top1").values()))
    assert rows.scores.rows({one.id: [5, 1]}, ["top1"])[one.id]["top1"] == [whole[5], whole[1]]
    blocks = [(start, values.shape) for start, values in rows.samples.output_blocks(one.id, "logits")]
    assert blocks == [(0, (6, 4))]
    with Store.open(store.full_url, "write", str(tmp_path / "outputs")) as outside:
        other = put(outside, "outside", "photos", samples_of([0, 1, 2, 3, 1, 2]), logits)
        assert (np.stack(outside.samples.output_rows("logits", {other.id: [3, 5]})[other.id]) == logits[[3, 5]]).all()
    before = rows.results.state()
    put(store, "b", "photos", samples_of([0, 1]), saying([0, 1]))
    assert rows.results.state() != before


# Pictures ---------------------------------------------------------------------------------------------------------


def decoded(content: bytes | str) -> np.ndarray[Any, Any]:
    assert isinstance(content, bytes), content
    return np.asarray(Image.open(BytesIO(content)), dtype=np.float64)


def test_a_perturbed_picture_stands_beside_the_clean_one(opened, world):
    from testbed.workers.kernels.perturb import perturbed

    _, catalog = world
    samples, pictures = SettingSamples.of(opened, "noisy"), Pictures(opened, catalog)
    clean, own = (
        pictures.image(samples, opened.datasets.get(samples.dataset).samples[3], each) for each in (CLEAN, OWN)
    )
    source = catalog.get_eval_setting("noisy").dataset.open().image(3)
    assert np.asarray(clean) == pytest.approx(np.asarray(source), abs=1)
    assert (
        np.asarray(own) == np.asarray(perturbed(clean, catalog.get_eval_setting("noisy"), "toy/0003", "cpu", 0))
    ).all()
    shown = decoded(pictures.picture(samples, 3)), decoded(pictures.picture(samples, 3, CLEAN))
    assert max(shown[0].shape) <= SIDE
    assert np.abs(shown[0] - shown[1]).mean() > 5


def test_what_cannot_be_shown_says_why_and_names_in_a_store_are_no_paths(sqlite_store, world, tmp_path):
    put(sqlite_store, "a", "plain", samples_of([0, 1], ["../../../etc/passwd", "/etc/passwd"]), saying([0, 1]))
    samples = SettingSamples.of(sqlite_store, "plain")
    pictures = Pictures(sqlite_store, world[1])
    assert pictures.picture(samples, 0) == "the data set has no sample ../../../etc/passwd"
    assert "no such sample" in str(pictures.picture(samples, 5))
    unknown = Pictures(sqlite_store, Catalog(packages=(), entry_points=False))
    assert "not registered" in str(unknown.picture(samples, 0))


def test_thumbnails_stand_in_for_data_that_are_not_there(world, tmp_path):
    url, catalog = world
    copy = shutil.copy(Path(url), tmp_path / "copy.db")
    elsewhere = Catalog(packages=(), entry_points=False)
    with Store.open(str(copy), "write") as store:
        before = [(each.fingerprint, each.identity) for each in store.evaluations.find()]
        done = store_thumbnails(store, catalog, ["plain", "noisy"])
        assert (done.number, done.skipped) == (COUNT - 1 + COUNT - 1, 3)  # of noisy, the clean ones are plain's
        assert store_thumbnails(store, catalog, ["plain"]).number == 0
        assert done.size < 12_000 * done.number
        assert [(each.fingerprint, each.identity) for each in store.evaluations.find()] == before
        for name in ("plain", "noisy"):
            samples = SettingSamples.of(store, name)
            here, gone = Pictures(store, catalog), Pictures(store, elsewhere)
            for which in (OWN, CLEAN):
                difference = decoded(gone.picture(samples, 5, which)) - decoded(here.picture(samples, 5, which))
                assert np.abs(difference).mean() < 20, (name, which)  # noise, which JPEG does not keep well
        assert isinstance(Pictures(store, elsewhere).picture(samples, BROKEN), str)


# Exports ----------------------------------------------------------------------------------------------------------


def test_an_export_has_the_hardest_samples_and_others_evenly_spread(opened):
    chosen = choose_samples(opened, ["pl*"], 10)
    assert list(chosen) == ["plain"]
    assert len(chosen["plain"]) == 10
    assert set(range(0, COUNT, COUNT // 5)) <= set(chosen["plain"])
    samples = SettingSamples.of(opened, "plain")
    scores = [next(iter(opened.scores.read(each.id, "top1").values())) for each in samples.shown]
    others = sorted(set(chosen["plain"]) - set(range(0, COUNT, COUNT // 5)))
    assert (np.sum(scores, axis=0)[others] == 0).all()
    assert choose_samples(opened, ["plain"], 0)["plain"] == list(range(COUNT))
    assert choose_samples(opened, [], 10) == {}
