"""Numbers as LaTeX and Unicode write them, in plain characters: ``\\frac{1}{2}``, ``28\\%``, ``½``, ``x²``."""

from __future__ import annotations

import re
import unicodedata

_SUPERSCRIPTS = {ord(high): plain for high, plain in zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-", strict=True)}
_HIGH = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = re.compile(r"(?<!\d)(\d{0,300})\s?([¼½¾⅐-⅞])")  # as many digits as a float holds
_MATH = re.compile(r"\$\$?([^$]{1,300}?)\$\$?")
_PROSE = re.compile(r"\b(?:and|or|to|for|per|the|is|of|than|vs|was|are|in|from)\b")  # between two prices
_SPECIAL = re.compile(r"[\\$^{}<>!+~']")  # none of the patterns is without one of these
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:[\u2009\u202f\u00a0'’]\d{3})+|(?: \d{3}){2,})(?![\d.,]?\d)")
_GROUPS = re.compile(r"[\u2009\u202f\u00a0'’ ]")
_STYLE = re.compile(r"\\(?:text|textbf|mathrm|mathbf|operatorname|mbox|rm|bf)\s*\{([^{}]*)\}")
_REPLACED = [
    (re.compile(pattern), new)
    for pattern, new in (
        (r"\\[()\[\]]|\\(?:left|right|displaystyle|big|Big)(?![A-Za-z])", " "),
        (r"(?<=\d)(?:\{,\}|\\,|,\\!)(?=\d{3}(?!\d))", ","),  # between thousands
        (r"\\(?=[%$#&_£€])", ""),
        (r"\\[,;:! ]|\\quad|\\qquad|(?<=\w)~(?=\w)", " "),
        (r"(?<!\s)\s*\^\s*(?:\{\s*)?(?:\\circ|\\degree)(?:\s*\})?|\\degree|\\circ", "°"),
        (r"°\s+([CF])\b", r"°\1"),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\(?:times|cdot)(?![A-Za-z])|×|·", "*"),
        (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", "*"),
        (r"\\div(?![A-Za-z])|÷|\u2044", "/"),
        (r"\\(?:approx|simeq|sim)(?![A-Za-z])|[∼≃≅]", "≈"),
        (r"\\leq?(?![A-Za-z])|\\leqslant|<=", "≤"),
        (r"\\geq?(?![A-Za-z])|\\geqslant|>=", "≥"),
        (r"\\lt(?![A-Za-z])", "<"),
        (r"\\gt(?![A-Za-z])", ">"),
        (r"\\neq?(?![A-Za-z])|!=", "≠"),
        (r"\\pm(?![A-Za-z])|\+/-", "±"),
        (r"\\(frac|sqrt)\s+(?=[{\[])", r"\\\1"),
        (r"\{\s+", "{"),
        (r"(?<!\s)\s+\}", "}"),
        (r"\}\s+(?=\{)", "}"),
        (r"[−–](?=\d)", "-"),
    )
]


def plain_notation(text: str) -> str:
    """A text with its numbers and formulas in plain characters, where that changes nothing of their value."""
    if text.isascii() and not _SPECIAL.search(text):
        return _GROUPED.sub(lambda match: _GROUPS.sub(",", match[0]), text)
    text = _MATH.sub(lambda match: match[0] if _PROSE.search(match[1]) else f" {match[1]} ", text)
    text = _STYLE.sub(r" \1", text) if "\\" in text else text
    text = _VULGAR.sub(_decimal, text)
    text = _HIGH.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    for pattern, new in _REPLACED:
        text = pattern.sub(new, text)
    return _GROUPED.sub(lambda match: _GROUPS.sub(",", match[0]), text)


def _decimal(match: re.Match[str]) -> str:
    return repr(int(match[1] or 0) + unicodedata.numeric(match[2]))
