"""A number that is stored is never shown for a definition that has become another one.

All changes of `stale_changes` are evaluated into one store. Then all are made at once, in place, and ``eval.py`` runs
on that store again. What it should say then is what a fresh store says. Each change is to a cell of its own: what a
test says is about one change alone, as a check names what it is for.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from stale_changes import (
    BASE,
    BEGINNING,
    CALM,
    CALM_FILES,
    CHANGES,
    HARMLESS,
    MAKE_IMAGES,
    MODEL,
    MOVABLE,
    MOVABLE_FILES,
    OTHER,
    PLUGIN,
    SETTING,
    SHARED,
    Change,
    Harmless,
)

pytestmark = pytest.mark.timeout(900)  # all changes are evaluated before the first test

ALTERED = 1e-3  # how much of the logits' range a change alters at least
MOST_SAMPLES = 16  # that may be run again to find that nothing has changed
UNCHANGED = ("plain", "clean")  # a cell of all runs that no change is about
INLINE = ("--executor", "inline")
PROCESSES = ("--executor", "processes", "--workers", "1")
EDITS, EDITS_BY_PROCESSES, MOVED = "edits", "edits by processes", "moved"  # the runs of harmless changes

# Why an evaluation of another definition is checked: only words that do not count, or files, seem to differ.
WRITTEN_OTHERWISE = "its definition is written otherwise, and seems to be the same"

Cell = tuple[str, str]


def word(change: Change | Harmless) -> str:
    """What stands for ``@@`` in a change: the name of its folder, and its model or setting."""
    if isinstance(change, Change):
        return f"c{CHANGES.index(change):03d}"
    return f"h{HARMLESS.index(change):02d}" if change.run in (EDITS, EDITS_BY_PROCESSES) else "calm"


def own(text: str, change: Change | Harmless) -> str:
    """A text of a change, with its word."""
    return text.replace("@@", word(change))


def cell_of(change: Change) -> Cell:
    """The cell that a change is about."""
    model, setting = change.cell
    return own(model, change), own(setting, change)


def cells_of(change: Harmless) -> list[Cell]:
    """The cells that a harmless change is about; many models on many settings would be too many."""
    if change.run == MOVED:
        return [("movable", "movable")]
    name = word(change)
    return [(name, "clean"), ("plain", name)] if change.run == EDITS else [(name, name)]


def overall(answer: dict) -> dict[tuple[Cell, str], float]:
    """The values of the metrics of a run, over all samples."""
    return {
        ((each["model"], each["eval_setting"]), each["metric"]): each["value"]
        for each in answer["results"]
        if each["slice"] == "overall"
    }


def checks_of(answer: dict, cell: Cell) -> list[dict]:
    """Of which evaluations samples were run again for a cell, and why."""
    return [each for each in answer.get("checks", []) if (each["model"], each["eval_setting"]) == cell]


def outcome_of(answer: dict, cell: Cell) -> dict:
    return next(each for each in answer["outcomes"] if (each["model"], each["setting"]) == cell)


# The folders ------------------------------------------------------------------------------------------------------


class Folder:
    """A folder whose files are changed and changed back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def clear(self) -> None:
        """Removes byte code, which Python takes for that of a file with an equal size and time of change."""
        for cache in list(self.path.rglob("__pycache__")):
            shutil.rmtree(cache)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.path / name
        text = path.read_text()
        assert old in text, f"{name} has no {old!r}"
        path.write_text(text.replace(old, new))

    def files(self) -> dict[Path, tuple[bytes, int]]:
        """The content and the time of change of each file."""
        paths = [path for path in self.path.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    def put_back(self, files: dict[Path, tuple[bytes, int]]) -> None:
        """Makes the files as they were, times included."""
        for path in self.files().keys() - files.keys():
            path.unlink()
        for path, (content, time) in files.items():
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
            os.utime(path, ns=(time, time))


# The runs ---------------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """What is evaluated in one run.

    Attributes:
        plugins: The plug-ins to load, by the names of their folders.
        models: The models, each of which runs on each setting.
        settings: The settings.
        first: Where the first run computes.
        second: Where the second run computes.
    """

    plugins: list[str]
    models: list[str]
    settings: list[str]
    first: Sequence[str] = INLINE
    second: Sequence[str] = INLINE


def batch_of(change: Change | Harmless) -> str:
    """The run in which a change is evaluated."""
    if isinstance(change, Harmless):
        return change.run
    if change.processes:
        return "by processes"
    return {SETTING: "settings", MODEL: "models"}.get(change.cell, "others")


def batches() -> dict[str, Batch]:
    """All runs whose outcomes are stored; each of a few models, or of a few settings."""
    found = {
        "settings": Batch([], ["plain"], ["clean"]),
        "models": Batch([], ["plain"], ["clean"]),
        "others": Batch([], ["plain"], ["clean"]),
        "by processes": Batch([], ["plain"], ["clean"], first=PROCESSES),
        "edits of models": Batch([], [], ["clean"]),
        "edits of settings": Batch([], ["plain"], []),
        EDITS_BY_PROCESSES: Batch([], [], [], second=PROCESSES),
        "calm": Batch(["other", "calm"], ["calm"], ["calm"]),
        MOVED: Batch(["movable"], ["movable"], ["movable"]),
    }
    for change in (*CHANGES, *HARMLESS):
        if isinstance(change, Harmless) and change.run not in (EDITS, EDITS_BY_PROCESSES):
            continue
        cells = [cell_of(change)] if isinstance(change, Change) else cells_of(change)
        names = (
            ("edits of models", "edits of settings") if batch_of(change) == EDITS else (batch_of(change),) * len(cells)
        )
        for name, (model, setting) in zip(names, cells, strict=True):
            batch = found[name]
            for values, value in ((batch.plugins, word(change)), (batch.models, model), (batch.settings, setting)):
                if value not in values:
                    values.append(value)
    return found


@dataclass
class World:
    """Where everything lies, what was stored, what was said after the changes, and what is right then.

    Attributes:
        folder: Has everything.
        start: Runs a program, in a folder, with words and variables.
        root: Has ``eval.py``.
        altered: What each change alters: the paths of files, and the names of variables.
        evaluations: The ids of the stored evaluations.
        stored: The stored values.
        logits: The stored logits.
        answers: What the runs on changed definitions said, by the name of the run.
        right: The values of a fresh store.
        right_logits: The logits of a fresh store.
    """

    folder: Path
    start: Callable[[Path, Path, Sequence[str], dict[str, str]], str]
    root: Path
    altered: dict[Change, set[str]] = field(default_factory=dict)
    evaluations: dict[Cell, int] = field(default_factory=dict)
    stored: dict[tuple[Cell, str], float] = field(default_factory=dict)
    logits: dict[Cell, np.ndarray] = field(default_factory=dict)
    answers: dict[str, dict] = field(default_factory=dict)
    right: dict[tuple[Cell, str], float] = field(default_factory=dict)
    right_logits: dict[Cell, np.ndarray] = field(default_factory=dict)

    def place(self, name: str) -> Folder:
        return Folder(self.folder / name)

    def plugin(self, name: str) -> Path:
        return self.folder / name / PLUGIN.replace("@@", name)

    def evaluate(
        self,
        folder: Path,
        batch: Batch,
        words: Sequence[str],
        variables: dict[str, str],
        data: Path | None = None,
        plugins: Sequence[Path] | None = None,
    ) -> dict:
        """What ``eval.py`` says about a batch, on the store of a folder or the one that words name."""
        if plugins is None:
            plugins = [self.folder / "base" / "shared.py", *map(self.plugin, batch.plugins)]
        words = ["--plugin", *map(str, plugins), "--data-root", str(data or self.folder / "data"), "--json", *words]
        words += ["--models", *batch.models, "--eval-settings", *batch.settings]
        return json.loads(self.start(self.root / "eval.py", folder, words, variables))

    def make(self, folders: Sequence[str]) -> None:
        """Runs the programs that make files."""
        programs = sorted(str(path) for name in folders for path in (self.folder / name).glob("make_*.py"))
        self.start(self.folder / "make_all.py", self.folder, [str(self.folder / "base"), *programs], {})

    def copy_of_store(self, name: str) -> Path:
        """A new folder with a copy of the first store."""
        folder = self.folder / "runs" / name.replace(" ", "-")
        folder.mkdir(parents=True)
        shutil.copy(self.folder / "first" / "testbed.db", folder)
        return folder


def variables(changed: bool) -> dict[str, str]:
    """The environment variables before or after all changes."""
    return {
        own(name, change): value
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
def world(warm_python, root, tmp_path_factory, new_cache) -> World:
    """Everything evaluated before and after all changes."""

    def start(script: Path, folder: Path, words: Sequence[str], given: dict[str, str]) -> str:
        done = warm_python.run(script, words, folder, {**os.environ, **given}, anew=True)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    world = World(tmp_path_factory.mktemp("never-stale").resolve(), start, root)
    write_files(world)
    found = batches()
    changed = {name: batch for name, batch in found.items() if any(batch_of(change) == name for change in CHANGES)}

    for answer, logits in evaluate_all(world, world.folder / "first", found, variables(False)):
        world.stored.update(overall(answer))
        world.logits.update(logits)
        ids = {(each["model"], each["setting"]): each["evaluation_id"] for each in answer["outcomes"]}
        world.evaluations.update(ids)
    change_files(world)
    for name in (*changed, "edits of models", "edits of settings", EDITS_BY_PROCESSES):
        given = variables(name in changed)
        world.answers[name] = world.evaluate(world.copy_of_store(name), found[name], found[name].second, given)
    fresh = world.folder / "fresh"
    given = {**variables(True), "TESTBED_CACHE": str(new_cache(world.folder / "of-fresh"))}
    inline = {name: replace(batch, first=INLINE) for name, batch in changed.items()}
    for answer, logits in evaluate_all(world, fresh, inline, given):
        world.right.update(overall(answer))
        world.right_logits.update(logits)
    for run in dict.fromkeys(change.run for change in HARMLESS):
        if run not in (EDITS, EDITS_BY_PROCESSES):
            world.answers[run] = evaluate_calm(world, run, found)
    return world


def write_files(world: World) -> None:
    """Writes all plug-ins and what they read, as they are before the changes."""
    world.place(".").write({"make_all.py": MAKE_ALL})
    world.place("base").write({"stale_base.py": BASE, "shared.py": BEGINNING + SHARED, "make_images.py": MAKE_IMAGES})
    world.place("other").write({"change_other.py": BEGINNING + OTHER})
    world.place("movable").write({"change_movable.py": BEGINNING + MOVABLE, **MOVABLE_FILES})
    for change in (*CHANGES, *HARMLESS):
        plugin, files = (change.plugin, change.files) if isinstance(change, Change) else (CALM, CALM_FILES)
        texts = {PLUGIN: BEGINNING + plugin, **files}
        world.place(word(change)).write({own(name, change): own(text, change) for name, text in texts.items()})
    world.make(["base", *dict.fromkeys(map(word, (*CHANGES, *HARMLESS)))])


def change_files(world: World) -> None:
    """Makes all changes to files at once."""
    before = {change: world.place(word(change)).files() for change in CHANGES}
    for change in CHANGES:
        make_edits(world, change, [*change.edits, *([change.make] if change.make is not None else [])])
    world.make([word(change) for change in CHANGES if change.make is not None])
    for change in CHANGES:
        for path, (content, time) in before[change].items():
            if change.keeps_times:
                os.utime(path, ns=(time, time))
            if path.read_bytes() != content:
                world.altered.setdefault(change, set()).add(str(path))
        names = {own(name, change) for name in {*change.before, *change.after}}
        world.altered.setdefault(change, set()).update(names)
    for change in HARMLESS:
        if change.run in (EDITS, EDITS_BY_PROCESSES):
            make_edits(world, change, change.edits)
        if change.line_ends:
            path = world.plugin(word(change))
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def make_edits(world: World, change: Change | Harmless, edits: Sequence[tuple[str, str, str]]) -> None:
    """Edits and writes the files of a change."""
    place = world.place(word(change))
    for edit in edits:
        place.edit(*(own(part, change) for part in edit))
    place.write({own(name, change): own(text, change) for name, text in change.written.items()})


def evaluate_all(
    world: World, folder: Path, found: dict[str, Batch], given: dict[str, str]
) -> Iterator[tuple[dict, dict[Cell, np.ndarray]]]:
    """The answers and the logits of runs that compute everything, into one new store."""
    folder.mkdir()
    for number, batch in enumerate(found.values()):
        answer = world.evaluate(folder, batch, [*batch.first, "--logdir", f"log{number}"], given)
        files = {}
        for each in json.loads((folder / f"log{number}" / "metrics.json").read_text()):
            files[each["model"], each["eval_setting"]] = folder / f"log{number}" / each["outputs"]
        yield answer, {cell: np.load(file)["logits"] for cell, file in files.items()}


# Changes that count -----------------------------------------------------------------------------------------------


def test_every_change_alters_the_numbers(world):
    """Or else the tests below would ask for what nobody needs."""
    same = []
    for change in CHANGES:
        cell, metric = cell_of(change), (cell_of(change), change.metric)
        if change.outputs:
            old, new = world.logits[cell], world.right_logits[cell]
            altered = np.abs(new - old).max() / np.ptp(old)
        else:
            altered = abs(world.right[metric] / world.stored[metric] - 1)
        if altered < ALTERED or world.right[metric] == pytest.approx(world.stored[metric], rel=1e-5):
            same.append(f"{change.name}: {altered}, {world.stored[metric]} and {world.right[metric]}")
    assert not same, "\n".join(same)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name.replace(" ", "-"))
def test_a_stored_number_is_not_shown_after_a_change(world, change):
    answer, cell = world.answers[batch_of(change)], cell_of(change)
    outcome = outcome_of(answer, cell)
    assert outcome["status"] in ("complete", "derived"), f"{outcome['status']}: the number is stale"
    assert outcome["evaluation_id"] != world.evaluations[cell]
    value = overall(answer)[cell, change.metric]
    assert value != pytest.approx(world.stored[cell, change.metric], rel=1e-5)
    assert value == pytest.approx(world.right[cell, change.metric], rel=1e-5)
    differing = [check for check in checks_of(answer, cell) if check["result"] != "equal"]
    differing = [check for check in differing if check["because"] != [WRITTEN_OTHERWISE]]
    assert change.described == (differing == [])
    for check in differing:  # for the change itself, not only for others of the run
        assert any(what in text for what in world.altered[change] for text in check["because"]), check


@pytest.mark.parametrize("run", ["settings", "models", "others", "by processes"])
def test_what_the_changes_are_not_about_is_shown(world, run):
    """Or else a change in the same run might be what the tests above see."""
    outcome = outcome_of(world.answers[run], UNCHANGED)
    assert (outcome["status"], outcome["evaluation_id"]) == ("stored", world.evaluations[UNCHANGED])


# Changes that do not ----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A second run of the calm plug-in, which actions may alter."""

    world: World
    folder: Path
    batch: Batch
    data: Path
    plugins: list[Path]

    def files(self) -> list[Path]:
        return [*self.world.place("calm").files(), *self.data.rglob("*.png")]

    def touch(self) -> None:
        for path in self.files():
            os.utime(path, (1.6e9, 1.6e9))

    def rewrite(self) -> None:
        for path in self.files():
            path.write_bytes(path.read_bytes())

    def copy(self) -> None:
        for path in self.files():
            other = path.with_name(f"{path.name}.copy")
            shutil.copyfile(path, other)
            other.replace(path)

    def chmod(self) -> None:
        for path in self.files():
            path.chmod(0o600)

    def clear(self) -> None:
        self.world.place("calm").clear()

    def rename(self) -> None:
        path = self.world.place("calm").path / "notes.txt"
        path.rename(path.with_name("remarks.txt"))

    def readme(self) -> None:
        Folder(self.data).write({"calm-images/class0/README": "images\n"})

    def more_data(self) -> None:
        Folder(self.data).write({"other-images/class0/image.png": "no image"})

    def move_data(self) -> None:
        self.data = shutil.copytree(self.data, self.folder / "elsewhere")

    def link_data(self) -> None:
        link = self.folder / "link"
        link.symlink_to(self.data)
        self.data = link

    def move_plugin(self) -> None:
        moved = self.folder / "moved"
        for name in ("movable", "base"):
            shutil.copytree(self.world.folder / name, moved / name)
        self.plugins = [moved / "base" / "shared.py", moved / "movable" / "change_movable.py"]

    def other_plugin(self) -> None:
        another = self.folder / "another.py"
        another.write_text("from stale_base import add_model, add_setting\n\nadd_model('o')\nadd_setting('o')\n")
        self.plugins.insert(1, another)

    def edit_other(self) -> None:
        self.world.place("other").edit("change_other.py", "1.8", "1.9")

    def reverse(self) -> None:
        self.plugins.reverse()

    def alone(self) -> None:
        self.plugins = [self.world.plugin("calm")]

    def elsewhere(self) -> None:
        self.folder = self.folder / "deeper"
        self.folder.mkdir()

    def together(self) -> None:
        self.batch = replace(self.batch, models=["plain", "calm"], settings=["clean", "calm"])


def evaluate_calm(world: World, name: str, found: dict[str, Batch]) -> dict:
    """What a second run says after all harmless changes that belong to it, which are taken back."""
    folder = world.copy_of_store(name)
    batch = found.get(name, found["calm"])
    plugins = [world.folder / "base" / "shared.py", *map(world.plugin, batch.plugins)]
    run = Run(world, folder, batch, world.folder / "data", plugins)
    executor = "processes" if name == "processes" else "inline"
    words, given = ["--executor", executor, "--db-url", str(folder / "testbed.db")], variables(False)
    kept = [(place, place.files()) for place in map(world.place, ("calm", "data", "other"))]
    for change in [change for change in HARMLESS if change.run == name]:
        make_edits(world, change, change.edits)
        if change.action is not None:
            getattr(run, change.action)()
        words += change.words
        given.update(change.after)
    answer = world.evaluate(run.folder, run.batch, words, given, run.data, run.plugins)
    for place, files in kept:
        place.put_back(files)
    return answer


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.name.replace(" ", "-"))
def test_a_stored_number_is_shown_where_nothing_that_counts_changed(world, change):
    names = ("edits of models", "edits of settings") if change.run == EDITS else (change.run,)
    for name, cell in zip(names, cells_of(change), strict=True):
        outcome, checks = outcome_of(world.answers[name], cell), checks_of(world.answers[name], cell)
        assert (outcome["status"], outcome["evaluation_id"]) == ("stored", world.evaluations[cell])
        assert change.checked or checks == []
        assert sum(check["samples"] for check in checks) <= MOST_SAMPLES
        assert {check["result"] for check in checks} <= {"equal"}


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
    package = tmp_path / "testbed"  # beside eval.py, where Python looks first
    ignored = shutil.ignore_patterns("__pycache__")
    for source, target in (
        (root / "src", package),
        (root / "db", package / "db"),
        (root / "plotting", package / "plotting"),
    ):
        shutil.copytree(source, target, ignore=ignored)
    shutil.copy(root / "eval.py", tmp_path)
    corruptions = Folder(package / "corruptions")
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
        assert overall(second)[cell, "nll"] != pytest.approx(overall(first)[cell, "nll"], rel=1e-3)
