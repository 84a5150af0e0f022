"""Multiple choice as VLMEvalKit reads it (its ``matching_util``, ``multiple_choice``, ``videomme`` and MMMU-Pro)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from testbed.answers.columns import options, truth
from testbed.answers.verdict import Verdict

FAILURE = "Failed to obtain answer via API"
REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
NONE_OF_THEM = "Z"  # what is read in a refusal

_BLANKED = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_ANSWER_IS = re.compile(r"answer\s+is\s+\**([ABCD])", re.IGNORECASE)

_REALWORLD_PREFIXES = (
    "The best answer is",
    "The correct answer is",
    "The answer is",
    "The answer",
    "The best option is",
    "The correct option is",
    "Best answer:",
    "Best option:",
)
# Two pairs of prefixes are fused to one text each, which no answer holds.
_VIDEO_PREFIXES = (
    "The best answer is",
    "The correct answer is",
    "The answer is",
    "The answer",
    "The best option isThe correct option is",
    "Best answer:Best option:",
    "Answer:",
    "Option:",
)


def multiple_choice(columns: Mapping[str, str], text: str) -> Verdict:
    """An answer to a question with options in the columns A to Z."""
    return _verdict(*infer(text, options(columns)), truth(columns))


def mmmu(columns: Mapping[str, str], text: str) -> Verdict:
    """MMMU: a question without option A has two, its literal answer and "Other Answers", of which A is right."""
    right, choices = truth(columns), options(columns)
    if "A" not in choices:
        choices = dict(sorted({**choices, "A": right, "B": "Other Answers"}.items()))
    return _verdict(*infer(text, choices), right if right in tuple(ascii_uppercase) else "A")


def mmmu_pro_cot(columns: Mapping[str, str], text: str) -> Verdict:
    """MMMU-Pro, step by step: what follows ``Answer:`` in the last line that starts so is the answer."""
    lines = [line.strip() for line in text.strip().split("\n")]
    tails = [line.removeprefix("Answer:") for line in lines if line.startswith("Answer:")]
    if not tails:
        return mmmu(columns, text)
    capitals = {char for char in tails[-1] if char in ascii_uppercase}
    return mmmu(columns, capitals.pop() if len(capitals) == 1 else tails[-1])


def mme_realworld(columns: Mapping[str, str], text: str) -> Verdict:
    """MME-RealWorld: the first capital A to E of what is in ``<answer>``, or of all, after stock phrases."""
    _, opened, tail = text.partition("<answer>")
    content, closed, _ = tail.partition("</answer>")
    rest = _without(_REALWORLD_PREFIXES, content.strip().upper() if opened and closed else text)
    letter = _first(rest, "ABCDE")
    # Where there is no capital: the first of (A) … (E) that holds the text, which is (A) for an empty one.
    if letter is None and len(rest.split()) <= 10:
        letter = next((letter for letter in "ABCDE" if rest.lower() in f"({letter})".lower()), None)
    return _verdict(letter, "first capital" if letter else "none", truth(columns))


def video_mme(columns: Mapping[str, str], text: str) -> Verdict:
    """Video-MME: the first capital A to D after stock phrases; if there is none, the rules of multiple choice."""
    return first_capital(columns, text, "ABCD")


def first_capital(
    columns: Mapping[str, str], text: str, letters: str, prefixes: Sequence[str] = _VIDEO_PREFIXES
) -> Verdict:
    """The first of some capitals after stock phrases; else multiple choice with options in lines of the question."""
    letter = _first(_without(prefixes, text), letters)
    if letter is not None:
        return _verdict(letter, "first capital", truth(columns))
    choices = options(columns)
    for index, line in enumerate(columns.get("question", "").split("\n")[1:]):
        name = chr(ord("A") + index)
        if f"{name}." in line and name in ascii_uppercase:
            choices[name] = line[line.find(f"{name}.") + 2 :].strip(". \n")
    return _verdict(*infer(text, choices), truth(columns))


def infer(text: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """The letter of an option, ``"Z"`` for a refusal, or None; and the rule that read it."""
    if FAILURE not in text:
        letter, method = by_letter(text, choices)
        if letter is not None:
            return letter, method
    return by_text(text, choices)


def by_letter(text: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """`infer` by letters alone."""
    if any(refusal in text for refusal in REFUSALS):
        return NONE_OF_THEM, "refusal"
    pieces = text.translate(_BLANKED).split()
    held = set(pieces)
    letters = [letter for letter in choices if letter in held]
    if len(letters) == 1 and pieces.index(letters[0]) >= len(pieces) - 4:
        return letters[0], "letter"
    if not letters and NONE_OF_THEM in held:
        return NONE_OF_THEM, "refusal"
    said = _ANSWER_IS.search(text)
    if said and said.group(1).upper() in choices:
        return said.group(1).upper(), "answer is"
    return None, "none"


def by_text(text: str, choices: Mapping[str, str]) -> tuple[str | None, str]:
    """`infer` by the texts of the options alone."""
    lower = text.lower()
    if len(lower) > 2 * sum(map(len, choices.values())):
        return None, "none"
    letters = [letter for letter, option in choices.items() if option.lower() in lower]
    return (letters[0], "option text") if len(letters) == 1 else (None, "none")


def _without(prefixes: Sequence[str], text: str) -> str:
    rest = text.strip()
    for prefix in prefixes:
        rest = rest.replace(prefix, "")
    return rest


def _first(text: str, letters: str) -> str | None:
    return next((letter for letter in text if letter in letters), None)


def _verdict(letter: str | None, method: str, right: str) -> Verdict:
    return Verdict(letter, float(letter == right), method)
