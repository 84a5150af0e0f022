"""The number that an arithmetic expression is, as people, Python or LaTeX write it. Nothing is evaluated as code."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping

_LONGEST = 200  # characters of an expression
_TOKEN = re.compile(
    r"\s*(?:(\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?(?:[eE][-+]?\d{1,3})?|\.\d+)"
    r"|(\\[dtc]?frac|\\sqrt|\\cdot|\\times|\\div|\\pi|\*\*|sqrt|pi\b|[-+*/^(){}\[\]π√×÷−·]))"
)
_SPACING = re.compile(r"\\(?:left|right|displaystyle)(?![A-Za-z])|\\[,;!: ]|~")
_SAME = {"**": "^", "\\cdot": "*", "\\times": "*", "×": "*", "·": "*", "\\div": "/", "÷": "/", "−": "-"}
_SAME |= {"\\pi": "π", "pi": "π", "sqrt": "√", "\\dfrac": "\\frac", "\\tfrac": "\\frac"}
_SAME |= {"\\cfrac": "\\frac"}
_SUMS: Mapping[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub}
_PRODUCTS: Mapping[str, Callable[[float, float], float]] = {"*": operator.mul, "/": operator.truediv}
_CLOSES = {"(": ")", "{": "}", "[": "]"}
_BEGINS = ("(", "{", "π", "√", "\\sqrt", "\\frac")  # of a factor without a sign before it: 2π, 3√2


def value_of(text: str) -> float | None:
    r"""Evaluates an expression; None if it is not one.

    It may hold numbers, ``+ - * / ^ **``, brackets, π, roots, and LaTeX's ``\frac``, ``\sqrt``, ``\cdot``, ``\times``,
    ``\div`` and ``\pi``. An integer before a fraction of LaTeX is a mixed number.
    """
    plain = _SPACING.sub(" ", text.strip().strip("$")).strip()
    if not plain or len(plain) > _LONGEST:
        return None
    tokens, place = [], 0
    while place < len(plain):
        match = _TOKEN.match(plain, place)
        if match is None:
            return None
        tokens.append(match.group(1) or _SAME.get(match.group(2), match.group(2)))
        place = match.end()
    try:
        value = _Reader(tokens).whole()
    except (_NoExpressionError, ArithmeticError, ValueError, RecursionError):
        return None
    return value if isinstance(value, float) and math.isfinite(value) else None


class _NoExpressionError(Exception):
    """The tokens do not form an expression."""


class _Reader:
    """Reads the tokens of an expression from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    def whole(self) -> float:
        """The value of all tokens."""
        value = self._sum()
        if self._next():
            raise _NoExpressionError
        return value

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, wanted: str = "") -> str:
        token = self._next()
        if not token or (wanted and token != wanted):
            raise _NoExpressionError
        self._place += 1
        return token

    def _sum(self) -> float:
        value = self._product()
        while self._next() in _SUMS:
            value = _SUMS[self._take()](value, self._product())
        return value

    def _product(self) -> float:
        start = self._place
        value = self._signed()
        while True:
            if self._next() in _PRODUCTS:
                value = _PRODUCTS[self._take()](value, self._signed())
            elif self._next() == "\\frac" and self._tokens[start : self._place][-1].isdigit():
                value += math.copysign(self._power(), value)
            elif self._next() in _BEGINS:
                value *= self._power()
            else:
                return value

    def _signed(self) -> float:
        if self._next() in _SUMS:
            return self._signed() if self._take() == "+" else -self._signed()
        return self._power()

    def _power(self) -> float:
        base = self._atom()
        if self._next() != "^":
            return base
        self._take()
        value = math.pow(base, self._signed())
        return value

    def _atom(self) -> float:
        token = self._take()
        if token in ("(", "{"):
            value = self._sum()
            self._take(_CLOSES[token])
            return value
        if token == "π":
            return math.pi
        if token == "\\frac":
            above = self._argument()
            return above / self._argument()
        if token == "√":
            return math.pow(self._atom(), 0.5)
        if token == "\\sqrt":
            return self._root()
        if token[0].isdigit() or token[0] == ".":
            return float(token.replace(",", ""))
        raise _NoExpressionError

    def _root(self) -> float:
        degree = 2.0
        if self._next() == "[":
            self._take()
            degree = self._sum()
            self._take("]")
        return math.pow(self._argument(), 1 / degree)

    def _argument(self) -> float:
        """An expression in brackets, or a digit: ``\\frac12`` is a half."""
        token = self._next()
        if token.isdigit() and len(token) > 1:
            self._tokens[self._place : self._place + 1] = [token[0], token[1:]]
        return self._atom()
