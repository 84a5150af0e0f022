"""What a model said finally: a reply without the thoughts before it, in whatever form these come.

Servers and chat templates write thoughts as ``<think>…</think>``, ``<thinking>…</thinking>``, ``[THINK]…[/THINK]``,
``◁think▷…◁/think▷`` or in the channels of gpt-oss; sometimes the opening mark is in the prompt. Whoever reads a reply
(rules, judges, metrics of captions) reads its final part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

THINKING = "thinking"  # in a generation's `extra`: the thoughts that a server gave apart from the text
BEGUN = "thinking_begun"  # likewise: the prompt had opened the thoughts, so that the reply begins within them

_NAMES = "(?:seed:)?(?:think|thinking|thought|thoughts|reasoning)"
_ANALYSIS = (
    r"(?:<\|start\|>\w*\s*)?<\|channel\|>\s*(?:analysis|commentary)[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>)?"
)
_FINAL = (
    r"(?:<\|start\|>\w*\s*)?<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>|$)"
    r"|<\|start\|>\s*assistant\s*<\|message\|>"
)
_BEGINS = (
    rf"<\|?\s*{_NAMES}(?:\s[^<>]{{0,60}})?\|?>|(?-i:\[THINK\])|◁think(?:ing)?▷|<unused94>"
    rf"|<\|(?:begin|start)_(?:of_)?(?:thought|thinking|reasoning)\|>|{_ANALYSIS}"
    # gpt-oss's channels without their control tokens: "analysisWe see a dog.assistantfinalB"
    r"|(?-i:\A\s*analysis(?=[A-Z]|[\s\S]*assistantfinal))"
)
_ENDS = (
    rf"<\|?\s*/\s*{_NAMES}\s*\|?>|(?-i:\[/THINK\])|◁/think(?:ing)?▷|<unused95>"
    rf"|<\|end_(?:of_)?(?:thought|thinking|reasoning)\|>|{_FINAL}|(?-i:assistantfinal)"
)
_MARK = re.compile(rf"(?P<begins>{_BEGINS})|(?P<ends>{_ENDS})", re.IGNORECASE)
_HINTS = ("<", "[", "◁", "assistantfinal", "analysis")  # no mark is without one of these
_PARTS = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # control tokens that marks consist of
_TOKEN_FIRST, _TOKEN_LAST = re.compile(r"<\|\w{2,40}\|>"), re.compile(r"<\|\w{2,40}\|>\Z")
_TAIL, _TAIL_TOKENS = 200, 32  # characters, and tokens, at the end of a prompt in which an opening mark is looked for


def final_part(text: str, begun: bool = False) -> str | None:
    """What a model said after its thoughts.

    It is what follows the last closing mark, or, if nothing does, what was said outside of thoughts before.

    Args:
        text: The reply.
        begun: Whether the prompt had opened the thoughts.

    Returns:
        The text without white space and control tokens such as ``<|im_end|>`` around it; None if the reply has thoughts
        and nothing else: it was cut off, or thinks to the end.
    """
    marks = list(_marks(text))
    if begun:
        thinks = True
    elif not marks:
        return _plain(text)
    else:
        thinks = False
    said: list[str] = []  # outside of thoughts
    place = 0
    for match in marks:
        if match["begins"] is not None:
            said += [] if thinks else [text[place : match.start()]]
            thinks = True
        else:
            said = said if thinks else []  # its opening mark is in the prompt: all before it is thought
            thinks = False
        place = match.end()
    if thinks:
        return None
    return next((plain for each in (text[place:], *reversed(said)) if (plain := _plain(each))), None)


def opens_thoughts(prompt: str) -> bool:
    """Whether a prompt ends with an opening mark, as some chat templates write it."""
    tail = prompt[-_TAIL:]
    last = next(iter([*_marks(tail)][-1:]), None)
    return last is not None and last["begins"] is not None and not tail[last.end() :].strip()


def hidden_tokens(tokenizer: Any) -> set[int] | None:
    """The special tokens that are no marks of thoughts, by id; None if none of a tokenizer's special tokens is one.

    Decoding without special tokens would otherwise join thoughts and answer.

    Args:
        tokenizer: transformers'.
    """
    special = {
        number: str(token)
        for number, token in getattr(tokenizer, "added_tokens_decoder", {}).items()
        if getattr(token, "special", False)
    }
    marks = {number for number, token in special.items() if token in _PARTS or _MARK.fullmatch(token)}
    return set(special) - marks if marks else None


def decoded(tokenizer: Any, tokens: Sequence[int]) -> str:
    """Tokens as text, without special tokens other than marks of thoughts."""
    hidden = hidden_tokens(tokenizer)
    kept = tokens if hidden is None else [each for each in tokens if each not in hidden]
    return str(tokenizer.decode(kept, skip_special_tokens=hidden is None))


def begun_by(tokenizer: Any, prompt: Sequence[int]) -> dict[str, Any]:
    """What a generation's `extra` says of the prompt that it continues: whether its thoughts begin there."""
    tail = str(tokenizer.decode(list(prompt[-_TAIL_TOKENS:]), skip_special_tokens=False))
    return {BEGUN: True} if opens_thoughts(tail) else {}


def _marks(text: str) -> Iterator[re.Match[str]]:
    return _MARK.finditer(text) if any(each in text for each in _HINTS) else iter(())


def _plain(text: str) -> str:
    """A text without white space and control tokens at its ends."""
    plain = text.strip()
    while match := _TOKEN_FIRST.match(plain):
        plain = plain[match.end() :].lstrip()
    while plain.endswith("|>") and (match := _TOKEN_LAST.search(plain)):
        plain = plain[: match.start()].rstrip()
    return plain
