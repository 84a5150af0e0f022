"""Two evaluation processes of one thread over one: whole runs, their start included.

    python benchmarks/bench_processes.py [--images 1000] [--repeats 3]

The second line is the same for a loop without testbed, on half of the photos in each of two processes: what the machine
gives.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import click
from bench_runner import photos
from paired import compare, machine

BARE = """
import sys
from pathlib import Path
from bench_runner import bare
bare(*map(Path, sys.argv[1:]), (1.0,), "resnet18")
"""
EVAL = Path(__file__).resolve().parent.parent / "eval.py"
PLUGIN = """
import torch
from torchvision import models
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def network():
    torch.manual_seed(0)
    return models.resnet18(num_classes=10)

transform = StandardTransform(256, 224)
registry.add_model(Model(name="bench", transform=transform, classifier_loader=network, eval_batch_size=32))
"""


@click.command()
@click.option("--images", default=1000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(images: int, repeats: int) -> None:
    """Prints the ratio."""
    click.echo(machine())
    numbers = count()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        photos(root / "photos", images)
        (root / "plugin.py").write_text(PLUGIN, encoding="utf-8")
        environment = {**os.environ, "TESTBED_CACHE": str(root / "cache"), "OMP_NUM_THREADS": "1"}

        def evaluate(processes: int) -> None:
            words = [sys.executable, str(EVAL), "--models", "bench", "--plugin", str(root / "plugin.py")]
            words += ["--eval-settings", str(root / "photos"), "--cpu-processes", str(processes), "--workers", "0"]
            words += ["--db-url", str(root / f"{next(numbers)}.db")]
            done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
            assert "1 complete" in done.stdout, done.stdout

        def loop(number: int) -> None:
            started = []
            for index in range(number):
                (out := root / f"bare{index}").mkdir(exist_ok=True)
                words = [sys.executable, "-c", BARE, str(folders[number]), str(out)]
                started.append(subprocess.Popen(words, env=environment, cwd=EVAL.parent / "benchmarks"))
            assert [process.wait() for process in started] == number * [0]

        folders = {1: root / "photos", 2: photos(root / "half", images // 2)}
        compare(f"{images} photos, ResNet-18, 2 processes", lambda: evaluate(2), lambda: evaluate(1), repeats)
        compare(f"{images} photos, ResNet-18, 2 bare loops", lambda: loop(2), lambda: loop(1), repeats)


if __name__ == "__main__":
    main()
