"""Benchmarks of videos, and the rule of their names: ``SET_8frame``, ``SET_0.5fps_subs``, ….

A set is a row of `SETS`. A name is the set's, then the number of frames or the frames per second, then the words that
the set knows. VLMEvalKit lists some of these names (`VideoSet.listed`); the others work as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from testbed.answers import prompts, video_prompts
from testbed.data.video_frames import Frames

Fields = Mapping[str, Any]  # of `testbed.eval_settings.base.questions.Questions`

_NAME = re.compile(r"(.+)_(?:([1-9]\d{0,3})frame|((?:[1-9]\d{0,2}|0(?=\.\d))(?:\.\d{0,2}[1-9])?)fps)((?:_[a-z]+)*)")
_AREA = 448 * 448  # pixels of resized frames


@dataclass(frozen=True)
class VideoSet:
    """A benchmark of videos.

    Attributes:
        prompt: Makes the turns of the user from a row.
        scoring: A name in `testbed.answers.scorings.SCORINGS`.
        report: A name in `testbed.answers.reports.report.REPORTS`.
        required: The columns that the table must have besides ``video`` and ``question``.
        origin: The origin of the table, for messages.
        listed: The rest of the names that VLMEvalKit lists.
        words: What may follow in a name → the fields of `Questions` that it changes.
        rule: The rule of frames; see `Frames`.
        table: The name of the table, if it is another one.
        counted: True if frames are chosen by their number alone.
        named: The columns that name the videos and hold the question.
        lists: True if a table names the files of frames, and not videos.
    """

    prompt: Callable[..., Any]
    scoring: str
    report: str
    required: tuple[str, ...]
    origin: str
    listed: str
    words: Mapping[str, Fields] = field(default_factory=dict)
    rule: str = "spread"
    table: str = ""
    counted: bool = False
    named: tuple[str, ...] = ("video", "question")
    lists: bool = False

    def fields(self, name: str, frames: Frames, words: str) -> Fields:
        """The fields of `Questions` of a name."""
        return {
            "prompt": self.prompt,
            "scoring": self.scoring,
            "report": self.report,
            "table": self.table or name,
            "required": (*self.named, *self.required),
            "frames": frames,
            "origin": self.origin,
            **({"lists": True} if self.lists else {}),
            **(self.words[words] if words else {}),
        }


def _made_from(source: str, files: str) -> str:
    return f"VLMEvalKit makes it from Hugging Face's {source}, beside {files}"


def _subtitles(prompt: Callable[..., Any]) -> dict[str, Fields]:
    return {"subs": {"prompt": partial(prompt, subtitles=True), "subtitles": True}}


def _lacking(reason: str) -> Fields:
    return {"lacks": reason}


def _v2_words() -> dict[str, Fields]:
    """Video-MME-v2: resized or not, reasoning or not, subtitles after the frames, between them or nowhere."""
    found: dict[str, Fields] = {}
    for resize in ("", "resize"):
        for reasoning in ("", "reasoning"):
            for subs, (shown, form) in _V2_SUBTITLES.items():
                prompt = partial(video_prompts.video_mme_v2, subtitles=shown, reasoning=bool(reasoning))
                changed = {"prompt": prompt, "subtitles": form}
                words = "_".join(filter(None, (resize, reasoning, subs)))
                found[words] = changed | ({"area": _AREA} if resize else {})
    del found[""]
    return found


_V2_SUBTITLES: Mapping[str, tuple[str, str | bool]] = {
    "": ("", False),
    "subs": ("all", "all words"),
    "subs_interleave": ("between", "after frames"),
}
_OPTIONS = ("candidates", "answer")
_MLVU = _made_from("MLVU/MVLU", "the folder MLVU")
_TEMP_COMPASS = _made_from("lmms-lab/TempCompass", "the folder videos")
_EACH_PART = "8frame 64frame 1fps"
_AUDIO = _lacking("models here are not given sound: the names with _audio are not supported")
_PACKED = _lacking("several questions in one prompt (_pack) are not supported; _nopack asks one at a time")

_EACH_SPATIAL = "128frame 64frame 32frame 16frame 2fps 1fps"
_EACH_OTHER = "64frame 32frame 30frame 1fps"


def _spatial(prompt: Callable[..., Any], rule: str, listed: str, *columns: str, table: str = "") -> VideoSet:
    """A set of EASI, whose table has the path of each video in ``video``."""
    report = "spatial" if "options" in columns else "vsi"
    origin = "its table is in Hugging Face's lmms-lab-si/EASI-Leaderboard-Data; the videos go where it says"
    return VideoSet(prompt, "vsi", report, (*columns, "answer"), origin, listed, rule=rule, table=table)


SETS: Mapping[str, VideoSet] = {
    "Video-MME": VideoSet(
        prompts.video_mme,
        "video_mme",
        "video_mme",
        ("candidates", "answer", "duration", "domain", "sub_category", "task_type"),
        _made_from("lmms-lab/Video-MME", "the folders video and subtitle"),
        "8frame 64frame 8frame_subs 1fps 0.5fps 0.5fps_subs",
        _subtitles(prompts.video_mme),
    ),
    "Video-MME-v2": VideoSet(
        video_prompts.video_mme_v2,
        "video_mme_v2",
        "video_mme_v2",
        ("options", "answer", "group_type", "group_structure", "level"),
        _made_from("MME-Benchmarks/Video-MME-v2", "the folders video and subtitle"),
        "64frame 1fps 64frame_subs 1fps_subs 64frame_subs_interleave 1fps_subs_interleave 64frame_reasoning"
        " 64frame_reasoning_subs 64frame_reasoning_subs_interleave 64frame_resize 1fps_resize 64frame_resize_subs"
        " 64frame_resize_subs_interleave 64frame_resize_reasoning",
        _v2_words(),
    ),
    "MVBench": VideoSet(
        video_prompts.mvbench,
        "mvbench",
        "mvbench",
        ("prefix", "task_type", *_OPTIONS),
        _made_from("OpenGVLab/MVBench", "the folder video"),
        "8frame 64frame",
        rule="segments",
        counted=True,
    ),
    "MVBench_MP4": VideoSet(
        video_prompts.mvbench,
        "mvbench",
        "mvbench",
        ("prefix", "task_type", *_OPTIONS),
        _made_from("OpenGVLab/MVBench (branch video)", "its folders of videos"),
        "8frame 1fps",
        rule="segments",
    ),
    "MLVU_MCQ": VideoSet(video_prompts.mlvu, "mlvu", "mlvu", ("prefix", "task_type", *_OPTIONS), _MLVU, _EACH_PART),
    "MLVU_OpenEnded": VideoSet(
        video_prompts.mlvu_open, "mlvu_open", "mlvu_open", ("prefix", "task_type", "answer"), _MLVU, _EACH_PART
    ),
    "LongVideoBench": VideoSet(
        video_prompts.long_video_bench,
        "long_video_bench",
        "long_video_bench",
        ("candidates", "correct_choice", "question_category", "duration_group"),
        _made_from("longvideobench/LongVideoBench", "the folders videos and subtitles"),
        "8frame 8frame_subs 64frame 1fps 0.5fps 0.5fps_subs",
        {
            "subs": {
                "prompt": partial(video_prompts.long_video_bench, subtitles=True),
                "subtitles": "before frames",
            }
        },
    ),
    "TempCompass_MCQ": VideoSet(
        video_prompts.temp_compass,
        "temp_compass",
        "temp_compass",
        ("prefix", "suffix", "dim", "task_type", *_OPTIONS),
        _TEMP_COMPASS,
        f"{_EACH_PART} 0.5fps",
    ),
    "TempCompass_YorN": VideoSet(
        video_prompts.temp_compass_yes_no,
        "temp_compass_yes_no",
        "temp_compass",
        ("prefix", "suffix", "dim", "task_type", "answer"),
        _TEMP_COMPASS,
        f"{_EACH_PART} 0.5fps",
    ),
    "TempCompass_Captioning": VideoSet(
        prompts.question,
        "temp_compass_captioning",
        "temp_compass",
        ("prefix", "suffix", "dim", "task_type", "mc_question", "mc_answer"),
        _TEMP_COMPASS,
        f"{_EACH_PART} 0.5fps",
    ),
    "WorldSense": VideoSet(
        video_prompts.world_sense,
        "video_mme",
        "world_sense",
        ("candidates", "answer", "duration", "domain", "sub_category", "task_domain", "task_type", "audio_class"),
        _made_from("honglyhly/WorldSense", "the folders videos and subtitles"),
        " ".join(
            f"{each}{word}" for each in ("8frame", "32frame", "1fps", "0.5fps") for word in ("", "_subs", "_audio")
        ),
        {**_subtitles(video_prompts.world_sense), "audio": _AUDIO},
    ),
    "MMBench_Video": VideoSet(
        video_prompts.mmbench_video,
        "mmbench_video",
        "mmbench_video",
        ("answer", "dimensions"),
        "it is in Hugging Face's opencompass/MMBench-Video; the videos go into the folder video",
        "8frame_nopack 8frame_pack 16frame_nopack 64frame_nopack 64frame_pack 1fps_nopack 1fps_pack",
        {"nopack": {}, "pack": _PACKED},
        table="MMBench-Video",
    ),
    "Video_TT": VideoSet(
        video_prompts.video_tt,
        "video_mme",
        "video_tt",
        ("question_prompt", "answer", "capability"),
        _made_from("lmms-lab/video-tt", "the folder video"),
        "16frame 32frame 64frame",
        table="Video-TT",
    ),
    "Video_Holmes": VideoSet(
        video_prompts.video_holmes,
        "video_holmes",
        "video_holmes",
        (*_OPTIONS, "question_type"),
        _made_from("TencentARC/Video-Holmes", "the folder video"),
        "32frame 64frame",
    ),
    **{name: _spatial(video_prompts.vsi_bench, "tail", _EACH_SPATIAL) for name in ("VSI-Bench", "VSI-Bench-Debiased")},
    **{
        f"VsiSuperRecall_{minutes}mins": _spatial(video_prompts.vsi_super_recall, "ends", _EACH_SPATIAL, "options")
        for minutes in (10, 30, 60, 120, 240)
    },
    **{
        f"VsiSuperCount_{minutes}mins": _spatial(
            video_prompts.vsi_super_count, "ends", _EACH_SPATIAL, table=f"VsiSuperCount_{minutes}mins_wo_streaming"
        )
        for minutes in (10, 30, 60, 120)
    },
    "STI-Bench": _spatial(video_prompts.sti_bench, "ends", _EACH_OTHER, "options", "time_start", "time_end"),
    "SiteBenchVideo": VideoSet(
        video_prompts.site_bench,
        "vsi",
        "kinds",
        (*_OPTIONS, "category"),
        "its table is in Hugging Face's lmms-lab-si/EASI-Leaderboard-Data; the videos are those of"
        " franky-veteran/SITE-Bench, whose archives go unpacked into videos/SiteBenchVideo",
        "64frame 32frame 1fps",
        rule="ends",
        named=("video_path", "question"),
    ),
    "MMSIVideoBench": VideoSet(
        video_prompts.mmsi_video,
        "spatial",
        "spatial",
        ("video_fps", "system_prompt", "task_prompt", "format_prompt", "answer"),
        "its table is in Hugging Face's lmms-lab-si/EASI-Leaderboard-Data; the frames and pictures are those of"
        " rbler/MMSI-Video-Bench (frames.zip, ref_images.zip), which go unpacked into videos/MMSIVideoBench",
        "300frame 64frame 50frame 32frame 1fps",
        rule="ends",
        named=("image_path", "user_prompt"),
        lists=True,
    ),
    "DSRBench": _spatial(video_prompts.dsr_bench, "ends", _EACH_OTHER, "options"),
}
# Names of VLMEvalKit's that are several sets here → these.
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "MLVU": ("MLVU_MCQ", "MLVU_OpenEnded"),
    "TempCompass": ("TempCompass_MCQ", "TempCompass_Captioning", "TempCompass_YorN"),
}


def split_name(name: str) -> tuple[str, Frames, str] | None:
    """The set, the frames and the words after them in a name; None for a name of another form."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    count, fps = int(match[2] or 0), float(match[3] or 0)
    return match[1], Frames(count, fps), match[4].removeprefix("_")


def video_fields(name: str) -> Fields | None:
    """The fields of `Questions` of a name; None if it is not the name of a set of videos."""
    parts = split_name(name)
    known = SETS.get(parts[0]) if parts else None
    if parts is None or known is None:
        return None
    base, frames, words = parts
    if (known.counted and frames.fps) or (words not in known.words if words else "nopack" in known.words):
        return None
    fields = dict(known.fields(base, frames, words))
    rule = known.rule if frames.count or known.rule == "tail" else "spread"
    frames = Frames(frames.count, frames.fps, rule, fields.pop("area", 0))
    return {**fields, "frames": frames}


def listed_names() -> list[str]:
    """The names that VLMEvalKit lists; of sets that are parts of one there, as parts."""
    return [framed for name in SETS for framed in framed_names(name)]


def framed_names(name: str) -> list[str]:
    """The names, with frames, that VLMEvalKit lists for a table of videos; none for another table."""
    return [f"{name}_{rest}" for rest in SETS[name].listed.split()] if name in SETS else []


def listed_collections() -> dict[str, list[str]]:
    """The names that VLMEvalKit lists and that are several sets here."""
    return {
        f"{name}_{rest}": [f"{part}_{rest}" for part in parts]
        for name, parts in TOGETHER.items()
        for rest in SETS[parts[0]].listed.split()
    }
