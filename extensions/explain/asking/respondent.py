"""A model that answers questions, under test or as a judge; stored answers are reused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from testbed.extensions.explain.axis import NotApplicableError
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.graph.ops import Answers, refusals_of
from testbed.graph.options import RunOptions
from testbed.identity.describe import digest
from testbed.models.base.capability import NETWORK, GenerationConfig
from testbed.models.model_base import LoadOptions
from testbed.planning.opening import Opener
from testbed.workers.kernels.answering import HOPELESS, Answerer, Output, answered
from testbed.workers.kernels.messages import found_by

if TYPE_CHECKING:
    from testbed.models.base.capability import Message


class Respondent:
    """A model that gets each message only once over all searches and runs.

    Reads answers of served models and of judges from where runs store them, and stores new ones as they arrive.

    Args:
        cell: The cell, which sets precision and random seed.
        name: The model's name.
        seed: The run's ``--seed``.
        device: Its device, if it is not served.

    Attributes:
        sent: Number of messages sent.
        used: Number of answers needed, including stored ones.
    """

    def __init__(self, cell: EvaluatedCell, name: str, seed: int, device: str) -> None:
        self.cell = cell
        self.name = name
        self.seed = seed
        self.device = device
        self.definition = cell.catalog.get_model(name)
        self.sent = self.used = 0
        self._answerers: dict[str, Answerer] = {}

    @cached_property
    def identity(self) -> str:
        """The current digest of model, weights and precision.

        Raises:
            NotApplicableError: If it cannot be opened.
        """
        random = self.cell.random_seed
        options = RunOptions(dtype=self.cell.dtype, seed=random or 0, random_weights=random is not None)
        opened = Opener(self.cell.catalog, options).model(self.name)
        if isinstance(opened, str):
            raise NotApplicableError(f"{self.name} cannot be opened: {opened}")
        return digest([opened.identity, self.cell.dtype])

    @cached_property
    def loaded(self) -> Any:
        """The model.

        Raises:
            NotApplicableError: If its answers are recorded ones.
        """
        loaded = self.definition.load(LoadOptions(self.device, self.cell.dtype, self.cell.random_seed))
        if hasattr(loaded, "coverage"):
            raise NotApplicableError(f"the answers of {self.name} are recorded ones")
        return loaded

    def answers(self, messages: Sequence[Message], config: GenerationConfig) -> list[Output]:
        """Returns its answers and refusals as stored, or the reasons for failed messages.

        Raises:
            RunError: If it fails on every message.
        """
        node = Answers(config).node(self.identity, self.definition, self.seed)
        texts = [found_by(message, self.definition, config) for message in messages]
        asked = dict(zip(texts, messages, strict=True))
        self.used += len(asked)
        known: dict[str, Output] = self._stored(node, list(asked))
        new = {text: message for text, message in asked.items() if text not in known}
        self._answerer(config).answered |= len(new) < len(asked)
        if new:
            known |= self._ask(node, new, config)
        return [known[text] for text in texts]

    def _stored(self, node: str, texts: Sequence[str]) -> dict[str, Output]:
        found: dict[str, Output] = {}
        for name in (refusals_of(node), node):
            answers = zip(texts, self.cell.store.items.read_answers(name, texts), strict=True)
            found |= {text: answer for text, answer in answers if answer is not None}
        return found

    def _ask(self, node: str, messages: Mapping[str, Message], config: GenerationConfig) -> dict[str, Output]:
        answerer = self._answerer(config)
        names = {id(message): text for text, message in messages.items()}

        def keep(came: Iterable[tuple[Message, Output]]) -> None:
            self._store(node, {names[id(message)]: each for message, each in came if answered(each)})

        self.sent += len(messages)
        found = dict(zip(messages, answerer.answer(self.loaded, list(messages.values()), keep), strict=True))
        refused = {text: value for text, value in found.items() if isinstance(value, dict) and not answered(value)}
        self._store(refusals_of(node), refused)
        answerer.give_up_if_hopeless(len(messages), max(len(messages), HOPELESS))
        return found

    def _store(self, node: str, new: Mapping[str, Any]) -> None:
        if new:
            self.cell.store.items.put(node, list(new), list(new.values()))

    def _answerer(self, config: GenerationConfig) -> Answerer:
        """Creates one for each way of generating text, since it keeps track of earlier answers."""
        key = digest(config.spec())
        if key not in self._answerers:
            size, served = self.definition.eval_batch_size, self.definition.resource == NETWORK
            self._answerers[key] = Answerer(self.name, config, size, self.seed, served)
        return self._answerers[key]
