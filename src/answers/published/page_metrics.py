"""Similarities of texts, documents and texts at places, as OCRBench v2 (arXiv 2501.00321) computes them."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from testbed.answers.boxes import Box, iou
from testbed.answers.texts import edit_distance
from testbed.answers.trees import Tree, tree_distance

Placed = tuple[Box, str]  # a box and the text in it

_CHINESE = re.compile("[\u4e00-\u9fa5]")
_EDGES = "!?.:,*\"()·[]/'"
_QUOTED = re.compile(r'^\s*"(.*)"\s*$')
_DO_NOT_CARE = "###"
_TITLE = "TITLE"
_MOST_LINES = 1500
_CLEANED: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"<bos>|<eos>|<pad>|<unk>", ""),
    (r"\s##(\S)", r"\1"),
    (r"\\\s", r"\\"),
    (r"\s\*\s\*\s", "**"),
    (r"{\s", "{"),
    (r"\s}", "}"),
    (r"\\begin\s", r"\\begin"),
    (r"\\end\s", r"\\end"),
    (r"\n|\*|_", " "),
]


class NoSynonyms:
    """A WordNet without words."""

    def synsets(self, word: str) -> list[Any]:
        """No synonyms of a word."""
        return []


def text_similarity(said: str, right: str) -> float:
    """The mean of BLEU, METEOR without synonyms, the F1 of the sets of words, and 1 − edit distance / length.

    Words of texts with Chinese in them are characters.
    """
    translate = importlib.import_module("nltk.translate")  # which takes long
    meteor = importlib.import_module("nltk.translate.meteor_score")
    if not said or not right:
        return 0.0
    chinese = _CHINESE.search(said) or _CHINESE.search(right)
    given, wanted = (list(text) if chinese else text.split() for text in (said, right))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of BLEU, that no four words are the same
        scores = [
            translate.bleu([wanted], given),
            meteor.meteor_score([wanted], given, wordnet=NoSynonyms()),
        ]
    same, sizes = len(set(given) & set(wanted)), len(set(given)) + len(set(wanted))
    scores += [2 * same / sizes if sizes else 0.0, 1 - edit_distance(said, right) / max(len(said), len(right))]
    return float(sum(scores) / len(scores))


def document_similarity(said: str, right: str) -> float:
    """1 − the edit distance of the trees of headings and lines per the nodes of the larger one.

    Lines in place of others cost nothing, unless one is blank: the structure alone counts.
    """
    if max(said.count("\n"), right.count("\n")) > _MOST_LINES:
        return 0.0
    first, second = _document(said), _document(right)
    distance = tree_distance(first, second, lambda _: 1, lambda one, other: float(not (one.split() and other.split())))
    return 1 - distance / max(len(first), len(second))


def _document(text: str) -> Tree:
    """The headings of a text, in their order, with their lines; lines before all of them belong to a title."""
    root, parts = "ROOT", [(_TITLE, list[Tree]())]
    under = 0
    for line in text.split("\n"):
        for pattern, new in _CLEANED:
            line = re.sub(pattern, new, line)
        if line.startswith("#"):
            heading = line.replace("#", "")
            parts.append((heading, []))
            under = next(place for place, (label, _) in enumerate(parts) if label == heading)
        else:
            parts[under][1].append(Tree(line))
    return Tree(root, tuple(Tree(label, tuple(lines)) for label, lines in parts))


def spotting(said: Sequence[Placed], right: Sequence[Placed]) -> float:
    """The F1 of texts at the right places: boxes that overlap by more than half of their union, with equal texts."""
    said = [each for each in said if each[0][0] < each[0][2] and each[0][1] < each[0][3]]
    if not said or not right:
        return 0.0
    cared = [each for each in right if each[1] != _DO_NOT_CARE]
    ignored = [box for box, text in right if text == _DO_NOT_CARE]
    given = [each for each in said if not any(_covered(each[0], box) > 0.5 for box in ignored)]
    if not cared:
        return 0.0 if given else 1.0
    free, hits = list(given), 0
    for box, text in cared:
        found = next((each for each in free if iou(box, each[0]) > 0.5), None)
        if found is not None:
            free.remove(found)
            hits += _same_text(_unquoted(text).upper(), _unquoted(found[1]).upper())
    return 2 * hits / (len(cared) + len(given))


def _covered(box: Box, by: Box) -> float:
    """The share of a box that another one covers."""
    across = max(0.0, min(box[2], by[2]) - max(box[0], by[0]))
    down = max(0.0, min(box[3], by[3]) - max(box[1], by[1]))
    return across * down / ((box[2] - box[0]) * (box[3] - box[1]))


def _unquoted(text: str) -> str:
    quoted = _QUOTED.match(text)
    return quoted[1].replace("\\\\", "\\").replace('\\"', '"') if quoted else text


def _same_text(right: str, said: str) -> bool:
    """Checks whether texts are equal, also without a mark at the beginning, the end or both of the right one."""
    if not right:
        return not said
    first, last = right[0] in _EDGES, right[-1] in _EDGES
    forms = [right, *([right[1:]] if first else []), *([right[:-1]] if last else [])]
    return said in [*forms, *([right[1:-1]] if first and last else [])]
