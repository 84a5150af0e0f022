"""Benchmarks of mathematics and reasoning as VLMEvalKit's own rules read them, before it asks a judge.

What its rules do not settle is unparsed here: MathVista and MATH-Vision are settled by rules only where an option can
be read, or the whole answer is right.
"""

from __future__ import annotations

import json
import math
import re

from testbed.answers.columns import listed, truth
from testbed.answers.expressions import value_of
from testbed.answers.published.choice import infer
from testbed.answers.verdict import UNREAD, Columns, Verdict

_CLOSE = 1e-6
_CLOSE_DYNAMATH = 1e-3
_VISULOGIC = "ABCD"
_BOX_OR_BRACE = re.compile(r"\\boxed\{|[^\\]\}")
_WHOLE_BOX = re.compile(r"\\boxed\{(.*)\}")
_STYLES = ("\\text{", "\\rm{", "\\mathbf{", "$")
_STATEMENTS = (
    "answer:",
    *("the final answer is:", "the answer is option:", "the answer is:", "the correct answer is option:"),
    *("the correct answer is:", "the answer should be:", "the final answer is", "the answer is option"),
    *("the answer is", "the correct answer is option", "the correct answer is", "the answer should be"),
)


def math_vista(columns: Columns, text: str) -> Verdict:
    """MathVista: an option, or the whole text as the right number, which is not 0. No other kind is ever right."""
    if columns.get("question_type") == "multi_choice":
        return _option(columns, text, columns.get("answer_option", ""))
    right, kind = truth(columns), columns.get("answer_type")
    read: type[int] | type[float] | None = {"integer": int, "float": float}.get(kind or "")
    if read is None:
        return UNREAD
    try:
        value, wanted = read(text), read(right)
        return Verdict(f"{value:.15g}", 1.0, "whole") if value and value == wanted else UNREAD
    except (ValueError, OverflowError):
        return UNREAD


def math_vision(columns: Columns, text: str) -> Verdict:
    """MATH-Vision: an option, or the whole text if it equals the answer, as a text or within 1e-6 as a number."""
    if listed(columns.get("choices", "")):
        return _option(columns, text, truth(columns))
    said, right = (side.lower().strip() for side in (text, truth(columns)))
    if said == right:
        return Verdict(text, 1.0, "whole") if text else UNREAD
    value, wanted = _rational(said), _rational(right)
    equal = value is not None and wanted is not None and abs(value - wanted) < _CLOSE
    return Verdict(text, 1.0, "whole") if equal else UNREAD


def _rational(text: str) -> float | None:
    """The number that a text is, in a LaTeX box or not.

    VLMEvalKit compares no numbers with π, no roots but those that are a whole number by themselves, and nothing in
    LaTeX that ends with a full stop.
    """
    boxed = _WHOLE_BOX.fullmatch(text)
    plain = boxed.group(1) if boxed else text
    value = value_of(plain)
    if value is None or any(sign in plain for sign in ("pi", "π", "√")) or ("\\" in plain and plain.endswith(".")):
        return None
    return value if "sqrt" not in plain or (plain.startswith("\\sqrt") and value.is_integer()) else None


def _option(columns: Columns, text: str, right: str) -> Verdict:
    choices = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", listed(columns.get("choices", "")) or [], strict=False))
    letter, method = infer(text, choices)
    return Verdict(letter, float(letter is not None and letter.lower() == right.lower().strip()), method)


def dyna_math(columns: Columns, text: str) -> Verdict:
    """DynaMath: the field ``short answer`` of JSON, else the whole text, as the kind of the answer."""
    kind, right = columns.get("answer_type", ""), truth(columns)
    begin, end = text.find("{"), text.rfind("}")
    plain = (text[begin : end + 1] if 0 <= begin < end else text).replace("\\", "")
    try:
        fields = json.loads(plain, strict=False)
    except (ValueError, RecursionError):
        fields = None
    said = fields.get("short answer") if isinstance(fields, dict) else None
    short = _short(said, kind) if isinstance(said, str) else None
    if short is None:
        short = _short(plain, kind)
    if short is None:
        return UNREAD
    if isinstance(short, float):
        try:
            return Verdict(f"{short:.15g}", float(abs(short - float(right)) <= _CLOSE_DYNAMATH), "number")
        except ValueError:
            return Verdict(f"{short:.15g}", 0.0, "number")
    hit = short == right if kind == "multiple choice" else short.lower() in right.lower()
    return Verdict(short, float(hit), "letter" if kind == "multiple choice" else "contained")


def _short(said: str, kind: str) -> str | float | None:
    if kind == "float":
        number, pi, _ = said.split(" ")[0].partition("π") if not said.isdigit() else (said, "", "")
        try:
            return float(number) * (math.pi if pi else 1)
        except ValueError:
            return None
    if kind != "multiple choice":
        return said
    if len(said) == 1:
        return said.upper()
    held = [letter for letter in "ABCDE" if letter in said.upper()]
    return held[0] if len(held) == 1 else None


def visu_logic(columns: Columns, text: str) -> Verdict:
    """VisuLogic: the letter in the last box, at one of the ends, or after a stock phrase."""
    boxed = _boxed(text).strip()
    if boxed in tuple(_VISULOGIC):
        return Verdict(boxed, float(boxed == truth(columns)), "box")
    letter = _stated(text.replace("<|endoftext|>", ""))
    return UNREAD if letter is None else Verdict(letter, float(letter == truth(columns)), "answer is")


def _boxed(text: str) -> str:
    """Returns the content of the last box; the whole text where that is long, or there is none."""
    if len(text) < 3:
        return text
    starts: list[int] = []
    content = ""
    for match in _BOX_OR_BRACE.finditer(text):
        if match.group().endswith("\\boxed{"):
            starts.append(match.end())
        elif starts:
            start = starts.pop()
            content = content if starts else text[start : match.start() + 1]
    for style in _STYLES:
        content = content.replace(style, "")
    content = content.replace("}", "")
    return text if not content or "letter" in content.lower() or "or" in content or len(content) > 2 else content


def _stated(text: str) -> str | None:
    for letter in _VISULOGIC:
        if text.endswith((f" {letter}.", f" ({letter}).")):
            return letter
        if text.startswith((f"{letter}\n", f"({letter})\n", f"({letter}) {letter}\n")):
            return letter
    rest = text.lower()
    for phrase in _STATEMENTS:
        if phrase in rest:
            rest = rest.split(phrase)[-1].strip().split("\n")[0].split(".")[0]
            if rest.upper() in tuple(_VISULOGIC):
                return rest.upper()
    return text if text in tuple(_VISULOGIC) else None


def we_math(columns: Columns, text: str) -> Verdict:
    """We-Math: the first letter, A to H, of what follows the last "Answer"."""
    rest = re.sub("[<>:.]", "", text.split("Answer")[-1].strip()).strip()
    letter = rest[0] if rest and rest[0] in "ABCDEFGH" else None
    return Verdict(letter, float(letter == truth(columns)), "letter" if letter else "none")


def zero_bench(columns: Columns, text: str) -> Verdict:
    """ZeroBench: the last text in braces holds the right one, ignoring case."""
    parts = [part for line in text.strip().lower().split("\n") for part in line.split("}")[:-1]]
    contents = [part.partition("{")[2] for part in parts if "{" in part]
    answer = contents[-1] if contents else ""
    hit = truth(columns).strip().lower() in answer
    return Verdict(answer if contents else None, float(hit), "braces" if contents else "none")


def erqa(columns: Columns, text: str) -> Verdict:
    """ERQA: the whole text is the letter, ignoring case."""
    answer = text.strip()
    return Verdict(answer, float(answer.lower() == truth(columns).strip().lower()), "whole")
