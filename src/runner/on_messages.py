"""A worker's part of a pass on messages: a generating model answers, and what it says is stored."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from testbed.data.reader import seed_everything
from testbed.data.source import ImageSource
from testbed.db.entities import Chunk
from testbed.errors import RunError, SampleError, StoreError
from testbed.eval_settings.perturbation_base import sample_seed
from testbed.models.capability_base import Message
from testbed.runner.cells import Pass, PassCell, Task
from testbed.runner.memory import DeviceError, is_device_error, is_out_of_memory
from testbed.runner.perturbed_images import perturbed
from testbed.tasks.generation_base import KIND, GenerationTask, failure, output_of
from testbed.tasks.task_base import get_task

if TYPE_CHECKING:
    from testbed.runner.worker import Worker

log = logging.getLogger("testbed")

READERS = 2  # threads that read the images of the next batch while the model answers
SAMPLING = "sampling"  # what the random numbers of a model that draws its words are made from, besides the sample
HOPELESS = 8  # samples that fail, one by one, before a model that never answered is given up


class GenerationRun:
    """Like `PassRun`, for a model that answers messages."""

    def __init__(self, worker: Worker, one_pass: Pass) -> None:
        self.worker = worker
        self.one_pass = one_pass
        self.cell: PassCell = one_pass.cells[0]
        self.setting = worker.catalog.get_eval_setting(self.cell.setting)
        task = get_task(self.setting.task)
        assert isinstance(task, GenerationTask)
        self.task = task
        self.size = one_pass.batch_size
        self._loaded: Any = None
        self._answered = False  # whether the model ever has
        self._tried = self._failed = 0  # samples, before it has

    def run(self) -> None:
        """Computes tasks of the pass until none is left."""
        channel = self.worker.channel
        failed = False
        with ThreadPoolExecutor(READERS, thread_name_prefix="images") as readers:
            while not channel.stopping() and (task := channel.next_task(self.one_pass.id)) is not None:
                channel.task_begun(task.id)
                chunks: list[Chunk] = []
                errors: dict[int, str] = {}
                if not failed:
                    try:
                        chunks = [self._compute(task, readers, errors)]
                    except (StoreError, DeviceError):
                        raise
                    except RunError as error:
                        if self.worker.job.options.strict and errors:
                            raise
                        failed = self._fail(error)
                    except Exception as error:  # models and settings are users' code: what they raise ends their cell
                        failed = self._fail(error)
                unread = {self.cell.evaluation_id: errors} if errors else {}
                if chunks and len(chunks[0].values) < task.count:
                    # The run is being stopped: the rest is for another one.
                    if self._answered:
                        self.worker.store.append(chunks, unread)
                    return
                self.worker.writer.submit(task.id, chunks, unread)

    def _fail(self, error: Exception) -> bool:
        log.debug("%s on %s failed", self.cell.model, self.cell.setting, exc_info=True)
        first = (str(error).strip().splitlines() or [""])[0]
        self.worker.channel.cell_failed(self.cell.evaluation_id, f"{type(error).__name__}: {first}")
        return True

    def _compute(self, task: Task, readers: ThreadPoolExecutor, errors: dict[int, str]) -> Chunk:
        """The outputs of a task; ``errors`` gets the places of samples that cannot be read.

        Where the run is being stopped they are those of the task's first batches.
        """
        loaded = self._model()
        values: list[dict[str, Any] | None] = [None] * task.count
        done = 0
        for size, places, messages in self._batches(task, readers, errors):
            if errors and self.worker.job.options.strict:
                raise RunError(f"{next(iter(errors.values()))} (and --strict is given)")
            for place, output in zip(places, self._answers(loaded, messages), strict=True):
                values[place - task.start] = output
            if not self._answered:
                self._tried, self._failed = self._tried + size, self._failed + len(places)
                if places and (self._failed >= HOPELESS or self._tried >= len(self.one_pass.positions)):
                    raise RunError(f"it fails on every sample: {_reason(values[places[0] - task.start])}")
            self.worker.channel.progress(self.one_pass.id, size)
            done = min(done + size, task.count)
            if self.worker.channel.stopping():
                break
        return Chunk(self.cell.evaluation_id, KIND, task.start, values[:done])

    def _model(self) -> Any:
        if self._loaded is None:
            loaded = self.worker.load(self.one_pass.models)[self.cell.model]
            if isinstance(loaded, Exception):
                raise loaded
            coverage = getattr(loaded, "coverage", None)  # recorded answers may be those of another data set
            if coverage is not None and self.one_pass.source is not None:
                coverage(self.one_pass.source.ids)
            self._loaded = loaded
        return self._loaded

    # Reading ------------------------------------------------------------------------------------------------------

    def _batches(
        self, task: Task, readers: ThreadPoolExecutor, errors: dict[int, str]
    ) -> Iterator[tuple[int, list[int], list[Message]]]:
        """The size of each batch, its places that can be read, and their messages.

        The images of the next one are read meanwhile.
        """
        starts = range(task.start, task.stop, self.size)
        parts = [range(start, min(start + self.size, task.stop)) for start in starts]
        ahead = [readers.submit(self._image, place) for place in parts[0]] if parts else []
        for number, part in enumerate(parts):
            now = ahead
            following = parts[number + 1] if number + 1 < len(parts) else ()
            ahead = [readers.submit(self._image, place) for place in following]
            places, messages = [], []
            for place, future in zip(part, now, strict=True):
                try:
                    messages.append(self._message(place, future.result()))
                    places.append(place)
                except SampleError as error:
                    errors[place] = str(error)
            yield len(part), places, messages

    def _image(self, place: int) -> Any | None:
        """The image of a sample, as the setting transforms it; None for a model that looks at none."""
        source = self.one_pass.source
        if not getattr(self._loaded.definition, "sees_images", True):
            return None
        if not isinstance(source, ImageSource):
            if self.setting.perturbed:
                raise RunError(f"{self.setting.name} perturbs images, but its data set has none")
            return None
        image = source.image(self.one_pass.positions[place])
        return image if self.setting.transform is None else self.setting.transform(image)

    def _message(self, place: int, image: Any | None) -> Message:
        """What the model is shown about a sample. Images are perturbed here: only one thread can seed generators."""
        source = self.one_pass.source
        assert source is not None
        sample = source.ids[self.one_pass.positions[place]]
        if image is not None and self.setting.perturbed:
            image = perturbed(image, self.setting, sample, self.worker.device, self.worker.job.options.seed)
        return self.task.message(self.setting, sample, image)

    # Answering ----------------------------------------------------------------------------------------------------

    def _answers(self, loaded: Any, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The outputs for some messages; where a batch fails its messages are tried alone, so that the rest goes on."""
        if not messages:
            return []
        config = self.task.config(self.setting)
        if config.temperature > 0 and len(messages) > 1:
            # Each by itself, so that what is drawn for one does not depend on the others.
            return [output for message in messages for output in self._answers(loaded, [message])]
        try:
            if config.temperature > 0:
                seed_everything(sample_seed(SAMPLING, messages[0].sample, self.worker.job.options.seed))
            generations = loaded.generate(messages, config)
            self._answered = True
            return [output_of(each) for each in generations]
        except Exception as error:
            if is_device_error(error):
                raise DeviceError(str(error)) from error
            if len(messages) == 1:
                log.debug("%s cannot answer about %s", self.cell.model, messages[0].sample, exc_info=True)
                first = (str(error).strip().splitlines() or [""])[0]
                return [failure(f"{type(error).__name__}: {first}")]
            halves = is_out_of_memory(error)
        middle = len(messages) // 2
        if halves:
            self.size = max(middle, 1)
            parts = [messages[:middle], messages[middle:]]
        else:
            parts = [[message] for message in messages]
        return [output for part in parts for output in self._answers(loaded, part)]


def _reason(output: dict[str, Any] | None) -> str:
    return "" if output is None else str(output["finish_reason"]).partition(": ")[2]
