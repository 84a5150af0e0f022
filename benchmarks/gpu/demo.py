"""The README's demo on the GPU against the CPU, and again after kill -9: a part of the proof (see prove.py)."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from findings import Findings, part
from runs import GRACE, Run, ended_at_exit, on_device

from testbed.db.store import Store
from testbed.models.digits import RECIPES, DigitsWeights

MODELS = [name for name in RECIPES if name != "digits-coca"]
TINY = (["digits-knn", "digits-logreg"], ["digits", "digits-c.contrast.3", "digits-pgd.linf.eps0.1"])
TOLERANCE = 1e-3  # of logits, relative to the largest of their cell (at least 1); of metrics, to their value
FEW = 0.005  # share of predictions that may differ; of the neighbours, also of logits beyond the tolerance, twice that
ATTACKED = 0.01  # the same under attack

Array = np.ndarray[Any, Any]


def stored_chunks(db: Path) -> int:
    """Counts the ranges of outputs in a store; 0 if it cannot be read yet."""
    if not db.exists():
        return 0
    try:
        with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=1)) as connection:
            return int(connection.execute("SELECT count(*) FROM output_chunks").fetchone()[0])
    except sqlite3.Error:
        return 0


# What is stored ---------------------------------------------------------------------------------------------------


@dataclass
class Cell:
    """The stored values of a cell.

    Attributes:
        metrics: Metric and slice → value and number of samples.
        outputs: Its logits [samples, classes].
    """

    metrics: dict[tuple[str, str], tuple[float | None, int | None]]
    outputs: Array


Cells = dict[tuple[str, str], Cell]


def cells_of(db: Path) -> Cells:
    """The complete cells of a store, by model and setting."""
    cells: Cells = {}
    with Store.open(str(db)) as store:
        for evaluation in store.evaluations.find(statuses=["complete"]):
            outputs = store.outputs.read(evaluation.id, "logits").astype(np.float64)
            cells[evaluation.model, evaluation.eval_setting] = Cell({}, outputs)
        for result in store.results.find():
            cell = cells.get((result.model, result.eval_setting))
            if cell is not None:
                cell.metrics[result.metric, result.slice] = result.value, result.n
    return cells


def largest_difference(first: Cells, second: Cells) -> float:
    """The largest absolute difference of outputs.

    Raises:
        ValueError: If the cells are not the same, or an output is missing.
    """
    if first.keys() != second.keys() or not first:
        raise ValueError(f"other cells: {sorted(first.keys() ^ second.keys())[:5]} of {len(first)} and {len(second)}")
    differences = [float(np.abs(first[key].outputs - second[key].outputs).max()) for key in first]
    if not np.isfinite(differences).all():
        raise ValueError("some outputs are missing or not finite")
    return max(differences)


def same_bits(first: Cells, second: Cells) -> bool:
    """Returns whether all outputs are equal to the last bit."""
    return all(np.array_equal(first[key].outputs, second[key].outputs) for key in first)


@dataclass
class Tally:
    """The differences of the cells of one kind."""

    cells: int = 0
    samples: int = 0
    largest_logit_difference: float = 0.0
    largest_relative_to_scale: float = 0.0
    logits_beyond_tolerance: int = 0
    predictions_that_differ: int = 0
    cells_whose_top1_differs: int = 0
    largest_metric_difference: float = 0.0
    unexplained: list[str] = field(default_factory=list)

    def add(self, name: tuple[str, str], kind: str, first: Cell, second: Cell) -> None:
        """Compares a cell with itself elsewhere."""
        change = np.abs(first.outputs - second.outputs).max(axis=1)
        scale = max(1.0, float(np.abs(first.outputs).max()))
        flips = int((first.outputs.argmax(1) != second.outputs.argmax(1)).sum())
        beyond = int((~(change <= TOLERANCE * scale)).sum())
        self.cells += 1
        self.samples += len(change)
        self.largest_logit_difference = max(self.largest_logit_difference, float(change.max()))
        self.largest_relative_to_scale = max(self.largest_relative_to_scale, float(change.max()) / scale)
        self.logits_beyond_tolerance += beyond
        self.predictions_that_differ += flips
        self.cells_whose_top1_differs += first.metrics.get(TOP1) != second.metrics.get(TOP1)
        why = _unexplained_outputs(kind, len(change), flips, beyond)
        why += self._metrics(kind, first, second, max(flips, beyond), float(change.max()))
        self.unexplained += [f"{' on '.join(name)}: {line}" for line in why]

    def _metrics(self, kind: str, first: Cell, second: Cell, moved: int, largest: float) -> list[str]:
        """Which metrics differ by more than rounding explains."""
        if first.metrics.keys() != second.metrics.keys():
            return ["other metrics"]
        why = []
        for key, (value, n) in first.metrics.items():
            other = second.metrics[key][0]
            if value is None or other is None:
                why += [] if value is other else [f"{key}: {value} and {other}"]
                continue
            difference, n = abs(value - other), n or len(first.outputs)
            self.largest_metric_difference = max(self.largest_metric_difference, difference)
            if kind == "attack":
                allowed = ATTACKED if key == TOP1 else float("inf")
            else:
                bins = 2 / n if key[0] == "ece" else 0.0
                allowed = TOLERANCE * max(1.0, abs(value)) + moved * max(2.0, largest) / n + bins
            if not difference <= allowed:
                why.append(f"{key[0]} {key[1]}: {value} and {other}")
        return why


TOP1 = ("top1", "overall")


def _unexplained_outputs(kind: str, samples: int, flips: int, beyond: int) -> list[str]:
    share = ATTACKED if kind == "attack" else FEW
    why = [] if flips <= max(1, share * samples) else [f"{flips} of {samples} predictions differ"]
    most = {"attack": samples, "nearest neighbours": max(1, 2 * FEW * samples)}.get(kind, 0)
    return why if beyond <= most else [*why, f"the logits of {beyond} of {samples} samples differ"]


def kind_of(model: str, setting: str) -> str:
    """The kind of a cell for comparisons: under attack, nearest neighbours, corrupted, or neither."""
    if ".linf." in setting:
        return "attack"
    if model == "digits-knn":
        return "nearest neighbours"
    return "corruptions" if setting.startswith("digits-c.") else "others"


# The part ---------------------------------------------------------------------------------------------------------


def work(findings: Findings) -> None:
    """The README's demo on the device against the CPU, and on the device again after kill -9.

    Six models are run on 32 settings, on the device, on eight processes of the CPU, and on the device into a store
    whose run is killed by SIGKILL, with all its processes, as soon as outputs are stored, and given again.

    What counts as explained by rounding: without an attack, no logit differs by more than 0.001 of the largest logit of
    its cell (of at least 1), and at most 0.5 % of the predictions of a cell differ. The nearest neighbours are compared
    apart: where the fifth and the sixth neighbour are equally far, rounding chooses, so at most 1 % of their samples
    may differ by more. A metric may differ by 0.001 of its value (of at least 1), and by what the samples explain that
    do differ (ece also by one sample in another bin). Under PGD, whose twenty steps follow the signs of gradients, at
    most 1 % of predictions and one point of top1 may differ; other metrics are reported only.
    """
    models, settings = TINY if findings.tiny else (MODELS, ["demo"])
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as place, ended_at_exit(runs):
        with findings.trying("demo: models trained") as figures:
            figures.update(train(models, findings.left - GRACE))
        compare_demo(findings, Path(place), [*models, "--on", *settings], runs)


def compare_demo(findings: Findings, folder: Path, words: list[str], runs: list[Run]) -> None:
    """All runs of the demo, three at a time, and what they have stored."""
    device = [*words, *on_device(findings)]
    first = Run("device", device, folder)
    cpu = [*words, "--cpu-processes", "8"]
    reference = Run("cpu", cpu, folder, {"CUDA_VISIBLE_DEVICES": ""}) if findings.on_gpu else first
    broken = Run("broken", device, folder)
    runs += [first, reference, broken]
    with findings.trying("demo: kill -9") as figures:
        figures.update(kill_when_stored(broken, findings.left - GRACE))
    again = Run("again", device, folder, resume=broken)
    runs.append(again)
    for run, name in ((first, "on the device"), (reference, "on the CPU"), (again, "the same command after kill -9")):
        with findings.trying(f"demo: {name}") as figures:
            figures["run_seconds"] = run.wait(findings.left - GRACE)
            figures["cells"] = run.events("ended")[-1]["cells"]
            figures["passes"] = {event["label"]: event["to_do"] for event in run.events("pass")}
            figures["notes"] = run.notes()
    compare_device_and_cpu(findings, first, reference)
    compare_after_kill(findings, first, again)


def train(models: Sequence[str], seconds: float) -> dict[str, Any]:
    """Trains the models that the cache folder does not hold, each in a process of its own."""
    missing = [name for name in models if DigitsWeights(name).files(fetch=False) is None]
    code = "import sys; from testbed.models.digits import DigitsWeights; DigitsWeights(sys.argv[1]).files(fetch=True)"
    processes = [subprocess.Popen([sys.executable, "-c", code, name], stdin=subprocess.DEVNULL) for name in missing]
    end = time.monotonic() + seconds
    try:
        statuses = [process.wait(max(1.0, end - time.monotonic())) for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(statuses):
        raise RuntimeError(f"training ended with {dict(zip(missing, statuses, strict=True))}")
    return {"trained": missing, "ok": True}


def kill_when_stored(run: Run, seconds: float) -> dict[str, Any]:
    """Kills a run as soon as it has stored outputs; returns how much is stored."""
    end = time.monotonic() + seconds / 2
    while not run.ended and time.monotonic() < end and not stored_chunks(run.db):
        time.sleep(0.02)
    in_the_middle = not run.ended
    left_over, stored = run.kill(), stored_chunks(run.db)
    return {
        "chunks_stored_when_killed": stored,
        "in_the_middle": in_the_middle,
        "processes_left": left_over,
        "ok": in_the_middle and stored > 0 and not left_over,
    }


def compare_device_and_cpu(findings: Findings, first: Run, reference: Run) -> None:
    """A finding for each kind of cells."""
    tallies: dict[str, Tally] = {}
    with findings.trying("demo: cells of both") as figures:
        ours, theirs = cells_of(first.db), cells_of(reference.db)
        figures["cells"], figures["ok"] = len(ours), bool(ours) and ours.keys() == theirs.keys()
        for key in sorted(ours.keys() & theirs.keys()):
            kind = kind_of(*key)
            tallies.setdefault(kind, Tally()).add(key, kind, theirs[key], ours[key])
    for kind, tally in tallies.items():
        figures = {**vars(tally), "unexplained": tally.unexplained[:20]}
        findings.add(f"demo: device against CPU, {kind}", ok=not tally.unexplained, **figures)


def compare_after_kill(findings: Findings, first: Run, again: Run) -> None:
    """Returns whether the store whose first run was killed has what the other one has."""
    with findings.trying("demo: after kill -9 against undisturbed") as figures:
        whole, resumed = cells_of(first.db), cells_of(again.db)
        figures.update(cells=len(resumed), expected=len(whole), chunks=stored_chunks(again.db))
        figures["largest_logit_difference"] = largest_difference(whole, resumed)
        figures["same_bits"] = same_bits(whole, resumed)
        figures["same_metrics"] = all(whole[key].metrics == resumed[key].metrics for key in whole)
        tally: dict[str, Tally] = {}
        for key in whole:
            tally.setdefault(kind_of(*key), Tally()).add(key, kind_of(*key), whole[key], resumed[key])
        figures["unexplained"] = [why for counts in tally.values() for why in counts.unexplained][:20]
        figures["ok"] = not figures["unexplained"]


if __name__ == "__main__":
    part(work)()
