"""WildDoc (arXiv 2505.11015): photographs of documents, whose question is one of another set, by its index.

An index is ``DocVQA-…``, ``ChartQA-…`` or ``TableVQA-SPLIT-…``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from testbed.answers import mixed_sets, numbers, open_answers
from testbed.answers.file_prompts import TABLES, origin
from testbed.answers.published import open_answers as published
from testbed.answers.published import table_vqa
from testbed.answers.verdict import UNREAD, Columns, Verdict


def _by_origin(rules: Mapping[str, Callable[[Columns, str], Verdict]], columns: Columns, text: str) -> Verdict:
    name, split = origin(columns.get("index", ""))
    return rules[name]({**columns, "split": split}, text) if name in rules else UNREAD


def wild_documents(columns: Columns, text: str) -> Verdict:
    """By the rule of its set."""
    rules = {"DocVQA": open_answers.anls, "ChartQA": numbers.relaxed, TABLES: mixed_sets.tables}
    return _by_origin(rules, columns, text)


def published_wild_documents(columns: Columns, text: str) -> Verdict:
    """The same as VLMEvalKit."""
    rules = {"DocVQA": published.anls, "ChartQA": published.relaxed, TABLES: table_vqa.table_vqa}
    return _by_origin(rules, columns, text)
