"""Several runs at once on one store: each part is computed once, by whichever run comes first, on both databases."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa
import torch
from toy import WORK, SlowNetwork, ToyNetwork, toy_catalog, toy_model, toy_setting
from toy_captions import captioner, captions, catalog, hash_encoder, vary
from toy_towers import everything, toy_encoder

from testbed.db.parts import leases
from testbed.db.parts.outputs import Outputs
from testbed.db.store import Store
from testbed.db.tables import ItemLeaseRow, LeaseRow, RunRow
from testbed.eval_settings.eval_setting_base import Scoring
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.registry import Catalog
from testbed.runner.run import run
from testbed.tasks import linear_probe

FORK = multiprocessing.get_context("fork")


def slow_model() -> Any:
    return toy_model(classifier_loader=lambda: SlowNetwork(0))


def slowly(number: int) -> str:
    time.sleep(0.01)
    return vary(number)


def runs_on(url: str) -> list[Any]:
    with Store.open(url) as store:
        return store.leases.runs()


class Together:
    """Runs at the same time, each in a process of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.processes: list[Any] = []

    def run(self, made: Catalog, models: Sequence[str], settings: Sequence[str], **given: Any) -> Any:
        return run(made, RunOptions(db_url=self.url, executor="inline", **given), models, settings, SilentProgress())

    def start(self, made: Catalog, models: Sequence[str], settings: Sequence[str], **given: Any) -> Any:
        note = self._note(len(self.processes))

        def child() -> None:
            report = self.run(made, models, settings, **given)
            ends = [f"{each.model} on {each.setting}: {each.status} {each.reason}" for each in report.outcomes]
            note.write_text(json.dumps({"ok": report.ok, "work": WORK, "ends": ends}))

        process = FORK.Process(target=child)
        process.start()
        self.processes.append(process)
        return process

    def _note(self, number: int) -> Path:
        return self.folder / f"{number}.json"

    def work(self) -> Counter[str]:
        """What they did in all, when they have ended well; those that were killed are not counted."""
        total: Counter[str] = Counter()
        for number, process in enumerate(self.processes):
            process.join(120)
            if process.exitcode != -signal.SIGKILL:
                assert process.exitcode == 0
                note = json.loads(self._note(number).read_text())
                assert note["ok"], note["ends"]
                total.update(note["work"])
        return total

    def outputs(self, setting: str) -> Any:
        with Store.open(self.url) as store:
            (evaluation,) = store.evaluations.find(eval_settings=[setting])
            assert evaluation.status == "complete"
            return np.array(store.outputs.read(evaluation.id, next(iter(store.outputs.kinds(evaluation.id)))))

    def wait_for_a_lease(self) -> None:
        """Until one of the runs has begun to compute."""
        for _ in range(600):
            with Store.open(self.url) as store, store.database.reading() as session:
                if session.scalar(sa.select(sa.func.count()).select_from(LeaseRow)):
                    return
            time.sleep(0.05)
        raise AssertionError("nothing was leased")

    def leases_left(self) -> list[int]:
        with Store.open(self.url) as store, store.database.reading() as session:
            tables = (LeaseRow, ItemLeaseRow)
            return [session.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in tables]


def running(url: str, folder: Path) -> Iterator[Together]:
    made = Together(url, folder)
    yield made
    for each in made.processes:
        each.kill()


@pytest.fixture
def together(store_url: str, tmp_path: Path) -> Iterator[Together]:
    yield from running(store_url, tmp_path)


@pytest.fixture
def on_sqlite(lab: Any, tmp_path: Path) -> Iterator[Together]:
    yield from running(lab.url, tmp_path)


@pytest.fixture
def alone(tmp_path: Path) -> Together:
    """A quiet run, on a store of its own."""
    return Together(str(tmp_path / "alone.db"), tmp_path)


def test_no_image_goes_through_a_network_twice(together: Together, alone: Together) -> None:
    made = toy_catalog(slow_model(), toy_setting("all", count=900), toy_setting("part", count=600, broken=[7, 500]))
    for settings in (["all"], ["all", "part"], ["part", "all"]):
        together.start(made, ["toy"], settings)
    work = together.work()
    alone.run(made, ["toy"], ["all", "part"])
    assert work["images through networks"] == WORK["images through networks"]
    for setting in ("all", "part"):
        np.testing.assert_array_equal(together.outputs(setting), alone.outputs(setting))
    assert [each.outcome for each in runs_on(together.url)] == ["complete"] * 3
    assert together.leases_left() == [0, 0]


def test_runs_with_batches_of_other_sizes_share_too(on_sqlite: Together) -> None:
    made = toy_catalog(slow_model(), toy_setting(count=900))
    for batch_size in (64, 50):
        on_sqlite.start(made, ["toy"], ["toy-all"], batch_size=batch_size)
    assert on_sqlite.work()["images through networks"] == 900
    assert on_sqlite.outputs("toy-all").shape == (900, 10)


def test_no_sample_is_described_and_no_text_embedded_twice(on_sqlite: Together, alone: Together) -> None:
    made = catalog(captioner("slow", slowly), captions(), hash_encoder())
    for batch_size in (8, 8, 16):
        on_sqlite.start(made, ["slow"], ["captions@hash"], batch_size=batch_size)
    work = on_sqlite.work()
    alone.run(made, ["slow"], ["captions@hash"])
    assert work["answers"] == WORK["answers"] == 90
    assert work["texts hashed"] == WORK["texts hashed"]
    assert on_sqlite.outputs("captions").tolist() == alone.outputs("captions").tolist()


@pytest.mark.parametrize("store_url", ["postgres", pytest.param("sqlite", marks=pytest.mark.long)], indirect=True)
def test_no_judge_is_asked_twice(together: Together) -> None:
    asked = captions("asked", task="judged_captions", scoring=Scoring(by="judge"))
    made = catalog(captioner("slow", slowly), captioner("judge", slowly), asked)
    for _ in range(3):
        together.start(made, ["slow"], ["asked"], batch_size=8)
    assert together.work()["answers"] == 180


def test_a_head_is_made_and_a_probe_fitted_once(
    on_sqlite: Together, alone: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = linear_probe.FittedProbe.make

    def counted(*arguments: Any) -> Any:
        WORK["probes fitted"] += 1
        time.sleep(0.2)
        return fit(*arguments)

    monkeypatch.setattr(linear_probe.FittedProbe, "make", counted)
    made = toy_catalog(toy_encoder(), *everything())
    for _ in range(3):
        on_sqlite.start(made, ["tower"], ["shown", "probe"])
    work = on_sqlite.work()
    assert work["probes fitted"] == 1
    assert work["texts embedded"] == 10  # one for each class
    alone.run(made, ["tower"], ["shown", "probe"])
    assert work["images embedded"] == WORK["images embedded"]


def test_what_a_killed_run_had_leased_is_computed_by_the_one_that_waits(on_sqlite: Together) -> None:
    made = toy_catalog(slow_model(), toy_setting(count=1500))
    first = on_sqlite.start(made, ["toy"], ["toy-all"])
    on_sqlite.wait_for_a_lease()
    on_sqlite.start(made, ["toy"], ["toy-all"])
    while len(runs_on(on_sqlite.url)) < 2:  # the test's limit ends this if the second run does not begin
        time.sleep(0.02)
    os.kill(first.pid, signal.SIGKILL)
    on_sqlite.work()
    assert on_sqlite.outputs("toy-all").shape == (1500, 10)
    assert [each.outcome for each in runs_on(on_sqlite.url)] == ["lost", "complete"]
    assert on_sqlite.leases_left() == [0, 0]


def elsewhere(url: str, silent: timedelta, start: int = 0, stop: int = 256) -> int:
    """A run on another machine that leased a range of the only evaluation, and was heard of some time ago."""
    with Store.open(url, "write") as store:
        run_id = store.leases.begin_run("eval.py")
        (evaluation,) = store.evaluations.find()
        with store.database.writing() as session:
            row = session.get_one(RunRow, run_id)
            row.place, row.machine, row.process = "another", "node7", 4711
            row.beat_at = row.beat_at - silent
            session.add(LeaseRow(evaluation_id=evaluation.id, start=start, stop=stop, run_id=run_id))
    return run_id


def begun(together: Together, made: Catalog) -> None:
    """An evaluation of which nothing is stored."""
    together.run(made, ["toy"], ["toy-all"])
    with Store.open(together.url, "write") as store, store.database.writing() as session:
        session.execute(sa.text("DELETE FROM output_chunks"))
        session.execute(sa.text("UPDATE evaluations SET status = 'running'"))
    WORK.clear()


def test_a_machine_that_was_not_heard_of_for_long_holds_nothing(
    together: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timedelta(minutes=1) == leases.EXPIRES
    monkeypatch.setattr(leases, "EXPIRES", timedelta(seconds=1))  # the test's server may be younger than a minute
    made = toy_catalog(toy_model(), toy_setting())
    begun(together, made)
    run_id = elsewhere(together.url, timedelta(seconds=2))
    assert together.run(made, ["toy"], ["toy-all"], trust=True).ok
    assert WORK["images through networks"] == 600
    assert next(each for each in runs_on(together.url) if each.id == run_id).outcome == "lost"


def test_a_run_waits_for_another_machine_and_takes_what_that_gives_up(
    on_sqlite: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = toy_catalog(toy_model(), toy_setting())
    begun(on_sqlite, made)
    monkeypatch.setattr("testbed.execution.inline.LOOK_SECONDS", 0.2)
    append = Outputs.append

    def slowly(*arguments: Any) -> int:
        """So that the last outputs are stored when the run waits already."""
        time.sleep(1)
        return append(*arguments)

    monkeypatch.setattr(Outputs, "append", slowly)
    other = elsewhere(on_sqlite.url, timedelta(0))
    notes: list[str] = []
    progress = SilentProgress()
    monkeypatch.setattr(progress, "note", notes.append, raising=False)
    waited: list[bool] = []

    def give_up_when_waited_for() -> None:
        """The other machine falls silent when this run holds nothing but waits."""
        with Store.open(on_sqlite.url, "write") as store:
            for _ in range(600):
                with store.database.writing() as session:
                    held = {(row.start, row.stop) for row in session.scalars(sa.select(LeaseRow))}
                    if WORK["images through networks"] == 600 - 256 and held == {(0, 256)}:
                        waited.append(True)
                        session.get_one(RunRow, other).beat_at -= leases.EXPIRES
                        return
                time.sleep(0.1)

    looking = threading.Thread(target=give_up_when_waited_for)
    looking.start()
    options = RunOptions(db_url=on_sqlite.url, executor="inline", trust=True)
    assert run(made, options, ["toy"], ["toy-all"], progress).ok
    looking.join()
    assert waited
    assert WORK["images through networks"] == 600
    assert [each for each in notes if "node7" in each] == [
        "process 4711 on node7 computes some of the same; each part is computed once"
    ]


class Failing(ToyNetwork):
    """Fails in the processes that this one starts."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        time.sleep(0.05)
        if multiprocessing.parent_process() is not None:
            raise RuntimeError("this machine has a broken network")
        return super().forward(images)


def test_a_cell_that_fails_in_one_run_is_computed_by_the_other(on_sqlite: Together) -> None:
    made = toy_catalog(toy_model(classifier_loader=lambda: Failing(0)), toy_setting(count=900))
    failing = on_sqlite.start(made, ["toy"], ["toy-all"])
    on_sqlite.wait_for_a_lease()
    assert on_sqlite.run(made, ["toy"], ["toy-all"], trust=True).ok
    failing.join(60)
    assert json.loads((on_sqlite.folder / "0.json").read_text())["ends"] == [
        "toy on toy-all: failed RuntimeError: this machine has a broken network"
    ]
    assert on_sqlite.outputs("toy-all").shape == (900, 10)


# Runs with other files or versions ---------------------------------------------------------------------------------


def foreign_record(store: Store, evaluation_id: int) -> dict[str, Any]:
    """The record of a run with another version of torch."""
    content = store.records.of([evaluation_id])[evaluation_id][0].content
    return {**content, "libraries": {**content["libraries"], "torch": "1.0"}}


class Visits(list[Callable[[], None]]):
    """What happens while a network computes, once each; no part of its definition."""

    def spec(self) -> dict[str, Any]:
        return {}


VISITS = Visits()


class Visited(ToyNetwork):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        while VISITS:
            VISITS.pop()()
        return super().forward(images)


def test_what_two_versions_computed_together_is_checked_by_the_next_run(on_sqlite: Together) -> None:
    made = toy_catalog(toy_model(classifier_loader=lambda: Visited(0)), toy_setting())
    on_sqlite.run(made, ["toy"], ["toy-all"])
    with Store.open(on_sqlite.url, "write") as store:
        (evaluation,) = store.evaluations.find()
        foreign = foreign_record(store, evaluation.id)
        store.removal.hide_evaluation(evaluation.id)
        store.removal.purge()

    def visit() -> None:
        with Store.open(on_sqlite.url, "write") as store:
            (evaluation,) = store.evaluations.find()
            store.records.add({evaluation.id: foreign}, metrics=False)

    VISITS.append(visit)
    assert on_sqlite.run(made, ["toy"], ["toy-all"]).ok
    assert not VISITS
    WORK.clear()
    report = on_sqlite.run(made, ["toy"], ["toy-all"])
    (check,) = report.checks
    assert check.result == "equal"
    assert check.because[0].startswith("torch ")
    assert 0 < WORK["images through networks"] <= 300  # not all samples again
    assert on_sqlite.run(made, ["toy"], ["toy-all"]).checks == []


def test_a_result_that_another_version_completed_meanwhile_is_not_taken_as_it_is(
    on_sqlite: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.execution.inline.LOOK_SECONDS", 0.2)
    made = toy_catalog(toy_model(), toy_setting())
    on_sqlite.run(made, ["toy"], ["toy-all"])
    with Store.open(on_sqlite.url, "write") as store:
        (evaluation,) = store.evaluations.find()
        foreign = foreign_record(store, evaluation.id)
        with store.database.writing() as session:
            session.execute(sa.text("CREATE TABLE kept AS SELECT * FROM output_chunks"))
            session.execute(sa.text("DELETE FROM output_chunks"))
            session.execute(sa.text("DELETE FROM evaluation_records"))
            session.execute(sa.text("UPDATE evaluations SET status = 'running'"))
    other = elsewhere(on_sqlite.url, timedelta(0), 0, 600)

    seen = threading.Event()
    progress = SilentProgress()
    monkeypatch.setattr(progress, "note", lambda text: seen.set() if "node7" in text else None, raising=False)

    def complete() -> None:
        assert seen.wait(60)  # until the run waits for the other one
        with Store.open(on_sqlite.url, "write") as store:
            store.records.add({evaluation.id: foreign})  # first: the run may look at any moment
            with store.database.writing() as session:  # both at once: else the run would complete it itself
                session.execute(sa.text("INSERT INTO output_chunks SELECT * FROM kept"))
                session.execute(sa.text("UPDATE evaluations SET status = 'complete'"))
            store.database.run_id = other
            store.leases.end_run("complete")

    thread = threading.Thread(target=complete)
    thread.start()
    report = run(made, RunOptions(db_url=on_sqlite.url, executor="inline"), ["toy"], ["toy-all"], progress)
    thread.join()
    assert not report.ok
    assert "another run computed it meanwhile, but torch 1.0 → " in report.outcomes[0].reason
    again = on_sqlite.run(made, ["toy"], ["toy-all"])
    assert again.ok
    assert [each.result for each in again.checks] == ["equal"]


def die_in_a_child(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
    if multiprocessing.parent_process() is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"one": 1.0}


def test_what_a_run_stored_that_was_killed_while_it_scored_is_not_in_doubt(on_sqlite: Together) -> None:
    made = toy_catalog(toy_model(), toy_setting(count=200, metrics_fn=die_in_a_child))
    on_sqlite.start(made, ["toy"], ["toy-all"]).join(60)
    assert [each.outcome for each in runs_on(on_sqlite.url)] == ["lost"]
    report = on_sqlite.run(made, ["toy"], ["toy-all"])
    assert report.ok
    assert report.checks == []
    assert WORK["images through networks"] == 0
