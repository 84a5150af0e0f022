"""Prompts of single benchmarks with options or short answers; see `testbed.answers.prompts`."""

from __future__ import annotations

import re
from functools import partial

from testbed.answers.columns import OPTIONS, options
from testbed.answers.prompts import Turn, cell_text, multiple_choice, placed
from testbed.data.rows import Row

_MEDICAL = "Please carefully observe this medical image and answer the following question:\n\n{}\n\nOptions:\n{}\n\n"
_MEDICAL_ENDING = "Answer directly only with the option **letter** from the given choices."
_ADDITIONAL = re.compile(r"<ADDITIONAL_(\d+)>")
_IMAGE = re.compile(r"(<IMAGE_\d+>)")
_RESPOND = "Output: Respond"
_RESPOND_IN_STEPS = (
    "Output: Solve the problem step-by-step. First, reason through the problem clearly. At the end, respond"
)
_ORDER = "Please respond with only the sequence of letters (e.g., 'BDAC') that correctly orders the steps.\n"
_SELECT = "Please select the correct answer from the options above. \n"
_BOX = (
    "\nPlease output the coordinates of the {} in the image in the format [x1, y1, x2, y2]. Do not include any"
    " additional text. Respond with relative coordinates between 0 and 1, with top left corner (0, 0), top right (1, 0)"
    " and bottom right (1, 1)."
)
_AGENT = (
    "You are a GUI agent. You are given a task and a screenshot of the screen. You need to perform pyautogui"
    " click/moveTo action to complete the task. The answer format is `pyautogui.click(x=?, y=?), x and y is necessary`"
)
_CLICK = "Please complete the following tasks by clicking using `pyautogui.click`:\n{}"
_RULES = """Process multiple-choice questions under STRICT rules:
                        1. Final answer MUST be valid Python list:
                        - Format examples: ['A'] or ['B','D']
                        - Output ONLY the answer list, NO explanations
                        2. Mandatory requirements:
                        a. MUST determine question type (single/multi-select: ONLY ONE answer list
                        b. Uppercase letters in alphabetical order (A < B < C < D < E)
                        c. Use English single quotes and brackets
                        3. Processing logic:
                        - All wrong: Return most probable single option (e.g., ['D'])
                        - Partial correct: Keep ONLY confirmed correct options
                        - Uncertain: Output highest-probability combination
                        4. Format RULES:
                        - STRICTLY ONE list (no multiple answers like ['C'] and ['A','B'])
                        - NO non-list formats (e.g., 'C', A,B)
                        - NO empty lists (even if all options wrong)

                        Output: Answer list"""
_AFFORDANCE = """ Please read the following key points of Gibson's Affordance Theory before answering:
            Gibson's Affordance Theory core principles:
            1. Core Definition
            - "What the environment offers the animal for good or ill" (Gibson, 1979)
            - Complementarity between animal's capacities and environmental properties
            - Example: Horizontal rigid surface affords support for standing; cliff edge affords falling

            2. Key Characteristics
            - Direct perception through ecological optics (e.g., texture gradients specify walkability)
            - Functional relativity (e.g., knee-high surface affords sitting for adults but not children)
            - Action possibilities multiplicity (e.g., stone as missile/paperweight/hammer)

            3. Fundamental Distinctions
            - Affordance vs physical measurement (support measured relative to animal's weight)
            - Invariant optical information (e.g., horizon specifies earth-sky separation)
            - Niche as occupied affordance system (e.g., aquatic vs terrestrial niches)

            4. Theoretical Breakthroughs
            - Rejecting subjective-objective dichotomy (air affords breathing & seeing simultaneously)
            - Lawful misinformation cases (e.g., visual cliff experiment with glass extension)
            - Embodied perception (posture/gravity constraints in surface perception)

            5. Ecological Evidence
            - Animate vs inanimate distinction (infants' immediate perception of agency)
            - Occlusion laws (peek-a-boo as concealment affordance learning)
            - Tool-body extension (staff as arm extension for reaching/striking)"""

one_letter = partial(multiple_choice, ending="Please answer with only one option letter.", hinted=False)
one_letter_only = partial(multiple_choice, ending="Please select one option letter only.", hinted=False)
letter_directly = partial(multiple_choice, ending="Answer with the correct option's letter directly. \n")  # TreeBench


def medical(row: Row) -> list[Turn]:
    """MedQ-Bench: the pictures, the question and its options."""
    return [[*row.pictures, _MEDICAL.format(cell_text(row, "question"), _stripped(row, "ABCD")) + _MEDICAL_ENDING]]


def degraded(row: Row) -> list[Turn]:
    """MedQ-DEG-Bench: the pictures, the question and its options."""
    ending = "Answer with the option letter from the given choices directly."
    return [[*row.pictures, f"{cell_text(row, 'question')}\n\n{_stripped(row, 'ABCDE')}\n\n{ending}"]]


def _stripped(row: Row, letters: str) -> str:
    return "\n".join(
        f"{letter}. {text.strip()}" for letter in letters if (text := row.columns.get(letter, "")) and text.strip()
    )


def affordance(row: Row) -> list[Turn]:
    """A4Bench: what affordances are, and the rules for the list of letters, around question and options."""
    hint = f"Hint: {row.columns['hint']}\n" if "hint" in row.columns else ""
    lines = "".join(f"{letter}. {text}\n" for letter, text in options(row.columns).items())
    choices = f"Options:\n{lines}{_RULES}" if lines else ""
    return [[*row.pictures, f"{hint}Concept: {_AFFORDANCE}\nQuestion: {cell_text(row, 'question')}\n{choices}"]]


def with_options(row: Row) -> list[Turn]:
    """The pictures, and the question with the text in the column ``multi-choice options`` after it."""
    return [[*row.pictures, f"{cell_text(row, 'question')}{row.columns.get(OPTIONS, '')}"]]


def lego(row: Row) -> list[Turn]:
    """LEGO-Puzzles: multiple choice, or the order of the options; pictures where the text has ``<image 1>``, …."""
    sort = row.columns.get("question_type") == "sort"
    (turn,) = multiple_choice(row, _ORDER if sort else _SELECT)
    return [placed(row, str(turn[-1]))]


def visfactor(row: Row, in_steps: bool = False) -> list[Turn]:
    """VisFactor: the question with the parts of the column ``additional``, and pictures where it names them, from 0.

    Args:
        in_steps: True to ask for steps before the answer.
    """
    text = cell_text(row, "question").replace("<br>", "\n")
    parts = row.columns.get("additional", "").replace("<br>", "\n").split(";")
    if "additional" in row.columns:
        text = _ADDITIONAL.sub(lambda tag: parts[int(tag[1])] if int(tag[1]) < len(parts) else tag[0], text)
    if in_steps:
        text = text.replace(_RESPOND, _RESPOND_IN_STEPS)
    said: Turn = []
    for part in _IMAGE.split(text):
        place = int(part[-2]) if _IMAGE.fullmatch(part) else None
        if place is None:
            said += [part] if part else []
        else:
            said += row.pictures[place : place + 1]
    return [said]


def box(row: Row) -> list[Turn]:
    """TDBench: the pictures, and the request for the box of the object that the question names."""
    return [[*row.pictures, _BOX.format(cell_text(row, "question"))]]


def click(row: Row) -> list[Turn]:
    """ScreenSpot and others: what an agent does (VLMEvalKit's system prompt), the screenshot, and the task."""
    return [[_AGENT, *row.pictures, _CLICK.format(cell_text(row, "question"))]]
