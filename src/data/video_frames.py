"""Frames of video files, decoded by PyAV (FFmpeg's libraries): few frames of a long file, by seeking to them."""

from __future__ import annotations

import bisect
import importlib.metadata
import io
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from testbed.data.rows import Picture
from testbed.errors import DefinitionError, MissingExtraError, SampleError

EXTRA = "video"
RENDERING = 1  # of how frames become pictures; raised when the same frame becomes another picture
# Containers that are files of their own; playlists name other files and addresses, which are never followed.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi"
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Frames:
    """The frames of a video that are shown, as VLMEvalKit chooses them.

    Attributes:
        count: The number of frames, at equal distances, neither the first nor the last; 0 if `fps` determines it.
        fps: The number of frames for each second, from the first on.

    Raises:
        DefinitionError: If not exactly one of them is positive.
    """

    count: int = 0
    fps: float = 0.0

    def __post_init__(self) -> None:
        if (self.count > 0) == (self.fps > 0) or self.count < 0 or self.fps < 0:
            raise DefinitionError(f"either the count or the fps of frames is above 0; got {self.count} and {self.fps}")

    def chosen(self, total: int, rate: float) -> list[int]:
        """The numbers of the chosen frames, in order.

        Args:
            total: The number of the video's frames.
            rate: Its frames per second.
        """
        if self.count:
            step = total / (self.count + 1)
            return [int(number * step) for number in range(1, self.count + 1)]
        return [min(int(number * (rate / self.fps)), total - 1) for number in range(int(total / rate * self.fps))]


@dataclass(frozen=True)
class SelectedFrames:
    """The chosen frames of a video.

    Attributes:
        pictures: The frames as JPEG files, of Pillow's default quality, as VLMEvalKit saves them.
        times: The time of each, in milliseconds: its number by the average rate.
    """

    pictures: tuple[Picture, ...]
    times: tuple[int, ...]


def decoder(purpose: str) -> str:
    """The decoder with its version.

    Raises:
        MissingExtraError: If PyAV is not installed.
    """
    try:
        return f"av {importlib.metadata.version('av')}"
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("av", EXTRA, purpose) from None


def shown(path: Path, frames: Frames, what: str) -> SelectedFrames:
    """The chosen frames of a file. One file is decoded at a time, and only chosen frames are kept.

    Raises:
        SampleError: If the file is not a video, is damaged, or has none of the frames.
    """
    stat = path.stat()
    with _one_at_a_time:  # the questions about a video follow each other, so that the last one is kept
        return _shown(path, stat.st_mtime_ns, stat.st_size, frames, what)


@lru_cache(maxsize=1)
def _shown(path: Path, _time: int, _size: int, frames: Frames, what: str) -> SelectedFrames:
    import av

    try:
        with av.open(str(path), options={"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}) as container:
            if not container.streams.video:
                raise SampleError(f"{what}: {path.name} has no video")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            stream.codec_context.options = {"err_detect": "explode"}
            times, keys = _timeline(container, stream, f"{what}: {path.name}")
            rate = float(stream.average_rate or stream.base_rate or 0)
            if not times or rate <= 0:
                raise SampleError(f"{what}: {path.name} has no frames that can be counted")
            numbers = frames.chosen(len(times), rate)
            wanted = sorted({times[number] for number in numbers})
            encoded = {time: _jpeg(frame) for time, frame in _at(container, stream, wanted, keys)}
    except (av.FFmpegError, OSError, ValueError) as error:
        raise SampleError(f"{what}: {path.name} cannot be decoded: {error}") from error
    if len(encoded) < len(wanted):
        raise SampleError(
            f"{what}: {path.name} is damaged: {len(wanted) - len(encoded)} of its frames cannot be decoded"
        )
    if not numbers:
        raise SampleError(f"{what}: {path.name} is too short: no frame is chosen of {len(times):,} at {rate:g} fps")
    pictures = [Picture(encoded[times[number]], f"frame {number} of {path.name}") for number in numbers]
    return SelectedFrames(tuple(pictures), tuple(round(number * 1000 / rate) for number in numbers))


def _timeline(container: Any, stream: Any, what: str) -> tuple[list[int], list[int]]:
    """The time stamps of all frames, and of those where decoding can begin, in order; nothing is decoded.

    Raises:
        SampleError: If frames have no time stamps, or some that the header counts are missing.
    """
    times, keys, read = [], [], 0
    for packet in container.demux(stream):
        if packet.size == 0:  # the mark of the end
            continue
        read += 1
        if packet.pts is None or packet.is_corrupt:
            raise SampleError(f"{what} is damaged, or its frames have no time stamps")
        if not packet.is_discard:
            times.append(packet.pts)
        if packet.is_keyframe:
            keys.append(packet.pts)
    if read < stream.frames:
        raise SampleError(f"{what} is cut off: it has {read:,} of the {stream.frames:,} frames that its header counts")
    return sorted(times), sorted(keys)


def _at(container: Any, stream: Any, wanted: Sequence[int], keys: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The frames at some times, in order; decoding goes on to the next one, or begins at the last key frame before it.

    A frame that is missing is left out.
    """
    decoded: Iterator[Any] = iter(())
    last: int | None = None
    for time in wanted:
        key = keys[max(bisect.bisect_right(keys, time) - 1, 0)] if keys else wanted[0]
        if last is None or key > last:
            container.seek(key, stream=stream)
            decoded = container.decode(stream)
        for frame in decoded:
            last = frame.pts
            if frame.pts == time and not frame.is_corrupt:
                yield time, frame
            if frame.pts is not None and frame.pts >= time:
                break


def _jpeg(frame: Any) -> bytes:
    file = io.BytesIO()
    frame.to_image().save(file, "JPEG")
    return file.getvalue()
