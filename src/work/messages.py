"""Passes on messages: a generative model answers, and its answers are stored."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from testbed.calls import reason_of
from testbed.data.perturbation import sample_seed
from testbed.data.reader import seed_everything
from testbed.data.source import ImageSource
from testbed.entities import Chunk
from testbed.errors import RunError, SampleError
from testbed.graph.passes import Pass, PassCell, Shard
from testbed.inputs import active, use_in_this_thread
from testbed.memory import DeviceError, is_device_error, is_out_of_memory
from testbed.models.capability_base import Message
from testbed.tasks.generation_base import KIND, GenerationTask, failure, output_of
from testbed.tasks.task_base import get_task
from testbed.work.context import Context
from testbed.work.kernel import Counted, Done, Event, ShardKernel, StrictError
from testbed.work.perturb import perturbed

log = logging.getLogger("testbed")

READERS = 2  # threads that prefetch the images of the next batch
SAMPLING = "sampling"  # the key of the random numbers of sampling models, besides the sample
HOPELESS = 8  # failed samples after which a model that has never answered is given up


class MessageKernel(ShardKernel):
    """Sends messages to a generative model and collects its answers."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell: PassCell = one_pass.cells[0]
        self.setting = context.catalog.get_eval_setting(self.cell.setting)
        task = get_task(self.setting.task)
        assert isinstance(task, GenerationTask)
        self.task = task
        self.size = one_pass.batch_size
        self._loaded: Any = None
        self._answered = False  # whether the model has ever answered
        self._tried = self._failed = 0  # numbers of samples before the first answer

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`; images are read ahead meanwhile."""
        with ThreadPoolExecutor(READERS, "images", use_in_this_thread, (active(),)) as self._readers:
            yield from super().run(shards)

    def compute(self, shard: Shard) -> Iterator[Counted | Done]:
        """Computes the answers for a shard, or for its first samples if the run is being stopped."""
        loaded = self._model()
        values: list[dict[str, Any] | None] = [None] * shard.size
        positions = shard.positions
        errors: dict[int, str] = {}
        done = 0
        for size, places, messages in self._batches(shard, errors):
            if errors and self.context.options.strict:
                raise StrictError(f"{next(iter(errors.values()))} (--strict stops the run)")
            for place, output in zip(places, self._answers(loaded, messages), strict=True):
                values[place - shard.start] = output
            if not self._answered:
                self._tried, self._failed = self._tried + size, self._failed + len(places)
                if places and (self._failed >= HOPELESS or self._tried >= len(self.one_pass.positions)):
                    raise RunError(f"it fails on every sample: {_reason(values[places[0] - shard.start])}")
            yield Counted(size)
            done += size
            if self.context.stopping():
                break
        end = shard.stop if done == shard.count else positions[done]
        given = [position for position in shard.given if position < end]
        for position, row in zip(given, self.context.given(self.cell, KIND, given), strict=True):
            values[position - shard.start] = row
        chunk = Chunk(self.cell.evaluation_id, KIND, shard.start, values[: end - shard.start])
        unread = {self.cell.evaluation_id: errors} if errors else {}
        if done == shard.count or self._answered:
            yield Done(shard, [chunk], unread, whole=done == shard.count)

    def _model(self) -> Any:
        if self._loaded is None:
            loaded = self.context.load_one(self.cell.model)
            coverage = getattr(loaded, "coverage", None)  # recorded answers may belong to another data set
            if coverage is not None and self.one_pass.source is not None:
                coverage(self.one_pass.source.ids)
            self._loaded = loaded
        return self._loaded

    # Reading ------------------------------------------------------------------------------------------------------

    def _batches(self, shard: Shard, errors: dict[int, str]) -> Iterator[tuple[int, list[int], list[Message]]]:
        """The size of each batch, its places that can be read, and their messages.

        The images of the next one are read meanwhile.
        """
        positions = shard.positions
        parts = [positions[start : start + self.size] for start in range(0, len(positions), self.size)]
        ahead = [self._readers.submit(self._image, place) for place in parts[0]] if parts else []
        for number, part in enumerate(parts):
            now = ahead
            following = parts[number + 1] if number + 1 < len(parts) else ()
            ahead = [self._readers.submit(self._image, place) for place in following]
            places, messages = [], []
            for place, future in zip(part, now, strict=True):
                try:
                    messages.append(self._message(place, future.result()))
                    places.append(place)
                except SampleError as error:
                    errors[place] = str(error)
            yield len(part), places, messages

    def _image(self, place: int) -> Any | None:
        """The transformed image of a sample; None for a model without image input."""
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
        """The message for a sample. Perturbs images here, because only one thread may seed the random generators."""
        source = self.one_pass.source
        assert source is not None
        sample = source.ids[self.one_pass.positions[place]]
        if image is not None and self.setting.perturbed:
            image = perturbed(image, self.setting, sample, self.context.device, self.context.options.seed)
        return self.task.message(self.setting, sample, image)

    # Answering ----------------------------------------------------------------------------------------------------

    def _answers(self, loaded: Any, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The outputs for some messages; if a batch fails, its messages are retried one by one."""
        if not messages:
            return []
        config = self.task.config(self.setting)
        if config.temperature > 0 and len(messages) > 1:
            # One by one, so that sampling for one message does not depend on the others.
            return [output for message in messages for output in self._answers(loaded, [message])]
        try:
            if config.temperature > 0:
                seed_everything(sample_seed(SAMPLING, messages[0].sample, self.context.options.seed))
            generations = loaded.generate(messages, config)
            self._answered = True
            return [output_of(each) for each in generations]
        except Exception as error:
            if is_device_error(error):
                raise DeviceError(str(error)) from error
            if len(messages) == 1:
                log.debug("%s cannot answer about %s", self.cell.model, messages[0].sample, exc_info=True)
                return [failure(reason_of(error))]
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
