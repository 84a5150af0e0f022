"""A worker's part of a pass on texts: a scorer embeds the texts that are not stored yet."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from testbed.errors import StoreError
from testbed.runner.cells import Pass
from testbed.runner.memory import DeviceError, is_device_error
from testbed.tasks.texts import embed_texts

if TYPE_CHECKING:
    from testbed.runner.cells import Task
    from testbed.runner.worker import Worker

log = logging.getLogger("testbed")

PIECE = 64  # texts, at least, between two looks at whether the run is being stopped


class TextRun:
    """Like `PassRun`, for a pass that embeds texts. What fails here fails for all cells that the scorer scores."""

    def __init__(self, worker: Worker, one_pass: Pass) -> None:
        self.worker = worker
        self.one_pass = one_pass
        self.scorer = one_pass.models[0]
        self._since_cleared = 0

    def run(self) -> None:
        """Computes tasks of the pass until none is left."""
        channel = self.worker.channel
        failed = False
        while not channel.stopping() and (task := channel.next_task(self.one_pass.id)) is not None:
            channel.task_begun(task.id)
            if not failed:
                try:
                    if not self._embed(task):
                        return  # the run is being stopped: the rest is for another one
                except StoreError:
                    raise
                except Exception as error:  # models are users' code: what they raise ends their cells
                    log.debug("%s cannot embed texts", self.scorer, exc_info=True)
                    first = (str(error).strip().splitlines() or [""])[0]
                    for evaluation_id in task.cells:
                        reason = f"the scorer {self.scorer} failed: {type(error).__name__}: {first}"
                        channel.cell_failed(evaluation_id, reason)
                    failed = True
                    if is_device_error(error):
                        raise DeviceError(first) from error
            self.worker.writer.submit(task.id, [], {})

    def _embed(self, task: Task) -> bool:
        """Embeds and stores the texts of a task; whether all of them, else the run is being stopped."""
        loaded = self.worker.load([self.scorer])[self.scorer]
        if isinstance(loaded, Exception):
            raise loaded
        one_pass, channel = self.one_pass, self.worker.channel
        texts = list(one_pass.texts[task.start : task.stop])
        size = max(PIECE, getattr(getattr(loaded, "definition", None), "text_batch_size", PIECE))
        parts: list[torch.Tensor] = []
        done = 0
        while done < len(texts) and not (parts and channel.stopping()):
            piece = texts[done : done + size]
            with torch.no_grad():
                values = embed_texts(loaded, piece, one_pass.language).to("cpu")
            if values.ndim != 2 or len(values) != len(piece):
                raise ValueError(f"embeddings [{len(piece)}, D] were expected, got {list(values.shape)}")
            parts.append(values)
            done += len(piece)
            channel.progress(one_pass.id, len(piece))
        again = self.scorer in self.worker.job.anew
        self.worker.store.put_text_embeddings(one_pass.encoder, texts[:done], torch.cat(parts), replace=again)
        self._clear(done)
        return done == len(texts)

    def _clear(self, texts: int) -> None:
        interval = self.worker.job.options.clear_cache_interval
        self._since_cleared += texts
        if interval is not None and self._since_cleared >= interval:
            self._since_cleared = 0
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
