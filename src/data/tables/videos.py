"""Tables of questions about videos: the pictures of a row are frames of its video."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from testbed.data.content import MISSING, ContentDigests
from testbed.data.formats.subtitles import read_srt, said_at
from testbed.data.rows import Row
from testbed.data.tables.pictures import picture_file
from testbed.data.tables.source import TableSource
from testbed.data.video_frames import RENDERING, Frames, decoder, shown
from testbed.errors import DataError, SampleError
from testbed.identity.describe import digest_bytes
from testbed.inputs import ENV_LMU_DATA
from testbed.paths import expanded, lmu_data_root

VIDEO, VIDEO_PATH, SUBTITLE_PATH = "video", "video_path", "subtitle_path"
SUBTITLES = "subtitles"  # a column of rows: the speech while their frames are shown
MAX_SUBTITLES = 1 << 24  # bytes


class VideoSource(TableSource):
    """The rows of a table with a column ``video``.

    Args:
        path: The file.
        frames: The frames of each video that are shown.
        name: The data set's name.  [default: that of the file]
        subtitles: True if rows get a column `SUBTITLES`.
        **options: See `TableSource`. ``pictures`` is the folder that the columns ``video_path`` and ``subtitle_path``
            are relative to; nothing outside it is read. A row without ``video_path`` has the video
            ``video/VIDEO.mp4``.  [default: ``videos/NAME`` beside the table if it is there, else the table's folder]

    Raises:
        MissingExtraError: If PyAV is not installed.
        DataError: As `TableSource`.
    """

    def __init__(
        self, path: Path, frames: Frames, name: str | None = None, subtitles: bool = False, **options: Any
    ) -> None:
        self.frames = frames
        self.subtitles = subtitles
        self.decoder = decoder(f"the table {path.name} of videos")
        folder = path.parent / "videos" / (name or path.stem)
        options.setdefault("pictures", folder if folder.is_dir() else path.parent)
        super().__init__(path, name, **options)
        self.groups = [row.get(VIDEO, own) for own, row in zip(self.ids, self.targets, strict=True)]

    def row(self, position: int) -> Row:
        """The row at a position, with the frames of its video.

        Raises:
            SampleError: If the row is faulty, or its video or subtitles cannot be read.
        """
        row, where = super().row(position), self._where(position)
        frames = shown(self._video(position), self.frames, where)
        said = {SUBTITLES: "\n".join(self._said(position, frames.times))} if self.subtitles else {}
        return replace(row, pictures=frames.pictures, columns={**row.columns, **said})

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each row's columns, of its video and subtitles, the frames that are shown, and the decoder."""
        how = [asdict(self.frames), self.decoder, RENDERING, self.subtitles]
        digests = []
        names = [[self._below(name) for name in self._names(position)] for position in positions]
        known = ContentDigests(self.pictures).digests(files := sorted({name for own in names for name in own if name}))
        content = dict(zip(files, known, strict=True))
        for position, own in zip(positions, names, strict=True):
            marks = [content.get(name, MISSING) for name in own]
            what = [self.targets[position], marks, how, self._faults[position]]
            digests.append(digest_bytes(json.dumps(what, sort_keys=True).encode()))
        return digests

    def _names(self, position: int) -> list[str]:
        """The files that a row names: its video, and its subtitles if they are shown."""
        row = self.targets[position]
        video = row.get(VIDEO_PATH) or (f"video/{row[VIDEO]}.mp4" if VIDEO in row else "")
        said = row.get(SUBTITLE_PATH, "")
        return [video, *([said] if self.subtitles and said else [])]

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

    def _said(self, position: int, times: Sequence[int]) -> list[str]:
        """Returns the subtitles at some times; nothing if the video has none, as in VLMEvalKit."""
        names, where = self._names(position)[1:], self._where(position)
        if not names or not os.path.lexists(self.pictures / names[0]):
            return []
        path = picture_file(self.pictures, names[0], where, MAX_SUBTITLES, "videos")
        try:
            return said_at(read_srt(path.read_text(encoding="utf-8-sig")), times)
        except (OSError, ValueError) as error:
            raise SampleError(f"{where}: the subtitles {path.name} cannot be read: {error}") from error


class VideoTable:
    """A table of questions about videos as a data set.

    Args:
        name: Its name, ``NAME.tsv`` in the folder of tables or in ``videos/NAME`` there, or the path of a file that
            ends with ``.tsv``.
        frames: The frames of each video that are shown.
        subtitles: Adds the subtitles of these frames to rows.
        tsv_reading: See `TableSource`.
        required: See `TableSource`.
        origin: The origin of the table, for messages.
    """

    def __init__(
        self,
        name: str,
        frames: Frames,
        subtitles: bool = False,
        tsv_reading: str = "text",
        required: Sequence[str] = (VIDEO, "question"),
        origin: str = "",
    ) -> None:
        self.name = name
        self.frames = frames
        self.subtitles = subtitles
        self.tsv_reading = tsv_reading
        self.required = tuple(required)
        self.origin = origin

    def spec(self) -> dict[str, Any]:
        """Returns what identifies the table, the way it is read, and the frames that are shown."""
        shows = {"frames": asdict(self.frames), "subtitles": self.subtitles}
        return {"table": self.name, "tsv_reading": self.tsv_reading, **shows}

    def open(self) -> VideoSource:
        """The rows.

        Raises:
            DataError: If the table is missing or not in the format.
        """
        options: dict[str, Any] = {"tsv_reading": self.tsv_reading, "required": self.required}
        options["subtitles"] = self.subtitles
        if self.name.endswith(".tsv"):
            return VideoSource(expanded(self.name), self.frames, **options)
        root = lmu_data_root()
        places = [root / f"{self.name}.tsv", root / "videos" / self.name / f"{self.name}.tsv"]
        file = next((path for path in places if path.is_file()), None)
        if file is None:
            raise DataError(
                f"the table {self.name} is not there: looked for {places[0]} and {places[1]} (--lmu-data DIR, or"
                f" ${ENV_LMU_DATA}){'; ' if self.origin else ''}{self.origin}; nothing is downloaded"
            )
        return VideoSource(file, self.frames, self.name, **options)
