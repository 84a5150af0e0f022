"""Extracts the final part of a reply, without the thoughts before it, in whatever form these come.

Servers and chat templates write thoughts in tags with telling names (``<think>…</think>``, ``<longcat_think>``,
``[THINK]…[/THINK]``, ``<details type="reasoning">``), in fenced blocks of such names, as ``◁think▷…◁/think▷`` or in
the channels of gpt-oss; sometimes the opening mark is in the prompt. Rules, judges and caption metrics read the final
part of a reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

THINKING = "thinking"  # in a generation's `extra`: the thoughts that a server gave apart from the text
BEGUN = "thinking_begun"  # likewise: the prompt had opened the thoughts, so that the reply begins within them
REVISION = 5  # of `final_part`; raised when the same reply gets another final part

_SAYS_SO = re.compile(
    "think|thought|reason|analysis|scratch[_-]?pad|reflect|rationale|monologue|ponder|deliberat"
    "|(?<![a-z])(?:cot|inner)(?![a-z])",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<\|?\s{0,3}(?P<slash>/?)\s{0,3}(?P<name>[A-Za-z][\w:.-]{0,60})(?P<attributes>\s[^<>|]{0,200}?)?\s{0,3}(?P<void>/?)\|?>"
    r"|\[(?P<bracket_slash>/?)(?P<bracket>[A-Za-z]+(?:_[A-Za-z]+)*)\]"
)
_CLOSING = re.compile(r"(?:\A|_)(?:end|stop|close|suffix)(?:_|\Z)", re.IGNORECASE)  # in names of control tokens
_KIND = re.compile(r"""\b(?:type|class|name|role|kind)\s*=\s*["']?([\w -]+)""", re.IGNORECASE)
_ALONE = "THINK"  # in brackets; with any other name these are headings unless they are closed
# A tag that is named, and not used: in quotes, or as a word of a sentence.
_QUOTES = dict(zip("`\"'“‘«(", "`\"'”’»)", strict=True))
_SENTENCE_BEFORE, _SENTENCE_AFTER = re.compile(r"[\w,][ \t]+\Z"), re.compile(r"[ \t]+[a-z]|[.,;:!?)-]|[ \t]*\Z")
_NAMING_BEFORE = re.compile(
    r"\b(?:the|an?|any|no|my|of|with|without|and|or|by|used?|using|before|after|closing|missing)[ \t]+\Z", re.IGNORECASE
)
_WIDE = re.compile("[\u2e80-\U0003ffff]")  # scripts without blanks
_ANALYSIS = (
    r"(?:<\|start\|>\w*\s*)?<\|channel\|>\s*(?:analysis|commentary)[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?"
)
_FINAL = (
    r"(?:<\|start\|>\w*\s*)?<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>|$)"
    r"|<\|start\|>\s*assistant\s*<\|message\|>"
)
_BEGINS = (
    r"<\|im_start\|>\s*(?:think|thought|thinking|reasoning|analysis)\b|"  # s1
    rf"◁think(?:ing)?▷|<unused94>|<\|channel>(?:\s*(?:thought|thinking|analysis)\b)?|{_ANALYSIS}"
    # gpt-oss's channels without their control tokens: "analysisWe see a dog.assistantfinalB"
    r"|(?-i:\A\s*analysis(?=[A-Z]|[\s\S]*assistantfinal))"
)
_ENDS = (
    r"<\|im_start\|>\s*(?:answer|final)\b|"
    rf"◁/think(?:ing)?▷|<unused95>|<channel\|>|{_FINAL}|(?-i:assistantfinal)|(?-i:^\.\.\.done thinking\.$)"
)
_MARK = re.compile(rf"(?P<begins>{_BEGINS})|(?P<ends>{_ENDS})|(?P<tag>{_TAG.pattern})", re.IGNORECASE | re.MULTILINE)
_SUMMARY = re.compile(r"\s*<summary>([^<]{1,80})</summary>", re.IGNORECASE)
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*(\w{1,40})[ \t]*\n[\s\S]*?(?:^(?P<end>\1)[ \t]*$|\Z)", re.MULTILINE)
_ESCAPED = re.compile(r"&lt;(\s{0,3}/?\s{0,3}([A-Za-z][\w:.-]{0,60}))&gt;")
_HINTS = ("<", "[", "◁", "assistantfinal", "analysis", "```", "~~~", "...done")  # no mark is without one of these
_PARTS = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # control tokens that marks consist of
_TOKEN_FIRST, _TOKEN_LAST = re.compile(r"<\|\w{2,40}\|>"), re.compile(r"<\|\w{2,40}\|>\Z")
_TAIL, _TAIL_TOKENS = 200, 32  # characters, and tokens, at the end of a prompt in which an opening mark is looked for


def final_part(text: str, begun: bool = False) -> str | None:
    """Returns the part of a reply after its thoughts.

    It is what follows the last closing mark, or, if nothing does, the text outside of thoughts before it.

    Args:
        text: The reply.
        begun: True if the prompt had opened the thoughts.

    Returns:
        The text without white space and control tokens such as ``<|im_end|>`` around it; None if the reply has thoughts
        and nothing else: it was cut off, or thinks to the end.
    """
    if "&lt;" in text:
        text = _ESCAPED.sub(lambda match: f"<{match[1]}>" if _SAYS_SO.search(match[2]) else match[0], text)
    marks = _marks(text)
    if begun:
        thinks = True
    elif not marks:
        return _plain(text)
    else:
        thinks = False
    said: list[str] = []  # outside of thoughts
    place = 0
    for mark in marks:
        if mark.begins:
            said += [] if thinks else [text[place : mark.start]]
            thinks = True
        if mark.ends:
            said = said if thinks else []  # its opening mark is in the prompt: all before it is thought
            thinks = False
        place = mark.end
    if thinks:
        return None
    return next((plain for passage in (text[place:], *reversed(said)) if (plain := _plain(passage))), None)


def opens_thoughts(prompt: str) -> bool:
    """Checks whether a prompt ends with an opening mark, as some chat templates write it."""
    tail = prompt[-_TAIL:]
    last = next(iter(_marks(tail, whole=False)[-1:]), None)
    return last is not None and not last.ends and not tail[last.end :].strip()


def hidden_tokens(tokenizer: Any) -> set[int] | None:
    """Returns the special tokens that do not mark thoughts, by id; None if no special token of a tokenizer marks them.

    Decoding without special tokens would otherwise join thoughts and answer.

    Args:
        tokenizer: transformers'.
    """
    special = {
        number: str(token)
        for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()
        if getattr(token, "special", False)
    }
    marks = {number for number, token in special.items() if token in _PARTS or _is_mark(token)}
    return set(special) - marks if marks else None


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    """Decodes tokens, without special tokens other than marks of thoughts."""
    hidden = hidden_tokens(tokenizer)
    kept = tokens if hidden is None else [token for token in tokens if token not in hidden]
    return str(tokenizer.decode(kept, skip_special_tokens=hidden is None))


def begun_by(tokenizer: Any, prompt: Sequence[int]) -> dict[str, Any]:
    """Checks a generation's `extra` for the mark that its prompt had opened the thoughts."""
    tail = str(tokenizer.decode(list(prompt[-_TAIL_TOKENS:]), skip_special_tokens=False))
    return {BEGUN: True} if opens_thoughts(tail) else {}


class _Mark(NamedTuple):
    """A mark of thoughts in a text; an empty pair such as ``<think/>`` begins and ends them."""

    begins: bool
    ends: bool
    start: int
    end: int
    sure: bool = True  # else it counts only if a closing mark follows


def _marks(text: str, whole: bool = True) -> list[_Mark]:
    """The marks of thoughts in a text, without tags that it merely mentions.

    Args:
        whole: True if the text is complete, so that an opening mark without its end can be recognised.
    """
    if not any(hint in text for hint in _HINTS):
        return []
    marks = sorted((*_tags(text), *_fences(text)), key=lambda mark: mark.start)
    closed, kept = not whole, []
    for mark in reversed(marks):
        closed = closed or mark.ends
        kept += [mark] if mark.sure or closed else []
    return kept[::-1]


def _fences(text: str) -> Iterator[_Mark]:
    """Fenced blocks of thoughts, as in Markdown."""
    for match in _FENCE.finditer(text):
        if _SAYS_SO.search(match[2]):
            yield _Mark(True, match["end"] is not None, *match.span())


def _tags(text: str) -> Iterator[_Mark]:
    opened: list[str] = []  # elements whose attributes mark them as thoughts
    for match in _MARK.finditer(text):
        start, end = match.span()
        if match["tag"] is None:
            yield _Mark(match["begins"] is not None, match["ends"] is not None, start, end)
            continue
        name = match["name"] or match["bracket"]
        ends = bool(match["slash"] or match["bracket_slash"])
        if _SAYS_SO.search(name):
            begun, done = not ends, ends or bool(match["void"])
            if match[0].startswith("<|"):
                begun, done = begun and not _CLOSING.search(name), done or bool(_CLOSING.search(name))
            if ends and _is_named(text, start, end):
                continue
            alone = match["bracket"] in (None, _ALONE) and not _in_sentence(text, start, end)
            yield _Mark(begun, done, start, end, alone or done)
        elif ends and name.lower() in opened:
            opened.remove(name.lower())
            yield _Mark(False, True, start, end)
        elif not ends and any(_SAYS_SO.search(kind) for kind in _kinds(match)):
            opened.append(name.lower())
            yield _Mark(True, False, start, end, sure=False)


def _kinds(tag: re.Match[str]) -> Iterator[str]:
    """Returns the names that an element's attributes, and a summary at its beginning, give it."""
    yield from _KIND.findall(tag["attributes"] or "")
    if summary := _SUMMARY.match(tag.string, tag.end()):
        yield summary[1]


def _is_mark(token: str) -> bool:
    match = _MARK.fullmatch(token)
    if match is None:
        return False
    return match["tag"] is None or _SAYS_SO.search(match["name"] or match["bracket"]) is not None


def _is_quoted(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    return before in _QUOTES and text[end : end + 1] == _QUOTES[before]


def _in_sentence(text: str, start: int, end: int) -> bool:
    """Checks whether an opening tag is quoted, or a word of a sentence."""
    before, after = text[max(0, start - 20) : start], text[end : end + 20]
    if _is_quoted(text, start, end) or (_WIDE.match(before[-1:]) and _WIDE.match(after)):
        return True
    return bool(_SENTENCE_BEFORE.search(before) and _SENTENCE_AFTER.match(after) and after.strip())


def _is_named(text: str, start: int, end: int) -> bool:
    """Checks whether a closing tag is quoted, or a word of a sentence that is about it."""
    before, after = text[max(0, start - 20) : start], text[end : end + 20]
    about = _NAMING_BEFORE.search(before) and _SENTENCE_AFTER.match(after)
    return _is_quoted(text, start, end) or bool(about)


def _plain(text: str) -> str:
    """A text without white space and control tokens at its ends."""
    plain = text.strip()
    while match := _TOKEN_FIRST.match(plain):
        plain = plain[match.end() :].lstrip()
    while plain.endswith("|>") and (match := _TOKEN_LAST.search(plain)):
        plain = plain[: match.start()].rstrip()
    return plain
