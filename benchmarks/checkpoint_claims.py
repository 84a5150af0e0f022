"""Anchors, sequential intervals and the verdicts of `testbed watch` on checkpoints of real training runs.

    python benchmarks/checkpoint_claims.py make FOLDER     # timm, torchvision and torch alone
    python benchmarks/checkpoint_claims.py measure FOLDER  # testbed's estimators on what these checkpoints answered

`make` trains timm's small test networks, one after the other, with AdamW: the learning rate falls to a plateau, where
checkpoints go on changing but get no better. It writes which test images each checkpoint gets right; it imports nothing
of testbed. The other benchmarks of anchors and of ``--until`` use classifiers of scikit-learn and drawn answers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import numpy as np

ARCHITECTURES = (
    "test_resnet", "test_efficientnet", "test_vit", "test_convnext", "test_byobnet", "test_nfnet", "test_mambaout",
    "test_efficientnet_gn",
)  # fmt: skip
IMAGES, TRAINING, SIDE, BATCH = 4_000, 8_000, 32, 100
STEPS, PLATEAU, BETWEEN = 320, 24, 20  # optimizer steps; checkpoints on the plateau, and steps between two
RATE, LOW = 3e-3, 3e-4
WATCHED = 1_000  # samples that the watch sees; the others show how good the checkpoints are
SIZES, DRAWS = (30, 100, 300), 3
ORDERS, LOOKS = 200, (50, 100, 200, 400, 800, 1_600, 3_200)


def make(folder: Path) -> None:
    """Trains the networks; writes ``right.npz``: boolean [images, checkpoints], and the family of each checkpoint."""
    import blind_world as world
    import timm
    import torch
    from PIL import Image
    from torchvision.transforms import functional as of

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "test").exists():
        world.write_images(folder, IMAGES, 1.0)
    larger, _, targets = world.training_images(TRAINING, 1.0)
    place = {name: number for number, name in enumerate(world.FOLDERS)}
    inputs, wanted = [], []
    for file in sorted((folder / "test").glob("*/*.jpg")):
        try:
            picture = Image.open(file).convert("RGB")
        except OSError:
            continue
        inputs.append(of.pil_to_tensor(of.center_crop(of.resize(picture, 36), SIDE)))
        wanted.append(place[file.parent.name])
    test, truth = torch.stack(inputs).float() / 127.5 - 1, torch.tensor(wanted)
    columns, families = [], []
    for number, architecture in enumerate(ARCHITECTURES):
        torch.manual_seed(number)
        network = timm.create_model(architecture, num_classes=world.CLASSES, **_sized(architecture))
        began = time.monotonic()
        for right in _trained(network, larger, targets, test, truth):
            columns.append(right)
            families.append(architecture)
        print(f"{architecture}: {100 * columns[-1].mean():.1f} %, {time.monotonic() - began:.0f} s", flush=True)
        np.savez(folder / "right.npz", right=np.stack(columns, 1), family=np.array(families))


def _sized(architecture: str) -> dict[str, Any]:
    """A transformer is built for a size of images, and for small ones with small patches."""
    return {"img_size": SIDE, "patch_size": 4} if "vit" in architecture else {}


def _trained(network: Any, images: Any, targets: Any, test: Any, truth: Any) -> Any:
    """Trains; yields what each checkpoint of the plateau gets right."""
    import torch

    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.02)
    for step in range(STEPS + PLATEAU * BETWEEN):
        for group in optimizer.param_groups:
            group["lr"] = max(LOW, RATE * (1 - step / STEPS))
        network.train()
        chosen = torch.randint(len(images), (BATCH,))
        top, left = (int(torch.randint(images.shape[-1] - SIDE + 1, (1,))) for _ in range(2))
        inputs = images[chosen][:, :, top : top + SIDE, left : left + SIDE].float() / 127.5 - 1
        loss = torch.nn.functional.cross_entropy(network(inputs), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step >= STEPS and (step - STEPS) % BETWEEN == BETWEEN - 1:
            network.eval()
            with torch.no_grad():
                answers = torch.cat([network(part).argmax(1) for part in test.split(500)])
            yield (answers == truth).numpy()


def measure(folder: Path) -> None:
    """Prints the figures of docs/anchors.md, docs/fewer-samples.md and docs/watch.md."""
    known = np.load(folder / "right.npz")
    right, names = known["right"].astype(float), known["family"]
    family = np.unique(names, return_inverse=True)[1]
    shares = right.mean(axis=0)
    print(f"{right.shape[1]} checkpoints of {family.max() + 1} networks, {len(right):,} images,", end=" ")
    print(f"accuracies {shares.min():.3f} to {shares.max():.3f}")
    anchors(right, family)
    sequential(right)
    watch(right, names)


def anchors(right: Any, family: Any) -> None:
    """The error on networks that had no part in the choice, and how often the stated interval covers."""
    from testbed.metrics.estimates.held_out import BY_CHANCE, hold_out

    some = np.concatenate([np.flatnonzero(family == each)[::5] for each in np.unique(family)])
    right, family = right[:, some], family[some]
    for size in SIZES:
        held = hold_out(right, 1.0, None, family, size, draws=DRAWS)
        best, chance = held.best_errors(list(held.estimates)), held.errors(BY_CHANCE)
        print(
            f"anchors: {size} of {len(right):,}, {len(some)} checkpoints: {100 * best.mean_absolute:.2f} points;"
            f" as many random samples {100 * chance.mean_absolute:.2f}"
        )


def sequential(right: Any) -> None:
    """How often an interval that is looked at again and again leaves out the value of all samples, ever."""
    from testbed.metrics.inference.sequential import betting_interval

    random = np.random.default_rng(1)
    missed = 0
    for _ in range(ORDERS):
        answers = right[:, random.integers(right.shape[1])][random.permutation(len(right))]
        value = answers.mean()
        intervals = (betting_interval(answers[:look], len(answers)) for look in LOOKS)
        missed += any(not low - 1e-12 <= value <= high + 1e-12 for low, high in intervals)
    print(f"until: the 95 % interval left out the value at some look in {missed} of {ORDERS} random orders")


def watch(right: Any, names: Any) -> None:
    """Each checkpoint of a plateau against the best before it, as `testbed watch` compares them."""
    from testbed.metrics.inference.paired import compare

    seen, others = right[:WATCHED], right[WATCHED:]
    verdicts = {"better": 0, "worse": 0, "tied": 0}
    apart = []
    for name in dict.fromkeys(names):
        columns = np.flatnonzero(names == name)
        for place in range(1, len(columns)):
            before = columns[:place]
            best = before[np.argmax(seen[:, before].mean(axis=0))]
            found = compare(seen[:, columns[place]], seen[:, best])
            significant = found.p < 0.05 and found.difference != 0
            verdicts["better" if significant and found.difference > 0 else "worse" if significant else "tied"] += 1
            apart.append((found.difference, others[:, columns[place]].mean() - others[:, best].mean()))
    told, true = (100 * each for each in np.mean(apart, axis=0))
    total = sum(verdicts.values())
    print(f"watch: {total} checkpoints against the best before: {verdicts}", end="; ")
    print(f"on the {len(seen):,} samples watched {told:+.2f} points on average, on {len(others):,} others {true:+.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["make", "measure"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    (make if options.step == "make" else measure)(options.folder)
