"""Where testbed's time goes on a GPU, and how busy it keeps the GPU.

python benchmarks/gpu/profiled.py --device cuda:0 --seconds 40 --out profile.json
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import material
from findings import Findings, part
from material import LARGE, Precision, fits, run_testbed

from testbed.registry import registry

EVERY = 0.1  # seconds between two samples of the GPU's utilisation
RUN = 9.0  # seconds of a run, before one was measured
IMAGES, COPIES = 3072, 2  # images of a run, and how often the large folder has each photo
SKIPPED = IMAGES // 4  # images before the steady state: data workers hand over their first batches all at once
CASES = (("resnet50", Precision()), ("vit_b_16", Precision("bfloat16")))
TINY_CASES = (("resnet18", Precision()),)


def work(findings: Findings) -> None:
    """Measures the stages of a run, and the GPU's utilisation during another one."""
    longest = RUN
    with material.prepared(findings.tiny, COPIES) as images:
        with findings.trying("names of models are listed, once for each version of a library"), material.at_most(60):
            registry.load()
            registry.get_model("resnet18")
        for model, precision in TINY_CASES if findings.tiny else CASES:
            for measure in (profile, utilisation):
                began = time.perf_counter()
                measure(findings, images, model, precision, longest)
                longest = max(longest, time.perf_counter() - began)


def _options(findings: Findings, precision: Precision) -> dict[str, Any]:
    chosen = vars(precision) | {"data_workers": material.CORES}
    if findings.tiny:
        chosen |= {"batch_size": 4}
    return chosen if findings.on_gpu else chosen | {"executor": "inline", "data_workers": 0}


def profile(findings: Findings, images: material.Material, model: str, precision: Precision, needed: float) -> None:
    """The share of each stage in the time of the worker; the stages of data workers and of the writer are beside it."""
    name = f"{model}, {precision}, by stage"
    if not findings.tiny and not fits(findings, name, needed):
        return
    with findings.trying(name) as figures:
        number = 8 if findings.tiny else IMAGES
        options = {**_options(findings, precision), "profile": True}
        ran = run_testbed(findings, images, model, [LARGE], number, number / 4, **options)
        spent = material.stages(ran.report)
        own = {stage: seconds for stage, seconds in spent.items() if " in " not in stage}
        figures["images"] = number
        figures["images_per_second"] = round(ran.rate, 1)
        figures["shares"] = {stage: round(seconds / sum(own.values()), 3) for stage, seconds in own.items()}
        figures["stages"] = spent


def utilisation(findings: Findings, images: material.Material, model: str, precision: Precision, needed: float) -> None:
    """The GPU's utilisation in the steady state of a run."""
    name = f"{model}, {precision}, utilisation of the GPU"
    if not findings.on_gpu:
        findings.not_run(name, "needs a GPU")
        return
    if not fits(findings, name, needed):
        return
    with findings.trying(name) as figures:
        with sampled(int(findings.device.partition(":")[2] or 0)) as samples:
            ran = run_testbed(findings, images, model, [LARGE], IMAGES, SKIPPED, **_options(findings, precision))
        steady = [sample for sample in samples.found if ran.steady_from <= sample[0] <= ran.steady_to]
        figures.update(images=IMAGES, images_per_second=round(ran.rate, 1), source=samples.source, samples=len(steady))
        if steady:
            figures["percent"] = round(sum(percent for _, percent, _ in steady) / len(steady), 1)
            figures["least_percent"] = min(percent for _, percent, _ in steady)
            figures["most_mib"] = round(max(mib for _, _, mib in steady))


# Sampling -------------------------------------------------------------------------------------------------------------


@dataclass
class Samples:
    """Samples of a GPU: time on the clock of ``time.perf_counter``, utilisation in percent, used memory in MiB."""

    source: str
    found: list[tuple[float, float, float]] = field(default_factory=list)


@contextmanager
def sampled(gpu: int) -> Iterator[Samples]:
    """Samples a GPU in a thread: by NVML where pynvml is installed, else by nvidia-smi."""
    read = _nvml(gpu)
    with _by_smi(gpu) if read is None else _by_nvml(read) as samples:
        yield samples


def _nvml(gpu: int) -> Callable[[], tuple[float, float]] | None:
    """Reads utilisation and memory by NVML; None where that is not possible."""
    try:
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByIndex(gpu)

        def read() -> tuple[float, float]:
            used = pynvml.nvmlDeviceGetMemoryInfo(handle).used
            return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu), used / 2**20

        read()
    except Exception:  # not installed, or the driver does not answer
        return None
    return read


@contextmanager
def _by_nvml(read: Callable[[], tuple[float, float]]) -> Iterator[Samples]:
    samples, over = Samples("NVML"), threading.Event()

    def sample() -> None:
        while not over.wait(EVERY):
            samples.found.append((time.perf_counter(), *read()))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join(2)


@contextmanager
def _by_smi(gpu: int) -> Iterator[Samples]:
    query = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
    process = subprocess.Popen(
        ["nvidia-smi", f"--id={gpu}", *query, f"-lms={EVERY * 1000:.0f}"], stdout=subprocess.PIPE, text=True
    )
    samples = Samples("nvidia-smi")

    def read() -> None:
        for line in process.stdout or ():
            try:
                percent, mib = map(float, line.split(","))
            except ValueError:  # "[N/A]"
                continue
            samples.found.append((time.perf_counter(), percent, mib))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        process.kill()
        process.wait()
        thread.join(2)


if __name__ == "__main__":
    part(work)()
