"""The blind test of `testbed explain` on a checkpoint, through the commands that a user types.

    python benchmarks/explain_checkpoints.py make FOLDER   # timm, torchvision, torch and PIL alone
    python benchmarks/explain_checkpoints.py ask FOLDER    # `testbed run`, then `testbed explain` for each number

`make` trains a small network of timm on 32 pixels and saves it as timm's trainer does (plain and averaged weights, and
each epoch beside it); its classes are in the natural order of the folders. It then evaluates the file under other
protocols and writes the values to numbers.json. It imports nothing of testbed. `--network`, `--images`, `--clutter`,
`--epochs` and `--seed` make another one on other images. `ask` prints a Markdown table and the rates:
benchmarks/explain-blind.md.
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

TRAINING, SEED = 8_000, 3
FILE, EPOCH, NAME = "final.pth.tar", "epoch_{}.pth", "blind"
RESIZE, CROP = 36, 32
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALF, ZERO, ONE = (0.5,) * 3, (0.0,) * 3, (1.0,) * 3
RANDOM_NUMBERS, APART = 20, 0.6  # that no protocol gives; points from each value that one gives
INTERVAL = 1.96

# The numbers, by plain programs --------------------------------------------------------------------------------------


def make(folder: Path, architecture: str, images: int, clutter: float, epochs: int, seed: int) -> None:
    """Writes images, the checkpoint, and the values under other protocols."""
    import blind_world as world
    import numpy as np
    import torch
    from PIL import Image

    torch.manual_seed(seed)
    world.write_images(folder, images, clutter, seed - SEED)
    larger, _, by_text = world.training_images(TRAINING, clutter, seed - SEED)
    natural = torch.tensor([int(name) for name in world.FOLDERS])[by_text]  # folder "10" is class 10
    network = _network(architecture)
    averaged = _trained(network, larger, natural, folder, epochs)
    torch.save({"state_dict": network.state_dict(), "state_dict_ema": averaged.state_dict()}, folder / FILE)

    files = sorted((folder / "test").glob("*/*.jpg"), key=lambda file: (file.parent.name, file.name))
    pictures = []
    for file in files:
        try:
            pictures.append(Image.open(file).convert("RGB"))
        except OSError:  # it counts as wrong
            pictures.append(None)
    targets = np.array([int(file.parent.name) for file in files])
    earlier = _network(architecture)
    earlier.load_state_dict(torch.load(folder / EPOCH.format(epochs // 2 + 1), weights_only=True))
    values = dict(_numbers(averaged.eval(), network.eval(), earlier.eval(), pictures, targets))
    beside = folder.resolve() / EPOCH.format(epochs // 2 + 1)
    values[f"weights: timm/{architecture},{beside}"] = values.pop(EPOCH)
    told = {"network": architecture, "images": len(files), "stored": values.pop("stored"), "variants": values}
    (folder / "numbers.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def _network(architecture: str) -> Any:
    """A network of timm for these classes."""
    import blind_world as world
    import timm

    return timm.create_model(architecture, num_classes=world.CLASSES)


def _trained(network: Any, images: Any, targets: Any, folder: Path, epochs: int) -> Any:
    """Trains the network; returns its averaged copy, as timm's ModelEmaV2 keeps it, and writes each epoch."""
    import timm
    import torch

    averaged = timm.utils.ModelEmaV2(network, decay=0.98)
    batch = 100
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=0.02)
    steps = epochs * (len(images) // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for epoch in range(epochs):
        network.train()
        order = torch.randperm(len(images))
        for start in range(0, len(images) - batch + 1, batch):
            chosen = order[start : start + batch]
            top, left = (int(torch.randint(RESIZE - CROP + 1, (1,))) for _ in range(2))
            inputs = _normalized(images[chosen][:, :, top : top + CROP, left : left + CROP], MEAN, STD)
            loss = torch.nn.functional.cross_entropy(network(inputs), targets[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            averaged.update(network)
        torch.save(network.state_dict(), folder / EPOCH.format(epoch + 1))
    return averaged.module


def _normalized(images: Any, mean: Any, std: Any) -> Any:
    import torch

    return (images.float() / 255 - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)


def _numbers(averaged: Any, plain: Any, earlier: Any, pictures: list[Any], targets: Any) -> Iterator[tuple[str, float]]:
    """The values in percent: ``stored``, and those of each variant by the words of `testbed explain`."""
    import numpy as np
    import torch
    from PIL import Image
    from sklearn.metrics import f1_score
    from torchvision.transforms import InterpolationMode as Mode
    from torchvision.transforms import functional as of

    modes = {entry: getattr(Mode, entry.upper()) for entry in ("nearest", "bilinear", "bicubic", "lanczos")}

    def inputs(
        resize: Any = RESIZE, crop: int = CROP, mode: str = "bilinear", smooth: bool = True, quality: int = 0
    ) -> Any:
        made = []
        for picture in pictures if not quality else [compressed(image, quality) for image in pictures]:
            if picture is None:
                made.append(torch.zeros(3, crop, crop, dtype=torch.uint8))
            elif smooth:
                smaller = picture if resize is None else of.resize(picture, resize, modes[mode])
                made.append(of.pil_to_tensor(of.center_crop(smaller, crop)))
            else:
                made.append(
                    of.center_crop(of.resize(of.pil_to_tensor(picture), resize, modes[mode], antialias=False), crop)
                )
        return torch.stack(made)

    def compressed(picture: Any, quality: int) -> Any:
        held = io.BytesIO()
        if picture is None:
            return None
        picture.save(held, "JPEG", quality=quality)
        return Image.open(held).convert("RGB")

    def logits(images: Any, mean: Any = MEAN, std: Any = STD, network: Any = averaged, scale: float = 1.0) -> Any:
        with torch.no_grad():
            parts = [network(_normalized(part.float() * scale, mean, std)) for part in images.split(250)]
        return torch.cat(parts).float().numpy()

    def share(found: Any, wanted: Any = targets, k: int = 1) -> float:
        right = (np.argsort(-found, axis=1, kind="stable")[:, :k] == wanted[:, None]).any(axis=1)
        right[[place for place, picture in enumerate(pictures) if picture is None]] = False
        return 100 * float(right.mean())

    own = inputs()
    base = logits(own)
    yield "stored", share(base)
    yield "metric: top-5", share(base, k=5)
    readable = np.array([picture is not None for picture in pictures])
    right = (base.argmax(1) == targets) & readable
    yield "metric: mean per class", 100 * float(np.mean([right[targets == c].mean() for c in np.unique(targets)]))
    for mode in ("nearest", "bicubic", "lanczos"):
        yield f"interpolation: {mode}", share(logits(inputs(mode=mode)))
    yield "antialiasing: off", share(logits(inputs(smooth=False)))
    yield "resizing: squashed to the input's shape", share(logits(inputs(resize=(CROP, CROP))))
    yield "resizing: none, only cropped", share(logits(inputs(resize=None)))
    for fraction in (1.0, 0.95, 0.9, 0.875, 0.8):
        if int(CROP / fraction) != RESIZE:
            yield f"crop: {fraction:g} of the resized image", share(logits(inputs(resize=int(CROP / fraction))))
    for crop in (24, 37, 41, 46):
        side = round(RESIZE * crop / CROP)
        known = {24: 27, 37: 41, 41: 46, 46: 51}[crop]  # testbed's first way to round
        name = f"image size: {crop} pixels" + (f", resized to {side}" if side != known else "")
        yield name, share(logits(inputs(side, crop)))
    for name, mean, std in (
        ("CLIP's", CLIP_MEAN, CLIP_STD),
        ("0.5 and 0.5", HALF, HALF),
        ("none (inputs in [0, 1])", ZERO, ONE),
    ):
        yield f"mean and standard deviation: {name}", share(logits(own, mean, std))
    yield "channel order: blue first", share(logits(own.flip(1)))
    yield "range of inputs: 0 to 255 in place of 0 to 1", share(logits(own, scale=255.0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield "precision: bfloat16", share(logits(own))
    yield "weights in the file: state_dict (not averaged)", share(logits(own, network=plain))
    by_text = np.argsort(np.array(sorted(range(len(np.unique(targets))), key=str)))
    yield "class order: folders 0, 1, 10, 2 sorted as text", share(base, by_text[targets])
    yield EPOCH, share(logits(own, network=earlier))
    mirrored = base + logits(own.flip(-1))
    yield "test-time augmentation: the mean of an image and its mirror image", share(mirrored)
    for quality in (50, 20):
        yield f"JPEG compression: quality {quality}", share(logits(inputs(quality=quality)))
    yield "metric: 100 − top-1", 100 - share(base)
    said = np.where(readable, base.argmax(1), -1)
    macro = f1_score(targets, said, labels=np.unique(targets), average="macro")
    yield "another metric: macro_f1", 100 * float(macro)
    for by, word in ((1, "high"), (-1, "low")):
        yield f"class order: labels one too {word}, in the model's order", share(base, targets + by)
    kept = targets < 10
    among = np.where(readable, base[:, :10].argmax(1), -1)
    subset = "candidate classes: the first 10 classes, in the model's order"
    yield f"{subset}, all compete", 100 * float(right[kept].mean())
    yield f"{subset}, only these compete", 100 * float((among == targets)[kept].mean())
    each = np.concatenate([np.flatnonzero(targets == c)[:50] for c in np.unique(targets)])
    yield "first samples of classes: the first 50 of each class", 100 * float(right[each].mean())
    for size in (500, 1000, 2000):
        yield f"first samples: the first {size:,}", 100 * float(right[:size].mean())


# The questions, by testbed -----------------------------------------------------------------------------------------


def testbed(*words: str) -> str:
    """Runs a command of testbed in this process, so that what a network gave is computed once for all questions."""
    from testbed.cli import program

    said, sys.argv = io.StringIO(), ["testbed", *words]
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        contextvars.copy_context().run(program.main)
    return said.getvalue()


def ask(folder: Path, only: str, evaluations: float | None, say: Callable[[str], None]) -> None:
    """Prints the search's answer for each number, and the rates."""
    import numpy as np
    from explain_blind import Shared

    from testbed.extensions.explain import bench

    bench.ImageRunner = Shared
    os.environ |= {"TESTBED_DB": f"sqlite:///{folder.resolve() / 'store.db'}"}
    os.environ |= {"TESTBED_CACHE": str(folder.resolve() / "cache")}
    os.chdir(folder)
    folder = Path.cwd()
    known = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    model = f"timm/{known['network']},{folder / FILE}"
    given = ["--image-size", f"{RESIZE}", f"{CROP}", "--mean", *map(str, MEAN), "--std", *map(str, STD)]
    given += ["--interpolation", "bilinear", "--class-order", "natural"]
    testbed("run", model, "--on", "test", *given, "--as", NAME)
    shown = json.loads(testbed("show", NAME, "folder/test", "--json"))
    value = next(
        100 * metric["value"] for metric in shown if metric["metric"] == "top1" and metric["slice"] == "overall"
    )
    say(f"stored {value:.2f}; by timm and torchvision alone {known['stored']:.2f}; {known['images']:,} images\n")
    width = 100 * INTERVAL * np.sqrt(value / 100 * (1 - value / 100) / known["images"])
    say("| truth | published | differs | verdict of the truth | what else gives it | explained | passes, % | seconds |")
    say("|---|---|---|---|---|---|---|---|")
    found = []
    samples = [] if evaluations is None else ["--samples", str(int(evaluations * known["images"]))]
    asked = partial(_asked, say, samples, width, value, known["images"])
    for truth, published in known["variants"].items():
        if only in truth and abs(published - value) >= 0.005:
            found.append((truth, abs(published - value) > width, *asked(truth, published)))
    for number in _random(known, value):
        if only in "none":
            found.append(("", True, *asked("", number)))
    singles = [question for question in found if question[0]]
    differing = [question for question in singles if question[1]]
    for name, group in (("all", singles), ("of values that differ", differing)):
        verdicts = [question[2] for question in group]
        say(
            f"\n{name}: {len(group)} asked, {verdicts.count('gives it')} found, {verdicts.count('excluded')} excluded,"
            f" {verdicts.count('undecided')} undecided, {verdicts.count('not tried')} not tried"
        )
    random = [question for question in found if not question[0]]
    say(
        f"\n{sum(question[3] for question in random)} of {len(random)} numbers that no protocol gives said to be"
        " explained"
    )


def _random(known: dict[str, Any], value: float) -> list[float]:
    import numpy as np

    random = np.random.default_rng(SEED)
    taken = [value, *known["variants"].values()]
    drawn = (round(float(value + shift), 2) for shift in random.uniform(-30, 4, 500))
    return [entry for entry in drawn if min(abs(entry - one) for one in taken) > APART][:RANDOM_NUMBERS]


def _asked(
    say: Callable[[str], None],
    samples: list[str],
    width: float,
    value: float,
    images: int,
    truth: str,
    published: float,
) -> tuple[str, bool]:
    """The verdict of the truth, and whether the search explains the number; prints a row."""
    began = time.monotonic()
    given = ("--data-root", ".", "--published", f"{published:.2f}%", "--json", *samples)
    answer = json.loads(testbed("explain", NAME, "folder/test", *given))
    verdicts = {
        " + ".join(f"{part['axis']}: {part['name']}" for part in variant["variants"]): variant["verdict"]
        for variant in answer["variants"]
    }
    gives = [name for name, verdict in verdicts.items() if verdict == "gives it"]
    verdict = verdicts.get(truth, "not tried") if truth else ""
    explained = bool(answer["explained"])
    differs = "yes" if abs(published - value) > width else "no"
    passes = 100 * answer["forward_passes"] / images
    others = "; ".join(entry for entry in gives if entry != truth)
    say(
        f"| {truth or 'none'} | {published:.2f} | {differs} | {verdict} | {others} | {'yes' if explained else 'no'} |"
        f" {passes:.0f} | {time.monotonic() - began:.0f} |"
    )
    return verdict, explained


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["make", "ask"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="words of the truths that are asked; 'none' for the random numbers")
    parser.add_argument("--evaluations", type=float, help="most passes, of an evaluation; default as the command")
    parser.add_argument("--network", default="test_resnet", help="of timm, for images of any size")
    parser.add_argument("--images", type=int, default=4_000)
    parser.add_argument("--clutter", type=float, default=0.8, help="how hard the images are: up to 1")
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    if options.step == "make":
        options.folder.mkdir(parents=True, exist_ok=True)
        make(options.folder, options.network, options.images, options.clutter, options.epochs, options.seed)
    else:
        ask(options.folder, options.only, options.evaluations, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
