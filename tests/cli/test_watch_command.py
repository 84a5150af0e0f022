"""``testbed watch``: checkpoints of a training run, evaluated while they are written."""

from __future__ import annotations

from collections import Counter

import pytest
from cli_world import in_process
from watched_run import ARCH, LOOKS, WatchProcess, trained, write

from testbed.analyses.checkpoints import curves
from testbed.db.store import Store

EPOCHS = 12
SETTINGS = ("digits", "digits-rotated")
COMMON = ("--arch", ARCH, "--settle", "0.3", "--executor", "inline", "--limit", "60", *LOOKS)
WATCH = ("runs/*/epoch_*.pt", "--on", *SETTINGS, *COMMON)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return trained(EPOCHS)


@pytest.fixture
def watch(tmp_path, monkeypatch, capsys):
    """A function that runs ``testbed`` in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with in_process(monkeypatch, capsys) as program:
        yield lambda *words: program("watch", *words)


@pytest.fixture
def begin(tmp_path):
    """A function that begins a watch in a process of its own."""
    begun = []

    def start(name, *words):
        begun.append(WatchProcess(tmp_path, name, *words))
        return begun[-1]

    yield start
    for each in begun:
        if not each.ended:
            each.kill()


def numbers(path):
    """Each number of a store, in full."""
    with Store.open(str(path)) as store:
        return {
            (each.model, each.eval_setting, each.metric, each.slice): (each.value, each.n, each.stderr)
            for each in store.results.find()
        }


@pytest.mark.long
def test_a_run_is_watched_while_it_writes(begin, tmp_path, files, monkeypatch, capsys):
    folder = tmp_path / "runs" / "a"

    def epoch(number):
        return folder / f"epoch_{number}.pt"

    first = begin("first", *WATCH, "--json")
    for number in (1, 2, 3):
        write(epoch(number), files[number - 1])
    first.wait_for_step(2)
    first.kill()  # it is at the third, most likely
    write(epoch(4), files[3])
    write(epoch(6), files[5])
    write(epoch(7), files[6][: len(files[6]) // 2])  # torn
    second = begin("second", *WATCH, "--json")
    second.wait_for_step(6)
    write(epoch(5), files[4])  # out of order
    second.wait_for_step(5)
    second.wait_for(lambda: "epoch_7.pt cannot be evaluated yet (cannot be read as weights" in second.err.read_text())
    second.kill()
    third = begin("third", *WATCH, "--json", "--until", str(EPOCHS))
    for number in range(7, EPOCHS + 1):
        write(epoch(number), files[number - 1])
    assert third.wait() == 0, third.err.read_text()
    assert f"{EPOCHS} checkpoints evaluated" in third.err.read_text()

    rows = [*first.rows, *second.rows, *third.rows]
    told = Counter((row["step"], row["eval_setting"]) for row in rows)
    assert set(told.values()) == {1}
    with Store.open(str(tmp_path / "testbed.db")) as store:
        evaluations = store.evaluations.find(None, SETTINGS)
        found = curves(store)
    assert Counter((each.eval_setting, each.status) for each in evaluations) == {
        (setting, "complete"): EPOCHS for setting in SETTINGS
    }
    assert [(curve.run, curve.eval_setting) for curve in found] == [(str(folder), each) for each in SETTINGS]
    for curve in found:
        assert [each.checkpoint.step for each in curve.points] == [*range(1, EPOCHS + 1)]
        assert curve.unit == "epoch"

    with in_process(monkeypatch, capsys) as program:  # all of it afterwards, in another store
        options = [each for each in COMMON if each not in ("--settle", "0.3", "--arch", ARCH)]
        words = ("run", f"{ARCH},{folder}/epoch_*.pt", "--on", *SETTINGS, *options, "--db-url", tmp_path / "other.db")
        assert program(*words).returncode == 0
    assert numbers(tmp_path / "testbed.db") == numbers(tmp_path / "other.db")
