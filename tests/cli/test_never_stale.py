"""A number that is stored is never shown for a definition that has become another one.

All changes of `stale_changes` are evaluated into one store. Then all are made at once, in place, and ``eval.py`` runs
on that store again. Each change is to a cell of its own: what a test says is about one change alone. What changes
nothing is not computed again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from own_copy import copy_testbed
from stale_changes import (
    BASE,
    BEGINNING,
    CALM,
    CALM_FILES,
    CHANGES,
    EDITS,
    MAKE_IMAGES,
    MODEL,
    MOVABLE,
    MOVABLE_FILES,
    OTHER,
    PLUGIN,
    SETTING,
    SHARED,
    Change,
)

pytestmark = pytest.mark.timeout(900)  # all changes are evaluated before the first test

MOST_SAMPLES = 12  # that may be run again to find that nothing has changed
UNCHANGED = ("plain", "clean")  # a cell of all runs that no change is about
INLINE = ("--executor", "inline")
PROCESSES = ("--executor", "processes", "--workers", "1", "--cpu-processes", "1")

# Why an evaluation of another definition is checked: only words that do not count, or files, seem to differ.
WRITTEN_OTHERWISE = "its definition is written otherwise, and seems to be the same"

Cell = tuple[str, str]


def word(change: Change) -> str:
    """What stands for ``@@`` in a change: the name of its folder, and its model or setting."""
    return f"c{CHANGES.index(change):03d}"


def cell_of(change: Change) -> Cell:
    """The cell that a change is about."""
    model, setting = change.cell
    return model.replace("@@", word(change)), setting.replace("@@", word(change))


def value_of(answer: dict, cell: Cell, metric: str) -> float:
    """The value of a metric of a run, over all samples."""
    wanted = (*cell, metric, "overall")
    values = {
        (each["model"], each["eval_setting"], each["metric"], each["slice"]): each["value"]
        for each in answer["results"]
    }
    return values[wanted]


def checks_of(answer: dict, cell: Cell) -> list[dict]:
    """Of which evaluations samples were run again for a cell, and why."""
    return [each for each in answer.get("checks", []) if (each["model"], each["eval_setting"]) == cell]


def outcome_of(answer: dict, cell: Cell) -> dict:
    return next(each for each in answer["outcomes"] if (each["model"], each["setting"]) == cell)


# The folders ------------------------------------------------------------------------------------------------------


class Folder:
    """The folder of a plug-in, whose files are changed.

    Args:
        path: The folder; its name stands for ``@@`` in names and texts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def own(self, text: str) -> str:
        return text.replace("@@", self.path.name)

    def clear(self) -> None:
        """Removes byte code, which Python takes for that of a file with an equal size and time of change."""
        for cache in list(self.path.rglob("__pycache__")):
            shutil.rmtree(cache)

    def write(self, files: dict[str, str | bytes | None]) -> None:
        for name, text in files.items():
            path = self.path / self.own(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            elif isinstance(text, bytes):
                path.write_bytes(text)
            else:
                path.write_text(self.own(text))

    def edit(self, name: str, old: str, new: str) -> None:
        path, old = self.path / self.own(name), self.own(old)
        text = path.read_bytes().decode()
        assert old in text, f"{name} has no {old!r}"
        path.write_bytes(text.replace(old, self.own(new)).encode())

    def files(self) -> dict[Path, int]:
        """The time of change of each file."""
        paths = [path for path in self.path.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {path: path.stat().st_mtime_ns for path in paths}


# The runs ---------------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """What is evaluated in one run: each of some models on each of some settings.

    Attributes:
        plugins: The plug-ins to load, by the names of their folders.
        models: The models.
        settings: The settings.
        words: Further words of the first run.
    """

    plugins: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=lambda: ["plain"])
    settings: list[str] = field(default_factory=lambda: ["clean"])
    words: Sequence[str] = INLINE


def batch_of(change: Change) -> str:
    """The run in which a change is evaluated."""
    if change.processes:
        return "by processes"
    return {SETTING: "settings", MODEL: "models"}.get(change.cell, "others")


def batches() -> dict[str, Batch]:
    """The runs of all changes; each of a few models, or of a few settings."""
    found = {name: Batch() for name in ("settings", "models", "others")}
    found["by processes"] = Batch(words=PROCESSES)
    for change in CHANGES:
        batch, (model, setting) = found[batch_of(change)], cell_of(change)
        batch.plugins.append(word(change))
        batch.models += [model] if model not in batch.models else []
        batch.settings += [f"{setting}-first"] if change.twice else []
        batch.settings += [setting] if setting not in batch.settings else []
    return found


CALM_BATCH = Batch(["other", "calm"], ["plain", "calm"], ["clean", "calm"])
MOVED_BATCH = Batch(["movable"], ["movable"], ["movable"])


@dataclass
class World:
    """Where everything lies, and what was said.

    Attributes:
        folder: Has everything.
        start: Runs a program, in a folder, with words and variables.
        root: Has ``eval.py``.
        before: What the first runs said, by the name of the run.
        after: What the runs on changed definitions said.
    """

    folder: Path
    start: Callable[[Path, Path, Sequence[str], dict[str, str]], str]
    root: Path
    before: dict[str, dict] = field(default_factory=dict)
    after: dict[str, dict] = field(default_factory=dict)

    def place(self, name: str) -> Folder:
        return Folder(self.folder / name)

    def plugins(self, names: Sequence[str]) -> list[Path]:
        paths = [self.folder / name / PLUGIN.replace("@@", name) for name in names]
        return [self.folder / "base" / "shared.py", *paths]

    def evaluate(
        self,
        folder: Path,
        batch: Batch,
        words: Sequence[str],
        variables: dict[str, str],
        data: Path | None = None,
        plugins: Sequence[Path] = (),
    ) -> dict:
        """What ``eval.py`` says about a batch, on the store of a folder or the one that words name."""
        words = ["--plugin", *map(str, plugins or self.plugins(batch.plugins)), *words, "--json"]
        words += ["--data-root", str(data or self.folder / "data")]
        words += ["--models", *batch.models, "--eval-settings", *batch.settings]
        return json.loads(self.start(self.root / "eval.py", folder, words, variables))

    def make(self, folders: Sequence[str]) -> None:
        """Runs the programs that make files."""
        programs = sorted(str(path) for name in folders for path in (self.folder / name).glob("make_*.py"))
        self.start(self.folder / "make_all.py", self.folder, [str(self.folder / "base"), *programs], {})


def variables(changed: bool) -> dict[str, str]:
    """The environment variables before or after all changes."""
    return {
        name.replace("@@", word(change)): value
        for change in CHANGES
        for name, value in (change.after if changed else change.before).items()
    }


MAKE_ALL = """
import os
import runpy
import sys

base, *programs = sys.argv[1:]
sys.path.append(base)
for program in programs:
    folder = os.path.dirname(program)
    os.chdir(folder)
    sys.path.append(folder)
    runpy.run_path(program)
"""


@pytest.fixture(scope="module")
def world(warm_python, root, tmp_path_factory) -> World:
    """Everything evaluated before and after all changes."""

    def start(script: Path, folder: Path, words: Sequence[str], given: dict[str, str]) -> str:
        done = warm_python.run(script, words, folder, {**os.environ, **given})
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    world = World(tmp_path_factory.mktemp("never-stale").resolve(), start, root)
    write_files(world)
    first, found = world.folder / "first", batches()
    first.mkdir()
    for name, batch in {**found, "calm": CALM_BATCH, "moved": MOVED_BATCH}.items():
        world.before[name] = world.evaluate(first, batch, batch.words, variables(False))
    for name, what in HARMLESS.items():
        what(world, run := second_run(world, name))
        world.after[name] = world.evaluate(run.folder, run.batch, run.words, run.variables, run.data, run.plugins)
    change_files(world)
    for name, batch in found.items():
        world.after[name] = world.evaluate(first, batch, INLINE, variables(True))
    return world


def write_files(world: World) -> None:
    """Writes all plug-ins and what they read, as they are before the changes."""
    world.place(".").write({"make_all.py": MAKE_ALL})
    world.place("base").write({"stale_base.py": BASE, "shared.py": BEGINNING + SHARED, "make_images.py": MAKE_IMAGES})
    world.place("other").write({PLUGIN: BEGINNING + OTHER})
    world.place("movable").write({PLUGIN: BEGINNING + MOVABLE, **MOVABLE_FILES})
    world.place("calm").write({PLUGIN: BEGINNING + CALM, **CALM_FILES})
    for change in CHANGES:
        world.place(word(change)).write({PLUGIN: BEGINNING + change.plugin, **change.files})
    world.make(["base", "calm", *map(word, CHANGES)])


def change_files(world: World) -> None:
    """Makes all changes to files at once."""
    before = {change: world.place(word(change)).files() for change in CHANGES}
    for change in CHANGES:
        place = world.place(word(change))
        for edit in (*change.edits, *([change.make] if change.make is not None else [])):
            place.edit(*edit)
        place.write(change.written)
    world.make([word(change) for change in CHANGES if change.make is not None])
    for change in CHANGES:
        for path, time in before[change].items() if change.keeps_times else ():
            os.utime(path, ns=(time, time))


# Changes that count -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name.replace(" ", "-"))
def test_a_stored_number_is_not_shown_after_a_change(world, change):
    before, answer, cell = world.before[batch_of(change)], world.after[batch_of(change)], cell_of(change)
    outcome = outcome_of(answer, cell)
    assert outcome["status"] in ("complete", "derived"), f"{outcome['status']}: the number is stale"
    assert outcome["evaluation_id"] != outcome_of(before, cell)["evaluation_id"]
    assert value_of(answer, cell, change.metric) != pytest.approx(value_of(before, cell, change.metric), rel=1e-4)
    differing = [check for check in checks_of(answer, cell) if check["result"] != "equal"]
    differing = [check for check in differing if check["because"] != [WRITTEN_OTHERWISE]]
    assert change.described == (differing == [])
    for check in differing:  # for the change itself, not only for others of the run
        assert any(word(change) in text for text in check["because"]), check


@pytest.mark.long
def test_the_numbers_after_all_changes_are_those_of_a_fresh_store(world, new_cache):
    fresh = world.folder / "fresh"
    fresh.mkdir()
    given = {**variables(True), "TESTBED_CACHE": str(new_cache(world.folder / "of-fresh"))}
    answers = {name: world.evaluate(fresh, batch, INLINE, given) for name, batch in batches().items()}
    for change in CHANGES:
        values = [value_of(each[batch_of(change)], cell_of(change), change.metric) for each in (world.after, answers)]
        assert values[0] == pytest.approx(values[1], rel=1e-5), change.name


@pytest.mark.parametrize("run", ["settings", "models", "others", "by processes"])
def test_what_the_changes_are_not_about_is_shown(world, run):
    """Or else a change in the same run might be what the tests above see."""
    outcome = outcome_of(world.after[run], UNCHANGED)
    assert outcome["status"] == "stored"
    assert outcome["evaluation_id"] == outcome_of(world.before[run], UNCHANGED)["evaluation_id"]


# Changes that do not ----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A second run, which harmless changes may alter, on a copy of the store."""

    folder: Path
    batch: Batch
    data: Path
    plugins: list[Path]
    words: list[str]
    variables: dict[str, str]


def second_run(world: World, name: str) -> Run:
    folder = world.folder / "runs" / name
    folder.mkdir(parents=True)
    shutil.copy(world.folder / "first" / "testbed.db", folder)
    batch = MOVED_BATCH if name == "moved" else CALM_BATCH
    words = [*INLINE, "--db-url", str(folder / "testbed.db")]
    plugins = world.plugins(batch.plugins)
    return Run(folder, replace(batch), world.folder / "data", plugins, words, variables(False))


def leave(world: World, run: Run) -> None:
    """Changes nothing that definitions depend on: not a single sample is run again."""
    calm = world.place("calm")
    for path in [*calm.files(), *run.data.rglob("*.png")]:  # written anew, copied to other inodes, and touched
        other = path.with_name(f"{path.name}.copy")
        shutil.copyfile(path, other)
        other.replace(path)
        path.chmod(0o600)
        os.utime(path, (1.6e9, 1.6e9))
    calm.clear()
    notes = calm.path / "notes.txt"
    notes.rename(notes.with_name("remarks.txt"))
    calm.write({"notes.txt": "something else\n"})
    Folder(run.data).write({"calm-images/class0/README": "images\n", "other-images/class0/image.png": "no image"})
    run.folder = run.folder / "another-working-folder"
    run.folder.mkdir()
    run.variables |= {"SOMETHING_ELSE": "1", "TZ": "Asia/Tokyo", "LANG": "C.UTF-8"}
    run.words += ["--batch-size", "5", "--verbose", "--no-shared-pass", *PROCESSES]


def drop_plugin(world: World, run: Run) -> None:
    """Loads fewer plug-ins, and reads the data by way of a link."""
    run.plugins = world.plugins(["calm"])
    run.data = run.folder / "link"
    run.data.symlink_to(world.folder / "data")


def move(world: World, run: Run) -> None:
    """Puts a plug-in into another folder, and gives a file that it reads another name."""
    moved = run.folder / "moved"
    for name in ("movable", "base"):
        shutil.copytree(world.folder / name, moved / name)
    (moved / "movable" / "checkpoint.txt").rename(moved / "movable" / "best.txt")
    Folder(moved / "movable").edit(PLUGIN, "checkpoint.txt", "best.txt")
    run.plugins = [moved / "base" / "shared.py", moved / "movable" / "change_movable.py"]


def edit(world: World, run: Run) -> None:
    """Makes all harmless edits at once, one after the other, besides other plug-ins and another data root."""
    for _, name, old, new in EDITS:
        world.place("calm").edit(name, old, new)
    world.place("other").edit(PLUGIN, "1.8", "1.9")
    another = run.folder / "another.py"
    another.write_text("from stale_base import add_model, add_setting\n\nadd_model('o')\nadd_setting('o')\n")
    run.plugins = [run.plugins[0], *reversed(run.plugins[1:]), another]
    run.data = shutil.copytree(run.data, run.folder / "elsewhere")
    run.variables |= {"HF_HOME": "/tmp/hf", "TORCH_HOME": "/tmp/torch"}


# The name of a second run → what is changed before it; the edits come last, as they are not taken back.
HARMLESS = {"left": leave, "dropped": drop_plugin, "moved": move, "edited": edit}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_stored_number_is_shown_where_nothing_that_counts_changed(world, name):
    before = world.before["moved" if name == "moved" else "calm"]
    answer = world.after[name]
    for outcome in answer["outcomes"]:
        cell = outcome["model"], outcome["setting"]
        assert (outcome["status"], outcome["evaluation_id"]) == ("stored", outcome_of(before, cell)["evaluation_id"])
        checks = checks_of(answer, cell)
        assert {check["result"] for check in checks} <= {"equal"}
        assert sum(check["samples"] for check in checks) <= MOST_SAMPLES
        assert (checks == []) == (name == "left")


# Changes to testbed itself ----------------------------------------------------------------------------------------

OWN_CORRUPTIONS = {
    "own.py": (
        "from testbed.corruptions._own_numbers import FACTOR\n\n\n"
        "def own_direct(images, severity, seeds):\n    return images * 0.5\n\n\n"
        "def own_helped(images, severity, seeds):\n    return images * FACTOR\n"
    ),
    "_own_numbers.py": "FACTOR = 0.5\n",
}
OWN_SETTINGS = (
    "from testbed.corruptions import Corruption\n"
    'for name in ("own_direct", "own_helped"):\n'
    "    add_setting(name, perturbation_fn_gpu=Corruption(name, 3))\n"
)


@pytest.mark.slow
def test_a_corruption_of_ones_own_counts_without_a_new_revision(warm_python, root, tmp_path):
    """In ``src/corruptions/``, of a copy of testbed."""
    copy_testbed(root, tmp_path)
    corruptions = Folder(tmp_path / "testbed" / "corruptions")
    corruptions.write(OWN_CORRUPTIONS)
    Folder(tmp_path).write({"base/stale_base.py": BASE, "base/shared.py": BEGINNING + SHARED})
    Folder(tmp_path).write({"own/change_own.py": BEGINNING + OWN_SETTINGS})

    def run() -> dict:
        words = ["--plugin", "base/shared.py", "own/change_own.py", "--models", "plain"]
        words += ["--eval-settings", "own_direct", "own_helped", "--executor", "inline", "--json"]
        corruptions.clear()
        done = warm_python.run(tmp_path / "eval.py", words, tmp_path, os.environ, anew=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first = run()
    corruptions.edit("own.py", "images * 0.5", "images * 0.8")
    corruptions.edit("_own_numbers.py", "0.5", "0.8")
    second = run()
    for name in ("own_direct", "own_helped"):
        cell = ("plain", name)
        old, new = outcome_of(first, cell), outcome_of(second, cell)
        assert (old["status"], new["status"]) == ("complete", "complete")
        assert old["evaluation_id"] != new["evaluation_id"]
        assert value_of(second, cell, "nll") != pytest.approx(value_of(first, cell, "nll"), rel=1e-3)
