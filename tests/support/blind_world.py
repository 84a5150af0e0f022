"""Images, a tiny CLIP and classifiers for the blind test of `testbed explain`; nothing of testbed is used here.

Sixteen classes: handwritten digits of scikit-learn, 0 to 7, reddish or bluish, blended into photos of scikit-image.
Sizes, colours, a fine raster and JPEG quality vary, so that most of what people do differently changes the accuracy.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

SIDE = 32
CLASSES = 16
# By class number: 2 · digit for the reddish one, 2 · digit + 1 for the bluish one.
NAMES = (
    "Zero in Red", "blue_Zero", "red-hot one", "one, an icy stroke", "two (crimson)", "ice-cold Two",
    "rusty_three", "navy three (deep blue)", "RED four", "azure_four", "five, scarlet numeral", "SEA-BLUE five",
    "dark-red six (VI)", "six_of_clubs", "Seven of Hearts", "seven (blue, slim)",
)  # fmt: skip
TEMPLATES = (
    "a photo of a {c}.",
    "a photo of the {c}.",
    "a picture of one {c}",
    "The {c}, small and noisy.",
    "an image of a {c}.",
    "a rendering of a {c}!",
)
CLIP_CONFIG = {
    "embed_dim": 48,
    "vision_cfg": {"image_size": SIDE, "layers": 3, "width": 64, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 48, "vocab_size": 49408, "width": 64, "heads": 4, "layers": 2},
}
CONVOLUTIONS = {"image_size": SIDE, "layers": (1, 1, 1, 1), "width": 8, "head_width": 32}
CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FOLDERS = sorted(map(str, range(CLASSES)))  # as folders are sorted: the order of the networks' outputs
CLASS_NAMES = [NAMES[int(folder)] for folder in FOLDERS]


@dataclass(frozen=True)
class Size:
    """How large a world is.

    Attributes:
        test: Images of the test set.
        train: Images of the training set.
        clip_steps: Steps of the CLIP's training.
        epochs: Epochs of the classifier's.
        clutter: How hard images are: 1, or less.
        batch: Images of a step of the CLIP's training.
        convolutions: Whether its images go through convolutions, which learn sooner, in place of a transformer.
    """

    test: int = 20_000
    train: int = 12_000
    clip_steps: int = 1_400
    epochs: int = 12
    clutter: float = 1.0
    batch: int = 128
    convolutions: bool = False


SMALL = Size(600, 1_200, 240, 6, 0.3, 32, True)

# Images -----------------------------------------------------------------------------------------------------------


def _sources() -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Photos, and the digits 0 to 7 as lists of images by digit: to train and to test."""
    from skimage import data
    from sklearn.datasets import load_digits

    photos = [data.astronaut(), data.coffee(), data.chelsea(), data.rocket()]
    digits = load_digits()
    train, test = [], []
    for digit in range(CLASSES // 2):
        found = digits.images[digits.target == digit]
        train.append(found[: len(found) * 2 // 3])
        test.append(found[len(found) * 2 // 3 :])
    return photos, train, test


def _picture(
    random: np.random.Generator, photos: list[np.ndarray], digits: list[np.ndarray], number: int, clutter: float
) -> Any:
    """An image of a class, and how visible its digit is."""
    height, width = (int(each) for each in random.integers(40, 71, 2))
    photo = photos[random.integers(len(photos))]
    scale = random.uniform(1, 3)
    high, wide = int(height * scale), int(width * scale)
    top, left = random.integers(photo.shape[0] - high), random.integers(photo.shape[1] - wide)
    ground = Image.fromarray(photo[top : top + high, left : left + wide]).resize((width, height), Image.BILINEAR)
    shapes = digits[number // 2]
    side = int(min(height, width) * random.uniform(0.7, 0.95))
    shape = Image.fromarray((shapes[random.integers(len(shapes))] * 15.9).astype(np.uint8))
    mask = np.zeros((height, width), dtype=np.float32)
    reach = clutter * random.uniform(-0.25, 0.25, 2)
    y = int(np.clip((height - side) / 2 + reach[0] * (height - side / 2) / 2, 0, height - side))
    x = int(np.clip((width - side) / 2 + reach[1] * (width - side / 2) / 2, 0, width - side))
    mask[y : y + side, x : x + side] = np.asarray(shape.resize((side, side), Image.BICUBIC), dtype=np.float32) / 255
    visible = 1 - clutter * random.uniform(0, 0.5)
    colour = np.array((75, 105, 205) if number % 2 else (205, 85, 70)) + clutter * random.normal(0, 38, 3)
    mixed = (
        clutter**0.5 * np.asarray(ground, dtype=np.float32) * (1 - visible * mask[..., None])
        + visible * mask[..., None] * colour
    )
    mixed += clutter * _raster(random, height, width)[..., None] + random.normal(0, 5, mixed.shape)
    return Image.fromarray(np.clip(mixed, 0, 255).astype(np.uint8)), visible


def _raster(random: np.random.Generator, height: int, width: int) -> np.ndarray:
    """A print's fine raster, which is seen or not by how an image is made smaller."""
    angle, period = random.uniform(0, np.pi), random.uniform(2.2, 3.4)
    y, x = np.mgrid[:height, :width] * (2 * np.pi / period)
    return random.uniform(10, 90) * np.sin(x * np.cos(angle) + y * np.sin(angle))


def _jpeg(image: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _numbers(random: np.random.Generator, count: int) -> np.ndarray:
    share = np.linspace(0.5, 1.6, CLASSES)[np.random.default_rng(5).permutation(CLASSES)]
    return random.choice(CLASSES, count, p=share / share.sum())


def write_images(folder: Path, count: int, clutter: float, others: int = 0) -> None:
    """Writes ``test`` and ``relabelled``: the same files, 4 % of them of the lower half in other classes' folders.

    A class's folder is its number. Some hard images are there twice, and some files are broken. ``others`` numbers
    sets of other images.
    """
    photos, _, digits = _sources()
    random = np.random.default_rng(11 + 100 * others)
    for name in FOLDERS:
        for kind in ("test", "relabelled"):
            (folder / kind / name).mkdir(parents=True)
    numbers = _numbers(random, count)
    repeats = count // 60
    place = 0
    for number in numbers[: count - repeats].tolist():
        image, visible = _picture(random, photos, digits, number, clutter)
        data = _jpeg(image, int(random.integers(55, 86)))
        if random.random() < max(0.002, 2 / count):
            data = b"\xff\xd8\xff\xe0" + bytes(random.integers(0, 256, 90, dtype=np.uint8))
        other = int(random.integers(CLASSES)) if random.random() < 0.04 and number < 8 else number
        often = (
            2
            if visible < 1 - 0.4 * clutter and repeats > 0 and random.random() < 0.3 and data[4:6] == b"\x00\x10"
            else 1
        )
        repeats -= often - 1
        for _ in range(often):
            path = folder / "test" / str(number) / f"{place:05d}.jpg"
            path.write_bytes(data)
            os.link(path, folder / "relabelled" / str(other) / path.name)
            place += 1


def training_images(count: int, clutter: float, others: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images [n, 3, 36, 36] and [n, 3, 34, 34] of bytes, and their classes in the order of the folders."""
    from torchvision import transforms

    photos, digits, _ = _sources()
    random = np.random.default_rng(12 + 100 * others)
    numbers = _numbers(random, count)
    sides = (36, 34)
    made = [torch.empty(count, 3, side, side, dtype=torch.uint8) for side in sides]
    for place, number in enumerate(numbers.tolist()):
        image, _ = _picture(random, photos, digits, number, clutter)
        read = Image.open(io.BytesIO(_jpeg(image, int(random.integers(55, 86)))))
        for images, side in zip(made, sides, strict=True):
            smaller = transforms.functional.center_crop(transforms.functional.resize(read, side), side)
            images[place] = transforms.functional.pil_to_tensor(smaller)
    places = {int(name): place for place, name in enumerate(FOLDERS)}
    return made[0], made[1], torch.tensor([places[number] for number in numbers.tolist()])


# Networks ---------------------------------------------------------------------------------------------------------


class _Block(nn.Module):
    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, 2, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.short = nn.Conv2d(before, after, 1, 2)
        self.act = nn.GELU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.act(self.norms[0](self.one(x)))
        y = self.norms[1](self.two(y))
        return self.act(y + self.short(x))


def classifier() -> nn.Module:
    """A small residual network for images of any size."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.GELU(), _Block(16, 32), _Block(32, 64),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES),
    )  # fmt: skip


def clip(convolutions: bool = False) -> tuple[nn.Module, Any]:
    """open_clip's CLIP in a tiny configuration with QuickGELU, and a tokenizer that keeps upper case."""
    from open_clip.model import CLIP
    from open_clip.tokenizer import SimpleTokenizer

    config: dict[str, Any] = {key: dict(each) if isinstance(each, dict) else each for key, each in CLIP_CONFIG.items()}
    if convolutions:
        config["vision_cfg"] = dict(CONVOLUTIONS)
    return CLIP(**config, quick_gelu=True), SimpleTokenizer(context_length=48, clean="whitespace")


def _normalized(images: torch.Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> torch.Tensor:
    return (images / 255 - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)


def _batches(
    images: torch.Tensor, size: int, generator: torch.Generator
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless shuffled batches, cropped at random places, with the places in the training set."""
    while True:
        for chosen in torch.randperm(len(images), generator=generator).split(size):
            y, x = torch.randint(0, images.shape[-1] - SIDE + 1, (2,), generator=generator).tolist()
            yield images[chosen, :, y : y + SIDE, x : x + SIDE].float(), chosen


def train_classifier(images: torch.Tensor, labels: torch.Tensor, epochs: int) -> tuple[nn.Module, nn.Module]:
    """The network after the last step, and the moving average of its weights."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    network = classifier()
    steps = epochs * (len(images) // 128)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995), use_buffers=True
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps + 1, final_div_factor=20)
    batches = _batches(images, 128, generator)
    for _ in range(steps):
        inputs, chosen = next(batches)
        logits = network(_normalized(inputs, IMAGENET_MEAN, IMAGENET_STD))
        loss = functional.cross_entropy(logits, labels[chosen], label_smoothing=0.05)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update_parameters(network)
    return network.eval(), average.module.eval()


_OTHERWISE: tuple[Callable[[str], str], ...] = (
    str.lower,
    lambda text: text.replace("_", " "),
    lambda text: text.rstrip("."),
)


def train_clip(images: torch.Tensor, labels: torch.Tensor, size: Size) -> nn.Module:
    """A CLIP trained on a prompt for each image, some of them written in other ways."""
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(2)
    network, tokenizer = clip(size.convolutions)
    network.token_embedding.weight.requires_grad_(False)
    with torch.no_grad():
        network.token_embedding.weight.mul_(10)
    written = [[each.replace("{c}", name) for each in TEMPLATES] for name in CLASS_NAMES]
    texts = [prompts + [change(prompts[place]) for place, change in enumerate(_OTHERWISE)] for prompts in written]
    tokens = torch.stack([tokenizer(each) for each in texts])
    trained = [each for each in network.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1.5e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-3, total_steps=size.clip_steps + 1, pct_start=0.15)
    batches = _batches(images, size.batch, generator)
    for _ in range(size.clip_steps):
        inputs, chosen = next(batches)
        drawn = torch.randint(tokens.shape[1], (CLASSES,), generator=generator)
        text = functional.normalize(network.encode_text(tokens[torch.arange(CLASSES), drawn]), dim=-1)
        seen = functional.normalize(network.encode_image(_normalized(inputs, CLIP_MEAN, CLIP_STD)), dim=-1)
        loss = functional.cross_entropy(network.logit_scale.exp() * seen @ text.T, labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            network.logit_scale.clamp_(0, 4.6)
    return network.eval()


def make(folder: Path, size: Size = Size(), say: Callable[[str], None] = lambda line: None) -> Path:
    """Makes a world in a folder unless it is there; returns the folder."""
    if not (folder / "weights.pt").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        say("writing images")
        write_images(folder, size.test, size.clutter)
        larger, images, labels = training_images(size.train, size.clutter)
        say("training the classifier")
        last, average = train_classifier(larger, labels, size.epochs)
        say("training the CLIP")
        trained = train_clip(images, labels, size)
        found = {"last": last.state_dict(), "average": average.state_dict(), "clip": trained.state_dict()}
        torch.save(found, folder / "weights.part")
        (folder / "weights.part").rename(folder / "weights.pt")
    return folder


def load(folder: Path, name: str) -> Any:
    """A network by name; the CLIP with its tokenizer."""
    state = torch.load(folder / "weights.pt", weights_only=True)[name]
    made = clip("visual.layer1.0.conv1.weight" in state) if name == "clip" else classifier()
    network = made[0] if isinstance(made, tuple) else made
    network.load_state_dict(state)
    network.eval()
    return made
