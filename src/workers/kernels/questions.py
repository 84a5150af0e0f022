"""Passes on questions: a model answers messages that are made from stored values, each once, such as a judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from testbed.calls import reason_of
from testbed.errors import SampleError, UnreachedError
from testbed.graph.ops import Answers, refusals_of
from testbed.graph.passes import Pass, Shard
from testbed.graph.requests import message_of
from testbed.models.base.capability import NETWORK, is_answer
from testbed.tasks.parts.generation import failure, reason_in
from testbed.workers.context import Context
from testbed.workers.kernels.answering import HOPELESS, Answerer, Output, answered
from testbed.workers.kernels.kernel import Event, ShardDone, ShardKernel, ShardProgress


class QuestionKernel(ShardKernel):
    """Answers messages. What fails here fails for all cells that need the answers.

    Each answer is stored as soon as it is there, since it may have been paid for; a refusal is stored with its shard.
    """

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        assert isinstance(one_pass.op, Answers)
        self.model = one_pass.models[0]
        served = one_pass.resource == NETWORK
        self.answerer = Answerer(self.model, one_pass.op.config, one_pass.batch_size, context.options.seed, served)
        self._refused: Counter[str] = Counter()  # reason → the number of questions

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`; reports refusals at the end."""
        yield from super().run(shards)
        for reason, number in self._refused.most_common():
            self.context.channel.note(f"{self.model} refused {number:,} question{'' if number == 1 else 's'}: {reason}")

    def reason(self, error: Exception) -> str:
        """Names the model, which may be a judge of the cell."""
        return f"{self.model} failed to answer: {reason_of(error)}"

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The answers to the messages of a shard; to its first ones if the run is being stopped."""
        loaded = self.context.load_one(self.model)
        requests = self._lacking(shard.requests)
        yield ShardProgress(len(shard.requests) - len(requests))
        refused: dict[str, dict[str, Any]] = {}
        done = 0
        while done < len(requests) and not (done and self.context.channel.stopping()):
            part = requests[done : done + self.answerer.size]
            outputs = self._answers(loaded, part)
            self.answerer.give_up_if_hopeless(len(part), max(len(shard.requests), HOPELESS))
            said = zip(part, outputs, strict=True)
            refused |= {request: each for request, each in said if isinstance(each, dict) and not is_answer(each)}
            self._tell_unreached(shard, done, outputs)
            done += len(part)
            yield ShardProgress(len(part))
        if refused:  # the latest reasons count
            node = refusals_of(self.one_pass.node)
            self.context.store.items.put(node, list(refused), list(refused.values()), replace=True)
        self._refused.update(reason_in(each) for each in refused.values())
        yield ShardDone(shard, whole=done == len(requests))

    def _lacking(self, requests: Sequence[str]) -> Sequence[str]:
        """Returns the unanswered requests of a shard: a worker may have died after answering some of them."""
        if self._anew:
            return requests
        stored = self.context.store.items.read_answers(self.one_pass.node, requests)
        return [request for request, each in zip(requests, stored, strict=True) if each is None]

    def _answers(self, loaded: Any, requests: Sequence[str]) -> list[Output]:
        messages = [message_of(request) for request in requests]
        names = {id(message): request for message, request in zip(messages, requests, strict=True)}
        outputs = self.answerer.answer(
            loaded,
            messages,
            lambda came: self._store({names[id(message)]: each for message, each in came if answered(each)}),
        )
        return [failure(str(output)) if isinstance(output, SampleError) else output for output in outputs]

    def _store(self, new: Mapping[str, dict[str, Any]]) -> None:
        if new:
            self.context.store.items.put(self.one_pass.node, list(new), list(new.values()), replace=self._anew)

    @property
    def _anew(self) -> bool:
        return self.model in self.context.job.anew

    def _tell_unreached(self, shard: Shard, first: int, outputs: Sequence[Output]) -> None:
        """Leaves the cells open that need answers which may still come."""
        numbered = enumerate(outputs, shard.id * self.one_pass.chunk + first)  # different for all questions of the pass
        unreached = {number: str(each) for number, each in numbered if isinstance(each, UnreachedError)}
        for evaluation_id in shard.cells if unreached else ():
            self.context.channel.unreached(evaluation_id, unreached)
