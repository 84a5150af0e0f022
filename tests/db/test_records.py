"""Records, certificates and evaluations that are set aside, on both backends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from testbed.certificates import Certificate
from testbed.db.connection import lookup
from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Evaluation, Metric, SampleInfo
from testbed.errors import CorruptOutputError

RECORD = {"scheme": 2, "files": {"/a/b.py": "1", "/a/c.json": "2"}, "libraries": {"numpy": "2.1"}}
OTHER = {**RECORD, "files": {"/a/b.py": "3"}}
SAMPLES = [SampleInfo(f"{index}.png", f"content {index}", index % 3) for index in range(10)]
WHOLE = DatasetInfo("photos", "f-photos", SAMPLES)
PART = DatasetInfo("photos", "f-part", [SAMPLES[7], SAMPLES[2]])


def cell(setting: str = "val", fingerprint: str = "f", **given: Any) -> CellRecord:
    identity = {"model": {"spec": {"layers": 2}, "weights": "w"}, "scheme": 2}
    return CellRecord("net", setting, fingerprint, "forward", 10, identity=identity, **given)


def put(store: Store, complete: bool = True, **given: Any) -> Evaluation:
    evaluation = store.evaluations.begin(cell(**given), store.datasets.ensure(WHOLE), {}, {})
    values = np.arange(30, dtype=np.float32).reshape(10, 3)
    store.outputs.append([Chunk(evaluation.id, "logits", 0, values[:4]), Chunk(evaluation.id, "logits", 4, values[4:])])
    if complete:
        store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5, 10)])
    return store.evaluations.get(evaluation.id)


def derive(store: Store, source: Evaluation) -> Evaluation:
    record = cell("part", "f-part", derived_from=source.id, origin="derived")
    evaluation = store.evaluations.begin(record, store.datasets.ensure(PART), {}, {})
    store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5, 2)])
    return store.evaluations.get(evaluation.id)


# Records ----------------------------------------------------------------------------------------------------------


def test_records_come_back_as_they_were_the_latest_first(store: Store) -> None:
    evaluation = put(store)
    assert store.records.of([evaluation.id]) == {evaluation.id: []}
    store.records.add({evaluation.id: RECORD})
    store.records.add({evaluation.id: OTHER}, metrics=False)
    latest, first = store.records.of([evaluation.id])[evaluation.id]
    assert (first.content, first.metrics) == (RECORD, True)
    assert (latest.content, latest.metrics) == (OTHER, False)
    assert list(first.content["files"]) == list(RECORD["files"])


def test_a_record_that_holds_for_the_outputs_may_come_to_hold_for_the_metrics(store: Store) -> None:
    evaluation = put(store)
    store.records.add({evaluation.id: RECORD}, metrics=False)
    store.records.add({evaluation.id: RECORD})
    store.records.add({evaluation.id: RECORD}, metrics=False)  # which takes nothing back
    (found,) = store.records.of([evaluation.id])[evaluation.id]
    assert found.metrics


def test_records_can_take_the_place_of_earlier_ones(store: Store) -> None:
    one, two = put(store), put(store, setting="other")
    store.records.add({one.id: RECORD, two.id: RECORD})
    store.records.add({one.id: OTHER}, replace=True)
    found = store.records.of([one.id, two.id])
    assert [each.content for each in found[one.id]] == [OTHER]
    assert [each.content for each in found[two.id]] == [RECORD]


# Certificates -----------------------------------------------------------------------------------------------------


def test_certificates_come_back_as_they_were(store: Store) -> None:
    evaluation = put(store)
    given = [
        Certificate(8, 0, 0, 1e-7, 1e-4, True, ("b.py changed",), {"batch_size": 7}),
        Certificate(5, 2, None, None, None, None),
    ]
    store.records.add_certificates([(evaluation.id, each) for each in given])
    found = store.records.certificates([evaluation.id])[evaluation.id]
    assert found == given
    assert [each.equal for each in found] == [True, False]
    assert found[0].environment == {"batch_size": 7}
    assert (found[0].flip_rate, found[1].flip_rate) == (0, None)


def test_an_infinite_difference_is_stored_as_the_largest_number(store: Store) -> None:
    evaluation = put(store)
    store.records.add_certificates([(evaluation.id, Certificate(8, 8, 8, math.inf, 1e-4))])
    (found,) = store.records.certificates([evaluation.id])[evaluation.id]
    assert found.largest_difference is not None
    assert 1e300 < found.largest_difference < math.inf


def test_the_quick_lookup_has_them_too(sqlite_store: Store) -> None:
    evaluation = put(sqlite_store)
    given = Certificate(8, 1, 1, 0.25, 1e-4, False, ("b.py changed",), {"batch_size": 7})
    sqlite_store.records.add_certificates([(evaluation.id, given)])
    (quick,) = lookup.complete_cells(sqlite_store.full_url, "net", "val") or ()
    (slow,) = lookup.complete_cells_of(sqlite_store, "net", "val")
    assert quick.certificates == slow.certificates == [given]
    assert quick.certificates[0].created_at == slow.certificates[0].created_at


def test_records_and_certificates_go_with_their_evaluation(store: Store) -> None:
    evaluation = put(store)
    store.records.add({evaluation.id: RECORD})
    store.records.add_certificates([(evaluation.id, Certificate(8, 0))])
    store.removal.hide_evaluation(evaluation.id)
    store.removal.purge()
    assert store.records.of([evaluation.id]) == store.records.certificates([evaluation.id]) == {evaluation.id: []}


# Set aside, adopted -----------------------------------------------------------------------------------------------


def test_an_evaluation_that_is_set_aside_is_found_no_more_but_seen(store: Store) -> None:
    source = put(store)
    derived = derive(store, source)
    assert store.records.set_aside(derived.id, ["b.py changed"]) == [source.id, derived.id]
    assert store.evaluations.sources({"forward"}) == []
    seen = {each.id: each for each in store.evaluations.find()}
    assert {seen[each.id].status for each in (source, derived)} == {"complete"}
    assert not {"f", "f-part"} & {each.fingerprint for each in seen.values()}
    before = store.evaluations.identity(seen[source.id])["set_aside"]
    assert (before["fingerprint"], before["because"]) == ("f", ["b.py changed"])
    assert put(store).id != source.id  # a new one can take its place


def test_an_evaluation_that_was_set_aside_is_brought_back_with_what_shares_its_outputs(store: Store) -> None:
    source = put(store)
    derived = derive(store, source)
    store.records.set_aside(derived.id, ["b.py changed"], outputs=False)
    store.records.set_aside(source.id, ["c.py changed"])
    assert store.records.set_aside_before("f", "net", "val") == [source.id]
    assert store.records.set_aside_before("f-part", "net", "part") == [derived.id]
    assert store.records.set_aside_before("g", "net", "val") == []
    store.records.bring_back(source.id)
    assert store.evaluations.get(source.id) == source
    assert store.evaluations.get(derived.id) == derived
    assert [each.id for each in store.evaluations.sources({"forward"})] == [source.id]


def test_an_evaluation_is_not_brought_back_where_another_one_has_its_place(store: Store) -> None:
    old = put(store)
    store.records.set_aside(old.id, ["b.py changed"])
    new = put(store)
    store.records.bring_back(old.id)
    assert store.evaluations.get(new.id).fingerprint == "f"
    assert store.evaluations.get(old.id).fingerprint != "f"


def test_where_the_metrics_alone_are_outdated_the_outputs_are_still_found(store: Store) -> None:
    source = put(store)
    derived = derive(store, source)
    assert store.records.set_aside(source.id, ["b.py changed"], outputs=False) == [source.id]
    assert [each.id for each in store.evaluations.sources({"forward"})] == [source.id]
    assert store.evaluations.get(derived.id).fingerprint == "f-part"


def test_an_interrupted_evaluation_that_is_set_aside_has_failed(store: Store) -> None:
    evaluation = put(store, complete=False)
    store.records.set_aside(evaluation.id, ["b.py changed"])
    found = store.evaluations.get(evaluation.id)
    assert (found.status, found.error) == ("failed", "interrupted, and outdated since: b.py changed")


def test_an_evaluation_is_adopted_under_other_fingerprints(store: Store) -> None:
    evaluation = put(store)
    new = CellRecord("net", "val", "g", "new forward", 10, identity={"model": {"spec": {}}, "scheme": 3})
    store.records.adopt(evaluation.id, new)
    found = store.evaluations.get(evaluation.id)
    assert (found.fingerprint, found.forward_fingerprint) == ("g", "new forward")
    assert store.evaluations.identity(found) == new.identity
    assert [each.id for each in store.evaluations.sources({"new forward"})] == [evaluation.id]


def test_only_the_outputs_are_adopted_where_the_metrics_are_others_or_the_cell_is_taken(store: Store) -> None:
    old, taken = put(store), put(store, fingerprint="g")
    new = CellRecord("net", "val", "g", "new forward", 10, identity={"scheme": 3})
    store.records.adopt(old.id, new)
    assert store.evaluations.get(old.id).fingerprint == "f"
    assert store.evaluations.get(old.id).forward_fingerprint == "new forward"
    store.records.adopt(taken.id, CellRecord("net", "val", "h", "newer", 10, identity={"scheme": 3}), metrics=False)
    assert store.evaluations.get(taken.id).fingerprint == "g"


# Some rows --------------------------------------------------------------------------------------------------------


def test_some_rows_are_read_whether_or_not_all_are_there(store: Store) -> None:
    evaluation = put(store)
    rows = store.outputs.read_rows(evaluation.id, "logits", [9, 0, 4])
    np.testing.assert_array_equal(rows, [[27, 28, 29], [0, 1, 2], [12, 13, 14]])
    begun = store.evaluations.begin(cell("begun"), store.datasets.ensure(WHOLE), {}, {})
    store.outputs.append([Chunk(begun.id, "logits", 2, np.ones((3, 3), np.float32))])
    found = store.outputs.read_rows(begun.id, "logits", [0, 2, 9])
    assert found[0] is None
    assert found[2] is None
    np.testing.assert_array_equal(found[1], [1, 1, 1])


def test_rows_of_a_derived_evaluation_are_those_of_its_source(store: Store) -> None:
    derived = derive(store, put(store))
    np.testing.assert_array_equal(store.outputs.read_rows(derived.id, "logits", [0, 1]), [[21, 22, 23], [6, 7, 8]])


def test_damage_is_noticed(store: Store) -> None:
    import sqlalchemy as sa

    evaluation = put(store)
    with store.database.writing() as session:
        session.execute(sa.text("UPDATE output_chunks SET checksum = 'x' WHERE start = 4"))
    assert store.outputs.read_rows(evaluation.id, "logits", [1])[0] is not None
    with pytest.raises(CorruptOutputError):
        store.outputs.read_rows(evaluation.id, "logits", [5])
