"""What the blind test of `testbed explain` asks: the name of each variant in the search, and its protocol."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blind_world as world
import open_clip
from blind_definitions import SUBSET, catalog
from blind_reference import CLASSIFIER, CLIP, Protocol, Reference

from testbed.db.store import Store
from testbed.execution.progress import SilentProgress
from testbed.extensions.explain.search import search_for
from testbed.graph.options import RunOptions
from testbed.runner.run import run

ROUNDING = 0.00005  # two decimals of a percentage
CELLS: dict[str, tuple[str, str, Protocol]] = {
    "classifier": ("blind.last", "blind-test", CLASSIFIER),
    "fewer": ("blind.last", "blind-fewer", CLASSIFIER.changed(subset=SUBSET)),
    "clip": ("blind-clip", "blind-test", CLIP),
}
FIRST = (100, 128, 200, 250, 256, 500, 512, 1000, 1024, 2000, 2500, 5000, 10_000)
BATCHES = (16, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000, 1024)
NORMALIZATIONS = {
    "ImageNet's": (world.IMAGENET_MEAN, world.IMAGENET_STD),
    "CLIP's": (world.CLIP_MEAN, world.CLIP_STD),
    "0.5 and 0.5": ((0.5,) * 3, (0.5,) * 3),
    "none (inputs in [0, 1])": ((0.0,) * 3, (1.0,) * 3),
}
Changes = dict[str, Any]


def scores(cell: str, count: int) -> Iterator[tuple[str, Changes]]:
    """Variants of what counts, as (axis: name, changes of the protocol)."""
    yield "class order: folders 0, 1, 10, 2 sorted as text", {"order": "as text"}
    yield "class order: numbers for folders that were sorted as text", {"order": "as numbers"}
    yield "class order: labels one too high (1 for the first class)", {"order": "one too high"}
    yield "class order: labels one too low (a background class first)", {"order": "one too low"}
    yield from ((f"first samples: the first {size:,}", {"first": size}) for size in FIRST if size < count)
    for rest in dict.fromkeys(count % size for size in BATCHES if 0 < count % size < count):
        sizes = [size for size in BATCHES if count % size == rest]
        yield (
            f"last batch: the last {rest:,} dropped (batches of {', '.join(f'{size:,}' for size in sizes)})",
            {"batch": sizes[0]},
        )
    yield "repeated images: repeated images count once", {"repeated": "once"}
    yield "repeated images: repeated images left out", {"repeated": "left out"}
    yield "unreadable images: unreadable images left out", {"unreadable": False}
    if cell != "fewer":
        yield "labels: the labels of blind-relabelled", {"labels": "relabelled"}
    else:
        yield f"candidate classes: all {world.CLASSES} classes compete", {"compete": True}


def texts() -> Iterator[tuple[str, Changes]]:
    """Variants of prompts and what is done with them."""
    names = world.CLASS_NAMES
    for prompt in ("a photo of a {c}.", "a photo of a {c}", "a photo of the {c}.", "an image of a {c}.", "{c}"):
        yield f"templates: one prompt, {prompt!r}", {"templates": (prompt,)}
    many, some = open_clip.OPENAI_IMAGENET_TEMPLATES, open_clip.SIMPLE_IMAGENET_TEMPLATES
    yield "templates: CLIP's 80 for ImageNet", {"templates": tuple(each("{c}") for each in many)}
    yield "templates: CLIP's best 7 for ImageNet", {"templates": tuple(each("{c}") for each in some)}
    yield "class names: the data set's own", {"names": tuple(world.FOLDERS)}
    yield "class names: underscores for spaces", {"names": tuple("_".join(each.split(" ")) for each in names)}
    yield "class names: spaces for underscores", {"names": tuple(" ".join(each.split("_")) for each in names)}
    first = tuple(each[: each.find(",")] if "," in each else each for each in names)
    yield "class names: only the first of several names", {"names": first}
    bare = tuple(each[: each.find(" (")] if "(" in each else each for each in names)
    yield "class names: without what is in brackets", {"names": bare}
    yield "class names: hyphens as spaces", {"names": tuple(" ".join(each.split("-")) for each in names)}
    for name, spelling in (
        ("lower case", "lower"),
        ("no punctuation", "no punctuation"),
        ("no full stop at the end", "no stop"),
        ("a full stop at the end", "stop"),
        ("a capital first letter", "capital"),
    ):
        yield f"spelling of prompts: {name}", {"spelling": spelling}
    yield "averaging of prompts: prompts averaged before they are normalized", {"average": "raw"}
    yield "averaging of prompts: logits averaged (class embeddings not normalized)", {"average": "logits"}
    yield "averaging of prompts: the best prompt of each class", {"average": "best"}
    yield from ((f"context length: texts cut after {each} tokens", {"length": each}) for each in (8, 16, 24, 32))


def images(cell: str) -> Iterator[tuple[str, Changes]]:
    """Variants of preprocessing and network."""
    own = CELLS[cell][2].images
    for name in ("nearest", "bilinear", "bicubic", "lanczos"):
        if name != own.interpolation:
            yield f"interpolation: {name}", {"interpolation": name}
    yield "antialiasing: off", {"antialias": False}
    yield "resizing: squashed to the input's shape", {"mode": "squash", "resize": own.crop}
    yield "resizing: the longer side, the rest black", {"mode": "longer", "resize": own.crop}
    yield "resizing: none, only cropped", {"mode": "none"}
    for share in (1.0, 0.95, 0.9, 0.875, 0.8):
        if int(own.crop / share) != own.resize:
            yield f"crop: {share:g} of the resized image", {"resize": int(own.crop / share)}
    for side in (24, 27, 37, 41, 46, 55) if cell != "clip" else (37,):  # which has as many patches as 32
        yield f"image size: {side} pixels", {"crop": side, "resize": int(side / (own.crop / own.resize))}
    for name, (mean, std) in NORMALIZATIONS.items():
        if mean != own.mean:
            yield f"mean and standard deviation: {name}", {"mean": mean, "std": std}
    yield "channel order: blue first", {"blue_first": True}
    yield "range of inputs: 0 to 255 in place of 0 to 1", {"scale": 255.0}
    yield "precision: bfloat16", {"dtype": "bfloat16"}
    yield "precision: float16", {"dtype": "float16"}
    if cell == "clip":
        yield "activation: GELU", {"activation": "gelu"}
    else:
        yield "activation: QuickGELU", {"activation": "quick_gelu"}
        yield "weights: blind.average", {"network": "average"}
    yield "JPEG decoder: torchvision", {"decoder": "torchvision"}
    yield "JPEG decoder: pillow, reduced", {"decoder": "draft"}


@dataclass(frozen=True)
class Asked:
    """What a search was asked and what it said.

    Attributes:
        cell: A key of `CELLS`.
        truth: The variants, ``axis: name`` each; none for a value that no variant gives.
        published: Metric → the rounded value.
        verdict: Of the truth; ``not tried`` if it was not.
        others: What else gives it.
        explained: Whether the search says so.
        read: Images read, as a share of the evaluation.
        forwards: Images through a network, likewise.
        seconds: Of the search.
        sentence: Its finding.
        apart: Whether the value differs from the stored one, and that of a pair from those of its halves, by more than
            the 95 % interval of a measured value, so that `testbed published` says that they differ.
    """

    cell: str
    truth: tuple[str, ...]
    published: dict[str, float]
    verdict: str
    others: list[str]
    explained: bool
    read: float
    forwards: float
    seconds: float
    sentence: str
    apart: bool

    @property
    def recovered(self) -> bool:
        """Whether the truth gives it, and two others at most."""
        return self.verdict == "gives it" and len(self.others) <= 2


class Blind:
    """A world whose cells are stored, and the reference.

    Args:
        folder: The world.
        store: A store's file; the cells are evaluated if it is not there.
        kept: See `Reference`.
    """

    def __init__(self, folder: Path, store: Path, kept: Path | None = None) -> None:
        self.reference = Reference(folder, kept)
        self.catalog = catalog(folder)
        if not store.is_file():
            options = RunOptions(db_url=str(store), executor="inline", data_workers=0)
            settings = ["blind-test", "blind-relabelled", "blind-fewer"]
            for model, wanted in (("blind.last", settings), ("blind-clip", settings[:1])):
                report = run(self.catalog, options, [model], wanted, SilentProgress())
                assert not report.of("failed"), report.of("failed")
        self.store = Store.open(str(store))

    def size(self, cell: str) -> int:
        """The number of samples."""
        labels = self.reference.labels["test"]
        return int((labels < SUBSET).sum()) if cell == "fewer" else len(labels)

    def variants(self, cell: str) -> dict[str, Changes]:
        """All single variants, the metric's left out."""
        found = [*scores(cell, self.size(cell)), *images(cell)]
        return dict(found + list(texts() if cell == "clip" else ()))

    def values(self, cell: str, truth: Sequence[str] = ()) -> dict[str, float]:
        """Metric → its true value under some variants."""
        known, protocol = self.variants(cell), CELLS[cell][2]
        for each in truth:
            protocol = protocol.changed(**known[each])
        return self.reference.values(protocol)

    def ask(self, cell: str, truth: Sequence[str], published: dict[str, float], **options: Any) -> Asked:
        """Asks the search for the protocol of some values, rounded as they are printed."""
        rounded = {metric: round(100 * value, 2) / 100 for metric, value in published.items()}
        began = time.perf_counter()
        model, setting, _ = CELLS[cell]
        given = {metric: (value, ROUNDING) for metric, value in rounded.items()}
        search = search_for(self.store, self.catalog, model, setting, given, **options)
        found = search.run()
        seconds = time.perf_counter() - began
        verdicts = {frozenset(map(str, row.variants)): row.verdict for row in [*found.rows, *search.tried]}
        others = [row.name for row in found.giving if frozenset(map(str, row.variants)) != frozenset(truth)]
        return Asked(
            cell, tuple(truth), rounded, verdicts.get(frozenset(truth), "not tried"), others, found.explained,
            found.images_read / found.samples, found.forwards / found.samples, seconds, found.sentence(),
            self.apart(cell, truth, rounded),
        )  # fmt: skip

    def apart(self, cell: str, truth: Sequence[str], published: dict[str, float]) -> bool:
        """See `Asked.apart`."""
        simpler = [self.values(cell), *(self.values(cell, [each]) for each in truth if len(truth) > 1)]
        return all(
            any(
                abs(value - other[metric]) > ROUNDING + 1.96 * math.sqrt(other[metric] * (1 - other[metric]) / size)
                for metric, value in published.items()
            )
            for size in [self.size(cell)]
            for other in simpler
        )
