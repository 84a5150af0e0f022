"""Sets of questions of several kinds as VLMEvalKit reads them: its classes of the same names, each by its rule."""

from __future__ import annotations

import ast
import re

from testbed.answers.columns import as_list, numbered_options, references, truth
from testbed.answers.published.words import NUMBER_WORDS, normalized
from testbed.answers.verdict import UNREAD, Columns, Verdict

_TENS = "thirty forty fifty sixty seventy eighty ninety".split()
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
_DIGITS = {word: str(number) for number, word in enumerate([*NUMBER_WORDS, *_TEENS])}
_DIGITS |= {word: f"{tens}0" for tens, word in enumerate(_TENS, 3)}
_LAST_STOP = re.compile(r"\.(?!\d)")
_LETTER_OF_PICTURE = ("visual-reasoning", "find-image")
_POINT = re.compile(r"point\s*([12])")
_TRUE_OR_FALSE = re.compile(r"\b(t|f|true|false)\b", re.IGNORECASE)
_COUNTED = re.compile(rf"\b({'|'.join([*_DIGITS, 'hundred', 'thousand'])})\b")
_OPTION = re.compile(r"\([A-Z]\)")
_SCALAR, _UNIT = re.compile(r"scalar{([^}]*)}"), re.compile(r"distance_unit{([^}]*)}")
_DECIMAL = re.compile(r"\d+\.?\d*")
_CENTIMETRES = {
    **dict.fromkeys(("meters", "meter", "m", "metre", "metres"), 100.0),
    **dict.fromkeys(("centimeters", "centimeter", "cm"), 1.0),
    **dict.fromkeys(("feet", "foot", "ft"), 30.48),
    **dict.fromkeys(("inch", "inches", "in"), 2.54),
    "mm": 0.1,
}
_SAYS_YES, _SAYS_NO = (re.compile(rf"\b({words})\b", re.IGNORECASE) for words in ("yes|true", "no|false"))
_TINY = 1e-8
_BOX = r"\boxed{"
PAIRS, COUNTS = ("gc-mat", "gc-trk", "oc-cpr", "pc-cpr"), ("oc-cnt", "pc-cnt")  # categories of VLM2-Bench
_PUNCTUATION = re.compile(
    r"[!-/:-@\[-`{-~！？｡＂＃＄％＆＇（）＊＋，－．／：；＜＝＞＠［＼］＾＿｀｛｜｝～“”‘’、。：《》【】]"
)
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_CHINESE = re.compile("[\u4e00-\u9fff]")


def mm_oral(columns: Columns, text: str) -> Verdict:
    """MMOral-OPG: the first letter in parentheses, by itself, or option text. VLMEvalKit draws one where none is."""
    choices = numbered_options(columns)
    for mark in ",.!?;:'":
        text = text.strip(mark)
    text = f" {text} "
    found = [letter for letter in choices if f"({letter})" in text]
    found = found or [letter for letter in choices if any(f" {letter}{end}" in text for end in " .,")]
    found = found or [letter for letter, option in choices.items() if option in text]
    first: dict[str, int] = {}
    for letter in found:
        places = (text.find(part) for part in (f" {letter} ", f"({letter})", choices[letter]))
        place = next((each for each in places if each >= 0), None)
        if place is not None:
            first[letter] = place
    if not first:
        return UNREAD
    letter = min(first, key=lambda each: first[each])
    return Verdict(letter, float(letter == truth(columns)), "letter")


def mm_niah(columns: Columns, text: str) -> Verdict:
    """MM-NIAH: the letter of a picture, which the table numbers from 0; else the right words are in the answer."""
    right, said = truth(columns), text.strip(".")
    if columns.get("category") not in _LETTER_OF_PICTURE:
        plain = _plain(said)
        hit = re.search(rf"\b{re.escape(_plain(right))}\b", plain)
        return Verdict(plain, float(hit is not None), "contained") if plain else UNREAD
    try:
        wanted = int(float(right))
    except (ValueError, OverflowError):
        return UNREAD
    if said.isdigit():
        return Verdict(said, float(int(said) == wanted), "number") if said.isdecimal() else UNREAD
    said = said.lower().replace("the answer is", "").replace("*", "")
    said = said.partition(".")[0].replace(",", "") if "." in said else said
    moving = {"the camera is moving left": "a", "the camera is moving right": "b"}
    said = next((letter for phrase, letter in moving.items() if phrase in said), said.strip())
    return Verdict(said.upper(), float(ord(said) - ord("a") == wanted), "letter") if len(said) == 1 else UNREAD


def _plain(text: str) -> str:
    return normalized(text, digits=_DIGITS, full_stop=_LAST_STOP)


def da_2k(columns: Columns, text: str) -> Verdict:
    """DA-2K: the first point 1 or 2 that is named; without one the right answer is in the text."""
    said, right = text.strip().lower(), truth(columns).strip().lower()
    point = _POINT.search(said)
    if point is None:
        return Verdict(right, 1.0, "contained") if right in said else UNREAD
    return Verdict(f"point{point[1]}", float(f"point{point[1]}" == right), "point")


def vlm2(columns: Columns, text: str) -> Verdict:
    """VLM2-Bench by ``category``: the only T or F, the only number, or what is before the first parenthesis."""
    category, right = columns.get("category", ""), truth(columns)
    if category in PAIRS:
        words = _TRUE_OR_FALSE.findall(text.strip())
        said = words[0][0].upper() if len(words) == 1 else None
        return Verdict(said, float(said == right.strip().upper()), "word" if said else "none")
    if category in COUNTS:
        numbers = _numbers(text.strip().lower())
        return counted(columns, numbers[0] if len(numbers) == 1 else None)
    if len(_OPTION.findall(text)) > 1:
        return UNREAD
    said = text.partition(")")[0].strip()
    return Verdict(said or None, float(said == right.partition(")")[0].strip()), "letter" if said else "none")


def counted(columns: Columns, said: int | None) -> Verdict:
    """VLM2-Bench's score of a count: 1 if it is right, else less, by its error and the number of pictures."""
    try:
        right = int(truth(columns))
    except ValueError:
        return UNREAD
    if said is None:
        return UNREAD
    if said == right:
        return Verdict(str(said), 1.0, "number")
    pictures = _pictures(columns)
    largest = max(right - 1, pictures - right, 1)
    penalty = 4 / pictures * (abs(said - right) / largest) ** 0.1
    return Verdict(str(said), max(0.0, 1 - penalty), "number")


def _pictures(columns: Columns) -> int:
    """The number of pictures where the table gives it, or their paths; else 2."""
    given = columns.get("image_seq_len", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(as_list(columns["image_path"])) if "image_path" in columns else 2


def _numbers(text: str) -> list[int]:
    found = [int(number) for number in re.findall(r"\d+", text) if number.isdecimal()]
    total = current = 0
    for word in _COUNTED.findall(text):
        scale = {"hundred": 100, "thousand": 1000}.get(word)
        if scale is None:
            current += int(_DIGITS[word])
        else:
            total, current = total + (current or 1) * scale, 0
    return [*found, *([total + current] if total + current else [])]


def q_spatial(columns: Columns, text: str) -> Verdict:
    r"""Q-Spatial: the mean of the numbers in the last ``\scalar``, in the last unit, is less than twice off."""
    scalars, units = _SCALAR.findall(text), _UNIT.findall(text)
    numbers = [float(number) for number in _DECIMAL.findall(scalars[-1])] if scalars and units else []
    if not numbers:
        return UNREAD
    return within_twice(columns, sum(numbers) / len(numbers), units[-1])


def within_twice(columns: Columns, said: float, unit: str) -> Verdict:
    """Checks whether a distance is more than half and less than twice the right one, ``(1.5, 'm')``."""
    try:
        value, right_unit = ast.literal_eval(truth(columns))
        right = float(value) * _CENTIMETRES.get(right_unit.lower(), 0.0) + _TINY
    except (ValueError, TypeError, AttributeError, SyntaxError, RecursionError, MemoryError):
        return UNREAD
    given = said * _CENTIMETRES.get(unit.lower(), 0.0) + _TINY
    return Verdict(f"{said:g} {unit}", float(max(given / right, right / given) < 2), "number")


def mat(columns: Columns, text: str) -> Verdict:
    """MAT-Bench: the F1 of words, or of Chinese characters; 1 if the texts are equal."""
    return words_f1(text, [truth(columns)])


def words_f1(text: str, right: list[str]) -> Verdict:
    """The F1 of the words of a text and of the most similar of right ones, without punctuation and articles."""
    said = _words(text)
    if not said:
        return UNREAD
    return Verdict(" ".join(said), max(_f1(said, _words(each)) for each in right), "whole")


def _words(text: str) -> list[str]:
    plain = _PUNCTUATION.sub("", text.lower())
    return list(plain.replace(" ", "")) if _CHINESE.search(plain) else _ARTICLE.sub(" ", plain).split()


def _f1(said: list[str], right: list[str]) -> float:
    """The F1; a word counts once, however often it is in both."""
    if _joined(said) == _joined(right):
        return 1.0
    if any(map(_CHINESE.search, said)) or any(map(_CHINESE.search, right)):
        said, right = list(_joined(said)), list(_joined(right))
    same = len(set(said) & set(right))
    return 2 * same / (len(said) + len(right)) if same else 0.0


def _joined(words: list[str]) -> str:
    chinese = any(map(_CHINESE.search, words))
    return ("" if chinese else " ").join(words)


def bmmr_options(columns: Columns) -> dict[str, str]:
    """The letters of BMMR's options, which are in the question; none of an open question."""
    return dict.fromkeys("ABCDEFGHIJ", "") if columns.get("task_type") == "mc" else {}


def bmmr(columns: Columns, text: str) -> Verdict:
    """BMMR: the capitals in the first box after the last "Answer###" are the right letters; a judge reads the rest."""
    if columns.get("task_type") != "mc":
        return UNREAD
    boxes = boxed(text.rpartition("Answer###")[2])
    said = [each for each in (boxes[0] if boxes else "No Answer") if each.isupper()]
    right = as_list(truth(columns))
    hit = len(said) == len(right) and all(each in right for each in said)
    return Verdict("".join(said) or "none", float(hit), "box" if boxes else "no box")


def boxed(text: str) -> list[str]:
    """The contents of LaTeX boxes that are closed, each from after the one before it."""
    found, place = [], text.find(_BOX)
    while place >= 0:
        start = place + len(_BOX)
        depth, end = 1, start
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        found += [] if depth else [text[start : end - 1]]
        place = text.find(_BOX, end)
    return found


RETRIEVAL, REASONING = "Retrieval", "Reasoning"  # categories of VTCBench


def vtc(columns: Columns, text: str) -> Verdict:
    """VTCBench by ``category``: one of the right answers is in the text, or the share that is; a judge reads others."""
    category, said = columns.get("category"), text.strip()
    if category not in (RETRIEVAL, REASONING):
        return UNREAD
    right = [reference.strip() for reference in references(columns)]
    share = sum(each in said for each in right) / len(right)
    return Verdict(said or "none", float(share > 0) if category == RETRIEVAL else share, "contained")


def foresight(columns: Columns, text: str) -> Verdict:
    """VLRMBench's foresight: the right word, yes or true, no or false, is in the answer, whatever else is."""
    right = truth(columns).strip().lower() in ("true", "yes", "1")
    hit = (_SAYS_YES if right else _SAYS_NO).search(text)
    other = (_SAYS_NO if right else _SAYS_YES).search(text)
    said = right if hit else not right
    return Verdict("Yes" if said else "No", float(hit is not None), "word") if hit or other else UNREAD


def ssi(columns: Columns, text: str) -> Verdict:
    """SSI-Bench: the last list of the numbers from 1 on, as many as the right one has, is in the right order."""
    right = _order(truth(columns))
    orders = [order for part in _outer_lists(text) if (order := _order(part))]
    said = [each for each in orders if right and len(each) == len(right) and set(each) == set(range(1, len(each) + 1))]
    return Verdict(str(said[-1]), float(said[-1] == right), "list") if said else UNREAD


def _order(text: str) -> list[int] | None:
    try:
        items = ast.literal_eval(text)
        return [int(str(item)) for item in items] if isinstance(items, list) else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _outer_lists(text: str) -> list[str]:
    """The parts of a text between brackets that belong together; only the outer ones."""
    found, depth, start = [], 0, 0
    for match in re.finditer(r"[\[\]]", text):
        if match[0] == "[":
            start = start if depth else match.start()
            depth += 1
        elif depth:
            depth -= 1
            found += [] if depth else [text[start : match.end()]]
    return found
