"""The memory of the process that plans a run and scores: how much more for ten times the samples.

    python benchmarks/bench_memory.py [--samples 20000]

A network of one layer on images of 8 × 8 pixels, computed by a process of its own. Prints the peak of the run's own
process for a tenth of the samples and for all, and the bytes for each sample more.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import numpy as np
from paired import machine
from PIL import Image

PLUGIN = """
import torch
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 20))

transform = StandardTransform(8, 8)
registry.add_model(Model(name="tiny", transform=transform, classifier_loader=network, eval_batch_size=256))
"""
RUN = """
import resource, sys
from testbed.cli.eval import main
sys.argv[0] = "eval.py"
try:
    main()
except SystemExit:
    print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def images(folder: Path, number: int) -> Path:
    """A folder of as many JPEGs of 8 × 8 pixels, in 20 classes."""
    generator = np.random.default_rng(0)
    for index in range(number):
        place = folder / f"n{index % 20:08d}"
        place.mkdir(parents=True, exist_ok=True)
        pixels = generator.integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"ILSVRC2012_val_{index:08d}.JPEG")
    return folder


def peak(root: Path, folder: Path) -> int:
    """The most memory that the run's process had, in bytes."""
    words = [sys.executable, "-c", RUN, "--plugin", str(root / "plugin.py"), "--models", "tiny"]
    words += ["--eval-settings", str(folder), "--cpu-processes", "1", "--workers", "0"]
    words += ["--db-url", str(root / f"{folder.name}.db")]
    environment = {**os.environ, "TESTBED_CACHE": str(root / "cache"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, check=True, capture_output=True, text=True)
    return int(done.stdout.rpartition("peak")[2])


@click.command()
@click.option("--samples", default=20_000, show_default=True)
def main(samples: int) -> None:
    """Prints both peaks and their difference."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "plugin.py").write_text(PLUGIN, encoding="utf-8")
        few = samples // 10
        peaks = [peak(root, images(root / f"of-{number}", number)) for number in (few, samples)]
    click.echo(f"{few:,} samples: {peaks[0] / 1e6:.1f} MB; {samples:,} samples: {peaks[1] / 1e6:.1f} MB;")
    click.echo(f"{(peaks[1] - peaks[0]) / (samples - few):.0f} bytes for each sample more")


if __name__ == "__main__":
    main()
