"""Prompts of benchmarks of open texts; see `testbed.answers.prompts`."""

from __future__ import annotations

import ast
import json
from typing import Any

from testbed.answers.prompts import Turn, cell_text, column
from testbed.data.rows import Row

_LONGEST_FORMAT = 1 << 14  # characters
_MATERIALS = (
    "You are a materials science expert. Answer the question clearly and accurately.\n\n"
    "Return both sections exactly:\nstep-by-step reasoning\n"
    "<answer>a concise final answer that directly addresses the question</answer>\n\nQuestion:\n"
)
_CALCULATION = (
    "You are a materials science expert. Solve the calculation accurately.\n\n"
    "Return both sections exactly:\nstep-by-step reasoning\n<answer>ONLY the final answer content</answer>\n\n"
    "If final_answer_format is provided, the answer inside <answer> must match its grouping, order, and number of slots"
    " exactly. Replace each empty string slot with one final number, expression, or formula only.\n\nQuestion:\n"
)
_RATED = (
    "Please analyze the image based on the provided prompt and answer the following three questions.\n\n---\n"
    "**Question 1: Reality Assessment**\n"
    "Please answer each of the provided reality questions with only Yes, No, or Cannot Determine.\n\n---\n"
    "**Question 2: Aesthetics Rating**\nPlease rate the aesthetics of the image on a scale of 1-5.\n\n---\n"
    "**Question 3: Instruction Consistency Rating**\nBased on the image and the provided prompt,         please rate"
    " the instruction consistency of the generated image on a scale of 1-5.\n"
)
_QUALITY = (
    "As a medical image quality assessment expert, provide a concise description focusing on low-level appearance of"
    ' the image in details. Conclude with "Overall, the quality of this image is [good/usable/reject]". Please provide'
    " a comprehensive but concise assessment in 3-5 sentences."
)
_COMPARISON = (
    "As a medical image quality assessment expert, provide a concise description comparing two images focusing on"
    " low-level appearance. Conclude with which image has higher quality. Please provide a comprehensive but concise"
    " assessment in 3-5 sentences."
)


def materials(row: Row) -> list[Turn]:
    """OmniMat, questions: the pictures, and the question after the request for reasoning and an answer in a tag."""
    return [[*row.pictures, f"{_MATERIALS}{cell_text(row, 'question')}"]]


def calculation(row: Row) -> list[Turn]:
    """OmniMat, calculations: as `materials`, with the form of the answer, which has an empty text for each number."""
    (turn,) = column(row, "question")
    form = _format(row.columns.get("final_answer_format", ""))
    if form is not None:
        said = json.dumps(form, ensure_ascii=False)
        turn = [
            *turn[:-1],
            f"{turn[-1]}\n\n--- Final Answer Format Constraint ---\nfinal_answer_format: {said}\n"
            "Inside <answer>, output only the filled answer structure.",
        ]
    return [[*turn[:-1], f"{_CALCULATION}{turn[-1]}"]]


def _format(cell: str) -> Any:
    if not cell.strip() or cell.strip().lower() in ("nan", "none") or len(cell) > _LONGEST_FORMAT:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return read(cell.strip())
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return None


def rated(row: Row) -> list[Turn]:
    """GOBench: the first picture, and three questions for ratings before the row's own."""
    return [[*row.pictures[:1], f"{_RATED}\n{row.columns['question']}"]]


def text_first(row: Row) -> list[Turn]:
    """MM-AlignBench and WildVision: the question, and then the pictures."""
    return [[row.columns["question"], *row.pictures]]


def safety(row: Row) -> list[Turn]:
    """MM-SafetyBench: the pictures, and the question after a label."""
    return [[*row.pictures, f"The question is : {cell_text(row, 'question')}"]]


def medical_quality(row: Row) -> list[Turn]:
    """MedQ-Bench: the pictures, and the request for a description in ``question``, or its usual text."""
    return [[*row.pictures, row.columns.get("question", _QUALITY)]]


def medical_comparison(row: Row) -> list[Turn]:
    """The same for two pictures, which are compared."""
    return [[*row.pictures, row.columns.get("question", _COMPARISON)]]
