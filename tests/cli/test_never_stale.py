"""A number that is stored is never shown for a definition that has become another one.

All changes of `stale_changes` are evaluated once into one store. Then each is made by itself, in place, and ``eval.py``
runs on a copy of that store. What it should say then is what a fresh store says, with all changes made at once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from stale_changes import (
    BASE,
    BEGINNING,
    BOTH,
    CALM,
    CALM_FILES,
    CHANGES,
    HARMLESS,
    MOVABLE,
    MOVABLE_FILES,
    PLUGIN,
    SHARED,
    Change,
    Harmless,
)

ALTERED = 1e-3  # how much of the logits' range a change alters at least
MOST_SAMPLES = 16  # that may be run again to find that nothing has changed
CALM_CELL, MOVABLE_CELL = ("calm", "calm"), ("movable", "movable")

Cell = tuple[str, str]
Files = dict[Path, tuple[bytes, int]]


def word(change: Change) -> str:
    """What stands for ``@@`` in a change."""
    return f"c{CHANGES.index(change):03d}"


def cell_of(change: Change) -> Cell:
    model, setting = (part.replace("@@", word(change)) for part in change.cell)
    return model, setting


def shelf(change: Change) -> int:
    """Which plug-ins are loaded together: some, since a hundred take a while, and importing timm takes longer."""
    return -1 if "import timm" in change.plugin else CHANGES.index(change) // 27


def overall(answer: dict) -> dict[tuple[Cell, str], float]:
    """The values of the metrics of a run, over all samples."""
    return {
        ((each["model"], each["eval_setting"]), each["metric"]): each["value"]
        for each in answer["results"]
        if each["slice"] == "overall"
    }


def checks_of(answer: dict) -> list[dict]:
    """Of which evaluations samples were run again, and why."""
    return answer.get("checks", [])


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

    def files(self) -> Files:
        """The content and the time of change of each file."""
        paths = [path for path in self.path.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}

    def put_back(self, files: Files) -> None:
        """Makes the files as they were, times included."""
        for path in self.files().keys() - files.keys():
            path.unlink()
        for path, (content, time) in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != content:
                path.write_bytes(content)
            os.utime(path, ns=(time, time))
        self.clear()


@dataclass
class World:
    """Where everything lies, what was stored, and what is right after each change."""

    folder: Path
    before: dict[Change, Files] = field(default_factory=dict)
    after: dict[Change, Files] = field(default_factory=dict)
    evaluations: dict[Cell, int] = field(default_factory=dict)
    stored: dict[tuple[Cell, str], float] = field(default_factory=dict)
    right: dict[tuple[Cell, str], float] = field(default_factory=dict)
    logits: dict[Cell, np.ndarray] = field(default_factory=dict)
    right_logits: dict[Cell, np.ndarray] = field(default_factory=dict)

    def place(self, change: Change) -> Folder:
        return Folder(self.folder / word(change))

    @property
    def calm(self) -> Folder:
        return Folder(self.folder / "calm")

    @property
    def data(self) -> Folder:
        return Folder(self.folder / "data")

    def plugin(self, change: Change) -> Path:
        return self.place(change).path / _own(PLUGIN, change)

    def plugins(self, cell: Cell | None) -> list[Path]:
        """The plug-ins that are loaded in each run of a cell; of all cells for None."""
        shared = self.folder / "base" / "shared.py"
        if cell in (CALM_CELL, MOVABLE_CELL):
            other = self.plugin(CHANGES[0])
            return [shared, other, self.calm.path / "change_calm.py", self.folder / "movable" / "change_movable.py"]
        own = next((change for change in CHANGES if cell_of(change) == cell), None)
        return [shared, *(self.plugin(change) for change in CHANGES if own is None or shelf(change) == shelf(own))]

    def variables(self, *changed: Change) -> dict[str, str]:
        """The environment variables of all changes, some of them made."""
        given: dict[str, str] = {}
        for change in CHANGES:
            values = change.after if change in changed else change.before
            given.update({name.replace("@@", word(change)): value for name, value in values.items()})
        return given

    def take_store(self, folder: Path) -> None:
        shutil.copy(self.folder / "first" / "testbed.db", folder / "testbed.db")

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        """One change, in place."""
        place = self.place(change)
        place.clear()
        for path, (content, time) in self.after[change].items():
            old, old_time = self.before[change].get(path, (b"", 0))
            if content != old:
                path.write_bytes(content)
                os.utime(path, ns=(old_time, old_time) if change.keeps_times else (time, time))
        try:
            yield
        finally:
            place.put_back(self.before[change])


def first_files(world: World) -> None:
    """Writes all plug-ins and what they read."""
    base = world.folder / "base"
    Folder(base).write({"stale_base.py": BASE, "shared.py": BEGINNING + SHARED})
    for change in CHANGES:
        own = {PLUGIN: BEGINNING + change.plugin, **change.files}
        world.place(change).write({_own(name, change): _own(text, change) for name, text in own.items()})
    world.calm.write({"change_calm.py": BEGINNING + CALM, **CALM_FILES})
    Folder(world.folder / "movable").write({"change_movable.py": BEGINNING + MOVABLE, **MOVABLE_FILES})
    world.data.path.mkdir()


def change_files(world: World) -> None:
    """Makes all changes at once, but for what programs make."""
    for change in CHANGES:
        place = world.place(change)
        edits = [*change.edits, *([change.make] if change.make is not None else [])]
        for edit in edits:
            place.edit(*(_own(part, change) for part in edit))
        place.write({_own(name, change): _own(text, change) for name, text in change.written.items()})


def _own(text: str, change: Change) -> str:
    return text.replace("@@", word(change))


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


# The runs ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(warm_python, root, tmp_path_factory) -> World:
    """Everything evaluated once before and once after all changes; the files are as before."""
    world = World(tmp_path_factory.mktemp("never-stale").resolve())
    first_files(world)
    (world.folder / "make_all.py").write_text(MAKE_ALL)
    programs = sorted(str(path) for path in world.folder.glob("*/make_*.py"))

    def run(script: Path, folder: Path, words: list[str], **variables: str) -> str:
        Folder(world.folder).clear()
        done = warm_python.run(script, words, folder, {**os.environ, **variables})
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout

    def evaluate_all(name: str, *changed: Change) -> tuple[list[dict], dict[Cell, np.ndarray]]:
        folder = world.folder / name
        folder.mkdir()
        run(world.folder / "make_all.py", folder, [str(world.folder / "base"), *programs])
        variables = world.variables(*changed)
        if changed:
            variables["TESTBED_CACHE"] = str(folder / "cache")
        answers, logits = [], {}
        for number, (plugins, cells) in enumerate(groups(world, together=bool(changed))):
            words = [*("--plugin", *map(str, plugins)), *("--executor", "inline", "--json")]
            words += ["--data-root", str(world.data.path), "--logdir", f"log{number}"]
            words += ["--models", *sorted({model for model, _ in cells})]
            words += ["--eval-settings", *sorted({setting for _, setting in cells})]
            answer = json.loads(run(root / "eval.py", folder, words, **variables))
            answers.append(answer)
            logits.update(logged(folder / f"log{number}"))
            failed = [each for each in answer["outcomes"] if each["evaluation_id"] is None]
            assert failed == []
        return answers, logits

    answers, world.logits = evaluate_all("first")
    world.before = {change: world.place(change).files() for change in CHANGES}
    for answer in answers:
        world.stored.update(overall(answer))
        for each in answer["outcomes"]:
            world.evaluations[each["model"], each["setting"]] = each["evaluation_id"]
    change_files(world)
    answers, world.right_logits = evaluate_all("fresh", *CHANGES)
    for answer in answers:
        world.right.update(overall(answer))
    for change in CHANGES:
        world.after[change] = world.place(change).files()
        world.place(change).put_back(world.before[change])
    return world


def groups(world: World, together: bool) -> list[tuple[tuple[Path, ...], list[Cell]]]:
    """The cells of all runs, with the plug-ins to load; those in one that can be told by their models and settings.

    Args:
        world: The world.
        together: Whether all plug-ins are loaded in each run, for fewer runs.
    """
    found: dict[tuple[object, tuple[Path, ...]], list[Cell]] = {}
    for change in CHANGES:
        cell = cell_of(change)
        plugins = world.plugins(None if together else cell)
        found.setdefault((cell if change.cell == BOTH else change.cell, tuple(plugins)), []).append(cell)
    calm = [] if together else [(tuple(world.plugins(cell)), [cell]) for cell in (CALM_CELL, MOVABLE_CELL)]
    return [*((plugins, cells) for (_, plugins), cells in found.items()), *calm]


def logged(folder: Path) -> dict[Cell, np.ndarray]:
    """The logits that a run wrote."""
    metrics = json.loads((folder / "metrics.json").read_text())
    files = {(each["model"], each["eval_setting"]): each["outputs"] for each in metrics}
    return {cell: np.load(folder / file)["logits"] for cell, file in files.items()}


def evaluate(world: World, program, change: Change) -> dict:
    model, setting = cell_of(change)
    executor = ("processes", "--workers", "1") if change.processes else ("inline",)
    done = program(
        "eval.py",
        *("--plugin", *map(str, world.plugins((model, setting))), "--models", model, "--eval-settings", setting),
        *("--data-root", str(world.data.path), "--json", "--executor", *executor),
        **world.variables(change),
    )
    return json.loads(done.stdout)


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
def test_a_stored_number_is_not_shown_after_a_change(world, program, tmp_path, change):
    world.take_store(tmp_path)
    cell = cell_of(change)
    with world.changed(change):
        answer = evaluate(world, program, change)
    outcome = outcome_of(answer, cell)
    assert outcome["status"] in ("complete", "derived"), f"{outcome['status']}: the number is stale"
    assert outcome["evaluation_id"] != world.evaluations[cell]
    value = overall(answer)[cell, change.metric]
    assert value != pytest.approx(world.stored[cell, change.metric], rel=1e-5)
    assert value == pytest.approx(world.right[cell, change.metric], rel=1e-5)


# Changes that do not ----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """The second run of the calm cell, which an action may alter."""

    world: World
    folder: Path
    plugins: list[Path]
    data: Path
    cell: Cell = CALM_CELL
    models: tuple[str, ...] = ("calm",)
    settings: tuple[str, ...] = ("calm",)

    def files(self) -> list[Path]:
        return [*self.world.calm.files(), *self.world.data.files()]

    def line_ends(self) -> None:
        path = self.world.calm.path / "change_calm.py"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

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
        self.world.calm.clear()

    def rename(self) -> None:
        path = self.world.calm.path / "notes.txt"
        path.rename(path.with_name("remarks.txt"))

    def readme(self) -> None:
        self.world.data.write({"calm-images/class0/README": "images\n"})

    def more_data(self) -> None:
        self.world.data.write({"other-images/class0/image.png": "no image"})

    def move_data(self) -> None:
        self.data = shutil.copytree(self.data, self.folder / "elsewhere")

    def link_data(self) -> None:
        link = self.folder / "link"
        link.symlink_to(self.data)
        self.data = link

    def move_plugin(self) -> None:
        for name in ("movable", "base"):
            shutil.copytree(self.world.folder / name, self.folder / "moved" / name)
        moved = self.folder / "moved"
        self.plugins = [moved / "base" / "shared.py", moved / "movable" / "change_movable.py"]
        self.cell, self.models, self.settings = MOVABLE_CELL, ("movable",), ("movable",)

    def other_plugin(self) -> None:
        other = self.folder / "other.py"
        other.write_text("from stale_base import add_model, add_setting\n\nadd_model('o')\nadd_setting('o')\n")
        self.plugins.append(other)

    def edit_other(self) -> None:
        self.world.place(CHANGES[0]).edit(self.plugins[1].name, "1.8", "1.9")

    def reverse(self) -> None:
        self.plugins.reverse()

    def alone(self) -> None:
        self.plugins = [self.world.calm.path / "change_calm.py"]

    def elsewhere(self) -> None:
        self.folder = self.folder / "deeper"
        self.folder.mkdir()

    def together(self) -> None:
        self.models, self.settings = ("plain", "calm"), ("clean", "calm")


@pytest.mark.parametrize("change", HARMLESS, ids=lambda change: change.name.replace(" ", "-"))
def test_a_stored_number_is_shown_where_nothing_that_counts_changed(
    world, program, warm_python, root, tmp_path, change
):
    answer, cell = evaluate_calm(world, warm_python, root, tmp_path, change)
    outcome = outcome_of(answer, cell)
    assert (outcome["status"], outcome["evaluation_id"]) == ("stored", world.evaluations[cell])
    checks = [check for check in checks_of(answer) if (check["model"], check["eval_setting"]) == cell]
    assert change.checked or checks == []
    assert sum(check["samples"] for check in checks) <= MOST_SAMPLES
    assert {check["result"] for check in checks} <= {"equal"}


def evaluate_calm(world: World, warm_python, root: Path, folder: Path, change: Harmless) -> tuple[dict, Cell]:
    run = Run(world, folder, world.plugins(CALM_CELL), world.data.path)
    world.take_store(folder)
    kept = [(place, place.files()) for place in (world.calm, world.data, world.place(CHANGES[0]))]
    try:
        for edit in change.edits:
            world.calm.edit(*edit)
        world.calm.write(change.written)
        if change.action is not None:
            getattr(run, change.action)()
        words = ["--plugin", *map(str, run.plugins), "--models", *run.models, "--eval-settings", *run.settings]
        words += ["--data-root", str(run.data), "--json", "--db-url", str(folder / "testbed.db")]
        words += ["--executor", change.executor, *change.words]
        environment = {**os.environ, **world.variables(), **change.after}
        done = warm_python.run(root / "eval.py", words, run.folder, environment)
    finally:
        for place, files in kept:
            place.put_back(files)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout), run.cell


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
def test_a_corruption_of_ones_own_counts_without_a_new_revision(root, tmp_path):
    """In ``src/corruptions/``, of a copy of testbed."""
    package = tmp_path / "packages" / "testbed"
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
        variables = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "eval.py", *words], cwd=tmp_path, env=variables, capture_output=True, text=True
        )
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
