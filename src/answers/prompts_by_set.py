"""Prompts of single benchmarks of grounding, tables and questions of several kinds; see `testbed.answers.prompts`."""

from __future__ import annotations

import ast
import json
from functools import cache, partial
from importlib.resources import files
from string import ascii_uppercase
from typing import Any

from testbed.answers.columns import OPTIONS, numbered_options, options
from testbed.answers.prompts import SINGLE_WORD, Turn, cell_text, column, question
from testbed.data.rows import Row
from testbed.errors import SampleError

CHOICE, STATEMENT = "选择", "判断"  # cells of the column type in CMMMU
_DENTAL = (
    "Please answer the above multiple-choice question by selecting the single correct option (A, B, C, or D). If the"
    " provided information is insufficient to determine a clear answer, please choose the most likely correct option"
    " based on the available data and your judgment."
)
_CHOOSE = (
    "请回答上述多项选择题，并选出正确选项。这些题目可能包括单选和多选题型。如果所提供的信息不足以确定一个明确的答案，"
    "那么请根据可用的数据和你的判断来选择最可能正确的选项。"
)
_JUDGE = (
    "\n请回答上述判断题，并根据题目描述和所给的信息来判断问题中陈述的对错。如果信息不完整或不足以作出绝对判断，"
    "请运用你的逻辑推理和现有信息来做出最可能的判断。"
)
_FILL = (
    "\n请回答上述填空题，并根据题目的要求和所提供的信息来给出最恰当的答案。如果信息不足以确切回答，"
    "那么请依据现有的数据和你的推理能力来填写最合理的答案。"
)
_GROUNDING = (
    "All spatial relationships are defined from the viewer's perspective, where 'front' means closer to the viewer and"
    " 'back' means farther from the viewer. Please provide the bounding box coordinate of the object the following"
    " statement describes:\n{}\nEnsure that all details mentioned about the object are accurate. Provide at most one"
    " bounding box. If a matching object is found, provide its bounding box as a JSON in the format"
    ' {{"bbox_2d": [x1, y1, x2, y2]}}. If no matching object is found, output {{"bbox_2d": null}}.'
)
_POINTS = (
    '\n\nOutput the point coordinates in JSON format.\nFor example:\n[\n  {"point_2d": [x, y], "label": "point_1"}\n]\n'
)
_BRIEFLY = "\nAnswer the question directly. The answer should be very brief."
_DISTANCE = (
    "You will be provided with a question and a 2D image. The question involves measuring the precise distance in 3D"
    " space through a 2D image. You will answer the question by providing a numeric answer consisting of a scalar and a"
    ' distance unit in the format of """\\scalar{scalar} \\distance_unit{distance unit}""" at the end of your response.'
    "\nQuestion: %s\nLet's thinkg step by step and start by finding good reference objects or object parts in the"
    " image."
)
_TABLES = {
    "fintabnetqa": (
        "You are asked to answer questions asked on a image.\n"
        "You should answer the question within a single word or few words.\n"
        "If units can be known, the answer should include units such as $, %, million and etc.\nExample: \n"
        "Question: What were the total financing originations for the fiscal year ended October 31, 2004?\n"
        "Answer: $3,852 million\nQuestion: What is the time period represented in the table?\nAnswer: October 31\n"
        "Question: What was the percentage of net sales for selling, general and administrative expenses in 2006?\n"
        "Answer: 34.2%\nQuestion: "
    ),
    "vtabfact": (
        "You are asked to answer whether the statement is True or False based on given image\n"
        "You should only answer True or False.\nExample: \n"
        "Statement: the milwaukee buck win 6 game in the 2010 - 11 season\nAnswer: True\n"
        "Statement: only the top team score above the average of 8.8\nAnswer: False\n\nStatement: "
    ),
    "vwtq": (
        "You are asked to answer questions asked on an image.\nYou should answer the question with a single word.\n"
        "Example: \nQuestion: what was the only year mr. wu competed in the olympic games?\nAnswer: 2004\n"
        "Question: which township in pope county, arkansas has the least amount of water area?\nAnswer: Freeman\n"
        "If you have multiple answers, please separate them with || marks. Example: Apple||Banana||Tomato\n\nQuestion: "
    ),
}
_TABLES["vwtq_syn"] = _TABLES["vwtq"]
_CHEMISTRY = (
    "The following is a question about chemistry. Please answer by responding with the letter(s) of the correct"
    " answer(s). Separate multiple answers with a comma."
)
_MATERIALS = "The following is a question about chemistry or material science. Please return the answer as a number."
_TAGS = "You MUST include the final answer within the following tags: [ANSWER] and [/ANSWER]."
_LETTERS = (
    "For example, '[ANSWER]<answer>[/ANSWER].\nFor example, '[ANSWER]<answer>[/ANSWER]', where <answer> is comma- or"
    " space-separated list of the correct letters. Always answer in exactly this format of comma-separated letters"
    " between the two tags, even if you are unsure. We require this because we use automatic parsing."
)
_NUMBER = (
    " For example, '[ANSWER]<answer>[/ANSWER]', where <answer> is only one number. Always answer in exactly this"
    " format, with ONE NUMBER between the two tags, even if you are unsure. We require this because we use automatic"
    " parsing."
)
_SUB_QUESTIONS = (
    "Your task is to answer the question above. Give step by step reasoning, and conclude all the answers (include"
    " sub-questions) at the end of your solution."
)

_SNIPPET = {
    "Reasoning": (
        "Answer a question based on the above book snippet. Your answer should be short and based on either explicitly"
        " stated facts or strong, logical inferences. Return only the final answer with no additional explanation or"
        " reasoning. Question: "
    ),
    "Retrieval": (
        "Answer a question based on the above book snippet. Some special magic numbers are hidden within the following"
        " text. Make sure to memorizeit. I will quiz you about the numbers afterwards. Question: "
    ),
    "Memory": (
        "Based on the above context, write an answer in the form of a short phrase for the following question. Answer"
        " with exact words from the context whenever possible. Question: "
    ),
}

which_point = partial(question, ending=" Answer with 'point1' or 'point2'.")  # DA-2K
twice_short_answer = partial(question, ending=SINGLE_WORD * 2)  # AyaVisionBench, as VLMEvalKit asks
briefly = partial(question, ending=_BRIEFLY)  # MAT-Bench


def dental_choice(row: Row) -> list[Turn]:
    """MMOral-OPG: the pictures, the question and the options in ``option1`` to ``option4``."""
    return _numbered(row, "Question: ", _DENTAL)


def _numbered(row: Row, before: str, ending: str) -> list[Turn]:
    lines = "".join(f"{letter}. {text}\n" for letter, text in numbered_options(row.columns).items())
    return [[*row.pictures, f"{before}{cell_text(row, 'question')}\nOptions:\n{lines}{ending}"]]


def cmmmu(row: Row) -> list[Turn]:
    """CMMMU: the pictures and the question, with options, or what to do with a statement or a blank, by ``type``."""
    if row.columns.get("type") == CHOICE:
        return _numbered(row, "问题: ", _CHOOSE)
    return question(row, _JUDGE if row.columns.get("type") == STATEMENT else _FILL)


def described_object(row: Row) -> list[Turn]:
    """GroundingME: the pictures, and the request for the box of the object that the question describes."""
    return [[*row.pictures, _GROUNDING.format(cell_text(row, "question"))]]


def robo_spatial(row: Row) -> list[Turn]:
    """RoboSpatial-Home: the pictures and the question; of the category ``context``, with the form of points."""
    (turn,) = column(row, "question")
    if row.columns.get("category") != "context":
        return [turn]
    return [[*turn[:-1], str(turn[-1]).partition("Your answer should")[0].strip() + _POINTS]]


def questioned(row: Row) -> list[Turn]:
    """VLM2-Bench: the pictures, and the question with its name."""
    return [[*row.pictures, f"Question: {cell_text(row, 'question')}\n"]]


def table_vqa(row: Row) -> list[Turn]:
    """TableVQA-Bench: the pictures, and the question after the examples of its ``split``."""
    (turn,) = column(row, "question")
    split = row.columns.get("split", "")
    return [[*turn[:-1], f"{_TABLES[split]}{turn[-1]}\nAnswer:" if split in _TABLES else turn[-1]]]


def distance(row: Row) -> list[Turn]:
    """Q-Spatial: the pictures, and the question with the form of a distance."""
    return [[*row.pictures, _DISTANCE % cell_text(row, "question")]]


def needle(row: Row) -> list[Turn]:
    """MM-NIAH: a document and its question with pictures where they have ``<image>``, and options.

    Raises:
        SampleError: If a cell is not in the form of MM-NIAH, or the texts name another number of pictures.
    """
    texts, choices = _cell(row, "question"), _cell(row, OPTIONS)
    if not (
        isinstance(texts, list | tuple) and len(texts) > 1 and isinstance(choices, list | tuple) and len(choices) > 1
    ):
        raise SampleError(f"{row.index}: its question or its {OPTIONS!r} is not a list of two")
    lines = choices[0] or ["<image>"] * len(choices[1] or ())
    lettered = "".join(f"\n{letter}. {line}" for letter, line in zip(ascii_uppercase, lines, strict=False))
    ending = "Answer with the option's letter from the given choices directly." if lines else None
    text = f"{texts[0]}\n{texts[1]}{lettered}\n{ending or 'Answer the question using a single word or phrase.'}"
    parts = text.split("<image>")
    if len(parts) != len(row.pictures) + 1:
        raise SampleError(f"{row.index}: its texts name {len(parts) - 1} pictures, and it has {len(row.pictures)}")
    of_options = 0 if choices[0] else len(choices[1] or ())
    said: Turn = []
    for place, part in enumerate(parts):
        after = "\n<image>" if place < len(parts) - 1 - of_options else "<image>" if place < len(parts) - 1 else ""
        said += [part + after] if part + after else []
        said += row.pictures[place : place + 1]
    return [said]


def _cell(row: Row, name: str) -> Any:
    try:
        return ast.literal_eval(row.columns.get(name, ""))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def mac_bench(row: Row) -> list[Turn]:
    """MaCBench: a question with its pictures in place of ``{image}``, and options or the request for a number."""
    before, _, after = row.columns.get("question", "").partition("{image}")
    choices = options(row.columns)
    task = _CHEMISTRY if choices else _MATERIALS
    lines = "".join(f"\n{letter}: {text}" for letter, text in choices.items())
    form = _TAGS + (_LETTERS if choices else _NUMBER)
    return [[f"{task}\nQuestion: {before}", *row.pictures, f"{after}{lines}\n{form}\nAnswer: "]]


def sub_questions(row: Row) -> list[Turn]:
    """MathCanvas-Bench: the question with pictures where it has ``<image>``, and the request for all answers.

    Raises:
        SampleError: If it names another number of pictures.
    """
    parts = cell_text(row, "question").split("<image>")
    if len(parts) != len(row.pictures) + 1:
        raise SampleError(f"{row.index}: its text names {len(parts) - 1} pictures, and it has {len(row.pictures)}")
    said: Turn = []
    for place, part in enumerate(parts):
        said += [part] if part.strip() else []
        said += row.pictures[place : place + 1]
    return [[*said, _SUB_QUESTIONS]]


def snippet(row: Row) -> list[Turn]:
    """VTCBench: the pictures of a text, and the question with the task of its ``category``.

    Raises:
        SampleError: If VTCBench does not have this category.
    """
    asked, category = cell_text(row, "question"), row.columns.get("category", "")
    if category not in _SNIPPET:
        raise SampleError(f"{row.index}: its category is {category!r}; expected {', '.join(_SNIPPET)}")
    return [[*row.pictures, f"{_SNIPPET[category]}{asked}"]]


def ranking(row: Row) -> list[Turn]:
    """SSI-Bench: the pictures, and the task that the question names, about members in ``annotation_color``."""
    name = cell_text(row, "question").strip()
    color = row.columns.get("annotation_color", "").strip() or "cyan"
    return [[*row.pictures, _rankings().get(name, name).replace("{color}", color)]]


@cache
def _rankings() -> dict[str, str]:
    """The names of SSI-Bench's tasks → their texts, in notation of JSON."""
    lines = files("testbed.answers").joinpath("ssi_prompts.tsv").read_text("utf-8").splitlines()
    return {name: json.loads(text) for name, text in (line.split("\t", 1) for line in lines[1:])}
