"""Recorded predictions: forms of files, what is no text, and ids that fit no sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.data.formats.predictions import Predictions, read_predictions
from testbed.errors import DataError


def write(folder: Path, value: Any) -> Path:
    path = folder / "internvl.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


@pytest.mark.parametrize("key", ["caption", "prediction", "summary", "text"])
def test_every_form_gives_the_same_predictions(tmp_path: Path, key: str) -> None:
    texts = {"v1": "A dog.", "v2": "", "v3": " \n"}
    records = [{"id": sample, key: text, "seconds": 3} for sample, text in texts.items()]
    plain = read_predictions(write(tmp_path, texts))
    assert plain.texts == texts  # blank ones too: that is what the captioner said
    assert plain.faults == {}
    assert plain.absent == frozenset()
    assert read_predictions(write(tmp_path, records)) == plain
    assert read_predictions(write(tmp_path, "\n".join(map(json.dumps, records)))) == plain


def test_what_is_no_text_is_that_samples_error_and_null_is_no_prediction(tmp_path: Path) -> None:
    given = {"a": "x", "b": 3, "c": ["y"], "d": None, "e": {"f": 1}, "g": "\ud800", "h": True, "i": "a\0b"}
    found = read_predictions(write(tmp_path, given))
    assert found.texts == {"a": "x"}
    assert found.absent == {"d"}
    assert set(found.faults) == {"b", "c", "e", "g", "h", "i"}
    assert found.faults["b"] == "a text was expected, the value 3 was found"
    assert found.faults["c"] == "a text was expected, a list was found"
    assert "half of a surrogate pair" in found.faults["g"]


def test_a_key_that_is_there_twice_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"internvl\.json: an object has the key 'v1' twice"):
        read_predictions(write(tmp_path, '{"v1": "one", "v2": "x", "v1": "two"}'))
    with pytest.raises(DataError, match=r"internvl\.json has the id 'v1' twice"):
        read_predictions(write(tmp_path, '{"id": "v1", "text": "one"}\n{"id": "v1", "text": "one"}'))


def test_a_record_without_a_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="record 2 has only id, answer; expected one of caption, prediction, summary, text"
    ):
        read_predictions(write(tmp_path, [{"id": "a", "text": "x"}, {"id": "b", "answer": "y"}]))


def predictions(*ids: str) -> Predictions:
    return Predictions(Path("m.json"), dict.fromkeys(ids, "x"), {}, frozenset())


def test_coverage_counts_texts() -> None:
    found = Predictions(Path("m.json"), {"a": "x", "b": ""}, {"c": "bad"}, frozenset({"d"}))
    assert found.coverage(["a", "b", "c", "d", "e"]) == 2
    assert found.coverage(["c", "x"]) == 0  # it is known at least
    assert found.coverage([]) == 0


@pytest.mark.parametrize(
    ("own", "theirs"),
    [("video_001.mp4", "video_001"), ("clips/7", "007"), ("VID_9", "vid_9"), ("vidoe_001", "video_001")],
)
def test_ids_that_fit_no_sample_are_an_error_that_names_a_near_one(own: str, theirs: str) -> None:
    with pytest.raises(
        DataError, match=r"m\.json has predictions for .*none of the 1 samples has such an id"
    ) as raised:
        predictions(own).coverage([theirs])
    assert str(raised.value).endswith(f"is {own!r} meant to be {theirs!r}?")


def test_ids_of_another_data_set_have_no_near_one() -> None:
    with pytest.raises(DataError, match=r"they are called 'q', 'r'$"):
        predictions("a1", "b2").coverage(["q", "r"])
