"""Answers in words as VLMEvalKit scores them: ANLS, relaxed accuracy, equal, contained."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.answers.columns import references, truth
from testbed.answers.texts import edit_distance
from testbed.answers.verdict import Verdict

FORMULAS = "Handwritten Mathematical Expression Recognition"  # a category of OCRBench


def anls(columns: Mapping[str, str], text: str) -> Verdict:
    """ANLS (Biten et al., 2019): the distance is that of stripped lower-case texts, the length that of the raw ones."""
    return Verdict(text, max(_similarity(reference, text) for reference in references(columns)), "whole")


def _similarity(reference: str, answer: str) -> float:
    first, second = (" ".join(text.lower().split()) for text in (reference, answer))
    length = max(len(reference.upper()), len(answer.upper()))
    if not length:
        return 1.0
    if 1 - abs(len(first) - len(second)) / length < 0.5:  # no distance is smaller
        return 0.0
    similarity = 1 - edit_distance(first, second) / length
    return similarity if similarity >= 0.5 else 0.0


def relaxed(columns: Mapping[str, str], text: str) -> Verdict:
    """Relaxed accuracy (ChartQA, Masry et al., 2022): a number within 5 % of one that is not 0, or an equal text."""
    answer = text.strip()
    return Verdict(answer, float(any(_relaxed(reference, answer) for reference in references(columns))), "whole")


def _relaxed(reference: str, answer: str) -> bool:
    number, target = _number(answer), _number(reference)
    if number is None or not target:
        return answer.lower() == reference.lower()
    return abs(number - target) / abs(target) <= 0.05


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def exact(columns: Mapping[str, str], text: str) -> Verdict:
    """Scores equality with a reference, ignoring case and outer blanks."""
    answer = text.strip().lower()
    return Verdict(
        answer, float(any(reference.strip().lower() == answer for reference in references(columns))), "whole"
    )


def exact_mean(columns: Mapping[str, str], text: str) -> Verdict:
    """GQA: the share of the references that equal the answer."""
    answer, given = text.strip().lower(), references(columns)
    return Verdict(answer, sum(reference.strip().lower() == answer for reference in given) / len(given), "whole")


def contains(columns: Mapping[str, str], text: str) -> Verdict:
    """MTVQA: the reference is somewhere in the answer, without full stops."""
    answer, right = (side.strip().lower().replace(".", "") for side in (text, truth(columns)))
    return Verdict(answer, float(right in answer), "contained")


def ocrbench(columns: Mapping[str, str], text: str) -> Verdict:
    """OCRBench: a reference is somewhere in the answer; of formulas without blanks, else ignoring case."""
    formula = columns.get("category") == FORMULAS

    def plain(written: str) -> str:
        written = written.strip() if formula else written.lower().strip()
        return written.replace("\n", " ").replace(" ", "") if formula else written.replace("\n", " ")

    answer = plain(text)
    return Verdict(answer, float(any(plain(reference) in answer for reference in references(columns))), "contained")


def number(columns: Mapping[str, str], text: str) -> Verdict:
    """CountBenchQA: the reference is somewhere in the answer, also in a longer number."""
    return Verdict(text, float(truth(columns) in text), "contained")
