"""The output of ``--profile``: where the time of each pass went, and what limits it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from testbed.console.output import grid, say
from testbed.process.profiling import DATA_WORKERS, STAGES, WRITER

if TYPE_CHECKING:
    from testbed.execution.report import Times

_OTHER = "other"
_MUCH = 0.25  # the share of a stage that warrants a hint


def print_times(times: Sequence[Times]) -> None:
    """Prints a line for each pass, and lines for the concurrent work of data workers and the writer."""
    if not times:
        return
    cells: dict[tuple[str, str], str] = {}
    rows: list[str] = []
    for number, time in enumerate(times, start=1):
        before = "" if len(times) == 1 else f"{number}. "
        label = f"{before}{time.label}"
        own = {name: time.seconds.get(name, 0.0) for name in (*STAGES, _OTHER)}
        rows.append(label)
        cells[label, "total"] = _seconds(sum(own.values()))
        cells |= {(label, name): _seconds(value) for name, value in own.items() if value}
        for where in (DATA_WORKERS, WRITER):
            found = {name: time.seconds.get(f"{name} in {where}", 0.0) for name in STAGES}
            meanwhile = {name: value for name, value in found.items() if value}
            if meanwhile:
                row = f"   {before}{where}, meanwhile"
                rows.append(row)
                cells |= {(row, name): _seconds(value) for name, value in meanwhile.items()}
    columns = ["total", *(name for name in (*STAGES, _OTHER) if any((row, name) in cells for row in rows))]
    click.echo(grid(rows, columns, cells, "seconds", shutil.get_terminal_size().columns))
    if hint := _hint(times):
        say(hint)
    click.echo()


def _hint(times: Sequence[Times]) -> str:
    """Describes the bottleneck, and what helps."""
    own = {name: sum(time.seconds.get(name, 0.0) for time in times) for name in (*STAGES, _OTHER)}
    total = sum(own.values())
    if not total:
        return ""
    shares = {name: value / total for name, value in own.items()}
    reading = sum(shares[name] for name in ("read", "decode", "transform"))
    most = max(shares, key=lambda name: shares[name])
    told = f"Mostly {most} ({shares[most]:.0%})."
    if shares["wait"] > _MUCH:
        told += " The model waits for images: try more --workers, or --decoded-cache."
    elif reading > _MUCH:
        told += (
            f" Reading takes {reading:.0%}: --workers does it in other processes, --decoded-cache once for all models."
        )
    elif shares["store"] > _MUCH:
        told += " The model waits for the store: try a faster disk, or --payload-url."
    return told


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"
