"""Passes on messages: a generative model answers, and its answers are stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from testbed.entities import Chunk
from testbed.errors import SampleError, UnreachedError
from testbed.graph.message_ops import TEXT, MessageOp
from testbed.graph.ops import Answers
from testbed.graph.passes import Pass, PassCell, Shard
from testbed.graph.requests import message_text
from testbed.inputs import active, use_in_this_thread
from testbed.models.base.capability import NETWORK, GenerationConfig, Message
from testbed.models.model_base import ModelDefinition
from testbed.process.profiling import stage
from testbed.workers.context import Context
from testbed.workers.kernels.answering import Answerer, Output, answered
from testbed.workers.kernels.kernel import Event, ShardDone, ShardKernel, ShardProgress, StrictError
from testbed.workers.kernels.perturb import perturbed

READERS = 2  # threads that read for the next batch


class MessageKernel(ShardKernel):
    """Sends messages to a generative model and collects its answers."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell: PassCell = one_pass.cells[0]
        self.setting = context.catalog.get_eval_setting(self.cell.setting)
        op = context.rows(self.cell).op
        assert isinstance(op, MessageOp)
        self.op = op
        served = one_pass.resource == NETWORK
        self.answerer = Answerer(self.cell.model, op.config, one_pass.batch_size, context.options.seed, served)
        self.asked = AnswerLookup(context, self.cell, self.answerer)
        self._loaded: Any = None

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`; images are read ahead meanwhile."""
        with ThreadPoolExecutor(READERS, "images", use_in_this_thread, (active(),)) as self._readers:
            yield from super().run(shards)

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """Computes the answers for a shard, or for its first samples if the run is being stopped.

        Samples that did not get through to the model are left out of what is stored, and so are still to be computed.
        """
        loaded = self._model()
        values: dict[int, dict[str, Any] | None] = {}
        positions = shard.positions
        errors: dict[int, str] = {}
        unreached: dict[int, str] = {}
        done = 0
        for size, places, conversations in self._batches(shard, errors):
            self._stop_if_strict(errors)
            with stage("forward", on_device=True):
                outputs = self._answers(loaded, conversations)
            for place, output in zip(places, outputs, strict=True):
                if isinstance(output, UnreachedError):
                    unreached[place] = str(output)
                elif isinstance(output, SampleError):
                    errors[place] = str(output)
                else:
                    values[place] = output
            self._stop_if_strict(errors)
            self.answerer.give_up_if_hopeless(size, len(self.one_pass.positions))
            yield ShardProgress(size)
            done += size
            if self.context.channel.stopping():
                break
        end = shard.stop if done == shard.count else positions[done]
        given = [position for position in shard.given if position < end]
        values.update(zip(given, self.context.given(self.cell, TEXT, given), strict=True))
        values.update(dict.fromkeys(errors))
        if unreached:
            self.context.channel.unreached(self.cell.evaluation_id, unreached)
        chunks = [
            Chunk(self.cell.evaluation_id, TEXT, start, [values[place] for place in range(start, stop)])
            for start, stop in runs(sorted(values), apart=errors)
        ]
        unread = {self.cell.evaluation_id: errors} if errors else {}
        if done == shard.count or self.answerer.answered:
            yield ShardDone(shard, chunks, unread, whole=done == shard.count)

    def _stop_if_strict(self, errors: Mapping[int, str]) -> None:
        if errors and self.context.options.strict:
            raise StrictError(f"{next(iter(errors.values()))} (--strict stops the run)")

    def _model(self) -> Any:
        if self._loaded is None:
            loaded = self.context.load_one(self.cell.model)
            coverage = getattr(loaded, "coverage", None)  # recorded answers may belong to another data set
            if coverage is not None and self.one_pass.source is not None:
                coverage(self.one_pass.source.ids, self.one_pass.source.targets)
            self._loaded = loaded
        return self._loaded

    # Answers ------------------------------------------------------------------------------------------------------

    def _answers(self, loaded: Any, conversations: Sequence[Sequence[Message]]) -> list[Output]:
        return converse(partial(self.asked.answer, loaded), conversations)

    # Reading ------------------------------------------------------------------------------------------------------

    def _batches(
        self, shard: Shard, errors: dict[int, str]
    ) -> Iterator[tuple[int, list[int], list[Sequence[Message]]]]:
        """The size of each batch, its places that can be read, and their conversations.

        What is read for the next one is read meanwhile.
        """
        positions = shard.positions
        parts = [
            positions[start : start + self.answerer.size] for start in range(0, len(positions), self.answerer.size)
        ]
        ahead = [self._readers.submit(self._read, place) for place in parts[0]] if parts else []
        for number, part in enumerate(parts):
            now = ahead
            following = parts[number + 1] if number + 1 < len(parts) else ()
            ahead = [self._readers.submit(self._read, place) for place in following]
            places, conversations = [], []
            for place, future in zip(part, now, strict=True):
                try:
                    with stage("wait"):
                        content = future.result()
                    conversations.append(self._turns(place, content))
                    places.append(place)
                except SampleError as error:
                    errors[place] = str(error)
            yield len(part), places, conversations

    def _read(self, place: int) -> Any:
        position, sees_images = self.one_pass.positions[place], self._loaded.definition.sees_images
        return self.op.read(self.one_pass.source, position, self.setting, sees_images)

    def _turns(self, place: int, content: Any) -> Sequence[Message]:
        """Returns the user's turns. Perturbs images here, because only one thread may seed the random generators."""
        source = self.one_pass.source
        assert source is not None
        sample = source.ids[self.one_pass.positions[place]]
        if self.setting.perturbation and self._loaded.definition.sees_images:
            content = self.op.changed(content, sample, self._perturbed)
        turns = self.op.turns(self.setting, self._loaded, sample, content)
        if not turns:
            raise SampleError(f"{sample}: the prompt of {self.setting.name} makes no message of this row")
        return turns

    def _perturbed(self, image: Any, key: str) -> Any:
        return perturbed(image, self.setting, key, self.context.device, self.context.options.seed)


def converse(
    answer: Callable[[Sequence[Message]], Sequence[Output]], conversations: Sequence[Sequence[Message]]
) -> list[Output]:
    """The output for each conversation: the answer to its last turn, and those before.

    Args:
        answer: Answers messages; later turns have what was said before in their history.
        conversations: What the user says, in order.
    """
    outputs = list(answer([turns[0] for turns in conversations]))
    said = [[output] for output in outputs]
    for number in range(1, max(map(len, conversations), default=0)):
        going = [place for place, turns in enumerate(conversations) if number < len(turns) and answered(outputs[place])]
        messages = [_in_turn(conversations[place], said[place]) for place in going]
        for place, output in zip(going, answer(messages), strict=True):
            outputs[place] = output
            said[place].append(output)
    return [_with_turns(output, before[:-1]) for output, before in zip(outputs, said, strict=True)]


def _with_turns(output: Output, before: Sequence[Output]) -> Output:
    """An output with the answers to earlier turns, if there are any."""
    if not isinstance(output, dict) or not before:
        return output
    return {**output, "turns": [each["text"] for each in before if isinstance(each, dict)]}


def _in_turn(turns: Sequence[Message], said: Sequence[Any]) -> Message:
    """The next turn of a conversation, with what was said before."""
    history = [
        message
        for turn, output in zip(turns, said, strict=False)
        for message in (turn, Message([output["text"]], "assistant", turn.sample))
    ]
    return replace(turns[len(said)], history=tuple(history))


def runs(places: Sequence[int], apart: Collection[int]) -> list[tuple[int, int]]:
    """The ranges (start, stop) that places, in order, consist of; some places are ranges of their own.

    Unreadable samples are stored apart, since a run that reads them again drops the chunks they are in.
    """
    found: list[tuple[int, int]] = []
    for place in places:
        if found and found[-1][1] == place and place not in apart and place - 1 not in apart:
            found[-1] = (found[-1][0], place + 1)
        else:
            found.append((place, place + 1))
    return found


class AnswerLookup:
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
        """Answers messages, see `Answerer.answer`."""
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
    if definition.by_content:
        message = replace(message, sample=message.sample if config.temperature > 0 else "", data_set="")
    return message_text(message)
