"""Writes the section about GPUs in benchmarks/results.md from the files that prove.py has written.

    python benchmarks/gpu/report.py [--write]

Reads ``results/*.json`` in the order of their names. A finding that several files have is that of the last one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "results.md"
BEGIN, END = "<!-- the GPU -->", "<!-- end of the GPU -->"
NOT_RUN = "Not run on a GPU."
LARGE = 100  # from here on, numbers are shown without a fraction

Finding = Mapping[str, Any]


def section(proofs: Sequence[Mapping[str, Any]]) -> str:
    """The section: the machines, a table of what was compared, one of speeds, and what was not run.

    Args:
        proofs: The contents of proof files that ran on a GPU, the oldest first.
    """
    if not proofs:
        return NOT_RUN
    found = newest(proofs)
    tables = [machines(proofs), compared(found), speeds(found), corruptions(found), absent(found)]
    return "\n\n".join(filter(None, tables))


def newest(proofs: Iterable[Mapping[str, Any]]) -> dict[str, Finding]:
    """The findings by name: the newest of each that is more than that it was not run."""
    found: dict[str, Finding] = {}
    for proof in proofs:
        for part in proof["parts"].values():
            for finding in part.get("found", []):
                known = found.get(finding["name"])
                if known is None or not ("not_run" in finding or "failed" in finding) or "not_run" in known:
                    found[finding["name"]] = {**finding, "commit": proof["commit"]}
    return found


def machines(proofs: Iterable[Mapping[str, Any]]) -> str:
    """A line for each proof."""
    lines = []
    for proof in proofs:
        note = f" ({proof['note']})" if proof.get("note") else ""
        machine = f"one {', '.join(proof['cards'])}, {proof['cores']} cores"
        versions = f"Python {proof['python']}, torch {proof['torch']}"
        lines.append(f"- {proof['date']}, commit {proof['commit']}: {machine}, {versions}{note}")
    return "\n".join(lines)


def compared(found: Mapping[str, Finding]) -> str:
    """A table of what was compared with the CPU, or should have held, and how it came out."""
    rows = [
        (name, figures(value), outcome(value)) for name, value in found.items() if "ok" in value or "failed" in value
    ]
    return table(("what", "figures", ""), rows)


def outcome(finding: Finding) -> str:
    """In a word."""
    if "failed" in finding:
        return "not finished"
    return "ok" if finding["ok"] else "differs"


SHOWN = {
    "tests": "tests",
    "cells": "cells",
    "samples": "samples",
    "predictions_that_differ": "predictions that differ",
    "largest_relative_to_scale": "logits differ, as a part of the largest one, by",
    "largest_logit_difference": "logits differ by",
    "largest_difference": "values differ by",
    "largest_metric_difference": "metrics differ by",
    "same_bits": "the same bits",
    "mib_more_after": "MiB more than before:",
    "chunks_stored_when_killed": "chunks stored when killed",
    "device_seconds": "seconds on the GPU",
    "cpu_seconds": "seconds on the CPU",
    "texts_a_second": "texts/s",
}


def figures(finding: Finding) -> str:
    """The figures that a reader looks for."""
    shown = []
    for key, words in SHOWN.items():
        value = finding.get(key)
        if isinstance(value, dict):
            shown.append(", ".join(f"{count} {what}" for what, count in value.items() if count))
        elif isinstance(value, bool):
            shown.append(words if value else f"not {words}")
        elif isinstance(value, float) and value < LARGE:
            shown.append(f"{words} {value:.2g}")
        elif value is not None:
            shown.append(f"{value:,.0f} {words}")
    return "; ".join(filter(None, shown))


def speeds(found: Mapping[str, Finding]) -> str:
    """A table of networks: images a second of the bare forward pass, of decoding, and of testbed."""
    rows = []
    for name, value in found.items():
        if "ratio" not in value:
            continue
        target = f"≥ {value['target']}" + ("" if value["met"] else ", missed") if "target" in value else ""
        rates = [f"{value[key]:,.0f}" if key in value else "" for key in ("forward", "decode", "testbed")]
        start = f"{value['start_seconds']:.0f} s" if "start_seconds" in value else ""
        rows.append((name, *rates, value.get("bound", ""), f"{value['ratio']:.2f}", target, start))
    names = ("images/s", "forward alone", "decoding alone", "testbed", "limited by", "ratio", "target", "start")
    return table(names, rows)


def corruptions(found: Mapping[str, Finding]) -> str:
    """A table of corruptions on the device."""
    rows = [
        (
            name,
            f"{value['ms_per_batch']:.2f}",
            f"{value['images_per_second']:,.0f}",
            str(value.get("synchronisations", "")),
        )
        for name, value in found.items()
        if value.get("ms_per_batch") is not None
    ]
    return table(("64 images of 224 × 224", "ms", "images/s", "waits for the GPU"), rows)


def absent(found: Mapping[str, Finding]) -> str:
    """The parts that were not run."""
    names = [name for name, value in found.items() if "not_run" in value]
    return f"Not run: {'; '.join(names)}." if names else ""


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; an empty string without rows."""
    if not rows:
        return ""
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows))


def results() -> Iterator[Mapping[str, Any]]:
    """The stored proofs."""
    for path in sorted((HERE / "results").glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def placed(page: str, text: str) -> str:
    """A page with the section in its place."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


@click.command()
@click.option("--write", is_flag=True, help="Put the section into benchmarks/results.md.")
def main(write: bool) -> None:
    """Prints the section."""
    text = section(list(results()))
    click.echo(text)
    if write:
        PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
