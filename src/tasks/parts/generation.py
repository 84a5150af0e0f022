"""The base of tasks for generative models: messages in, texts out, and a status for each sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import UnsupportedError
from testbed.graph.nodes import Built
from testbed.metrics.caption_status import EMPTY, ERROR, MISSING, SCORED
from testbed.models.base.capability import FAILED, GENERATE, NO_ANSWER, Generation, GenerationConfig, Message
from testbed.tasks.parts.recorded_sets import require_own_set
from testbed.tasks.task_base import Task, options_as, require

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]


class TextTask(Task):
    """A model answers in text."""

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"generate"``.

        Raises:
            UnsupportedError: If the model does not generate text, the setting's perturbation needs more than images, or
                recorded answers belong to another set.
        """
        if setting.perturbation.attacks:
            raise UnsupportedError(f"{setting.name} attacks a classifier; models that generate text are not supported")
        if setting.perturbation.needs_targets:
            raise UnsupportedError(f"the perturbation of {setting.name} needs targets; {self.name} has none")
        require(model, {GENERATE}, setting)
        require_own_set(model, setting)
        return GENERATE


class GenerationTask(TextTask):
    """A model receives a message for each sample, made from its image, and answers in text."""

    options = frozenset({"prompt", "generation"})

    def build(self, graph: Graph) -> Built:
        """The model's answers; text is generated as the setting's task option ``generation`` says."""
        return Built(graph.generations(self.message, options_as(GenerationConfig, graph.setting, "generation")))

    @abstractmethod
    def message(self, setting: EvalSetting, sample: str, image: Any | None) -> Message:
        """The message for a sample.

        Args:
            setting: The setting.
            sample: The sample's id.
            image: Its RGB image; None if the data set has none.
        """


def output_of(generation: Generation) -> dict[str, Any]:
    """A generation as stored."""
    stored = {"text": generation.text, "finish_reason": generation.finish_reason}
    return {**stored, "extra": generation.extra} if generation.extra else stored


def failure(reason: str) -> dict[str, Any]:
    """The stored output if a model could not answer."""
    return {"text": None, "finish_reason": f"{FAILED}: {reason}"}


def is_answer(output: Mapping[str, Any]) -> bool:
    """Whether a stored output is an answer, not a failure."""
    return output["text"] is not None and not str(output["finish_reason"]).startswith(FAILED)


def texts_and_status(values: Iterable[Any]) -> tuple[list[str | None], Array]:
    """The text and the status of each sample.

    Args:
        values: The stored outputs; None for a sample that could not be read.

    Returns:
        The texts without white space at their ends: None where there is no answer, ``""`` where it is blank. And the
        status of each sample, uint8 array [n]: `SCORED`, `MISSING`, `EMPTY` or `ERROR`.
    """
    given = list(values)
    texts: list[str | None] = []
    status = np.zeros(len(given), dtype=np.uint8)
    for place, value in enumerate(given):
        reason = FAILED if value is None else str(value["finish_reason"])
        text = None if value is None else value["text"]
        if reason == NO_ANSWER:
            status[place] = MISSING
        elif reason.startswith(FAILED) or not isinstance(text, str):
            status[place] = ERROR
        elif not text.strip():
            status[place] = EMPTY
        known = status[place] in (SCORED, EMPTY)
        texts.append(str(text).strip() if known else None)
    return texts, status
