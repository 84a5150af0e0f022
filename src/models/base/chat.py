"""Chat completions as OpenAI defined them: messages as requests, replies as generations."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.data.rows import Picture
from testbed.errors import RefusedError, TestbedError, UnreachedError, UnsupportedError, shortened
from testbed.models.base.capability import CUT_OFF, Generation, GenerationConfig, Message
from testbed.models.base.thoughts import THINKING

# HTTP statuses that are about the question. Others, such as 401 for a wrong key, are not.
REFUSALS = frozenset({400, 413, 422})
FORBIDDEN = 403
OPTIONAL = ("top_p", "top_k", "presence_penalty", "repetition_penalty")  # sent where they are given
# Finish reasons by the words in them, since each server has its own. A reason with none of these words ends an answer
# as usual; without a text it is a refusal, unless it only means that the answer ended.
WITHHELD = re.compile(
    r"filter|safety|recitation|prohibit|block|spii|refus|guardrail|sensitive|moderat|content_?policy|flagged|inspection"
    r"|toxic|harm|unsafe|violat"
)
CUT = re.compile(r"length|max_?\w*token|token_?limit|context_?window")
BROKEN = re.compile(
    r"error|abort|cancel|interrupt|fail|time_?d?_?out|network|overload|insufficient|unavailable|incomplete|pre_?empt"
    r"|connect|lost|reset|closed|shut_?down|kill|evict|drop|crash|exception|restart|unfinished|in_?progress|pending"
    r"|pause|^(un)?load$"
)
ENDED = re.compile(r"|none|null|(finish_?reason\W*)?(stop|eos|end|complete|finish|done|natural|normal|success)\w*")
SEEDS = 2**31  # some servers take no larger ones
LONGEST = 300  # characters of an error of a server that are kept
HIDDEN = "(thoughts that the server does not show)"
_TOLD = ("message", "detail", "error", "msg", "error_msg", "error_message", "errors")  # where servers give reasons
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thoughts", "reasoning_details")  # fields of messages
_THOUGHT = re.compile("think|thought|reason")  # in the type of a part of a message
_WITHHELD_FIELD = re.compile(r"(?i)block|filtered|refus|flagged|sensitive")
_DEEPEST = 10  # levels of a reply in which a block is looked for
_REASON_FIELD = re.compile(r"(?i)reason|code|type|status")
_OTHERWISE = re.compile("unspecified|account|billing|quota|rate_?limit|api_?key|^(none|false|null|0)$")
# Faults of the account or the place of whoever asks: some servers report them as faults of the question.
_ACCOUNT = re.compile(
    r"(?i)\bcredits?\b|billing|\bquota\b|budget|payment|arrear|api[ _-]?key|(?:user|your) location|in good standing"
    r"|subscription|(?:your|the) (?:account|organi[sz]ation|plan)\b"
)
_AGAINST_RULES = re.compile(r"(?i)violat\w+ .{0,60}(?:guideline|polic|terms)|\bflagged\b|\bmoderation\b|safety system")
_IN_THOUGHTS, _TEXTS = ("thinking", "reasoning", "text", "summary", "content"), ("text", "output_text")


def request_of(
    message: Message, config: GenerationConfig, limit: str = "max_tokens", image_detail: str | None = None
) -> dict[str, Any]:
    """The body of a request, without the name of the model.

    Args:
        message: The message; its history goes before it.
        config: The options of text generation.
        limit: The server's name of the largest number of new tokens.
        image_detail: OpenAI's ``detail`` of images: ``"low"``, ``"high"`` or ``"auto"``.

    Raises:
        UnsupportedError: If it takes what servers do not offer.
        SampleError: If a picture cannot be decoded, and is in a format that not every server reads.
    """
    if config.num_beams != 1:
        raise UnsupportedError(f"a served model has no beam search, but num_beams is {config.num_beams}; leave it out")
    system = [{"role": "system", "content": config.system}] if config.system else []
    turns = [{"role": turn.role, "content": _content(turn.parts, image_detail)} for turn in message.turns]
    body: dict[str, Any] = {
        "messages": [*system, *turns],
        "temperature": config.temperature,
        limit: config.max_new_tokens,
    }
    usual = GenerationConfig()
    body |= {name: getattr(config, name) for name in OPTIONAL if getattr(config, name) != getattr(usual, name)}
    if config.stop:
        body["stop"] = list(config.stop)
    if config.temperature > 0 and config.seed is not None:
        body["seed"] = config.seed % SEEDS
    return body


def _content(parts: Sequence[Any], image_detail: str | None) -> str | list[dict[str, Any]]:
    """The parts of a message; a single text as it is, since servers of text models take nothing else."""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [_part(part, image_detail) for part in parts if part != ""]


def _part(part: Any, image_detail: str | None) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image = {"url": _data_url(part)}
    return {"type": "image_url", "image_url": image | ({"detail": image_detail} if image_detail else {})}


def _data_url(image: Any) -> str:
    """An encoded picture as its own bytes if every server reads its format, else as PNG; an image of PIL as PNG."""
    if isinstance(image, Picture):
        image = image.for_servers()
        mime, data = image.mime, image.data
    else:
        file = io.BytesIO()
        image.save(file, "PNG")
        mime, data = "image/png", file.getvalue()
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


# Replies ----------------------------------------------------------------------------------------------------------


def reply_of(text: str) -> dict[str, Any]:
    """The JSON object of a reply; raises UnreachedError if it is not one."""
    try:
        reply = json.loads(text.removeprefix("\ufeff"), strict=False)  # some servers send raw line breaks in strings
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise UnreachedError(f"the reply of the server is not a JSON object: {shortened(text)}")
    return reply


def generation_of(reply: Mapping[str, Any], request_id: str | None) -> Generation:
    """Returns the answer in a reply, with the metadata worth keeping.

    Args:
        reply: The JSON object.
        request_id: The server's name of the request.

    Raises:
        RefusedError: If it holds no answer: a refusal, a content filter, no text.
        UnreachedError: If it is an error of the server that may pass, or the server broke the answer off.
    """
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (reply, choice):  # some servers send errors with status 200
        if isinstance(holder, dict) and holder.get("error"):
            if blocked(holder["error"]):
                raise RefusedError(f"the server refused: {said(holder['error'])}")
            raise fault(_status(holder["error"]), said(holder["error"]))
    reason = choice.get("finish_reason") if isinstance(choice, dict) else None
    native = choice.get("native_finish_reason") if isinstance(choice, dict) else None  # of the server behind a router
    reason = native if WITHHELD.search(_plain(native)) else reason
    message = choice.get("message") if isinstance(choice, dict) else None
    if message is None and not ENDED.fullmatch(_plain(reason)):  # the reason alone explains why there is none
        message = {}
    if not isinstance(message, dict):
        raise _without_message(reply, choice)
    text, thoughts = text_and_thoughts(message)
    ended = _ending(reason, text, thoughts, refusal_in(message))
    return Generation(text, ended, _extra(reply, thoughts, request_id))


def _ending(reason: Any, text: str, thoughts: str, refusal: str) -> str:
    """The finish reason of an answer.

    Raises:
        RefusedError: If there is a refusal in its place, or it was kept back.
        UnreachedError: If the server broke it off.
    """
    plain = _plain(reason)
    if refusal:
        raise RefusedError(f"the model refused: {refusal}")
    if WITHHELD.search(plain):
        raise RefusedError(f"the server kept the answer back (finish_reason {reason!r})")
    if CUT.search(plain):
        return CUT_OFF
    if BROKEN.search(plain):
        raise UnreachedError(f"the server broke the answer off (finish_reason {reason!r})")
    if not text.strip() and not thoughts and not ENDED.fullmatch(plain):
        raise RefusedError(f"the answer has no text (finish_reason {reason!r})")
    return "stop"


def _plain(reason: Any) -> str:
    """A finish reason in lower case, its words joined by underscores."""
    return "" if reason is None else re.sub(r"[\s-]+", "_", str(reason).strip().lower())


def refusal_in(message: Mapping[str, Any]) -> str:
    """The refusal in a message, which stands in a field or a part of its own; empty if there is none."""
    content = message.get("content")
    for holder in (message, *(content if isinstance(content, list) else [])):
        if isinstance(holder, dict) and holder.get("refusal"):
            return said(holder["refusal"])
    return ""


def tokens(reply: Mapping[str, Any]) -> tuple[int, int]:
    """Returns the numbers of tokens of prompt and answer; 0 where the server does not report them."""
    usage = reply.get("usage")
    counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
    read, written = (count if isinstance(count, int) else 0 for count in counts)
    return read, written


def fault(status: int, text: str, body: Any = None) -> TestbedError:
    """Returns the error for an HTTP status: a refusal of this question, or a failure unrelated to it.

    Args:
        status: The HTTP status.
        text: The server's text.
        body: The reply, which may report that the question was blocked.
    """
    against = blocked(body) or (status in {*REFUSALS, FORBIDDEN} and _AGAINST_RULES.search(text))
    refused = against or (status in REFUSALS and not _ACCOUNT.search(f"{text} {body}"))
    return (RefusedError if refused else UnreachedError)(f"HTTP {status}: {text}")


def blocked(value: Any, key: str = "", depth: int = 0) -> str:
    """Finds the reason in a reply why a question was blocked, such as ``blockReason: SAFETY``; else empty.

    The reason is a field with such a name and a true value, or a field with a code or a reason.
    """
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else ((key, item) for item in value)
        deeper = (blocked(part, str(name), depth + 1) for name, part in parts if depth < _DEEPEST)
        return next(filter(None, deeper), "")
    named = _WITHHELD_FIELD.search(key) and (value is True or (isinstance(value, str) and bool(_plain(value))))
    coded = _REASON_FIELD.search(key) and isinstance(value, str) and WITHHELD.search(_plain(value))
    if not (named or coded) or (isinstance(value, str) and _OTHERWISE.search(_plain(value))):
        return ""
    return f"{key}: {said(value)}"


def said(error: Any) -> str:
    """The message in an error of a server, in one line."""
    if isinstance(error, dict):
        error = next((error[name] for name in _TOLD if error.get(name)), error)
    return " ".join(str(error).split())[:LONGEST] or "no reason given"


def _without_message(reply: Mapping[str, Any], choice: Any) -> TestbedError:
    """Classifies a reply without a message: an unavailable server, unless it gives another reason."""
    why = blocked(reply)
    code = reply.get("code") or reply.get("error_code")
    told = [f"code {code}"] if code else []
    told += [said(reply)] if any(reply.get(name) for name in _TOLD) else []
    told += [why] if why else []
    what = "no choices" if choice is None else "no message"
    kind = RefusedError if why or _status(reply) in REFUSALS else UnreachedError
    return kind(": ".join([f"the reply of the server has {what}", *told]))


def _status(error: Any) -> int:
    """The HTTP status that an error names; 500 if it names none."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600 else 500


def text_and_thoughts(message: Mapping[str, Any]) -> tuple[str, str]:
    """The text of an answer, which some servers give in parts, and the thoughts that stand apart from it.

    Returns:
        The text; empty if there is none. And the thoughts; empty if there are none, and `HIDDEN` if they are not shown.
    """
    content = message.get("content")
    texts, thoughts = [], []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and (_THOUGHT.search(str(part.get("type"))) or part.get("thought") is True):
            thoughts.append(_flat(part) or HIDDEN)
        elif isinstance(part, dict) and part.get("type", "text") in _TEXTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
    given = [_flat(message[name]) or HIDDEN for name in _THOUGHTS if message.get(name)]
    return "".join(texts), "".join(thoughts) or next((text for text in given if text.strip()), "")


def _flat(part: Any) -> str:
    """The texts in thoughts, which servers give as texts, as objects or as lists of these."""
    if isinstance(part, dict):
        part = [part[name] for name in _IN_THOUGHTS if part.get(name)]
    return "".join(map(_flat, part)) if isinstance(part, list) else part if isinstance(part, str) else ""


def _extra(reply: Mapping[str, Any], thoughts: str, request_id: str | None) -> dict[str, Any]:
    read, written = tokens(reply)
    values = {
        "prompt_tokens": read,
        "output_tokens": written,
        "model": reply.get("model"),
        "system_fingerprint": reply.get("system_fingerprint"),
        "request_id": request_id or reply.get("id"),
        "created": reply.get("created"),
        THINKING: thoughts,
    }
    return {name: value for name, value in values.items() if value and isinstance(value, str | int)}
