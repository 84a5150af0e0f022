"""``testbed watch``: checkpoints of a training run, evaluated while they are written."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
import timm
import torch
from cli_world import in_process
from stored_cells import put, samples_of, saying
from watched_run import ARCH, LOOKS, WatchProcess, trained, write

from testbed.db.store import Store
from testbed.entities import CellRecord, TrainingCheckpoint
from testbed.execution.report import Outcome
from testbed.metrics.scorers.classification import top
from testbed.stored_results.checkpoints import curves, failures

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


TARGETS = [0, 1] * 100


class Evaluated:
    """In place of real runs: checkpoint N is wrong on as many samples as `wrong` says; nothing is stored twice."""

    def __init__(self, wrong):
        self.wrong = wrong
        self.computed = []

    def __call__(self, catalog, options, names, settings, progress):
        outcomes = []
        with Store.create(options.db_url) as store:
            for name in names:
                step = int(re.findall(r"\d+", name)[-1])
                for setting in settings:
                    stored = store.evaluations.find([name], [setting], statuses=("complete",))
                    done = stored[0] if stored else self.put(store, name, setting, step)
                    outcomes.append(Outcome(name, setting, "stored" if stored else "complete", "", done.id))
        return SimpleNamespace(outcomes=outcomes, finished=outcomes, interrupted=False)

    def put(self, store, name, setting, step):
        self.computed.append((step, setting))
        said = [2 if place < self.wrong[step] else target for place, target in enumerate(TARGETS)]
        top1 = top(1).metric(1 - self.wrong[step] / len(TARGETS), len(TARGETS))
        return put(store, name, setting, samples_of(TARGETS), saying(said), metric=top1)


@pytest.fixture
def quick(tmp_path, monkeypatch, watch):
    """A function that watches runs/a, whose files are no real checkpoints, and stores answers for them."""
    evaluated = Evaluated({1: 100, 2: 40, 3: 41, 4: 90, 5: 39})
    monkeypatch.setattr("testbed.extensions.watching.loop.run", evaluated)
    for step in evaluated.wrong:
        write(tmp_path / "runs" / "a" / f"model_{step}.npz", b"x")

    def run(*words, pattern="runs/*/model_*.npz", on=("digits",), settle="0"):
        return watch(pattern, "--arch", "resnet18", "--on", *on, "--settle", settle, *words)

    run.evaluated, run.folder = evaluated, tmp_path / "runs" / "a"
    return run


def test_each_checkpoint_is_compared_with_the_best_before(quick):
    done = quick("--until", "5")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "runs/a  step 1  digits  top1 50.00 %  the first, new best",
        "runs/a  step 2  digits  top1 80.00 %  better than step 1 (+30.00 points, p < 0.0001), new best",
        "runs/a  step 3  digits  top1 79.50 %  tied with step 2 (−0.50 points, p = 1.0000)",
        "runs/a  step 4  digits  top1 55.00 %  worse than step 2 (−25.00 points, p < 0.0001)",
        "runs/a  step 5  digits  top1 80.50 %  tied with step 2 (+0.50 points, p = 1.0000), new best",
    ]
    assert "5 checkpoints evaluated, 5 of them by this watch" in done.stderr
    assert re.search(
        r"runs/a  digits  best: step 5, top1 80.50 %; expected on other samples: \d\d\.\d\d %", done.stderr
    )
    again = quick("--until", "5")
    assert again.stdout == ""
    assert "5 checkpoints were evaluated before, or by another watch" in again.stderr
    assert quick.evaluated.computed == [(step, "digits") for step in range(1, 6)]


def test_json_has_a_line_for_each_checkpoint_and_setting(quick):
    done = quick("--until", "2", "--json", on=("digits", "digits-rotated"))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["step"], row["eval_setting"], row["verdict"]) for row in rows] == [
        (1, "digits", "first"),
        (1, "digits-rotated", "first"),
        (2, "digits", "better"),
        (2, "digits-rotated", "better"),
    ]
    assert rows[2]["best_before"] == {"step": 1, "value": 0.5}
    assert rows[2]["difference"] == pytest.approx(0.3)


def test_the_newest_comes_first_if_asked(quick):
    quick("--until", "3", "--latest")
    assert [step for step, _ in quick.evaluated.computed] == [5, 4, 3]


def test_idle_ends_it_and_tells_what_was_left_out(quick):
    write(quick.folder / "model_last.npz", b"x")
    done = quick("--idle", "0")
    assert f"{quick.folder}/model_last.npz is left out: its name has no step or epoch" in done.stderr
    assert "5 checkpoints evaluated, 5 of them by this watch; 1 file left out" in done.stderr


def test_a_marker_says_which_files_are_complete(quick):
    write(quick.folder / "model_2.npz.done", b"")
    quick("--until", "1", "--marker", "{path}.done", settle="1h")
    assert quick.evaluated.computed == [(2, "digits")]


def test_a_file_that_was_deleted_while_it_waited_is_counted(quick, monkeypatch):
    def run_and_rotate(*arguments):
        (quick.folder / "model_3.npz").unlink(missing_ok=True)
        return quick.evaluated(*arguments)

    monkeypatch.setattr("testbed.extensions.watching.loop.run", run_and_rotate)
    done = quick("--until", "4")
    assert f"{quick.folder}/model_3.npz was deleted before it was evaluated" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("; 1 file deleted before evaluation")
    assert [step for step, _ in quick.evaluated.computed] == [1, 2, 4, 5]


def test_a_command_is_run_on_each_new_best_without_a_shell(quick, tmp_path):
    script = "import sys; open('told', 'a').write(repr(sys.argv[1:]) + chr(10))"
    done = quick("--until", "5", "--on-new-best", f'{sys.executable} -c "{script}" "{{step}};ls" {{value}} {{path}}')
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "told").read_text().splitlines() == [
        repr([f"{step};ls", value, f"{quick.folder}/model_{step}.npz"])
        for step, value in ((1, "0.5"), (2, "0.8"), (5, "0.805"))
    ]


@pytest.mark.parametrize(
    ("command", "said"),
    [("/nowhere/x {path}", "/nowhere/x cannot be run: No such file"), ("false", "false ended with status 1")],
)
def test_a_command_that_fails_does_not_end_the_watch(quick, command, said):
    done = quick("--until", "5", "--on-new-best", command)
    assert done.returncode == 0
    assert done.stderr.count(f"--on-new-best: {said}") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pattern", "("), "--pattern '(' is not a regular expression"),
        (("--pattern", r"(\d+)"), "has no group named epoch or step"),
        (("--marker", "done"), "--marker requires {path} or {folder}"),
        (("--on-new-best", "cp {file} best"), "has {file}; expected {path}"),
        (("--on-new-best", "cp 'x"), "cannot be split into words"),
        (("--best-on", "val"), "--best-on val is not among the settings of --on: digits"),
        (("--log", "tensorboard"), "--log tensorboard: expected tensorboard:DIR"),
        (("--idle", "soon"), "'soon' is not a duration"),
        (("--arch", "resnet5000"), "--arch resnet5000: no family of models takes resnet5000,FILE"),
        (("--arch", "ViT-B-32", "--image-size", "32"), "are for checkpoints of torchvision's and timm's architectures"),
    ],
)
def test_mistakes_are_said_in_a_line(quick, words, said):
    done = quick("--until", "1", *words)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
    assert quick.evaluated.computed == []


class Board:
    """A mirror that keeps what it is given, and fails at some step."""

    name = "board"

    def __init__(self, fails_at=None):
        self.fails_at = fails_at
        self.points = []

    def log(self, checkpoint, values):
        if checkpoint.step == self.fails_at:
            raise OSError("no network")
        self.points.append((checkpoint.step, round(values["digits/top1"], 6)))

    def close(self):
        self.points.append("closed")


def test_a_mirror_gets_each_point_once_in_all_watches(quick, monkeypatch):
    boards = [Board(fails_at=2), Board()]
    monkeypatch.setattr("testbed.trackers.results.mirror_of", lambda word, store: boards[0])
    done = quick("--until", "3", "--log", "board")
    assert done.returncode == 0
    assert f"step 2 of {quick.folder} is not in board: OSError: no network" in done.stderr
    assert boards[0].points == [(1, 0.5), (3, 0.795), "closed"]
    monkeypatch.setattr("testbed.trackers.results.mirror_of", lambda word, store: boards[1])
    quick("--until", "5", "--log", "board")
    assert boards[1].points == [(2, 0.8), (4, 0.55), (5, 0.805), "closed"]


def test_an_evaluation_that_failed_is_noted_and_counted(quick, monkeypatch):
    def failing(catalog, options, names, settings, progress):
        report = quick.evaluated(catalog, options, names, settings[:1], progress)
        with Store.open(options.db_url, "write") as store:
            for name in names:
                store.evaluations.record_failure(
                    CellRecord(name, settings[1], "unidentified"), "failed", "no data", {}, {}
                )
                report.outcomes.append(Outcome(name, settings[1], "failed", "no data"))
        return SimpleNamespace(outcomes=report.outcomes, finished=report.finished[:1], interrupted=False)

    monkeypatch.setattr("testbed.extensions.watching.loop.run", failing)
    done = quick("--until", "1", on=("digits", "digits-rotated"))
    assert done.stderr.splitlines()[-1].endswith("; 1 evaluation failed; 4 files waiting")
    with Store.open("testbed.db") as store:
        assert [(each.checkpoint.step, each.eval_setting, each.reason) for each in failures(store)] == [
            (1, "digits-rotated", "no data")
        ]


def test_two_files_of_one_step_are_refused(quick):
    write(quick.folder / "model_v2_3.npz", b"x")
    done = quick("--until", "1")
    assert done.returncode == 1
    assert f"{quick.folder}/model_3.npz and {quick.folder}/model_v2_3.npz both have step 3" in done.stderr
    assert "narrow the pattern" in done.stderr


@pytest.mark.parametrize("name", ["model_03.npz", "model_v2_3.npz"])
def test_a_watch_that_goes_on_leaves_out_the_later_file_of_a_step(quick, name):
    """As it does while it runs: the earlier file counts, whatever the names' order."""
    quick("--until", "2")
    write(quick.folder / name, b"x")
    os.utime(quick.folder / "model_3.npz", (1, 1))
    done = quick("--until", "5")
    assert done.returncode == 0, done.stderr
    assert f"{quick.folder}/{name} is left out: " in done.stderr
    assert quick.evaluated.computed == [(step, "digits") for step in range(1, 6)]
    os.utime(quick.folder / name, (0, 0))  # what has results stays the first
    assert f"{quick.folder}/{name} is left out: " in quick("--until", "5").stderr


def test_a_torn_file_is_tried_again_and_given_up(tmp_path, monkeypatch, watch):
    monkeypatch.setattr("testbed.extensions.watching.files.SECONDS_BETWEEN", 0.0)
    write(tmp_path / "epoch_1.pt", b"PK")
    done = watch("epoch_*.pt", "--arch", "resnet18", "--on", "digits", "--settle", "0", "--idle", "0")
    assert done.returncode == 1
    assert done.stderr.count("epoch_1.pt cannot be evaluated yet (cannot be read as weights") == 4
    assert "epoch_1.pt is given up unless it changes: cannot be read as weights" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("; 1 file given up")
    with Store.open("testbed.db") as store:
        (failed,) = failures(store)
    assert (failed.checkpoint, failed.eval_setting) == (TrainingCheckpoint(str(tmp_path), 1, "epoch", 1), "digits")
    assert failed.reason.startswith("cannot be read as weights")


def test_ctrl_c_ends_it_and_says_what_was_done(quick, monkeypatch):
    def interrupted(*arguments):
        if len(quick.evaluated.computed) == 2:
            raise KeyboardInterrupt
        return quick.evaluated(*arguments)

    monkeypatch.setattr("testbed.extensions.watching.loop.run", interrupted)
    done = quick()
    assert done.returncode == 0
    assert "interrupted; run the same command again to resume" in done.stderr
    assert "2 checkpoints evaluated, 2 of them by this watch; 3 files waiting" in done.stderr


def numbers(path):
    """Each number of a store, in full."""
    with Store.open(str(path)) as store:
        return {
            (each.model, each.eval_setting, each.metric, each.slice): (each.value, each.n, each.stderr)
            for each in store.results.find()
        }


def test_a_broken_checkpoint_is_called_so_and_one_that_is_written_again_counts_once(tmp_path, watch):
    """As of a training run that met NaN, was resumed, and wrote the same step again."""
    network = timm.create_model("test_resnet", num_classes=10)
    torch.save(network.state_dict(), tmp_path / "sound.pt")
    broken = {name: value * torch.nan for name, value in network.state_dict().items()}
    (tmp_path / "runs" / "a").mkdir(parents=True)
    torch.save(broken, tmp_path / "runs" / "a" / "epoch_1.pt")
    hook = ("--on-new-best", "cp sound.pt {path}")
    done = watch("runs/*/epoch_*.pt", "--on", "digits", *COMMON, "--idle", "0.5", *hook)
    first, second = done.stdout.splitlines()
    assert "top1 0.00 % (NaN or infinite outputs for 60 of 60 samples)" in first
    assert "NaN" not in second
    assert "epoch_1.pt was written again" in done.stderr
    assert "1 checkpoint evaluated, 1 of them by this watch" in done.stderr


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
