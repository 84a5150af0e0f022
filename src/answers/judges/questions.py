"""Questions for a judge about an answer, and readings of its reply.

A judge is asked only where rules leave something open. A reply that cannot be read is not a verdict: it is neither
wrong nor drawn at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from testbed.answers.columns import is_choice, list_options, options, references, truth
from testbed.answers.judges import (  # noqa: F401  # each adds its own
    contexts,
    pairs,
    points,
    preferences,
    reasoning,
    rubrics,
    safety,
    videos,
)
from testbed.answers.judges.judging import JUDGINGS, Judging, add_judging
from testbed.answers.judges.replies import score_in, stated, unlabelled, word_in
from testbed.answers.named_options import Options
from testbed.answers.right_answers import Choices, asked_options
from testbed.answers.verdict import Columns, Verdict
from testbed.answers.video_choices import candidates

NONE_OF_THEM = "Z"
METHOD = reasoning.METHOD

__all__ = ["JUDGINGS", "METHOD", "VERSION", "Judging", "add_judging", "judging_of"]


def match_question(columns: Columns, text: str, find: Choices | None = None) -> str:
    """Asks which option an answer chooses.

    Args:
        columns: The columns of the row.
        text: The answer.
        find: Finds the options in the columns; default columns with letters, or ``options``.
    """
    choices = "\n".join(f"{letter}. {option}" for letter, option in (find or _options)(columns).items())
    return (
        "Which of the options does this answer to a multiple-choice question choose?\n\n"
        f"Question: {columns.get('question', columns.get('query', ''))}\nOptions:\n{choices}\n\nAnswer: {text}\n\n"
        "Reply with the letter of that option and nothing else. If the answer chooses none of the options, or several,"
        f" reply with {NONE_OF_THEM}."
    )


def read_match(columns: Columns, reply: str, find: Choices | None = None) -> Verdict | None:
    """The option that a judge names; its Z is an answer that chooses none, which is wrong. See `match_question`."""
    choices = {**(find or _options)(columns), NONE_OF_THEM: columns.get(NONE_OF_THEM, "")}

    def read(line: str) -> str | None:
        option = Options(choices).whole(unlabelled(line))
        return None if option is None else option[0]

    letter = stated(reply, read)
    return None if letter is None else Verdict(letter, float(letter == truth(columns).strip().upper()), METHOD)


def _options(columns: Columns) -> Mapping[str, str]:
    return options(columns) or list_options(columns)


def either_question(columns: Columns, text: str) -> str:
    """Asks whether an answer means yes or no, or which letters it chooses, by the column ``type``."""
    return (yes_no_question if _is_yes_no(columns) else reasoning.letters_question)(columns, text)


def either_read(columns: Columns, reply: str) -> Verdict | None:
    """Reads the reply to `either_question`."""
    return (read_yes_no if _is_yes_no(columns) else reasoning.letters_read)(columns, reply)


def _is_yes_no(columns: Columns) -> bool:
    return columns.get("type") == "yes_no"


def short_question(columns: Columns, text: str) -> str:
    """Asks which option an answer chooses, or, where the right answer is a text, whether it is correct."""
    return (match_question if is_choice(columns) else correctness_question)(columns, text)


def short_read(columns: Columns, reply: str) -> Verdict | None:
    """Reads the reply to `short_question`."""
    return (read_match if is_choice(columns) else read_correctness)(columns, reply)


def listed_question(columns: Columns, text: str) -> str:
    """Asks which option of a list an answer chooses; where there is no list, whether it is correct."""
    choices = candidates(columns)
    return match_question(columns, text, candidates) if choices else correctness_question(columns, text)


def listed_read(columns: Columns, reply: str) -> Verdict | None:
    """Reads the reply to `listed_question`."""
    return read_match(columns, reply, candidates) if candidates(columns) else read_correctness(columns, reply)


def yes_no_question(columns: Columns, text: str) -> str:
    """Asks whether an answer means yes or no."""
    return (
        "Does this answer to the question say yes or no?\n\n"
        f"Question: {columns.get('question', '')}\n\nAnswer: {text}\n\n"
        "Reply with Yes or No and nothing else. If it says neither, reply with Unclear."
    )


def read_yes_no(columns: Columns, reply: str) -> Verdict | None:
    """Reads yes or no from a judge's reply; unclear counts as wrong."""
    word = word_in(reply, ("yes", "no", "unclear"))
    if word is None:
        return None
    return Verdict(word.capitalize(), float(word == columns.get("answer", "").strip().lower()), METHOD)


def correctness_question(columns: Columns, text: str) -> str:
    """Asks whether an answer agrees with one of the references."""
    right = "\n".join(references(columns))
    return (
        "Is this answer to the question correct? It is correct if it means the same as one of the reference answers,"
        " whatever its words, its form or its length. Judge by the references alone.\n\n"
        f"Question: {columns.get('question', '')}\n\nReference answers:\n{right}\n\nAnswer: {text}\n\n"
        "Reply with CORRECT or INCORRECT and nothing else."
    )


def read_correctness(columns: Columns, reply: str) -> Verdict | None:
    """Checks whether a judge calls an answer correct."""
    word = word_in(reply, ("correct", "incorrect"))
    return None if word is None else Verdict(word, float(word == "correct"), METHOD)


def grade_question(columns: Columns, text: str) -> str:
    """Asks how much of the reference an answer has, from 0 to 1; ``<AND>`` and ``<OR>`` as in MM-Vet's references."""
    return (
        "How correct is this answer, from 0.0 (not at all) to 1.0 (entirely)? Where the reference has <AND>, an answer"
        " needs all of the parts to be entirely correct; where it has <OR>, one of them.\n\n"
        f"Question: {columns.get('question', '')}\n\nReference: {columns.get('answer', '')}\n\nAnswer: {text}\n\n"
        "Reply with a number from 0.0 to 1.0 in steps of 0.1 and nothing else."
    )


def read_grade(columns: Columns, reply: str) -> Verdict | None:
    """The number from 0 to 1 that a judge gives."""
    grade = score_in(reply)
    return None if grade is None else Verdict(f"{grade:g}", grade, METHOD)


_CHOICES = (
    *("multiple_choice", "mmmu", "mmmu_pro", "mmmu_pro_cot", "mme_realworld", "we_math"),
    *("vmc_bench", "puzzle_vqa"),
)
add_judging("match", Judging(match_question, read_match, "unparsed", scorings=_CHOICES))
add_judging(
    "match_listed",
    Judging(
        listed_question,
        listed_read,
        "unparsed",
        scorings=[
            "video_mme",
            "video_mme_v2",
            "long_video_bench",
            "mvbench",
            "mlvu",
            "temp_compass",
            "vsi",
            "video_holmes",
        ],
    ),
)
add_judging(
    "match_asked",
    Judging(
        partial(match_question, find=asked_options),
        partial(read_match, find=asked_options),
        "unparsed",
        scorings=["prefixed_letter"],
    ),
)
_YES_NO = ["yes_no", "temp_compass_yes_no"]
add_judging("yes_no", Judging(yes_no_question, read_yes_no, "unparsed", scorings=_YES_NO))
add_judging("either", Judging(either_question, either_read, "unparsed", scorings=["natural_bench"]))
add_judging(
    "short",
    Judging(
        short_question,
        short_read,
        "unparsed",
        scorings=["short", "open", "phyx", "core_cognition", "mac_bench", "bmmr", "vtc"],
    ),
)
add_judging("correctness", Judging(correctness_question, read_correctness, "wrong"))
add_judging("grade", Judging(grade_question, read_grade, "always", graded=True, scorings=["mmvet", "graded"]))

VERSION = 5  # of testbed's own kinds; raised when a judge would be asked otherwise, or read otherwise


def judging_of(scoring: str) -> str:
    """The kind of judging for a scoring, where a setting names none."""
    return next((name for name, judging in JUDGINGS.items() if scoring in judging.scorings), "correctness")
