"""Copies from one store to another: nothing is lost, nothing overwritten, on both databases and between them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import pytest
import sqlalchemy as sa
from stored_cells import put, samples_of, saying

from testbed.db.merge import merge
from testbed.db.store import Store, upgrade
from testbed.db.tables import Base
from testbed.entities import CellRecord, Chunk, Metric

SAMPLES = samples_of([0, 1, 2, 3])
NOT_COPIED = {"runs", "leases", "item_leases"}


@pytest.fixture(scope="module")
def whole(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of small cells of all kinds, with embeddings, heads, answers, certificates and records."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    shutil.copy(root / "tests" / "assets" / "golden_store_0004.db", path)
    upgrade(str(path))
    return path


def content(store: Store) -> dict[str, Any]:
    """All that is visible, without ids."""
    told: dict[str, Any] = {}
    for each in store.evaluations():
        about = (each.model, each.eval_setting, each.fingerprint)
        kinds = store.kinds(each.id) if each.status == "complete" and each.origin != "imported" else {}
        told[str(about)] = (
            each.status, each.origin, each.error, each.size, each.identity, each.environment, each.created_at,
            sorted(map(repr, store.metrics(each.id))),
            {key: values.tolist() for key, values in store.scores(each.id).items()},
            {kind: repr(store.read_outputs(each.id, kind).tolist()) for kind in kinds},
            store.sample_errors(each.id),
            sorted(repr(record.content) for record in store.records([each.id])[each.id]),
            store.certificates([each.id])[each.id],
            store.dataset(each.dataset_id).fingerprint if each.dataset_id else None,
        )  # fmt: skip
    return told


def rows(store: Store) -> dict[str, int]:
    with store.reading() as session:
        tables = [table for table in Base.metadata.sorted_tables if table.name not in NOT_COPIED]
        return {table.name: session.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in tables}


def test_a_copy_has_everything(whole: Path, store: Store) -> None:
    with Store.open(str(whole)) as source:
        merged = merge(source, store)
        assert (merged.copied, merged.known, merged.conflicts) == (len(source.evaluations()), 0, [])
        assert content(store) == content(source)
        assert rows(store) == rows(source)
        assert list(store.check()) == []
        again = merge(source, store)
        assert (again.copied, again.known, again.conflicts) == (0, merged.copied, [])
        assert rows(store) == rows(source)


def test_there_and_back_between_the_databases(whole: Path, postgres_url: str, tmp_path: Path) -> None:
    with postgres_server.database(postgres_url) as url, Store.open(str(whole)) as source:
        with Store.create(url) as there:
            merge(source, there)
        with Store.open(url) as there, Store.create(str(tmp_path / "back.db")) as back:
            merge(there, back)
            assert content(back) == content(source)
            assert list(back.check()) == []


def test_a_copy_that_was_stopped_goes_on(whole: Path, store: Store) -> None:
    def stopping(what: str, share: float) -> None:
        if share > 0.3:
            raise KeyboardInterrupt

    with Store.open(str(whole)) as source:
        with pytest.raises(KeyboardInterrupt):
            merge(source, store, tell=stopping)
        there = len(store.evaluations())
        assert 0 < there < len(source.evaluations())
        assert merge(source, store).known == there
        assert content(store) == content(source)


def test_without_outputs_results_count_as_imported(whole: Path, store: Store) -> None:
    with Store.open(str(whole)) as source:
        merge(source, store, outputs=False)
        numbers = [
            sorted((each.model, each.eval_setting, each.metric, each.slice, each.value or 0.0) for each in of.results())
            for of in (source, store)
        ]
        assert numbers[0] == numbers[1]
        done = [each for each in store.evaluations() if each.status == "complete"]
        assert {each.origin for each in done} == {"imported"}
        assert all(each.source and each.source.endswith("store.db, without outputs") for each in done)
        assert rows(store)["output_chunks"] == rows(store)["item_values"] == 0
        assert list(store.check()) == []


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    with Store.create(str(tmp_path / "other.db")) as made:
        yield made


def test_what_is_complete_is_not_overwritten(store: Store, other: Store) -> None:
    ours = put(store, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    theirs = put(other, "net", "shown", SAMPLES, saying([0, 0, 0, 0]))
    put(other, "new", "shown", SAMPLES, saying([0, 1, 2, 3]))
    other.complete(theirs.id, [], [Metric("top1", 0.25)])
    merged = merge(other, store)
    assert (merged.copied, merged.known) == (1, 1)
    assert merged.conflicts == [
        f"net on shown: top1 (overall) is 0.5 here and 0.25 there; the one here is kept (evaluation {ours.id})"
    ]
    np.testing.assert_array_equal(store.read_outputs(ours.id, "logits"), saying([0, 1, 2, 3]))


def test_a_result_takes_the_place_of_what_was_only_begun(store: Store, other: Store) -> None:
    done = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    record = CellRecord("net", "shown", done.fingerprint, size=4)
    begun = store.begin(record, None, {}, {})
    store.append([Chunk(begun.id, "logits", 0, saying([3, 3]))], {begun.id: {3: "broken"}})
    assert merge(other, store).copied == 1
    (found,) = store.evaluations()
    assert (found.id, found.status) == (begun.id, "complete")
    np.testing.assert_array_equal(store.read_outputs(found.id, "logits"), saying([0, 1, 2, 3]))
    assert store.sample_errors(found.id) == {}


def test_what_a_run_is_computing_is_left_to_it(store: Store, other: Store) -> None:
    done = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    store.begin_run("eval.py")
    begun = store.begin(CellRecord("net", "shown", done.fingerprint, size=4), None, {}, {})
    store.lease([begun.id], 0, 4)
    merged = merge(other, store)
    assert (merged.copied, merged.known) == (0, 1)
    assert store.evaluation(begun.id).status == "running"


def test_hidden_evaluations_stay_behind_but_for_the_outputs_of_others(store: Store, other: Store) -> None:
    root = put(other, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    record = CellRecord("net", "part", "derived", size=4, origin="derived", derived_from=root.id)
    part = other.begin(record, root.dataset_id, {}, {})
    other.complete(part.id, [], [Metric("top1", 0.5)])
    other.hide_evaluation(root.id)
    gone = put(other, "gone", "shown", SAMPLES, saying([0, 1, 2, 3]))
    other.hide_evaluation(gone.id)
    assert merge(other, store).copied == 2
    (found,) = store.evaluations()
    np.testing.assert_array_equal(store.read_outputs(found.id, "logits"), saying([0, 1, 2, 3]))
    assert [each.model for each in store.evaluations(hidden=True)] == ["net"]
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
            (evaluation,) = target.evaluations()
            assert target.read_outputs(evaluation.id, "logits").argmax(1).tolist() == [0, 1, 2, 3]
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
    assert [each.model for each in store.evaluations()] == ["whole"]
