"""Texts that were read in pictures: CC-OCR's F1 of words, or of characters (arXiv 2412.02210)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from testbed.answers.columns import truth
from testbed.answers.verdict import Verdict

_CHARACTERS = ("Arabic", "Japanese", "Korean")  # splits that are compared by characters, as those with zh
_SCENES = "multi_scene_ocr"  # the category whose words are compared without punctuation
_MARKS = re.compile("###|\\*\\*\\*")
_OTHERS = re.compile("[^A-Za-z0-9]+")
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_TINY = 1e-9  # that VLMEvalKit adds to each denominator


def f1(columns: Mapping[str, str], text: str) -> Verdict:
    """F1 of the right text and the answer, or what is in its only code fence, as multisets of words or characters."""
    fenced = _FENCED.findall(text)
    return _compared(columns, fenced[0] if len(fenced) == 1 else text, 0.0)


def published_f1(columns: Mapping[str, str], text: str) -> Verdict:
    """`f1` of the whole answer, as VLMEvalKit computes it."""
    return _compared(columns, text, _TINY)


def _compared(columns: Mapping[str, str], text: str, tiny: float) -> Verdict:
    split = columns.get("split", "")
    words = split not in _CHARACTERS and "zh" not in split
    plain = words and columns.get("category") == _SCENES
    said, right = (_tokens(part, words, plain) for part in (text, truth(columns)))
    common = (Counter(said) & Counter(right)).total()
    if not common:
        return Verdict(" ".join(said), 0.0, "compared")
    recall, precision = common / (len(right) + tiny), common / (len(said) + tiny)
    return Verdict(" ".join(said), 2 * recall * precision / (recall + precision + tiny), "compared")


def _tokens(text: str, words: bool, plain: bool) -> list[str]:
    line = " ".join(_MARKS.sub("", text.strip().replace("\t", " ").replace("\n", " ")).split())
    parts = (part.lower() for part in (line.split(" ") if words else line.replace(" ", "")))
    return [token for part in parts if (token := _OTHERS.sub("", part) if plain else part)]
