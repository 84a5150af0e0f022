"""The base of tasks for generative models: messages in, texts out, and a status for each sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.metrics.caption_status import EMPTY, ERROR, MISSING, SCORED
from testbed.models.capability_base import FAILED, GENERATE, NO_ANSWER, Generation, GenerationConfig, Message
from testbed.tasks.task_base import BoundCell, PrepareContext, Task, options_as, require

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]

KIND = "text"  # of outputs: for each sample {"text": str or None, "finish_reason": str}


class GenerationTask(Task):
    """A model receives messages and answers in text."""

    output_kind = KIND

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"generate"``."""
        require(model, {GENERATE}, setting)
        return GENERATE

    @abstractmethod
    def message(self, setting: EvalSetting, sample: str, image: Any | None) -> Message:
        """The message for a sample.

        Args:
            setting: The setting.
            sample: The sample's id.
            image: Its RGB image; None if the data set has none.
        """

    def config(self, setting: EvalSetting) -> GenerationConfig:
        """How text is generated, from the setting's task option ``generation``.

        Raises:
            DefinitionError: If it has unknown fields.
        """
        return options_as(GenerationConfig, setting, "generation")

    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """Never called: there is nothing to prepare."""
        raise NotImplementedError


def output_of(generation: Generation) -> dict[str, Any]:
    """A generation as stored."""
    return {"text": generation.text, "finish_reason": generation.finish_reason}


def failure(reason: str) -> dict[str, Any]:
    """The stored output if a model could not answer."""
    return {"text": None, "finish_reason": f"{FAILED}: {reason}"}


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
