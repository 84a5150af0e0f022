"""Frames of videos for the questions about them: against a loop over decord that keeps its frames as JPEG files.

The loop does what VLMEvalKit's classes do for each question: it opens the video, and decodes and saves the frames if
their files are not there yet. decord must be installed for it (pip install decord); without it, only testbed's frames
per second are printed. Both begin without kept frames. The videos are of moving crops of a photo, by x264.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from paired import compare, machine, seconds, tell
from PIL import Image

from testbed.data import video_frames
from testbed.data.video_frames import Frames, shown

RATE = 25  # frames per second
GOP = 250  # frames from a key frame to the next, x264's default
QUESTIONS = 3  # about each video, as in Video-MME


@click.command()
@click.option("--videos", default=3, show_default=True, help="Videos.")
@click.option("--length", default=60, show_default=True, help="Of each, in seconds.")
@click.option("--height", default=360, show_default=True, help="Of the frames, in pixels.")
@click.option("--repeats", default=5, show_default=True, help="Counted pairs.")
def main(videos: int, length: int, height: int, repeats: int) -> None:
    """Prints the ratios of wall times and of processor times, ours over the loop's."""
    click.echo(f"{machine()}; {videos} videos of {length} s, {height} pixels high; {QUESTIONS} questions about each")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ["TESTBED_CACHE"] = f"{folder}/cache"
        files = [_video(root / f"{number}.mp4", length, height, number) for number in range(videos)]
        for frames, what in ((Frames(8), "8 frames"), (Frames(64), "64 frames"), (Frames(fps=1.0), "1 frame/s")):
            ours = _ours(files, frames, root / "cache")
            number = ours() // QUESTIONS
            click.echo(f"{what}: testbed {number / seconds(ours):.0f} frames decoded per second")
            theirs = _decord(files, frames, root / "frames")
            if theirs is None:
                click.echo("decord is not installed: no comparison with it")
                continue
            compare(f"{what}, wall time", ours, theirs, repeats)
            pairs = [(seconds(ours, "process_time"), seconds(theirs, "process_time")) for _ in range(repeats)]
            tell(f"{what}, processor time", pairs)


def _video(path: Path, length: int, height: int, seed: int) -> Path:
    """A video of a crop that moves over a photo."""
    import av
    from skimage import data

    width = height * 16 // 9 // 2 * 2
    photo = np.asarray(Image.fromarray(data.astronaut()).resize((2 * width, 2 * height)))
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.gop_size = GOP
        for number in range(length * RATE):
            left, top = (3 * number + 50 * seed) % width, number % height
            crop = np.ascontiguousarray(photo[top : top + height, left : left + width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(crop, format="rgb24")))
        container.mux(stream.encode())
    return path


def _ours(files: Sequence[Path], frames: Frames, cache: Path) -> Callable[[], int]:
    def ask() -> int:
        video_frames._shown.cache_clear()
        shutil.rmtree(cache, ignore_errors=True)
        return sum(len(shown(path, frames, "a row").pictures) for path in files for _ in range(QUESTIONS))

    return ask


def _decord(files: Sequence[Path], frames: Frames, folder: Path) -> Callable[[], int] | None:
    """The loop over decord; None if it is not installed."""
    try:
        import decord
    except ImportError:
        return None

    def question(path: Path) -> int:
        video: Any = decord.VideoReader(str(path))
        numbers = frames.chosen(len(video), video.get_avg_fps())
        names = [folder / path.stem / f"frame-{place}-of-{len(numbers)}.jpg" for place in range(len(numbers))]
        if not all(name.exists() for name in names):
            pictures = [Image.fromarray(video[number].asnumpy()) for number in numbers]
            for picture, name in zip(pictures, names, strict=True):
                picture.save(name)
        return len([name.read_bytes() for name in names])  # which the model's adapter reads

    def ask() -> int:
        shutil.rmtree(folder, ignore_errors=True)
        for path in files:
            (folder / path.stem).mkdir(parents=True)
        return sum(question(path) for path in files for _ in range(QUESTIONS))

    return ask


if __name__ == "__main__":
    main()
