"""Passes on texts: a model embeds the texts that are not stored yet, each once, for all cells that need them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import torch

from testbed.calls import reason_of
from testbed.graph.ops import TextEmbeddings
from testbed.graph.passes import Pass, Shard
from testbed.graph.texts import embed_texts
from testbed.metrics.scorers.cut_texts import CutTexts, cut_texts
from testbed.process.profiling import stage
from testbed.tracing import access_log
from testbed.workers.context import Context
from testbed.workers.kernels.kernel import Event, ItemBatch, ShardDone, ShardKernel, ShardProgress

PIECE = 64  # texts, at least, between two looks at whether the run is being stopped


class TextKernel(ShardKernel):
    """Embeds texts. What fails here fails for all cells that need the texts."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        assert isinstance(one_pass.op, TextEmbeddings)
        self.language = one_pass.op.language
        self.model = one_pass.models[0]
        self._cut = self._texts = 0
        self._limit: int | None = None
        self._loaded: Any = None  # the model, or why it cannot be loaded
        self._since_cleared = 0

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`; reports the number of truncated texts at the end."""
        yield from super().run(shards)
        if self._cut:
            self.context.channel.note(CutTexts(self._cut, self._texts, self._limit).line(self.model))

    def reason(self, error: Exception) -> str:
        """Names the model, which may be a judge of the cell."""
        return f"{self.model} failed to embed texts: {reason_of(error)}"

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The embeddings of the texts of a shard; of its first ones if the run is being stopped."""
        loaded = self._load()
        texts = list(shard.requests)
        size = max(PIECE, getattr(loaded.definition, "text_batch_size", PIECE))
        parts: list[torch.Tensor] = []
        done = 0
        while done < len(texts) and not (parts and self.context.channel.stopping()):
            piece = texts[done : done + size]
            with torch.no_grad(), access_log.watch(access_log.model(self.model)), stage("forward", on_device=True):
                values = embed_texts(loaded, piece, self.language).to("cpu")
            if values.ndim != 2 or len(values) != len(piece):
                raise ValueError(f"embeddings [{len(piece)}, D] were expected, got {list(values.shape)}")
            parts.append(values)
            self._count_cut(loaded, piece)
            done += len(piece)
            yield ShardProgress(len(piece))
        anew = self.model in self.context.job.anew
        items = ItemBatch(self.one_pass.node, texts[:done], torch.cat(parts), replace=anew)
        self._clear(done)
        yield ShardDone(shard, items=items, whole=done == len(texts))

    def _load(self) -> Any:
        if self._loaded is None:
            self._loaded = self.context.load([self.model])[self.model]
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded

    def _count_cut(self, loaded: Any, texts: Sequence[str]) -> None:
        found = cut_texts(loaded, texts)
        self._cut, self._texts, self._limit = self._cut + found.cut, self._texts + found.texts, found.limit

    def _clear(self, texts: int) -> None:
        interval = self.context.options.clear_cache_interval
        self._since_cleared += texts
        if interval is not None and self._since_cleared >= interval:
            self._since_cleared = 0
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
