"""Measures work from stored outputs, without a model: a derived cell over running it, and scoring over reading.

    python benchmarks/bench_derived.py [--images 400] [--samples 50000] [--classes 1000] [--repeats 3]

The derived cell is of some of the images. The scores are those of `testbed rescore`.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

import click
import numpy as np
from bench_runner import photos, register
from paired import compare, machine

from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, SampleInfo
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.registry import registry
from testbed.runner.run import run
from testbed.scoring.finish import compute_scores

CHUNK = 2048


def derived(root: Path, images: int, repeats: int) -> None:
    """A cell that takes some rows of the logits of another one."""
    folder = photos(root / "photos", images)
    parent = register(folder, images)[0]
    data = StandardDataset(path=str(folder))
    numbers = count()

    def evaluate(url: str) -> None:
        number = next(numbers)
        name = f"bench-part-{number}"  # another cell each time
        perturbation = registry.get_eval_setting(parent).perturbation_fn_gpu
        registry.add_eval_setting(
            EvalSetting(
                name=name,
                dataset=data,
                perturbation_fn_gpu=perturbation,
                size=images - number,
                idx_subsample_list=range(number, images),
                parent_eval_setting=parent,
            )
        )
        options = RunOptions(db_url=url, executor="inline", data_workers=0)
        report = run(registry, options, ["bench-resnet18"], [name], SilentProgress())
        assert report.ok, report.outcomes

    stored = str(root / "parent.db")
    options = RunOptions(db_url=stored, executor="inline", data_workers=0)
    assert run(registry, options, ["bench-resnet18"], [parent], SilentProgress()).ok
    compare(
        f"{images} photos, ResNet-18, a derived cell",
        lambda: evaluate(stored),
        lambda: evaluate(str(root / f"{next(numbers)}.db")),
        repeats,
    )


def scored(root: Path, samples: int, classes: int, repeats: int) -> None:
    """Scores and metrics of stored logits, reading included."""
    generator = np.random.default_rng(0)
    registry.add_eval_setting(
        EvalSetting(name="bench-scored", dataset=StandardDataset(path=str(root)), size=samples, num_classes=classes)
    )
    infos = [SampleInfo(f"{index:05d}", f"{index:032x}", int(index % classes)) for index in range(samples)]
    with Store.create(str(root / "scored.db"), "") as store:
        dataset = store.datasets.ensure(DatasetInfo("bench", "bench", infos))
        evaluation = store.evaluations.begin(CellRecord("net", "bench-scored", "bench", size=samples), dataset, {}, {})
        for start in range(0, samples, CHUNK):
            part = generator.standard_normal((min(CHUNK, samples - start), classes)).astype(np.float32)
            store.outputs.append([Chunk(evaluation.id, "logits", start, part)])
        store.evaluations.complete(evaluation.id, [], [])
        compare(
            f"{samples:,} × {classes:,} logits scored",
            lambda: compute_scores(store, registry, evaluation.id),
            lambda: store.outputs.read(evaluation.id, "logits"),
            repeats,
        )


@click.command()
@click.option("--images", default=400, show_default=True)
@click.option("--samples", default=50_000, show_default=True)
@click.option("--classes", default=1000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(images: int, samples: int, classes: int, repeats: int) -> None:
    """Prints the ratios."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        os.environ["TESTBED_CACHE"] = str(root / "cache")
        derived(root, images, repeats)
        scored(root, samples, classes, repeats)


if __name__ == "__main__":
    main()
