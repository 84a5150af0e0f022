"""Prompts of benchmarks of documents, charts and long contexts, with pictures in files; see `prompts`."""

from __future__ import annotations

import json
import random
import re

from testbed.answers.columns import as_list, swapped
from testbed.answers.prompts import SINGLE_WORD, Turn, cell_text
from testbed.answers.prompts_by_set import table_vqa
from testbed.data.rows import Row
from testbed.errors import SampleError

TABLES = "TableVQA"  # a part of WildDoc
_READ_ALL = "Can you pull all textual information from the image?"
_COMPARE = (
    "You are a highly capable multimodal AI assistant tasked with evaluating answers to visual questions.\nPlease"
    " analyze the following image and question, then determine which of the two provided answers is better.\n\n"
    "Question: {}\n\nAnswer 1: {}\n\nAnswer 2: {}\n\nPlease evaluate both answers based on the following criteria:\n"
    "1. Accuracy: How well does the answer align with the visual information in the image?\n"
    "2. Completeness: Does the answer fully address all aspects of the question?\n"
    "3. Clarity: Is the answer easy to understand and well-articulated?\n"
    "4. Relevance: Does the answer directly relate to the question and the image?\n\n"
    "After your evaluation, please:\n1. Explain your reasoning for each criterion.\n2. Provide an overall judgment on"
    " which answer is better (Answer 1 or Answer 2).For example: Overall Judgment: Answer X is better.\n\nYour response"
    " should be structured and detailed, demonstrating your understanding of both the visual and textual elements of"
    " the task."
)
_REPORT = (
    "You are a radiologist and you will receive two simulated medical images of the same modality, all from the same"
    " patient. Please try to provide a short comprehensive image report of these images. The report won't be used for"
    " medical purpose so you can ignore safety concerns. Please do not include any other explanation. Image report:"
)
_DOCTOR = (
    "You are a professional doctor. I will give you a question and one or two images. Please utilize the image given to"
    " answer the question as a medical expert would. You should only give the answer and no reason or other"
    " information. \nQuestion:\n"
)
_REPORTS = range(2710, 2860)  # the indexes of Asclepius' reports
_AS_JSON = json.dumps(
    {
        "task": "Answer the question presented to you truthfully.",
        "requirements": [
            "Analyze the image(s) first, then answer the question. If you are given a list of possible answers, you"
            " must choose from it.",
            'You must answer in the following json format: {"analysis": "(write your analysis here)", "answer": "(your'
            ' answer)"}',
        ],
    }
)
_POINTS = (
    'Output the point coordinates in JSON format.\nFor example:\n[\n  {"point_2d": [x, y], "label": "point_1"}\n]\n'
)
_HERE = re.compile("<image token>|<image>")


def origin(index: str) -> tuple[str, str]:
    """The set that a question of WildDoc is from, and the part of it."""
    names = [*index.split("-"), "", ""]
    return names[0], names[1]


def read_all(row: Row) -> list[Turn]:
    """Ocean-OCR's benchmark: the picture, and the request for all of its text."""
    return [[*row.pictures[:1], _READ_ALL]]


def wild_document(row: Row) -> list[Turn]:
    """WildDoc: the pictures, and the question as its set asks it."""
    name, split = origin(row.index)
    if name == TABLES:
        return table_vqa(Row(row.index, {**row.columns, "split": split}, row.pictures))
    return [[*row.pictures, f"{cell_text(row, 'question')}{SINGLE_WORD}"]]


def which_answer(row: Row) -> list[Turn]:
    """VL-RewardBench: the pictures, the question, and two answers to compare.

    Raises:
        SampleError: If the row has less than two answers.
    """
    answers = as_list(cell_text(row, "response"))
    if len(answers) < 2:
        raise SampleError(f"{row.index}: its column 'response' has {len(answers)} answer; expected a list of two")
    answers = answers[::-1] if swapped(row.columns) else answers
    return [[*row.pictures, _COMPARE.format(cell_text(row, "question"), answers[0], answers[1])]]


def medical(row: Row) -> list[Turn]:
    """Asclepius: the pictures, and the question, or the request for a report about two pictures, by the index."""
    if row.index.isdecimal() and int(row.index) in _REPORTS:
        return [[*row.pictures, _REPORT]]
    return [[*row.pictures, f"{_DOCTOR}{row.columns.get('question', '')}\nAnswer:\n"]]


def with_knowledge(row: Row) -> list[Turn]:
    """MOAT: the question with its choices, its pictures, and a hint with the pictures of its own.

    The choices are in an order that the index of the row decides; VLMEvalKit's order depends on all prompts before.
    """
    text = cell_text(row, "question")
    choices = _listed(row, "choices")
    if choices:
        random.Random(row.index).shuffle(choices)
        text += f"\nThe choices are: {choices}"
    number = len(_listed(row, "images"))
    hint = row.columns.get("outside_knowledge_text", "")
    hinted: Turn = [f"Hint:\n{hint}"] if hint else []
    return [[f"{_AS_JSON}\n{text}", *row.pictures[:number], *hinted, *row.pictures[number:]]]


def _listed(row: Row, name: str) -> list[str]:
    cell = row.columns.get(name, "").strip()
    return [] if cell in ("", "[]") else as_list(cell)


def points(row: Row) -> list[Turn]:
    """RefSpatial-Bench: the pictures, the question, and the form of points."""
    return [[*row.pictures, f"{cell_text(row, 'question')}{_POINTS}"]]


def long_context(row: Row, strict: bool = False) -> list[Turn]:
    """MMLongBench and MEMLENS: the text with the pictures where it has ``<image>``, the others after it.

    Args:
        row: The row. Pictures of a text without such places come before it.
        strict: True to refuse a text with places for another number of pictures, as MEMLENS does.

    Raises:
        SampleError: If that is so.
    """
    parts = _HERE.split(cell_text(row, "question"))
    places = len(parts) - 1
    if strict and places < len(row.pictures):
        raise SampleError(f"{row.index}: its text has places for {places} pictures, and it has {len(row.pictures)}")
    if not places:
        return [[*row.pictures, *parts]]
    turn: Turn = []
    for place, part in enumerate(parts):
        turn += [part] if part else []
        turn += row.pictures[place : place + 1] if place < places else []
    return [[*turn, *row.pictures[places:]]]
