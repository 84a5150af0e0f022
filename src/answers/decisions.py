"""What an answer decides: without the options that it only repeats, those that it rules out, and "N/A"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from functools import lru_cache

_BEFORE_ITEM, _AFTER_LETTER = r"[\s\-*•(\[_>#]{0,12}", r"[\s.):\]*_,–—-]{1,8}"
_BETWEEN = r"[\s.,;*_`]{0,12}(?:\b(?:or|and)\b)?"
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
_ARTICLE = re.compile(r"[AI]\s+[a-z]")


def without_list(text: str, choices: Mapping[str, str]) -> str:
    """A text without the list of all options that it repeats, each with its letter and in order; else the text."""
    items = tuple((letter, " ".join(option.split()).rstrip(".")) for letter, option in choices.items() if option)
    if len(items) < 2 or sum(len(option) for _, option in items) > min(len(text), _LONGEST_LIST):
        return text
    return _list_of(items).sub("\n", text).strip()


@lru_cache(64)
def _list_of(items: tuple[tuple[str, str], ...]) -> re.Pattern[str]:
    texts = (r"\s+".join(map(re.escape, option.split())) for _, option in items)
    lines = (
        rf"{_BEFORE_ITEM}(?-i:{letter}){_AFTER_LETTER}{text}(?!\w)"
        for (letter, _), text in zip(items, texts, strict=True)
    )
    return re.compile(rf"(?<!\w){_BETWEEN.join(lines)}[.;)*_]{{0,3}}", re.IGNORECASE)


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
