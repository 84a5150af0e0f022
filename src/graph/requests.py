"""Requests as texts: by them the values are found in the store, and as such they are sent to workers."""

from __future__ import annotations

import json
from typing import Any

from testbed.data.rows import Picture
from testbed.errors import DefinitionError
from testbed.graph.nodes import Request
from testbed.identity.describe import digest_bytes
from testbed.models.base.capability import Message

PICTURE = "picture"


def request_text(request: Request) -> str:
    """A request as the text by which its value is found: itself, or a message as JSON.

    Raises:
        DefinitionError: If a message holds anything but texts.
    """
    if isinstance(request, str):
        return request
    parts = [part for turn in request.turns for part in turn.parts]
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    if wrong is not None:
        raise DefinitionError(f"a message to a judge holds texts, but this one holds a {type(wrong).__name__}")
    return message_text(request)


def message_text(message: Message) -> str:
    """A message as JSON, its pictures as digests: of their bytes, or of the pixels of an image of PIL."""
    return json.dumps(_content(message), sort_keys=True, ensure_ascii=True)


def message_of(text: str) -> Message:
    """The message, of texts alone, that was written as this text."""
    return _message(json.loads(text))


def _message(content: dict[str, Any]) -> Message:
    history = [_message(turn) for turn in content.get("history", ())]
    return Message(content["parts"], content["role"], content["sample"], history, content.get("data_set", ""))


def _content(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {
        "parts": [part if isinstance(part, str) else {PICTURE: _digest(part)} for part in message.parts],
        "role": message.role,
        "sample": message.sample,
    }
    if message.history:
        found["history"] = [_content(turn) for turn in message.history]
    if message.data_set:
        found["data_set"] = message.data_set
    return found


def _digest(picture: Any) -> str:
    if isinstance(picture, Picture):
        return picture.digest
    return digest_bytes(f"{picture.mode} {picture.size}".encode(), picture.tobytes())
