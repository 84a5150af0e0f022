"""The text of a user's file as it was when Python ran it, which may differ from the file's current text.

A notebook stays open for days while its modules are edited. The text that was run stays in memory until the module is
reloaded or Python is restarted.
"""

from __future__ import annotations

import ast
import io
import linecache
import os
import time
import tokenize
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_texts: dict[str, list[str]] = {}  # by the names of files, the newest last
_unsure: set[str] = set()  # files that may have been edited between their import and that of testbed


def remember(file: str, late: bool = False) -> None:
    """Keeps the text of a file that is being run, or was run before tracing began and may have changed since."""
    try:
        with tokenize.open(file) as stream:
            text = stream.read()
        if late and os.stat(file).st_mtime >= _process_began():
            _unsure.add(file)
    except (OSError, SyntaxError, UnicodeDecodeError):
        return
    known = _texts.setdefault(file, [])
    if not late:
        _unsure.discard(file)
    if known[-1:] != [text]:
        known.append(text)


def lines(function: types.FunctionType) -> list[str]:
    """The lines of the file of a function, as they were when it was defined.

    Raises:
        OSError: If there are none, or other ones than those that it was defined by.
    """
    code = function.__code__
    texts = _texts.get(code.co_filename, ())
    if code.co_filename in _unsure and not any(_defines(text, code) for text in texts):
        raise OSError(f"{code.co_filename} was edited since it was imported; restart Python, or reload it")
    if texts:
        fitting = (text for text in reversed(texts) if len(texts) == 1 or _defines(text, code))
        return list(_split(next(fitting, texts[-1])))
    linecache.checkcache(code.co_filename)
    text_lines = linecache.getlines(code.co_filename, function.__globals__)
    if not text_lines:
        raise OSError("could not get source code")
    return text_lines


def text_of(path: str) -> str:
    """The text of a file as it was run last, or as it is now if it was not run; raises OSError if it cannot be read."""
    known = _texts.get(path)
    return known[-1] if known else Path(path).read_text(encoding="utf-8")


def newest(path: str) -> str:
    """The text of a file, or of a cell of a notebook, as it was run last or as it is now; empty if there is none."""
    known = _texts.get(path)
    return known[-1] if known else on_disk(path) or "".join(linecache.getlines(path))


def on_disk(path: str) -> str:
    """The text of a file as it is now; empty if it cannot be read."""
    try:
        with tokenize.open(path) as stream:
            return stream.read()
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""


@lru_cache(maxsize=64)
def _split(text: str) -> tuple[str, ...]:
    return tuple(io.StringIO(text))


def _defines(text: str, code: types.CodeType) -> bool:
    """Checks whether a text compiles to a code object, among others."""
    return any(other == code for other in _codes(text))


@lru_cache(maxsize=64)
def _codes(text: str) -> tuple[types.CodeType, ...]:
    try:
        return tuple(_within(compile(ast.parse(text), "", "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return ()


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _within(const)


@lru_cache(maxsize=1)
def _process_began() -> float:
    """Returns when this process began, in seconds since the epoch; now, if the system does not report it."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return time.time()
