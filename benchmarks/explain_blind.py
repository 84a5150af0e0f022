"""The blind test of `testbed explain`: does it find the protocol that a published value was measured with?

    python benchmarks/explain_blind.py [--small] [--folder DIR] [--part singles] [--share 0.05]

A tiny CLIP and two classifiers are trained on digits in photos; published values are made by PIL, torchvision, torch
and open_clip alone (tests/support/blind_reference.py). The searches are asked for single variants, for pairs of
variants drawn at random, and for numbers that no variant gives. Each question counts all its images and forward
passes; outputs that an earlier question asked for are not computed again. Prints Markdown: benchmarks/explain-blind.md.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

import blind_world as world  # noqa: E402
import click  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from blind_variants import CELLS, ROUNDING, Asked, Blind, images  # noqa: E402

from testbed.extensions.explain import bench  # noqa: E402
from testbed.extensions.explain.images import ImageRunner  # noqa: E402
from testbed.extensions.explain.pixels import Pixels  # noqa: E402

NUMBERS = {1: 10, 3: 5}  # metrics → how many that no variant gives, of each of the two large cells and ranges
APART = 0.005  # of such a number from what any single variant gives
BELOW, ABOVE = (0.15, 0.6), 0.04  # how far from the stored value they are drawn
PARTS = ("singles", "pairs", "pairs-with-preprocessing", "numbers", "numbers-of-several-metrics")
PAIRS = {"classifier": 6, "fewer": 4, "clip": 14}  # of scoring and prompts, drawn at random
PAIRS_WITH_PREPROCESSING, SEED = {"classifier": 12, "clip": 8}, 5  # likewise
PUBLISHED = ("top1", "top5", "mean_per_class_recall")  # of pairs, as CLIP benchmark prints them
SOME = [f"first samples: the first {entry:,}" for entry in (500, 1000, 5000, 10_000)]  # of that axis
UNASKED = ("image size: 27 pixels", "image size: 55 pixels")  # the resized side may be rounded down or not
SINGLES = {
    "classifier": lambda axis: True,
    "fewer": lambda axis: axis == "candidate classes",
    "clip": lambda axis: axis not in ("first samples", "last batch", "class order", "repeated images"),
}


INTRODUCTION = """# The blind test of explain

Each question that `benchmarks/explain_blind.py` asks, as it prints them;
[Published numbers](../docs/published.md#accuracy-of-explanations) has today's rates. PIL, torchvision, torch and
open_clip alone made the published values, in percent. A value *differs* if it is outside the 95 % interval of the
stored one, and of a pair also outside those of its two variants alone. A truth is *not tried* where something cheaper
gave the value already. *Explained* is what the answer says: something gives the value that chance would not. Images and
forward passes are shares of one evaluation.
"""


class Test:
    """The questions, asked one after the other.

    Args:
        blind: The world.
        say: Called with each answer.
        share: The most forward passes, of the evaluation's; None for the default.
        only: A pattern of the truths that are asked for, with their cells before them.
    """

    def __init__(self, blind: Blind, say: Callable[[str], None], share: float | None = None, only: str = "") -> None:
        self.only = re.compile(only)
        self.blind = blind
        self.share = share
        self.say = say

    def singles(self, *metrics: str) -> list[Asked]:
        """Each single variant whose top-1 is another one than the stored, with the values of some metrics."""
        found = []
        for cell, wanted in SINGLES.items():
            stored = self.blind.values(cell)
            for metric, name in (("top5", "metric: top-5"), ("mean_per_class_recall", "metric: mean per class")):
                if metrics == ("top1",) and cell != "fewer" and self._wanted(cell, name):
                    found.append(self._ask(cell, [name], {"top1": stored[metric]}))
            for truth in self.blind.variants(cell):
                axis = truth.partition(":")[0]
                if not self._wanted(cell, truth):
                    continue
                if wanted(axis) and truth not in UNASKED and (axis != "first samples" or truth in SOME):
                    values = self.blind.values(cell, [truth])
                    if abs(values["top1"] - stored["top1"]) > self._rounding(cell):
                        found.append(self._ask(cell, [truth], {metric: values[metric] for metric in metrics}))
                    else:
                        self.say(row(cell, truth, f"{100 * values['top1']:.2f}", "no", "not asked: the stored value"))
        return found

    def pairs(self, counts: Mapping[str, int], with_images: bool, *metrics: str) -> list[Asked]:
        """Pairs that differ, drawn at random, with the values of some metrics."""
        found = []
        for cell, count in counts.items():
            pairs = self._pairs(cell, with_images)
            np.random.default_rng(SEED).shuffle(pairs)
            for truth in itertools.islice((pair for pair in pairs if self._differs(cell, pair)), count):
                if self._wanted(cell, *truth):
                    values = self.blind.values(cell, truth)
                    found.append(self._ask(cell, truth, {metric: values[metric] for metric in metrics}))
        return found

    def _pairs(self, cell: str, with_images: bool) -> list[tuple[str, str]]:
        """Those of which neither undoes the other in the reference: pairs of scoring and prompts, or all others."""
        known = {
            name: changes
            for name, changes in self.blind.variants(cell).items()
            if name not in UNASKED and (not name.startswith("first samples") or name in SOME)
        }
        seen = {name for name, _ in images(cell)}
        return [
            (one, other)
            for one, other in itertools.combinations(known, 2)
            if not known[one].keys() & known[other].keys()
            and one.partition(":")[0] != other.partition(":")[0]
            and bool(seen & {one, other}) == with_images
        ]

    def _differs(self, cell: str, pair: tuple[str, str]) -> bool:
        values = self.blind.values(cell, pair)
        return values["top1"] > 0 and self.blind.apart(cell, pair, values)

    def numbers(self, count: int, *metrics: str) -> list[Asked]:
        """Values that no single variant gives; of several metrics, those of the variant next to it, moved alike."""
        found = []
        for cell in ("classifier", "clip"):
            if not self._wanted(cell, "none"):
                continue
            stored = self.blind.values(cell)
            known = np.array(
                [
                    *stored.values(),
                    *(self.blind.values(cell, [variant])["top1"] for variant in self._all(cell)),
                    *self._rounded_up(cell),
                ]
            )
            for below in BELOW:
                random = np.random.default_rng(3)
                drawn = (stored["top1"] + random.uniform(-below, ABOVE) for _ in itertools.count())
                apart = (value for value in drawn if abs(known - value).min() > APART and value < 1)
                found += [
                    self._ask(cell, [], self._moved(cell, value, metrics)) for value in itertools.islice(apart, count)
                ]
        return found

    def _moved(self, cell: str, top1: float, metrics: Sequence[str]) -> dict[str, float]:
        near = min(
            (self.blind.values(cell, [variant]) for variant in self._all(cell)), key=lambda v: abs(v["top1"] - top1)
        )
        return {metric: min(max(near[metric] + top1 - near["top1"], 0.0), 1.0) for metric in metrics}

    def _wanted(self, cell: str, *truth: str) -> bool:
        return self.only.search(" + ".join([cell, *truth])) is not None

    def _rounded_up(self, cell: str) -> list[float]:
        """The values of the variants for which the reference has only one way to round."""
        if cell == "clip":
            return []
        known = self.blind.variants(cell)
        changes = [known[axis_name] | {"resize": known[axis_name]["resize"] + 1} for axis_name in UNASKED]
        return [self.blind.reference.values(CELLS[cell][2].changed(**change))["top1"] for change in changes]

    def _all(self, cell: str) -> Sequence[str]:
        return list(self.blind.variants(cell))

    def _rounding(self, cell: str) -> float:
        return ROUNDING + 2 / self.blind.size(cell)

    def _ask(self, cell: str, truth: Sequence[str], published: dict[str, float]) -> Asked:
        samples = None if self.share is None else int(self.share * self.blind.size(cell))
        asked = self.blind.ask(cell, truth, published, samples=samples)
        self.say(line(asked))
        return asked


class Shared(ImageRunner):
    """Decoded images and outputs that an earlier question asked for are not computed again, only counted again."""

    pictures: ClassVar[dict[tuple[str, str, int], Any]] = {}
    known: ClassVar[dict[tuple[str, str, Pixels], dict[int, Any]]] = {}

    def _picture(self, decoder: str, row: int) -> Any:
        key = self.cell.setting.name, decoder, row
        if key not in self.pictures:
            self.pictures[key] = super()._picture(decoder, row)
        return self.pictures[key]

    def _forward(self, protocol: Pixels, pictures: dict[int, Any]) -> dict[int, Any]:
        known = self.known.setdefault((self.cell.model.name, self.cell.setting.name, protocol), {})
        new = {row: picture for row, picture in pictures.items() if row not in known}
        known.update(super()._forward(protocol, new) if new else {})
        self.forwards += len(pictures) - len(new)
        return {row: known[row] for row in pictures}


def line(asked: Asked) -> str:
    """A row of the table."""
    values = ", ".join(f"{100 * value:.2f}" for value in asked.published.values())
    others = "; ".join(asked.others[:3]) + (f"; {len(asked.others) - 3} more" if len(asked.others) > 3 else "")
    truth = " + ".join(asked.truth) or "none"
    apart = "yes" if asked.apart else "no"
    explained = "yes" if asked.explained else "no"
    shares = (f"{100 * share:.1f}" for share in (asked.read, asked.forwards))
    return row(asked.cell, truth, values, apart, asked.verdict if asked.truth else "", others, explained, *shares)


def row(*columns: str) -> str:
    """A row of the table, filled up."""
    return "| " + " | ".join([*columns, *[""] * (len(COLUMNS) - len(columns))]) + " |"


COLUMNS = (
    "cell", "truth", "published", "differs", "verdict of the truth", "what else gives it", "explained",
    "images read, %", "forward passes, %",
)  # fmt: skip


def head(title: str) -> str:
    """The beginning of a table."""
    return f"\n## {title}\n\n{row(*COLUMNS)}\n{row(*['---'] * len(COLUMNS))}"


def rates(asked: Sequence[Asked]) -> str:
    """Counts recovered and excluded truths: among all, and among those that differ."""
    return f"{_rates(asked)}\n\nOf values that differ: {_rates([question for question in asked if question.apart])}"


def _rates(asked: Sequence[Asked]) -> str:
    recovered = sum(question.recovered for question in asked)
    excluded = sum(question.verdict == "excluded" for question in asked)
    missing = sum(question.verdict == "not tried" for question in asked)
    explained = sum(question.explained for question in asked)
    most = max((question.forwards for question in asked), default=0.0)
    return (
        f"{len(asked)} asked: {recovered} recovered ({100 * recovered / max(len(asked), 1):.1f} %), {excluded}"
        f" excluded, {missing} not tried, {explained} said to be explained; at most {100 * most:.1f} % forward passes"
    )


@click.command()
@click.option("--small", is_flag=True, help="A small world, as the tests use it.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the world is kept.")
@click.option("--part", type=click.Choice(PARTS), multiple=True)
@click.option("--share", type=float, help="The most forward passes, of the evaluation's; default as the command.")
@click.option("--metric", "metrics", multiple=True, default=["top1"], help="What is published of single variants.")
@click.option("--only", default="", help="A pattern of the truths, such as '^clip .*templates'.")
def main(
    small: bool, folder: Path | None, part: Sequence[str], share: float | None, metrics: Sequence[str], only: str
) -> None:
    """Prints a table of all questions, and the rates."""
    torch.set_num_threads(1)
    bench.ImageRunner = Shared
    name = "small" if small else "large"
    folder = folder or Path(tempfile.gettempdir()) / f"testbed-explain-blind-{name}"
    world.make(folder, world.SMALL if small else world.Size(), lambda line: click.echo(line, err=True))
    test = Test(Blind(folder, folder / "store.db", folder / "reference"), click.echo, share, only)
    parts = part or PARTS
    began = time.perf_counter()
    click.echo(INTRODUCTION)
    for cell, (model, setting, _) in CELLS.items():
        values = ", ".join(f"{metric} {100 * value:.2f}" for metric, value in test.blind.values(cell).items())
        click.echo(f"- {cell}: {model} on {setting}, {test.blind.size(cell):,} images; stored: {values}")
    if "singles" in parts:
        click.echo(head("Single variants"))
        click.echo(f"\n{rates(test.singles(*metrics))}")
    for kind, counts in (("pairs", PAIRS), ("pairs-with-preprocessing", PAIRS_WITH_PREPROCESSING)):
        if kind in parts:
            click.echo(head(kind.capitalize().replace("-", " ")))
            click.echo(f"\n{rates(test.pairs(counts, counts is PAIRS_WITH_PREPROCESSING, *PUBLISHED))}")
    for kind, published in (("numbers", ("top1",)), ("numbers-of-several-metrics", PUBLISHED)):
        if kind in parts:
            click.echo(head(f"{kind.capitalize().replace('-', ' ')}, which no single variant gives"))
            found = test.numbers(NUMBERS[len(published)], *published)
            unexplained = sum(not explanation.explained for explanation in found)
            click.echo(f"\n{unexplained} of {len(found)} said to be unexplained")
    click.echo(f"\n{time.perf_counter() - began:.0f} s", err=True)


if __name__ == "__main__":
    main()
