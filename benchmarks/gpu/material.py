"""Shared by the parts that measure speed: images, bare loops, and testbed runs whose progress is timed."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from findings import Findings
from PIL import Image

from testbed.corruptions import frost_pictures
from testbed.data.language.prompts import TEMPLATE_FILES
from testbed.execution.progress import SilentProgress
from testbed.execution.report import Report
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs
from testbed.registry import registry
from testbed.runner.run import run

PHOTOS, COPIES = 2000, 16  # different JPEGs, and how often each is in the large folder
WIDTH, HEIGHT = 500, 375
CLASSES = 1000  # as many as the networks have
SMALL, LARGE = "folder/photos", "folder/many"  # testbed's names of the two folders
SKIPPED = 0.15  # share of a run's images before its steady state
CORES = len(os.sched_getaffinity(0))
LONGEST_RUN = 60.0  # seconds that one testbed run may take


def fits(findings: Findings, name: str, needed: float) -> bool:
    """Returns whether a measurement fits into the remaining time; if it does not, that is a finding."""
    left = findings.left
    if left < needed:
        findings.not_run(name, f"{left:.0f} s were left, and it needs about {needed:.0f} s")
    return left >= needed


class TooLongError(Exception):
    """A measurement took too long. A TimeoutError would be handled as an OSError by the code that it interrupts."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises `TooLongError` in a block that takes longer, and every 15 s after that. For the main thread only."""

    def stop(number: int, frame: object) -> None:
        raise TooLongError(f"stopped after {seconds:.0f} s")

    usual = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, seconds), 15)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)


# Images ---------------------------------------------------------------------------------------------------------------


@dataclass
class Material:
    """A data root with two image folders and frost pictures, which are made up.

    Attributes:
        root: The data root. It also has the stores and the cache folder of the runs.
        photos: The number of different images.
        size: The number of images in the large folder.
    """

    root: Path
    photos: int
    size: int
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def many(self) -> Path:
        """The large folder."""
        return self.root / "many"

    @property
    def inputs(self) -> Inputs:
        """testbed's inputs: this data root, and nothing of the user's."""
        return Inputs(data_root=str(self.root))

    def store(self) -> str:
        """The path of a store that does not exist yet, so that no run reuses outputs of another."""
        return str(self.root / f"{next(self.numbers)}.db")


@contextlib.contextmanager
def prepared(tiny: bool, copies: int = COPIES) -> Iterator[Material]:
    """Makes the images in a temporary folder, with testbed's cache folder; ``tiny`` makes 16 small ones."""
    with tempfile.TemporaryDirectory(prefix="testbed-gpu-", ignore_cleanup_errors=True) as place:
        root = Path(place)
        _use_cache(root / "cache")
        made = Material(root, 16, 32) if tiny else Material(root, PHOTOS, PHOTOS * copies)
        size, folder = (80, 64) if tiny else (WIDTH, HEIGHT), root / "photos"
        for index in range(CLASSES):
            (folder / f"class{index:03d}").mkdir(parents=True)
        with ThreadPoolExecutor(CORES) as threads:
            list(threads.map(partial(_write_photo, folder, _originals(), size), range(made.photos)))
        _link(folder, made.many, made.size // made.photos)
        for path in (folder, made.many):
            (path / TEMPLATE_FILES[0]).write_text("a photo of a {c}.\n")
        _write_frost(root / frost_pictures.FOLDER)
        yield made


def _use_cache(folder: Path) -> None:
    """Has testbed use a cache folder that shares only the lists of names with the usual one."""
    folder.mkdir()
    if "TESTBED_CACHE" in os.environ:
        names = Path(os.environ["TESTBED_CACHE"], "names").resolve()
        names.mkdir(parents=True, exist_ok=True)
        (folder / "names").symlink_to(names)
    os.environ["TESTBED_CACHE"] = str(folder)


def _originals() -> list[Image.Image]:
    """scikit-image's photos; an empty list without scikit-image."""
    try:
        from skimage import data

        return [Image.fromarray(picture()) for picture in (data.astronaut, data.coffee, data.rocket, data.chelsea)]
    except Exception:  # a photo may need a download
        return []


def _write_photo(folder: Path, originals: Sequence[Image.Image], size: tuple[int, int], index: int) -> None:
    generator = np.random.default_rng(index)
    if originals:
        picture = originals[index % len(originals)]
        left, top = (int(generator.integers(0, length // 4)) for length in picture.size)
        made = picture.crop((left, top, left + picture.width * 3 // 4, top + picture.height * 3 // 4)).resize(size)
    else:
        made = _smooth(generator, size)
    made.save(folder / f"class{index % CLASSES:03d}" / f"{index:05d}.jpg", quality=90)


def _smooth(generator: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    """Random noise of three scales, whose JPEG is about as large as that of a photo."""
    layers = []
    for scale, weight in ((64, 0.6), (12, 0.3), (2, 0.1)):
        noise = generator.integers(0, 256, (size[1] // scale + 2, size[0] // scale + 2, 3), dtype=np.uint8)
        layers.append(weight * np.asarray(Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC), np.float32))
    return Image.fromarray(np.sum(layers, axis=0).clip(0, 255).astype(np.uint8))


def _link(folder: Path, many: Path, copies: int) -> None:
    """Fills the large folder with hard links, or copies where the file system has none."""
    for entry in list(folder.iterdir()):
        (many / entry.name).mkdir(parents=True)
    for path in sorted(folder.glob("*/*.jpg")):
        place = many / path.parent.name
        for number in range(copies):
            try:
                os.link(path, place / f"{number:03d}-{path.name}")
            except OSError:
                shutil.copy(path, place / f"{number:03d}-{path.name}")


def _write_frost(folder: Path) -> None:
    folder.mkdir()
    for index, name in enumerate(frost_pictures.NAMES):
        _smooth(np.random.default_rng(index), (640, 480)).save(folder / name)


# Bare loops -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Precision:
    """The options for running a network: fields of `RunOptions`; ``dtype`` is float32, tf32, bfloat16 or float16."""

    dtype: str = "float32"
    channels_last: bool = False
    compile: bool = False

    def __str__(self) -> str:
        return self.dtype + ", channels last" * self.channels_last + ", compiled" * self.compile

    @contextlib.contextmanager
    def active(self, device: str) -> Iterator[None]:
        """Sets TensorFloat-32 and autocast as a user would."""
        matmul, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
        before = matmul.allow_tf32, convolutions.allow_tf32
        matmul.allow_tf32 = convolutions.allow_tf32 = self.dtype == "tf32"
        try:
            if self.dtype in ("float32", "tf32"):
                yield
            else:
                with torch.autocast(torch.device(device).type, dtype=getattr(torch, self.dtype)):
                    yield
        finally:
            matmul.allow_tf32, convolutions.allow_tf32 = before


def forward_rate(model: str, precision: Precision, device: str, seconds: float = 1.0) -> float:
    """Images per second of a bare loop: normalization and network, on images that are already on the device.

    The architecture, the image size and the batch size are those of testbed's model of that name.
    """
    try:
        return _forward_rate(model, precision, device, seconds)
    finally:
        torch.cuda.empty_cache()  # does nothing where no GPU was used


def _forward_rate(model: str, precision: Precision, device: str, seconds: float) -> float:
    definition = registry.get_model(model)
    with torch.device(device):
        made = definition.make_random_network(0)
    network = (made[0] if isinstance(made, tuple) else made).eval().to(device)
    shape = definition.transform(Image.new("RGB", (WIDTH, HEIGHT))).shape
    images = torch.rand(definition.batch_size(False) if device != "cpu" else 4, *shape, device=device)
    if precision.channels_last:
        network, images = network.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    call: Any = network.encode_image if isinstance(made, tuple) else network
    call = torch.compile(call) if precision.compile else call
    mean = torch.tensor(definition.normalization.mean, device=device).view(3, 1, 1)
    std = torch.tensor(definition.normalization.std, device=device).view(3, 1, 1)
    with torch.inference_mode(), precision.active(device):
        return len(images) / seconds_each(lambda: call((images - mean) / std), device, seconds)


def seconds_each(call: Callable[[], Any], device: str, seconds: float, warm_up: int = 3) -> float:
    """The seconds of one call, on average over some seconds, after a few calls to warm up."""

    def spent(repeats: int) -> float:
        began = time.perf_counter()
        for _ in range(repeats):
            call()
        if device.startswith("cuda"):
            torch.cuda.synchronize(device)
        return time.perf_counter() - began

    spent(warm_up if device != "cpu" else 1)
    repeats = max(1, math.ceil(seconds / spent(1)))
    return spent(repeats) / repeats


# testbed --------------------------------------------------------------------------------------------------------------


class ProgressRecorder(SilentProgress):
    """Records when images were reported: on a GPU when it was given them, at most a batch ahead of their outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.perf_counter()
        self.first_ended = math.inf
        self.reports: list[tuple[float, float]] = []

    def advance(self, pass_id: int, images: float) -> None:
        """Records a number of images."""
        if images:
            self.reports.append((time.perf_counter(), images))

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Records when the first cell had its result."""
        self.first_ended = min(self.first_ended, time.perf_counter())


@dataclass
class Timing:
    """A testbed run with its times.

    Attributes:
        rate: Images per second in the steady state; NaN if too few reports came.
        start_seconds: From the call to the first images.
        seconds: The whole run.
        steady_from, steady_to: When the steady state began and ended, by ``time.perf_counter``.
        first_ended: When the first cell had its result.
        report: testbed's own report.
    """

    rate: float
    start_seconds: float
    seconds: float
    steady_from: float
    steady_to: float
    first_ended: float
    report: Report


def timed(progress: ProgressRecorder, seconds: float, report: Report, skip: float) -> Timing:
    """Computes the steady rate: the images after the first report past ``skip`` images, over the time since then."""
    times, counts = np.array([at for at, _ in progress.reports]), np.cumsum([each for _, each in progress.reports])
    first = min(int(np.searchsorted(counts, skip)), len(counts) - 1)
    began, ended = float(times[first]), float(times[-1])
    rate = float(counts[-1] - counts[first]) / (ended - began) if ended > began else math.nan
    return Timing(rate, float(times[0]) - progress.began, seconds, began, ended, progress.first_ended, report)


def run_testbed(
    findings: Findings,
    images: Material,
    model: str,
    settings: Sequence[str],
    limit: int,
    skip: float | None = None,
    **options: Any,
) -> Timing:
    """Runs a model with random weights by testbed, in a worker process by default, and times its progress.

    Args:
        findings: The part, for its device and its time.
        images: The images.
        model: The model.
        settings: The settings.
        limit: Images of each setting.
        skip: Images before the steady state; default 15 %.
        **options: Further fields of `RunOptions`.

    Raises:
        RuntimeError: If a cell failed.
        TooLongError: If it took too long.
    """
    device = {"gpus": (int(findings.device.partition(":")[2] or 0),)} if findings.on_gpu else {"cpu_processes": 1}
    given = {"db_url": images.store(), "random_weights": True, "limit": limit, "inputs": images.inputs}
    chosen = RunOptions(**{**given, **device, **options})
    progress = ProgressRecorder()
    with at_most(min(LONGEST_RUN, findings.left - 2)):
        report = run(registry, chosen, [model], list(settings), progress)
    seconds = time.perf_counter() - progress.began
    ended = [
        f"{outcome.setting}: {outcome.status} {outcome.reason}"
        for outcome in report.outcomes
        if outcome.status != "complete"
    ]
    if ended or not report.ok or not progress.reports:
        raise RuntimeError("; ".join([*ended[:3], *progress.notes[-3:]]))
    return timed(progress, seconds, report, SKIPPED * limit if skip is None else skip)


def stages(report: Report) -> dict[str, float]:
    """The seconds of all workers in each stage of a profiled run, the longest first."""
    spent: Counter[str] = sum((times.seconds for times in report.times.values()), Counter())
    return {name: round(seconds, 3) for name, seconds in spent.most_common()}
