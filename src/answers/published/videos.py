"""Answers about videos as VLMEvalKit reads them (its ``longvideobench``, ``mvbench``, ``mlvu``, ``tempcompass``)."""

from __future__ import annotations

import re
from string import ascii_uppercase

from testbed.answers.columns import as_list, truth
from testbed.answers.published.choice import first_capital, infer
from testbed.answers.verdict import UNREAD, Columns, Verdict

_TAGGED = re.compile(r"<answer>\s*(.*?)\s*</answer>", re.DOTALL)

_V2_PREFIXES = (
    "Final Answer:",
    "The best answer is",
    "The correct answer is",
    "The answer is",
    "The answer",
    "The best option is",
    "The correct option is",
    "Best answer:",
    "Best option:",
    "Answer:",
    "Option:",
)


def long_video_bench(columns: Columns, text: str) -> Verdict:
    """LongVideoBench: the first capital A to E after stock phrases, else the rules of multiple choice."""
    return first_capital(columns, text, "ABCDE")


def video_mme_v2(columns: Columns, text: str) -> Verdict:
    """Video-MME-v2: the first capital A to H after stock phrases, else the rules of multiple choice."""
    return first_capital(columns, text, "ABCDEFGH", _V2_PREFIXES)


def mvbench(columns: Columns, text: str) -> Verdict:
    """MVBench: right if the first word is a part of the right letter in brackets, or holds it.

    So ``a.`` and ``(`` name the option A, and an empty answer names the right one. Of other answers the rules of
    multiple choice read an option.
    """
    choices, last, first = _letters(columns)
    word = text.lower().strip().split(" ")[0]

    def names(letter: str) -> bool:
        return word.replace(".", "") in f"({letter.lower()})" or f"({letter.lower()})" in word

    if names(last):
        return Verdict(last, 1.0, "first word")
    letter, method = infer(text, choices)
    if letter is None:
        letter = next(filter(names, choices), None)
        return Verdict(letter, 0.0, "none" if letter is None else "first word")
    return Verdict(letter, float(letter == first), method)


def mlvu(columns: Columns, text: str) -> Verdict:
    """MLVU: right if the answer, or the character before its first closing bracket, is the right letter.

    Of other answers the rules of multiple choice read an option.
    """
    choices, last, first = _letters(columns)
    place = text.find(")")
    if (text[place - 1 : place] if place >= 0 else text) == last:
        return Verdict(last, 1.0, "letter")
    letter, method = infer(text, choices)
    return Verdict(letter, float(letter is not None and letter == first), method)


def _letters(columns: Columns) -> tuple[dict[str, str], str, str]:
    """The options; and the letters of the last and of the first that is the right answer (``@`` and empty if none)."""
    items, right = as_list(columns.get("candidates", "")), truth(columns)
    same = [letter for letter, item in zip(ascii_uppercase, items, strict=False) if item == right]
    return dict(zip(ascii_uppercase, items, strict=False)), same[-1] if same else "@", same[0] if same else ""


def temp_compass(columns: Columns, text: str) -> Verdict:
    """TempCompass: an option, its name or its text and nothing else; or a letter A to D at the begin."""
    if columns.get("task_type") == "caption_matching":
        return _caption_matching(columns, text)
    right = truth(columns)
    if text == right:
        return Verdict(right[:1], 1.0, "option text")
    letter = text[:1] if text in tuple("ABCD") or (text[1:2] in (".", ")") and text[:1] in tuple("ABCD")) else None
    return Verdict(letter, float(letter is not None and letter == right[:1]), "none" if letter is None else "letter")


def _caption_matching(columns: Columns, text: str) -> Verdict:
    right = truth(columns)
    parts = [item.split(": ") for item in as_list(columns.get("candidates", ""))]
    sentences = [part[1] for part in parts if len(part) > 1]
    names = [part[0] for part in parts]
    names += [_without_kind(name) for name in names]
    after = text.split(") ")[1] if ") " in text else None
    found = [text] if text in [": ".join(part) for part in parts] else []
    found += [sentence for sentence in sentences if sentence in (text, after)]
    found += [name for name in names if name in (text, text.replace(".", ""))]
    if not found:
        return UNREAD
    name, _, sentence = right.partition(": ")
    meant = (right, right.split(":")[0], sentence.split(": ")[0], name.split()[-1] if name.split() else "")
    return Verdict(found[-1], float(found[-1] in meant), "option text")


def _without_kind(name: str) -> str:
    for kind in ("Sentence ", "Option ", "Caption "):
        name = name.replace(kind, "")
    return name


def video_holmes(columns: Columns, text: str) -> Verdict:
    """Video-Holmes: the first letter of the alphabet in the last ``<answer>``, as a name if there is one."""
    tagged = _TAGGED.findall(text)
    if not tagged:
        return UNREAD
    inside = tagged[-1].strip()
    named = (
        letter for letter in "ABCDEF" if any(form in inside for form in (f"{letter} ", f"{letter}:", f"[{letter}"))
    )
    letter = next(named, None) or next((letter for letter in "ABCDEF" if letter in inside), None)
    return Verdict(letter, float(letter == truth(columns)), "none" if letter is None else "tag")


def temp_compass_yes_no(columns: Columns, text: str) -> Verdict:
    """TempCompass, yes or no: the begin of the answer."""
    word = next((word for word in ("yes", "no") if text.lower().startswith(word)), None)
    said = None if word is None else word.capitalize()
    return Verdict(said, float(word is not None and word == truth(columns)), "none" if word is None else "first word")
