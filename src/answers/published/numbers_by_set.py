"""Numbers and words as single sets of VLMEvalKit read them: its classes of the same names, each by its rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from testbed.answers.columns import listed, truth
from testbed.answers.numbers import mean_relative_accuracy
from testbed.answers.published.spatial import after_thoughts, spatial
from testbed.answers.science_prompts import CHOSEN, VIEW_CHANGE
from testbed.answers.verdict import UNREAD, Columns, Verdict
from testbed.answers.video_choices import is_choice

_NUMBER = r"[-+]?(?:\d*\.\d+|\d+)(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(_NUMBER)
_TAGGED = re.compile(rf"<\s*answer\b[^>]*>\s*({_NUMBER})(?:[^\d<][^<]*)?<\s*/\s*answer\s*>", re.IGNORECASE | re.DOTALL)
_INVISIBLE = re.compile("[\u200b\u200c\u200d\ufeff]")
_COUNTS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
).split()
_COUNT = re.compile(rf"\b({'|'.join(_COUNTS)})\b", re.IGNORECASE)
_OMNI_CLOSENESS = (0.5, 0.45, 0.40, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05)


def sp_bench(columns: Columns, text: str) -> Verdict:
    """SPBench: a letter as `spatial` reads it, or a number by its mean relative accuracy, by ``question_type``."""
    if columns.get("question_type") in CHOSEN:
        return spatial(columns, text)
    said = number_said(text)
    return UNREAD if said is None else Verdict(f"{said:.15g}", relative_accuracy(said, truth(columns)), "number")


def vsi(columns: Columns, text: str) -> Verdict:
    """VSI-Bench and the like: a letter as `spatial` reads it in rows with options, else as SPBench's numbers."""
    if is_choice(columns):
        return spatial(columns, text)
    said = number_said(text)
    return UNREAD if said is None else Verdict(f"{said:.15g}", relative_accuracy(said, truth(columns)), "number")


_SIDES = (
    *(("move_right", "move_left"), ("move_up", "move_down"), ("move_forward", "move_backward")),
    *(("rotate_right", "rotate_left"), ("rotate_up", "rotate_down")),
)


def spar_bench(columns: Columns, text: str) -> Verdict:
    """SPAR-Bench: a letter, a number, or moves and turns (``move_right:0.3,rotate_up:20``), by ``task``."""
    task = columns.get("task", "")
    if task == VIEW_CHANGE:
        return moves(columns, text.split(","))
    if "_prediction_" not in task:
        return spatial(columns, text)
    said = number_said(text)
    return UNREAD if said is None else Verdict(f"{said:.15g}", relative_accuracy(said, truth(columns)), "number")


def moves(columns: Columns, items: Sequence[str]) -> Verdict:
    """The mean over five axes of the relative accuracy of a move or turn; one that is not named is 0."""
    said, right = _by_name(items), _by_name(truth(columns).split(","))
    axes = [[part.get(one, 0.0) - part.get(other, 0.0) for one, other in _SIDES] for part in (said, right)]
    scores = [relative_accuracy(value, repr(wanted)) for value, wanted in zip(*axes, strict=True)]
    return Verdict(repr(said) if said else None, sum(scores) / len(scores), "moves" if said else "none")


def _by_name(items: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for item in items:
        name, colon, value = item.strip().partition(":")
        try:
            found |= {name.strip(): float(value.strip())} if colon else {}
        except ValueError:
            continue
    return found


def relative_accuracy(said: float, right: str) -> float:
    """VSI-Bench's accuracy of a number; 0 if the right answer is none."""
    try:
        return mean_relative_accuracy(said, float(right))
    except ValueError:
        return 0.0


def number_said(text: str) -> float | None:
    """The number in a tag, else the last after the thoughts, else the last of all; words up to twenty are numbers."""
    items = listed(text)
    plain = _INVISIBLE.sub("", (items[0] if items else text).strip())
    plain = _COUNT.sub(lambda word: str(_COUNTS.index(word[1].lower())), plain)
    tagged = _TAGGED.search(plain)
    found = [tagged[1]] if tagged else _NUMBERS.findall(after_thoughts(plain)) or _NUMBERS.findall(plain)
    return float(found[-1]) if found else None


def omni_3d(columns: Columns, text: str) -> Verdict:
    """Omni3D-Bench: what is in ``<ans>``: a whole number, a word, yes or no, or a number by its relative error."""
    said = text.split("<ans>")[1].split("</ans>")[0] if "<ans>" in text else text
    right, kind = truth(columns), columns.get("answer_type")
    try:
        if kind == "int":
            return Verdict(said, float(int(said) == int(right)), "number")
        if kind == "float":
            error = abs(float(right) - float(said)) / float(right)
            return Verdict(said, sum(error < bound for bound in _OMNI_CLOSENESS) / len(_OMNI_CLOSENESS), "number")
    except (ValueError, OverflowError, ZeroDivisionError):
        return UNREAD
    lower = said.lower()
    if right in ("yes", "no"):
        hit = right in lower or {"yes": "true", "no": "false"}[right] in lower
        return Verdict(said, float(hit), "contained")
    return Verdict(said, float(right == lower), "whole")


_SHAPES = {
    shape: kind
    for kind, shapes in {
        "car": "suv wagon minivan sedan truck addi car",
        "bus": "articulated regular double school bus",
        "motorbike": "chopper dirtbike scooter cruiser motorbike",
        "aeroplane": "jet fighter biplane airliner aeroplane",
        "bicycle": "road utility mountain tandem bicycle",
    }.items()
    for shape in shapes.split()
}
_ANSWERS = (re.compile(r"Answer': '(.*?)'"), re.compile(r'Answer": "(.*?)"'), re.compile(r"Answer': (\d)"))


def spatial_457(columns: Columns, text: str) -> Verdict:
    """Spatial457: the field ``Answer``, else the whole text; a shape of the same kind is right too."""
    found = next((match for pattern in _ANSWERS if (match := pattern.search(text))), None)
    said = found[1] if found else text
    return Verdict(said, float(same_in_spatial_457(said, truth(columns))), "field" if found else "whole")


def same_in_spatial_457(said: str, right: str) -> bool:
    """Checks an answer as Spatial457 does: none and 0 are no, any number of things is yes, a jet is an aeroplane."""
    lower, wanted = said.lower().replace("none", "no") if said.lower() == "none" else said.lower(), right.lower()
    if lower == wanted or (said == "0" and right == "No"):
        return True
    if lower in _COUNTS[:11] and str(_COUNTS.index(lower)) == right:
        return True
    if wanted == "yes" and len(said) == 1 and said in "123456789":
        return True
    kinds = [_SHAPES.get(part.split(" ")[0]) for part in (lower, wanted)]
    return kinds[0] is not None and kinds[0] == kinds[1]


_BOXED = re.compile(r"(?:\\boxed|boxed)\{([^}]*)\}", re.IGNORECASE)
_IN_TEXT = re.compile(r"\\text\{([^}]*)\}", re.IGNORECASE)
_PHRASES = (
    *("the final answer is", "final answer is", "the answer is", "answer is", "the correct answer is"),
    *("correct answer is", "final answer:", "final:", "answer:", "ans:"),
)
_SAID = dict.fromkeys(("yes", "y", "true", "t", "1"), "yes") | dict.fromkeys(("no", "n", "false", "f", "0"), "no")
_LETTER = re.compile(r"\b([ABCD])\b", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?\d+")


def reason_map(columns: Columns, text: str) -> Verdict:
    """ReasonMap-Plus: the last box, else what follows a stock phrase: yes or no, a letter, or a number, by ``type``."""
    said, kind, right = text.strip(), columns.get("type", "").lower(), truth(columns)
    core = _core(said)
    try:
        wanted = int(right)
    except ValueError:
        return Verdict(core or None, float(bool(said) and core.lower() == right.strip().lower()), "whole")
    if "torf" in kind:
        word = _SAID.get(core.lower(), _SAID.get(said.lower()))
        return Verdict(word, float(word == ("yes" if wanted == 1 else "no")), "yes or no" if word else "none")
    if "counting1" in kind:
        letter = _LETTER.search(core) or _LETTER.search(said)
        return (
            Verdict(letter[1].upper(), float("ABCD".index(letter[1].upper()) == wanted), "letter") if letter else UNREAD
        )
    if kind.startswith("counting"):
        number = _WHOLE.search(core) or _WHOLE.search(said)
        return Verdict(number[0], float(int(number[0]) == wanted), "number") if number else UNREAD
    return Verdict(core or None, float(core.lower() == right.strip().lower()), "whole")


def _core(text: str) -> str:
    boxes = _BOXED.findall(text)
    box = " ".join(part.strip() for part in _IN_TEXT.findall(boxes[-1])) or boxes[-1].strip() if boxes else ""
    if box:
        return box
    lower = text.lower()
    phrase = next((phrase for phrase in _PHRASES if phrase in lower), None)
    if phrase is None:
        return text
    rest = text[lower.rfind(phrase) + len(phrase) :].strip()
    return re.split(r"\n|\. |\.$", rest, maxsplit=1)[0].strip()


def biased(columns: Columns, text: str) -> Verdict:
    """VLMs are biased: the whole text without braces, or all of its digits together, are those of the right answer."""
    said, right, bias = (
        part.strip().lower().strip("{}").strip() for part in (text, truth(columns), columns.get("expected_bias", ""))
    )
    digits, wanted = ("".join(filter(str.isdigit, part)) for part in (said, right))
    if said == right:
        return Verdict(said, 1.0, "whole")
    return Verdict(said, float(said != bias and bool(digits) and digits == wanted), "digits" if digits else "whole")


_UNIT = r"-?[0-9]+(?:\.[0-9]+)?(?:/[0-9]+)?"
_GROUPED = r"-?[0-9,]+(?:\.[0-9]+)?"
_SIGN = r"\s*[:\-=]?\s*\$?\s*"
_STATED = [
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for before in (
        rf"(?:FINAL\s+ANSWER|Final\s+Answer){_SIGN}",
        r"\\boxed\\{",
        r"####\s*",
        rf"(?:The\s+)?(?:[Aa]nswer|result)\s+is{_SIGN}",
        rf"答案{_SIGN}",
        rf"(?:Therefore|Thus|Hence)[^.]*?{_SIGN}",
    )
    for pattern in (
        f"{before}({_UNIT})" + (r"\\}" if "boxed" in before else ""),
        (before if "###" not in before else r"####\s*\$?\s*") + f"({_GROUPED})" + (r"\\}" if "boxed" in before else ""),
    )
]
_ALONE = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (rf"({_UNIT})$", rf"({_GROUPED})$", rf"\$\s*({_GROUPED})$", rf"({_UNIT})\s*(?:dollars?|cents?)?$")
]
_IN_CONTEXT = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:answer|result|solution)\s*(?:is|=|:)?\s*\$?\s*({_UNIT})",
        rf"(?:answer|result|solution)\s*(?:is|=|:)?\s*\$?\s*({_GROUPED})",
        rf"=\s*\$?\s*({_UNIT})",
        rf"=\s*\$?\s*({_GROUPED})",
        rf"makes?\s*\$?\s*({_GROUPED})\s*(?:dollars?)?",
        rf"total\s*(?:of|is)?\s*\$?\s*({_GROUPED})",
        rf"costs?\s*\$?\s*({_GROUPED})",
    )
]


def gsm8k(columns: Columns, text: str) -> Verdict:
    """GSM8K-V: the number after "final answer" and other phrases, else one alone on a line, else the last ones."""
    said = _gsm8k_number(text.strip())
    if said is None:
        return UNREAD
    try:
        wanted = float(truth(columns))
    except ValueError:
        return Verdict(f"{said:.15g}", 0.0, "number")
    error = abs(said - wanted)
    hit = error <= 1e-3 or error / max(abs(wanted), 1e-10) < 1e-6
    return Verdict(f"{said:.15g}", float(hit), "number")


def _gsm8k_number(text: str) -> float | None:
    lines = [line.strip() for line in reversed(text.split("\n")[-5:])]
    tries = [pattern.findall(text)[-1:] for pattern in _STATED]
    tries += [[match[1]] for line in lines if line for pattern in _ALONE if (match := pattern.match(line))]
    last = re.split(r"\n\s*\n", text)[-1]
    tries += [pattern.findall(last)[-1:] for pattern in _IN_CONTEXT]
    for line in lines[:3]:
        tries += [re.findall(_UNIT, line)[-1:], re.findall(_GROUPED, line)[-1:]]
    return next((value for found in tries for part in found if (value := _value(part)) is not None), None)


def _value(text: str) -> float | None:
    plain = text.strip().lstrip("$").strip().replace(",", "")
    if not re.fullmatch(_UNIT, plain):
        return None
    try:
        return float(Fraction(plain)) if "/" in plain else float(plain)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
