"""Runs on a device against runs on the CPU: stored outputs and metrics, data workers, batches, memory, failures."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from device_under_test import DEVICE, ON_GPU, sized
from PIL import Image

import testbed
from testbed.db.store import Store
from testbed.execution.progress import SilentProgress
from testbed.execution.report import Report
from testbed.execution.resources import visible_gpus
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs
from testbed.registry import registry
from testbed.runner.run import run

pytestmark = pytest.mark.gpu
real_gpu = pytest.mark.skipif(not ON_GPU, reason="shows something on a real GPU only")

ATOL = 1e-4
ZERO_SHOT_ATOL = 5e-4  # 100 times a cosine
GPUS: tuple[int, ...] | None = (0,) if ON_GPU else None
LIMIT = sized(96, 40)
SETTINGS = ["digits", "digits-rotated", "digits-c.gaussian_noise.3", "digits-c.gaussian_blur.5"]
PAIRS = [(model, setting) for model in ("digits-cnn", "digits-mlp", "digits-clip") for setting in SETTINGS]
PAIRS += [("digits-cnn", "folder/pictures")]

PLUGIN = """
import torch
from torch.nn import functional

from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3 * 32 * 32, 10)
        with torch.no_grad():
            self.layer.weight.copy_(torch.randn(10, 3 * 32 * 32, generator=torch.Generator().manual_seed(1)) / 50)
            self.layer.bias.zero_()

    def forward(self, images):
        return self.layer(images.flatten(1))


class Hungry(Plain):
    def forward(self, images):
        if len(images) > 8:
            torch.empty(len(images) << 45, dtype=torch.uint8, device=images.device)
        return super().forward(images)


class Asserting(Plain):
    def forward(self, images):
        places = torch.full((len(images),), 10**6, device=images.device)
        return super().forward(images) + functional.embedding(places, self.layer.weight)[:, :10]


for name, network in {"plain": Plain, "hungry": Hungry, "asserting": Asserting}.items():
    registry.add_model(Model(name, StandardTransform(32, 32), network, 64, num_classes=10))
"""


@dataclass
class Done:
    """A run that has ended."""

    db: Path
    report: Report
    notes: list[str] = field(default_factory=list)

    def status(self, model: str, setting: str) -> str:
        (found,) = [each.status for each in self.report.outcomes if (each.model, each.setting) == (model, setting)]
        return found

    def outputs(self, model: str, setting: str) -> np.ndarray:
        with Store.open(str(self.db)) as store:
            (found,) = store.evaluations.find([model], [setting])
            return np.array(store.outputs.read(found.id, "logits"))

    def metrics(self, model: str, setting: str) -> dict[str, float]:
        with Store.open(str(self.db)) as store:
            results = store.results.find([model], [setting])
            return {each.metric: each.value for each in results if each.slice == "overall" and each.value is not None}

    def devices(self) -> set[str]:
        with Store.open(str(self.db)) as store:
            return {device for each in store.evaluations.find() for device in each.environment["devices"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A data root with a folder of images, three of each of ten classes."""
    root = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    for label in range(10):
        folder = root / "pictures" / str(label)
        folder.mkdir(parents=True)
        for number in range(3):
            size = (40 + 4 * label, 36 + 8 * number, 3)
            Image.fromarray(generator.integers(0, 256, size, dtype=np.uint8)).save(folder / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def go(data, tmp_path_factory):
    """A function that runs models on settings in processes, in a store of its own."""
    registry.load()
    before = registry.models.snapshot(), registry.eval_settings.snapshot()
    folder = tmp_path_factory.mktemp("runs")
    plugin = folder / "networks.py"
    plugin.write_text(PLUGIN)
    registry.load((str(plugin),))
    numbers = itertools.count()

    def call(pairs: Sequence[tuple[str, str]], **options: Any) -> Done:
        progress = SilentProgress()
        db = folder / f"{next(numbers)}.db"
        given = {"limit": LIMIT, "data_workers": 0, "gpus": GPUS, "plugins": (str(plugin),), **options}
        inputs = Inputs.from_environment().but(data_root=data)
        models, settings = (list(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
        report = run(registry, RunOptions(db_url=str(db), inputs=inputs, **given), models, settings, progress, pairs)
        return Done(db, report, progress.notes)

    yield call
    registry.models.restore(before[0])
    registry.eval_settings.restore(before[1])


def on_cpu(go, pairs, **options):
    return go(pairs, gpus=None, cpu_processes=1, **options)


def same(found: Done, expected: Done, compare) -> None:
    for model, setting in PAIRS:
        assert found.status(model, setting) == expected.status(model, setting) == "complete"
        atol = ZERO_SHOT_ATOL if model == "digits-clip" else ATOL
        compare(found.outputs(model, setting), expected.outputs(model, setting), atol)
        metrics, others = found.metrics(model, setting), expected.metrics(model, setting)
        assert metrics.keys() == others.keys()
        for name, value in others.items():
            assert metrics[name] == pytest.approx(value, abs=1e-3 if "top" not in name else 1e-9), (model, setting)


@pytest.fixture(scope="module")
def reference(go) -> Done:
    return on_cpu(go, PAIRS, random_weights=True)


@real_gpu
def test_the_gpus_that_torch_sees_are_found():
    assert visible_gpus() == torch.cuda.device_count() > 0


@pytest.mark.parametrize(
    "options",
    sized(
        [{}, {"data_workers": 2, "batch_size": 7}, {"batch_size": 1}],
        [{"data_workers": 2, "batch_size": 7}],
    ),
    ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()) or "default",
)
def test_outputs_and_metrics_are_those_of_the_cpu(options, go, reference, compare):
    found = go(PAIRS, random_weights=True, **options)
    assert found.report.ok, found.report.outcomes
    same(found, reference, compare)
    assert found.devices() == ({"cuda:0"} if ON_GPU else {"cpu"})


# Memory and failures ----------------------------------------------------------------------------------------------


def test_a_batch_that_does_not_fit_into_memory_is_halved(go, compare):
    found = go([("hungry", "digits"), ("plain", "digits")], batch_size=32)
    assert found.report.ok, found.report.outcomes
    halved = [note for note in found.notes if "does not fit into memory" in note]
    assert len(halved) == 2, found.notes  # 32 → 16 → 8
    assert all(note.startswith("hungry") for note in halved), halved
    compare(found.outputs("hungry", "digits"), found.outputs("plain", "digits"), ATOL)


@real_gpu
@pytest.mark.parametrize("workers", [0, 2])
def test_an_assertion_on_the_device_fails_its_own_cells_alone(workers, go):
    """Afterwards the process cannot use the GPU any more; another one computes the rest."""
    settings = ["digits", "digits-rotated"]
    pairs = [(model, setting) for model in ("asserting", "hungry", "plain") for setting in settings]
    found = go(pairs, data_workers=workers, batch_size=16)
    for setting in settings:
        assert found.status("asserting", setting) == "failed"
        assert found.status("hungry", setting) == found.status("plain", setting) == "complete"
    reasons = [each.reason for each in found.report.outcomes if each.model == "asserting"]
    assert all("CUDA error" in reason for reason in reasons), reasons


CONTEXT = """
import ctypes, sys
import testbed

if __name__ == "__main__":
    found = testbed.evaluate("digits-cnn", "digits", db=sys.argv[1], limit=32, random_weights=True, progress=False,
                             gpus=(0,) if sys.argv[2] == "cuda" else ())
    print("statuses", *sorted(set(found.frame.status)))
    if sys.argv[2] == "cuda":
        import torch
        print("bytes", torch.cuda.memory_allocated())
        driver, flags, active = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint(), ctypes.c_int(-1)
        driver.cuInit(0)
        assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0
        print("context", active.value)
"""


def test_the_program_itself_takes_no_memory_of_the_gpu(tmp_path):
    """Workers do, and they have ended; the one that started them never has a context of its own."""
    (tmp_path / "program.py").write_text(CONTEXT)
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "p.db"), DEVICE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, env=os.environ)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert lines == ["statuses complete", *(["bytes 0", "context 0"] if ON_GPU else [])]


# Other ways to run, and other tasks ---------------------------------------------------------------------------------


def test_a_run_in_this_process_is_the_same(go, reference, compare):
    same(go(PAIRS, random_weights=True, executor="inline"), reference, compare)


def test_evaluate_uses_the_device(reference, data, tmp_path, compare):
    found = testbed.evaluate(
        "digits-cnn", data / "pictures", db=tmp_path / "e.db", gpus=GPUS or (), limit=LIMIT, random_weights=True,
        channels_last=True, progress=False,
    )  # fmt: skip
    assert set(found.frame.status) == {"complete"}
    with Store.open(str(tmp_path / "e.db")) as store:
        (evaluation,) = store.evaluations.find()
        compare(store.outputs.read(evaluation.id, "logits"), reference.outputs("digits-cnn", "folder/pictures"), ATOL)


@pytest.mark.parametrize("dtype", sized(["bfloat16", "float16"], ["bfloat16"]))
def test_lower_precision_is_stored_and_near(dtype, go, reference, compare):
    pairs = [("digits-cnn", "digits"), ("digits-mlp", "digits")]
    found = go(pairs, random_weights=True, dtype=dtype)
    assert found.report.ok, found.report.outcomes
    for pair in pairs:
        expected = reference.outputs(*pair)
        compare(found.outputs(*pair).astype(np.float32), expected, 0.06 * float(np.ptp(expected)))


# Other tasks, with the metrics whose values may differ, and by how much.
TASKS = {
    ("digits-cnn", "digits-pgd.linf.eps0.1"): 2.01 / LIMIT,
    ("digits-clip", "digits.linear_probe"): 0.03,
    ("digits-clip", "digits.linear_probe.lbfgs"): 0.03,
    ("digits-clip", "digits-captions"): 0.11,
    ("digits-clip", "digits-selection"): 2.01 / LIMIT,
}


def test_attacks_probes_retrieval_and_selection_score_alike(go):
    """All at once. A sample or two may fall on the other side of an edge."""
    pairs = sized(list(TASKS), [*TASKS][-2:])
    found, expected = go(pairs, random_weights=True), on_cpu(go, pairs, random_weights=True)
    assert found.report.ok, found.report.outcomes
    for pair in pairs:
        metrics, others = found.metrics(*pair), expected.metrics(*pair)
        assert metrics.keys() == others.keys()
        rates = [name for name in others if "top" in name or "recall" in name or name.startswith("acc")]
        assert rates, others
        for name in rates:
            assert metrics[name] == pytest.approx(others[name], abs=TASKS[pair]), (pair, name)
