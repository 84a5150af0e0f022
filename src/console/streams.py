"""Output streams that keep control characters in stored texts from acting on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from testbed.visible import visible


class VisibleStream:
    """A text stream that spells out control characters.

    Attributes:
        stream: The wrapped stream, for code that moves the cursor on purpose.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text."""
        self.stream.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def visible_output() -> Iterator[None]:
    """Makes everything written to standard output and error meanwhile `visible`; a closed one takes it to nowhere."""
    kept = sys.stdout, sys.stderr
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = (VisibleStream(nowhere if stream is None else stream) for stream in kept)
        try:
            yield
        finally:
            sys.stdout, sys.stderr = kept


def terminal(stream: Any) -> Any:
    """The stream behind a `VisibleStream`, for bars and counters; their text must already be visible."""
    return stream.stream if isinstance(stream, VisibleStream) else stream


def show_in_place(text: str) -> None:
    """Replaces the current line of standard error by a text."""
    stream = terminal(sys.stderr)
    stream.write(f"\r{visible(text)}")
    stream.flush()
