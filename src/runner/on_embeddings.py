"""A worker's part of a pass on stored embeddings: prepares the cell, and makes its outputs out of the embeddings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from testbed.db.entities import Chunk
from testbed.errors import StoreError
from testbed.runner.cells import Pass, PassCell, Task
from testbed.runner.memory import DeviceError, is_device_error
from testbed.runner.stored_images import embedded_images
from testbed.tasks.task_base import IMAGES, BoundCell, EmbeddedImages, PrepareContext, get_task

if TYPE_CHECKING:
    from testbed.runner.worker import Worker

log = logging.getLogger("testbed")


class EmbeddingRun:
    """Like `PassRun`, for a pass that reads no images."""

    def __init__(self, worker: Worker, one_pass: Pass) -> None:
        self.worker = worker
        self.one_pass = one_pass
        self.cell: PassCell = one_pass.cells[0]
        self._embedded: dict[str, EmbeddedImages] = {}
        self._bound: BoundCell | None = None
        self._kind = ""

    def run(self) -> None:
        """Computes tasks of the pass until none is left."""
        channel = self.worker.channel
        failed = False
        while not channel.stopping() and (task := channel.next_task(self.one_pass.id)) is not None:
            channel.task_begun(task.id)
            chunks: list[Chunk] = []
            errors: dict[int, dict[int, str]] = {}
            if not failed:
                try:
                    chunks, errors = self._compute(task)
                except StoreError:
                    raise
                except Exception as error:  # models and settings are users' code: what they raise ends their cell
                    log.debug("%s on %s failed", self.cell.model, self.cell.setting, exc_info=True)
                    first = (str(error).strip().splitlines() or [""])[0]
                    channel.cell_failed(self.cell.evaluation_id, f"{type(error).__name__}: {first}")
                    failed = True
                    if is_device_error(error):
                        raise DeviceError(first) from error
            self.worker.writer.submit(task.id, chunks, errors)

    def _compute(self, task: Task) -> tuple[list[Chunk], dict[int, dict[int, str]]]:
        bound = self._bind()
        if not task.count:
            return [], {}
        images = self._images(IMAGES)
        device = self.worker.device
        features = torch.from_numpy(images.values[task.start : task.stop]).to(device)
        with torch.no_grad():
            outputs = bound.outputs(features).to("cpu")
        errors = {place: why for place, why in images.errors.items() if task.start <= place < task.stop}
        chunk = Chunk(self.cell.evaluation_id, self._kind, task.start, outputs)
        return [chunk], {self.cell.evaluation_id: errors} if errors else {}

    def _bind(self) -> BoundCell:
        """The cell, prepared when the first task comes."""
        if self._bound is None:
            loaded = self.worker.load(self.one_pass.models)[self.cell.model]
            if isinstance(loaded, Exception):
                raise loaded
            setting = self.worker.catalog.get_eval_setting(self.cell.setting)
            task = get_task(setting.task)
            store = self.worker.store
            own = store.dataset(self.cell.needs[IMAGES][1])
            context = PrepareContext(
                self.cell.model_identity,
                own.class_names,
                *self.worker.artifacts(self.cell.model),
                own.samples,
                self._images,
                self.worker.again,
            )
            self._bound, self._kind = task.bind(loaded, setting, context), task.output_kind
        return self._bound

    def _images(self, role: str) -> EmbeddedImages:
        if role not in self._embedded:
            self._embedded[role] = embedded_images(self.worker.store, *self.cell.needs[role])
        return self._embedded[role]
