"""Questions for a judge about an answer, and readings of its reply.

A judge is asked only where rules leave something open. A reply that cannot be read is not a verdict: it is neither
wrong nor drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from testbed.answers.columns import options, references, truth
from testbed.answers.judges import pairs as pairs
from testbed.answers.judges import reasoning as own
from testbed.answers.judges.replies import score_in, stated, unlabelled, word_in
from testbed.answers.named_options import Options
from testbed.answers.texts import final_text
from testbed.answers.verdict import Verdict
from testbed.canonical_text import canonical, canonical_columns

Columns = Mapping[str, str]
When = Literal["unparsed", "wrong", "always"]

NONE_OF_THEM = "Z"
METHOD = own.METHOD


@dataclass(frozen=True)
class Judging:
    """A kind of judging.

    Attributes:
        question: Makes the question about an answer from the row's columns and the answer.
        read: The verdict that a reply gives; None if it cannot be read.
        when: The judged answers: those that rules cannot read, those that they do not call right, or all.
        graded: True if verdicts are degrees from 0 to 1: a panel's verdict is their mean, not the most frequent.
        again: A second question about the extracted answer, where its first verdict has the score NaN.
        swapped: The question with two answers in the other order; only verdicts that agree in both count.
    """

    question: Callable[[Columns, str], str]
    read: Callable[[Columns, str], Verdict | None]
    when: When
    graded: bool = False
    again: Judging | None = None
    swapped: Callable[[Columns, str], str] | None = None

    def verdict(self, columns: Columns, reply: str) -> Verdict | None:
        """The verdict that a reply gives in its final part; None if it cannot be read."""
        final, _ = final_text(canonical(reply))
        return None if final is None else self.read(canonical_columns(columns), final)

    def asks(self, verdict: Verdict | None) -> bool:
        """Checks whether the judge is asked about an answer with this verdict of rules; None for no answer."""
        if verdict is None:
            return False
        if self.when == "unparsed":
            return verdict.extracted is None
        return self.when == "always" or not verdict.score >= 1


def match_question(columns: Columns, text: str) -> str:
    """Asks which option an answer chooses."""
    choices = "\n".join(f"{letter}. {option}" for letter, option in options(columns).items())
    return (
        "Which of the options does this answer to a multiple-choice question choose?\n\n"
        f"Question: {columns.get('question', '')}\nOptions:\n{choices}\n\nAnswer: {text}\n\n"
        "Reply with the letter of that option and nothing else. If the answer chooses none of the options, or several,"
        f" reply with {NONE_OF_THEM}."
    )


def read_match(columns: Columns, reply: str) -> Verdict | None:
    """The option that a judge names; its Z is an answer that chooses none, which is wrong."""
    choices = {**options(columns), NONE_OF_THEM: columns.get(NONE_OF_THEM, "")}

    def read(line: str) -> str | None:
        option = Options(choices).whole(unlabelled(line))
        return None if option is None else option[0]

    letter = stated(reply, read)
    return None if letter is None else Verdict(letter, float(letter == truth(columns).strip().upper()), METHOD)


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


JUDGINGS: Mapping[str, Judging] = {
    "match": Judging(match_question, read_match, "unparsed"),
    "yes_no": Judging(yes_no_question, read_yes_no, "unparsed"),
    "correctness": Judging(correctness_question, read_correctness, "wrong"),
    "grade": Judging(grade_question, read_grade, "always", graded=True),
    "math_vista": Judging(own.extraction_question, own.extraction_read("math_vista"), "unparsed"),
    "math_vision": Judging(own.extraction_question, own.extraction_read("math_vision"), "unparsed"),
    "dyna_math": Judging(own.extraction_question, own.extraction_read("dyna_math"), "unparsed"),
    "math_verse": Judging(
        own.extraction_question,
        own.extraction_read("math_verse", again=True),
        "unparsed",
        again=Judging(own.agreement_question, own.agreement_read, "always"),
    ),
    "letters": Judging(own.letters_question, own.letters_read, "unparsed"),
    "charxiv": Judging(own.charxiv_question, own.charxiv_read, "always"),
    "pairs": Judging(pairs.question, pairs.read, "always", swapped=pairs.swapped_question),
    "attempt": Judging(own.attempt_question, own.attempt_read, "always"),
}
_CHOICES = ("multiple_choice", "mmmu", "mmmu_pro", "mmmu_pro_cot", "mme_realworld", "video_mme", "we_math")
_OF_SCORINGS: Mapping[str, str] = {
    **dict.fromkeys(_CHOICES, "match"),
    **{name: name for name in ("yes_no", "math_vista", "math_vision", "math_verse", "dyna_math", "charxiv", "pairs")},
    **dict.fromkeys(("logic_vista", "visu_logic", "erqa"), "letters"),
    "mmvet": "grade",
    "simple_vqa": "attempt",
}
VERSION = 3  # of all of the above; raised when a judge would be asked otherwise, or read otherwise


def judging_of(scoring: str) -> str:
    """The kind of judging for a scoring, where a setting names none."""
    return _OF_SCORINGS.get(scoring, "correctness")
