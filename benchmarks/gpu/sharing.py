"""Two processes on one card, its memory, batches that do not fit, killed workers: a part of the proof."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from demo import Cells, cells_of, largest_difference, same_bits
from findings import Findings, part
from memory import MIB, RELEASED, Memory
from PIL import Image
from runs import GRACE, Run, ended_at_exit, on_device

SAME, HALVED = 1e-5, 1e-4  # how much logits may differ: of the same batches, and of smaller ones
CONTEXT = 1536 * MIB  # what a process may take of a card besides tensors
ROOM = 1536 * MIB  # what the model with too large batches may take of the card
CLASSES = 10

# Registers networks with random weights, and settings on the photos. Each process notes what it does in a folder.
PLUGIN = '''
import os
import time
from pathlib import Path

import torch

from testbed.corruptions import Corruption
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.registry import registry

OPTIONS = {options!r}
NOTES = Path({notes!r})


def note(kind, text):
    """Appends to a file of this process."""
    file = os.open(NOTES / f"{{kind}}-{{os.getpid()}}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{{text}}\\n".encode())
    os.close(file)


def wait_for_others():
    """Waits until as many processes as told have loaded a model, or for some seconds."""
    end = time.monotonic() + 15
    while len(list(NOTES.glob("loaded-*"))) < OPTIONS["processes"] and time.monotonic() < end:
        time.sleep(0.02)


class Noted(torch.nn.Module):
    """A network that notes how many images it sees."""

    def __init__(self, network, most=None):
        super().__init__()
        self.network = network
        self.most = most

    def forward(self, images):
        if self.most is not None and not images.is_cuda and len(images) > self.most:
            raise torch.OutOfMemoryError("out of memory, as if it were a GPU's")
        note("seen", len(images))
        time.sleep(OPTIONS["sleep"])
        return self.network(images)


class Big(torch.nn.Module):
    """Weights that take much memory, and as much again for half of them while it computes."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.zeros(OPTIONS["weights"]))

    def forward(self, images):
        scratch = images.new_zeros(OPTIONS["weights"] // 2)
        steps = torch.linspace(-1, 1, {classes}, device=images.device)
        return images.mean((1, 2, 3))[:, None] * steps + self.weights[0] + scratch[-1]


def residual(most=None):
    """A ResNet-18 with random weights from a fixed seed."""
    from torchvision.models import resnet18

    torch.manual_seed(7)
    return Noted(resnet18(num_classes={classes}), most)


def shared():
    note("loaded", "shared")
    wait_for_others()
    return residual()


def greedy():
    note("loaded", "greedy")
    if torch.cuda.is_available():
        total = torch.cuda.mem_get_info()[1]
        torch.cuda.set_per_process_memory_fraction(min(1.0, OPTIONS["room"] / total))
    return residual(most=OPTIONS["most"])


def big():
    note("loaded", torch.cuda.memory_reserved() if torch.cuda.is_available() else 0)
    return Big()


def add(name, loader, batch, kind):
    registry.add_model(
        Model(
            name,
            StandardTransform(OPTIONS["size"] * 8 // 7, OPTIONS["size"]),
            loader,
            batch,
            normalization=StandardNormalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            num_classes={classes},
            weights=f"{{kind}} of seed 7 as {{name}}",  # else the outputs of one would serve the other
            architecture={{"network": kind}},
        )
    )


add("one", shared, OPTIONS["batch"], "resnet18")
add("other", shared, OPTIONS["batch"], "resnet18")
add("greedy", greedy, OPTIONS["images"], "resnet18")
add("big", big, OPTIONS["batch"], "big")
add("bigger", big, OPTIONS["batch"], "big")
PERTURBED = {{"plain": None, "noise": Corruption("gaussian_noise", 3), "contrast": Corruption("contrast", 3)}}
for key, perturbation in PERTURBED.items():
    registry.add_eval_setting(
        EvalSetting(f"photos-{{key}}", StandardDataset(name="photos"), None, perturbation_fn_gpu=perturbation)
    )
'''


@dataclass(frozen=True)
class SharingSizes:
    """The sizes of the part."""

    images: int
    size: int
    batch: int
    weights: int
    sleep: float


FULL = SharingSizes(images=400, size=224, batch=32, weights=2**29, sleep=0.1)
TINY = SharingSizes(images=24, size=56, batch=4, weights=2**16, sleep=0.1)


class Lab:
    """Runs of the plug-in's models on synthetic photos.

    Args:
        findings: The part.
        folder: Where everything is.
    """

    def __init__(self, findings: Findings, folder: Path) -> None:
        self.findings = findings
        self.folder = folder
        self.sizes = TINY if findings.tiny else FULL
        self.runs: list[Run] = []
        self.memory_before = Memory(findings.device) if findings.on_gpu else None

    def start(self, name: str, models: list[str], settings: list[str], processes: int = 1, sleep: float = 0.0) -> Run:
        """Starts a run in as many evaluation processes; its plug-in notes things in the folder of its name."""
        notes = self.folder / f"{name}-notes"
        notes.mkdir()
        sizes = self.sizes
        options = {**vars(sizes), "sleep": sleep, "processes": processes, "room": ROOM, "most": sizes.images // 3}
        plugin = self.folder / f"{name}_plugin.py"
        plugin.write_text(PLUGIN.format(options=options, notes=str(notes), classes=CLASSES), encoding="utf-8")
        words = [*models, "--on", *[f"photos-{setting}" for setting in settings], "--data-root", str(self.folder)]
        words += ["--plugin", str(plugin), "--workers", "2" if self.findings.on_gpu else "0"]
        # Without a GPU one process more would only take time to start.
        alone = processes == 1 and not sleep and not self.findings.on_gpu
        where = ["--executor", "inline"] if alone else on_device(self.findings, processes)
        run = Run(name, [*words, *where], self.folder)
        self.runs.append(run)
        return run

    def notes(self, run: Run, kind: str) -> dict[int, list[str]]:
        """The notes of each process of a run: process → lines."""
        files = (self.folder / f"{run.name}-notes").glob(f"{kind}-*")
        return {int(file.name.rpartition("-")[2]): file.read_text().split() for file in files}

    def wait(self, run: Run) -> float:
        """Waits for a run as long as there is time; returns its seconds."""
        return run.wait(self.findings.left - GRACE)


def make_photos(folder: Path, count: int, size: int) -> None:
    """Writes JPEGs of smooth random colours, in one folder for each class."""
    rng = np.random.default_rng(0)
    for index in range(count):
        place = folder / f"class-{index % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(rng.integers(0, 256, (8, 10, 3), dtype=np.uint8))
        small.resize((size * 5 // 4, size), Image.Resampling.BICUBIC).save(place / f"{index:04}.jpg", quality=90)


def work(findings: Findings) -> None:
    """Several processes on one card, the memory of runs, batches that do not fit, and killed workers.

    Each run is a ``testbed run`` of a ResNet-18 with random weights on synthetic photos. Two evaluation processes on
    one card must store what one stores (logits within 1e-5), and both must have worked. A batch that does not fit into
    the memory that the process may take must be halved, with logits within 1e-4 of those of small batches. After a
    worker was killed, the run must be complete, and the card's memory as before within 64 MiB. Of two networks one
    after the other, the second must not add to the first.
    """
    with tempfile.TemporaryDirectory() as place:
        lab = Lab(findings, Path(place))
        make_photos(lab.folder / "photos", lab.sizes.images, lab.sizes.size * 8 // 7)
        with ended_at_exit(lab.runs):
            single = share(lab)
            if not findings.on_gpu:
                findings.not_run("sharing: killed worker", "needs a GPU; tests/execution/test_killed.py is of CPUs")
            elif findings.left > 15:
                killed(lab, single)
            else:
                findings.not_run("sharing: killed worker", f"{findings.left:.0f} s were left")
            if findings.left > 12 or not findings.on_gpu:
                one_after_the_other(lab)
            else:
                findings.not_run("sharing: one network after the other", f"{findings.left:.0f} s were left")


def share(lab: Lab) -> Cells:
    """One process, two processes, and the model with too large batches, all at the same time; what one has stored."""
    settings = ["plain", "noise", "contrast"]
    one = lab.start("single", ["one", "other"], settings)
    two = lab.start("double", ["one", "other"], settings, processes=2)
    large = lab.start("greedy", ["greedy"], settings)
    single: Cells = {}
    with lab.findings.trying("sharing: one process") as figures:
        figures["run_seconds"] = lab.wait(one)
        single = cells_of(one.db)
        figures.update(cells=len(single), notes=one.notes(), ok=len(single) == 2 * len(settings))
    with lab.findings.trying("sharing: two processes on one device") as figures:
        figures.update(two_processes(lab, two, single))
    with lab.findings.trying("sharing: a batch that does not fit is halved") as figures:
        figures.update(halved(lab, large, single))
    released(lab, "sharing: memory after three runs")
    return single


def two_processes(lab: Lab, run: Run, single: Cells) -> dict[str, Any]:
    """Compares the outputs of runs in two processes and in one, and counts the images of each process."""
    figures: dict[str, Any] = {"run_seconds": lab.wait(run)}
    double = cells_of(run.db)
    seen = {pid: sum(map(int, lines)) for pid, lines in lab.notes(run, "seen").items()}
    difference = largest_difference(single, double)
    figures["images_seen_by_each_process"] = sorted(seen.values())
    figures["largest_logit_difference"] = difference
    figures["same_bits"] = same_bits(single, double)
    figures["notes"] = run.notes()
    figures["ok"] = len(seen) == 2 and min(seen.values()) > 0 and difference <= SAME
    return figures


def halved(lab: Lab, run: Run, single: Cells) -> dict[str, Any]:
    """Compares the outputs of too large and small batches; on a CPU, the model only reports that they do not fit."""
    figures: dict[str, Any] = {"run_seconds": lab.wait(run), "of_a_gpu": lab.findings.on_gpu}
    notes = [text for text in run.notes() if "does not fit into memory" in text]
    small = {("greedy", setting): cell for (model, setting), cell in single.items() if model == "one"}
    difference = largest_difference(small, cells_of(run.db))
    figures["notes"] = notes
    figures["largest_logit_difference"] = difference
    figures["largest_logit"] = max(float(np.abs(cell.outputs).max()) for cell in small.values())
    figures["ok"] = bool(notes) and difference <= HALVED
    return figures


def released(lab: Lab, name: str, memory: Memory | None = None) -> None:
    """Returns whether the card's memory is as it was before the part, or before a measurement."""
    memory = memory or lab.memory_before
    if memory is None:
        lab.findings.not_run(name, "needs a GPU")
        return
    with lab.findings.trying(name) as figures:
        left = memory.left()
        figures.update(mib_before=memory.before / MIB, mib_more_after=left / MIB, ok=left <= RELEASED)


def killed(lab: Lab, single: Cells) -> None:
    """Kills the evaluation process of a slow run by SIGKILL in the middle."""
    memory = Memory(lab.findings.device) if lab.findings.on_gpu else None
    moment = time.monotonic()
    if memory is not None:
        memory.__enter__()
    with lab.findings.trying("sharing: killed worker") as figures:
        run = lab.start("killed", ["one"], ["plain", "noise"], sleep=lab.sizes.sleep)
        victim = first_worker(lab, run, batches=3)
        os.kill(victim, signal.SIGKILL)
        moment = time.monotonic()
        figures["run_seconds"] = lab.wait(run)
        cells = cells_of(run.db)
        expected = {key: single[key] for key in (("one", "photos-plain"), ("one", "photos-noise"))}
        difference = largest_difference(expected, cells)
        figures["notes"] = run.notes()
        figures["processes_that_loaded"] = len(lab.notes(run, "loaded"))
        figures["largest_logit_difference"] = difference
        figures["same_bits"] = same_bits(expected, cells)
        figures["ok"] = (
            len(cells) == 2
            and figures["processes_that_loaded"] == 2
            and any("died" in text for text in figures["notes"])
            and difference <= SAME
        )
    if memory is not None:
        memory.__exit__()
        lab.findings.add(
            "sharing: memory of a killed worker",
            mib_peak=memory.peak() / MIB,
            mib_least_after_it=memory.least_since(moment) / MIB,
        )
    released(lab, "sharing: memory after a killed worker", memory)


def first_worker(lab: Lab, run: Run, batches: int) -> int:
    """The process of a run that computes, once it has seen so many batches.

    Raises:
        RuntimeError: If the run ends before, or takes too long; it is killed then.
    """
    end = time.monotonic() + lab.findings.left / 2
    while not run.ended and time.monotonic() < end:
        for pid, lines in lab.notes(run, "seen").items():
            if len(lines) >= batches:
                return pid
        time.sleep(0.02)
    run.kill()
    raise RuntimeError(f"no process has computed {batches} batches")


def one_after_the_other(lab: Lab) -> None:
    """Two networks with much memory in one process: the second must not add to the first."""
    name = "sharing: one network after the other"
    if not lab.findings.on_gpu:
        lab.findings.not_run(name, "needs a GPU")
        return
    memory = Memory(lab.findings.device)
    with lab.findings.trying(name) as figures:
        run = lab.start("big", ["big", "bigger"], ["plain"])
        with memory:
            figures["run_seconds"] = lab.wait(run)
        of_one = lab.sizes.weights * 6  # bytes: float32 weights, and half as much while it computes
        reserved = [int(line) for lines in lab.notes(run, "loaded").values() for line in lines]
        figures["mib_of_one_network"] = of_one / MIB
        figures["mib_peak"] = memory.peak() / MIB
        figures["mib_reserved_before_each_is_loaded"] = [size / MIB for size in reserved]
        figures["ok"] = len(reserved) == 2 and max(reserved) <= RELEASED and memory.peak() < of_one + CONTEXT
    released(lab, "sharing: memory after two networks", memory)


if __name__ == "__main__":
    part(work)()
