"""Prompts of video benchmarks, as `testbed.answers.prompts`: the pictures of a row are frames of its video.

The texts are VLMEvalKit's. What it marks as the system's or the assistant's words is a part of the user's turn, as its
models take it.
"""

from __future__ import annotations

import json
import re
from functools import partial
from string import ascii_uppercase

from testbed.answers.columns import as_list
from testbed.answers.prompts import OF_THE_VIDEO, Turn, cell_text, video_mme
from testbed.data.rows import Row
from testbed.data.tables.frame_lists import SHOWN
from testbed.errors import SampleError

_WATCH = "Carefully watch this video and pay attention to every detail. "
_SELECT_BEST = "Based on your observations, select the best option that accurately addresses the question."
_ANSWER_GIVEN = "Based on your observations, answer the given questions."
_EVENTS = (
    "Carefully watch the video and pay attention to the cause and sequence of events, the detail and movement of"
    " objects, and the action and pose of persons. Based on your observations, select the best option that accurately"
    " addresses the question.\n"
)
_OF_THE_VIDEO = (
    "Select the best answer to the following multiple-choice question based on the video. Respond with only the letter"
    " of the correct option."
)
_BEST_DIRECTLY = "Give me the answer letter directly. The best answer is:"
_PLACES = re.compile("(<video>|<image>)")
_LETTER_DIRECTLY = "\nAnswer with the option's letter from the given choices directly."
_SEPARATE_FRAMES = (
    "\nYou will be provided with {} separate frames uniformly sampled from a video, the frames are provided in"
    " chronological order of the video.\nPlease analyze these images and provide the answer to the question about the"
    " video content.\nPlease directly reply with your response to the only question.\n"
)
_FRAMES_OF_VIDEO = "These are the frames of a video."
_SAID_BETWEEN = (
    "These are the frames of a video with corresponding subtitles shown between frames. The subtitles indicate what is"
    " being said during the time interval between adjacent frames."
)
_IN_TAGS = (
    "\n    Based on the given video, reason and answer the single-choice question. Provide your reasoning between the"
    " <think> and </think> tags, and then give your final answer between the <answer> and </answer> tags. "
)
_OF_EIGHT = (
    "Select the best answer to the following multiple-choice question based on the video. Respond with only the letter"
    " (A, B, C, D, E, F, G, or H) of the correct option."
)
_REASONING_OF_EIGHT = (
    "Please perform a detailed reasoning based on the provided video frames to answer the following multiple-choice"
    " question selecting the best option from A through H and providing your final response strictly in the format:"
    " 'Final Answer: <letter>."
)


def watched_options(row: Row, heading: str, endings: tuple[str, ...]) -> list[Turn]:
    """The heading, the frames, then question and options in one text, and the endings."""
    lines = [f"({letter}) {text}" for letter, text in zip(ascii_uppercase, _candidates(row), strict=False)]
    asked = f"Question: {cell_text(row, 'question')}\nOptions:\n" + "".join(f"{line}\n" for line in lines)
    return [[heading, *row.pictures, asked.rstrip(), *endings]]


mvbench = partial(watched_options, heading=_EVENTS, endings=("\nOnly give the best option.", "Best option:("))
mlvu = partial(watched_options, heading=_WATCH + _SELECT_BEST, endings=("\nOnly give the best option.",))


def mlvu_open(row: Row) -> list[Turn]:
    """MLVU's open questions: the heading, the frames, the question."""
    return [[_WATCH + _ANSWER_GIVEN, *row.pictures, cell_text(row, "question")]]


def long_video_bench(row: Row, subtitles: bool = False) -> list[Turn]:
    """LongVideoBench: the frames, with the subtitles between them if these are shown, then question and options.

    Args:
        subtitles: Shows the column ``subtitles``; see `testbed.data.tables.video_subtitles`.
    """
    lines = [f"{letter}. {text}" for letter, text in zip(ascii_uppercase, _candidates(row), strict=False)]
    text = "\n".join([cell_text(row, "question"), *lines])
    return [[*(_with_subtitles(row) if subtitles else row.pictures), text + _LETTER_DIRECTLY]]


def temp_compass(row: Row, ending: str = "\nPlease directly give the best option:") -> list[Turn]:
    """TempCompass' multiple choice and caption matching: the frames, question and options, and the ending."""
    return [[*row.pictures, "\n".join([cell_text(row, "question"), *_candidates(row)]), ending]]


def temp_compass_yes_no(row: Row) -> list[Turn]:
    """TempCompass' questions with yes or no as answers."""
    return [[*row.pictures, cell_text(row, "question"), "\nPlease answer yes or no:"]]


def world_sense(row: Row, subtitles: bool = False) -> list[Turn]:
    """WorldSense (arXiv 2502.04326): a heading, then as Video-MME."""
    ((*parts,),) = video_mme(row, subtitles)
    return [[_WATCH + _SELECT_BEST, *parts]]


def mmbench_video(row: Row) -> list[Turn]:
    """MMBench-Video (arXiv 2406.14515), a question at a time."""
    given = _SEPARATE_FRAMES.format(len(row.pictures))
    return [[given, *row.pictures, f"Question: {cell_text(row, 'question')}\nAnswer: "]]


def video_mme_v2(row: Row, subtitles: str = "", reasoning: bool = False) -> list[Turn]:
    """Video-MME-v2: the frames, their subtitles if shown, then question and options.

    Args:
        row: The row, with its options in ``options``.
        subtitles: ``"all"``: in a text after the frames; ``"between"``: after each frame; empty: not shown.
        reasoning: Asks for the reasoning before the answer.
    """
    text = f"Question: {cell_text(row, 'question')}\n{cell_text(row, 'options')}\n"
    text += _REASONING_OF_EIGHT if reasoning else _OF_EIGHT
    if subtitles == "between":
        return [[*_with_subtitles(row), _SAID_BETWEEN, text]]
    said = f" This video's subtitles are listed below:\n{row.columns.get('subtitles', '')}\n" if subtitles else ""
    return [[*row.pictures, _FRAMES_OF_VIDEO + said, text]]


def vsi_bench(row: Row) -> list[Turn]:
    """VSI-Bench (arXiv 2412.14171): the frames, then question and options, or the request for a number."""
    options = _candidates(row)
    ending = _LETTER_DIRECTLY.strip() if options else "Answer briefly and directly in one float number."
    lines = ["These are frames of a video.", cell_text(row, "question"), *options, ending]
    return [[*row.pictures, "\n".join(lines)]]


def vsi_super_recall(row: Row) -> list[Turn]:
    """VSI-SUPER-Recall (arXiv 2511.04670)."""
    lines = [cell_text(row, "question").strip(), "Options:", *as_list(cell_text(row, "options"))]
    return [[*row.pictures, "\n".join(lines) + _LETTER_DIRECTLY]]


def vsi_super_count(row: Row) -> list[Turn]:
    """VSI-SUPER-Count (arXiv 2511.04670)."""
    ending = "\nPlease answer the question using a single word or phrase."
    return [[*row.pictures, f"These are frames of a video.\n{cell_text(row, 'question').strip()}{ending}"]]


def sti_bench(row: Row) -> list[Turn]:
    """STI-Bench (arXiv 2503.23765): the question names its seconds, and how many frames a second has."""
    options = zip(ascii_uppercase, as_list(cell_text(row, "options")), strict=False)
    times = f"From {cell_text(row, 'time_start')} seconds to {cell_text(row, 'time_end')} seconds. "
    asked = "\n".join([times + cell_text(row, "question"), *(f"{letter} {text}" for letter, text in options)])
    text = (
        "Answer the question below based on the frames provided, which are sampled at about"
        f" {row.columns.get('sampled_fps', '')} FPS.\nQuestion: {asked}\nPlease output only the option you choose!"
    )
    return [[*row.pictures, text]]


def dsr_bench(row: Row) -> list[Turn]:
    """DSR-Bench: what is asked, the frames, then question and options."""
    lines = "\n".join([cell_text(row, "question"), *as_list(cell_text(row, "options"))])
    return [[f"\n{_FRAMES_OF_VIDEO} {OF_THE_VIDEO}\n", *row.pictures, f"Question: {lines}\nAnswer: "]]


def site_bench(row: Row) -> list[Turn]:
    """SITE-Bench's videos (arXiv 2505.05456): the frames, then the request, question and options."""
    options = zip(ascii_uppercase, _candidates(row), strict=False)
    lines = "\n".join(f"{letter}: {text}" for letter, text in options)
    asked = f"Question: {cell_text(row, 'question')}\nOptions:\n{lines}\n{_BEST_DIRECTLY}"
    return [[*row.pictures, f"{_OF_THE_VIDEO}\n{asked}"]]


def mmsi_video(row: Row) -> list[Turn]:
    """MMSI-Video-Bench (arXiv 2512.10863): four prompts in one text, with frames and pictures where it names them.

    Raises:
        SampleError: If it names another number of videos or pictures than the row has.
    """
    columns = row.columns
    text = f"{columns.get('system_prompt', '')}\n{columns.get('task_prompt', '')}"
    text += f"{cell_text(row, 'user_prompt')}{columns.get('format_prompt', '')}"
    counts = [int(count) for count in json.loads(columns.get(SHOWN, "[]"))]
    videos, others = text.count("<video>"), text.count("<image>")
    if videos != len(counts) or others != len(row.pictures) - sum(counts):
        raise SampleError(
            f"{row.index}: its text names {videos} videos and {others} pictures; it has {len(counts)} and"
            f" {len(row.pictures) - sum(counts)}"
        )
    frames, pictures = iter(row.pictures), iter(row.pictures[sum(counts) :])
    left = iter(counts)
    turn: Turn = []
    for part in filter(None, _PLACES.split(text)):
        if part == "<video>":
            turn += [next(frames) for _ in range(next(left))]
        else:
            turn.append(next(pictures) if part == "<image>" else part)
    return [turn]


def video_tt(row: Row) -> list[Turn]:
    """Video-TT (arXiv 2507.15028): as Video-MME, with the options in ``question_prompt``."""
    asked = f"Question: {cell_text(row, 'question')}\n{cell_text(row, 'question_prompt')}\nAnswer: "
    return [[*row.pictures, f"\n{_FRAMES_OF_VIDEO} {OF_THE_VIDEO}\n", asked]]


def video_holmes(row: Row) -> list[Turn]:
    """Video-Holmes (arXiv 2505.21374): the frames, then the request for thoughts and an answer in tags."""
    asked = f"The question is: {cell_text(row, 'question')}. The options are: {cell_text(row, 'candidates')}."
    return [[*row.pictures, f"{_IN_TAGS}    {asked}     Your answer:\n    "]]


def _with_subtitles(row: Row) -> Turn:
    """The frames with the texts between them; without subtitles, the frames."""
    cell = row.columns.get("subtitles", "")
    places: list[list[str]] = json.loads(cell) if cell else [[] for _ in range(len(row.pictures) + 1)]
    turn: Turn = [*places[0]]
    for picture, said in zip(row.pictures, places[1:], strict=True):
        turn += [picture, *said]
    return turn


def _candidates(row: Row) -> list[str]:
    return as_list(row.columns["candidates"]) if "candidates" in row.columns else []
