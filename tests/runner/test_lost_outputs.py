"""Outputs in files that are gone: a run computes them again, by the range, where their place is there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.db.upkeep.lost import forget_lost

COUNT = 600


@pytest.fixture
def unfinished(lab: Any, tmp_path: Path, work: Any) -> Path:
    """The folder of outputs that are all stored, of an evaluation whose scoring failed."""
    place = tmp_path / "outputs"
    assert lab.run(toy_catalog(toy_model(), toy_setting(count=COUNT)), payload_url=str(place)).ok
    with Store.open(lab.url, "write") as store, store.database.writing() as session:
        session.connection().exec_driver_sql("UPDATE evaluations SET status = 'failed' WHERE status = 'complete'")
    work.clear()
    return place


def run_again(lab: Any, place: Path) -> Any:
    return lab.run(toy_catalog(toy_model(), toy_setting(count=COUNT)), payload_url=str(place), trust=True)


def test_what_is_gone_is_computed_again_and_nothing_else(lab: Any, unfinished: Path, work: Any) -> None:
    files = sorted(unfinished.glob("*/*.bin"), key=lambda path: int(path.name.split("-")[1]))
    before = {path.name for path in files}
    assert len(files) > 1
    files[1].unlink()
    assert run_again(lab, unfinished).ok
    (note,) = [each for each in lab.progress.notes if "any more" in each]
    assert f"not at {unfinished} any more; they are computed again" in note
    assert 0 < work["images through networks"] < COUNT
    assert {path.name for path in unfinished.glob("*/*.bin")} == before
    assert len(np.unique(lab.logits("toy", "toy-all"), axis=0)) > 1


def test_a_folder_that_was_emptied_is_filled_again(lab: Any, unfinished: Path, work: Any) -> None:
    for each in unfinished.iterdir():
        shutil.rmtree(each)
    assert run_again(lab, unfinished).ok
    assert work["images through networks"] == COUNT


def test_a_place_that_is_not_there_says_nothing_of_its_files(lab: Any, unfinished: Path, work: Any) -> None:
    """Such as a disk that is not mounted: the rows stay, and with the disk the outputs are back."""
    away = unfinished.rename(unfinished.with_name("away"))
    report = run_again(lab, unfinished)
    (outcome,) = report.outcomes
    assert outcome.status == "failed"
    assert "the same command computes them again" in outcome.reason
    away.rename(unfinished)
    assert run_again(lab, unfinished).ok
    assert work["images through networks"] == 0


def test_a_file_that_may_not_be_read_is_not_lost(lab: Any, unfinished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any, **__: Any) -> int:
        raise PermissionError(13, "Permission denied")

    with Store.open(lab.url, "write") as store:
        (evaluation,) = store.evaluations.find()
        with monkeypatch.context() as patch:
            patch.setattr("testbed.db.payloads.encoding.os.open", forbidden)
            assert forget_lost(store.database, evaluation.id) == (0, "")
        assert store.outputs.stored_ranges([evaluation.id])[evaluation.id] == [(0, COUNT)]
