"""Definitions of models that answer in text, such as captioners."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from testbed.data.perturbation import sample_seed
from testbed.data.rows import Picture, Row
from testbed.errors import DefinitionError, RunError
from testbed.models.base.capability import GENERATE, Generation, GenerationConfig, Message
from testbed.models.base.definition import LoadOptions, ModelDefinition

SAMPLING = "sampling"  # the key of the random numbers of sampling models, besides the sample


class Generator(ModelDefinition):
    """A model that answers messages in text.

    Args:
        name: Unique in the registry.
        generator_loader: Called without arguments, returns an object with ``generate(messages, config)``, which maps
            a list of `Message` and a `GenerationConfig` to one `Generation` for each message, or to an exception
            where there is no answer; it may also raise. An answer must depend only on its message and the
            configuration, not on other messages. If the object has ``eval()`` or
            ``to(device)``, they are called first; a result other than None replaces the object. It runs without
            gradients, at the precision of the run (torch.autocast).
        eval_batch_size: The number of messages per batch; if ``resource`` is ``"network"``, each call gets one message,
            and this number of calls run at the same time, in threads.
        generation: Fields of `GenerationConfig` that the model is used with, such as ``max_new_tokens``; settings may
            override them.
        prompt: The model's own prompt for questions: takes a `Row` and the name of the data set, returns the turns of
            the user (lists of texts and `Picture`), or None for the data set's prompt.
        **options: See `ModelDefinition`; ``random_loader`` returns such an object too.

    Attributes:
        sees_images: True if it needs images.
        by_content: True if an answer depends only on the texts and images, not on the sample or data set. A
            served model then answers equal questions of all samples and settings once.
        whole_ranges: True if it takes all messages of a range of samples in one call, as many as ``eval_batch_size``
            allows, whatever ``--batch-size`` is, and draws each answer by the seed that `drawn_by` gives.
    """

    capabilities = frozenset({GENERATE})
    needs_torch = False

    def __init__(
        self,
        name: str,
        generator_loader: Callable[[], Any],
        eval_batch_size: int = 16,
        *,
        generation: Mapping[str, Any] | None = None,
        prompt: Callable[[Row, str], Sequence[Sequence[str | Picture]] | None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(name, options.pop("transform", None), eval_batch_size, **options)
        if not callable(generator_loader):
            raise DefinitionError(f"model {name!r}: generator_loader must be a function without arguments")
        self.generator_loader = generator_loader
        self.generation = dict(generation or {})
        self.prompt = prompt

    def batch_size(self, adversarial: bool, override: int | None = None) -> int:
        """See `ModelDefinition.batch_size`."""
        return super().batch_size(adversarial, None if self.whole_ranges else override)

    def spec(self) -> dict[str, Any]:
        """Returns what determines the answers besides the weights, and the generation options."""
        own = {"prompt": self.prompt} if self.prompt is not None else {}
        return own | {
            "arch": self.arch,
            "transform": self.transform,
            "normalization": self.normalization,
            "generator": self.architecture or self.generator_loader,
        }

    def make_network(self) -> Any:
        """The result of ``generator_loader``."""
        return self.generator_loader()

    def load(self, options: LoadOptions) -> LoadedGenerator:
        """The loaded generator."""
        return LoadedGenerator(self, self._network(options), options)


class LoadedGenerator:
    """A generator on its device."""

    def __init__(self, definition: Generator, generator: Any, options: LoadOptions) -> None:
        self.definition = definition
        self.options = options
        for method, arguments in (("eval", ()), ("to", (options.device,))):
            function = getattr(generator, method, None)
            if callable(function):
                made = function(*arguments)
                generator = generator if made is None else made
        if not callable(getattr(generator, "generate", None)):
            raise DefinitionError(
                f"model {definition.name!r}: generator_loader must return an object with generate(messages, config),"
                f" not {type(generator).__name__}"
            )
        self.generator = generator

    def prompt_for(self, row: Row, data_set: str) -> Sequence[Sequence[str | Picture]] | None:
        """The model's own turns of the user for a row; None if it takes the data set's prompt."""
        prompt = self.definition.prompt
        return None if prompt is None else prompt(row, data_set)

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """Returns one generation for each message, in their order; an exception for a message without an answer.

        Raises:
            RunError: If the generator returns something else.
        """
        if not messages:
            return []
        with self._precision():
            answers = self.generator.generate(list(messages), config)
        if not isinstance(answers, list | tuple) or len(answers) != len(messages):
            got = f"{len(answers)}" if isinstance(answers, list | tuple) else type(answers).__name__
            raise RunError(
                f"{self.definition.name}: a list of {len(messages)} generations was expected, one for each message;"
                f" got {got}"
            )
        for answer in answers:
            if isinstance(answer, Exception):
                continue
            if not isinstance(answer, Generation) or not isinstance(answer.text, str):
                raise RunError(f"{self.definition.name}: a Generation with a text was expected, got {answer!r:.80}")
            if not isinstance(answer.finish_reason, str):
                raise RunError(
                    f"{self.definition.name}: the finish_reason of a Generation is a text, got"
                    f" {answer.finish_reason!r:.80}"
                )
        return list(answers)

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        """Disables gradients and sets the run's precision; no effect if torch is not in use."""
        if "torch" not in sys.modules:
            return contextlib.nullcontext()
        import torch

        from testbed.models.base.runtime import autocast

        stack = contextlib.ExitStack()
        stack.enter_context(torch.no_grad())
        stack.enter_context(autocast(self.options))
        return stack


def drawn_by(message: Message, seed: int) -> int:
    """Returns the seed for drawing the answer to a message: it follows from the sample, not from other messages.

    Args:
        message: The message.
        seed: The configuration's seed, or the run's.
    """
    return sample_seed(SAMPLING, message.sample, seed)


def ended(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Cuts a text at the first of some strings, and returns whether one is in it; empty strings end nothing."""
    places = [place for stop in stops if stop and (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)
