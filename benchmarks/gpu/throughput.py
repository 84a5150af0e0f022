"""Images per second of testbed against the two limits that no program can beat: bare forward passes, and decoding.

    python benchmarks/gpu/throughput.py --device cuda:0 --seconds 180 --out throughput.json

Also the 19 corruptions on the device, and a pass of 96 settings. Networks have random weights.
"""

from __future__ import annotations

import math
import shutil
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import material
import torch
from findings import Findings, part
from material import LARGE, SMALL, Precision, at_most, fits, run_testbed
from torchvision import datasets, transforms

from testbed.corruptions import IMAGENET_C, SEVERITIES, Corruption
from testbed.inputs import using
from testbed.registry import registry

BATCH = 64  # of the plain loop that decodes, and of the corruptions
TINY_IMAGES = 8
STEADY = 4.0  # seconds that a testbed run lasts after its start, about
BY_FORWARD, BY_DECODING = 0.95, 0.9  # targets, by what limits the plain loop
PASS_TARGET = 0.7
SLOWEST = 5  # corruptions that are also measured at severity 5
CACHE = 10**9  # bytes of decoded images
PASS_IMAGES, FEW_PASS_IMAGES = 192, 128  # the second where time is short
START = 15.0  # seconds that the start of a testbed run takes, before one was measured
VIT_L = "ViT-L-14,openai"
FLOAT32, TF32, BFLOAT16 = Precision(), Precision("tf32"), Precision("bfloat16")
CHANNELS_LAST = Precision("bfloat16", channels_last=True)
COMPILED = Precision("bfloat16", compile=True)
BOTH = Precision("bfloat16", channels_last=True, compile=True)
COMPILE_SECONDS = 60.0  # that compiling takes, in the bare loop and in testbed together

FIRST = (("resnet50", FLOAT32), ("vit_b_16", FLOAT32))
NEXT = ((VIT_L, FLOAT32), ("convnext_base", FLOAT32), ("vit_b_16", BFLOAT16), ("resnet50", BFLOAT16), (VIT_L, BFLOAT16))
LAST = (
    *((model, TF32) for model in ("resnet50", "vit_b_16", VIT_L, "convnext_base")),
    *(("resnet50", precision) for precision in (CHANNELS_LAST, COMPILED, BOTH)),
)
TINY_FIRST, TINY_LAST = (("resnet18", FLOAT32),), (("resnet18", TF32),)


@dataclass
class State:
    """The part as it goes on.

    Attributes:
        decode: Images per second that the best plain loop decodes; NaN before it is measured.
        forward: Model and precision → images per second of the bare loop.
        overhead: The seconds of a testbed run beside its steady state, as last measured.
    """

    findings: Findings
    images: material.Material
    decode: float = math.nan
    forward: dict[tuple[str, Precision], float] = field(default_factory=dict)
    overhead: float = START

    def bare(self, model: str, precision: Precision) -> float:
        """Images per second of the bare loop, measured once."""
        key = model, precision
        if key not in self.forward:
            seconds = 0.1 if self.findings.tiny else 1.0
            self.forward[key] = material.forward_rate(model, precision, self.findings.device, seconds)
        return self.forward[key]

    def options(self, precision: Precision) -> dict[str, Any]:
        """Options of testbed: how networks are run."""
        chosen: dict[str, Any] = dict(vars(precision))
        if self.findings.tiny:
            chosen |= {"batch_size": 4}
        if not self.findings.on_gpu:  # a worker process would take seconds to start
            chosen |= {"executor": "inline", "data_workers": 0}
        return chosen


def work(findings: Findings) -> None:
    """Measures images per second of testbed against bare loops."""
    began = time.perf_counter()
    with material.prepared(findings.tiny) as images:
        seconds, jpeg = time.perf_counter() - began, next(images.many.glob("*/*.jpg")).stat().st_size
        shared = shutil.disk_usage("/dev/shm").total  # in which data workers of torch hand over their batches
        findings.add("material", seconds=round(seconds, 2), photos=images.photos, jpeg_bytes=jpeg, shared_memory=shared)
        with findings.trying("names of models are listed, once for each version of a library"), at_most(60):
            registry.load()
            for name in ("resnet18",) if findings.tiny else ("resnet50", VIT_L):
                registry.get_model(name)
        _measure(State(findings, images))


def _measure(state: State) -> None:
    findings = state.findings
    measure_decoding(state)
    for model, precision in TINY_FIRST if findings.tiny else FIRST:
        measure(state, model, precision)
    measure_corruptions(state)
    model, cached = ("resnet18", FLOAT32) if findings.tiny else ("resnet50", BFLOAT16)
    measure_pass(state, model)
    for name, precision in () if findings.tiny else NEXT:
        measure(state, name, precision)
    measure_cached(state, model, cached)
    for name, precision in TINY_LAST if findings.tiny else LAST:
        measure(state, name, precision)


# Decoding -------------------------------------------------------------------------------------------------------------


def measure_decoding(state: State) -> None:
    """The plain loop that decodes with all cores, and moves images to the device."""
    workers = 1 if state.findings.tiny else material.CORES
    name = f"plain loop, decoding with {workers} workers"
    if fits(state.findings, name, 10):
        with state.findings.trying(name) as figures, at_most(40):
            state.decode = _decoded_rate(state, workers)
            figures["images_per_second"] = round(state.decode, 1)


def _decoded_rate(state: State, workers: int) -> float:
    """Images per second, between whole rounds of the workers: each hands over a batch at about the same time."""
    findings = state.findings
    steps = [transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()]
    loader: Any = torch.utils.data.DataLoader(
        datasets.ImageFolder(str(state.images.many), transforms.Compose(steps), allow_empty=findings.tiny),
        batch_size=4 if findings.tiny else BATCH,
        num_workers=workers,
        pin_memory=findings.on_gpu,
        timeout=30,
        multiprocessing_context="fork",
    )
    warm_up = 2 if findings.tiny else workers * math.ceil(10 / workers)
    began, images = 0.0, 0
    for index, (batch, _) in enumerate(islice(loader, len(loader) - 1)):  # the last batch is smaller
        batch.to(findings.device, non_blocking=True)
        if index < warm_up:
            began = time.perf_counter()
            continue
        images += len(batch)
        if (index - warm_up + 1) % workers == 0:
            ended, done = time.perf_counter(), images
            if ended - began > STEADY:
                break
    return done / (ended - began)


# testbed against both limits ------------------------------------------------------------------------------------------


def measure(state: State, model: str, precision: Precision) -> None:
    """Compares testbed with the bare forward pass and with decoding."""
    findings = state.findings
    name = f"{model}, {precision}"
    if precision.dtype == "tf32" and not findings.on_gpu:
        findings.not_run(name, "needs a GPU")
        return
    needed = state.overhead + STEADY + 3 + COMPILE_SECONDS * precision.compile
    if not findings.tiny and not fits(findings, name, needed):
        return
    with findings.trying(name) as figures:
        with at_most(COMPILE_SECONDS):
            forward = state.bare(model, precision)
        by_decoding = state.decode < forward  # not if decoding could not be measured
        bound = state.decode if by_decoding else forward
        figures.update(forward=round(forward, 1), decode=round(state.decode, 1))
        limit, skip = _amount(state, model, bound, by_decoding)
        ran = run_testbed(findings, state.images, model, [LARGE], limit, skip, **state.options(precision))
        state.overhead = max(5.0, ran.seconds - (ran.steady_to - ran.steady_from))
        ratio, target = ran.rate / bound, BY_DECODING if by_decoding else BY_FORWARD
        figures.update(
            images=limit, **_testbed(ran), ratio=round(ratio, 3), bound="decode" if by_decoding else "forward"
        )
        figures.update(target=target, met=ratio >= target)


def _testbed(ran: material.Timed) -> dict[str, float]:
    """The figures of a run of testbed."""
    seconds = {"start_seconds": round(ran.start_seconds, 2), "run_seconds": round(ran.seconds, 2)}
    return {"testbed": round(ran.rate, 1), **seconds}


def _amount(state: State, model: str, rate: float, by_decoding: bool) -> tuple[int, float]:
    """The number of images for some seconds of steady state, and the number before that.

    Each data worker hands over a batch at about the same time, so decoding is measured over whole rounds of them.
    """
    if state.findings.tiny:
        return TINY_IMAGES, 4
    batch = registry.get_model(model).batch_size(adversarial=False)
    if by_decoding:
        together = batch * material.CORES
        limit = min((math.ceil(STEADY * rate / together) + 1) * together, state.images.size)
        return limit, min(together, limit // 2)
    batches = math.ceil(
        max(1000, STEADY * rate / (1 - material.SKIPPED)) / batch
    )  # whole ones: they take the same time
    limit = min(batches * batch, state.images.size)
    return limit, max(material.SKIPPED * limit, batch + 1)


def measure_cached(state: State, model: str, precision: Precision) -> None:
    """testbed with images that were decoded before: the large folder has each image several times."""
    findings, name = state.findings, f"{model}, {precision}, decoded images cached"
    if not findings.tiny and not fits(findings, name, 2 * state.overhead + STEADY):
        return
    with findings.trying(name) as figures:
        options = {**state.options(precision), "decoded_cache": CACHE}
        forward, filled = state.bare(model, precision), 4 if findings.tiny else state.images.photos
        run_testbed(findings, state.images, model, [SMALL], filled, 0, **options)  # fills the cache
        limit, skip = _amount(state, model, forward, by_decoding=True)
        ran = run_testbed(findings, state.images, model, [LARGE], limit, skip, **options)
        figures.update(images=limit, forward=round(forward, 1), **_testbed(ran), ratio=round(ran.rate / forward, 3))


# Corruptions ----------------------------------------------------------------------------------------------------------


def measure_corruptions(state: State) -> None:
    """The 19 corruptions at severity 3, and the slowest ones at 5."""
    findings = state.findings
    number, size = (2, 64) if findings.tiny else (BATCH, 224)
    images = torch.rand(number, 3, size, size, device=findings.device)
    spent: dict[str, float] = {}
    with using(state.images.inputs), torch.no_grad():
        for name in IMAGENET_C:
            _measure_corruption(findings, name, 3, images, spent)
        for name in sorted(spent, key=lambda each: -spent[each])[:SLOWEST]:
            _measure_corruption(findings, name, 5, images, {})
    findings.add(
        "19 corruptions, severity 3, together",
        measured=len(spent),
        ms_per_batch=round(1000 * sum(spent.values()), 2),
        images_per_second=round(number * len(spent) / sum(spent.values()), 1) if spent else None,
    )


def _measure_corruption(
    findings: Findings, name: str, severity: int, images: torch.Tensor, spent: dict[str, float]
) -> None:
    title, seeds = f"{name}, severity {severity}", list(range(len(images)))
    if not fits(findings, title, 2):
        return
    with findings.trying(title) as figures, at_most(20):
        corrupt = partial(Corruption(name, severity), images, seeds)
        spent[name] = material.seconds_each(corrupt, findings.device, 0.01 if findings.tiny else 0.25, warm_up=1)
        figures["ms_per_batch"] = round(1000 * spent[name], 3)
        figures["images_per_second"] = round(len(images) / spent[name], 1)
        if findings.on_gpu:
            figures["synchronisations"] = _synchronisations(corrupt)


def _synchronisations(call: Any) -> int:
    """Counts the synchronizations of a call with the GPU."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return sum("synchroniz" in str(warning.message) for warning in found)


# A pass of 96 settings ------------------------------------------------------------------------------------------------


def _settings(tiny: bool) -> list[str]:
    """The clean images, and the corruptions at all severities."""
    names = ("fog", "frost") if tiny else IMAGENET_C
    severities = (3,) if tiny else SEVERITIES
    return [SMALL, *(f"{SMALL}+imagenet-c.{name}.{severity}" for name in names for severity in severities)]


def measure_pass(state: State, model: str) -> None:
    """A pass of 96 settings against its forward passes alone, and against a plain loop for each setting."""
    findings, settings = state.findings, _settings(state.findings.tiny)
    name = f"{len(settings)} settings in one pass, {model}, float32"
    forward = state.forward.get((model, FLOAT32))
    if forward is None:
        findings.not_run(name, "the bare forward pass was not measured")
        return

    def needed(number: int) -> float:
        return state.overhead + 5 + number * len(settings) / forward / 0.6

    number = PASS_IMAGES if needed(PASS_IMAGES) < findings.left - 10 else FEW_PASS_IMAGES
    number = TINY_IMAGES if findings.tiny else number
    if not findings.tiny and not fits(findings, name, needed(number)):
        return
    with findings.trying(name) as figures:
        skip = 2 * number / len(settings)  # two settings of the first batch, in which libraries are set up
        ran = run_testbed(findings, state.images, model, settings, number, skip, **state.options(FLOAT32))
        alone, plain = len(settings) * number / forward, len(settings) * number / min(forward, state.decode)
        # Images are reported before a GPU has computed them; the first result comes after all of them are stored.
        steady = (ran.first_ended - ran.steady_from) * number / (number - skip)
        figures.update(images=number, **_testbed(ran), testbed_seconds=round(steady, 2))
        figures.update(forward_seconds=round(alone, 2), plain_loops_seconds=round(plain, 2))
        figures["ratio_launched"] = round(alone * ran.rate / number, 3)  # up to when the GPU was given the last work
        figures.update(ratio=round(alone / steady, 3), over_plain_loops=round(plain / steady, 3))
        figures.update(target=PASS_TARGET, met=alone / steady >= PASS_TARGET)
        state.overhead = max(5.0, ran.seconds - steady)
    _profile_pass(state, model, settings, figures.get("testbed_seconds"))


def _profile_pass(state: State, model: str, settings: list[str], whole: float | None) -> None:
    """The seconds of each stage, from a shorter run."""
    findings, name = state.findings, f"{len(settings)} settings in one pass, by stage"
    number = 4 if findings.tiny else 64
    if not findings.tiny and not fits(findings, name, state.overhead + (whole or 30.0) / 2):
        return
    with findings.trying(name) as figures:
        options = {**state.options(FLOAT32), "profile": True}
        ran = run_testbed(findings, state.images, model, settings, number, 0, **options)
        figures.update(images=number, stages=material.stages(ran.report))


if __name__ == "__main__":
    part(work)()
