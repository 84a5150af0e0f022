"""Questions for judges in benchmarks of mathematics, reasoning and open knowledge, and readings of their replies.

Each function is a question, or a reading, of `testbed.answers.judges.judging.Judging`. The prompts are our own;
VLMEvalKit's are worded differently. Only CharXiv's are in its table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

from testbed.answers.columns import listed, references, truth
from testbed.answers.judges.judging import Judging, add_judging
from testbed.answers.judges.replies import object_in, score_in, stated, unlabelled, without_remark, word_in
from testbed.answers.named_options import Options
from testbed.answers.reasoning import letters_of, listed_options, same, value_without_sign
from testbed.answers.scorings import SCORINGS
from testbed.answers.verdict import Columns, Verdict

METHOD = "judge"
NO_ANSWER, NO_LETTER = "NONE", "Z"
_PREDICTION = "{PREDICTION}"  # stands for the answer in CharXiv's column grading_query
_EXTRACTED = re.compile(r"[\s*_#>\"'`]*(?:extracted(?: answer)?[ \t*_]{0,5}:[ \t*]*)+(.*)", re.IGNORECASE)
_NUMBER_REMARK = re.compile(r"(?<=\d)\s*(?:[;,]\s+[A-Za-z(]|\s[–—-]\s).*$")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(-?\d*),(\d{1,2}|\d{4,})(?![\d.,])")
_DIGIT = re.compile(r"\d")
_FORMS = {
    "integer": "an integer, such as 7",
    "float": "a decimal number, such as 1.25",
    "list": "a list, such as [1, 2, 3]",
    "multiple choice": "the letter of an option",
}


def extraction_question(columns: Columns, text: str) -> str:
    """Asks for the final answer that a text gives, without the right one; rules compare it afterwards."""
    choices = "\n".join(f"{letter}. {option}" for letter, option in listed_options(columns).items())
    kind = columns.get("answer_type", "")
    lettered = choices or columns.get("question_type") == "multi-choice"
    form = "the letter of an option" if lettered else _FORMS.get(kind, "a number, a formula or a few words")
    return (
        "Which final answer does this response give to the question? Do not solve the question and do not correct the"
        " response.\n\n"
        f"Question: {_asked(columns)}\n{f'Options:{chr(10)}{choices}{chr(10)}' if choices else ''}\n"
        f"Response: {text}\n\n"
        f"Reply with one line and nothing else:\nExtracted: the final answer as {form}, or {NO_ANSWER} if the response"
        " gives none"
    )


def extraction_read(scoring: str, again: bool = False) -> Callable[[Columns, str], Verdict | None]:
    """Reads the extracted answer and compares it by the default rules of a scoring; what these leave open, as texts.

    Of a reply in another form a line that is nothing but an answer is read.

    Args:
        scoring: A name in `SCORINGS`.
        again: True if the judge is asked again about a text that is not the right one; the score is NaN until then.
    """

    def read(columns: Columns, reply: str) -> Verdict | None:
        return stated(reply, partial(_extracted, columns, scoring, again))

    return read


def _extracted(columns: Columns, scoring: str, again: bool, line: str) -> Verdict | None:
    """Returns the answer that a line of a reply states."""
    labelled = _EXTRACTED.fullmatch(line)
    answer = (labelled[1] if labelled else unlabelled(line)).strip("\"'`* \r\t")
    if answer.rstrip(".").upper() == NO_ANSWER:
        return Verdict(NO_ANSWER, 0.0, METHOD)
    if not answer or not (labelled or _is_answer(columns, answer)):
        return None
    core = _core(columns, answer)
    for text in dict.fromkeys((core, answer)):
        verdict = SCORINGS[scoring](columns, text)
        if verdict.extracted is not None:
            return Verdict(verdict.extracted, verdict.score, METHOD)
    if not labelled or _asks_for_letter(columns):
        return None
    equal = any(same(truth(columns), text) for text in (core, answer))
    if not equal and _DIGIT.search(core) and value_without_sign(truth(columns)) is not None and not again:
        return None  # a number, but in a form that cannot be compared
    return Verdict(core, math.nan if again and not equal else float(equal), METHOD)


def _core(columns: Columns, answer: str) -> str:
    """An extracted answer without remarks; of a number with a decimal comma, with a point."""
    core = without_remark(answer)
    if value_without_sign(truth(columns)) is None:
        return core
    return _DECIMAL_COMMA.sub(r"\1.\2", _NUMBER_REMARK.sub("", core))


def _is_answer(columns: Columns, line: str) -> bool:
    """Checks whether a line is nothing but an answer: a number, a list, letters or an option."""
    choices = listed_options(columns) or dict.fromkeys("ABCDE", "")
    return (
        value_without_sign(line) is not None
        or listed(line) is not None
        or bool(letters_of(line))
        or Options(choices).whole(line) is not None
    )


def _asks_for_letter(columns: Columns) -> bool:
    kinds = (columns.get("answer_type"), columns.get("question_type"))
    return bool(listed_options(columns)) or "multiple choice" in kinds or "multi-choice" in kinds


def agreement_question(columns: Columns, text: str) -> str:
    """Asks whether an extracted answer agrees with the right one (MathVerse's second step)."""
    return (
        "Does this answer to a question agree with the reference answer? Another form of the same value agrees (0.5 m"
        " and 50 cm); a part of it, or an answer with an error in it, does not. Do not solve the question.\n\n"
        f"Question: {_asked(columns)}\n\nReference answer: {truth(columns)}\n\nAnswer: {text}\n\n"
        "Reply with 1 if it agrees, else with 0, and with nothing else."
    )


def agreement_read(columns: Columns, reply: str) -> Verdict | None:
    """Returns 0 or 1."""
    score = score_in(reply)
    return Verdict(f"{score:g}", score, METHOD) if score in (0, 1) else None


def _asked(columns: Columns) -> str:
    return columns.get("question_for_eval") or columns.get("question", "")


def letters_question(columns: Columns, text: str) -> str:
    """Asks which letters an answer chooses."""
    return (
        "Which options does this answer to a multiple-choice question choose? The options may be in a picture that you"
        " do not see; do not solve the question.\n\n"
        f"Question: {columns.get('question', '')}\n\nAnswer: {text}\n\n"
        "Reply with the letter of the option, or with all letters if the answer chooses several, such as ACD, and with"
        f" nothing else. If it chooses none, reply with {NO_LETTER}."
    )


def letters_read(columns: Columns, reply: str) -> Verdict | None:
    """The letters that a judge names; its Z is an answer that chooses none, which is wrong."""
    letters = stated(reply, lambda line: letters_of(unlabelled(line)) or None)
    right = letters_of(truth(columns))
    if not letters or (NO_LETTER in letters and letters != NO_LETTER):
        return None
    return Verdict(letters, float(letters == right), METHOD)


def charxiv_question(columns: Columns, text: str) -> str:
    """The table's own prompt for the judge (CharXiv, arXiv 2406.18521), with the answer in its place."""
    given = columns.get("grading_query", "")
    if _PREDICTION in given:
        return given.replace(_PREDICTION, text)
    return (
        "Does this answer to a question about a chart agree with the reference answer? Numbers must be the same; of"
        " words the meaning counts.\n\n"
        f"Question: {columns.get('question', '')}\n\nReference answer: {truth(columns)}\n\nAnswer: {text}\n\n"
        'Reply with JSON and nothing else: {"extracted_answer": "the final answer", "score": 1 if it agrees, else 0}'
    )


def charxiv_read(columns: Columns, reply: str) -> Verdict | None:
    """The fields ``extracted_answer`` and ``score`` of JSON."""
    fields = object_in(reply)
    if fields is None or "extracted_answer" not in fields:
        return None
    score = fields.get("score")
    try:
        value = math.nan if isinstance(score, bool) else float(score)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return Verdict(str(fields["extracted_answer"]), value, METHOD) if value in (0, 1) else None


def attempt_question(columns: Columns, text: str) -> str:
    """Asks whether an answer is correct, incorrect or no attempt (as SimpleQA, arXiv 2411.04368, has them)."""
    return (
        "Grade this answer to a question of fact by the reference answer alone. It is CORRECT if it holds what the"
        " reference says and nothing that contradicts it, in any language and any words. It is INCORRECT if it"
        " contradicts the reference, even with reservations. It is NOT ATTEMPTED if it neither holds what the reference"
        " says nor contradicts it, such as 'I do not know'.\n\n"
        f"Question: {columns.get('question', '')}\n\nReference answer: {' / '.join(references(columns))}\n\n"
        f"Answer: {text}\n\n"
        "Reply with CORRECT, INCORRECT or NOT ATTEMPTED and nothing else."
    )


def attempt_read(columns: Columns, reply: str) -> Verdict | None:
    """Returns which of the three grades a judge gives."""
    grade = word_in(reply, ("correct", "incorrect", "not attempted"))
    return None if grade is None else Verdict(grade, float(grade == "correct"), METHOD)


for _scoring in ("math_vista", "math_vision", "dyna_math"):
    add_judging(_scoring, Judging(extraction_question, extraction_read(_scoring), "unparsed", scorings=[_scoring]))
add_judging(
    "math_verse",
    Judging(
        extraction_question,
        extraction_read("math_verse", again=True),
        "unparsed",
        again=Judging(agreement_question, agreement_read, "always"),
        scorings=["math_verse"],
    ),
)
add_judging(
    "letters",
    Judging(
        letters_question,
        letters_read,
        "unparsed",
        scorings=["logic_vista", "visu_logic", "erqa", "visual_puzzles", "spatial", "phyx_choice"],
    ),
)
add_judging("charxiv", Judging(charxiv_question, charxiv_read, "always", scorings=["charxiv"]))
add_judging("attempt", Judging(attempt_question, attempt_read, "always", scorings=["simple_vqa"]))
