"""Chat completions as OpenAI defined them: messages as requests, replies as generations."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.data.rows import Picture
from testbed.errors import RefusedError, TestbedError, UnreachedError, UnsupportedError, shortened
from testbed.models.base.capability import Generation, GenerationConfig, Message

# HTTP statuses that are about the question. Others, such as 401 for a wrong key, say nothing about it.
REFUSALS = frozenset({400, 413, 422})
OPTIONAL = ("top_p", "top_k", "presence_penalty", "repetition_penalty")  # sent where they are given
CUT = ("length", "max_tokens")  # the finish reasons of answers that are cut off
SEEDS = 2**31  # some servers take no larger ones
LONGEST = 300  # characters of an error of a server that are kept


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
        UnreachedError: If it is an error of the server that may pass.
    """
    if "error" in reply and not reply.get("choices"):  # some servers send errors with status 200
        raise fault(_status(reply["error"]), said(reply["error"]))
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise RefusedError("the reply of the server has no choices")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise RefusedError("the server's content filter kept the answer back")
    text = _text(message.get("content"))
    if text is None:
        refusal = message.get("refusal")
        why = f"the model refused: {said(refusal)}" if refusal else f"the answer has no text (finish_reason {reason!r})"
        raise RefusedError(why)
    return Generation(text, "length" if reason in CUT else "stop", _extra(reply, message, request_id))


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
        error = error.get("message") or error.get("detail") or error.get("error") or error
    return " ".join(str(error).split())[:LONGEST] or "no reason given"


def _status(error: Any) -> int:
    """The HTTP status that an error names; 500 if it names none."""
    code = str(error.get("code")) if isinstance(error, dict) else ""
    return int(code) if len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600 else 500


def _text(content: Any) -> str | None:
    """The text of an answer, which some servers give in parts."""
    if isinstance(content, list):
        parts = [each.get("text") for each in content if isinstance(each, dict) and each.get("type") == "text"]
        content = "".join(map(str, parts)) if parts else None
    return content if isinstance(content, str) else None


def _extra(reply: Mapping[str, Any], message: Mapping[str, Any], request_id: str | None) -> dict[str, Any]:
    read, written = tokens(reply)
    found = {
        "prompt_tokens": read,
        "output_tokens": written,
        "model": reply.get("model"),
        "system_fingerprint": reply.get("system_fingerprint"),
        "request_id": request_id or reply.get("id"),
        "created": reply.get("created"),
        "thinking": message.get("reasoning_content") or message.get("reasoning"),
    }
    return {name: value for name, value in found.items() if value and isinstance(value, str | int)}
