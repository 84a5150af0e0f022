"""Tables of questions about lists of frames: a row names the files of the frames of its videos, and other pictures."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.data.content import MISSING
from testbed.data.rows import Row
from testbed.data.tables.index import IMAGE_PATH
from testbed.data.tables.pictures import parts_of, picture_digests, read_picture
from testbed.data.tables.source import TableSource
from testbed.data.video_frames import RULES, Frames
from testbed.errors import SampleError, shortened
from testbed.identity.describe import digest_bytes

VIDEO_FPS, OTHERS = "video_fps", "ref_images"  # columns: the frames of a second, and the other pictures
SHOWN = "shown_frames"  # a column of rows: the number of shown frames of each video, as a list
_LONGEST = 1 << 22  # characters of a list


class FrameListSource(TableSource):
    """The rows of a table whose column ``image_path`` has a list of files of frames for each video.

    Args:
        path: The file.
        frames: The frames that are shown: a number of them, or frames per second; of all videos of a row together.
        name: The data set's name.  [default: that of the file]
        **options: See `TableSource`.

    The pictures of a row are the shown frames in their order, then those of the column ``ref_images``; the column
    `SHOWN` says how many each video has.
    """

    def __init__(self, path: Path, frames: Frames, name: str | None = None, **options: Any) -> None:
        self.frames = frames
        super().__init__(path, name, **options)

    def row(self, position: int) -> Row:
        """The row at a position, with the frames and the other pictures.

        Raises:
            SampleError: If the row is faulty, or a picture cannot be read.
        """
        where = self._where(position)
        if self._faults[position]:
            raise SampleError(f"{where}: {self._faults[position]}")
        videos, others = self._shown(position)
        names = [name for video in videos for name in video] + others
        pictures = tuple(read_picture(self.pictures, name, where) for name in names)
        counts = {SHOWN: json.dumps([len(video) for video in videos])}
        return replace(Row(self.ids[position], {**self.targets[position], **counts}), pictures=pictures)

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each row's columns, of the pictures that are shown, and of how they are chosen."""
        digests = []
        for position in positions:
            try:
                videos, others = self._shown(position)
                places = [self._inside(name) for name in [name for video in videos for name in video] + others]
            except SampleError:
                places = [""]
            there = sorted(set(filter(None, places)))
            known = dict(zip(there, picture_digests(self.pictures, there), strict=True))
            marks = [known.get(place, MISSING) for place in places]
            what = [self.targets[position], marks, self.frames.spec(), self._faults[position]]
            digests.append(digest_bytes(json.dumps(what, sort_keys=True).encode()))
        return digests

    def _shown(self, position: int) -> tuple[list[list[str]], list[str]]:
        """The files of the shown frames of each video, and of the other pictures.

        Raises:
            SampleError: If the row's columns do not name them.
        """
        row, where = self.targets[position], self._where(position)
        videos = _lists(row.get(IMAGE_PATH, ""), f"{where}: {IMAGE_PATH}")
        try:
            rate = float(row.get(VIDEO_FPS, "0"))
        except ValueError:
            rate = 0.0
        if self.frames.fps and not rate > 0:
            said = row.get(VIDEO_FPS, "")
            raise SampleError(f"{where}: {VIDEO_FPS} is {said!r}; expected a number of frames per second")
        chosen = set(chosen_of(self.frames, sum(map(len, videos)), rate))
        shown, first = [], 0
        for video in videos:
            shown.append([name for number, name in enumerate(video, start=first) if number in chosen])
            first += len(video)
        return shown, parts_of(row.get(OTHERS, ""), f"{where}: {OTHERS}")


def chosen_of(frames: Frames, total: int, rate: float) -> list[int]:
    """The numbers of the frames that are shown of a list, as VLMEvalKit chooses those of MMSI-Video-Bench.

    Args:
        frames: Their number, at equal distances with the first and the last, or how many of a second.
        total: The length of the list.
        rate: The frames of a second in the list.
    """
    if not total:
        return []
    if frames.count:
        return RULES["ends"](min(frames.count, total), total, rate, None)
    return list(dict.fromkeys(frames.chosen(total, rate))) or [0]


def _lists(cell: str, what: str) -> list[list[str]]:
    """The lists of files in a cell; a single list is one video."""
    try:
        value: Any = ast.literal_eval(cell.strip()) if len(cell) <= _LONGEST else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, list):
        raise SampleError(f"{what} holds {shortened(cell)}; expected a list of the frames of each video")
    lists = value if value and all(isinstance(item, list) for item in value) else [value]
    if not all(isinstance(name, str) for items in lists for name in items):
        raise SampleError(f"{what} holds {shortened(cell)}; expected names of files")
    return lists
