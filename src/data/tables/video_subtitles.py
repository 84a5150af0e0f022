"""Subtitles of videos in the forms of several benchmarks, as a column of the rows that show them.

Texts that stand between frames are a list in JSON: for each frame the texts before it, and at the end those after all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.data.video_frames import SelectedFrames

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


Columns = Mapping[str, str]


@dataclass(frozen=True)
class SubtitleForm:
    """A form of subtitles.

    Attributes:
        said: The column from the text of the file, the frames and the row.
        folder: The folder of the files; empty if the column ``subtitle_path`` names it.
        optional: True if a video without a file is a video in which nothing is said.
    """

    said: Callable[[str, SelectedFrames, Columns], str]
    folder: str = ""
    optional: bool = True


def at_frames(text: str, frames: SelectedFrames, row: Columns) -> str:
    """Returns the words at the time of each frame (Video-MME, WorldSense): a file in SubRip's form."""
    return "\n".join(said_at(read_srt(text), frames.times))


def before_frames(text: str, frames: SelectedFrames, row: Columns) -> str:
    """Each subtitle between the frames before and after its middle, if it is shown with one (LongVideoBench)."""
    times = [number / frames.rate for number in frames.numbers]
    offset, duration = float(row.get("starting_timestamp_for_subtitles", 0)), float(row.get("duration", 0))
    places: list[list[str]] = [[] for _ in range(len(times) + 1)]
    place = 0
    for subtitle in json.loads(text):
        start, end, said = _span(subtitle, duration)
        start, end = start - offset, end - offset
        middle = (start + end) / 2
        while place < len(times) and times[place] <= middle:
            place += 1
        if end - start < 1:
            start, end = middle - 0.5, middle + 0.5
        if any(start < time < end for time in times):
            places[place].append(f"{said}\n")
    return json.dumps(places, ensure_ascii=False)


def _span(subtitle: Mapping[str, Any], duration: float) -> tuple[float, float, str]:
    """Returns begin and end in seconds, and the text; an end that is not a fraction is that of the video."""
    if "timestamp" in subtitle:
        start, end = subtitle["timestamp"]
        return float(start), end if isinstance(end, float) else duration, str(subtitle["text"])
    return _seconds(subtitle["start"]), _seconds(subtitle["end"]), str(subtitle["line"])


def _seconds(time: str) -> float:
    hours, minutes, seconds = time.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def all_words(text: str, frames: SelectedFrames, row: Columns) -> str:
    """All words (Video-MME-v2): a file with a word and its times in each line, in JSON."""
    return " ".join(str(word["text"]) for word in _words(text))


def words_after_frames(text: str, frames: SelectedFrames, row: Columns) -> str:
    """After each frame what is said until the next one (Video-MME-v2, interleaved)."""
    words = _words(text)
    times = [number / frames.rate for number in frames.numbers]
    places: list[list[str]] = [[]]
    for start, end in zip(times, [*times[1:], frames.total / frames.rate], strict=True):
        said = " ".join(str(word["text"]) for word in words if word["end_time"] >= start and word["start_time"] < end)
        places.append([f"[Subtitle {start:.2f}s - {end:.2f}s]: {said}"] if said else [])
    return json.dumps(places, ensure_ascii=False)


def _words(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


# A table's argument `subtitles` → the form.
FORMS: Mapping[str, SubtitleForm] = {
    "at frames": SubtitleForm(at_frames),
    "before frames": SubtitleForm(before_frames, "subtitles", optional=False),
    "all words": SubtitleForm(all_words),
    "after frames": SubtitleForm(words_after_frames),
}
