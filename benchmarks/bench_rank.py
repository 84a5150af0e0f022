"""Testing all pairs of models of a ranking against a loop over the pairs, for scores of 0 and 1 and for others.

python benchmarks/bench_rank.py [--models 200] [--samples 50] [--repeats 3]
"""

from __future__ import annotations

from itertools import combinations

import click
import numpy as np
from paired import compare, machine
from scipy.stats import binomtest

from testbed.metrics.inference.paired import RESAMPLES
from testbed.metrics.inference.ranks import pair_p_values


def generator() -> np.random.Generator:
    """The same random numbers each time."""
    return np.random.Generator(np.random.Philox(0))


def mcnemar_loop(scores: np.ndarray) -> list[float]:
    """McNemar's exact test, pair by pair."""
    found = []
    for one, other in combinations(scores.T, 2):
        first, second = int((one > other).sum()), int((one < other).sum())
        found.append(binomtest(first, first + second).pvalue if first + second else 1.0)
    return found


def signs_loop(scores: np.ndarray) -> list[float]:
    """The share of random signs with as large a sum, pair by pair; the signs are the same for all pairs."""
    signs = 2 * generator().integers(2, size=(RESAMPLES, len(scores))) - 1.0
    return [
        ((np.abs(signs @ (one - other)) >= abs((one - other).sum())).sum() + 1) / (RESAMPLES + 1)
        for one, other in combinations(scores.T, 2)
    ]


@click.command()
@click.option("--models", default=200, show_default=True)
@click.option("--samples", default=50, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(models: int, samples: int, repeats: int) -> None:
    """Prints the ratio for each kind of score."""
    click.echo(machine())
    drawn = generator().random((samples, models))
    right = (drawn < np.linspace(0.2, 0.9, models)).astype(float)
    for kind, scores, loop in (("0 and 1", right, mcnemar_loop), ("others", drawn, signs_loop)):
        what = f"scores of {kind}, {models} models, {samples} samples"
        compare(what, lambda s=scores: pair_p_values([s], generator()), lambda s=scores, f=loop: f(s), repeats)


if __name__ == "__main__":
    main()
