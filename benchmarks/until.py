"""Compares the samples of ``testbed run --until`` with a fixed number chosen by somebody who knows the answer.

    python benchmarks/until.py [--orders 10]

Counts alone; nothing is timed. *Fixed* is the least number of samples drawn without replacement, looked at once, whose
95 % interval is as wide, for who knows the rate (or both models' rates) before; *ratio* is the interval that needs no
goal (prior over posterior, Waudby-Smith and Ramdas 2020), and the evidence of McNemar's pairs under all shares equally
likely. All look at the same numbers of samples.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.special import betaln
from scipy.stats import hypergeom, norm

from testbed.metrics.inference.sequential import ALPHA, EFFECTS, betting_interval
from testbed.runner.until import looks_of

Array = np.ndarray[Any, Any]
SIZE = 50_000


def ratio_interval(right: int, drawn: int, size: int) -> tuple[float, float]:
    """The rates whose hypergeometric probability of what was drawn is above α / (drawn + 1)."""
    numbers = np.arange(right, size - (drawn - right) + 1)
    kept = numbers[hypergeom.logpmf(right, size, numbers, drawn) > math.log(ALPHA / (drawn + 1))]
    return float(kept[0] / size), float(kept[-1] / size)


def first(scores: Array, decided: Callable[[Array], bool]) -> int:
    """The number of samples at the decision."""
    looks = looks_of(len(scores))
    return next((look for look in looks if decided(scores[:look])), len(scores))


def saved(taken: list[int]) -> float:
    """The percentage of samples that were not needed."""
    return float(100 * (1 - np.mean(taken) / SIZE))


def closeness(rate: float, half: float, orders: int, rng: np.random.Generator) -> str:
    """A line about a rate that is to be known ± half."""

    def close(low: float, high: float, seen: Array) -> bool:
        return bool(max(seen.mean() - low, high - seen.mean()) <= half)

    ours, ratio, wrong = [], [], 0
    for _ in range(orders):
        scores = rng.permutation((np.arange(SIZE) < rate * SIZE).astype(float))
        taken = first(scores, lambda seen: close(*betting_interval(seen, SIZE, (half,)), seen))
        wrong += abs(scores[:taken].mean() - scores.mean()) > half
        ours.append(taken)
        ratio.append(first(scores, lambda seen: close(*ratio_interval(int(seen.sum()), len(seen), SIZE), seen)))
    fixed = (norm.isf(ALPHA / 2) / half) ** 2 * rate * (1 - rate)
    fixed /= 1 + fixed / SIZE
    counts = f"{np.mean(ours):10,.0f} {np.mean(ratio):10,.0f} {fixed:10,.0f}"
    return f"± {100 * half:<4g} {100 * rate:5.0f} % {counts} {saved(ours):7.0f} % {wrong:6} of {orders}"


def comparison(differ: float, gain: float, orders: int, rng: np.random.Generator) -> str:
    """A line about two models that differ on a share of the samples, with a difference of their rates."""
    won, lost = round(SIZE * (differ + gain) / 2), round(SIZE * (differ - gain) / 2)
    ours, evidence, wrong = [], [], 0

    def better(seen: Array) -> bool:
        low, high = betting_interval((seen + 1) / 2, SIZE, tuple(effect / 2 for effect in EFFECTS))
        return low > 0.5 or high < 0.5

    def unequal(seen: Array) -> bool:
        b, c = int((seen > 0).sum()), int((seen < 0).sum())
        return bool((b + c) * math.log(2) + betaln(b + 1, c + 1) >= math.log(1 / ALPHA))

    for _ in range(orders):
        gains = rng.permutation(np.repeat([1.0, -1.0, 0.0], [won, lost, SIZE - won - lost]))
        taken = first(gains, better)
        wrong += gains[:taken].sum() <= 0 < gain
        ours.append(taken)
        evidence.append(first(gains, unequal))
    fixed = min(SIZE, ((norm.isf(ALPHA / 2) + norm.isf(0.2)) / gain) ** 2 * differ) if gain else SIZE
    fixed = fixed / (1 + fixed / SIZE)
    counts = f"{np.mean(ours):10,.0f} {np.mean(evidence):10,.0f} {fixed:10,.0f}"
    return f"{100 * differ:4.0f} % {100 * gain:5.1f} {counts} {saved(ours):7.0f} % {wrong:6} of {orders}"


def demo(goal: str, *models: str) -> str:
    """A line about real runs on 540 digits, from a store that is empty before."""
    with tempfile.TemporaryDirectory() as folder:
        words = [*models, "--on", "digits-rotated", "digits-c.brightness.3", "--until", goal, "--json"]
        command = [sys.executable, "-m", "testbed", "run", *words, "--db-url", str(Path(folder) / "results.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    cells = json.loads(done.stdout)["cells"]
    told = [f"{cell['eval_setting']} {cell['computed']} of {cell['population']['size']}" for cell in cells]
    return f"{goal}: {', '.join(told)}"


@click.command(help=__doc__)
@click.option("--orders", default=10, show_default=True, help="Random orders for each line.")
def main(orders: int) -> None:
    """Prints the tables."""
    rng = np.random.default_rng(0)
    click.echo(f"{'goal':6} {'rate':>7} {'--until':>10} {'ratio':>10} {'fixed':>10} {'saved':>9} {'wrong':>6}")
    for half in (0.005, 0.01, 0.02):
        for rate in (0.5, 0.76, 0.95):
            click.echo(closeness(rate, half, orders, rng))
    click.echo(f"\n{'differ':6} {'gain':>5} {'--until':>10} {'McNemar':>10} {'fixed':>10} {'saved':>9} {'wrong':>6}")
    for differ, gain in ((0.15, 0.005), (0.15, 0.01), (0.15, 0.02), (0.15, 0.04), (0.3, 0.02), (0.15, 0.0)):
        click.echo(comparison(differ, gain, orders, rng))
    click.echo("\nimages computed, 540 digits")
    for goal, models in (("4", ["digits-cnn"]), ("better:digits-mlp", ["digits-cnn"])):
        click.echo(demo(goal, *models))


if __name__ == "__main__":
    main()
