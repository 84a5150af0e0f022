"""A place of outputs that does not answer: it is asked once, and what lies elsewhere is done."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from toy import WORK, ToyDataset, toy_catalog, toy_model, toy_setting
from unsteady import Unsteady, register_unsteady

from testbed.db.store import Store
from testbed.db.upkeep.merge import merge
from testbed.graph.options import RunOptions
from testbed.runner.recompute import Amount
from testbed.runner.scrub import ScrubReport, verify_store
from testbed.scoring.deep_check import deep_faults
from testbed.scoring.rescore import rescore

FAR = 4  # cells whose outputs are far away


def catalog() -> Any:
    models = [toy_model(name, weights=name) for name in ("near", "one", "two")]
    return toy_catalog(*models, toy_setting("a", count=20, dataset=ToyDataset(20, seed=1)), toy_setting("b", count=30))


@pytest.fixture
def far(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store with the outputs of two models at a far place, and those of another one in the database."""
    register_unsteady(monkeypatch)
    assert lab.run(catalog(), models=["near"]).ok
    assert lab.run(catalog(), models=["one", "two"], payload_url=f"unsteady://{uuid.uuid4().hex}/lab").ok
    return lab


def silent(error: Exception | None = None) -> None:
    Unsteady.error, Unsteady.times = error or TimeoutError("nobody answers"), 10**6


def asked() -> int:
    return 10**6 - Unsteady.times


def verify(lab: Any) -> ScrubReport:
    options = RunOptions(db_url=lab.url, executor="inline")
    return verify_store(catalog(), options, timedelta(hours=1), Amount(8))


@pytest.mark.parametrize("error", [TimeoutError("nobody answers"), PermissionError("Forbidden"), ImportError("s3fs")])
def test_verify_asks_a_silent_place_once_and_verifies_the_rest(far: Any, error: Exception) -> None:
    silent(error)
    WORK.clear()
    done = verify(far)
    assert {each.evaluation.model for each in done.verified} == {"near"}
    counts = {reason: len(cells) for reason, cells in done.not_verified.items()}
    (first,) = [reason for reason in counts if str(error) in reason]
    (rest,) = [reason for reason in counts if reason.endswith("which does not answer; they are not tried")]
    assert (counts[first], counts[rest]) == (1, FAR - 1)
    assert asked() <= 4
    assert WORK["networks made"] == 2  # of the second model whose outputs are there, nothing is run
    Unsteady.times = 0
    assert len(verify(far).verified) == FAR + 2


def test_copying_asks_a_silent_place_once_and_copies_the_rest(
    far: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.db.payloads.far.REST", 60.0)
    silent()
    with Store.open(far.url) as source, Store.create(str(tmp_path / "copy.db")) as target:
        done = merge(source, target)
    assert asked() <= 4
    assert done.copied == 2
    assert len(done.unreadable) == FAR
    assert sum("did not answer before (TimeoutError: nobody answers)" in line for line in done.unreadable) == FAR - 1


def test_a_deep_check_asks_a_silent_place_once_and_finds_nothing_to_repair(
    far: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.db.payloads.far.REST", 60.0)
    silent()
    with Store.open(far.url) as store:
        faults = [*store.maintenance.faults(), *deep_faults(store, catalog(), lambda *_: None)]
    assert asked() <= 4
    assert [fault.text for fault in faults if fault.is_curable] == []


def test_rescoring_changes_nothing_of_outputs_that_cannot_be_read(far: Any) -> None:
    def fingerprints() -> list[tuple[Any, ...]]:
        statement = "SELECT id, fingerprint, status FROM evaluations ORDER BY id"
        with Store.open(far.url) as store, store.database.reading() as session:
            return [tuple(row) for row in session.connection().exec_driver_sql(statement)]

    with Store.open(far.url, "write") as store:
        with store.database.writing() as session:
            session.connection().exec_driver_sql("DELETE FROM evaluation_records")  # the metrics are in doubt
        before = fingerprints()
        silent(PermissionError("Forbidden"))
        statuses = [result.status for result in rescore(store, catalog())]
        assert sorted(statuses) == ["current"] * 2 + ["failed"] * FAR
        assert fingerprints() == before
        Unsteady.times = 0
        assert {result.status for result in rescore(store, catalog())} == {"current"}
    assert fingerprints() == before


def test_a_place_that_answers_late_is_named_while_the_user_waits(
    far: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("testbed.db.payloads.far.PATIENCE", 0.05)
    monkeypatch.setattr(Unsteady, "seconds", 0.2)
    with Store.open(far.url) as store:
        assert list(store.maintenance.check()) == []
    (line, *_) = [record.getMessage() for record in caplog.records if "has not answered" in record.getMessage()]
    assert line.startswith("unsteady://")


def test_a_file_that_is_gone_says_nothing_of_its_place(far: Any) -> None:
    silent(FileNotFoundError("gone"))
    done = verify(far)
    assert asked() == FAR
    assert sum(map(len, done.not_verified.values())) == FAR


def test_a_local_file_that_cannot_be_read_says_nothing_of_its_folder(lab: Any, tmp_path: Path) -> None:
    place = tmp_path / "outputs"
    assert lab.run(catalog(), payload_url=str(place)).ok
    file = sorted(place.glob("*/*.bin"))[0]
    file.unlink()
    file.mkdir()
    done = verify(lab)
    assert len(done.verified) == FAR + 1
    assert sum(map(len, done.not_verified.values())) == 1
