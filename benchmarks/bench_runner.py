"""The runner against the loop that one would write without it: read, decode, resize, run, keep the logits.

    python benchmarks/bench_runner.py [--images 400] [--repeats 5] [--network vit_b_32] [--one]

Both read the same image folder with torchvision's transforms and run the same untrained network in this process,
without data workers. Ours also plans, looks up the data's digests, stores logits with checksums in SQLite, and scores.
"""

from __future__ import annotations

import os
import tempfile
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from paired import compare, machine
from PIL import Image
from skimage import data
from torchvision import datasets, models, transforms

from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.registry import registry
from testbed.runner.run import run

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = 32
NETWORKS = {"resnet18": "ResNet-18", "vit_b_32": "ViT-B/32"}
CACHE = 10**9  # bytes; the first call, which is not counted, fills it
BRIGHTNESSES = (1.0, 0.9, 0.8, 0.7, 0.6)


def photos(root: Path, number: int) -> Path:
    """An image folder of JPEGs of 375 × 500 pixels, cut from scikit-image's photos."""
    pictures = [data.astronaut(), data.coffee(), data.rocket(), data.chelsea()]
    generator = np.random.default_rng(0)
    for index in range(number):
        picture = pictures[index % len(pictures)]
        top = int(generator.integers(0, max(1, picture.shape[0] - 300)))
        crop = Image.fromarray(picture[top : top + 375]).resize((500, 375))
        folder = root / f"class{index % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        crop.save(folder / f"{index:05d}.jpg", quality=90)
    return root


def network(kind: str = "resnet18") -> Any:
    """An untrained network of torchvision, always the same one."""
    torch.manual_seed(0)
    return models.get_model(kind, num_classes=10).eval()


def bare(folder: Path, out: Path, brightnesses: tuple[float, ...], kind: str) -> None:
    """A loop for each setting."""
    model = network(kind)
    transform = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor()])
    normalize = transforms.Normalize(MEAN, STD)
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(str(folder), transform), batch_size=BATCH)
    for brightness in brightnesses:
        logits, targets = [], []
        with torch.inference_mode():
            for images, labels in loader:
                logits.append(model(normalize(images * brightness)))
                targets.append(labels)
        whole = torch.cat(logits)
        assert 0 <= (whole.argmax(1) == torch.cat(targets)).float().mean() <= 1
        np.save(out / f"{brightness}.npy", whole.numpy())


def darken(images: torch.Tensor, brightness: float) -> torch.Tensor:
    """All pixels times a number."""
    return images * brightness


def register(folder: Path, number: int, kind: str = "resnet18") -> list[str]:
    """The same network and settings as definitions."""
    registry.add_model(
        Model(
            name=f"bench-{kind}",
            transform=StandardTransform(256, 224),
            normalization=StandardNormalization(MEAN, STD),
            classifier_loader=partial(network, kind),
            eval_batch_size=BATCH,
        )
    )
    names = []
    for brightness in BRIGHTNESSES:
        name = f"bench-{brightness}"
        setting = EvalSetting(
            name=name,
            dataset=StandardDataset(path=str(folder)),
            size=number,
            perturbation_fn_gpu=lambda images, brightness=brightness: darken(images, brightness),
        )
        registry.add_eval_setting(setting)
        names.append(name)
    return names


@click.command()
@click.option("--images", default=400, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--network", "kind", type=click.Choice(sorted(NETWORKS)), default="resnet18", show_default=True)
@click.option("--one", is_flag=True, help="One setting only.")
def main(images: int, repeats: int, kind: str, one: bool) -> None:
    """Prints the ratios for one setting, for five that share a pass, and for one whose images are decoded already."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        os.environ["TESTBED_CACHE"] = str(root / "cache")
        folder = photos(root / "photos", images)
        names = register(folder, images, kind)
        numbers = count()

        def ours(several: int, decoded_cache: int = 0) -> None:
            url = str(root / f"{next(numbers)}.db")
            options = RunOptions(db_url=url, executor="inline", data_workers=0, decoded_cache=decoded_cache)
            report = run(registry, options, [f"bench-{kind}"], names[:several], SilentProgress())
            assert report.ok, report.outcomes

        def compared(several: int, more: str = "", decoded_cache: int = 0) -> None:
            what = f"{images} photos, {NETWORKS[kind]}, {several} setting{'s' if several > 1 else ''}{more}"
            compare(
                what,
                lambda: ours(several, decoded_cache),
                lambda: bare(folder, root, BRIGHTNESSES[:several], kind),
                repeats,
            )

        compared(1)
        if not one:
            compared(len(names))
            compared(1, ", decoded images cached", CACHE)


if __name__ == "__main__":
    main()
