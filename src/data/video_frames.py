"""Frames of video files, decoded by PyAV (FFmpeg's libraries): few frames of a long file, by seeking to them."""

from __future__ import annotations

import bisect
import contextlib
import importlib.metadata
import io
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data import frame_cache
from testbed.data.rows import Picture
from testbed.data.threads import Stop, cores, reading_threads
from testbed.errors import DefinitionError, MissingExtraError, SampleError

if TYPE_CHECKING:
    from PIL.Image import Image

EXTRA = "video"
RENDERING = 1  # of how frames become pictures; raised when the same frame becomes another picture
# Containers that are files of their own; playlists name other files and addresses, which are never followed.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi"
_STEP = 16  # pixels; the sides of resized frames are multiples of it
_one_at_a_time = threading.Lock()

Clip = tuple[float, float] | None


def _spread(count: int, total: int, rate: float, clip: Clip) -> list[int]:
    """Frames at equal distances, neither the first nor the last (most sets)."""
    step = total / (count + 1)
    return [int(number * step) for number in range(1, count + 1)]


def _segments(count: int, total: int, rate: float, clip: Clip) -> list[int]:
    """The middle of equal parts of the clip, else of the video (MVBench)."""
    return segments(count, 0, total - 1, rate, clip)


def segments(count: int, first: int, last: int, rate: float, clip: Clip) -> list[int]:
    """The middle of equal parts of the frames from the first to the last, as far as they are in the clip."""
    start, end = first, last
    if clip is not None:
        start, end = max(first, round(clip[0] * rate)), min(round(clip[1] * rate), last)
    size = (end - start) / count
    numbers = [int(start + size / 2 + round(size * number)) for number in range(count)]
    return [min(max(number, first), last) for number in numbers]


def _ends(count: int, total: int, rate: float, clip: Clip) -> list[int]:
    """Frames at equal distances with the first and the last (VSI-Bench)."""
    return (
        [int(number * ((total - 1) / (count - 1))) for number in range(count - 1)] + [total - 1] if count > 1 else [0]
    )


# Ways to place a number of frames in a video.
RULES: dict[str, Callable[[int, int, float, Clip], list[int]]] = {
    "spread": _spread,
    "segments": _segments,
    "ends": _ends,
    "tail": _ends,
}


@dataclass(frozen=True)
class Frames:
    """The frames of a video that are shown, as VLMEvalKit chooses them.

    Attributes:
        count: The number of frames; 0 if `fps` determines it.
        fps: The number of frames for each second, from the first on.
        rule: The places of `count` frames; a name in `RULES`. With ``"tail"`` the last frame also follows `fps`.
        area: The number of pixels to which frames are resized, with sides that are multiples of 16; 0 keeps their size.

    Raises:
        DefinitionError: If not exactly one of count and fps is positive, or the rule is unknown.
    """

    count: int = 0
    fps: float = 0.0
    rule: str = "spread"
    area: int = 0

    def __post_init__(self) -> None:
        if (self.count > 0) == (self.fps > 0) or self.count < 0 or self.fps < 0:
            raise DefinitionError(f"either the count or the fps of frames is above 0; got {self.count} and {self.fps}")
        if self.rule not in RULES:
            raise DefinitionError(f"the rule of frames is {self.rule!r}; known: {', '.join(RULES)}")

    def spec(self) -> dict[str, Any]:
        """Returns what identifies the choice; a default rule and size are left out, as before there were others."""
        more = {"rule": self.rule if self.count or self.rule == "tail" else "spread", "area": self.area}
        default = {"rule": "spread", "area": 0}
        return {"count": self.count, "fps": self.fps} | {key: more[key] for key in more if more[key] != default[key]}

    def chosen(self, total: int, rate: float, clip: tuple[float, float] | None = None) -> list[int]:
        """The numbers of the chosen frames, in order.

        Args:
            total: The number of the video's frames.
            rate: Its frames per second.
            clip: The seconds at which a part of the video begins and ends, for rules that choose from a part.
        """
        if self.count:
            return RULES[self.rule](self.count, total, rate, clip)
        numbers = [min(int(number * (rate / self.fps)), total - 1) for number in range(int(total / rate * self.fps))]
        tail = self.rule == "tail" and numbers and numbers[-1] != total - 1
        return [*numbers, total - 1] if tail else numbers


@dataclass(frozen=True)
class SelectedFrames:
    """The chosen frames of a video.

    Attributes:
        pictures: The frames as JPEG files, of Pillow's default quality, as VLMEvalKit saves them.
        numbers: Their numbers in the video.
        rate: The average frames per second.
        total: The number of all frames.
    """

    pictures: tuple[Picture, ...]
    numbers: tuple[int, ...]
    rate: float
    total: int

    @property
    def times(self) -> tuple[int, ...]:
        """The time of each, in milliseconds: its number by the average rate."""
        return tuple(round(number * 1000 / self.rate) for number in self.numbers)


def decoder(purpose: str) -> str:
    """The decoder with its version; raises MissingExtraError if PyAV is not installed."""
    try:
        return f"av {importlib.metadata.version('av')}"
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("av", EXTRA, purpose) from None


def shown(path: Path, frames: Frames, what: str, clip: Clip = None) -> SelectedFrames:
    """The chosen frames of a file. One file is decoded at a time, and only chosen frames are kept.

    Raises:
        SampleError: If the file is not a video, is damaged, or has none of the frames.
    """
    stat = path.stat()
    try:
        with _one_at_a_time:  # the questions about a video follow each other, so that the last one is kept
            return _shown(path, stat.st_mtime_ns, stat.st_size, frames, clip)
    except SampleError as error:
        raise SampleError(f"{what}: {error}") from error


@lru_cache(maxsize=1)
def _shown(path: Path, time: int, size: int, frames: Frames, clip: Clip) -> SelectedFrames:
    """The frames as they were kept, or decoded now."""
    kept = frame_cache.place_of([str(path), time, size, frames.spec(), clip, decoder(path.name), RENDERING])
    found = frame_cache.read(kept)
    if found is None:
        found = _decode(path, frames, clip)
        frame_cache.write(kept, *found)
    facts, files = found
    encoded = dict(zip(sorted(set(facts["numbers"])), files, strict=True))
    pictures = [Picture(encoded[number], f"frame {number} of {path.name}") for number in facts["numbers"]]
    return SelectedFrames(tuple(pictures), tuple(facts["numbers"]), facts["rate"], facts["total"])


@dataclass(frozen=True)
class _Part:
    """Frames that follow one key frame.

    Attributes:
        key: The time stamp of the key frame.
        wanted: The time stamps of the chosen frames from there to the next key frame.
    """

    key: int
    wanted: frozenset[int]


def _decode(path: Path, frames: Frames, clip: Clip) -> tuple[dict[str, Any], list[bytes]]:
    """Facts about the chosen frames, and each of them once, in order."""
    import av

    try:
        with _opened(path) as (container, stream):
            times, keys = _timeline(container, stream, path.name)
            rate = float(stream.average_rate or stream.base_rate or 0)
        if not times or rate <= 0:
            raise SampleError(f"{path.name} has no frames that can be counted")
        numbers = frames.chosen(len(times), rate, clip)
        wanted = sorted({times[number] for number in numbers})
        try:
            encoded = _encoded(path, _parts(wanted, keys), frames.area)
        except av.FFmpegError:  # a key frame may be followed by references to frames before it (open GOP)
            encoded = _encoded(path, [_Part(min(times), frozenset(wanted))], frames.area)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise SampleError(f"{path.name} cannot be decoded: {error}") from error
    if len(encoded) < len(wanted):
        raise SampleError(f"{path.name} is damaged: {len(wanted) - len(encoded)} of its frames cannot be decoded")
    if not numbers:
        raise SampleError(f"{path.name} is too short: no frame is chosen of {len(times):,} at {rate:g} fps")
    files = [encoded[times[number]] for number in sorted(set(numbers))]
    return {"numbers": numbers, "rate": rate, "total": len(times)}, files


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """A file and its first stream of frames; raises SampleError if it has none."""
    import av

    with av.open(str(path), options={"format_whitelist": _CONTAINERS, "protocol_whitelist": "file"}) as container:
        if not container.streams.video:
            raise SampleError(f"{path.name} has no video")
        stream = container.streams.video[0]
        stream.codec_context.options = {"err_detect": "explode"}
        yield container, stream


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


def _parts(wanted: Sequence[int], keys: Sequence[int]) -> list[_Part]:
    """Chosen frames by the last key frame before them."""

    def key(time: int) -> int:
        return keys[max(bisect.bisect_right(keys, time) - 1, 0)] if keys else wanted[0]

    return [_Part(start, frozenset(times)) for start, times in itertools.groupby(wanted, key)]


def _encoded(path: Path, parts: Sequence[_Part], area: int) -> dict[int, bytes]:
    """Chosen frames as JPEG files, by their time stamps; a frame that cannot be decoded is missing.

    Each thread decodes whole parts by a decoder of its own. Threads within a decoder take a third more processor time,
    so decoders have them only where there are fewer parts than processors.
    """
    tasks = max(1, min(cores(), len(parts)))
    left = iter(parts)  # from which each thread takes the next one

    def work(stop: Stop) -> dict[int, bytes]:
        jpegs, files = _Jpegs(area), {}
        with _opened(path) as (container, stream):
            stream.thread_type, stream.codec_context.thread_count = "AUTO", cores() // tasks
            for part in left:
                for frame in _decoded(container, stream, part):
                    stop.raise_if_interrupted()
                    if frame.pts in part.wanted and not frame.is_corrupt:
                        files[frame.pts] = jpegs.encoded(frame)
        return files

    with reading_threads(tasks) as (threads, stop):
        results = [threads.submit(work, stop) for _ in range(tasks)]
        return {time: file for result in results for time, file in result.result().items()}


def _decoded(container: Any, stream: Any, part: _Part) -> Iterator[Any]:
    """The frames from a key frame to the last wanted one, without those that neither it nor others need."""
    container.seek(part.key, stream=stream)
    stream.codec_context.skip_frame = "DEFAULT"
    stream.codec_context.open(strict=False)  # some decoders heed `skip_frame` only here
    left = set(part.wanted)
    for packet in container.demux(stream):
        stream.codec_context.skip_frame = "DEFAULT" if packet.pts in left else "NONREF"
        yield from packet.decode()
        left.discard(packet.pts)
        if not left and packet.size:
            yield from stream.codec_context.decode(None)  # frames that the decoder holds back
            return


class _Jpegs:
    """Frames as JPEG files, by one converter for all frames of a video, since making one takes time."""

    def __init__(self, area: int) -> None:
        from av.video.reformatter import VideoReformatter

        self._area = area
        self._converter = VideoReformatter()

    def encoded(self, frame: Any) -> bytes:
        """The file of a frame."""
        from PIL import Image

        plane: Any = self._converter.reformat(frame, format="rgb24").planes[0]
        size = (plane.width, plane.height)
        image = Image.frombuffer("RGB", size, plane, "raw", "RGB", plane.line_size, 1)
        file = io.BytesIO()
        (_resized(image, self._area) if self._area else image).save(file, "JPEG")
        return file.getvalue()


def _resized(image: Image, area: int) -> Image:
    """A picture with about this many pixels, and sides that are multiples of `_STEP` (Video-MME-v2)."""
    from PIL.Image import Resampling

    scale = math.sqrt(area / (image.width * image.height))
    width, height = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in image.size)
    return image if image.size == (width, height) else image.resize((width, height), Resampling.LANCZOS)
