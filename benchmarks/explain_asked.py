"""The blind test of `testbed explain` on a checkpoint: asks for the numbers of `explain_checkpoints.py`.

    python benchmarks/explain_asked.py FOLDER [--size 50000] [--evaluations 2]

`testbed run` evaluates the checkpoint; then `testbed explain` is asked for each number, and for numbers that no
protocol gives. The outputs that the other program recorded take the place of the network (what would have gone through
it is counted), after the network itself gave the same ones on some images. Two changes of the images, which are not
recorded, are taken to move the outputs by the sum of their effects. Prints a Markdown table and the rates:
benchmarks/explain-blind.md.
"""

from __future__ import annotations

import argparse
import contextlib
import contextvars
import io
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from explain_checkpoints import CROP, FILE, MEAN, OUTPUTS, OWN, RESIZE, SEED, STD, world

from testbed.cli import program
from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.extensions.explain import bench
from testbed.extensions.explain.axis import Stage, Variant, axes, in_order
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.images import ImageRunner, Rows
from testbed.extensions.explain.pixels import Pixels
from testbed.inputs import Inputs, using
from testbed.planning.own_names import own_names_of
from testbed.registry import registry

RANDOM_NUMBERS, APART = 40, 0.6  # that no protocol gives; points from each value that one gives
INTERVAL = 1.96
NAME = "blind"
CHECKED, WITHIN, WITHIN_BELOW_FLOAT32 = 8, 1e-3, 0.2  # images on which the network must give the recorded outputs


class Recorded(ImageRunner):
    """Outputs that were recorded take the place of a network; what would have gone through it is counted."""

    by_name: ClassVar[dict[str, Any]] = {}

    @cached_property
    def recorded(self) -> dict[Pixels, list[Any]]:
        """The outputs of all images by protocol; for two changes, those of each."""
        opened = bench.Bench(self.cell, ["top1"])
        effects: dict[Variant, Any] = {}
        for axis in axes():
            if axis.stage == Stage.IMAGES:
                with contextlib.suppress(TestbedError):
                    variants = [variant for variant in axis.of(self.cell) if str(variant) in self.by_name]
                    effects |= {variant: self.by_name[str(variant)] for variant in variants}
        found = {opened.pixels((variant,)): [outputs] for variant, outputs in effects.items()}
        for one, other in itertools.combinations(effects, 2):
            if bench.combinable((one,), (other,)):
                found.setdefault(opened.pixels(in_order((one, other))), [effects[one], effects[other]])
        return found | {self.own: [self.by_name[OWN]]}

    def run(self, protocols: Sequence[Pixels], rows: Rows) -> None:
        """Takes what was recorded; other protocols fail."""
        self.failed |= {protocol: "not recorded" for protocol in protocols if protocol not in self.recorded}
        protocols = [protocol for protocol in protocols if protocol in self.recorded]
        waiting = {protocol: self.missing(protocol, rows) for protocol in protocols}
        self.read += len({row for missing in waiting.values() for row in missing})
        self.forwards += sum(self.passes(protocol, missing) for protocol, missing in waiting.items())
        for protocol, missing in waiting.items():
            first, *others = self.recorded[protocol]
            made = first[missing] + sum(other[missing] - self.by_name[OWN][missing] for other in others)
            self._outputs.setdefault(protocol, {}).update(zip(missing, made, strict=True))

    def check(self) -> int:
        """Compares what the network gives with what was recorded; returns the number of protocols."""
        single = {protocol: found[0] for protocol, found in self.recorded.items() if len(found) == 1}
        rows = np.linspace(0, len(self.cell) - 1, CHECKED).astype(int)
        network = ImageRunner(self.cell)
        network.run(list(single), rows)
        for protocol, outputs in single.items():
            within = WITHIN if protocol.dtype == self.own.dtype else WITHIN_BELOW_FLOAT32
            np.testing.assert_allclose(network.outputs(protocol, rows), outputs[rows], within, within, str(protocol))
        return len(single)


@dataclass(frozen=True)
class Answer:
    """The answer about a number.

    Attributes:
        truth: The protocol that gave it; empty for none.
        differs: Whether it is outside the 95 % interval of the stored value.
        verdict: The verdict of the truth.
        explained: Whether the number is said to be explained.
        passes: In evaluations.
    """

    truth: str
    differs: bool
    verdict: str
    explained: bool
    passes: float


def testbed(*words: str) -> str:
    """Runs a command of testbed in this process."""
    said, sys.argv = io.StringIO(), ["testbed", *words]
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        contextvars.copy_context().run(program.main)
    return said.getvalue()


class Asker:
    """Asks for the numbers of a checkpoint on one set of images.

    Args:
        folder: The folder of `explain_checkpoints.py`, which is the working directory.
        size: Number of images.
        options: Further options of `testbed explain`.
        say: Called with each row.
    """

    def __init__(self, folder: Path, size: int, options: Sequence[str], say: Callable[[str], None]) -> None:
        known = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
        self.known, self.size, self.options, self.say = known["sizes"][str(size)], size, options, say
        model = f"timm/{known['network']},{folder / FILE}"
        given = ["--image-size", f"{RESIZE}", f"{CROP}", "--mean", *map(str, MEAN), "--std", *map(str, STD)]
        given += ["--interpolation", "bilinear", "--class-order", "natural"]
        testbed("run", model, "--on", f"images-{size}", *given, "--as", NAME)
        self.setting = f"folder/images-{size}"
        shown = json.loads(testbed("show", NAME, self.setting, "--json"))
        self.value = next(
            100 * metric["value"] for metric in shown if (metric["metric"], metric["slice"]) == ("top1", "overall")
        )
        self.width = 100 * INTERVAL * float(np.sqrt(self.value / 100 * (1 - self.value / 100) / size))
        with np.load(folder / OUTPUTS) as outputs:
            rows, columns = self.known["rows"], sorted(range(world.CLASSES), key=str)  # as the folders are sorted
            Recorded.by_name = {name: outputs[name][rows][:, columns] for name in outputs}
        names = replace(Inputs.from_environment().but(data_root=Path()), own_names=own_names_of(None))
        with using(names), Store.open(None, "read") as store:
            checked = Recorded(EvaluatedCell.open(store, registry, NAME, self.setting)).check()
        stored = self.known["stored"]
        say(f"{size:,} images; stored {self.value:.2f}, by timm and torchvision alone {stored:.2f}")
        say(f"{checked} protocols give the recorded outputs\n")
        bench.ImageRunner = Recorded

    def answers(self, only: str) -> list[Answer]:
        """Asks for the numbers whose truth contains some words; ``none`` for the random ones."""
        columns = "truth", "published", "differs", "verdict of the truth", "what else gives it", "explained"
        self.say(f"| {' | '.join([*columns, 'passes, %', 'seconds'])} |\n|{'---|' * 8}")
        asked = [item for item in self.known["variants"].items() if only in item[0]]
        found = [self._answer(*item) for item in asked if abs(item[1] - self.value) >= 0.005]
        return found + [self._answer("", number) for number in self._random() if only in "none"]

    def _random(self) -> list[float]:
        random = np.random.default_rng(SEED)
        taken = [self.value, *self.known["variants"].values()]
        drawn = (round(float(self.value + shift), 2) for shift in random.uniform(-30, 4, 500))
        return [entry for entry in drawn if min(abs(entry - one) for one in taken) > APART][:RANDOM_NUMBERS]

    def _answer(self, truth: str, published: float) -> Answer:
        began = time.monotonic()
        given = ("--data-root", ".", "--published", f"{published:.2f}%", "--json", *self.options)
        told = json.loads(testbed("explain", NAME, self.setting, *given))
        verdicts = {
            " + ".join(f"{part['axis']}: {part['name']}" for part in variant["variants"]): variant["verdict"]
            for variant in told["variants"]
        }
        verdict = verdicts.get(truth, "not tried") if truth else ""
        differs, explained = abs(published - self.value) > self.width, bool(told["explained"])
        others = "; ".join(name for name, each in verdicts.items() if each == "gives it" and name != truth)
        words = truth or "none", f"{published:.2f}", "yes" if differs else "no", verdict, others
        passes = told["forward_passes"] / self.size
        numbers = f"{100 * passes:.0f}", f"{time.monotonic() - began:.0f}"
        self.say(f"| {' | '.join([*words, 'yes' if explained else 'no', *numbers])} |")
        return Answer(truth, differs, verdict, explained, passes)


def rates(answers: Sequence[Answer]) -> str:
    """Counts the verdicts of the truths: of all, of those that differ, and of these by a number of passes."""
    singles = [answer for answer in answers if answer.truth]
    lines = []
    for name, group in (
        ("all", singles),
        ("of values that differ", [answer for answer in singles if answer.differs]),
        ("of these, with images", [answer for answer in singles if answer.differs and answer.passes]),
    ):
        verdicts = [answer.verdict for answer in group]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
        found = [answer.passes for answer in group if answer.verdict == "gives it"]
        by = ", ".join(f"{sum(passes <= most for passes in found)} by {most:g}" for most in (1.5, 2, 2.5, 3, 4, 5))
        lines.append(f"{name}: {len(group)} asked, {counts}; found by passes of evaluations: {by}")
    random = [answer for answer in answers if not answer.truth]
    lines.append(f"{sum(answer.explained for answer in random)} of {len(random)} random numbers said to be explained")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, required=True, help="the number of images, of those in numbers.json")
    parser.add_argument("--only", default="", help="words of the truths that are asked; 'none' for the random numbers")
    parser.add_argument("--evaluations", type=float, help="most passes, of an evaluation; default as the command")
    options = parser.parse_args()
    os.chdir(options.folder)
    folder = Path.cwd()
    os.environ |= {"TESTBED_DB": f"sqlite:///{folder / 'store.db'}", "TESTBED_CACHE": str(folder / "cache")}
    most = [] if options.evaluations is None else ["--samples", str(int(options.evaluations * options.size))]
    asker = Asker(folder, options.size, most, lambda line: print(line, flush=True))
    asker.say(f"\n{rates(asker.answers(options.only))}")


if __name__ == "__main__":
    main()
