"""Reference captions without images, in all forms of their files."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.data.formats import text_records
from testbed.data.sets.clip_cc import reference_captions
from testbed.data.source import ImageSource, with_images
from testbed.errors import DataError

RECORDS = [{"id": "v2", "summary": "A dog runs."}, {"id": "v10", "summary": "Ein Fluß.\nAm Abend.", "link": "…"}]
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the file of references."""

    def to_file(text: str) -> Path:
        path = tmp_path / "ground_truth.json"
        path.write_text(text, encoding="utf-8")
        return path

    return to_file


FORMS = {
    "list": json.dumps(RECORDS),
    "lines": "\n".join(map(json.dumps, RECORDS)) + "\n",
    "records one after the other": "\n\n".join(json.dumps(each, indent=2) for each in RECORDS),
    "object": json.dumps({each["id"]: each["summary"] for each in RECORDS}, ensure_ascii=False),
    "byte order mark": "\ufeff" + json.dumps(RECORDS),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_samples_in_the_order_of_the_file(write: Write, form: str) -> None:
    source = reference_captions(write(FORMS[form]), "captions")
    assert source.ids == ["v2", "v10"]
    assert source.targets == [["A dog runs."], ["Ein Fluß.\nAm Abend."]]
    assert len(source) == 2
    described = source.describe_samples([1, 0])
    assert [each.id for each in described.samples] == ["v10", "v2"]
    usual = reference_captions(write(FORMS["list"]), "captions")
    assert usual.describe_samples([1, 0]) == described


def test_whole_numbers_are_ids_and_a_list_is_several_references(write: Write) -> None:
    one = reference_captions(write('{"id": "v1", "summary": "A cat."}'), "captions")
    assert (one.ids, one.targets) == (["v1"], [["A cat."]])  # one record, not two samples
    source = reference_captions(write('[{"id": 126, "summary": ["One.", "Two."]}, {"id": "7", "caption": "x"}]'), "c")
    assert (source.ids, source.targets) == (["126", "7"], [["One.", "Two."], ["x"]])


def test_a_changed_reference_changes_its_digest_alone(write: Write) -> None:
    before = reference_captions(write(json.dumps({"a": "x", "b": "y"})), "c")
    after = reference_captions(write(json.dumps({"a": "x", "b": "z"})), "c")
    assert before.digests([0]) == after.digests([0])
    assert before.digests([1]) != after.digests([1])
    assert before.describe_samples([0, 1]).fingerprint != after.describe_samples([0, 1]).fingerprint


def test_samples_travel_and_have_no_images(write: Write) -> None:
    source = reference_captions(write(FORMS["list"]), "captions")
    assert not isinstance(source, ImageSource)
    assert pickle.loads(pickle.dumps(source)).targets == source.targets
    with pytest.raises(DataError, match="data set captions have no images"):
        with_images(source)


FAULTS = {
    "a blank reference": ('{"v1": "x", "v2": " \\n"}', "reference of 'v2': it is blank"),
    "an empty reference": ('{"v1": ""}', "reference of 'v1': it is blank"),
    "no references": ('[{"id": "v1", "summary": []}]', "reference of 'v1': a text was expected, a list was found"),
    "a number": ('{"v1": 3}', "reference of 'v1': a text was expected, the value 3 was found"),
    "null": ('[{"id": "v1", "summary": null}]', "reference of 'v1': a text was expected, the value null"),
    "half a pair": ('{"v1": "\\ud800"}', "half of a surrogate pair"),
    "NUL": ('{"v1": "a\\u0000b"}', "NUL"),
    "an id twice": ('[{"id": "a", "summary": "x"}, {"id": "a", "summary": "y"}]', "has the id 'a' twice"),
    "an id as number and text": ('[{"id": 1, "summary": "x"}, {"id": "1", "summary": "y"}]', "has the id '1' twice"),
    "a key twice": ('{"a": "x", "b": "y", "a": "z"}', "an object has the key 'a' twice"),
    "a blank id": ('{" ": "x"}', "the id ' ' is invalid"),
    "no id": ('[{"summary": "x"}]', "record 1 is an object with summary; expected "),
    "no text": ('[{"id": "a", "link": "x"}]', "record 1 has only id, link; expected one of summary, caption"),
    "two texts": ('[{"id": "a", "summary": "x", "text": "y"}]', "record 1 has summary and text; expected one of"),
    "a list of texts": ('["x", "y"]', "record 1 is a text; expected "),
    "a text": ('"x"', "record 1 is a text; expected "),
    "nothing": ("", "is empty"),
    "an empty list": ("[]", "is empty"),
    "an empty object": ("{}", "is empty"),
    "cut off": ('[{"id": "a", "summ', "is not valid JSON: .* incomplete"),
    "deeply nested": ("[" * 100_000, "is not valid JSON"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_name_the_file_and_the_place(write: Write, fault: str) -> None:
    text, said = FAULTS[fault]
    with pytest.raises(DataError, match=said) as raised:
        reference_captions(write(text), "captions")
    assert "ground_truth.json" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_a_missing_file_and_one_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"absent\.json cannot be read: No such file"):
        reference_captions(tmp_path / "absent.json", "captions")
    (tmp_path / "latin.json").write_bytes('{"a": "Fluß"}'.encode("latin-1"))
    with pytest.raises(DataError, match="is not UTF-8"):
        reference_captions(tmp_path / "latin.json", "captions")


def test_limits(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(json.dumps({"a": "x" * 50}))
    monkeypatch.setattr(text_records, "MAX_CHARACTERS", 49)
    with pytest.raises(DataError, match="reference of 'a': the text has 50 characters; at most 49"):
        reference_captions(path, "captions")
    monkeypatch.setattr(text_records, "MAX_BYTES", 10)
    with pytest.raises(DataError, match="has 59 bytes; the maximum is 10"):
        reference_captions(path, "captions")
