"""Calculations with several numbers or formulas in fixed places (OmniMat)."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.texts import final_text, marked
from testbed.answers.verdict import UNREAD, Columns, Verdict

_PRECISION = 50  # digits
_RELATIVE, _OF_ZERO = Decimal("0.1"), Decimal("1e-12")
_LONGEST, _LARGEST_EXPONENT = 1 << 14, 4000  # characters; of 10, as a number
_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)
_BOX = re.compile(r"\\boxed\{([^{}]+)\}")
_CONTROL = re.compile(r"[\x00-\x1F\x7F]")
_BARE_FRACTION = re.compile(r"(?<!\\)frac")
_STYLE = re.compile(r"\\(?:mathrm|operatorname|text|textrm|mathbf|mathit|mathrmbf)\{([^{}]*)\}")
_INNER_BOX = re.compile(r"\\boxed\{([^{}]*)\}")
_PLAIN = str.maketrans({"−": "-", "–": "-", "—": "-", "×": "x", "∙": "x", "·": "x"})
_N = r"([+-]?\d+(?:\.\d+)?)"
_U = r"(\d+(?:\.\d+)?)"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_POWER = re.compile(rf"(?:{_N}x)?10\^?\{{?([+-]?\d+)\}}?")
_FRACTION = re.compile(rf"\\frac\{{{_N}\}}\{{{_N}\}}|{_N}/{_N}")
_MIXED = re.compile(rf"([+-])?(\d+)\\frac\{{{_U}\}}\{{{_U}\}}")
_DECIMALS = re.compile(r"\.(\d+)")
_BETWEEN = re.compile(r"\s*[;,\n]\s*")


def published_slots(columns: Columns, text: str) -> Verdict:
    """The share of places with the right number, rounded as the right one is, or the same text.

    Its ``extracted`` is the numbers of right places, of those within 10 %, and of all.
    """
    return _compared(_right(columns), _said(text))


def slots(columns: Columns, text: str) -> Verdict:
    """The same of the marked answer; one text for several places is divided at commas, semicolons or lines."""
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    right = _right(columns)
    said = _said((marked(final) or [final])[0])
    if len(said) == 1 < len(right):
        said = [part for part in _BETWEEN.split(said[0].strip(" ()[]")) if part]
    return _compared(right, said)


def counted(extracted: str | None) -> tuple[int, int, int] | None:
    """The numbers in what `slots` extracts; None if there are none."""
    parts = (extracted or "").split()
    return (int(parts[0]), int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def _compared(right: Sequence[str], said: Sequence[str]) -> Verdict:
    size = max(len(right), len(said))
    if not size:
        return UNREAD
    pairs = [
        (right[place] if place < len(right) else "", said[place] if place < len(said) else "") for place in range(size)
    ]
    with localcontext() as context:
        context.prec = _PRECISION
        exact, near = (sum(compare(*pair) for pair in pairs) for compare in (_equal, _near))
    return Verdict(f"{exact} {near} {size}", exact / size, "places")


def _right(columns: Columns) -> list[str]:
    return _flat(_parsed(truth(columns), []))


def _parsed(text: str, otherwise: Any) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text) if len(text) <= _LONGEST else otherwise
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return otherwise


def _flat(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _flat(item)]
    return [str(value).strip()]


def _said(text: str) -> list[str]:
    """The places of an answer: of a box, of JSON, in the tag ``answer``, or after the thoughts."""
    plain = text.strip()
    if not plain:
        return []
    box = _BOX.search(plain)
    if box:
        return [box[1].strip()]
    tag = _TAG.search(plain)
    whole = _json(plain)
    if whole is not None:
        return whole
    if tag:
        inner = tag[1].strip()
        found = _json(inner)
        return [inner] if found is None else found
    return _said(plain.split("</think>")[-1]) if "</think>" in plain else [plain]


def _json(text: str) -> list[str] | None:
    try:
        return _flat(json.loads(text)) if len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        return None


def _cleaned(text: str) -> str:
    text = _CONTROL.sub("", text)
    for part in ("$", r"\left", r"\right", r"\,", " ", ","):
        text = text.replace(part, "")
    text = text.translate(_PLAIN).replace(r"\times", "x").replace(r"\cdot", "x")
    text = _STYLE.sub(r"\1", _BARE_FRACTION.sub(r"\\frac", text))
    return _INNER_BOX.sub(r"\1", text)


def _number(text: str) -> Decimal | None:
    """The value of a number, a power of ten, a fraction or a mixed number; None for any other text."""
    plain = _cleaned(text)
    if _NUMBER.fullmatch(plain):
        try:
            return Decimal(plain)
        except InvalidOperation:  # an exponent beyond all limits
            return None
    if power := _POWER.fullmatch(plain):
        if abs(int(power[2])) > _LARGEST_EXPONENT:
            return None
        return Decimal(power[1] or "1") * Decimal(10) ** int(power[2])
    if ratio := _FRACTION.fullmatch(plain):
        above, below = (Decimal(part) for part in ratio.groups() if part is not None)
        return above / below if below else None
    if mixed := _MIXED.fullmatch(plain):
        whole, above, below = (Decimal(part) for part in mixed.groups()[1:])
        return (-1 if mixed[1] == "-" else 1) * (whole + above / below) if below else None
    return None


def _equal(right: str, said: str) -> bool:
    wanted, value = _number(right), _number(said)
    if wanted is None or value is None:
        return _cleaned(right) == _cleaned(said)
    decimals = _DECIMALS.search(right)
    places = len(decimals[1]) if decimals else 0
    digits = max(len(wanted.as_tuple().digits), len(value.as_tuple().digits)) + places + 2
    with localcontext() as context:
        context.prec = max(_PRECISION, digits)
        try:
            return wanted == value.quantize(Decimal(1).scaleb(-places)) or _cleaned(right) == _cleaned(said)
        except InvalidOperation:  # too large to be rounded
            return False


def _near(right: str, said: str) -> bool:
    wanted, value = _number(right), _number(said)
    if wanted is None or value is None or _cleaned(right) == _cleaned(said):
        return _cleaned(right) == _cleaned(said)
    difference, largest = abs(wanted - value), max(abs(wanted), abs(value))
    return difference <= (_RELATIVE * largest if wanted and value else _OF_ZERO)
