"""Documents that were read in pictures (CC-OCR, arXiv 2412.02210): fields, pages, tables, formulas and molecules."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.html_tables import similarity
from testbed.answers.texts import edit_distance, final_text
from testbed.answers.transcriptions import f1, published_f1
from testbed.answers.trees import Tree, tree_distance
from testbed.answers.verdict import UNREAD, Columns, Verdict

_READS: Sequence[Callable[[str], Any]] = (json.loads, ast.literal_eval)
_LEAF = "<leaf>"
_MOST_NODES = 1500  # of a tree; a larger one is the answer of a model that repeats itself
_MOST_DEPTH = 50
_JSON = re.compile(r"```json(.*?)```", re.DOTALL)
_FENCED = re.compile(r"```\w*\n?(.*?)\n?```", re.DOTALL)
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " ", ord("、"): ","}
_CHINESE = "\u4e00-\u9fff"
_SPACES = (
    (re.compile(rf"(?<=[{_CHINESE}])\s+(?=[{_CHINESE}])"), ""),
    (re.compile(rf"(?<=[{_CHINESE}])\s+(?=[a-zA-Z0-9])"), ""),
    (re.compile(rf"(?<=[a-zA-Z0-9])\s+(?=[{_CHINESE}])"), ""),
    (re.compile(r"(?<![0-9])\s*([,.!?:;])\s*"), r"\1 "),
    (re.compile(r"(?<=[0-9])(?=[a-zA-Z])"), " "),
    (re.compile(r"(?<=[a-zA-Z])(?=[0-9])"), " "),
    (re.compile(r"\s+"), " "),
)
_PREAMBLE = re.compile(
    r"\\documentclass\{.*?\}|\\usepackage(?:\[.*?\])?\{.*?\}|\\geometry\{.*?\}|\\(?:begin|end)\{document\}|\\noindent"
)
_MOLECULE, _FORMULA, _TABLE = "molecular", "formula", "table"


def fields(columns: Columns, text: str) -> Verdict:
    """Key information: 1 − the edit distance of the trees of two JSON objects, per that of nothing and the right one.

    The object is in a code fence, or is all between the first and the last brace.
    """
    final, why = final_text(text)
    if final is None:
        return Verdict(None, 0.0, why)
    found = _FENCED.findall(final)[-1:] or [final[final.find("{") : final.rfind("}") + 1]]
    return _fields(columns, found[0])


def published_fields(columns: Columns, text: str) -> Verdict:
    """`fields` of what is in the first code fence of JSON, else of the whole answer, as VLMEvalKit reads it."""
    found = _JSON.search(text)
    return _fields(columns, found[1] if found else "" if "```json" in text else text, (json.loads,))


def _fields(columns: Columns, text: str, reads: Sequence[Callable[[str], Any]] = _READS) -> Verdict:
    said, right = _parsed(text.strip().replace("\n", ""), reads), _parsed(truth(columns))
    nothing, wanted = _tree(_plain({})), _tree(_plain(right))
    tree = None if said is None else _tree(_plain(said))
    if tree is None or nothing is None or wanted is None or max(map(len, (tree, wanted))) > _MOST_NODES:
        return UNREAD
    whole = tree_distance(nothing, wanted, _alone, _instead)
    score = max(0.0, 1 - tree_distance(tree, wanted, _alone, _instead) / whole) if whole else float(len(tree) == 1)
    return Verdict(json.dumps(said, ensure_ascii=False), score, "fields")


def _parsed(text: str, reads: Sequence[Callable[[str], Any]] = _READS) -> Any:
    """Parses a text in JSON or in Python's notation; None if it is in neither."""
    for read in reads:
        try:
            return read(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def _spaced(value: Any) -> Any:
    """Texts within objects with blanks as they are compared; those in lists stay as they are."""
    if isinstance(value, dict):
        return {key: _spaced(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spaced(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, str):
        return value
    value = value.translate(_FULL_WIDTH)
    for pattern, instead in _SPACES:
        value = pattern.sub(instead, value)
    return value


def _plain(value: Any) -> Any:
    try:
        return _listed(_spaced(value), 0)
    except RecursionError:
        return None


def _listed(value: Any, depth: int) -> Any:
    """Objects with keys by length and name, each value a list; without what is empty."""
    if depth > _MOST_DEPTH:
        raise RecursionError
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(str(key)), str(key)))
        inner = {str(key): _listed(value[key], depth + 1) for key in keys}
        return {key: each if isinstance(each, list) else [each] for key, each in inner.items() if each}
    if isinstance(value, list):
        if all(isinstance(item, dict) for item in value):
            return [each for item in value if (each := _listed(item, depth + 1))]
        return [text for item in value if type(item) in (str, int, float) and (text := str(item).strip())]
    return [str(value).strip()]


def _tree(value: Any, name: str = "<root>") -> Tree | None:
    if value is None:
        return None
    if isinstance(value, dict):
        branches = [_tree(each, key) for key, each in value.items()]
    elif all(isinstance(item, dict) for item in value):
        branches = [_tree(item, "<subtree>") for item in value]
    else:
        branches = [Tree(f"{_LEAF}{item}") for item in value]
    return Tree(name, tuple(branch for branch in branches if branch is not None))


def _alone(label: str) -> float:
    return len(label.replace(_LEAF, "")) if _LEAF in label else 1


def _instead(one: str, other: str) -> float:
    first, second = one.replace(_LEAF, ""), other.replace(_LEAF, "")
    if _LEAF in one and _LEAF in other:
        return edit_distance(first, second)
    if _LEAF in one or _LEAF in other:
        return 1 + len(first if _LEAF in one else second)
    return float(one != other)


def page(columns: Columns, text: str) -> Verdict:
    """Parsing of pages, formulas and molecules: 1 − edit distance / length, without blanks, of the final part."""
    final, why = final_text(text)
    return Verdict(None, 0.0, why) if final is None else published_page(columns, _in_fence(columns, final))


def any_kind(columns: Columns, text: str) -> Verdict:
    """CC-OCR as one table: texts, fields and pages, by ``category``."""
    return {"kie": fields, "doc_parsing": page}.get(columns.get("category", ""), f1)(columns, text)


def published_any_kind(columns: Columns, text: str) -> Verdict:
    """`any_kind` of the whole answer."""
    kinds = {"kie": published_fields, "doc_parsing": published_page}
    return kinds.get(columns.get("category", ""), published_f1)(columns, text)


def _in_fence(columns: Columns, text: str) -> str:
    found = _FENCED.findall(text)
    return found[-1] if found and columns.get("l2-category") in (_FORMULA, _MOLECULE, _TABLE) else text


def published_table(columns: Columns, text: str) -> Verdict:
    """Tables in HTML: TEDS without blanks of what follows the first fence of HTML, else of the whole answer."""
    parts = _PREAMBLE.sub("", text).split("```html")
    said = (parts[1] if len(parts) > 1 else parts[0]).replace("```", "")
    said = said.replace(" ", "").replace("\n", "").replace("，", ",")
    return Verdict(said, similarity(said, truth(columns).replace(" ", "").replace("\n", "")), "compared")


def published_page(columns: Columns, text: str) -> Verdict:
    """`page` of the whole answer: of pages, what is in its first code fence, with the language as its first word."""
    if columns.get("l2-category") == _TABLE:
        return published_table(columns, text)
    said = _CLEANED.get(columns.get("l2-category", ""), _of_page)(text)
    right = truth(columns).replace(" ", "")
    right = right if columns.get("l2-category") in (_FORMULA, _MOLECULE) else right.replace("\n", "")
    length = max(len(said), len(right))
    return Verdict(said, 1 - edit_distance(said, right) / length if length else 1.0, "compared")


def _of_page(text: str) -> str:
    parts = _PREAMBLE.sub("", text).split("```")
    return (parts[1] if len(parts) > 1 else parts[0]).replace(" ", "").replace("\n", "")


def _of_formula(text: str) -> str:
    plain = text.replace("```latex", "").replace("```", "")
    return plain.replace("\n", "").replace("\t", "").replace(" ", "")


def _of_molecule(text: str) -> str:
    return text.replace("\n", "").replace(" ", "").replace("<smiles>", "").replace("</smiles>", "")


_CLEANED: Mapping[str, Callable[[str], str]] = {_FORMULA: _of_formula, _MOLECULE: _of_molecule}
