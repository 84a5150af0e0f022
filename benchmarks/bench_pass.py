"""A pass of 96 settings: all of a run's time over that which goes into networks and corruptions.

    python benchmarks/bench_pass.py [--images 64] [--repeats 3] [--with-frost]

The clean images and the 19 corruptions of ImageNet-C at five severities, by one untrained ResNet-18, in this process;
without frost, which needs pictures, unless `--with-frost`. The bare time is what `--profile` counts as forward and
perturb.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import click
from bench_runner import photos, register
from paired import machine, tell

from testbed.corruptions import IMAGENET_C, SEVERITIES
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.registry import registry
from testbed.runner.run import run


def corrupted(folder: Path, number: int) -> list[str]:
    """The names of the settings."""
    registry.add_eval_setting(EvalSetting(name="bench-clean", dataset=StandardDataset(path=str(folder)), size=number))
    each = [f"{corruption}.{severity}" for corruption in IMAGENET_C for severity in SEVERITIES]
    return ["bench-clean", *(f"bench-clean+imagenet-c.{name}" for name in each)]


@click.command()
@click.option("--images", default=64, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--with-frost", is_flag=True)
def main(images: int, repeats: int, with_frost: bool) -> None:
    """Prints the ratio."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        os.environ["TESTBED_CACHE"] = str(root / "cache")
        folder = photos(root / "photos", images)
        register(folder, images)
        chosen = [name for name in corrupted(folder, images) if with_frost or "frost" not in name]
        pairs = []
        for number in range(repeats + 1):
            options = RunOptions(db_url=str(root / f"{number}.db"), executor="inline", data_workers=0, profile=True)
            began = time.perf_counter()
            report = run(registry, options, ["bench-resnet18"], chosen, SilentProgress())
            whole = time.perf_counter() - began
            assert report.ok, report.outcomes
            spent = [entry.seconds for entry in report.times.values()]
            pairs.append((whole, sum(entry["forward"] + entry["perturb"] for entry in spent)))
    tell(f"{images} photos, ResNet-18, {len(chosen)} settings", pairs[1:])


if __name__ == "__main__":
    main()
