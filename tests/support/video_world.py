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


def write_video(
    path: Path, count: int = 100, rate: int = 10, gop: int = 12, codec: str = "libx264", **options: str
) -> Path:
    """Writes an mp4 of striped frames, with frames that refer to later ones."""
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=options)
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


SECOND = 20  # frames of the videos of `video_sets`
DOGS = "['a dog', 'a cat', 'a bird']"
# Sets → the file of the video, and the table's rows by columns, without index and video.
_SETS: dict[str, tuple[str, list[dict[str, str]]]] = {
    "MVBench": (
        "video/x/v.mp4",
        [
            {"prefix": "video/x/", "video": "v.mp4", "task_type": kind, "bound": "True", "start": "0.5", "end": "1.5"}
            | {"question": "What runs?", "candidates": DOGS, "answer": right, "data_type": "video"}
            for kind, right in (("Action Count", "a dog"), ("State Change", "a cat"))
        ],
    ),
    "MLVU_MCQ": (
        "MLVU/video/1_plotQA/v.mp4",
        [
            {"prefix": "./MLVU/video/1_plotQA", "video": "v.mp4", "task_type": "plotQA", "question": "What runs?"}
            | {"candidates": DOGS, "answer": "a dog"}
        ],
    ),
    "MLVU_OpenEnded": (
        "MLVU/video/9_summary/v.mp4",
        [
            {"prefix": "./MLVU/video/9_summary", "video": "v.mp4", "task_type": "summary", "question": "What happens?"}
            | {"answer": "A dog runs.", "scoring_points": ""}
        ],
    ),
    "LongVideoBench": (
        "videos/v.mp4",
        [
            {"video": "v", "video_path": "./videos/v.mp4", "question": "What runs?", "candidates": DOGS}
            | {"correct_choice": "1", "question_category": "S2E", "duration_group": "15", "duration": "2.0"}
            | {"subtitle_path": "v_en.json", "starting_timestamp_for_subtitles": "0"}
        ],
    ),
    "TempCompass_MCQ": (
        "videos/v.mp4",
        [
            {"prefix": "./videos", "suffix": ".mp4", "video": "v", "question": "What runs?", "dim": "action"}
            | {"candidates": "['A. a dog', 'B. a cat']", "answer": "A. a dog", "task_type": "multi-choice"}
        ],
    ),
    "TempCompass_YorN": (
        "videos/v.mp4",
        [
            {"prefix": "./videos", "suffix": ".mp4", "video": "v", "question": "Does it run?", "dim": "action"}
            | {"answer": "yes", "task_type": "yes_no"}
        ],
    ),
    "TempCompass_Captioning": (
        "videos/v.mp4",
        [
            {"prefix": "./videos", "suffix": ".mp4", "video": "v", "question": "Describe it.", "dim": "action"}
            | {"mc_question": "What runs?\nA. a dog\nB. a cat", "mc_answer": "A. a dog", "task_type": "captioning"}
        ],
    ),
    "WorldSense": (
        "videos/v.mp4",
        [
            {"video": "v", "video_path": "./videos/v.mp4", "question": "What runs?", "answer": "A"}
            | {"candidates": "['A. a dog', 'B. a cat']", "duration": "<1min", "domain": "Games", "sub_category": "Auto"}
            | {"task_domain": "Reasoning", "task_type": "Hallucination", "audio_class": "['Speech', 'Music']"}
        ],
    ),
    "MMBench-Video": (
        "video/v.mp4",
        [
            {"video": "v", "video_path": "./video/v.mp4", "question": "What runs?", "answer": "a dog"}
            | {"dimensions": "['OCR', 'Causal Reasoning']"}
        ],
    ),
    "VSI-Bench": (
        "a/v.mp4",
        [
            {
                "video": "a/v.mp4",
                "question": "What runs?",
                "question_type": kind,
                "candidates": options,
                "answer": right,
            }
            for kind, options, right in (
                ("route_planning", "['A. a dog', 'B. a cat']", "A"),
                ("object_counting", "", "3"),
            )
        ],
    ),
    "SiteBenchVideo": (
        "clips/v.mp4",
        [
            {"video_path": "clips/v.mp4", "question": "What runs?", "candidates": "['a dog', 'a cat']", "answer": right}
            | {"category": "movement prediction & navigation"}
            for right in "AB"
        ],
    ),
    "Video-MME-v2": (
        "video/001.mp4",
        [
            {"video": "001", "video_path": "./video/001.mp4", "question": "What runs?", "answer": "ABAA"[place]}
            | {"options": "A. a dog\nB. a cat", "group_type": "relevance", "group_structure": "[1, 2, 3, 4]"}
            | {"level": "1", "second_head": "x", "third_head": "y", "subtitle_path": "./subtitle/001.jsonl"}
            for place in range(4)
        ],
    ),
}


def video_sets(root: Path) -> None:
    """Tables of VLMEvalKit's sets of videos with a question or a few each, in a folder of tables."""
    video = write_video(root / "v.mp4", SECOND).read_bytes()
    for name, (place, rows) in _SETS.items():
        folder = root / "videos" / name
        (folder / place).parent.mkdir(parents=True)
        (folder / place).write_bytes(video)
        header = ["index", *rows[0]]
        write_table(folder / f"{name}.tsv", header, [[str(number), *row.values()] for number, row in enumerate(rows)])
    folder = root / "videos" / "MMSIVideoBench"
    (folder / "frames").mkdir(parents=True)
    for number in range(6):
        Image.new("RGB", (8, 8), (40 * number, 0, 0)).save(folder / "frames" / f"{number}.png")
    lists = "[['frames/0.png', 'frames/1.png', 'frames/2.png'], ['frames/3.png', 'frames/4.png']]"
    row = {"image_path": lists, "ref_images": "['frames/5.png']", "video_fps": "2.0", "system_prompt": "Look."}
    row |= {"task_prompt": "<video> and <video>", "user_prompt": "As <image>?", "format_prompt": "A or B"}
    row |= {"answer": "A", "task_type": "Planning"}
    write_table(folder / "MMSIVideoBench.tsv", ["index", *row], [["0", *row.values()]])
    spoken = '[{"start": "00:00:00.300", "end": "00:00:01.100", "line": "Look there"}]'
    (root / "videos" / "LongVideoBench" / "subtitles").mkdir()
    (root / "videos" / "LongVideoBench" / "subtitles" / "v_en.json").write_text(spoken)
