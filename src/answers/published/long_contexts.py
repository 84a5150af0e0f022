"""MMLongBench (arXiv 2505.10610) as VLMEvalKit scores it, by ``task`` and ``source_dataset``.

An answer, and the part of it after "Answer:", are scored; the better one counts.
"""

from __future__ import annotations

import importlib
import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.verdict import UNREAD, Columns, Verdict

Rule = Callable[[str, Any], float]

DOCUMENTS = "documentQA"  # the task whose answers a judge reads
_BEFORE = {"summ": "Summary:", "ICL": "label:"}
_LAST_YES_OR_NO = re.compile(r"\b(?:yes|no)\b(?!.*\b(?:yes|no)\b)", re.DOTALL)
_COUNTS, _LIST = re.compile(r"\[[\d\s,]+\]"), re.compile(r"\[.*?\]", re.DOTALL)
_LETTERS = (
    re.compile(r"answer is \(?([A-J])\)?"),
    re.compile(r"[aA]nswer:\s*([A-J])"),
    re.compile(r"\b([A-J])\b(?!.*\b[A-J]\b)", re.DOTALL),
)
_LABEL, _LAST_NUMBER = re.compile(r"label:\s*(\d+)", re.IGNORECASE), re.compile(r"\b(\d+)\b(?!.*\b\d+\b)")
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_OTHERWISE = (0, 1, 1, 0)  # what an answer without yes or no counts as, by the number of the row


def extra_of(columns: Columns) -> Mapping[str, Any]:
    """The fields of the column ``extra_info``, in JSON."""
    try:
        extra = json.loads(columns.get("extra_info", ""))
    except (ValueError, RecursionError):
        return {}
    return extra if isinstance(extra, dict) else {}


def right_of(columns: Columns) -> Any:
    """The right answer with its type."""
    return extra_of(columns).get("answer", truth(columns))


def rule_of(columns: Columns) -> Rule | None:
    """The rule of a row; None where a judge reads the answer, or the task is unknown."""
    task, source = columns.get("task", ""), columns.get("source_dataset", "")
    if task != "NIAH":
        return {"vrag": _contained, "ICL": _class, "summ": rouge}.get(task)
    if "counting" in source:
        return _counted
    if "retrieval" in source or "reasoning" in source:
        return _letter if "image" in source else _contained
    return None


def long_contexts(columns: Columns, text: str) -> Verdict:
    """The score of the row's rule; documents are left to a judge."""
    if columns.get("task") == "NIAH" and columns.get("source_dataset", "").startswith("vh_"):
        return _yes_or_no(columns, text)
    rule = rule_of(columns)
    if rule is None:
        return UNREAD
    return scored(rule, right_of(columns), [text, after(columns, text)])


def scored(rule: Rule, right: Any, texts: Sequence[str]) -> Verdict:
    """The best score of some readings of an answer; 0 where the right answer has another type."""
    try:
        return Verdict(texts[-1] or None, float(max(rule(text, right) for text in texts)), "rule")
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return Verdict(texts[-1] or None, 0.0, "rule")


def after(columns: Columns, text: str) -> str:
    """The text after "Answer:", or after the word of the task, in an answer; else the answer."""
    word = _BEFORE.get(columns.get("task", ""), "Answer:")
    _, found, rest = _cut(text, word)
    said = (rest if found else text).strip()
    return said[len(word) :].strip() if said.lower().startswith(word.lower()) else said


def _cut(text: str, word: str) -> tuple[str, bool, str]:
    match = re.search(re.escape(word), text, re.IGNORECASE)
    return (text[: match.start()], True, text[match.end() :]) if match else (text, False, "")


def _yes_or_no(columns: Columns, text: str) -> Verdict:
    said, right = _flag(text), _flag(str(right_of(columns)))
    index = columns.get("index", "0")
    given = _OTHERWISE[int(index) % len(_OTHERWISE) if index.isdecimal() else 0] if said is None else said
    return Verdict("Yes" if given == 1 else "No", float(given == right), "row" if said is None else "word")


def _flag(text: str) -> int | None:
    plain = " ".join(_ARTICLE.sub(" ", text.lower()).split())
    match = _LAST_YES_OR_NO.search(plain)
    if match:
        return int(match[0] == "yes")
    return int(plain) if plain.isdecimal() and len(plain) < 10 else None


def normalized(text: str) -> str:
    """A text in lower case, without punctuation and articles."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _contained(text: str, right: Any) -> float:
    given = [right] if isinstance(right, str) else list(right)
    given = [item for each in given for item in each] if isinstance(given[0], list) else given
    said = normalized(text)
    return float(any(normalized(each) in said for each in given))


def _counted(text: str, right: Any) -> float:
    """The counts have the right sum."""
    return float(sum(_counts(" ".join(_ARTICLE.sub(" ", text.lower()).split()))) == sum(right))


def _counts(text: str) -> list[int]:
    for pattern in (_COUNTS, _LIST):
        found = pattern.findall(text)
        try:
            items = json.loads(found[-1]) if found else None
        except (ValueError, RecursionError):
            continue
        if items is not None:
            return [int(item) for item in items if isinstance(item, int | float) or str(item).isdecimal()]
    return [int(number[:18]) for number in re.findall(r"\d+", text)]


def _letter(text: str, right: Any) -> float:
    plain = " ".join(text.split())
    match = next((match for pattern in _LETTERS if (match := pattern.search(plain))), None)
    return float((ord(match[1]) - ord("A") if match else -1) == right)


def _class(text: str, right: Any) -> float:
    plain = " ".join(text.split())
    match = _LABEL.search(plain) or _LAST_NUMBER.search(plain) or re.search(r"(\d+)", plain)
    return float((int(match[1][:18]) if match else -1) == right)


# Summaries ------------------------------------------------------------------------------------------------------------


def rouge(text: str, right: Any) -> float:
    """The F1 of ROUGE-L of summaries (Lin, 2004): the union of the longest common subsequences of lines, of stems."""
    given = [right] if isinstance(right, str) else list(right)
    given = [item for each in given for item in each] if isinstance(given[0], list) else given
    said = [_stems(line) for line in text.split("\n") if line]
    return max(_summary_f1([_stems(line) for line in each.split("\n") if line], said) for each in given)


def _stems(text: str) -> list[str]:
    stem = _stemmer()
    words = re.sub(r"[^a-z0-9]+", " ", text.lower()).split()
    return [stem(word) if len(word) > 3 else word for word in words]


@cache
def _stemmer() -> Callable[[str], str]:
    stem: Callable[[str], str] = importlib.import_module("nltk.stem.porter").PorterStemmer().stem
    return stem


def _summary_f1(right: Sequence[Sequence[str]], said: Sequence[Sequence[str]]) -> float:
    sizes = sum(map(len, right)), sum(map(len, said))
    if not all(sizes):
        return 0.0
    left = [_count(line for line in lines) for lines in (right, said)]
    hits = 0
    for line in right:
        common = {place for other in said for place in _common(line, other)}
        for place in sorted(common):
            word = line[place]
            if left[0].get(word, 0) > 0 and left[1].get(word, 0) > 0:
                hits += 1
                left[0][word] -= 1
                left[1][word] -= 1
    recall, precision = hits / sizes[0], hits / sizes[1]
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def _count(lines: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in lines:
        for word in line:
            found[word] = found.get(word, 0) + 1
    return found


def _common(right: Sequence[str], said: Sequence[str]) -> list[int]:
    """The places in the first of a longest common subsequence."""
    rows = [[0] * (len(said) + 1)]
    for word in right:
        row = [0]
        for place, other in enumerate(said):
            row.append(rows[-1][place] + 1 if word == other else max(rows[-1][place + 1], row[-1]))
        rows.append(row)
    found, row_at, column_at = list[int](), len(right), len(said)
    while row_at and column_at:
        if right[row_at - 1] == said[column_at - 1]:
            found.append(row_at - 1)
            row_at, column_at = row_at - 1, column_at - 1
        elif rows[row_at][column_at - 1] > rows[row_at - 1][column_at]:
            column_at -= 1
        else:
            row_at -= 1
    return found
