"""Prompts of benchmarks of sciences and charts whose answers are open; see `testbed.answers.prompts`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from string import ascii_uppercase

from testbed.answers.columns import options
from testbed.answers.prompts import Turn, cell_text, placed
from testbed.data.rows import Picture, Row

_HERE = re.compile(r"<image_(\d+)>")
_PLACE = "<image>"
_CHOICES = ascii_uppercase[:15]  # SFE's
_EMMA_ENDINGS = {
    True: "Please solve the problem step by step. ",
    False: (
        "Please ensure that your output only contains the final answer without any additional content (such as"
        " intermediate reasoning steps)."
    ),
}
_PHYSICS = (
    "You are a physics expert assistant. Solve the following question step-by-step.\n\n"
    "At the VERY END of your answer, output ONLY the FINAL ANSWER in this format:\n\n"
    "\\[\n\\boxed{your_final_answer_here}\n\\]\n\n"
    " You MUST put the final answer in the \\boxed{} environment.\n"
    ' This applies even if the answer is a text explanation like "The singlet state is lower in energy."\n'
    "Do NOT include multiple boxes.\n"
    "Do NOT include \\boxed anywhere else in your reasoning.\n"
    " The box must appear on the last line of the response.\n\n"
    "WARNING: DO NOT forget to include \\boxed{} with the final answer. Responses without it will be considered"
    " INVALID.\n\n"
    "Example:\n"
    "Question: What is the energy difference between n=2 and n=1 in hydrogen?\n"
    "Answer: The energy levels are E_n = -13.6 / n² (in eV).\n"
    "E_2 = -13.6 / 4 = -3.4 eV\n"
    "E_1 = -13.6 eV\n"
    "ΔE = 13.6 - 3.4 = 10.2 eV\n"
    "\\[\n\\boxed{10.2\\ \\text{eV}}\n\\]\n\n"
)
_WITH_REASONING = {
    True: (
        "\nPlease answer this question with reasoning. First output your reasoning process in <think> </think> tags and"
        " then output the final answer in <answer> </answer> tags."
    ),
    False: (
        "\n请用推理来回答这个问题。首先在<think></think>标签中输出推理过程，然后在<answer></answer>标签中输入最终答案。"
    ),
}
_SIGNIFICANT = {
    True: "The final answer should retain {} significant figures.",
    False: "最终答案应保留{}位有效数字。",
}
_CHART = (
    "Please answer the question using the chart image.\n\n"
    "    Question: {}\n\n"
    "    Please first generate your reasoning process and then provide the user with the answer. Use the following"
    " format:\n\n"
    "    <think>\n    ... your thinking process here ...\n    </think>\n"
    "    <answer>\n    ... your final answer (entity(s) or number) ...\n    </answer>"
)
_EXPERT = "You are an expert in {} and need to solve the following question. The question is "
_OF_TYPE = {
    "mcq": "a multiple-choice question. Answer with the option letter from the given choices.",
    "exact_match": "an exact match question. Answer the question using a single word or phrase.",
    "open_ended": "an open-ended question. Answer the question using a phrase.",
}


def science(row: Row, ending: str) -> list[Turn]:
    """MME-SCI: the question, its options and the form of the answer, with pictures in place of ``<image_1>``, ….

    Args:
        row: The row. Its ``type`` names the modality, and multiple choice.
        ending: The form of the answer, in the language of the set.
    """
    kind = row.columns["type"]
    choices = [row.columns.get("options", "")] if "MCQ" in kind else []
    text = "\n".join([row.columns.get("question", ""), *choices, ending])
    if "OnlyTxt" in kind:
        return [[text]]
    parts = _HERE.split(text)
    if len(parts) == 1:
        return [[*row.pictures, text]]
    turn: Turn = []
    for place, part in enumerate(parts):
        if place % 2:
            turn += row.pictures[int(part) - 1 : int(part)]
        elif part.strip():
            turn.append(part.strip())
    return [turn]


def pictures_alone(row: Row, ending: str) -> list[Turn]:
    """The pictures, which hold the question, and a text; the text alone in a row whose ``type`` is of texts."""
    return [[ending] if "OnlyTxt" in row.columns.get("type", "") else [*row.pictures, ending]]


def emma(row: Row, in_steps: bool = False) -> list[Turn]:
    """EMMA: context, question and options, with the pictures where the text has ``<image 1>``, ….

    Args:
        row: The row. Its ``type`` is ``MCQ`` or ``Open-ended``.
        in_steps: True for steps before the answer, False for the answer alone.
    """
    parts = [row.columns[name] for name in ("context", "question") if name in row.columns]
    if row.columns.get("type") == "MCQ":
        parts.append("".join(f"{letter}: {text}\n" for letter, text in options(row.columns).items()))
        parts.append("Answer with the option's letter from the given choices. ")
    else:
        parts.append("Answer the question using a single word or phrase. ")
    return [placed(row, "\n\n".join(parts) + _EMMA_ENDINGS[in_steps])]


def physics(row: Row) -> list[Turn]:
    """PHYSICS: the pictures, and the question after the request to put the answer in a box."""
    return [[*row.pictures, f"{_PHYSICS}Question: {cell_text(row, 'question')}\nAnswer:"]]


def see_phys(row: Row) -> list[Turn]:
    """SeePhys: the pictures, and the question in its language; that of a picture is not there."""
    english = row.columns["language"] == "English"
    text = row.columns.get("question", "") + _WITH_REASONING[english]
    try:
        figures = float(row.columns.get("sig_figs", "0"))
    except ValueError:
        figures = 0.0
    if figures and math.isfinite(figures):
        text += _SIGNIFICANT[english].format(int(figures))
    return [[*row.pictures, text]]


def chart_museum(row: Row) -> list[Turn]:
    """ChartMuseum: the first picture, and the question with the form of the answer."""
    return [[*row.pictures[:1], _CHART.format(cell_text(row, "question"))]]


def ocr_reasoning(row: Row) -> list[Turn]:
    """OCR-Reasoning: the pictures, and the question with the form of the answer, in its language."""
    asked = cell_text(row, "question")
    if "English" in row.columns["language"]:
        ending = (
            "\nSolve the complex problem through step-by-step reasoning. The composition of the final answer should"
            f" be: '{row.columns['format']}'."
        )
    else:
        ending = f"\n通过一步一步的推理解决这个复杂的问题。最后的回答的组成应该是: '{row.columns['format']}'."
    return [[*row.pictures, f"{asked}{ending}"]]


def world_vqa(row: Row) -> list[Turn]:
    """WorldVQA: the pictures, and the question after the request for details, in its language."""
    chinese = row.columns.get("language") == "zh"
    asks = "请尽可能提供详细的回答。" if chinese else "Please provide as much detail as possible in your answer."
    return [[*row.pictures, f"{asks}\n{cell_text(row, 'question')}"]]


def dental(row: Row) -> list[Turn]:
    """MMOral: the pictures, and the question with the request for details."""
    return [
        [
            *row.pictures,
            f"Question: {cell_text(row, 'question')}\nPlease provide a detailed and accurate answer to the question.",
        ]
    ]


def sfe(row: Row) -> list[Turn]:
    """SFE: the question of a discipline, of one of three kinds, with the pictures in place of ``<image>``."""
    kind, text = row.columns["question_type"], row.columns["question"]
    if kind in _OF_TYPE:
        text = f"{_EXPERT.format(row.columns.get('category', ''))}{_OF_TYPE[kind]} {text}"
    if kind == "mcq" and "A" in row.columns:
        text += "\nChoices are:\n" + "".join(f"{letter}. {choice}\n" for letter, choice in _in_a_row(row))
    return [_in_place(text.split(_PLACE), row.pictures)]


def _in_a_row(row: Row) -> list[tuple[str, str]]:
    """The options up to the first letter that is missing."""
    found: list[tuple[str, str]] = []
    for letter in _CHOICES:
        if letter not in row.columns:
            break
        found.append((letter, row.columns[letter]))
    return found


def _in_place(parts: Sequence[str], pictures: Sequence[Picture]) -> Turn:
    """Parts of a text with a picture after each but the last."""
    turn: Turn = []
    for place, part in enumerate(parts):
        if part.strip():
            turn.append(part.strip())
        if place + 1 < len(parts):
            turn += pictures[place : place + 1]
    return turn
