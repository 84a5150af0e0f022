"""Finds the deciding part of an answer: without repeated options, options that it rules out, and "N/A"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

from testbed.answers import languages

_AFTER_LETTER = r"[\s.):=\]|*_`\"',–—-]{1,12}"
_MARKUP = r"[\s\-*•(\[_>#|.,;`\"')\]]"
_BETWEEN = re.compile(rf"{_MARKUP}*(?:(?:or|and)\b{_MARKUP}*)?(?:(?:option|choice)\s+{_MARKUP}*)?", re.IGNORECASE)
_BEFORE_LIST = re.compile(rf"{_MARKUP}{{0,12}}(?:(?:option|choice)\s+{_MARKUP}{{0,3}})?$", re.IGNORECASE)
_AFTER_LIST = re.compile(r"[.;)*_|\"'`]{0,3}")
_LONGEST_GAP = 40  # characters between two options of a list
_ITEM_LINE = re.compile(rf"{_MARKUP}{{0,12}}(?:option\s+)?([A-Z]){_AFTER_LETTER}", re.IGNORECASE)
_RULER = re.compile(r"^(?=[^\n]*--)[ \t|:-]+$\n?", re.MULTILINE)  # of a table
_LONGEST_LIST = 8000  # characters of all options together

_NOT_APPLICABLE = re.compile(r"(?<![\w/])[Nn]\s?/\s?[Aa](?![\w/])")
_LETTER = r"[\"'*(\[]*[A-Z][\"'*)\]]*"
_AND = r"(?:\s*,\s*(?:(?:and|or|nor|&)\s+)?|\s+(?:and|or|nor|&)\s+)(?:not\s+|options?\s+)?"
_SERIES = rf"{_LETTER}(?:{_AND}{_LETTER})*(?![\w'])"
_OPTIONS = r"(?:(?:either|both|be|any\s+of|choose|select|pick|options?|choices?|answers?)\s+)*"
_RULED_OUT = re.compile(
    r"(?:\b[Nn]ot|n't|\b[Cc]annot|\b[Nn]either|\b[Nn]or|\b[Ee]xcept|\b[Ee]liminat\w*|\b[Rr]ul(?:e|es|ed|ing)\s+out"
    rf"|\b[Ee]xclud\w*|\b[Dd]iscard\w*|\b[Dd]ismiss\w*|\b[Rr]ather\s+than|\b[Ii]nstead\s+of)\s+{_OPTIONS}(?P<after>{_SERIES})"
    rf"|(?<![\w'])(?P<before>{_SERIES})\s*"
    r"(?:(?:is|are|was|were|looks?|seems?|do|does|can|could)(?:\s+(?:all|both|also|clearly|definitely|obviously|be))*\s*"
    r"(?:(?:not|n't)\b(?!\s+(?:wrong|incorrect|false|only|just))|(?:wrong|incorrect|false|out|eliminated|ruled\s+out"
    r"|excluded|discarded|dismissed|impossible)\b)|cannot\b|can't\b|don't\b|doesn't\b)"
)
_CLAUSE = r"(?:\A|(?<=[\n.!?…,;:(—–-])|(?<=\bno)|(?<=\bbut)|(?<=\boh))[\s*_\"'(—–-]{0,4}"
_NOT_SO = r"(?:that|this|it)(?:'s| is| was)(?: a)? (?:not (?:right|correct|true|it)|wrong|incorrect|mistake|false)"
_TAKES_BACK = re.compile(
    rf"(?P<surely>{_CLAUSE}(?:(?:but\s+)?wait\b|hold on\b|correction\b|on second thoughts?\b|scratch that\b"
    r"|strike that\b|oops\b"
    r"|i (?:was|am) (?:wrong|mistaken)\b|i take (?:it|that) back\b|(?:that was )?my mistake\b"
    r"|i(?:'ve| have)? changed my mind\b"
    r"|(?:edit|update|revised?|amended)\s*(?=:)"
    r"|let me (?:correct|reconsider|revise|rephrase|rethink)\b(?:\s+(?:that|this|my answer|it|myself))?))"
    rf"[\s,.:;!—–-]*(?:{_NOT_SO}[\s,.:;!—–-]*)?"
    rf"|{_CLAUSE}(?:(?:actually"
    rf"|(?:{languages.NO_WORDS})(?=\s*[,.:;!—–-])|sorry|rather|i meant?|or rather|make that|hmm+"
    rf"|{_NOT_SO})(?!\w)"
    r"[\s,.:;!—–-]*)+",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"[\s,.;:!()—–-]+(?:and\s+)?(?P<but>(?:(?:but|however|although|though|yet|no)\b[\s,.;:!—–-]*)*)"
    r"(?:i\s+(?:think|believe|know|see|realize|realise)\s+(?:that\s+)?)?(?:that|this|it)"
    r"(?:(?:'s|\s+is|\s+was)(?:\s+(?:a|clearly|actually|really|probably|also|just))*\s+(?:not|wrong|incorrect|mistaken?|false)"
    r"|\s+(?:isn't|wasn't))(?:\s+(?:right|correct|true|it|so|the\s+(?:case|answer)))?[\s.!?)*_\"']*\Z",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?]\s+|\n")
_SAID = re.compile(r"\w")  # before there is something to take back
_ABOUT_OPTIONS = re.compile(
    r"\b(?:none|all|both|any|some|one|two|three|each|neither|either|most|no)\s+(?:of\s+(?:the\s+|these\s+|those\s+|them\s+)?"
    r"(?:\w+\s+){0,2}?(?:above|below|options?|choices?|answers?|alternatives?|listed|given|provided)\b"
    r"|of\s+them(?=\s+(?:is|are|seems?)\s+(?:correct|right|true|suitable|appropriate)\b)|of\s+(?:these|those)(?=\s*(?:$|[.,;!?]|(?:is|are|seems?|fits?|match\w*|appl\w+)\b))"
    r"|(?:options?|choices?|answers?)\b|(?:is|are)\s+(?:correct|right|true|suitable|appropriate)\b)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"[AI]\s+[a-z]")
_ASIDE = re.compile(
    r"\bno\s+(?:idea|clue|comment|wonder|doubt|problem|worries|way\s+(?:to|of)|(?:clear\s+|definite\s+)?answer"
    r"|(?:further\s+|more\s+|enough\s+|such\s+)?(?:information|context)"
    r"|(?:image|picture|photo|question)\w*\s+(?:was|is|were|has|provided|attached|given|available))\b",
    re.IGNORECASE,
)  # "no" about the answer itself
_ITEMS = re.compile(r"\n|[,;]\s+(?=[(*]*[A-Z][)*]*\s*[.:–—-])")
_SUPPOSED = re.compile(
    r"\b[Ii]f\b(?=[^.;\n]{1,80}\b(?:were|was|had|weren't|wasn't)\b)[^.;\n]{1,120}?\bwould\s+(?:be|have\s+been)\s+(?:option\s+)?"
    r"[\"'*(]*(?P<then>[A-Z])(?![\w'])"
    r"|(?<![\w'])(?P<first>[A-Z])[\"'*)]*\s+would\s+(?:be|have\s+been)\b(?=[^.;\n]{0,60}\bif\s+(?!I\b|we\b))"
)  # what an answer would be in another case
_SURVEY = re.compile(
    r"(?:\b(?:let(?:'s|\s+me|\s+us)|i(?:'ll|\s+will)|we(?:'ll|\s+will|\s+can|\s+need\s+to|\s+should|\s+must)?|to|by)\b[^.:\n]{0,60}?\b"
    r"(?:analy[sz]|evaluat|consider|examin|check|compar|assess|review|discuss|look|go\w*\s+(?:through|over)|break)\w*\b"
    r"[^.:\n]{0,40}\b(?:options?|choices?|answers|alternatives)|\banalysis\s+of\s+(?:\w+\s+){0,2}(?:options|choices)"
    r"|\boptions?\s+analysis|逐[一个项]+分析)\b[^.:\n]{0,60}[.:\n]",
    re.IGNORECASE,
)  # "Let's consider each option:"
_SURVEYED = re.compile(
    rf"\s*(?:\d{{1,2}}[.)])?{_MARKUP}{{0,12}}(?:(?:option|choice)\s+)?(?-i:([A-Z]))(?=[.):*,–—-]|\s+[(–—-])"
    r"[^\n]*(?:\n(?=[ \t]*[-*•+]\s|[ \t]{2})[^\n]*)*",
    re.IGNORECASE,
)
_JUDGED = re.compile(
    r"[\s:;*_|().,–—-]{0,12}(?:(?:this|it|that)\s+)?(?:is\s+|looks\s+|seems\s+)?"
    r"(?:(?P<wrong>(?:incorrect|wrong|false|no|not)\b|[❌✗✘✖])|(?:correct|right|true|yes)\b|[✅✓✔☑])",
    re.IGNORECASE,
)


def without_list(text: str, choices: Mapping[str, str]) -> str:
    """A text without the list of all options that it repeats, each with its letter, in any order; else the text.

    The list may have a line for each option, be a table, or stand in a sentence; its letters may be small.
    """
    items = tuple((letter, " ".join(option.split()).rstrip(".")) for letter, option in choices.items() if option)
    if len(items) < 2 or sum(len(option) for _, option in items) > min(len(text), _LONGEST_LIST):
        return text
    plain = _RULER.sub("", text) if "|" in text and "--" in text else text
    if "|" in plain:
        plain = _without_row(plain, dict(items))
    for start, end in reversed(_lists(plain, items)):
        plain = f"{plain[:start]}\n{plain[end:]}"
    return plain.strip()


def approved(text: str, choices: Mapping[str, str]) -> str | None:
    """Returns the only option that a list with a verdict on each option calls right: ``A. cat ❌``, ``B: Yes``."""
    verdicts: dict[str, bool] = {}
    for line in _ITEMS.split(text):
        item = _ITEM_LINE.match(line)
        if item is None or item[1] not in choices:
            continue
        rest, option = line[item.end() :], choices[item[1]].rstrip(".")
        rest = rest[len(option) :] if option and rest.lower().startswith(option.lower()) else rest
        judged = _JUDGED.match(rest)
        if judged is None or item[1] in verdicts:
            return None
        verdicts[item[1]] = judged["wrong"] is None
    right = [letter for letter, correct in verdicts.items() if correct]
    return right[0] if len(right) == 1 and set(verdicts) == set(choices) else None


def without_survey(text: str, choices: Mapping[str, str]) -> str:
    """A text without an announced look at each option that does not reach the last, as of a truncated answer."""
    announced = _SURVEY.search(text)
    if announced is None:
        return text
    place, looked_at = announced.end(), []
    while item := _SURVEYED.match(text, place):
        place = item.end()
        looked_at.append(item[1])
    truncated = looked_at[:1] == [*choices][:1] and not set(choices) <= set(looked_at)
    return f"{text[: announced.start()]}\n{text[place:]}".strip() if truncated else text


def _lists(text: str, items: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Finds the places where a text has each of the items once, with nothing but markup between them."""
    longest: dict[int, tuple[int, str]] = {}
    for letter, option in items:
        for match in _item(letter, option).finditer(text):
            longest[match.start()] = max(longest.get(match.start(), (0, "")), (match.end(), letter))
    places = sorted((start, end, letter) for start, (end, letter) in longest.items())
    spans: list[tuple[int, int]] = []
    first = 0
    while first + len(items) <= len(places):
        run = places[first : first + len(items)]
        if len({letter for _, _, letter in run}) == len(items) and all(
            _follows(one, other, text) for one, other in pairwise(run)
        ):
            before = _BEFORE_LIST.search(text[max(0, run[0][0] - 20) : run[0][0]])
            after = _AFTER_LIST.match(text, run[-1][1])
            spans.append((run[0][0] - (len(before[0]) if before else 0), after.end() if after else run[-1][1]))
            first += len(items)
        else:
            first += 1
    return spans


def _follows(one: tuple[int, int, str], other: tuple[int, int, str], text: str) -> bool:
    gap = text[one[1] : other[0]]
    return one[1] <= other[0] and len(gap) <= _LONGEST_GAP and _BETWEEN.fullmatch(gap) is not None


def _without_row(text: str, items: Mapping[str, str]) -> str:
    """A text without a table that has the letters in one row and the options in the next."""
    rows = text.split("\n")
    for place, (first, second) in enumerate(pairwise(rows)):
        letters, texts = ([cell.strip(" *_") for cell in row.strip().strip("|").split("|")] for row in (first, second))
        if sorted(letters) == sorted(items) and [items[letter].lower() for letter in letters] == [
            text.lower() for text in texts
        ]:
            return "\n".join([*rows[:place], *rows[place + 2 :]])
    return text


@lru_cache(512)
def _item(letter: str, text: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, text.split()))
    label = rf"(?-i:{letter}|(?:{letter.lower()}|\d{{1,2}})(?=\s{{0,2}}[.):\]|]))"
    return re.compile(rf"(?<!\w){label}{_AFTER_LETTER}{words}(?!\w)", re.IGNORECASE)


def last_word(text: str) -> tuple[str, bool] | None:
    """Returns the text after an answer last took something back ("Wait, that is wrong."); None if it does not.

    Returns:
        The rest, and whether what was before is surely taken back: after "Actually, …" it may stand.
    """
    said = _SAID.search(text)
    withdrawals = [*_TAKES_BACK.finditer(text, said.end())] if said else []
    if not withdrawals:
        return None
    return text[withdrawals[-1].end() :].strip(), any(match["surely"] for match in withdrawals)


def denied(text: str, opposed: bool = False) -> str | None:
    """Returns the sentence that the end of an answer calls wrong ("…, but that is not right."); None without such.

    Args:
        text: The answer.
        opposed: Whether a "but", "no" or the like must come before: "Yes, that is wrong." agrees with itself.
    """
    denial = _DENIED.search(text[-200:])
    if denial is None or (opposed and not denial["but"]):
        return None
    before = text[: max(0, len(text) - 200) + denial.start()]
    return _SENTENCE_END.split(before)[-1].strip() or None


def is_aside(text: str, place: int) -> bool:
    """Checks whether the "no" at a place is about the answer itself: "no idea", "no image was provided"."""
    return _ASIDE.match(text, place) is not None


def without_asides(text: str) -> str:
    """A text without such a "no" and what it is said of."""
    return _ASIDE.sub(" ", text)


def without_suppositions(text: str) -> str:
    """A text without the letters of what would be right in another case: "If it were red, it would be A"."""

    def crossed(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("then" if match["then"] else "first"))
        return f"{match[0][:start]}x{match[0][end:]}"

    return _SUPPOSED.sub(crossed, text) if "would" in text else text


def without_talk_of_options(text: str, choices: Mapping[str, str]) -> str:
    """Removes phrases such as "none of the options", which name no option, unless an option is worded like that."""

    def crossed(match: re.Match[str]) -> str:
        said = match[0].lower()
        return match[0] if any(said in option.lower() for option in choices.values()) else "x" * len(match[0])

    return _ABOUT_OPTIONS.sub(crossed, text)


def decided(text: str) -> tuple[str, Set[str]]:
    """A text in which the letters that it rules out, and "N/A", are crossed out; and these letters."""
    out: set[str] = set()

    def crossed(match: re.Match[str]) -> str:
        series = match["after"] or match["before"]
        if match["after"] and len(series) == 1 and _ARTICLE.match(text, match.start("after")):  # "not A dog"
            return match[0]
        out.update(re.findall(r"(?<![\w'])[A-Z](?![\w'])", series))
        return match[0].replace(series, "x" * len(series))

    plain = _NOT_APPLICABLE.sub(lambda match: "x" * len(match[0]), text)
    return _RULED_OUT.sub(crossed, plain), out
