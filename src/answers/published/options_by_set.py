"""Options and short answers as single sets of VLMEvalKit read them: its classes of the same names, each by its rule."""

from __future__ import annotations

import re

from testbed.answers.columns import listed, options, truth
from testbed.answers.published.choice import FAILURE, by_letter, by_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

_BOXED = re.compile(r"\\boxed\{\s*([A-Z])\s*\}")
_BRACKETED = re.compile(r"\(([A-Z])\)")
_ALONE = re.compile(r"\b([A-G])\b")
# Two of these are two stock phrases each, fused there to one that no answer has.
_STOCK = (
    *("The best answer is", "The correct answer is", "The answer is", "The answer"),
    *("The best option isThe correct option is", "Best answer:Best option:"),
)
_PHYX = re.compile(r"\b(?:correct|answer|option|Answer|Option|Correct)\b[\s\S]*?([A-D])")
_PHYX_COLON = re.compile(r"([ABCD]):")
_FOUR = re.compile(r"\b([A-D]{4})\b")
_ORDINALS = tuple(
    re.compile(rf"(?:{words}).*?([A-D])", re.IGNORECASE)
    for words in ("first|1st|首先|第一步", "second|2nd|其次|第二步", "third|3rd|再次|第三步", "fourth|4th|最后|第四步")
)
_STEP = re.compile(r"(?:step\s*[\d一二三四]+|步骤\s*[\d一二三四]+|第\s*[\d一二三四]\s*步).*?([A-D])", re.IGNORECASE)


def medq(columns: Columns, text: str, letters: str = "ABCD") -> Verdict:
    """MedQ-Bench: the letter at the beginning, else the first letter with no other beside it."""
    right, said = as_letter(truth(columns)), text.strip().upper()
    if len(said) == 1 and said in letters:
        return Verdict(said, float(said == right), "whole")
    first = re.match(rf"([{letters}])(?:[.)\s]|\s*[-:])", said)
    found = first or re.search(rf"(?:^|[^A-Z])([{letters}])(?:[^A-Z]|$)", said)
    if found is None:
        return Verdict(None, float(said == right), "none")
    return Verdict(found[1], float(found[1] == right), "letter")


def as_letter(answer: str) -> str:
    """A letter as it is, and a number from 0 to 3 as the letter of this option (MedQ-Bench's tables have both)."""
    said = answer.strip().upper()
    return "ABCD"[int(said)] if said in tuple("0123") else said


def prefixed_letter(columns: Columns, text: str) -> Verdict:
    """M4Bench: the capital in parentheses, or without, that the answer begins with."""
    found = re.match(r"\s*\(([A-Z])\)|([A-Z])", text)
    letter = (found[1] or found[2]) if found else None
    return Verdict(letter, float(letter == truth(columns)), "letter") if letter else UNREAD


def last_letter(columns: Columns, text: str) -> Verdict:
    """M³oralBench and SIUO: the last letter in a box, else the last in brackets, else the last by itself."""
    found = _BOXED.findall(text) or _BRACKETED.findall(text) or _ALONE.findall(text.upper())
    return Verdict(found[-1], float(found[-1] == truth(columns).strip().upper()), "letter") if found else UNREAD


def letter_set(columns: Columns, text: str, letters: str = "ABCDE") -> Verdict:
    """XLRS-Bench and OmniEarth-Bench: all letters in brackets, else all letters in any word; each must be right.

    Nothing is read in a text without one of these letters as a capital.
    """
    rest = text.strip()
    for phrase in _STOCK:
        rest = rest.replace(phrase, "")
    if not any(letter in rest for letter in letters):
        return Verdict(None, float(not truth(columns)), "none")
    both = letters + letters.lower()
    found = re.findall(rf"\(([{both}])\)", rest) or re.findall(rf"[{both}]", rest)
    said = {letter.upper() for letter in found}
    return Verdict("".join(sorted(said)), float(said == set(truth(columns))), "letters")


def letter_list(columns: Columns, text: str) -> Verdict:
    """A4Bench: the whole text is a list with the right letters, in any order."""
    said, right = listed(text), listed(truth(columns))
    if said is None or right is None:
        return UNREAD
    return Verdict("".join(sorted(said)), float(sorted(said) == sorted(right)), "list")


def phyx_choice(columns: Columns, text: str) -> Verdict:
    """PhyX's options: the first capital after a word such as "answer", else the last before a colon, else the text.

    What is neither the right answer nor a letter is left to a judge.
    """
    said = text.strip()
    if said == f"{FAILURE}.":
        return Verdict("failure", 0.0, "failure")
    found = _PHYX.findall(said)[:1] or _PHYX_COLON.findall(said)[-1:]
    answer = (found[0] if found else said).strip()
    if answer.lower() == truth(columns).strip().lower():
        return Verdict(answer, 1.0, "letter")
    return Verdict(answer, 0.0, "letter") if answer in tuple("ABCD") else UNREAD


def lego(columns: Columns, text: str) -> Verdict:
    """LEGO-Puzzles: the rules of multiple choice; where ``question_type`` is ``sort``, the order of four letters."""
    choices = options(columns)
    if columns.get("question_type") == "sort":
        said, method = _order(text.upper()), "order"
    else:
        said, method = by_letter(text, choices)
    if said is None:
        said, method = by_text(text, choices)
    return Verdict(said, float(said == truth(columns)), method)


def _order(text: str) -> str | None:
    four = _FOUR.search(text)
    if four and len(set(four[1])) == len(four[1]):
        return four[1]
    named = [found[1].upper() for ordinal in _ORDINALS if (found := ordinal.search(text))]
    for letters in (named, [letter.upper() for letter in _STEP.findall(text)[:4]]):
        distinct = list(dict.fromkeys(letters))
        if len(distinct) == 4:
            return "".join(distinct)
    return None


def crpe(columns: Columns, text: str) -> Verdict:
    """CRPE: the first character is the right letter, or the text is in an answer that begins with no letter."""
    right = truth(columns)
    if not text:
        return UNREAD
    if len(text) == 1 or text[0] in "ABCD":
        return Verdict(text[0], float(text[0] == right[:1]), "first letter")
    return Verdict(text, float(right[4:].lower() in text.lower()), "contained")


_CORE_WORDS = (
    r"^(yes|no|\w)[,.; \n*]",
    r"[\n*{](yes|no|\w)[,.; \n*}]",
    r"(yes|no|\w) is the correct answer",
    r"answer is[\:\;\*\n ]*(yes|no|\w)",
    r"answer[\:\;\*\n ]*(yes|no|\w)",
    r"choice is[\:\;\*\n ]*(yes|no|\w)",
    r"choice[\:\;\*\n ]*(yes|no|\w)",
    r"option is[\:\;\*\n ]*(yes|no|\w)",
    r"Assistant[\:\;\*\n ]*(yes|no|\w)",
)
_CORE = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _CORE_WORDS)
_TOKENS = (
    *("\\[ \\boxed{", "} \\]", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<|end_of_sentence|>", "</s>"),
    *("<CONCLUSION>", "</CONCLUSION>", "Falcon: "),
)


def core_cognition(columns: Columns, text: str) -> Verdict:
    """CoreCognition: a letter, or yes or no, at the beginning or after a stock phrase; a judge reads the rest."""
    for end in (">\n\n", "**\n\n"):
        text = text.split(end)[-1]
    for token in _TOKENS:
        text = text.replace(token, "")
    said, kinds = text.strip(), ("YES", "NO") if columns.get("question_type") == "YORN" else tuple("ABCDEF")
    if len(said.split()) > 1:
        found = [match[1].upper() for pattern in _CORE if (match := pattern.search(said))]
    else:
        found = [re.split(r"[,. :;\n]", said)[0].upper()]
    read = next((each for each in found if each in kinds), None)
    return UNREAD if read is None else Verdict(read, float(read == truth(columns).strip().upper()), "phrase")
