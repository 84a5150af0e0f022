"""Passes on texts: a judge embeds the texts that are not stored yet, each once, for all cells that it scores."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from testbed.calls import reason_of
from testbed.graph.passes import Pass, Shard
from testbed.tasks.texts import embed_texts
from testbed.work.context import Context
from testbed.work.kernel import Counted, Done, Embedded, ShardKernel

PIECE = 64  # texts, at least, between two looks at whether the run is being stopped


class TextKernel(ShardKernel):
    """Embeds texts. What fails here fails for all cells that need the texts."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.judge = one_pass.models[0]
        self._since_cleared = 0

    def reason(self, error: Exception) -> str:
        """Names the judge, which is not the cell's own model."""
        return f"the scorer {self.judge} failed: {reason_of(error)}"

    def compute(self, shard: Shard) -> Iterator[Counted | Done]:
        """The embeddings of the texts of a shard; of its first ones if the run is being stopped."""
        loaded = self.context.load_one(self.judge)
        texts = list(shard.texts)
        size = max(PIECE, getattr(getattr(loaded, "definition", None), "text_batch_size", PIECE))
        parts: list[torch.Tensor] = []
        done = 0
        while done < len(texts) and not (parts and self.context.stopping()):
            piece = texts[done : done + size]
            with torch.no_grad():
                values = embed_texts(loaded, piece, self.one_pass.language).to("cpu")
            if values.ndim != 2 or len(values) != len(piece):
                raise ValueError(f"embeddings [{len(piece)}, D] were expected, got {list(values.shape)}")
            parts.append(values)
            done += len(piece)
            yield Counted(len(piece))
        anew = self.judge in self.context.job.anew
        embedded = Embedded(self.one_pass.encoder, texts[:done], torch.cat(parts), replace=anew)
        self._clear(done)
        yield Done(shard, embedded=embedded, whole=done == len(texts))

    def _clear(self, texts: int) -> None:
        interval = self.context.options.clear_cache_interval
        self._since_cleared += texts
        if interval is not None and self._since_cleared >= interval:
            self._since_cleared = 0
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
