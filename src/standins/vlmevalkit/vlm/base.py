"""VLMEvalKit's base class of models."""

from __future__ import annotations

from typing import Any

from testbed.errors import UnsupportedError
from testbed.standins.vlmevalkit.messages import MessageForms


class BaseModel(MessageForms):
    """A model with ``generate_inner(message, dataset=None)``, which returns a text."""

    def generate(self, message: Any, dataset: str | None = None) -> Any:
        """The answer to a message in any form."""
        return self.generate_inner(self.preproc_content(message), dataset)

    def chat(self, messages: Any, dataset: str | None = None) -> Any:
        """The answer to a conversation; no turn is left out if it fails."""
        inner = getattr(self, "chat_inner", None)
        if not callable(inner):
            raise UnsupportedError(f"{type(self).__name__} has no chat_inner(message, dataset)")
        return inner(self.preproc_turns(messages), dataset=dataset)
