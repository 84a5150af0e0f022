"""Ocean-OCR's benchmark (arXiv 2501.15558): all text of a page, a scene or handwriting, compared with the right one."""

from __future__ import annotations

import importlib
import json
import re
import warnings

from testbed.answers.columns import truth
from testbed.answers.published.page_metrics import NoSynonyms
from testbed.answers.texts import edit_distance, final_text
from testbed.answers.verdict import UNREAD, Columns, Verdict

_CHINESE = re.compile("[\u4e00-\u9fa5]")
_SEPARATORS = re.compile(r"[（）()，,\s]+")  # of words in scenes
_SCENE, _HANDWRITTEN = "scene", "handwritten"


def right_text(columns: Columns) -> str:
    """The right text: the value of the second turn in the answer's JSON."""
    cell = truth(columns)
    try:
        turns = json.loads(cell)
        return str(turns[1]["value"])
    except (ValueError, TypeError, IndexError, KeyError, RecursionError):
        return cell


def normalized(columns: Columns, text: str) -> str:
    """A text as it is compared: of scenes the sorted words; of handwriting without stars and breaks of lines."""
    kind = columns.get("id", "")
    if _SCENE in kind:
        for mark, new in (("\\text{", ""), ("}", ""), ("\n", " "), ("-", " "), ("*", " ")):
            text = text.replace(mark, new)
        return " ".join(sorted(filter(None, _SEPARATORS.split(text.strip()))))
    return text.replace("*", " ").replace("\n", " ") if _HANDWRITTEN in kind else text


def similarities(columns: Columns, text: str) -> dict[str, float]:
    """BLEU, METEOR without synonyms, the F1, precision and recall of words, and the edit distance per length.

    As in VLMEvalKit, BLEU and METEOR take the answer for the reference, and precision is that of the right words. Words
    of texts with Chinese in them are characters (jieba's words there).
    """
    translate = importlib.import_module("nltk.translate")  # which takes long
    meteor = importlib.import_module("nltk.translate.meteor_score")
    said, right = normalized(columns, text), normalized(columns, right_text(columns))
    chinese = _CHINESE.search(said) or _CHINESE.search(right)
    given, wanted = (list(part) if chinese else part.split() for part in (said, right))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of BLEU, that no four words are the same
        bleu = translate.bleu([given], wanted)
        similar = meteor.meteor_score([given], wanted, wordnet=NoSynonyms())
    same, sizes = len(set(given) & set(wanted)), (len(set(given)), len(set(wanted)))
    return {
        "bleu": float(bleu),
        "meteor": float(similar),
        "f1": 2 * same / sum(sizes) if same else 0.0,
        "precision": same / sizes[1] if sizes[1] else 0.0,
        "recall": same / sizes[0] if sizes[0] else 0.0,
        "edit_distance": edit_distance(said, right) / max(len(said), len(right), 1),
    }


def published_page_reading(columns: Columns, text: str) -> Verdict:
    """1 − edit distance / length."""
    said, right = normalized(columns, text), normalized(columns, right_text(columns))
    if not said.strip():
        return UNREAD
    return Verdict(said, 1 - edit_distance(said, right) / max(len(said), len(right), 1), "whole")


def page_reading(columns: Columns, text: str) -> Verdict:
    """The same of the final part, with single blanks."""
    final, why = final_text(text)
    if not final:
        return Verdict(None, 0.0, why or "none")
    right = " ".join(right_text(columns).split())
    return published_page_reading({**columns, "answer": right}, " ".join(final.split()))
