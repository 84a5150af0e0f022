"""What an answer decides: without the options that it only repeats, those that it rules out, and "N/A"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

_BEFORE_ITEM, _AFTER_LETTER = (
    r"[\s\-*•(\[_>#|]{0,12}(?:(?:option|choice)\s)?[*(\[_]{0,3}",
    r"[\s.):=\]|*_`\"',–—-]{1,12}",
)
_BETWEEN = r"[\s.,;*_`|\"']{0,12}(?:\b(?:or|and)\b)?"
_RULER = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-{2,}:?[ \t]*\|?)+[ \t]*$\n?", re.MULTILINE)  # of a table
_LONGEST_LIST = 8000  # characters of all options together
_MOST_IN_ANY_ORDER = 10  # options

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
    r"|let me (?:correct|reconsider|revise|rephrase|rethink)\b(?:\s+(?:that|this|my answer|it|myself))?))"
    rf"[\s,.:;!—–-]*(?:{_NOT_SO}[\s,.:;!—–-]*)?"
    rf"|{_CLAUSE}(?:(?:actually|no(?=\s*[,.:;!—–-])|nope|sorry|rather|i mean|or rather|make that|hmm+|{_NOT_SO})(?!\w)"
    r"[\s,.:;!—–-]*)+",
    re.IGNORECASE,
)
_SAID = re.compile(r"\w")  # before there is something to take back
_ABOUT_OPTIONS = re.compile(
    r"\b(?:none|all|both|any|some|one|two|three|each|neither|either|most|no)\s+(?:of\s+(?:the\s+|these\s+|those\s+|them\s+)?"
    r"(?:\w+\s+){0,2}?(?:above|below|options?|choices?|answers?|alternatives?|listed|given|provided)\b"
    r"|of\s+(?:these|those)(?=\s*(?:$|[.,;!?]|(?:is|are|seems?|fits?|match\w*|appl\w+)\b))"
    r"|(?:options?|choices?|answers?)\b|(?:is|are)\s+(?:correct|right|true|suitable|appropriate)\b)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"[AI]\s+[a-z]")


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
    return _list_of(items).sub(lambda match: "\n" if _is_whole(match[0], items) else match[0], plain).strip()


def _without_row(text: str, items: Mapping[str, str]) -> str:
    """A text without a table that has the letters in one row and the options in the next."""
    rows = text.split("\n")
    for place, (first, second) in enumerate(pairwise(rows)):
        letters, texts = ([cell.strip(" *_") for cell in row.strip().strip("|").split("|")] for row in (first, second))
        if sorted(letters) == sorted(items) and [items[each].lower() for each in letters] == [
            each.lower() for each in texts
        ]:
            return "\n".join([*rows[:place], *rows[place + 2 :]])
    return text


def _is_whole(listed: str, items: Sequence[tuple[str, str]]) -> bool:
    """Whether a list has each option once."""
    return all(len(_item(*each).findall(listed)) == 1 for each in items)


@lru_cache(512)
def _item(letter: str, text: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, text.split()))
    label = rf"(?-i:{letter}|(?:{letter.lower()}|\d{{1,2}})(?=\s{{0,2}}[.):\]|]))"
    return re.compile(rf"(?<!\w){_BEFORE_ITEM}{label}{_AFTER_LETTER}{words}(?!\w)", re.IGNORECASE)


@lru_cache(64)
def _list_of(items: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    lines = [_item(*each).pattern.removeprefix(r"(?<!\w)") for each in items]
    if len(items) <= _MOST_IN_ANY_ORDER:
        any_of = f"(?:{'|'.join(lines)})"
        lines = [any_of] * len(items)
    return re.compile(rf"(?<!\w){_BETWEEN.join(lines)}[.;)*_|]{{0,3}}", re.IGNORECASE)


def last_word(text: str) -> tuple[str, bool] | None:
    """What an answer says after it last took something back ("Wait, that is wrong."); None if it takes nothing back.

    Returns:
        The rest, and whether what was before is surely taken back: after "Actually, …" it may stand.
    """
    found = [match for match in _TAKES_BACK.finditer(text) if _SAID.search(text, 0, match.start())]
    if not found:
        return None
    return text[found[-1].end() :].strip(), any(match["surely"] for match in found)


def without_talk_of_options(text: str, choices: Mapping[str, str]) -> str:
    """A text without phrases such as "none of the options", which name no option, unless an option says so."""

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
