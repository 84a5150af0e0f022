"""Made ``published_videos.json.gz``: what VLMEvalKit's classes of videos do with made-up rows, answers and videos.

    python tests/assets/make_published_videos.py FOLDER_OF_VLMEVALKIT

As `make_published_answers`, which see, with the same commit; 300 answers of each kind. Besides the verdicts there are
the parts of prompts, the numbers of the frames that the classes took from a stand-in for decord, and ratings.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import random
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import make_published_answers as base
import numpy

NUMBER = 300
PATH = Path(__file__).resolve().parent / "published_videos.json.gz"
CAPTIONS = (
    "Caption A: a dog runs|Caption B: a cat sits",
    "Option 1: it opens|Option 2: it shuts",
    "Sentence A: up|Sentence B: down",
)
CAPTION_FORMS = "{i}|{n}|{n}.|{s}|{i}.|{m}|{n}) {s}|The best option is {n}|{s} and {u}|it is {i}|{S}"
MCQ_FORMS = "{L}|{L}.|{L})|{L}. {t}|{l}|({L})|The answer is {L}|{t}|{M}. {t}|**{L}**|{L}, I think|E|"
YES_NO = "yes|no|Yes|No, it is not|yes, it is|I think yes|not at all|nothing|The answer is no|YES|maybe||yesterday"
NUMBER_FORMS = "{v}|{v}.|About {v} m|{w}|<answer>{v}</answer>|<answer> {v} m</answer> 7|5 or {v}|[{v}, 9]|none|"
NUMBER_FORMS += "<think>1 and 2</think>{v}|<think>{v}|it is {w} or {v}|{v} 8|1e1|x{v}"
BRACKETED = "({L})|({l})|({L}) {t}|{L}) {t}|{l}.|(|)|option ({L})|{L}|{l}|Best option: ({L})|({M}) or ({L})"
LETTERS = "ABCDEFGH"
base_words = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen".split()
base_words += "sixteen seventeen eighteen nineteen twenty".split()


def listed(seed: str, most: int) -> list[Any]:
    """Rows whose options are a list and whose answer is a text of it, and answers."""
    base.NUMBER = NUMBER
    draw, rows = random.Random(seed), []
    forms = base.cut(BRACKETED)
    for columns, text in base.choices(seed, most):
        items = [columns[name] for name in "ABCDEFGHIJ" if name in columns]
        right = items["ABCDEFGHIJ".index(columns["answer"])]
        if draw.random() < 0.4:
            place, other = draw.randrange(len(items)), draw.randrange(len(items))
            values = {"L": LETTERS[place], "l": LETTERS[place].lower(), "t": items[place], "M": LETTERS[other]}
            text = draw.choice(forms).format(**values)
        rows.append(({"candidates": str(items), "answer": right, "question": "What?"}, text))
    return rows


def lettered(seed: str, most: int) -> list[Any]:
    """Rows whose right answer is a letter, and answers."""
    base.NUMBER = NUMBER
    rows = []
    for columns, text in base.choices(seed, most):
        items = [columns[name] for name in "ABCDEFGHIJ" if name in columns]
        rows.append(({"candidates": str(items), "answer": columns["answer"], "question": "What?"}, text))
    return rows


def temp_compass(seed: str) -> list[Any]:
    """Rows of both kinds of choices, and answers."""
    draw, rows = random.Random(seed), []
    for place in range(NUMBER):
        if place % 2:
            items = draw.choice(CAPTIONS).split("|")
            said, right = draw.choice(items), draw.choice(items)
            name, sentence = said.split(": ")
            values = {"i": said, "n": name, "m": name.split()[1], "s": sentence, "S": sentence.upper(), "u": items[0]}
            text = draw.choice(CAPTION_FORMS.split("|")).format(**values)
            kind = "caption_matching"
        else:
            texts = draw.choice([["up", "down", "left", "right"], ["cooking", "football", "reading"]])
            items = [f"{LETTERS[number]}. {each}" for number, each in enumerate(texts)]
            said, right = draw.choice(items), draw.choice(items)
            values = {"L": said[0], "l": said[0].lower(), "t": said[3:], "M": items[0][0]}
            text = draw.choice(MCQ_FORMS.split("|")).format(**values)
            kind = "multi-choice"
        rows.append(({"candidates": str(items), "answer": right, "question": "What?", "task_type": kind}, text))
    return rows


def yes_no(seed: str) -> list[Any]:
    """Rows of yes or no."""
    draw = random.Random(seed)
    return [
        ({"answer": draw.choice(["yes", "no"]), "question": "Is it?"}, draw.choice(YES_NO.split("|")))
        for _ in range(NUMBER)
    ]


def vsi(seed: str) -> list[Any]:
    """Rows with options, or with a number as the answer."""
    draw, rows = random.Random(seed), []
    for columns, text in lettered(seed, 6):
        if draw.random() < 0.6:
            right = draw.choice(["3", "2.5", "10", "0", "12.0"])
            value = float(right)
            near = draw.choice([value, value * 1.04, value * 0.8, value * 1.3, value + 1, -value])
            said = draw.choice([f"{near:g}", f"{near:.3f}"])
            columns = {"answer": right, "question": "How far?"}
            text = draw.choice(NUMBER_FORMS.split("|")).format(v=said, w=draw.choice(["three", "Ten", "twenty-one"]))
        rows.append((columns, text))
    return rows


def tagged(text: str) -> str:
    """An answer in tags, but for some."""
    thought = text if len(text) % 5 == 0 else f"<think>Is it A?</think><answer> {text}</answer>"
    return f"{thought}<answer>[B] it is</answer>" if len(text) % 7 == 0 else thought


ROWS = {
    "long_video_bench": lambda: lettered("long_video_bench", 5),
    "video_mme_v2": lambda: lettered("video_mme_v2", 8),
    "mvbench": lambda: listed("mvbench", 6),
    "mlvu": lambda: listed("mlvu", 6),
    "temp_compass": lambda: temp_compass("temp_compass"),
    "temp_compass_yes_no": lambda: yes_no("temp_compass_yes_no"),
    "vsi": lambda: vsi("vsi"),
    "video_holmes": lambda: [(columns, tagged(text)) for columns, text in lettered("video_holmes", 6)],
}


class Videos(base.Published):
    """VLMEvalKit's classes of videos."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        sys.modules["vlmeval.smp"].__path__ = []
        for name in ("cv2", "imageio", "moviepy", "pysubs2"):
            sys.modules.setdefault(name, base.Empty(name))
        sys.modules["vlmeval"].__path__ = [str(folder / "vlmeval")]
        package = types.ModuleType("vlmeval.dataset.utils")
        package.build_judge, package.DEBUG_MESSAGE = None, ""  # type: ignore[attr-defined]
        package.__path__ = []
        sys.modules["vlmeval.dataset.utils"] = package
        own = {}
        for name in ("longvideobench", "mvbench", "mlvu", "tempcompass", "worldsense", "mmbench_video", "videoholmes"):
            own[name] = self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")
        own["videomme"] = self.module("vlmeval.dataset.utils.videomme", "dataset/utils/videomme.py")
        self.own = own
        sys.modules["vlmeval.utils"].track_progress_rich = None  # type: ignore[attr-defined]
        ibase = base.Empty("vlmeval.dataset.image_base")
        sys.modules["vlmeval.dataset.image_base"] = ibase
        self.module("vlmeval.dataset.video_base", "dataset/video_base.py")
        self.module("vlmeval.dataset.video_concat_dataset", "dataset/video_concat_dataset.py")
        names = ("mvbench", "mlvu", "longvideobench", "tempcompass", "worldsense", "mmbench_video")
        self.classes = {each: self.module(f"vlmeval.dataset.{each}", f"dataset/{each}.py") for each in names}
        self.classes["videomme"] = self.module("vlmeval.dataset.videomme", "dataset/videomme.py")
        words = types.ModuleType("num2words")
        words.num2words = lambda number, lang: base_words[number]  # type: ignore[attr-defined]
        sys.modules["num2words"] = words
        sys.modules["decord"] = types.ModuleType("decord")
        self.spatial = self.module("vlmeval.dataset.utils.spatial", "dataset/utils/spatial_bench/matching_func.py")
        package.judge_util = base.Empty("judge_util")  # type: ignore[attr-defined]
        for name in ("judge_util", "spatial_bench", "spatial_bench.llm_extract", "spatial_bench.tools.files"):
            sys.modules[f"vlmeval.dataset.utils.{name}"] = base.Empty(f"vlmeval.dataset.utils.{name}")
        sys.modules["vlmeval.dataset.utils.spatial_bench.tools"] = base.Empty("tools")
        sys.modules["vlmeval.dataset.utils.spatial_bench.matching_func"] = self.spatial
        scores = "vlmeval.dataset.utils.spatial_bench.cal_scores"
        self.relative = self.module(scores, "dataset/utils/spatial_bench/cal_scores.py").compute_na_score
        own["videott"] = self.module("vlmeval.dataset.utils.videott", "dataset/utils/videott.py")
        for each in ("vsibench", "stibench", "dsrbench", "videott", "video_holmes"):
            self.classes[each] = self.module(f"vlmeval.dataset.{each}", f"dataset/{each}.py")
        self.classes["videommev2"] = self.module("vlmeval.dataset.videommev2", "dataset/videommev2.py")

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        return [(None, float(self.scored(kind, dict(columns), text))) for columns, text in rows]

    def scored(self, kind: str, columns: dict[str, Any], text: str) -> float:
        """The score of an answer."""
        item = {**columns, "prediction": text}
        if kind in ("long_video_bench", "video_mme_v2"):
            module = self.own["longvideobench" if kind == "long_video_bench" else "videomme"]
            first = (
                module.extract_characters_regex if kind == "long_video_bench" else module.extract_characters_regex_v2
            )
            found = first(text)
            return (found or module.extract_option(None, item, "X")) == columns["answer"]
        if kind in ("mvbench", "mlvu"):
            items = eval(columns["candidates"])
            right = max(place for place, each in enumerate(items) if each == columns["answer"])
            for place, each in enumerate(items):
                item[chr(ord("A") + place)] = each
                if each == item["answer"]:
                    item["answer"] = chr(ord("A") + place)
            given = f"({chr(ord('A') + right)}) {columns['answer']}"
            return self.own[kind].check_ans_with_model(text, given, None, item)
        if kind == "vsi" and "candidates" not in columns:
            return self.relative(self.frame([item]))["MRA:.5:.95:.05"][0]
        if kind == "vsi":
            match = self.spatial.can_match_option
            return str(match(text)).lower() == str(match(columns["answer"])).lower()
        if kind == "video_holmes":
            return self.own["videoholmes"].extract_option(text) == columns["answer"]
        rules = self.own["tempcompass"]
        check = rules.evaluate_tempcompass_mcq if kind == "temp_compass" else rules.evaluate_tempcompass_YorN
        return check(None, item)["rating"]


class Reader:
    """In place of decord's: notes the frames that are asked for."""

    total, rate = 0, 0.0
    asked: list[int]

    def __init__(self, *_: Any, **__: Any) -> None:
        Reader.asked = []

    def __len__(self) -> int:
        return Reader.total

    def get_avg_fps(self) -> float:
        return Reader.rate

    def __getitem__(self, number: int) -> Any:
        Reader.asked.append(int(number))
        return types.SimpleNamespace(asnumpy=lambda: numpy.zeros((2, 2, 3), numpy.uint8))


MCQ = {
    "video": "v.mp4",
    "prefix": "p",
    "question": "What is it? ",
    "answer": "cat",
    "candidates": "['dog', 'cat', \"a'b\"]",
}
SHORT = {"video": "v", "prefix": "./videos", "suffix": ".mp4", "question": "Which one?", "answer": "B. cat"}
CLASSES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "Video-MME": ("videomme", "VideoMME", {"use_subtitle": False}, {**SHORT, "candidates": "['A. dog', 'B. cat']"}),
    "MVBench": ("mvbench", "MVBench", {}, {**MCQ, "data_type": "video", "bound": False, "start": None, "end": None}),
    "MVBench_MP4": ("mvbench", "MVBench_MP4", {}, MCQ),
    "MLVU_MCQ": ("mlvu", "MLVU_MCQ", {}, MCQ),
    "MLVU_OpenEnded": ("mlvu", "MLVU_OpenEnded", {}, {**MCQ, "task_type": "summary"}),
    "LongVideoBench": (
        "longvideobench",
        "LongVideoBench",
        {"use_subtitle": False},
        {
            "video_path": "./videos/v.mp4",
            "video": "v",
            "question": "Which?",
            "correct_choice": 1,
            "candidates": MCQ["candidates"],
        },
    ),
    "TempCompass_MCQ": ("tempcompass", "TempCompass_MCQ", {}, {**SHORT, "candidates": "['A. dog', 'B. cat']"}),
    "TempCompass_YorN": ("tempcompass", "TempCompass_YorN", {}, SHORT),
    "TempCompass_Captioning": ("tempcompass", "TempCompass_Captioning", {}, SHORT),
    "WorldSense": (
        "worldsense",
        "WorldSense",
        {"use_subtitle": False, "use_audio": False},
        {**SHORT, "candidates": "['A. dog', 'B. cat']", "subtitle_path": "./subtitles/none.srt"},
    ),
    "MMBench_Video": ("mmbench_video", "MMBenchVideo", {"pack": False}, {"video": "v", "question": "Why?"}),
    "Video-MME-v2": (
        "videommev2",
        "VideoMMEv2",
        {"with_subtitle": False, "subtitle_interleave": False, "reasoning": False, "resize_target_area": False},
        {"video": "1", "question": "How?", "options": "A. x\nB. y"},
    ),
}
PLACED = {"video": "a/v.mp4", "question": " How far? ", "answer": "A"}
CLASSES |= {
    "VSI-Bench": (
        "vsibench",
        "VsiBench",
        {"sample_strategy": "uniform_tail"},
        {**PLACED, "question_type": "route_planning", "candidates": "['A. left', 'B. right']"},
    ),
    "VSI-Bench-Debiased": (
        "vsibench",
        "VsiBench",
        {"sample_strategy": "uniform_tail"},
        {**PLACED, "question_type": "object_counting"},
    ),
    "VsiSuperRecall_10mins": ("vsibench", "VsiSuperRecall", {}, {**PLACED, "options": "['A. left', 'B. right']"}),
    "VsiSuperCount_10mins": ("vsibench", "VsiSuperCount", {}, PLACED),
    "Video_TT": ("videott", "VideoTT", {}, {**PLACED, "video": "v", "question_prompt": "A. left\nB. right"}),
    "Video_Holmes": ("video_holmes", "Video_Holmes", {}, {**PLACED, "video": "v", "candidates": "['A. left', 'B. x']"}),
    "STI-Bench": (
        "stibench",
        "STIBench",
        {},
        {**PLACED, "options": "['left', 'right']", "time_start": "1", "time_end": "2.5"},
    ),
    "DSRBench": ("dsrbench", "DSRBench", {}, {**PLACED, "options": "['A. left', 'B. right']"}),
}
SPATIAL = ("VSI-Bench", "VSI-Bench-Debiased", "VsiSuperRecall_10mins", "VsiSuperCount_10mins", "STI-Bench", "DSRBench")
SPATIAL += ("Video_TT", "Video_Holmes")
SPOKEN = [
    {"start": "00:00:00.000", "end": "00:00:00.500", "line": "first"},
    {"start": "00:00:02.000", "end": "00:00:05.000", "line": "second"},
    {"start": "00:00:02.500", "end": "00:00:05.500", "line": "with it"},
    {"start": "00:01:00.000", "end": "00:01:02.000", "line": "never"},
]
TIMED = [{"timestamp": [1.5, 4.5], "text": "one"}, {"timestamp": [8.0, None], "text": "to the end"}]
WORDS = [
    {"text": word, "start_time": place, "end_time": place + 0.4} for place, word in enumerate("a b c d e f".split())
]


def made(published: Videos, name: str, root: str, frames: dict[str, Any], **changed: Any) -> Any:
    """An object of a class, without its data."""
    module, cls, fields, _ = CLASSES[name]
    found = object.__new__(getattr(published.classes[module], cls))
    values = {"nframe": 0, "fps": -1, "data_root": root, "frame_root": f"{root}/images", "dataset_name": name}
    values |= {
        "frame_tmpl": "{}-{}",
        "frame_tmpl_fps": "{}-{}-{}",
        "video_path": root,
        **fields,
        **frames,
        **changed,
        "pack": False,
    }
    found.__dict__.update(values)
    found.decord_method = {"video": lambda path, bound=None: found.read_video(path, bound)}
    found.transform = lambda images: numpy.zeros((max(len(images), 1) * 3, 2, 2))
    found.response_prompt = getattr(found, "THINK_PROMPT" if found.__dict__.get("reasoning") else "INSTRUCT_PROMPT", "")
    return found


def prompts(published: Videos, folder: str) -> list[Any]:
    """The parts of the prompts: names, rows, frames and texts."""
    found = []
    asked: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [(name, "", {}, {}) for name in CLASSES]
    asked += [
        ("Video-MME-v2", "_reasoning", {"reasoning": True}, {}),
        ("Video-MME-v2", "_subs", {"with_subtitle": True}, {}),
        ("Video-MME-v2", "_subs_interleave", {"with_subtitle": True, "subtitle_interleave": True}, {}),
        ("WorldSense", "_subs", {"use_subtitle": True}, {}),
    ]
    spoken = {"starting_timestamp_for_subtitles": 0, "duration": 10.0, "subtitle_path": "spoken.json"}
    timed = {"starting_timestamp_for_subtitles": 1.0, "duration": 10.0, "subtitle_path": "timed.json"}
    asked += [("LongVideoBench", "_subs", {"use_subtitle": True}, each) for each in (spoken, timed)]
    for name, words, changed, more in asked:
        dataset = made(published, name, folder, {"nframe": 4}, **changed)
        Reader.total, Reader.rate = 100, 10.0
        pictures = [f"<{place}>" for place in range(4)]
        step = 100 / 5
        chosen = (
            pictures,
            [int(place * step) for place in range(1, 5)],
            {"fps": 10.0, "n_frames": 100, "sample_fps": 0.4},
        )
        several = name in ("Video-MME", "WorldSense", "LongVideoBench", "Video-MME-v2", *SPATIAL)
        dataset.save_video_frames = lambda *_, chosen=chosen, several=several, **__: chosen if several else chosen[0]
        dataset.save_video_into_images = lambda _: pictures  # noqa: B023
        line = {**CLASSES[name][3], **more}
        message = dataset.build_prompt(dict(line), False)
        parts = [part["value"] for part in message if part["value"]]
        suffix = "_nopack" if name == "MMBench_Video" else words
        row = {key: str(value) for key, value in line.items() if value is not None}
        found.append([f"{name}_4frame{suffix}", row, parts])
    return found


def frames(published: Videos, folder: str) -> list[Any]:
    """The numbers of the frames that each class takes."""
    decord = sys.modules["decord"]
    decord.VideoReader, decord.cpu = Reader, lambda _: None  # type: ignore[attr-defined]
    sys.modules["portalocker"].Lock = lambda *_, **__: tempfile.TemporaryDirectory()  # type: ignore[attr-defined]
    image = types.SimpleNamespace(
        fromarray=lambda _: types.SimpleNamespace(save=lambda path: None, size=(16, 16), resize=lambda *_: None)
    )
    for module in [*published.classes.values(), sys.modules["vlmeval.dataset.video_base"]]:
        if hasattr(module, "Image"):
            module.Image = image
    videos = [(100, 10.0), (97, 29.97), (301, 23.976023976), (1800, 25.0), (7, 30.0), (16, 15.0), (45000, 59.94)]
    found = []
    for name, (_, _, _, line) in CLASSES.items():
        for total, rate in videos:
            for count, fps in ((8, -1), (64, -1), (0, 1.0), (0, 0.5)):
                if fps > 0 and (name == "MVBench" or ("VSI" in name and total / rate * fps < 1)):  # these fail
                    continue
                for clip in (None, (1.5, 3.2), (0.0, 1000.0)) if name == "MVBench" else (None,):
                    Reader.total, Reader.rate = total, rate
                    dataset = made(published, name, folder, {"nframe": count, "fps": fps})
                    bound = {"bound": clip is not None, "start": clip and clip[0], "end": clip and clip[1]}
                    found.append([name, total, rate, count, fps, clip, taken(dataset, name, {**line, **bound})])
    return found


def taken(dataset: Any, name: str, line: dict[str, Any]) -> list[int]:
    """The frames that a class asks of the video."""
    Reader.asked = []
    if name.startswith("MVBench"):
        dataset.save_video_frames = lambda *_: None
        dataset.save_video_into_images(line)
    elif name in ("Video-MME", "WorldSense", "MMBench_Video", "Video-MME-v2", *SPATIAL):
        dataset.save_video_frames(line["video"])
    elif name == "LongVideoBench":
        dataset.save_video_frames(line["video_path"])
    else:
        dataset.save_video_frames(line)
    return list(Reader.asked)


def ratings(published: Videos) -> dict[str, Any]:
    """Rows with scores, and what is rated of them."""
    draw = random.Random("ratings")
    found: dict[str, Any] = {}

    def rated(name: str, rate: Any, rows: list[dict[str, Any]]) -> None:
        published.table = published.frame(rows)
        found[name] = {"rows": rows, "rating": json.loads(json.dumps(rate("x")))}

    world = published.own["worldsense"]
    rows = []
    for place in range(160):
        rows.append(
            {
                "index": place,
                "score": draw.randrange(2),
                "duration": draw.choice(world.DURATIONS[:2]),
                "domain": draw.choice(world.DOMAINS[:3]),
                "sub_category": draw.choice(world.SUB_CATEGORIES[:4]),
                "task_domain": draw.choice(world.TASK_DOMAINS),
                "task_type": draw.choice(world.TASK_CATEGORIES[:3]),
                "audio_class": str(draw.sample(world.AUDIO_CLASSES, draw.randint(1, 3))),
            }
        )
    rated("world_sense", world.get_dimension_rating, rows)
    long = published.own["longvideobench"]
    rows = [
        {
            "index": place,
            "score": draw.randrange(2),
            "duration_group": draw.choice(long.DURATIONS[1:]),
            "question_category": draw.choice(long.TASK_CATEGORIES[:4]),
        }
        for place in range(120)
    ]
    rated("long_video_bench", long.get_dimension_rating, rows)
    rows = [
        {"index": place, "score": draw.randrange(2), "task_type": draw.choice(["Action Count", "State Change"])}
        for place in range(60)
    ]
    rated("mvbench", published.own["mvbench"].get_dimension_rating, rows)
    rated("mlvu", published.own["mlvu"].get_dimension_rating, rows)
    rows = [
        {
            "index": place,
            "score": draw.randrange(2),
            "task_type": draw.choice(["yes_no", "captioning"]),
            "dim": draw.choice(["speed", "order"]),
        }
        for place in range(60)
    ]
    rated("temp_compass", published.own["tempcompass"].get_dimension_rating, rows)
    graded = published.own["mmbench_video"]
    rows = [
        {"index": place, "score": draw.randrange(4), "dimensions": str(draw.sample(graded.L3_DIMS, draw.randint(1, 3)))}
        for place in range(150)
    ]
    rated("mmbench_video", graded.get_dimension_rating, rows)
    kinds = ["object_counting", "route_planning", "room_size_estimation"]
    kinds += [f"object_rel_direction_{level}" for level in ("easy", "medium", "hard")]
    rows = [
        {"index": place, "score": draw.randrange(11) / 10, "question_type": kinds[place % 6]} for place in range(90)
    ]
    numbers = [row for row in rows if row["question_type"] in ("object_counting", "room_size_estimation")]
    data = [published.frame([row for row in rows if row not in numbers]).rename(columns={"score": "hit"})]
    data.append(published.frame(numbers).rename(columns={"score": "MRA:.5:.95:.05"}))
    aggregate = published.classes["vsibench"].VsiBench._aggregate
    rated("vsi", lambda _: {name: each for name, each in aggregate(None, *data).items() if "tab" not in name}, rows)
    rows = []
    for group in range(40):
        kind = draw.choice(["relevance", "logic"])
        shared = {
            "level": draw.choice(["1", "2", "3", "None"]),
            "group_type": kind,
            "group_structure": draw.choice(["[1, 2, 3, 4]", "[1, [2, 3], 4]", "[[1, 2], 3, 4]"]),
            "second_head": draw.choice(["x", "y"]),
            "third_head": draw.choice(["p", "q"]),
        }
        rows += [{"index": 4 * group + place, "score": int(draw.random() < 0.6), **shared} for place in range(4)]
    rated("video_mme_v2", published.classes["videommev2"].get_final_rating, rows)
    return found


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    for name in ("pandas", "torch", "torchvision.transforms", "PIL.Image", "PIL.ImageOps"):
        importlib.import_module(name)
    published = Videos(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/subtitles")
        os.makedirs(f"{folder}/subtitle")
        Path(f"{folder}/subtitles/spoken.json").write_text(json.dumps(SPOKEN))
        Path(f"{folder}/subtitles/timed.json").write_text(json.dumps(TIMED))
        Path(f"{folder}/subtitle/001.jsonl").write_text("\n".join(map(json.dumps, WORDS)))
        more = {"prompts": prompts(published, folder), "frames": frames(published, folder)}
    more |= {
        "ratings": ratings(published),
        "subtitles": {"spoken.json": SPOKEN, "timed.json": TIMED, "001.jsonl": WORDS},
    }
    base.write(PATH, published, ROWS, more, __doc__ or "")
    whole = json.loads(gzip.decompress(PATH.read_bytes()))
    print({name: len(each) for name, each in whole.items() if not isinstance(each, str)})


if __name__ == "__main__":
    main()
