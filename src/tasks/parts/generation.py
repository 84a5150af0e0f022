"""The base of tasks for generative models: messages in, texts out, and a status for each sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import RefusedError, SampleError, UnsupportedError, well_formed
from testbed.graph.nodes import Built
from testbed.metrics.scorers.caption_status import EMPTY, ERROR, MISSING, SCORED
from testbed.models.base.capability import (
    CUT_OFF,
    FAILED,
    GENERATE,
    NO_ANSWER,
    Generation,
    GenerationConfig,
    Message,
    is_answer,
)
from testbed.models.base.thoughts import BEGUN, REVISION, THINKING, final_part
from testbed.tasks.parts.recorded_sets import require_own_set
from testbed.tasks.task_base import Task, options_of, require

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.models.model_base import ModelDefinition

    Array = Array


READING = {"final_part": REVISION}  # in the view of each task that reads final parts


class TextTask(Task):
    """A model answers in text."""

    leaves_out_unreadable = True

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The scorer, and how the final parts of answers are found."""
        return {**super().view_spec(setting), **READING}

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


@dataclass(frozen=True)
class GenerationOptions:
    """The task options of text generation.

    Attributes:
        prompt: A text given to the model with the image.
        generation: How text is generated.
    """

    prompt: str | None = None
    generation: GenerationConfig = field(default_factory=GenerationConfig)


class GenerationTask(TextTask):
    """A model receives a message for each sample, made from its image, and answers in text."""

    options = GenerationOptions

    def build(self, graph: Graph) -> Built:
        """The model's answers, generated with the setting's task option ``generation``."""
        return Built(graph.generations(self.message, options_of(graph.setting, self.options).generation))

    @abstractmethod
    def message(self, setting: EvalSetting, sample: str, image: Any | None) -> Message:
        """The message for a sample; its RGB image is None if the data set has none."""


def output_of(generation: Generation) -> dict[str, Any]:
    """A generation as stored."""
    stored = {"text": well_formed(generation.text), "finish_reason": well_formed(generation.finish_reason)}
    extra = {name: well_formed(value) if isinstance(value, str) else value for name, value in generation.extra.items()}
    return {**stored, "extra": extra} if extra else stored


def failure(reason: str) -> dict[str, Any]:
    """The stored output if a model could not answer."""
    return {"text": None, "finish_reason": f"{FAILED}: {well_formed(reason)}"}


def reason_in(output: Mapping[str, Any]) -> str:
    """Returns the reason why a stored output is not an answer."""
    reason = str(output["finish_reason"]).removeprefix(FAILED).lstrip(": ").removeprefix(f"{RefusedError.__name__}: ")
    return well_formed(reason) or "no reason given"


def refusal_of(output: Mapping[str, Any]) -> str | None:
    """Returns the reason why a model refused to answer; None if it answered or was not asked."""
    if is_answer(output) or output["finish_reason"] == NO_ANSWER:
        return None
    reason = reason_in(output)
    return None if reason.startswith(f"{SampleError.__name__}: ") else reason  # which was not sent


def final_of(output: Mapping[str, Any]) -> str | None:
    """Returns the final part of a stored answer, see `final_part`; None if there are only thoughts."""
    extra = output.get("extra") or {}
    final = final_part(output["text"], bool(extra.get(BEGUN)))
    return None if not final and extra.get(THINKING) else final


def is_cut_off(output: Mapping[str, Any]) -> bool:
    """Checks whether a stored answer reached the maximum length, or ended before its final part."""
    return output["finish_reason"] == CUT_OFF or final_of(output) is None


@dataclass(frozen=True)
class Replies:
    """Stored outputs of a model that answers in text. All parts have the same length n.

    Attributes:
        texts: What each says finally, without thoughts: None where there is no answer, ``""`` where it is blank, or
            consists of thoughts, or is a refusal, which scores as a blank answer does.
        whole: The texts as the model gave them, for rules that are published so.
        status: uint8 array [n]: `SCORED`, `MISSING`, `EMPTY` or `ERROR`.
        cut_off: See `is_cut_off`; None where there is no answer.
        refusals: Why the model gave no answer, see `refusal_of`; None where it gave one.
    """

    texts: list[str | None]
    whole: list[str | None]
    status: Array
    cut_off: list[bool | None]
    refusals: list[str | None]


def replies_of(values: Iterable[Any]) -> Replies:
    """Returns the replies in stored outputs, which are None for samples that could not be read."""
    given = list(values)
    count = len(given)
    status = np.zeros(count, dtype=np.uint8)
    found = Replies([None] * count, [None] * count, status, [None] * count, [None] * count)
    for place, value in enumerate(given):
        if value is not None and value["finish_reason"] == NO_ANSWER:
            found.status[place] = MISSING
        elif value is not None and (reason := refusal_of(value)) is not None:
            found.status[place], found.refusals[place] = EMPTY, reason
            found.texts[place], found.whole[place], found.cut_off[place] = "", "", False
        elif value is None or not is_answer(value) or not isinstance(value["text"], str):
            found.status[place] = ERROR
        else:
            final = well_formed(final_of(value) or "")
            found.status[place] = SCORED if final else EMPTY
            found.texts[place], found.whole[place] = final, well_formed(value["text"])
            found.cut_off[place] = is_cut_off(value)
    return found


def texts_and_status(values: Iterable[Any]) -> tuple[list[str | None], Array]:
    """The final texts and the status of each sample; see `Replies`.

    Args:
        values: The stored outputs; None for a sample that could not be read.
    """
    found = replies_of(values)
    return found.texts, found.status
