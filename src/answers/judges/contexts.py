"""Questions for judges about answers to charts, documents, memories and comparisons, in our own words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from testbed.answers.columns import as_list, truth
from testbed.answers.comparisons import better
from testbed.answers.grids import grids_in, verdict
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import object_in, stated, unlabelled, word_in
from testbed.answers.published.long_contexts import extra_of, right_of
from testbed.answers.verdict import Columns, Verdict

METHOD = "judge"
_MARKS = 5  # of a description of a chart
_MARK = re.compile(r"([0-5])(?:\.0+)?(?:\s*(?:/|out of)\s*5)?")
_QA = "qa"
_MARKS_OF: Mapping[str, str] = {
    "treesandtents": " Write trees as r and tents as t.",
    "lightup": " Write walls as w, also those with numbers, and lamps as s.",
    "binairo": " Write white as w and black as b.",
    **dict.fromkeys(
        ("starbattle", "battleships", "hitori", "aquarium", "kakurasu", "nonogram", "thermometers", "fieldexplore"),
        " Write chosen, shaded or filled cells as s.",
    ),
}
_CHART_TASKS: Mapping[str, str] = {
    "description": "a description of a chart",
    "summary": "a summary of a chart",
    "redrawing": "code that draws a chart again",
}
_CRITERIA: Mapping[str, str] = {
    "knowledge_update": "It is correct if it names the present answer, so that this can be told from others; the former"
    " answer is wrong.",
    "answer_refusal": "It is correct if it says that the information is missing or the question cannot be answered; any"
    " other answer is wrong, however carefully it is put.",
    "temporal_reasoning": "It is correct if it names the same option, the same date in any form, or the same order with"
    " all of its parts.",
    "multi_session_reasoning": "It is correct if it has the same number in any form, or the same yes or no.",
}


def _correct(criterion: str, shown: Mapping[str, str], text: str) -> str:
    parts = "\n\n".join(f"{heading}: {part}" for heading, part in {**shown, "Answer": text}.items() if part)
    asked = f"Is this answer to the question correct? {criterion}"
    return f"{asked}\n\n{parts}\n\nReply with CORRECT or INCORRECT and nothing else."


def _read_correct(reply: str) -> Verdict | None:
    word = word_in(reply, ("correct", "incorrect"))
    return None if word is None else Verdict(word, float(word == "correct"), METHOD)


# ChartX ---------------------------------------------------------------------------------------------------------------


def chart_question(columns: Columns, text: str) -> str:
    """Asks whether an answer is right, or for a mark from 0 to 5, by ``category``."""
    category = columns.get("category", "").lower()
    if category == _QA:
        criterion = "A number is correct if it is less than 5 % off, with or without its unit; judge by the reference."
        return _correct(criterion, {"Question": columns.get("question", ""), "Reference": truth(columns)}, text)
    task = next((name for part, name in _CHART_TASKS.items() if part in category), "an answer about a chart")
    given = object_in(columns.get("metadata", "")) or {}
    shown = {"Title": given.get("title", ""), "Type": given.get("chart_type", ""), "Table": given.get("csv", "")}
    parts = "\n".join(f"{heading}: {part}" for heading, part in shown.items() if part)
    return (
        f"Mark {task} from 0 to {_MARKS}, by the chart's data: 0 it has nothing to do with the chart, 1 nearly all is"
        " wrong, 2 some is right and the essential wrong or missing, 3 most is right, 4 all is right, 5 all is right,"
        f" complete and clear.\n\n{parts}\n\nAnswer:\n{text}\n\nReply with the mark and nothing else."
    )


def chart_read(columns: Columns, reply: str) -> Verdict | None:
    """The verdict, or the mark per 5."""
    if columns.get("category", "").lower() == _QA:
        return _read_correct(reply)

    def mark(line: str) -> int | None:
        match = _MARK.fullmatch(unlabelled(line).strip("*_` "))
        return int(match[1]) if match else None

    said = stated(reply, mark)
    return None if said is None else Verdict(str(said), said / _MARKS, METHOD)


# MMLongBench ----------------------------------------------------------------------------------------------------------


def _is_list(columns: Columns) -> bool:
    return extra_of(columns).get("answer_format") == "List"


def document_question(columns: Columns, text: str) -> str:
    """Asks whether an answer about documents is right; of a list how many of its items are."""
    asked = str(extra_of(columns).get("question", "")) or columns.get("question", "")
    if not _is_list(columns):
        criterion = "It is correct if it means the same as the reference, in whatever form."
        return _correct(criterion, {"Question": asked, "Reference": str(right_of(columns))}, text)
    return (
        "Count the items of this answer, and those of the reference that it covers: by the same words, or others that"
        f" mean the same.\n\nQuestion: {asked}\n\nReference: {right_of(columns)}\n\nAnswer: {text}\n\n"
        'Reply with JSON and nothing else:\n{"student_answer_count": a number, "covered_count": a number}'
    )


def document_read(columns: Columns, reply: str) -> Verdict | None:
    """The verdict; of a list the F1 of its items."""
    if not _is_list(columns):
        return _read_correct(reply)
    said = object_in(reply) or {}
    counts = [said.get(name) for name in ("student_answer_count", "covered_count")]
    right = len(as_list(str(right_of(columns))))
    if not all(isinstance(count, int | float) and not isinstance(count, bool) and count >= 0 for count in counts):
        return None
    given, covered = (float(count) for count in counts if count is not None)
    recall, precision = covered / right, covered / given if given else 0.0
    f1 = 2 * recall * precision / (recall + precision) if covered and given else 0.0
    return Verdict(f"{covered:g} of {right}", min(f1, 1.0), METHOD)


# MEMLENS --------------------------------------------------------------------------------------------------------------


def memory_question(columns: Columns, text: str) -> str:
    """Asks whether an answer about conversations is right, by ``question_type``."""
    kind = columns.get("question_type", "")
    criterion = _CRITERIA.get(kind, "It is correct if it has the essential information of the reference.")
    criterion += " Only its last clear answer counts; one that goes back and forth without a conclusion is wrong."
    refusal = kind == "answer_refusal"
    shown = {"Question": columns.get("question", "").rpartition("<image>")[2].strip()[-2000:]}
    shown |= {"Reference": "insufficient information" if refusal else truth(columns)}
    shown |= {"Former answer": columns.get("old_answer", "")} if kind == "knowledge_update" else {}
    return _correct(criterion, shown, text)


def memory_read(columns: Columns, reply: str) -> Verdict | None:
    """Reads the reply to `memory_question`."""
    return _read_correct(reply)


# VL-RewardBench -------------------------------------------------------------------------------------------------------


def comparison_question(columns: Columns, text: str) -> str:
    """Asks which of two answers a judgement prefers."""
    return (
        f"Which of two answers does this judgement prefer?\n\nJudgement: {text}\n\n"
        "Reply with Answer 1 or Answer 2 and nothing else; if it prefers neither, reply with Neither."
    )


def comparison_read(columns: Columns, reply: str) -> Verdict | None:
    """The number that a judge names; a judgement that prefers neither is wrong."""
    word = word_in(reply, ("answer 1", "answer 2", "1", "2", "neither"))
    if word is None:
        return None
    said = word.removeprefix("answer ")
    return Verdict(said, float(said == better(columns)), METHOD)


# VGRP-Bench -----------------------------------------------------------------------------------------------------------


def grids_question(columns: Columns, text: str) -> str:
    """Asks for the two grids of an answer in one form, without checking them."""
    return (
        "Write down the two grids in this answer to a puzzle: the one that it says it saw, and the solved one. Do not"
        f" check or correct them. Write empty cells (0, *, _, -, #) as 0.{_MARKS_OF.get(_kind_of(columns), '')}"
        f" Write Wrong for a grid that is missing or has rows of different lengths.\n\nAnswer: {text}\n\n"
        "Reply in this form and with nothing else:\nPerception\n[[1,0],[0,2]]\nAnswer\n[[1,2],[2,1]]"
    )


def _kind_of(columns: Columns) -> str:
    return columns.get("category", "").split("_")[0]


def grids_read(columns: Columns, reply: str) -> Verdict | None:
    """Checks both grids; an answer without one of them is wrong."""
    lines = reply.strip().splitlines()
    heads = [line.strip().strip("*:").lower() for line in lines]
    if not {"perception", "initial state"} & set(heads) or not {"answer", "solution"} & set(heads):
        return None
    found = grids_in(reply)
    return Verdict("0 0", 0.0, METHOD) if found is None else verdict(columns, *found, method=METHOD)


add_judging("chart", Judging(chart_question, chart_read, "unparsed", graded=True, scorings=["chart_tables"]))
add_judging("document", Judging(document_question, document_read, "unparsed", graded=True, scorings=["long_contexts"]))
add_judging("grids", Judging(grids_question, grids_read, "unparsed", scorings=["grids"]))
add_judging("memory", Judging(memory_question, memory_read, "unparsed", scorings=["memories"]))
add_judging("comparison", Judging(comparison_question, comparison_read, "unparsed", scorings=["comparison"]))
