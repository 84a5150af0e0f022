"""Values under other protocols, by PIL, torchvision, torch and open_clip alone; written from what each variant says.

Nothing of testbed is imported, so that `testbed explain` is tested against what people do, not against itself.
"""

from __future__ import annotations

import copy
import hashlib
import string
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import blind_world as world
import numpy as np
import torch
from blind_world import CLASS_NAMES, FOLDERS, TEMPLATES
from PIL import Image, UnidentifiedImageError
from torch.nn import functional
from torchvision.io import ImageReadMode, decode_jpeg, read_file
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as of

BATCH = 200


@dataclass(frozen=True)
class Images:
    """How images are read, and what network sees them.

    Attributes:
        network: ``last``, ``average`` or ``clip``.
        decoder: ``pillow``, ``torchvision``, or ``draft`` for Pillow's draft mode at 256 pixels.
        mode: ``shorter`` side resized, then cropped; ``squash``; ``longer`` side resized, the rest black; ``none``.
        resize: Pixels.
        crop: Pixels.
        interpolation: Of Pillow.
        antialias: False: tensors are resized, as in old code for tensors.
        mean: For each channel.
        std: Likewise.
        blue_first: Whether channels come in OpenCV's order.
        scale: 255 where nobody divided by 255.
        dtype: The precision of network and inputs.
        activation: ``gelu`` or ``quick_gelu`` in all of the network; empty for its own.
    """

    network: str
    decoder: str = "pillow"
    mode: str = "shorter"
    resize: int = 32
    crop: int = 32
    interpolation: str = "bilinear"
    antialias: bool = True
    mean: tuple[float, ...] = world.IMAGENET_MEAN
    std: tuple[float, ...] = world.IMAGENET_STD
    blue_first: bool = False
    scale: float = 1.0
    dtype: str = "float32"
    activation: str = ""


@dataclass(frozen=True)
class Texts:
    """What the classes of a CLIP are made of.

    Attributes:
        names: A name for each class.
        templates: Prompts with ``{c}``.
        spelling: A name in `SPELLINGS`; empty for none.
        average: ``normalized``, ``raw`` (averaged, then normalized), ``logits`` or ``best``.
        length: Tokens after which texts are cut.
    """

    names: tuple[str, ...] = tuple(CLASS_NAMES)
    templates: tuple[str, ...] = TEMPLATES
    spelling: str = ""
    average: str = "normalized"
    length: int = 48


@dataclass(frozen=True)
class Scores:
    """What counts.

    Attributes:
        labels: ``test`` or ``relabelled``.
        order: ``""``, ``as text`` (folders sorted as text, a model in the order of numbers), ``as numbers`` (the
            reverse), ``one too high`` or ``one too low``.
        subset: How many of the classes are evaluated; 0 for all.
        compete: With a subset: whether all classes compete.
        first: The number of samples from the start; 0 for all.
        batch: The size of batches whose last, smaller one is dropped; 0 for none.
        repeated: ``count``, ``once`` or ``left out``.
        unreadable: Whether unreadable images count, as wrong.
    """

    labels: str = "test"
    order: str = ""
    subset: int = 0
    compete: bool = False
    first: int = 0
    batch: int = 0
    repeated: str = "count"
    unreadable: bool = True


@dataclass(frozen=True)
class Protocol:
    """A whole protocol."""

    images: Images
    texts: Texts | None = None
    scores: Scores = Scores()

    def changed(self, **values: Any) -> Protocol:
        """This protocol with some fields of its parts replaced."""
        parts: dict[str, Any] = {}
        for name in ("images", "texts", "scores"):
            part = getattr(self, name)
            if part is not None:
                own = {each.name for each in fields(part)} & values.keys()
                parts[name] = replace(part, **{each: values.pop(each) for each in own})
        assert not values, values
        return replace(self, **parts)


CLASSIFIER = Protocol(Images("last", resize=36))
CLIP = Protocol(Images("clip", interpolation="bicubic", mean=world.CLIP_MEAN, std=world.CLIP_STD), Texts())

SPELLINGS: dict[str, Callable[[str], str]] = {
    "": str,
    "lower": str.lower,
    "no punctuation": lambda text: "".join(each for each in text if each not in string.punctuation),
    "no stop": lambda text: text.removesuffix("."),
    "stop": lambda text: text if text.endswith(".") else f"{text}.",
    "capital": lambda text: text[0].upper() + text[1:],
}


class Reference:
    """Evaluates protocols on a world.

    Args:
        folder: The world.
        kept: Where outputs are kept from one process to the next; None for nowhere.
    """

    def __init__(self, folder: Path, kept: Path | None = None) -> None:
        self.folder = folder
        self.kept = kept
        self._outputs: dict[Images, np.ndarray] = {}
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)

    # Samples ------------------------------------------------------------------------------------------------------

    @cached_property
    def files(self) -> list[Path]:
        """In the order of torchvision's ImageFolder."""
        return [path for name in FOLDERS for path in sorted((self.folder / "test" / name).iterdir())]

    @cached_property
    def labels(self) -> dict[str, np.ndarray]:
        """By kind, in the order of `files`."""
        place = {name: index for index, name in enumerate(FOLDERS)}
        test = np.array([place[path.parent.name] for path in self.files])
        other = {path.name: place[path.parent.name] for path in (self.folder / "relabelled").glob("*/*")}
        return {"test": test, "relabelled": np.array([other[path.name] for path in self.files])}

    @cached_property
    def _digests(self) -> np.ndarray:
        return np.array([hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files])

    @cached_property
    def _pillow(self) -> list[Image.Image | None]:
        return [_read(path) for path in self.files]

    # Images -------------------------------------------------------------------------------------------------------

    def outputs(self, images: Images) -> np.ndarray:
        """Logits or embeddings of all files; NaN where one cannot be read."""
        if images not in self._outputs:
            name = hashlib.sha256(repr(astuple(images)).encode()).hexdigest()[:16]
            path = None if self.kept is None else self.kept / f"{name}.npy"
            if path is not None and path.is_file():
                self._outputs[images] = np.load(path)
            else:
                self._outputs[images] = self.run(images, range(len(self.files)))
                if path is not None:
                    np.save(path, self._outputs[images])
        return self._outputs[images]

    def run(self, images: Images, wanted: Sequence[int]) -> np.ndarray:
        """Outputs of some files."""
        network = self._network(images.network, images.dtype, images.activation)
        forward = network.encode_image if images.network == "clip" else network
        found: dict[int, np.ndarray] = {}
        for start in range(0, len(wanted), BATCH):
            pictures = {place: self._picture(place, images.decoder) for place in wanted[start : start + BATCH]}
            inputs = {place: preprocessed(each, images) for place, each in pictures.items() if each is not None}
            with torch.no_grad():
                made = forward(torch.stack(list(inputs.values())).to(getattr(torch, images.dtype))).float().numpy()
            found.update(zip(inputs, made, strict=True))
        width = len(next(iter(found.values())))
        return np.stack([found.get(place, np.full(width, np.nan, np.float32)) for place in wanted])

    def _picture(self, place: int, decoder: str) -> Image.Image | None:
        if decoder == "pillow":
            return self._pillow[place]
        if decoder == "draft":
            return _read(self.files[place], (256, 256))
        try:
            return of.to_pil_image(decode_jpeg(read_file(str(self.files[place])), ImageReadMode.RGB))
        except RuntimeError:
            return None

    def _network(self, name: str, dtype: str, activation: str) -> Any:
        made = copy.deepcopy(self._loaded[name])
        if activation == "gelu":
            _replace(made, "QuickGELU", torch.nn.GELU)
        elif activation == "quick_gelu":
            from open_clip.transformer import QuickGELU

            _replace(made, "GELU", QuickGELU)
        return made.to(getattr(torch, dtype))

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        clip, self._tokenizer = world.load(self.folder, "clip")
        return {"clip": clip} | {name: world.load(self.folder, name) for name in ("last", "average")}

    # Texts --------------------------------------------------------------------------------------------------------

    def logits(self, protocol: Protocol) -> np.ndarray:
        """Of all files and classes."""
        made = self.outputs(protocol.images)
        if protocol.texts is None:
            return made
        texts = protocol.texts
        network = self._network("clip", protocol.images.dtype, protocol.images.activation)
        seen = functional.normalize(torch.from_numpy(made).double(), dim=-1)
        columns = []
        with torch.no_grad():
            for name in texts.names:
                prompts = [SPELLINGS[texts.spelling](each.replace("{c}", name)) for each in texts.templates]
                tokens = self._tokenizer(prompts, context_length=texts.length)
                padded = functional.pad(tokens, (0, 48 - texts.length))
                embedded = network.encode_text(padded).double()
                unit = functional.normalize(embedded, dim=-1)
                if texts.average == "raw":
                    columns.append(seen @ functional.normalize(embedded.mean(0), dim=-1))
                elif texts.average == "logits":
                    columns.append((seen @ unit.T).mean(1))
                elif texts.average == "best":
                    columns.append((seen @ unit.T).max(1).values)
                else:
                    columns.append(seen @ functional.normalize(unit.mean(0), dim=-1))
        return torch.stack(columns, 1).numpy()

    # Scores -------------------------------------------------------------------------------------------------------

    def values(self, protocol: Protocol) -> dict[str, float]:
        """Top-1, top-5, and the mean over classes of their accuracies: fractions."""
        scores = protocol.scores
        logits, labels = self.logits(protocol), self.labels[scores.labels]
        digests = self._digests
        if scores.subset:
            chosen = self.labels["test"] < scores.subset
            digests = digests[chosen]
            logits, labels = logits[chosen], labels[chosen]
            logits = logits if scores.compete else logits[:, : scores.subset]
        kept = self._kept(scores, logits, digests.tolist())
        logits, labels = logits[kept], self._reordered(labels[kept], scores)
        readable = ~np.isnan(logits).any(1)
        order = np.argsort(-np.where(readable[:, None], logits, 0), axis=1)
        hits = [(order[:, :k] == labels[:, None]).any(1) & readable for k in (1, 5)]
        recalls = [hits[0][labels == each].mean() for each in np.unique(labels)]
        return {"top1": hits[0].mean(), "top5": hits[1].mean(), "mean_per_class_recall": float(np.mean(recalls))}

    def _kept(self, scores: Scores, logits: np.ndarray, digests: list[str]) -> np.ndarray:
        count = len(logits)
        kept = np.ones(count, bool)
        if scores.first:
            kept[scores.first :] = False
        if scores.batch:
            kept[count // scores.batch * scores.batch :] = False
        if scores.repeated != "count":
            seen: set[str] = set()
            values, times = np.unique(digests, return_counts=True)
            twice = set(values[times > 1].tolist())
            for place, digest in enumerate(digests):
                kept[place] &= digest not in (seen if scores.repeated == "once" else twice)
                seen.add(digest)
        if not scores.unreadable:
            kept &= ~np.isnan(logits).any(1)
        return kept

    def _reordered(self, labels: np.ndarray, scores: Scores) -> np.ndarray:
        as_text = sorted(map(str, range(scores.subset or world.CLASSES)))
        if scores.order == "as text":  # class 10 is the folder "10", the third one
            return np.array([as_text.index(str(each)) for each in labels])
        if scores.order == "as numbers":  # the third folder is "10", so its images are taken for class 10
            return np.array([int(as_text[each]) for each in labels])
        return labels + {"": 0, "one too high": 1, "one too low": -1}[scores.order]


def _read(path: Path, draft: tuple[int, int] | None = None) -> Image.Image | None:
    try:
        with Image.open(path) as image:
            if draft is not None:
                image.draft("RGB", draft)
            return image.convert("RGB")
    except (UnidentifiedImageError, OSError, SyntaxError):
        return None


def _replace(network: Any, name: str, new: Callable[[], Any]) -> None:
    for module in network.modules():
        for key, child in module.named_children():
            if type(child).__name__ == name:
                setattr(module, key, new())


def preprocessed(picture: Image.Image, images: Images) -> torch.Tensor:
    """An input of the network."""
    how = InterpolationMode(images.interpolation)
    width, height = picture.size
    size: Sequence[int] | None = {"shorter": [images.resize], "squash": [images.resize] * 2}.get(images.mode)
    if images.mode == "longer":
        scale = images.resize / max(width, height)
        size = [round(height * scale), round(width * scale)]
    if images.antialias:
        resized = picture if size is None else of.resize(picture, list(size), how)
        tensor = of.to_tensor(of.center_crop(resized, [images.crop]))
    else:
        tensor = of.to_tensor(picture)
        tensor = tensor if size is None else of.resize(tensor, list(size), how, antialias=False).clamp(0, 1)
        tensor = of.center_crop(tensor, [images.crop])
    tensor = tensor.flip(0) if images.blue_first else tensor
    return of.normalize(tensor * images.scale, images.mean, images.std)
