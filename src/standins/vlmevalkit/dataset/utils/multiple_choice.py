"""VLMEvalKit's helpers for multiple choice."""

from __future__ import annotations

from string import ascii_uppercase
from typing import Any

import pandas as pd

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.dataset.rules import by_split

__getattr__ = refusing(__name__)


def build_choices(item: Any) -> dict[str, str]:
    """The letters of a row's options → their texts."""
    return {letter: item[letter] for letter in ascii_uppercase if letter in item and not pd.isna(item[letter])}


def report_acc(df: pd.DataFrame) -> pd.DataFrame:
    """The mean of ``hit``: a row for each split, a column for all, for each l2-category and for each category."""
    return by_split(df, 1.0)
