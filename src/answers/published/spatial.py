"""Options as VLMEvalKit reads them in benchmarks of spatial understanding (its ``spatial_bench.matching_func``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from testbed.answers.columns import truth
from testbed.answers.verdict import Verdict

_INVISIBLE = re.compile("[\u200b\u200c\u200d\ufeff]")
_TAG = re.compile(r"<\s*answer\b[^>]*>\s*([A-J])", re.IGNORECASE)
_END_TAG = re.compile(r"<\s*/\s*answer\s*>", re.IGNORECASE)
_OPEN, _CLOSE = r"(?:[(\[{（【]\s*)?", r"\s*[)\]}）】]?"
_BEFORE_TAG = [
    re.compile(rf"(?<![A-Za-z])([A-F]){_CLOSE}\s*</\s*{tag}\s*>", re.IGNORECASE) for tag in ("answer", "think")
]
_ENDS_THOUGHT = re.compile(r"</\s*think\s*>", re.IGNORECASE)
_BEGINS_THOUGHT = re.compile(r"<\s*think\s*>", re.IGNORECASE)
_OPTION_LINE = re.compile(r"[*_>\-\s]*(?:option|选项)\s+[A-J]\s*[:：]", re.IGNORECASE)
_LETTER_LINE = re.compile(r"[*_`>（）\[\]【】()]*\s*([A-Fa-f])\s*[*_`（）\[\]【】()]*")
_LABELLED_LINE = re.compile(r"([A-F])\s*[.．:：)\]】、-]\s+", re.IGNORECASE)
_IN_LINE = re.compile(r"(?<![A-Za-z])([A-F])\s*[*_`）\]})]*(?=$|[\s.,:;!?)\]】》」』，。；、：）])")
_PHRASE = re.compile(
    r"(?:final\s*answer|the\s*answer\s*is|answer(?:\s*is)?|correct\s*answer|答案|最终答案|结论|所以|因此|我选(?:择)?|选择|选)"
    rf"\s*(?:[:：>＝=]\s*)?{_OPEN}([A-F]){_CLOSE}(?:\b|[.)、。])",
    re.IGNORECASE,
)
_ANYWHERE = re.compile(r"(?<![A-Za-z])([A-F])\s*[)\]}）】]?(?![A-Za-z])")
_LINES, _TAIL = 6, 800  # the last lines, and characters, that are looked at


def spatial(columns: Mapping[str, str], text: str) -> Verdict:
    """A letter in or before a tag, on one of the last lines, after a phrase such as "answer is", or the only one.

    The right answer is read in the same way; where nothing is read in either, they are equal.
    """
    said, method = _read(text)
    return Verdict(said, float((said or "").lower() == (_read(truth(columns))[0] or "").lower()), method)


def _read(text: str) -> tuple[str | None, str]:
    text = _INVISIBLE.sub("", text.strip())
    tail = text[-_TAIL:]
    tagged = _tagged(text) or _BEFORE_TAG[0].search(tail) or _BEFORE_TAG[1].search(tail)
    if tagged:
        return tagged[1].upper(), "tag"
    line = _of_lines(after_thoughts(text).splitlines()) or _of_lines(tail.splitlines())
    if line:
        return line, "line"
    phrase = _PHRASE.search(text)
    if phrase:
        return phrase[1].upper(), "answer is"
    rest = "\n".join(each for each in text.splitlines() if not _OPTION_LINE.match(each))
    letters = set(_ANYWHERE.findall(rest))
    return (letters.pop(), "only letter") if len(letters) == 1 else (None, "none")


def _tagged(text: str) -> re.Match[str] | None:
    """The first tag with a letter that an end tag follows, wherever it does."""
    ends = [match.start() for match in _END_TAG.finditer(text)]
    return next(_TAG.finditer(text, 0, ends[-1]), None) if ends else None


def after_thoughts(text: str) -> str:
    """Returns the text after the last end of thoughts, else their last beginning; else the text."""
    ends = list(_ENDS_THOUGHT.finditer(text)) or list(_BEGINS_THOUGHT.finditer(text))
    return text[ends[-1].end() :].strip() if ends else text


def _of_lines(lines: Sequence[str]) -> str | None:
    """The letter of the last of the last lines that has one."""
    for line in (line.strip() for line in reversed(lines[-_LINES:])):
        if not line or _OPTION_LINE.match(line):
            continue
        found = _LETTER_LINE.fullmatch(line) or _LABELLED_LINE.match(line)
        if found:
            return found[1].upper()
        letters: set[str] = set(_IN_LINE.findall(line))
        if len(letters) == 1:
            return letters.pop()
    return None
