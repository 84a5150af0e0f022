"""Numbers of the blind test of `testbed explain` on a checkpoint, by timm, torchvision, torch and PIL alone.

    python benchmarks/explain_checkpoints.py FOLDER [--images 50000 --sizes 2400 4000]
    python benchmarks/explain_asked.py FOLDER

Trains a small network of timm on 32 pixels and saves it as timm's trainer does (plain and averaged weights, and each
epoch beside it); its classes are in the natural order of the folders. Then runs the file on images under other
protocols, keeps the outputs (outputs.npz), and writes the values on each set to numbers.json. It imports nothing of
testbed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import blind_world as world
import numpy as np
import timm
import torch
from PIL import Image
from sklearn.metrics import f1_score
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms import functional as of

TRAINING, SEED = 8_000, 3
FILE, EPOCH, OUTPUTS = "final.pth.tar", "epoch_{}.pth", "outputs.npz"
OWN, PLAIN = "stored", "weights in the file: state_dict (not averaged)"
PART = 5_000  # images in memory at once
PRECISIONS = torch.bfloat16, torch.float16
RESIZE, CROP = 36, 32
SIZES = {24: (27,), 27: (31, 30), 37: (41, 42), 41: (46,), 46: (51, 52), 55: (62, 61)}  # crop → resized sides
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
HALF, ZERO, ONE = (0.5,) * 3, (0.0,) * 3, (1.0,) * 3


def make(
    folder: Path, architecture: str, images: int, clutter: float, epochs: int, seed: int, sizes: Sequence[int]
) -> None:
    """Writes images, the checkpoint, its outputs under other protocols, and their values."""
    if not (folder / "test").exists():
        world.write_images(folder, images, clutter, seed - SEED)
    networks = {OWN: _network(architecture), PLAIN: _network(architecture)}
    if not (folder / FILE).exists():
        torch.manual_seed(seed)
        larger, _, by_text = world.training_images(TRAINING, clutter, seed - SEED)
        natural = torch.tensor([int(name) for name in world.FOLDERS])[by_text]  # folder "10" is class 10
        averaged = _trained(networks[PLAIN], larger, natural, folder, epochs)
        torch.save({"state_dict": networks[PLAIN].state_dict(), "state_dict_ema": averaged.state_dict()}, folder / FILE)
    saved = torch.load(folder / FILE, weights_only=True)
    networks[OWN].load_state_dict(saved["state_dict_ema"])
    networks[PLAIN].load_state_dict(saved["state_dict"])
    for epoch in range(1, epochs + 1):
        file = folder.resolve() / EPOCH.format(epoch)
        name = f"weights: timm/{architecture},{file}"
        networks[name] = _network(architecture)
        networks[name].load_state_dict(torch.load(file, weights_only=True))
    files = sorted((folder / "test").glob("*/*.jpg"), key=lambda file: (file.parent.name, file.name))
    outputs = _recorded({name: network.eval() for name, network in networks.items()}, files)
    np.savez(folder / OUTPUTS, **outputs)
    _write_numbers(folder, architecture, files, outputs, [*sizes, len(files)])


def _recorded(networks: dict[str, Any], files: list[Path]) -> dict[str, Any]:
    """The outputs of all images, some thousands of which are in memory at once."""
    parts: dict[str, list[Any]] = {}
    for start in range(0, len(files), PART):
        for name, logits in _outputs(networks, files[start : start + PART]):
            parts.setdefault(name, []).append(logits)
    return {name: np.concatenate(logits) for name, logits in parts.items()}


def _write_numbers(
    folder: Path, architecture: str, files: list[Path], outputs: dict[str, Any], sizes: Sequence[int]
) -> None:
    """Writes the values of each size, and links the first images, which are random ones, to folders of their own."""
    targets = np.array([int(file.parent.name) for file in files])
    order = np.argsort([file.name for file in files])
    told: dict[str, Any] = {"network": architecture, "sizes": {}}
    distinct: list[str] = []  # the last epoch has the plain weights
    for name, logits in outputs.items():
        if not any(np.array_equal(logits, outputs[other], equal_nan=True) for other in distinct):
            distinct.append(name)
    for size in sizes:
        rows = np.sort(order[:size])
        values = dict(_values({name: outputs[name][rows] for name in distinct}, targets[rows]))
        told["sizes"][str(size)] = {"rows": rows.tolist(), "stored": values.pop(OWN), "variants": values}
        for row in rows:
            linked = folder / f"images-{size}" / files[row].parent.name / files[row].name
            linked.parent.mkdir(parents=True, exist_ok=True)
            if not linked.exists():
                os.link(files[row], linked)
    (folder / "numbers.json").write_text(json.dumps(told), encoding="utf-8")


def _network(architecture: str) -> Any:
    """A network of timm for these classes."""
    network = timm.create_model(architecture, num_classes=world.CLASSES)
    return network.to(memory_format=torch.channels_last)  # a third faster


def _trained(network: Any, images: Any, targets: Any, folder: Path, epochs: int) -> Any:
    """Trains the network; returns its averaged copy, as timm's ModelEmaV2 keeps it, and writes each epoch."""
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
    return (images.float() / 255 - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)


def _outputs(networks: dict[str, Any], files: list[Path]) -> Iterator[tuple[str, Any]]:
    """Logits of the images under each protocol, by the words of `testbed explain`; NaN for unreadable images.

    Args:
        networks: `OWN`, and others by their words.
        files: The images.
    """
    modes = {entry: getattr(Mode, entry.upper()) for entry in ("nearest", "bilinear", "bicubic", "lanczos")}
    averaged, pictures = networks[OWN], [_picture(file) for file in files]
    readable = [place for place, picture in enumerate(pictures) if picture is not None]
    pictures = [pictures[place] for place in readable]

    def inputs(
        resize: Any = RESIZE, crop: int = CROP, mode: str = "bilinear", smooth: bool = True, found: Any = pictures
    ) -> Any:
        made = []
        for picture in found:
            if smooth:
                smaller = picture if resize is None else of.resize(picture, resize, modes[mode])
                made.append(of.pil_to_tensor(of.center_crop(smaller, crop)))
            else:
                tensor = of.to_tensor(picture)
                smaller = of.resize(tensor, resize, modes[mode], antialias=False)
                made.append(of.center_crop(smaller, crop).clamp(0, 1) * 255)
        return torch.stack(made)

    def compressed(quality: int) -> list[Any]:
        made = []
        for picture in pictures:
            held = io.BytesIO()
            picture.save(held, "JPEG", quality=quality)
            made.append(Image.open(held).convert("RGB"))
        return made

    def fitted(picture: Any) -> Any:
        height, width = (max(1, round(side * CROP / max(picture.size))) for side in reversed(picture.size))
        return of.resize(picture, [height, width])

    def logits(images: Any, mean: Any = MEAN, std: Any = STD, network: Any = averaged, scale: float = 1.0) -> Any:
        with torch.inference_mode():
            parts = torch.cat([network(_normalized(part.float() * scale, mean, std)) for part in images.split(250)])
        every = torch.full((len(files), parts.shape[1]), torch.nan)
        every[readable] = parts.float()
        return every.numpy()

    own = inputs()
    yield OWN, logits(own)
    for mode in ("nearest", "bicubic", "lanczos"):
        yield f"interpolation: {mode}", logits(inputs(mode=mode))
    yield "antialiasing: off", logits(inputs(smooth=False))
    yield "resizing: squashed to the input's shape", logits(inputs(resize=(CROP, CROP)))
    yield "resizing: the longer side, the rest black", logits(inputs(None, found=[fitted(each) for each in pictures]))
    yield "resizing: none, only cropped", logits(inputs(resize=None))
    for fraction in (1.0, 0.95, 0.9, 0.875, 0.8):
        if int(CROP / fraction) != RESIZE:
            yield f"crop: {fraction:g} of the resized image", logits(inputs(resize=int(CROP / fraction)))
    for crop, sides in SIZES.items():
        for place, side in enumerate(sides):
            yield f"image size: {crop} pixels" + (f", resized to {side}" if place else ""), logits(inputs(side, crop))
    for name, mean, std in (
        ("CLIP's", CLIP_MEAN, CLIP_STD),
        ("0.5 and 0.5", HALF, HALF),
        ("none (inputs in [0, 1])", ZERO, ONE),
    ):
        yield f"mean and standard deviation: {name}", logits(own, mean, std)
    yield "channel order: blue first", logits(own.flip(1))
    yield "range of inputs: 0 to 255 in place of 0 to 1", logits(own, scale=255.0)
    for dtype in PRECISIONS:
        with torch.autocast("cpu", dtype=dtype):
            yield f"precision: {str(dtype).partition('.')[2]}", logits(own)
    for name, network in networks.items():
        if name != OWN:
            yield name, logits(own, network=network)
    mirrored = (logits(own) + logits(own.flip(-1))) / 2
    yield "test-time augmentation: the mean of an image and its mirror image", mirrored
    for quality in (90, 75, 50, 30, 20):
        yield f"JPEG compression: quality {quality}", logits(inputs(found=compressed(quality)))
    decoded = [decode_image(str(files[place]), ImageReadMode.RGB) for place in readable]
    yield "JPEG decoder: torchvision", logits(inputs(found=[of.to_pil_image(image) for image in decoded]))
    yield "JPEG decoder: pillow, reduced", logits(inputs(found=[_picture(files[place], 256) for place in readable]))


def _picture(file: Path, reduced: int = 0) -> Any:
    """An RGB image, which the decoder may reduce to a size; None if it cannot be read."""
    try:
        with Image.open(file) as image:
            if reduced:
                image.draft("RGB", (reduced, reduced))
            return image.convert("RGB")
    except OSError:
        return None


def _values(outputs: dict[str, Any], targets: Any) -> Iterator[tuple[str, float]]:
    """The values in percent: `OWN`, and those of each variant by the words of `testbed explain`."""

    def share(found: Any, wanted: Any = targets, k: int = 1) -> float:
        right = (np.argsort(-found, axis=1, kind="stable")[:, :k] == wanted[:, None]).any(axis=1)
        return 100 * float((right & readable).mean())

    base = outputs[OWN]
    readable = np.isfinite(base).all(axis=1)
    for name, logits in outputs.items():
        yield name, share(logits)
    yield "metric: top-5", share(base, k=5)
    right = (base.argmax(1) == targets) & readable
    yield "metric: mean per class", 100 * float(np.mean([right[targets == c].mean() for c in np.unique(targets)]))
    by_text = np.argsort(np.array(sorted(range(len(np.unique(targets))), key=str)))
    yield "class order: folders 0, 1, 10, 2 sorted as text", share(base, by_text[targets])
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


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--network", default="test_resnet", help="of timm, for images of any size")
    parser.add_argument("--images", type=int, default=4_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="also sets of this many of the images")
    parser.add_argument("--clutter", type=float, default=0.8, help="how hard the images are: up to 1")
    parser.add_argument("--epochs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.folder.mkdir(parents=True, exist_ok=True)
    make(options.folder, options.network, options.images, options.clutter, options.epochs, options.seed, options.sizes)


if __name__ == "__main__":
    main()
