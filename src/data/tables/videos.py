"""Tables of questions about videos: the pictures of a row are frames of its video."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from testbed.data.content import MISSING, ContentDigests
from testbed.data.rows import Picture, Row
from testbed.data.tables.frame_lists import FrameListSource
from testbed.data.tables.index import TableIndex
from testbed.data.tables.pictures import picture_file, read_picture
from testbed.data.tables.source import TableSource
from testbed.data.tables.video_subtitles import FORMS
from testbed.data.video_frames import RENDERING, Frames, SelectedFrames, decoder, segments, shown
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes
from testbed.inputs import ENV_LMU_DATA
from testbed.paths import expanded, lmu_data_root

VIDEO, VIDEO_PATH, SUBTITLE_PATH = "video", "video_path", "subtitle_path"
SAMPLED_FPS = "sampled_fps"  # a column of rows: the number of shown frames for each second
SUBTITLES = "subtitles"  # a column of rows: the speech while their frames are shown
PREFIX, SUFFIX = "prefix", "suffix"  # columns: the folder of the video, and what follows its name
START, END, BOUND = "start", "end", "bound"  # columns: the part of the video that a question is about (MVBench)
MAX_SUBTITLES = 1 << 24  # bytes
_FRAME_FOLDER, _FOLDER_RATE = "frame", 3.0  # MVBench's data_type of folders with numbered frames, and their fps
_ENDINGS = (".mp4", ".mov", ".mkv", ".webm", ".avi")  # of a column `video` that is a path
_TRUE = ("True", "true", "1", "1.0")


class VideoSource(TableSource):
    """The rows of a table with a column ``video``.

    Args:
        frames: The frames of each video that are shown.
        name: The data set's name.  [default: that of the file]
        subtitles: The form of subtitles, a name in `FORMS`, with which rows get a column `SUBTITLES`; True is
            ``"at frames"``.
        **options: See `TableSource`. ``pictures`` is the folder that the columns ``video_path`` and ``subtitle_path``
            are relative to; nothing outside it is read. A row without ``video_path`` has the video ``video`` in the
            folder ``prefix``, with ``suffix`` after its name; without that too, ``video/VIDEO.mp4``, or the path
            ``video`` if it ends like a video's.
            [default: ``videos/NAME`` beside the table if it is there, else the table's folder]

    In a row without ``answer``, ``correct_choice``, which counts options from 0, or ``mc_answer`` is the answer.

    Raises:
        MissingExtraError: If PyAV is not installed.
        DataError: As `TableSource`.
    """

    def __init__(
        self, path: Path, frames: Frames, name: str | None = None, subtitles: bool | str = False, **options: Any
    ) -> None:
        self.frames = frames
        self.subtitles = subtitles
        self._form = FORMS["at frames" if subtitles is True else subtitles] if subtitles else None
        self.decoder = decoder(f"the table {path.name} of videos")
        folder = path.parent / "videos" / (name or path.stem)
        options.setdefault("pictures", folder if folder.is_dir() else path.parent)
        super().__init__(path, name, **options)
        rows = zip(self.ids, self.targets, strict=True)
        self.groups = [row.get(VIDEO, row.get(VIDEO_PATH, own)) for own, row in rows]

    def row(self, position: int) -> Row:
        """The row at a position, with the frames of its video.

        Raises:
            SampleError: If the row is faulty, or its video or subtitles cannot be read.
        """
        row, where = super().row(position), self._where(position)
        if self._in_folder(position):
            return replace(row, pictures=self._folder_frames(position))
        frames = shown(self._video(position), self.frames, where, self._clip(position))
        shows = {SAMPLED_FPS: f"{self.frames.fps or len(frames.numbers) * frames.rate / frames.total:.2f}"}
        shows |= {SUBTITLES: self._said(position, frames)} if self.subtitles else {}
        return replace(row, pictures=frames.pictures, columns={**row.columns, **shows})

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each row's columns, of its video and subtitles, the frames that are shown, and the decoder."""
        how = [self.frames.spec(), self.decoder, RENDERING, self.subtitles]
        digests = []
        names = [[self._below(name) for name in self._names(position)] for position in positions]
        known = ContentDigests(self.pictures).digests(files := sorted({name for own in names for name in own if name}))
        content = dict(zip(files, known, strict=True))
        for position, own in zip(positions, names, strict=True):
            marks = [content.get(name, MISSING) for name in own]
            what = [self.targets[position], marks, how, self._faults[position]]
            digests.append(digest_bytes(json.dumps(what, sort_keys=True).encode()))
        return digests

    def _fill(self, index: TableIndex, kept: Sequence[int], cells: Sequence[Sequence[str]]) -> None:
        super()._fill(index, kept, cells)
        for row in self.targets:
            _add_answer(row)

    def _names(self, position: int) -> list[str]:
        """The files that a row names: its video, and its subtitles if they are shown."""
        if self._in_folder(position):
            return self._numbered(position)
        said = self.targets[position].get(SUBTITLE_PATH, "")
        return [self._video_name(position), *([self._subtitle_name(said)] if self.subtitles and said else [])]

    def _video_name(self, position: int) -> str:
        """The path of a row's video, or of the folder with its frames; empty if the row names none."""
        row: dict[str, str] = self.targets[position]
        if VIDEO_PATH in row or VIDEO not in row:
            return row.get(VIDEO_PATH, "")
        if row[VIDEO].lower().endswith(_ENDINGS) and PREFIX not in row:
            return row[VIDEO]
        return f"{row[PREFIX]}/{row[VIDEO]}{row.get(SUFFIX, '')}" if PREFIX in row else f"video/{row[VIDEO]}.mp4"

    def _subtitle_name(self, said: str) -> str:
        return f"{self._form.folder}/{said}" if self._form is not None and self._form.folder else said

    def _clip(self, position: int) -> tuple[float, float] | None:
        """The seconds between which frames are taken; None for the whole video.

        Raises:
            SampleError: If the row bounds the video, and its columns ``start`` and ``end`` are not numbers.
        """
        row = self.targets[position]
        if self.frames.rule != "segments" or row.get(BOUND) not in _TRUE:
            return None
        try:
            return float(row.get(START, "")), float(row.get(END, ""))
        except ValueError:
            raise SampleError(f"{self._where(position)}: {START} and {END} are not numbers of seconds") from None

    # Folders with a file for each frame (MVBench's episodic reasoning) ------------------------------------------------

    def _in_folder(self, position: int) -> bool:
        return self.frames.rule == "segments" and self.targets[position].get("data_type") == _FRAME_FOLDER

    def _numbered(self, position: int) -> list[str]:
        """The paths of the frames that are chosen, which count from 1; empty if there are none."""
        name = self._video_name(position)
        try:
            folder = Path(os.path.realpath(self.pictures / name))
            inside = folder.is_relative_to(os.path.realpath(self.pictures))
            total = len(os.listdir(folder)) if inside else 0
            numbers = segments(self.frames.count, 1, total, _FOLDER_RATE, self._clip(position)) if total else []
        except (OSError, ValueError, SampleError):
            return []
        return [f"{name}/{number:05d}.jpg" for number in numbers]

    def _folder_frames(self, position: int) -> tuple[Picture, ...]:
        self._clip(position)
        names, where = self._numbered(position), self._where(position)
        if not names:
            raise SampleError(f"{where}: {self._video_name(position)} in {self.pictures} is not a folder of frames")
        return tuple(read_picture(self.pictures, name, where) for name in names)

    def _below(self, name: str) -> str:
        """A file's path below the folder; empty if it cannot be read."""
        try:
            path = picture_file(self.pictures, name, VIDEO, None, "videos")
        except SampleError:
            return ""
        return str(path.relative_to(os.path.realpath(self.pictures)))

    def _video(self, position: int) -> Path:
        name, where = self._names(position)[0], self._where(position)
        if not name:
            raise SampleError(f"{where}: the row names no video")
        return picture_file(self.pictures, name, where, None, "videos")

    def _said(self, position: int, frames: SelectedFrames) -> str:
        """Returns the column of subtitles; an empty one if the video has none and need not have any."""
        names, where, form = self._names(position)[1:], self._where(position), self._form
        if form is None or not names:
            return ""
        if form.optional and not os.path.lexists(self.pictures / names[0]):
            return ""
        path = picture_file(self.pictures, names[0], where, MAX_SUBTITLES, "videos")
        try:
            return form.said(path.read_text(encoding="utf-8-sig"), frames, self.targets[position])
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise SampleError(f"{where}: the subtitles {path.name} cannot be read: {error}") from error


def _add_answer(row: dict[str, str]) -> None:
    """Adds the letter of the right option, where the row has its number (LongVideoBench), or another name for it."""
    if "answer" not in row and "mc_answer" in row:
        row["answer"] = row["mc_answer"]
    number = row.get("correct_choice", "").removesuffix(".0")
    if "answer" not in row and number.isdecimal() and int(number) < len(ascii_uppercase):
        row["answer"] = ascii_uppercase[int(number)]


class VideoTable:
    """A table of questions about videos as a data set.

    Args:
        name: Its name, ``NAME.tsv`` in the folder of tables or in ``videos/NAME`` there, or the path of a file that
            ends with ``.tsv``.
        frames: The frames of each video that are shown.
        subtitles: Adds subtitles to rows; see `VideoSource`.
        tsv_reading: See `TableSource`.
        required: See `TableSource`.
        origin: The origin of the table, for messages.
        lists: True if rows name the files of frames, and not videos; see `FrameListSource`.
    """

    def __init__(
        self,
        name: str,
        frames: Frames,
        subtitles: bool | str = False,
        tsv_reading: str = "text",
        required: Sequence[str] = (VIDEO, "question"),
        origin: str = "",
        lists: bool = False,
    ) -> None:
        self.name = name
        self.lists = lists
        self.frames = frames
        self.subtitles = subtitles
        self.tsv_reading = tsv_reading
        self.required = tuple(required)
        self.origin = origin

    def spec(self) -> dict[str, Any]:
        """Returns what identifies the table, the way it is read, and the frames that are shown."""
        shows = {"frames": self.frames.spec(), "subtitles": self.subtitles}
        return {"table": self.name, "tsv_reading": self.tsv_reading, **shows}

    def open(self) -> TableSource:
        """The rows; raises DataError if the table is missing or not in the format."""
        options: dict[str, Any] = {"tsv_reading": self.tsv_reading, "required": self.required}
        reader: Callable[..., TableSource] = (
            FrameListSource if self.lists else partial(VideoSource, subtitles=self.subtitles)
        )
        if self.name.endswith(".tsv"):
            return reader(expanded(self.name), self.frames, **options)
        root = lmu_data_root()
        places = [root / f"{self.name}.tsv", root / "videos" / self.name / f"{self.name}.tsv"]
        file = next((path for path in places if path.is_file()), None)
        if file is None:
            raise DataError(
                f"the table {self.name} is not there: looked for {places[0]} and {places[1]} (--lmu-data DIR, or"
                f" ${ENV_LMU_DATA}){'; ' if self.origin else ''}{self.origin}; nothing is downloaded"
            )
        if self.lists and (folder := root / "videos" / self.name).is_dir():
            options["pictures"] = folder
        return reader(file, self.frames, self.name, **options)
