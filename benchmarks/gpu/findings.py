"""The findings of one part of the proof: kept in a file after each, so that a part that is killed loses none."""

from __future__ import annotations

import json
import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

LONGEST = 4000  # characters of a traceback that are kept: its end says most


class Findings:
    """A list of findings in a JSON file.

    A finding has a ``name`` and ``seconds``; where something was compared, ``ok``; where something was measured, its
    figures, with ``target`` and ``met`` where the project has set one; where something could not be done here,
    ``not_run`` with the reason; and ``failed`` with a traceback where it broke.

    Args:
        path: The file.
        device: Such as ``"cuda:0"`` or ``"cpu"``.
        tiny: Whether everything is as small as possible, to see that it runs at all.
        seconds: The time that the part has; see `left`.
    """

    def __init__(self, path: Path, device: str, tiny: bool, seconds: float) -> None:
        self.path = path
        self.device = device
        self.tiny = tiny
        self._end = time.monotonic() + seconds
        self.found: list[dict[str, Any]] = []
        self._write()

    @property
    def on_gpu(self) -> bool:
        """True if the part runs on a GPU."""
        return self.device.startswith("cuda")

    @property
    def left(self) -> float:
        """The seconds that are left for the part; what would take longer is better left out, and said."""
        return self._end - time.monotonic()

    def add(self, name: str, **figures: Any) -> None:
        """Keeps a finding, and prints it."""
        self.found.append({"name": name, **figures})
        self._write()
        shown = {key: value for key, value in figures.items() if key != "failed"}
        print(f"{name}: {json.dumps(shown, default=str)}", flush=True)
        if "failed" in figures:
            print(figures["failed"], flush=True)

    def not_run(self, name: str, reason: str) -> None:
        """Keeps that something could not be done here, and why."""
        self.add(name, not_run=reason)

    @contextmanager
    def trying(self, name: str) -> Iterator[dict[str, Any]]:
        """Times a block and keeps what it puts into the dictionary; an exception is kept too, and goes no further."""
        figures: dict[str, Any] = {}
        began = time.monotonic()
        try:
            yield figures
        except Exception:
            figures["failed"] = traceback.format_exc()[-LONGEST:]
        self.add(name, seconds=round(time.monotonic() - began, 3), **figures)

    def _write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.found, indent=1, default=str), encoding="utf-8")
        os.replace(new, self.path)


def part(work: Callable[[Findings], None]) -> click.Command:
    """The command of a part: ``--device``, ``--tiny``, ``--seconds`` and ``--out``, which `prove.py` gives.

    Args:
        work: Does the part; what it raises is kept as a finding.
    """

    @click.command(help=work.__doc__)
    @click.option("--device", default="cpu", show_default=True)
    @click.option("--tiny", is_flag=True, help="Everything as small as possible.")
    @click.option("--seconds", default=300.0, show_default=True, help="The time that it has.")
    @click.option("--out", type=click.Path(path_type=Path), default=Path("part.json"), show_default=True)
    def command(device: str, tiny: bool, seconds: float, out: Path) -> None:
        findings = Findings(out, device, tiny, seconds)
        try:
            work(findings)
        except Exception:
            findings.add("the part itself", failed=traceback.format_exc()[-LONGEST:])

    return command
