"""Timing two ways to do one thing in turn, so that their ratio holds while the machine's speed drifts."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Sequence

import click
import torch


def seconds(work: Callable[[], object], clock: str = "perf_counter") -> float:
    """The time of one call, by a clock of the module ``time``: the wall time, if no other is named."""
    now: Callable[[], float] = getattr(time, clock)
    start = now()
    work()
    return now() - start


def compare(what: str, ours: Callable[[], object], bare: Callable[[], object], repeats: int) -> float:
    """Prints the ratio of two wall times, ours over the bare one's: the median of pairs, and their range.

    Args:
        what: What is done.
        ours: The way of testbed.
        bare: The way without it.
        repeats: Counted pairs; one more goes before them, uncounted.
    """
    ours()
    bare()
    return tell(what, [(seconds(ours), seconds(bare)) for _ in range(repeats)])


def tell(what: str, pairs: Sequence[tuple[float, float]]) -> float:
    """Prints the ratio of pairs of times, ours over the other; returns the median."""
    ratios = [mine / other for mine, other in pairs]
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    click.echo(
        f"{what:58}  testbed {medians[0]:7.3f} s  bare {medians[1]:7.3f} s  ratio {statistics.median(ratios):5.2f}"
        f"  ({min(ratios):.2f} to {max(ratios):.2f}, {len(pairs)} pairs)"
    )
    return statistics.median(ratios)


def machine() -> str:
    """A line about where this ran."""
    devices = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return (
        f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} torch threads, {devices},"
        f" Python {platform.python_version()}, torch {torch.__version__}"
    )
