"""VLMEvalKit's base class of models behind an API."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from testbed.calls import reason_of
from testbed.standins.vlmevalkit.messages import MessageForms
from testbed.standins.vlmevalkit.smp.log import get_logger

log = get_logger(__name__)


class BaseAPI(MessageForms):
    """A model with ``generate_inner(inputs, **kwargs)``, which returns (code, answer, log); the code 0 is success.

    Args:
        retry: The number of attempts.
        wait: Seconds between two attempts.
        system_prompt: The system prompt of the class.
        verbose: Logs failures.
        fail_msg: The result if there is no answer.
        **kwargs: Passed to ``generate_inner`` each time.
    """

    INTERLEAVE = True
    INSTALL_REQ = False

    def __init__(
        self,
        retry: int = 10,
        wait: float = 1,
        system_prompt: str | None = None,
        verbose: bool = True,
        fail_msg: str = "Failed to obtain answer via API.",
        **kwargs: Any,
    ) -> None:
        self.retry = retry
        self.wait = wait
        self.system_prompt = system_prompt
        self.verbose = verbose
        self.fail_msg = fail_msg
        self.default_kwargs = kwargs

    def generate(self, message: Any, **kwargs: Any) -> Any:
        """The answer to a message in any form, with a log that is a dictionary; or ``fail_msg`` and the reason."""
        return self._tried(self.generate_inner, self.preproc_content(message), kwargs)

    def chat(self, messages: Any, **kwargs: Any) -> Any:
        """The answer to a conversation; no turn is left out if it fails."""
        return self._tried(self.chat_inner, self.preproc_turns(messages), kwargs)

    def chat_inner(self, inputs: Any, **kwargs: Any) -> Any:
        """The answer to a conversation, as ``generate_inner`` gives it."""
        kwargs.pop("dataset", None)
        return self.generate_inner(inputs, **kwargs)

    def working(self) -> bool:
        """Checks whether it answers."""
        answer = self.generate("hello")
        return isinstance(answer, str) and bool(answer) and self.fail_msg not in answer

    def _tried(self, ask: Callable[..., Any], content: Any, kwargs: dict[str, Any]) -> Any:
        told: Any = None
        for attempt in range(self.retry):
            if attempt:
                time.sleep(self.wait)
            try:
                code, answer, told = ask(content, **{**self.default_kwargs, **kwargs})
            except Exception as error:  # as VLMEvalKit: whatever it is, it is asked again
                told = reason_of(error)
            else:
                if code == 0 and answer and self.fail_msg not in answer:
                    return {"prediction": answer, "extra_records": told} if isinstance(told, dict) else answer
            if self.verbose:
                log.info("attempt %d failed: %.300s", attempt + 1, getattr(told, "text", told))
        return f"{self.fail_msg} {getattr(told, 'text', told)!s:.200}"
