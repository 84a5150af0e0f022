"""Copies from one store to another: nothing is lost, nothing overwritten, on both databases and between them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.db.tables import Base, EvalSettingRow, ModelRow
from testbed.db.upkeep.merge import merge
from testbed.entities import CellRecord, Chunk, Metric

SAMPLES = samples_of([0, 1, 2, 3])
on_both = pytest.mark.parametrize("backend", ["sqlite", "postgres"])
NOT_COPIED = {"runs", "leases", "item_leases"}


@pytest.fixture
def backend() -> str:
    """What is chosen to be copied does not depend on the database; how it is stored does, see `on_both`."""
    return "sqlite"


def content(store: Store) -> dict[str, Any]:
    """All that is visible, without ids."""
    told: dict[str, Any] = {}
    for each in store.evaluations.find():
        about = (each.model, each.eval_setting, each.fingerprint)
        kinds = store.outputs.kinds(each.id) if each.status == "complete" and each.origin != "imported" else {}
        told[str(about)] = (
            each.status, each.origin, each.error, each.size, each.identity, each.environment, each.created_at,
            sorted(map(repr, store.results.metrics(each.id))),
            {key: values.tolist() for key, values in store.scores.read(each.id).items()},
            {kind: repr(store.outputs.read(each.id, kind).tolist()) for kind in kinds},
            store.outputs.errors(each.id),
            sorted(repr(record.content) for record in store.records.of([each.id])[each.id]),
            store.records.certificates([each.id])[each.id],
            store.datasets.get(each.dataset_id).fingerprint if each.dataset_id else None,
        )  # fmt: skip
    return told


def rows(store: Store) -> dict[str, int]:
    with store.database.reading() as session:
        tables = [table for table in Base.metadata.sorted_tables if table.name not in NOT_COPIED]
        return {table.name: session.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in tables}


@on_both
def test_a_copy_has_everything_and_every_column_of_every_row(
    whole: Path, store: Store, backend: str, tmp_path: Path
) -> None:
    with Store.open(str(whole)) as source:
        merged = merge(source, store)
        assert (merged.copied, merged.known, merged.conflicts) == (len(source.evaluations.find()), 0, [])
        assert content(store) == content(source)
        assert rows(store) == rows(source)
        assert list(store.maintenance.check()) == []
        for table in Base.metadata.sorted_tables:
            own = [
                each
                for each in table.columns
                if not each.foreign_keys and not (each.primary_key and each.name == "id") and each.name != "run_id"
            ]
            found = []
            for where in (source, store) if table.name not in NOT_COPIED else ():
                with where.database.reading() as session:
                    found.append(sorted(repr(tuple(row)) for row in session.execute(sa.select(*own))))
            assert not found or found[0] == found[1], table.name
        again = merge(source, store)
        assert (again.copied, again.known, again.conflicts) == (0, merged.copied, [])
        assert rows(store) == rows(source)
        if backend == "postgres":  # and back to the other database
            with Store.create(str(tmp_path / "back.db")) as back:
                merge(store, back)
                assert content(back) == content(source)
                assert list(back.maintenance.check()) == []


def test_a_copy_that_was_stopped_goes_on(whole: Path, store: Store) -> None:
    def stopping(what: str, share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    with Store.open(str(whole)) as source:
        with pytest.raises(KeyboardInterrupt):
            merge(source, store, tell=stopping)
        there = len(store.evaluations.find())
        assert 0 < there < len(source.evaluations.find())
        assert merge(source, store).known == there
        assert content(store) == content(source)


def test_without_outputs_results_count_as_imported(whole: Path, store: Store) -> None:
    with Store.open(str(whole)) as source:
        merge(source, store, outputs=False)
        numbers = [
            sorted(
                (each.model, each.eval_setting, each.metric, each.slice, each.value or 0.0)
                for each in of.results.find()
            )
            for of in (source, store)
        ]
        assert numbers[0] == numbers[1]
        done = [each for each in store.evaluations.find() if each.status == "complete"]
        assert {each.origin for each in done} == {"imported"}
        assert all(each.source and each.source.endswith("store.db, without outputs") for each in done)
        assert rows(store)["output_chunks"] == rows(store)["item_values"] == 0
        assert list(store.maintenance.check()) == []


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.create(str(tmp_path / "other.db")) as made:
        yield made


@on_both
def test_what_is_complete_is_not_overwritten(store: Store, other: Store) -> None:
    ours = put(store, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    theirs = put(other, "net", "shown", SAMPLES, saying([0, 0, 0, 0]))
    put(other, "new", "shown", SAMPLES, saying([0, 1, 2, 3]))
    other.evaluations.complete(theirs.id, [], [Metric("top1", 0.25)])
    merged = merge(other, store)
    assert (merged.copied, merged.known) == (1, 1)
    assert merged.conflicts == [
        f"net on shown: top1 (overall) is 0.5 here and 0.25 there; the one here is kept (evaluation {ours.id})"
    ]
    np.testing.assert_array_equal(store.outputs.read(ours.id, "logits"), saying([0, 1, 2, 3]))


@on_both
def test_a_result_takes_the_place_of_what_was_only_begun(store: Store, other: Store) -> None:
    done = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    record = CellRecord("net", "shown", done.fingerprint, size=4)
    begun = store.evaluations.begin(record, None, {}, {})
    store.outputs.append([Chunk(begun.id, "logits", 0, saying([3, 3]))], {begun.id: {3: "broken"}})
    assert merge(other, store).copied == 1
    (found,) = store.evaluations.find()
    assert (found.id, found.status) == (begun.id, "complete")
    np.testing.assert_array_equal(store.outputs.read(found.id, "logits"), saying([0, 1, 2, 3]))
    assert store.outputs.errors(found.id) == {}


def test_what_a_run_is_computing_is_left_to_it(store: Store, other: Store) -> None:
    done = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    store.leases.begin_run("eval.py")
    begun = store.evaluations.begin(CellRecord("net", "shown", done.fingerprint, size=4), None, {}, {})
    store.leases.lease([begun.id], 0, 4)
    merged = merge(other, store)
    assert (merged.copied, merged.known) == (0, 1)
    assert store.evaluations.get(begun.id).status == "running"


def test_hidden_evaluations_stay_behind_but_for_the_outputs_of_others(store: Store, other: Store) -> None:
    root = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    record = CellRecord("net", "part", "derived", size=4, origin="derived", derived_from=root.id)
    part = other.evaluations.begin(record, root.dataset_id, {}, {})
    other.evaluations.complete(part.id, [], [Metric("top1", 0.5)])
    other.removal.hide_evaluation(root.id)
    gone = put(other, "gone", "shown", SAMPLES, saying([0, 1, 2, 3]))
    other.removal.hide_evaluation(gone.id)
    assert merge(other, store).copied == 2
    (found,) = store.evaluations.find()
    np.testing.assert_array_equal(store.outputs.read(found.id, "logits"), saying([0, 1, 2, 3]))
    assert [each.model for each in store.evaluations.find(hidden=True)] == ["net"]
    assert merge(other, store).copied == 0


@pytest.mark.parametrize("outside", [False, True], ids=["into the database", "to a URL"])
def test_outputs_at_a_url_are_copied_along(tmp_path: Path, store_url: str, outside: bool) -> None:
    """Else a purge in one store would take them from the other."""
    place = str(tmp_path / "theirs")
    with Store.create(str(tmp_path / "source.db"), place) as source:
        put(source, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
        ours = str(tmp_path / "ours") if outside else ""
        with Store.open(store_url, "write", ours) as target:
            assert merge(source, target).copied == 1
            shutil.rmtree(place)
            (evaluation,) = target.evaluations.find()
            assert target.outputs.read(evaluation.id, "logits").argmax(1).tolist() == [0, 1, 2, 3]
    assert len(list((tmp_path / "ours").rglob("*.bin"))) == (1 if outside else 0)


def test_what_cannot_be_read_is_left_out_and_told_and_the_rest_is_copied(tmp_path: Path, store: Store) -> None:
    place = tmp_path / "theirs"
    with Store.create(str(tmp_path / "source.db"), str(place)) as source:
        put(source, "gone", "shown", SAMPLES, saying([0, 1, 2, 3]))
        put(source, "cut", "shown", SAMPLES, saying([0, 1, 2, 3]))
        gone, cut = sorted(place.rglob("*.bin"), key=lambda path: path.stat().st_mtime_ns)
        gone.unlink()
        cut.write_bytes(cut.read_bytes()[:-1])
        put(source, "whole", "shown", SAMPLES, saying([0, 1, 2, 3]))
        merged = merge(source, store)
    assert (merged.copied, [each.partition(":")[0] for each in merged.unreadable]) == (
        1,
        ["gone on shown", "cut on shown"],
    )
    assert [each.model for each in store.evaluations.find()] == ["whole"]


def damage(store: Store, table: str) -> None:
    """Changes a byte of all that a table holds, as a failing disk does."""
    with store.database.writing() as session:
        rows = [dict(row) for row in session.execute(sa.select(Base.metadata.tables[table])).mappings()]
        for row in rows:
            payload = bytes([row["payload"][0] ^ 1]) + row["payload"][1:]
            where = [each == row[each.name] for each in Base.metadata.tables[table].primary_key]
            session.execute(sa.update(Base.metadata.tables[table]).where(*where).values(payload=payload))


@pytest.mark.parametrize("table", ["output_chunks", "scores", "artifacts", "item_values"])
def test_what_differs_from_its_checksum_is_told_and_not_copied(
    whole: Path, tmp_path: Path, store: Store, table: str
) -> None:
    with Store.open(str(shutil.copy(whole, tmp_path / "damaged.db")), "write") as source:
        damage(source, table)
        merged = merge(source, store)
        before, after = rows(source), rows(store)
    assert before[table] > 0
    assert after[table] == 0
    told = [each for each in merged.unreadable if "differ from their checksum" in each]
    assert told
    if table in ("artifacts", "item_values"):  # the results that were made with them are as they were
        assert len(told) == before[table]
        assert after["evaluations"] == before["evaluations"]


def test_outputs_that_are_no_bytes_are_told_and_not_copied(whole: Path, tmp_path: Path, store: Store) -> None:
    path = shutil.copy(whole, tmp_path / "damaged.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE output_chunks SET payload = 'text' WHERE uri IS NULL")
        connection.execute("UPDATE output_chunks SET payload = NULL WHERE rowid % 2 = 0")
    connection.close()
    with Store.open(str(path)) as source:
        merged = merge(source, store)
    assert rows(store)["output_chunks"] == 0
    assert merged.unreadable


@on_both
def test_names_keep_the_time_since_when_they_are_known(store: Store, other: Store) -> None:
    put(store, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    put(other, "net", "hidden", SAMPLES, saying([0, 1, 2, 3]))
    put(other, "late", "shown", SAMPLES, saying([0, 1, 2, 3]))
    times = {"net": datetime(2020, 1, 1, tzinfo=UTC), "late": datetime(2021, 1, 1, tzinfo=UTC)}
    with other.database.writing() as session:
        for name, moment in times.items():
            session.execute(sa.update(ModelRow).where(ModelRow.name == name).values(created_at=moment))
        session.execute(sa.update(EvalSettingRow).values(created_at=times["late"]))
    with store.database.writing() as session:
        earlier = {"created_at": datetime(2019, 1, 1, tzinfo=UTC)}
        session.execute(sa.update(EvalSettingRow).where(EvalSettingRow.name == "shown").values(earlier))
    merge(other, store)
    with store.database.reading() as session:
        models, settings = (
            {row.name: row.created_at for row in session.scalars(sa.select(table))}
            for table in (ModelRow, EvalSettingRow)
        )
    assert models == times
    assert settings == {"shown": earlier["created_at"], "hidden": times["late"]}  # where both know it, the earlier one
