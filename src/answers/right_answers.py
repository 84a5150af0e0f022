"""Right answers of rows with options: the letters that are meant, whatever way a table writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from testbed.answers.columns import has_answer, list_options, listed, options, quoted_options, truth
from testbed.answers.named_options import Options
from testbed.answers.reasoning import letters_of
from testbed.answers.texts import EDGES, open_answer
from testbed.answers.verdict import Columns
from testbed.canonical_text import plain
from testbed.errors import DataError, shortened

Choices = Callable[[Columns], Mapping[str, str]]

_DRESSED = re.compile(r"\W*(?:(?:option|choice|answer)(?![^\W_])(?:\s+is\b)?)?[\W_]*([A-Za-z])[\W_]*", re.IGNORECASE)

_SEPARATOR = re.compile(r"\s*[,;|]\s*")
_OPTION_LINE = re.compile(r"^\(([A-Z])\)[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def by_columns(columns: Columns) -> Mapping[str, str]:
    """The options in the columns A to Z; none in a row without option A, which is an open question."""
    choices = options(columns)
    return choices if "A" in choices else {}


def lettered(letters: str) -> Choices:
    """The options in the columns A to Z; in a row without them these letters, whose texts are not known."""
    return lambda columns: options(columns) or dict.fromkeys(letters, "")


def yes_or_no(columns: Columns) -> Mapping[str, str]:
    """Yes and no, which are true and false."""
    return {"Yes": "true", "No": "false"}


def quoted_or_lettered(columns: Columns) -> Mapping[str, str]:
    """VisualPuzzles: the options are quoted in the column ``options``, or are A to D in the picture."""
    return quoted_options(columns) or dict.fromkeys("ABCD", "")


def listed_or_lettered(columns: Columns) -> Mapping[str, str]:
    """Benchmarks of spatial understanding: the options are columns or a list, or are A to F in the question."""
    return options(columns) or list_options(columns) or dict.fromkeys("ABCDEF", "")


def asked_options(columns: Columns) -> Mapping[str, str]:
    """M4Bench: the options are lines of the question, ``(A) cat``."""
    return dict(_OPTION_LINE.findall(columns.get("query", columns.get("question", ""))))


def either(columns: Columns) -> Mapping[str, str]:
    """NaturalBench: yes and no, or two options whose texts are in the question, by the column ``type``."""
    return yes_or_no(columns) if columns.get("type") == "yes_no" else dict.fromkeys("AB", "")


def letters_meant(columns: Columns, choices: Mapping[str, str], several: bool = False) -> str:
    """Returns the letter of the right option of a row; all of them in order if the scoring takes several.

    A capital that is the letter of an option is that option. Anything else must be meant in one way only: a letter with
    something around it, an option's text, both, or a list of one.

    Raises:
        DataError: If it is not an option, may be several of them, or is several and one is wanted.
    """
    cell = plain(truth(columns))
    split = letters_of(cell) or (letters_of(cell.upper()) if _SEPARATOR.search(cell) else "")
    letters = len(split) > 1 and set(split) <= set(choices)
    if several and letters:
        return split
    parts = _SEPARATOR.split(cell) if several and _letter(cell, choices) is None else [cell]
    found = [_letter(item, choices) for item in listed(cell) or parts]
    named = sorted({letter for letter in found if letter is not None})
    if not several and (len(named) > 1 or (letters and not named)):
        raise DataError(f"its answer {shortened(cell)} names several options, and one can be right")
    if None in found:
        counted = " (it may count from 0 or from 1)" if cell.strip().isdecimal() else ""
        raise DataError(f"its answer {shortened(cell)} is not one of its options {', '.join(choices)}{counted}")
    return "".join(named)


def _letter(text: str, choices: Mapping[str, str]) -> str | None:
    """The option that a text is meant for; None if there is none; raises DataError if there are several."""
    if text.strip() in choices:
        return text.strip()
    text = open_answer(text)[0] or text  # what is marked, or follows "the answer is"
    dressed = _DRESSED.fullmatch(text)
    core = dressed[1] if dressed else text.strip(EDGES)
    read = Options(choices).whole(text)
    letters = {letter for letter in choices if letter.lower() == core.lower() or (read and letter == read[0])}
    same = {letter for letter, option in choices.items() if option and option.strip() == text.strip()}
    if len(letters | same) > 1:
        both = " or ".join(sorted(letters | same))
        raise DataError(f"its answer {shortened(text)} may be {both}")
    return next(iter(letters), None)


def with_letters(columns: Columns, choices: Choices | None, several: bool = False) -> Columns:
    """A row with the letter of its right option as ``answer``; unchanged if it has no options, or that is unclear."""
    if choices is None or not has_answer(columns) or not (given := choices(columns)):
        return columns
    try:
        meant = letters_meant(columns, given, several)
    except DataError:
        return columns
    return columns if columns.get("answer") == meant else {**columns, "answer": meant}
