"""Sends messages to a generative model, and copes with those that it cannot answer or that do not get through."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, TypeGuard

from testbed.calls import catchable, reason_of
from testbed.data.reader import seed_everything
from testbed.errors import RefusedError, RunError, SampleError, UnreachedError
from testbed.graph.passes import ROUNDS
from testbed.inputs import active, use_in_this_thread
from testbed.models.base.capability import FAILED, NETWORK, Generation, GenerationConfig, Message, is_answer
from testbed.models.base.generator import drawn_by
from testbed.process.oom import DeviceError, is_device_error, is_out_of_memory
from testbed.tasks.parts.generation import failure, output_of
from testbed.tracing import access_log

BUSY = frozenset({408, 425, 429})  # besides 500 and above: HTTP statuses after which asking again may help
PASSING = (UnreachedError, ConnectionError, TimeoutError)
# Clients that are built on requests, httpx, aiohttp or a vendor's library raise classes of their own.
CLASSES = re.compile(r"Connect\w*Error$|Timeout(Error|Exception)?$|RateLimit|ServiceUnavailable")
WORDS = re.compile(
    r"\b(?:http|status|code)\b\D{0,10}(?:408|425|429|5\d\d)\b|service (?:is )?(?:temporarily )?unavailable|bad gateway"
    r"|gateway time-?out|too many requests|rate limit|connection (?:was )?(?:reset|refused|aborted)|timed out",
    re.IGNORECASE,
)

log = logging.getLogger("testbed")

HOPELESS = 8  # failed messages after which a model that has never answered is given up
Output = dict[str, Any] | UnreachedError | SampleError
Keep = Callable[[Iterable[tuple[Message, Output]]], None]


Asking = Future[Generation | Exception]


def _as_they_come(futures: Iterable[Asking]) -> Iterator[list[Asking]]:
    """Futures in the order in which they are done; those together that are done when the next ones are asked for."""
    done: SimpleQueue[Asking] = SimpleQueue()
    left = 0
    for future in futures:
        left += 1
        future.add_done_callback(done.put)
    while left:
        found = [done.get()]
        while not done.empty():
            found.append(done.get())
        left -= len(found)
        yield found


def whole_ranges(loaded: Any) -> bool:
    """Returns whether a loaded model takes the messages of many samples at once, see `Generator`."""
    return bool(loaded.definition.whole_ranges)


def answered(output: Output) -> TypeGuard[dict[str, Any]]:
    """Checks whether an output is an answer: it came through and is not a failure."""
    return isinstance(output, dict) and is_answer(output)


class Answerer:
    """A model's answers to messages.

    Args:
        model: Its name.
        config: How text is generated.
        size: Messages at once; smaller when they do not fit into memory. A served model gets them one by one, so many
            at the same time: one that fails does not take the answers to the others with it.
        seed: The run's ``--seed``.
        served: Whether it is a served model. Then it takes more messages at once than it asks at the same time, so that
            few threads wait for the slowest.

    Attributes:
        size: How many messages it takes at once.
        answered: Whether the model has ever answered.
    """

    def __init__(self, model: str, config: GenerationConfig, size: int, seed: int, served: bool = False) -> None:
        self.model = model
        self.config = config
        self.threads = size
        self.size = size * ROUNDS if served else size
        self.seed = seed
        self.answered = False
        self._tried = self._failed = 0  # numbers of messages before the first answer
        self._reason = ""

    def answer(self, loaded: Any, messages: Sequence[Message], keep: Keep | None = None) -> list[Output]:
        """The output for each message, or why it was not sent or did not get through; a refusal is an output.

        If a batch fails, its messages are retried one by one.

        Args:
            loaded: The model.
            keep: Gets outputs as soon as they are there, with their messages: those of a batch, or, of a served model,
                those that came in since it was last called.
        """
        keep = keep or (lambda outputs: None)
        if loaded.definition.resource == NETWORK:
            return self._ask_together(loaded, messages, keep)
        found: list[Output] = []
        # Sampling is one by one, so that the answer to one message does not depend on the others.
        sampled = self.config.temperature > 0 and not whole_ranges(loaded)
        size = 1 if sampled else self.size
        for part in [messages[start : start + size] for start in range(0, len(messages), size)]:
            outputs = self._sampled(loaded, part) if sampled else self._batch(loaded, part)
            keep(zip(part, outputs, strict=True))
            found += outputs
        return found

    def _ask_together(self, loaded: Any, messages: Sequence[Message], keep: Keep) -> list[Output]:
        outputs: dict[int, Output] = {}

        def take(futures: Sequence[Asking]) -> None:
            new = {asked[future]: future.result() for future in futures}
            outputs.update({place: self._output(messages[place], answer) for place, answer in new.items()})
            keep([(messages[place], outputs[place]) for place in new])

        with ThreadPoolExecutor(self.threads, "asking", use_in_this_thread, (active(),)) as threads:
            asked = {threads.submit(self._ask_one, loaded, message): place for place, message in enumerate(messages)}
            for futures in _as_they_come(asked):
                take(futures)
                if not self.answered and self._failed >= HOPELESS:
                    threads.shutdown(wait=False, cancel_futures=True)
                    break
        # Those that were under way when it was given up.
        take([future for future, place in asked.items() if place not in outputs and not future.cancelled()])
        return [outputs.get(place) or UnreachedError(self._reason) for place in range(len(messages))]

    def _sampled(self, loaded: Any, messages: Sequence[Message]) -> list[Output]:
        found = []
        for message in messages:
            seed_everything(drawn_by(message, self._seed))
            found.append(self._output(message, self._ask_one(loaded, message)))
        return found

    @property
    def _seed(self) -> int:
        return self.seed if self.config.seed is None else self.config.seed

    def _config(self, loaded: Any, message: Message) -> GenerationConfig:
        """Returns the generation options of a message, with a seed if text is sampled."""
        if self.config.temperature <= 0:
            return self.config
        return replace(self.config, seed=self._seed if whole_ranges(loaded) else drawn_by(message, self._seed))

    def _ask_one(self, loaded: Any, message: Message) -> Generation | Exception:
        try:
            with catchable(), access_log.watch(access_log.model(self.model)):
                answer: Generation | Exception = loaded.generate([message], self._config(loaded, message))[0]
            return answer
        except Exception as error:
            return error

    def _batch(self, loaded: Any, messages: Sequence[Message]) -> list[Output]:
        if len(messages) <= 1:
            return [self._output(message, self._ask_one(loaded, message)) for message in messages]
        try:
            with catchable(), access_log.watch(access_log.model(self.model)):
                answers = loaded.generate(messages, self._config(loaded, messages[0]))
            return [self._output(message, each) for message, each in zip(messages, answers, strict=True)]
        except Exception as error:
            if is_device_error(error):
                raise DeviceError(reason_of(error)) from error
            halves, passing = is_out_of_memory(error), is_passing(error)
        middle = len(messages) // 2
        if halves:
            self.size = max(middle, 1)
            parts = [messages[:middle], messages[middle:]]
        else:
            parts = [[message] for message in messages]
            if passing:  # from now on, what fails takes nothing with it
                self.size = 1
        return [output for part in parts for output in self._batch(loaded, part)]

    def _output(self, message: Message, answer: Generation | Exception) -> Output:
        """An answer as stored; for an error a refusal, or an `UnreachedError` if it may pass.

        A `SampleError` stays one: the sample could not be sent.
        """
        if isinstance(answer, SampleError):
            return answer
        if isinstance(answer, Generation) and answer.finish_reason.startswith(FAILED):
            reason = answer.finish_reason.removeprefix(FAILED).lstrip(": ")
            answer = UnreachedError(reason) if WORDS.search(reason) else answer
        if isinstance(answer, Generation):
            self.answered = True
            return output_of(answer)
        if is_device_error(answer):
            raise DeviceError(reason_of(answer)) from answer
        log.debug("%s cannot answer %s", self.model, message.sample, exc_info=answer)
        self._failed, self._reason = self._failed + 1, reason_of(answer)
        return UnreachedError(self._reason) if is_passing(answer) else failure(self._reason)

    def give_up_if_hopeless(self, tried: int, total: int) -> None:
        """Gives up a model that has failed on every message so far.

        Args:
            tried: The number of samples since the last call, those included that could not be read.
            total: The number of all.

        Raises:
            RunError: If the model has never answered and all messages fail.
        """
        self._tried += tried
        if not self.answered and self._failed and (self._failed >= HOPELESS or self._tried >= total):
            raise RunError(f"it fails on every sample: {self._reason}")


def is_passing(error: BaseException) -> bool:
    """Checks whether a failure is temporary: the question did not get through, or the server was too busy.

    An HTTP status decides if the error, or one that caused it, has one: 4xx other than 408, 425 and 429 is an answer.
    """
    for each in _chain(error):
        if isinstance(each, PASSING):
            return True
        if isinstance(each, RefusedError):  # whatever the server's words are
            return False
        if (status := _status(each)) is not None:
            return status in BUSY or status >= 500
        if any(CLASSES.search(kind.__name__) for kind in type(each).__mro__) or WORDS.search(str(each)):
            return True
    return False


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error, whatever library it is from."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "code", "status"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None
