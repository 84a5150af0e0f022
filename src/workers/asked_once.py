"""Answers of served models cost money: each question is asked once, whichever setting asks, in whichever run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from testbed.graph.ops import Answers
from testbed.graph.passes import PassCell
from testbed.graph.requests import message_text
from testbed.models.base.capability import NETWORK, GenerationConfig, Message
from testbed.workers.context import Context
from testbed.workers.kernels.answering import Answerer, Output, answered

if TYPE_CHECKING:
    from testbed.models.model_base import ModelDefinition


class AskedOnce:
    """Looks up the answers of a served model in the store, asks for the others, and stores them as they come.

    An answer is found by all that it depends on: the model, how text is generated, and what was said, with the bytes of
    the pictures. Failed answers are not stored. Models that run here are asked as ever.
    """

    def __init__(self, context: Context, cell: PassCell, answerer: Answerer) -> None:
        definition = self.definition = context.catalog.get_model(cell.model)
        self.context = context
        self.model = cell.model
        self.answerer = answerer
        self.served = definition.resource == NETWORK
        self.anew = cell.model in context.job.anew
        self.node = Answers(answerer.config).node(cell.model_identity, definition, context.options.seed)

    def answer(self, loaded: Any, messages: Sequence[Message]) -> list[Output]:
        """As `Answerer.answer`."""
        if not self.served:
            return self.answerer.answer(loaded, messages)
        texts = [found_by(message, self.definition, self.answerer.config) for message in messages]
        answers: dict[str, Output] = self._stored(texts)
        asked = {text: message for text, message in zip(texts, messages, strict=True) if text not in answers}
        names = {id(message): text for text, message in asked.items()}
        outputs = self.answerer.answer(
            loaded,
            list(asked.values()),
            lambda came: self._store({names[id(message)]: each for message, each in came if answered(each)}),
        )
        answers.update(zip(asked, outputs, strict=True))
        return [answers[text] for text in texts]

    def _stored(self, texts: Sequence[str]) -> dict[str, Output]:
        wanted = list(dict.fromkeys(text for text in texts if not self.anew or (self.node, text) in self.context.asked))
        found = zip(wanted, self.context.store.items.read_answers(self.node, wanted), strict=True)
        answers = {text: answer for text, answer in found if answer is not None}
        self.context.found[self.model] += len(answers)
        self.answerer.answered |= bool(answers)
        return answers

    def _store(self, new: Mapping[str, dict[str, Any]]) -> None:
        if new:
            self.context.store.items.put(self.node, list(new), list(new.values()), replace=self.anew)
            self.context.asked.update((self.node, text) for text in new)


def found_by(message: Message, definition: ModelDefinition, config: GenerationConfig) -> str:
    """The text by which a model's answer is found; a sample's id counts only where answers depend on it."""
    if getattr(definition, "by_content", False):
        message = replace(message, sample=message.sample if config.temperature > 0 else "", data_set="")
    return message_text(message)
