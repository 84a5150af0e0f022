"""The progress of a run: bars in a terminal, lines elsewhere, and a log file for other programs to read."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from testbed import __version__
from testbed.console.streams import terminal
from testbed.errors import TestbedError, message_of
from testbed.execution.progress import LINE_SECONDS, Count, Counting
from testbed.redaction import redacted_values

if TYPE_CHECKING:
    from testbed.execution.progress import Progress
    from testbed.execution.report import Report
    from testbed.graph.options import RunOptions


def command_progress(options: RunOptions) -> Progress:
    """Returns the progress reporter for a run with these options, on stderr."""
    from testbed.execution.progress import LineProgress, RichProgress

    if not sys.stderr.isatty() or options.progress_interval is not None:
        return LineProgress(sys.stderr, options.progress_interval)
    from rich.console import Console

    return RichProgress(Console(file=terminal(sys.stderr)))


class LogFile(Counting):
    """Writes the events of a run to a file.

    Each line has a time (UTC) and an event: ``begun``, ``pass``, ``progress``, ``note``, ``cell`` or ``ended``. A full
    disk ends the log, not the run.

    Args:
        file: Unbuffered binary file, opened for appending.
        name: Display name of the file.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        super().__init__()
        self._file = file
        self._name = name
        self._lock = threading.Lock()  # cells are finished in a separate thread
        self._broken = False
        self._ended: dict[str, Any] = {"outcome": "failed"}

    def write(self, event: str, **fields: Any) -> None:
        """Writes a line."""
        told = {"time": datetime.now(UTC).isoformat(), "event": event, **redacted_values(fields)}
        line = json.dumps(told, ensure_ascii=False)
        with self._lock:
            if self._broken:
                return
            try:
                self._file.write(f"{line}\n".encode("utf-8", "backslashreplace"))
            except OSError as error:
                self._broken = True
                click.echo(f"the log file {self._name} ends here: {error.strerror or error}", err=True)

    def begun(self, pass_id: int, count: Count) -> None:
        """Logs that a pass begins, or becomes longer."""
        self.write("pass", **{"pass": pass_id}, label=count.label, unit=count.unit, to_do=count.total)

    def advanced(self, pass_id: int, count: Count, before: int) -> None:
        """Logs progress every ten seconds, and when a pass ends."""
        if (count.is_complete and count.shown != before) or time.monotonic() - count.told >= LINE_SECONDS:
            count.told = time.monotonic()
            per_second = None if count.rate is None else round(count.rate, 1)
            self.write("progress", **{"pass": pass_id}, done=count.shown, of=count.total, per_second=per_second)

    def note(self, text: str) -> None:
        """Logs a message."""
        self.write("note", text=text)

    def ended(self, model: str, setting: str, status: str, reason: str) -> None:
        """Logs the end of a cell."""
        super().ended(model, setting, status, reason)
        self.write("cell", model=model, eval_setting=setting, status=status, reason=reason or None)

    def report(self, report: Report) -> None:
        """Stores how the run ended; written when the file is closed."""
        outcome = "interrupted" if report.interrupted else "complete" if report.ok else "incomplete"
        self._ended = {"outcome": outcome, "cells": dict(Counter(each.status for each in report.outcomes))}

    def close_with(self, error: BaseException | None) -> None:
        """Writes the last line, with the exception that ended the program, if any."""
        if error is not None and not isinstance(error, SystemExit):
            self._ended["error"] = message_of(error) or type(error).__name__
        self.write("ended", **self._ended)


@contextmanager
def log_file(path: Path | None, models: Sequence[str], settings: Sequence[str]) -> Iterator[LogFile | None]:
    """Opens the log file of a run, and closes it however the run ends.

    Args:
        path: The file; None for no log file.
        models: The models of the run.
        settings: The eval settings.

    Raises:
        TestbedError: If it cannot be written.
    """
    if path is None:
        yield None
        return
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise TestbedError(f"--log-file {path} cannot be written: {error.strerror or error}") from error
    with file:
        log = LogFile(file, str(path))
        about = {"machine": platform.node(), "process": os.getpid(), "testbed": __version__}
        log.write("begun", models=list(models), eval_settings=list(settings), **about)
        try:
            yield log
        except BaseException as error:
            log.close_with(error)
            raise
        log.close_with(None)
