"""Simulates how often `testbed watch` calls equally good checkpoints better or worse than the best before.

    python benchmarks/watch_selection.py [RUNS]

Each line is a kind of training run whose checkpoints are equally good (from the point where the curve is flat). Printed
are the shares of comparisons that are called worse or better at 5 %, of all and of the second half, with 95 % intervals
over the runs; how often they would be without allowing for the choice of the best; and how far the best checkpoint's
score, and the score that is expected of it on other samples, are above its true mean on these samples.
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
FIRST_RUN = 1000
EVERY = 5  # neighbours say much the same
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


def shares_of(scores: Array, truth: Array, clusters: Array | None, first: int) -> Array:
    """The numbers of comparisons of a run: all, worse, better; late, late and either; either by the plain test.

    Args:
        scores: Float array [checkpoints, n].
        truth: The true mean of each checkpoint.
        clusters: Integer array [n].
        first: The first of the compared checkpoints; of the others every `EVERY`-th is compared.
    """
    means = scores.mean(axis=1)
    seen = np.zeros(6)
    for step in range(first, CHECKPOINTS, EVERY):
        best = int(means[:step].argmax())
        if truth[step] > truth[best]:
            continue
        late = step >= CHECKPOINTS // 2
        p = 1.0 if means[step] == means[best] else compare(scores[step], scores[best], clusters=clusters).p
        plain, worse = p < SIGNIFICANT, means[step] < means[best]
        adjusted = decline(p, scores[step], scores[:step], best, clusters) if plain and worse and step > 1 else p
        called = worse and adjusted < SIGNIFICANT, not worse and plain  # `decline` is never below p
        seen += (1, called[0], called[1], late, late and any(called), plain)
    return seen


def share(count: Array, of: Array) -> str:
    """A share over all runs with its 95 % interval, in which a run is one draw."""
    mean = count.sum() / of.sum()
    error = np.sqrt(np.square(count - mean * of).sum() * len(of) / max(1, len(of) - 1)) / of.sum()
    return f"{100 * mean:.1f} [{max(0.0, 100 * (mean - 1.96 * error)):.1f}, {100 * (mean + 1.96 * error):.1f}] %"


def simulate(kind: Kind, runs: int) -> list[str]:
    """The cells of a line."""
    clusters = None if kind.group == 1 else np.arange(kind.n) // kind.group
    seen, naive, expected = [], [], []
    for run in range(runs):
        random = np.random.default_rng([SEED, FIRST_RUN + run, KINDS.index(kind)])
        scores, truth = kind.draw(random, kind.n)
        seen.append(shares_of(scores, truth, clusters, 1 + run % EVERY))
        best = int(scores.mean(axis=1).argmax())
        naive.append(scores[best].mean() - truth[best])
        expected.append(expected_of_best(scores, clusters) - truth[best])
    compared, worse, better, late, late_either, plain = np.array(seen).T
    shares = (worse, compared), (better, compared), (late_either, late), (plain, compared)
    return [share(*each) for each in shares] + [f"{100 * np.mean(naive):+.2f}", f"{100 * np.mean(expected):+.2f}"]


def main() -> None:
    """Prints a Markdown table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 75
    print(f"{runs} runs of {CHECKPOINTS} checkpoints each\n")
    print(
        "| checkpoints | samples | worse | better | second half, either | plain test, either | best above | expected |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in KINDS:
        print(f"| {kind.name} | {kind.n:,} | {' | '.join(simulate(kind, runs))} |", flush=True)


if __name__ == "__main__":
    main()
