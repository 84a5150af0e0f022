"""Videos whose frames tell their number by black and white stripes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from table_world import write_table

BITS = 8  # of a frame's number, a stripe for each
HEADER = (
    *("index", "video", "video_path", "duration", "domain", "candidates", "sub_category", "task_type"),
    *("subtitle_path", "question", "answer"),
)
SAID = """1
00:00:00,500 --> 00:00:02,500
<i>Hello</i>
there

2
00:00:05,000 --> 00:00:06,000
Bye
"""


def write_video(path: Path, count: int = 100, rate: int = 10, gop: int = 12) -> Path:
    """Writes an mp4 of striped frames, with frames that refer to later ones."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.codec_context.gop_size = gop
        for number in range(count):
            stripes = [255 * (number >> bit & 1) for bit in range(BITS)]
            image = np.tile(np.repeat(np.array(stripes, np.uint8), 64 // BITS)[None, :, None], (48, 1, 3))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode())
    return path


def number_of(image: Image.Image) -> int:
    """The number of a frame."""
    seen = np.asarray(image.convert("L"), np.float64).mean(axis=0).reshape(BITS, -1).mean(axis=1)
    return sum(1 << bit for bit, value in enumerate(seen) if value > 127)


def video_questions(folder: Path, name: str = "Video-MME") -> Path:
    """A table of four questions about two videos, one of which has subtitles."""
    rows = []
    for number in range(4):
        video = "ab"[number // 2]
        options = "['A. one', 'B. two', 'C. three', 'D. four']"
        kind = ["short", "Knowledge" if number % 2 else "Life Record", options, "Animation", "Counting Problem"]
        said = f"./subtitle/{video}.srt"
        rows.append([str(number), video, f"./video/{video}.mp4", *kind, said, f"How many in {number}?", "ABCD"[number]])
    for video in "ab":
        write_video(folder / "video" / f"{video}.mp4")
    (folder / "subtitle").mkdir()
    (folder / "subtitle" / "a.srt").write_text(SAID)
    return write_table(folder / f"{name}.tsv", HEADER, rows)
