"""Texts that show numbers of models that were trained here, which differ a little between processors and libraries."""

from __future__ import annotations

import re

import pytest

_NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e-?\d+)?")


def assert_near(printed: str, said: str, hint: str = "", fractions: float | None = 0.03, whole: bool = True) -> None:
    """The same words, and numbers that are near.

    Args:
        printed: What was printed now.
        said: What it should be like.
        hint: What to do if it is not.
        fractions: How far numbers up to 1 may be apart; percentages and counts, 2. None: they are not compared, as p
            values, which one answer moves from 0.5 to 1.
        whole: Whether whole numbers are compared; not those that name samples.
    """
    printed, said = (re.sub(r"sha256:\w+", "", text) for text in (printed, said))
    assert _NUMBER.sub("0", printed).split() == _NUMBER.sub("0", said).split(), hint or printed
    for one, other in zip(_NUMBER.findall(printed), _NUMBER.findall(said), strict=True):
        found, expected = (float(each.replace("−", "-")) for each in (one, other))
        if (not whole and "." not in other) or (fractions is None and abs(expected) <= 1):
            continue
        allowed = 2 if abs(expected) > 1 else fractions
        assert found == pytest.approx(expected, abs=allowed), f"{one} is not {other}: {hint or printed}"
