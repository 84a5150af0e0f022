"""Sends messages to a generative model, in batches, and copes with those that it cannot answer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from testbed.calls import reason_of
from testbed.data.perturbation import sample_seed
from testbed.data.reader import seed_everything
from testbed.errors import RunError
from testbed.memory import DeviceError, is_device_error, is_out_of_memory
from testbed.models.base.capability import GenerationConfig, Message
from testbed.tasks.parts.generation import failure, output_of

log = logging.getLogger("testbed")

SAMPLING = "sampling"  # the key of the random numbers of sampling models, besides the sample
HOPELESS = 8  # failed messages after which a model that has never answered is given up


class Answerer:
    """A model's answers to messages.

    Args:
        model: Its name.
        config: How text is generated.
        size: Messages at once; smaller when they do not fit into memory.
        seed: The run's ``--seed``.

    Attributes:
        answered: Whether the model has ever answered.
    """

    def __init__(self, model: str, config: GenerationConfig, size: int, seed: int) -> None:
        self.model = model
        self.config = config
        self.size = size
        self.seed = seed
        self.answered = False
        self._tried = self._failed = 0  # numbers of messages before the first answer
        self._reason = ""

    def answer(self, loaded: Any, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The outputs for some messages; if a batch fails, its messages are retried one by one."""
        if not messages:
            return []
        if self.config.temperature > 0 and len(messages) > 1:
            # One by one, so that sampling for one message does not depend on the others.
            return [output for message in messages for output in self.answer(loaded, [message])]
        try:
            if self.config.temperature > 0:
                seed_everything(sample_seed(SAMPLING, messages[0].sample, self.seed))
            generations = loaded.generate(messages, self.config)
            self.answered = True
            return [output_of(each) for each in generations]
        except Exception as error:
            if is_device_error(error):
                raise DeviceError(str(error)) from error
            if len(messages) == 1:
                log.debug("%s cannot answer %s", self.model, messages[0].sample, exc_info=True)
                self._failed, self._reason = self._failed + 1, reason_of(error)
                return [failure(self._reason)]
            halves = is_out_of_memory(error)
        middle = len(messages) // 2
        if halves:
            self.size = max(middle, 1)
            parts = [messages[:middle], messages[middle:]]
        else:
            parts = [[message] for message in messages]
        return [output for part in parts for output in self.answer(loaded, part)]

    def give_up_if_hopeless(self, tried: int, total: int) -> None:
        """Gives up a model that has failed on every message so far.

        Args:
            tried: The number of samples since the last call, those included that could not be read.
            total: The number of all.

        Raises:
            RunError: If there is no hope.
        """
        self._tried += tried
        if not self.answered and self._failed and (self._failed >= HOPELESS or self._tried >= total):
            raise RunError(f"it fails on every sample: {self._reason}")
