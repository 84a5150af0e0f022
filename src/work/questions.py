"""Passes on questions: a model answers messages that are made from stored values, each once, such as a judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from testbed.calls import reason_of
from testbed.errors import UnreachedError
from testbed.graph.ops import Answers
from testbed.graph.passes import Pass, Shard
from testbed.graph.requests import message_of
from testbed.models.base.capability import NETWORK
from testbed.work.answering import HOPELESS, Answerer, Output, answered
from testbed.work.context import Context
from testbed.work.kernel import Counted, Done, ItemValues, ShardKernel


class QuestionKernel(ShardKernel):
    """Answers messages. What fails here fails for all cells that need the answers; a failed answer is not stored."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        assert isinstance(one_pass.op, Answers)
        self.model = one_pass.models[0]
        served = one_pass.resource == NETWORK
        self.answerer = Answerer(self.model, one_pass.op.config, one_pass.batch_size, context.options.seed, served)

    def reason(self, error: Exception) -> str:
        """Names the model, which may be a judge of the cell."""
        return f"{self.model} failed to answer: {reason_of(error)}"

    def compute(self, shard: Shard) -> Iterator[Counted | Done]:
        """The answers to the messages of a shard; to its first ones if the run is being stopped."""
        loaded = self.context.load_one(self.model)
        answers: dict[str, dict[str, Any]] = {}
        done = 0
        while done < len(shard.requests) and not (done and self.context.stopping()):
            part = shard.requests[done : done + self.answerer.size]
            outputs = self.answerer.answer(loaded, [message_of(each) for each in part])
            self.answerer.give_up_if_hopeless(len(part), max(len(shard.requests), HOPELESS))
            answers.update((request, each) for request, each in zip(part, outputs, strict=True) if answered(each))
            self._tell_unreached(shard, done, outputs)
            done += len(part)
            yield Counted(len(part))
        anew = self.model in self.context.job.anew
        items = ItemValues(self.one_pass.node, list(answers), list(answers.values()), replace=anew)
        yield Done(shard, items=items, whole=done == len(shard.requests))

    def _tell_unreached(self, shard: Shard, first: int, outputs: Sequence[Output]) -> None:
        """Leaves the cells open that need answers which may still come."""
        numbered = enumerate(outputs, shard.id * self.one_pass.chunk + first)  # different for all questions of the pass
        unreached = {number: str(each) for number, each in numbered if isinstance(each, UnreachedError)}
        for evaluation_id in shard.cells if unreached else ():
            self.context.unreached(evaluation_id, unreached)
