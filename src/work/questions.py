"""Passes on questions: a model answers messages that are made from stored values, each once, such as a judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from testbed.calls import reason_of
from testbed.graph.ops import Answers
from testbed.graph.passes import Pass, Shard
from testbed.graph.requests import message_of
from testbed.tasks.parts.generation import is_answer
from testbed.work.answering import HOPELESS, Answerer, Output
from testbed.work.context import Context
from testbed.work.kernel import Counted, Done, ItemValues, ShardKernel


class QuestionKernel(ShardKernel):
    """Answers messages. What fails here fails for all cells that need the answers; a failed answer is not stored."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        assert isinstance(one_pass.op, Answers)
        self.model = one_pass.models[0]
        self.answerer = Answerer(self.model, one_pass.op.config, one_pass.batch_size, context.options.seed)

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
            answers.update((request, each) for request, each in zip(part, outputs, strict=True) if _answered(each))
            done += len(part)
            yield Counted(len(part))
        anew = self.model in self.context.job.anew
        items = ItemValues(self.one_pass.node, list(answers), list(answers.values()), replace=anew)
        yield Done(shard, items=items, whole=done == len(shard.requests))


def _answered(output: Output) -> TypeGuard[dict[str, Any]]:
    return isinstance(output, dict) and is_answer(output)
