"""Subtitles in SubRip's form (srt): the speech at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TIME = r"(\d{1,6}):(\d\d):(\d\d)[,.](\d{1,3})"
_SPAN = re.compile(rf"{_TIME}\s*-->\s*{_TIME}")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")


@dataclass(frozen=True)
class Subtitle:
    """A subtitle.

    Attributes:
        start: The time at which it appears, in milliseconds.
        end: The time at which it disappears.
        text: Its lines with spaces between, without tags.
    """

    start: int
    end: int
    text: str


def read_srt(text: str) -> list[Subtitle]:
    """The subtitles of a file, in its order; what is in no subtitle's form is left out."""
    subtitles: list[tuple[int, int, list[str]]] = []
    for line in text.splitlines():
        span = _SPAN.search(line)
        if span is not None:
            if subtitles and subtitles[-1][2] and subtitles[-1][2][-1].strip().isdigit():
                subtitles[-1][2].pop()  # the number of this subtitle
            subtitles.append((_milliseconds(span.groups()[:4]), _milliseconds(span.groups()[4:]), []))
        elif subtitles:
            subtitles[-1][2].append(line)
    return [Subtitle(start, end, _plain(lines)) for start, end, lines in subtitles]


def said_at(subtitles: Sequence[Subtitle], times: Sequence[int]) -> list[str]:
    """The first subtitle at each time that has one; the same one again where it is shown for longer."""
    texts = (
        next((subtitle.text for subtitle in subtitles if subtitle.start < time < subtitle.end), "") for time in times
    )
    return [text for text in texts if text.strip()]


def _milliseconds(parts: Sequence[str]) -> int:
    hours, minutes, seconds, rest = parts
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(rest.ljust(3, "0"))


def _plain(lines: Sequence[str]) -> str:
    return _TAG.sub("", " ".join("\n".join(lines).strip().splitlines()))
