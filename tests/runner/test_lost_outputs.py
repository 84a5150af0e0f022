"""Outputs in files that are gone: a run computes them again, by the range, where their place is there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import ToyDataset, toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.db.upkeep.lost import forget_lost
from testbed.models.derived import DerivedFamily

COUNT = 600
PART = {"dataset": ToyDataset(COUNT), "idx_subsample_list": list(range(0, COUNT, 10))}


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


def test_what_takes_outputs_that_are_gone_is_computed_itself(lab: Any, tmp_path: Path, work: Any) -> None:
    """The stored metrics of the evaluation that has lost its outputs stay."""
    place, whole = tmp_path / "outputs", toy_setting(count=COUNT)
    part = toy_setting("part", count=COUNT // 10, **PART)
    catalog = toy_catalog(toy_model(), whole, part)
    assert lab.run(catalog, settings=[whole.name], payload_url=str(place)).ok
    for each in place.iterdir():
        shutil.rmtree(each)
    work.clear()
    (outcome,) = lab.run(catalog, settings=[part.name], payload_url=str(place)).outcomes
    assert outcome.status == "complete"
    assert work["images through networks"] == COUNT // 10
    (outcome,) = lab.run(catalog, settings=[whole.name], payload_url=str(place)).outcomes
    assert outcome.status == "stored"


def test_a_part_waits_for_outputs_that_are_computed_again(lab: Any, unfinished: Path, work: Any) -> None:
    for each in unfinished.iterdir():
        shutil.rmtree(each)
    part = toy_setting("part", count=COUNT // 10, **PART)
    catalog = toy_catalog(toy_model(), toy_setting(count=COUNT), part)
    report = lab.run(catalog, payload_url=str(unfinished), trust=True)
    assert [each.status for each in report.outcomes] == ["derived", "complete"]  # the part is the first
    assert work["images through networks"] == COUNT


def test_members_whose_outputs_are_gone_are_evaluated_again(lab: Any, tmp_path: Path, work: Any) -> None:
    members = [toy_model(name, seed, weights=f"of seed {seed}") for seed, name in enumerate("ab")]
    catalog = toy_catalog(*members, toy_setting(count=COUNT))
    catalog.add_model_family(DerivedFamily(catalog))
    place = tmp_path / "outputs"
    assert lab.run(catalog, ["a", "b"], payload_url=str(place)).ok
    for each in place.glob("*/*.bin"):
        each.unlink()
    work.clear()
    assert lab.run(catalog, ["ensemble:a+b"], payload_url=str(place)).ok
    assert work["images through networks"] == 2 * COUNT
    notes = [each for each in lab.progress.notes if "computed again" in each]
    assert notes == [f"{name} on toy-all is computed again: its stored outputs are gone" for name in "ab"]


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


def test_the_advice_of_a_check_leads_to_a_sound_store(lab: Any, unfinished: Path) -> None:
    assert run_again(lab, unfinished).ok
    for file in unfinished.glob("*/*.bin"):
        file.unlink()
    with Store.open(lab.url, "write") as store:
        (first, *_) = store.maintenance.check()
        assert "cannot be read: no such file; bring the file back, or remove the evaluation" in first
        assert store.removal.hide("toy", "toy-all") == 1
    assert run_again(lab, unfinished).ok
    with Store.open(lab.url, "write") as store:
        (first, *_) = store.maintenance.check()
        assert first.endswith("bring the file back, or delete what was removed (testbed store purge)")
        store.removal.purge()
        assert list(store.maintenance.check()) == []
