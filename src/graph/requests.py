"""Requests as texts: by them the values are found in the store, and as such they are sent to workers."""

from __future__ import annotations

import json

from testbed.errors import DefinitionError
from testbed.graph.nodes import Request
from testbed.models.base.capability import Message


def request_text(request: Request) -> str:
    """A request as the text by which its value is found: itself, or a message as JSON.

    Raises:
        DefinitionError: If a message holds anything but texts.
    """
    if isinstance(request, str):
        return request
    wrong = next((part for part in request.parts if not isinstance(part, str)), None)
    if wrong is not None:
        raise DefinitionError(f"a message to a judge holds texts, but this one holds a {type(wrong).__name__}")
    content = {"parts": list(request.parts), "role": request.role, "sample": request.sample}
    return json.dumps(content, sort_keys=True, ensure_ascii=True)


def message_of(text: str) -> Message:
    """The message that was written as this text."""
    content = json.loads(text)
    return Message(content["parts"], content["role"], content["sample"])
