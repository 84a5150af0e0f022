"""Questions for judges in benchmarks of videos, and readings of their replies.

Each function is a question, or a reading, of `testbed.answers.judges.judging.Judging`. The prompts are our own;
VLMEvalKit's are worded differently.
"""

from __future__ import annotations

import re

from testbed.answers.columns import truth
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import stated, unlabelled
from testbed.answers.named_options import Options
from testbed.answers.verdict import Columns, Verdict
from testbed.errors import DataError

METHOD = "judge"
NONE_OF_THEM = "Z"
GRADES = 3  # the best grade of MMBench-Video
MARKS = 5  # the best of each of MLVU's two marks, which are at least 1
_GRADE = re.compile(rf"([0-{GRADES}])(?:\.0)?(?:\s*(?:/|out of)\s*{GRADES})?\.?")
_MARK = re.compile(rf"\W*(\w+)\W*:\W*([1-{MARKS}](?:\.\d+)?)(?:\s*/\s*{MARKS})?\W*")
_OPTION = re.compile(r"\s*([A-Z])[.):]\s*(.+)")
# MLVU's kinds of open questions → the two marks, and what each is about.
_MARKS = {
    "sub_scene": {
        "ACCURACY": "how many of the scoring points the response states correctly",
        "RELEVANCE": "how much the response keeps to the question, and how certain it is, correct or not",
    },
    "summary": {
        "COMPLETENESS": "how many of the main points of the reference the response has",
        "RELIABILITY": "how free of errors and contradictions the response is, and how clear; more details than in the"
        " reference are not errors",
    },
}


def similarity_question(columns: Columns, text: str) -> str:
    """Asks how similar an answer is to the reference, from 0 to 3 (MMBench-Video)."""
    return (
        f"How similar in meaning is this answer to the reference answer, from 0 to {GRADES}? {GRADES} means the same;"
        " 2 is mostly correct, 1 is mostly wrong, 0 is entirely wrong. Grammar and style do not matter.\n\n"
        f"Question: {columns.get('question', '')}\n\nReference answer: {truth(columns)}\n\nAnswer: {text}\n\n"
        f"Reply with 0, 1, 2 or {GRADES} and nothing else."
    )


def similarity_read(columns: Columns, reply: str) -> Verdict | None:
    """The grade, as a fraction of the best."""

    def read(line: str) -> int | None:
        match = _GRADE.fullmatch(unlabelled(line))
        return None if match is None else int(match[1])

    grade = stated(reply, read)
    return None if grade is None else Verdict(str(grade), grade / GRADES, METHOD)


def marks_question(columns: Columns, text: str) -> str:
    """Asks for two marks from 1 to 5 (MLVU's open questions), by the column ``task_type``.

    Raises:
        DataError: If the task is not one of MLVU's.
    """
    marks = _marks(columns)
    about = "\n".join(f"- {name}: {meaning}." for name, meaning in marks.items())
    points = columns.get("scoring_points", "")
    reference = f"Scoring points: {points}" if points else f"Reference answer: {truth(columns)}"
    form = "\n".join(f"{name}: the mark" for name in marks)
    return (
        f"Give this response to a question about a video two marks from 1 (worst) to {MARKS} (best).\n{about}\n\n"
        f"Question: {columns.get('question', '')}\n\n{reference}\n\nResponse: {text}\n\n"
        f"Reply with two lines and nothing else:\n{form}"
    )


def marks_read(columns: Columns, reply: str) -> Verdict | None:
    """The sum of both marks, as a fraction of the best."""
    found = {match[1].upper(): float(match[2]) for line in reply.splitlines() if (match := _MARK.fullmatch(line))}
    names = _marks(columns)
    if not set(names) <= set(found) or any(found[name] > MARKS for name in names):
        return None
    total = sum(found[name] for name in names)
    return Verdict(f"{total:g}", total / (MARKS * len(names)), METHOD)


def _marks(columns: Columns) -> dict[str, str]:
    kind = columns.get("task_type", "")
    if kind not in _MARKS:
        raise DataError(f"its task_type is {kind!r}; the open questions of MLVU are {' and '.join(_MARKS)}")
    return _MARKS[kind]


def caption_question(columns: Columns, text: str) -> str:
    """Asks which option a caption supports (TempCompass): the question is in ``mc_question``."""
    return (
        "Answer this multiple-choice question about a video by its description alone.\n\n"
        f"Description: {text}\n\nQuestion: {columns.get('mc_question', '')}\n\n"
        "Reply with the letter of the option that the description supports and nothing else. If it supports none of"
        f" them, or does not say enough, reply with {NONE_OF_THEM}."
    )


def caption_read(columns: Columns, reply: str) -> Verdict | None:
    """The option that a judge chose by the caption; right if it is that of ``mc_answer``."""
    options = [_OPTION.fullmatch(line) for line in columns.get("mc_question", "").splitlines()]
    choices = {match[1]: match[2].strip() for match in options if match is not None} | {NONE_OF_THEM: ""}

    def read(line: str) -> str | None:
        option = Options(choices).whole(unlabelled(line))
        return None if option is None else option[0]

    letter = stated(reply, read)
    right = columns.get("mc_answer", "").strip()[:1]
    return None if letter is None else Verdict(letter, float(letter == right), METHOD)


add_judging(
    "similarity", Judging(similarity_question, similarity_read, "always", graded=True, scorings=["mmbench_video"])
)
add_judging("marks", Judging(marks_question, marks_read, "always", graded=True, scorings=["mlvu_open"]))
add_judging("caption", Judging(caption_question, caption_read, "always", scorings=["temp_compass_captioning"]))
