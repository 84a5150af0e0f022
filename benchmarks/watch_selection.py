"""Simulates how often `testbed watch` calls equally good checkpoints better or worse than the best before.

    python benchmarks/watch_selection.py [RUNS]

Each line is a kind of training run whose checkpoints are equally good (from the point where the curve is flat). Printed
are the shares of comparisons that are called worse or better at 5 %, of all and of the second half; how often they
would be without allowing for the choice of the best; and how far the best checkpoint's score, and the score that is
expected of it on other samples, are above its true mean on these samples.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.extensions.watching.selected import decline, expected_of_best
from testbed.metrics.inference.paired import SIGNIFICANT, compare

CHECKPOINTS, SEED = 100, 20_261_128
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of training run.

    Attributes:
        name: For people.
        n: Samples.
        draw: From a random generator and n to scores [checkpoints, n] and the true mean of each checkpoint on these.
        group: Samples that belong together.
    """

    name: str
    n: int
    draw: Callable[[np.random.Generator, int], tuple[Array, Array]]
    group: int = 1


def flat(chances: Array) -> Array:
    """The true mean of checkpoints that all have the same expected scores of samples, [n]."""
    return np.full(CHECKPOINTS, chances.mean())


def flips(share: float) -> Callable[[np.random.Generator, int], tuple[Array, Array]]:
    """Every checkpoint flips its own answers of an ability that all share; two of them differ on a share of samples."""

    def draw(random: np.random.Generator, n: int) -> tuple[Array, Array]:
        flipped = (1 - np.sqrt(1 - 2 * share)) / 2
        right = random.random(n) < 0.7
        scores = right ^ (random.random((CHECKPOINTS, n)) < flipped)
        return scores.astype(np.float64), flat(right + flipped * (1 - 2 * right))

    return draw


def borderline(random: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Each sample has its own chance to be answered right; half of the samples are certain."""
    chance = np.where(random.random(n) < 0.5, random.random(n) < 0.8, random.beta(2, 2, n))
    return (random.random((CHECKPOINTS, n)) < chance).astype(np.float64), flat(chance)


def drifting(random: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Neighbours are alike: each checkpoint answers a few samples anew."""
    chance = random.beta(3, 1.2, n)
    scores = np.empty((CHECKPOINTS, n))
    scores[0] = random.random(n) < chance
    for step in range(1, CHECKPOINTS):
        scores[step] = np.where(random.random(n) < 0.07, random.random(n) < chance, scores[step - 1])
    return scores, flat(chance)


def learning(random: np.random.Generator, n: int) -> tuple[Array, Array]:
    """The first third of the run learns, the rest is equally good."""
    level = np.minimum(np.arange(CHECKPOINTS) / (CHECKPOINTS / 3), 1.0)
    chance = random.beta(4, 1, n)
    mixed = 0.1 + level[:, None] * (chance - 0.1)
    return (random.random((CHECKPOINTS, n)) < mixed).astype(np.float64), mixed.mean(axis=1)


def losses(random: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Minus a loss with a long tail, in place of right or wrong."""
    own = random.lognormal(0, 1.2, n)
    noise = random.lognormal(0, 0.4, (CHECKPOINTS, n)) / np.exp(0.4**2 / 2)
    return -own * noise, flat(-own)


def frames(random: np.random.Generator, n: int) -> tuple[Array, Array]:
    """Frames of videos: five of six are right or wrong together."""
    chance = random.beta(3, 1, n // 6)
    together = np.repeat(random.random((CHECKPOINTS, n // 6)) < chance, 6, axis=1)
    alone = random.random((CHECKPOINTS, n)) < np.repeat(chance, 6)
    scores = np.where(random.random(n) < 5 / 6, together, alone)
    return scores.astype(np.float64), flat(chance)


KINDS = (
    Kind("differ on 8 %", 540, flips(0.08)),
    Kind("differ on 20 %", 540, flips(0.20)),
    Kind("differ on 10 %", 5_000, flips(0.10)),
    Kind("half of the samples certain", 1_000, borderline),
    Kind("few samples", 60, borderline),
    Kind("neighbours alike", 800, drifting),
    Kind("learning, then flat", 600, learning),
    Kind("losses", 400, losses),
    Kind("frames of videos", 1_200, frames, 6),
)


def simulate(kind: Kind, runs: int) -> list[str]:
    """The cells of a line."""
    random = np.random.default_rng(SEED)
    clusters = None if kind.group == 1 else np.arange(kind.n) // kind.group
    seen: list[tuple[bool, bool, bool, bool]] = []
    naive, expected = [], []
    for _ in range(runs):
        scores, truth = kind.draw(random, kind.n)
        means = scores.mean(axis=1)
        for step in range(1, CHECKPOINTS):
            best = int(means[:step].argmax())
            if truth[step] > truth[best] or means[step] == means[best]:
                seen += [] if truth[step] > truth[best] else [(step >= CHECKPOINTS // 2, False, False, False)]
                continue
            p = compare(scores[step], scores[best], clusters=clusters).p
            worse = means[step] < means[best]
            adjusted = decline(p, scores[step], scores[:step], best, clusters) if worse and step > 1 else p
            late = step >= CHECKPOINTS // 2
            seen.append((late, worse and adjusted < SIGNIFICANT, not worse and p < SIGNIFICANT, p < SIGNIFICANT))
        best = int(means.argmax())
        naive.append(means[best] - truth[best])
        expected.append(expected_of_best(scores, clusters) - truth[best])
    table = np.array(seen)
    late = table[table[:, 0]]
    shares = [*(table[:, (1, 2)].mean(axis=0)), late[:, 1:3].any(axis=1).mean(), table[:, 3].mean()]
    return [f"{100 * share:.1f} %" for share in shares] + [
        f"{100 * np.mean(naive):+.2f}",
        f"{100 * np.mean(expected):+.2f}",
    ]


def main() -> None:
    """Prints a Markdown table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"{runs} runs of {CHECKPOINTS} checkpoints each\n")
    print(
        "| checkpoints | samples | worse | better | second half, either | plain test, either | best above | expected |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        print(f"| {kind.name} | {kind.n:,} | {' | '.join(simulate(kind, runs))} |", flush=True)


if __name__ == "__main__":
    main()
