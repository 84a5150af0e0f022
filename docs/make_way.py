"""Writes the way of a cell in CONTRIBUTING.md: `python docs/make_way.py`.

One cell, digits-logreg on the digits, is evaluated in this process, from the command to the moment when its metrics are
committed. Recorded are the functions that run in `BOXES`, in the order in which a file is first called. A function does
not count while a module is imported: that is how definitions are registered, once in a process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
COMMAND = ("run", "digits-logreg", "--on", "digits", "--executor", "inline", "--limit", "20")
LIBRARIES = ("torch", "torchvision.transforms", "sklearn.linear_model", "scipy.stats", "sqlalchemy.orm")
LAST = "Evaluations.complete"  # commits the metrics of a cell
# In one process, the methods of this channel stand for the messages of workers to the run.
MESSAGES = "InlineChannel."
LOG = "_Lines.emit"  # hands a log line over, to whatever shows the progress; there may be one on a loaded machine
# Box → packages.
BOXES: Mapping[str, Sequence[str]] = {
    "command": ("src/cli", "src/console", "src/runner"),
    "plan": ("src/planning", "src/tasks"),
    "passes": ("src/graph", "src/execution"),
    "workers": ("src/workers",),
    "scores": ("src/scoring",),
    "store": ("db",),
}
_TABLE = re.compile(r"\| box \| files, in the order in which a cell passes them \|\n\|---\|---\|\n(\|.*\n)*")


class Way(NamedTuple):
    """What was recorded.

    Attributes:
        files: The files in the boxes, in the order in which a function of each was first called.
        others: The number of testbed's other files with functions that ran.
        calls: Pairs of packages in the boxes, one of which called the other directly.
    """

    files: list[str]
    others: int
    calls: set[tuple[str, str]]


class Recorder:
    """Records which files' functions run, as the profile function of all threads."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.calls: set[tuple[str, str]] = set()
        self.ended = False
        self._seen: set[tuple[CodeType | None, CodeType]] = set()  # calls that need not be looked at again

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Called by Python for each call and return."""
        if event == "call":
            call = (None if frame.f_back is None else frame.f_back.f_code, frame.f_code)
            if not self.ended and call not in self._seen and not self._is_import(frame):
                self._seen.add(call)
                self._record(*call)
        elif event == "return" and frame.f_code.co_qualname == LAST:
            self.ended = True

    def _record(self, caller: CodeType | None, called: CodeType) -> None:
        file, origin = _file(called), caller and _file(caller)
        if file is None or not called.co_flags & inspect.CO_OPTIMIZED:
            return
        self.files.setdefault(file)
        pair = package(origin or ""), package(file)
        handed_over = called.co_qualname.startswith(MESSAGES) or (caller is not None and caller.co_qualname == LOG)
        if None not in pair and pair[0] != pair[1] and not handed_over:
            self.calls.add((str(pair[0]), str(pair[1])))

    @staticmethod
    def _is_import(frame: FrameType) -> bool:
        """Whether a function of testbed is called by a module that is being imported."""
        if _file(frame.f_code) is None:
            return False
        outer = frame.f_back
        while outer is not None:
            if outer.f_code.co_name == "<module>" and _file(outer.f_code) is not None:
                return True
            outer = outer.f_back
        return False


def package(file: str) -> str | None:
    """The package in the boxes that a file belongs to; None if there is none."""
    return next((name for names in BOXES.values() for name in names if file.startswith(f"{name}/")), None)


def box(file: str) -> str:
    """The box of a file."""
    return next(name for name, packages in BOXES.items() if package(file) in packages)


@functools.cache
def _file(code: CodeType) -> str | None:
    """The file of testbed that code is from, relative to the repository."""
    if not code.co_filename.startswith(f"{ROOT}{os.sep}"):
        return None
    file = Path(code.co_filename).relative_to(ROOT).as_posix()
    return file if file.startswith(("src/", "db/", "extensions/", "plotting/")) else None


def trace() -> Way:
    """Evaluates the cell, and records its way; a process can do so once, before it imports testbed's commands."""
    from testbed.cli.start import main as start

    for name in LIBRARIES:  # whose functions do not count, and of which importing calls millions
        importlib.import_module(name)
    recorder, before = Recorder(), (sys.argv, os.getcwd())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.argv = ["testbed", *COMMAND, "--db-url", str(Path(folder) / "way.db")]
        threading.setprofile(recorder)
        sys.setprofile(recorder)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as shown:
                start()
        except SystemExit as end:
            if end.code:
                sys.exit(shown.getvalue())
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            sys.argv = before[0]
            os.chdir(before[1])
    assert recorder.ended
    files = [file for file in recorder.files if package(file) is not None]
    return Way(files, len(recorder.files) - len(files), recorder.calls)


def table(files: Sequence[str]) -> str:
    """The table, as Markdown."""
    rows = []
    for name, packages in BOXES.items():
        cells = []
        for each in packages:
            own = [file.removeprefix(f"{each}/") for file in files if package(file) == each]
            cells.append(f"`{each}/`: {', '.join(own)}")
        number = sum(box(file) == name for file in files)
        rows.append(f"| **{name}** ({number}) | {'<br>'.join(cells)} |")
    return "\n".join(["| box | files, in the order in which a cell passes them |", "|---|---|", *rows, ""])


def written() -> set[str]:
    """The files in the table of the page."""
    found = _TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    packages = re.findall(r"`([\w/]+)/`: ([^<|]*)", found.group())
    return {f"{name}/{file.strip()}" for name, files in packages for file in files.split(",")}


def main() -> None:
    """Writes the page; with ``--json``, prints what was recorded instead."""
    way = trace()
    if "--json" in sys.argv:
        print(json.dumps({"files": way.files, "others": way.others, "calls": sorted(way.calls)}))
        return
    page = PAGE.read_text(encoding="utf-8")
    assert _TABLE.search(page)
    PAGE.write_text(_TABLE.sub(lambda _: table(way.files), page), encoding="utf-8")
    print(f"{len(way.files)} files in the boxes, {way.others} others")


if __name__ == "__main__":
    main()
