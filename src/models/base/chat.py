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

# HTTP statuses that are about the question. Others, such as 401 for a wrong key, say nothing about it.
REFUSALS = frozenset({400, 413, 422})
OPTIONAL = ("top_p", "top_k", "presence_penalty", "repetition_penalty")  # sent where they are given
# The finish reasons of answers that are cut off, and of those that a server broke off, in lower case.
CUT = frozenset(
    "length max_tokens max_new_tokens max_output_tokens max_length model_length model_context_window_exceeded".split()
)
BROKEN = re.compile(r"error|abort|cancel|interrupt|fail|time_?d?_?out|network|overload|insufficient|unavailable")
SEEDS = 2**31  # some servers take no larger ones
LONGEST = 300  # characters of an error of a server that are kept
HIDDEN = "(thoughts that the server does not show)"
_TOLD = ("message", "detail", "error", "msg", "error_msg", "error_message", "errors")  # where servers give reasons
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "thoughts", "reasoning_details")  # fields of messages
_THOUGHT = re.compile("think|thought|reason")  # in the type of a part of a message
_IN_THOUGHTS, _TEXTS = ("thinking", "reasoning", "text", "summary", "content"), ("text", "output_text")


def request_of(
    message: Message, config: GenerationConfig, limit: str = "max_tokens", image_detail: str | None = None
) -> dict[str, Any]:
    """The body of a request, without the name of the model.

    Args:
        message: The message; its history goes before it.
        config: How text is generated.
        limit: How the server calls the largest number of new tokens.
        image_detail: OpenAI's ``detail`` of images: ``"low"``, ``"high"`` or ``"auto"``.

    Raises:
        UnsupportedError: If it takes what servers do not offer.
        SampleError: If a picture is in no known format.
    """
    if config.num_beams != 1:
        raise UnsupportedError(f"a served model has no beam search, but num_beams is {config.num_beams}; leave it out")
    system = [{"role": "system", "content": config.system}] if config.system else []
    turns = [{"role": each.role, "content": _content(each.parts, image_detail)} for each in message.turns]
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
    return [_part(each, image_detail) for each in parts if each != ""]


def _part(part: Any, image_detail: str | None) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image = {"url": _data_url(part)}
    return {"type": "image_url", "image_url": image | ({"detail": image_detail} if image_detail else {})}


def _data_url(image: Any) -> str:
    """An encoded picture as its own bytes, an image of PIL as a PNG file."""
    if isinstance(image, Picture):
        image = image.eight_bits()
        mime, data = image.mime, image.data
    else:
        file = io.BytesIO()
        image.save(file, "PNG")
        mime, data = "image/png", file.getvalue()
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


# Replies ----------------------------------------------------------------------------------------------------------


def reply_of(text: str) -> dict[str, Any]:
    """The JSON object of a reply.

    Raises:
        UnreachedError: If it is none.
    """
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise UnreachedError(f"the reply of the server is not a JSON object: {shortened(text)}")
    return reply


def generation_of(reply: Mapping[str, Any], request_id: str | None) -> Generation:
    """What a reply says, with what is worth keeping of it.

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
            raise fault(_status(holder["error"]), said(holder["error"]))
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _without_choices(reply)
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise RefusedError("the server's content filter kept the answer back")
    if BROKEN.search(str(reason).lower()):
        raise UnreachedError(f"the server broke the answer off (finish_reason {reason!r})")
    ended = CUT_OFF if str(reason).lower() in CUT else "stop"
    text, thoughts = text_and_thoughts(message)
    if text is None and message.get("refusal"):
        raise RefusedError(f"the model refused: {said(message['refusal'])}")
    if text is None and not thoughts and ended != CUT_OFF:
        raise RefusedError(f"the answer has no text (finish_reason {reason!r})")
    return Generation(text or "", ended, _extra(reply, thoughts, request_id))


def tokens(reply: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of tokens of prompt and answer; 0 where the server does not say."""
    usage = reply.get("usage")
    counts = [usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")]
    read, written = (each if isinstance(each, int) else 0 for each in counts)
    return read, written


def fault(status: int, text: str) -> TestbedError:
    """The error that an HTTP status stands for: a refusal of this question, or nothing about it."""
    kind = RefusedError if status in REFUSALS else UnreachedError
    return kind(f"HTTP {status}: {text}")


def said(error: Any) -> str:
    """The message in an error of a server, in one line."""
    if isinstance(error, dict):
        error = next((error[name] for name in _TOLD if error.get(name)), error)
    return " ".join(str(error).split())[:LONGEST] or "no reason given"


def _without_choices(reply: Mapping[str, Any]) -> TestbedError:
    """What a reply without an answer stands for: a server that has none just now, unless it says otherwise."""
    kind = RefusedError if _status(reply) in REFUSALS else UnreachedError
    code = reply.get("code") or reply.get("error_code")
    told = [f"code {code}"] if code else []
    told += [said(reply)] if any(reply.get(name) for name in _TOLD) else []
    return kind(": ".join(["the reply of the server has no choices", *told]))


def _status(error: Any) -> int:
    """The HTTP status that an error names; 500 if it names none."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600 else 500


def text_and_thoughts(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """The text of an answer, which some servers give in parts, and the thoughts that stand apart from it.

    Returns:
        The text; None if there is none. And the thoughts; empty if there are none, and `HIDDEN` if they are not shown.
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
    return "".join(texts) if texts else None, "".join(thoughts) or next((each for each in given if each.strip()), "")


def _flat(part: Any) -> str:
    """The texts in thoughts, which servers give as texts, as objects or as lists of these."""
    if isinstance(part, dict):
        part = [part[name] for name in _IN_THOUGHTS if part.get(name)]
    return "".join(map(_flat, part)) if isinstance(part, list) else part if isinstance(part, str) else ""


def _extra(reply: Mapping[str, Any], thoughts: str, request_id: str | None) -> dict[str, Any]:
    read, written = tokens(reply)
    found = {
        "prompt_tokens": read,
        "output_tokens": written,
        "model": reply.get("model"),
        "system_fingerprint": reply.get("system_fingerprint"),
        "request_id": request_id or reply.get("id"),
        "created": reply.get("created"),
        THINKING: thoughts,
    }
    return {name: value for name, value in found.items() if value and isinstance(value, str | int)}
