"""A sweep over two languages and three tasks on the same images, against CLIP benchmark's own command line.

CLIP benchmark needs a folder of its own, next to the environment's torch and open_clip:

pip install --no-deps --target DIR clip-benchmark==1.6.2 'numpy<2.4' pycocoevalcap webdataset braceexpand requests
OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 python benchmarks/bench_clip_benchmark.py --peer DIR [--images 100]

ViT-B-32 with random weights on webdatasets that are written here from scikit-image's photos: zero-shot classification,
multi-label classification and retrieval with a caption for each image, each twice. Whole commands, imports included, in
float32, in one process without data workers; a new results store each time. CLIP benchmark needs a command of its own
for retrieval, and takes no language from a webdataset: it computes the same thing twice, which takes as long.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from paired import machine, seconds
from PIL import Image

from testbed.data.source import ImageSource
from testbed.extensions.exchange.webdataset_export import export

ROOT = Path(__file__).resolve().parent.parent
CLASSES = ["astronaut", "cat", "coffee", "rocket"]
TEMPLATES = ["a photo of a {c}", "a picture of a {c}", "an image of a {c}"]
SIDE = 256


class Crops(ImageSource):
    """Crops of photos, with targets of any kind."""

    def __init__(self, targets: Sequence[Any]) -> None:
        from skimage import data

        self.name = "crops"
        self.ids = [str(number) for number in range(len(targets))]
        self.targets = list(targets)
        self._photos = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]

    def image(self, position: int) -> Image.Image:
        """A crop, different for each position."""
        photo = self._photos[position % 4]
        generator = np.random.default_rng(position)
        top, left = (generator.integers(0, length - SIDE) for length in photo.shape[:2])
        return Image.fromarray(photo[top : top + SIDE, left : left + SIDE])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """Not needed to write them."""
        return [str(position) for position in positions]


def write(root: Path, images: int) -> None:
    """The three data sets, and what the second language needs."""
    export(Crops([n % 4 for n in range(images)]), root / "wds_things", "test", "classification", CLASSES, TEMPLATES)
    both = [sorted({n % 4, n // 4 % 4}) for n in range(images)]
    export(Crops(both), root / "wds_labels", "test", "multilabel", CLASSES, TEMPLATES)
    for language in ("", "_it"):
        captions = [[f"{language} {CLASSES[n % 4]}, number {n}"] for n in range(images)]
        export(Crops(captions), root / f"wds_captions{language}", "test", "retrieval")
    for name in ("things", "labels"):
        (root / f"wds_{name}" / "classnames.it.txt").write_text("astronauta\ngatto\ncaffè\nrazzo\n")
        templates = root / f"wds_{name}" / "zeroshot_classification_templates.it.txt"
        templates.write_text("una foto di {c}\nun'immagine di {c}\n{c}\n")


def call(words: Sequence[str], folder: Path, **variables: str) -> None:
    """Runs a command in a folder.

    Raises:
        click.ClickException: If it fails, with what it said.
    """
    done = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise click.ClickException(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


@click.command()
@click.option("--peer", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--images", default=100, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(peer: Path, images: int, repeats: int) -> None:
    """Prints seconds and ratios."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "data", images)

        def ours() -> None:
            (folder / "store.db").unlink(missing_ok=True)
            settings = ["wds/things", "wds/things.zeroshot.it", "wds/labels", "wds/labels.zeroshot.it"]
            settings += ["wds/captions", "wds/captions_it"]
            words = [sys.executable, str(ROOT / "eval.py"), "--models", "ViT-B-32,", "--random-weights"]
            words += ["--eval-settings", *settings, "--data-root", str(folder / "data"), "--db-url", "store.db"]
            call([*words, "--executor", "inline", "--workers", "0", "--batch-size", "64", "--json"], folder)

        def theirs() -> None:
            words = [sys.executable, "-m", "clip_benchmark.cli", "eval", "--pretrained_model", "ViT-B-32,"]
            words += ["--dataset_root", str(folder / "data" / "wds_{dataset_cleaned}"), "--output"]
            words += ["{dataset}_{language}.json", "--batch_size", "64", "--num_workers", "0", "--no_amp"]
            words += ["--language", "en", "it"]
            call([*words, "--dataset", "wds/things", "wds/labels"], folder, PYTHONPATH=str(peer))
            captions = ["--dataset", "wds/captions", "--task", "zeroshot_retrieval"]
            call([*words, *captions], folder, PYTHONPATH=str(peer))

        pairs = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
        found = [json.loads(file.read_text())["dataset"] for file in sorted(folder.glob("*.json"))]
    ratios = [other / mine for mine, other in pairs]
    for who, column in (("testbed", 0), ("clip-benchmark", 1)):
        click.echo(f"{who:15} {statistics.median(pair[column] for pair in pairs):8.2f} s")
    click.echo(
        f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {repeats} pairs of {images}"
        f" images); CLIP benchmark wrote {len(found)} results"
    )


if __name__ == "__main__":
    main()
