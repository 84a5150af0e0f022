"""Captioning: a model describes an image (or a video) in words. Captions are stored; judges score them later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.entities import Metric, Score
from testbed.errors import DataError
from testbed.metrics.caption_status import ERROR, MISSING, shares
from testbed.metrics.statistics import mean_and_stderr
from testbed.models.base.capability import Message
from testbed.tasks.parts.generation import GenerationTask, texts_and_status

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]

SCORER = "captioning@1"


class Captioning(GenerationTask):
    """Generates a caption from an image and an optional prompt."""

    name = "captioning"
    options = GenerationTask.options | {"similarity", "prefix"}  # the last two are for judges of the captions
    scorer = SCORER

    def message(self, setting: EvalSetting, sample: str, image: Any | None) -> Message:
        """The image, and the setting's prompt if it has one."""
        prompt = setting.task_options.get("prompt")
        return Message([part for part in (image, prompt) if part is not None], sample=sample)

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The coverage and the length of captions.

        Returns:
            The scores ``status`` (0 a caption, 1 none, 2 a blank one, 3 an error) and ``words`` (of each caption); the
            metrics ``coverage`` (the share of samples with a caption, blank or not), ``empty`` (with a blank one) and
            ``words`` (the mean over the captions).

        Raises:
            DataError: If no sample has a caption.
        """
        texts, status = texts_and_status(values.outputs)
        require_some(status, values, setting)
        words = np.asarray([np.nan if text is None else len(text.split()) for text in texts], dtype=np.float64)
        counted = words[~np.isnan(words)]
        mean, stderr = mean_and_stderr(counted)
        scores = [Score("status", status, SCORER), Score("words", words, SCORER)]
        length = Metric("words", mean, len(counted), stderr, unit="words", scorer=SCORER)
        return scores, [*shares(status, SCORER), length]


def require_some(status: Array, values: Values, setting: EvalSetting) -> None:
    """Checks that at least one sample has a caption.

    Raises:
        DataError: If none has.
    """
    if ((status != MISSING) & (status != ERROR)).any():
        return
    first = ", ".join(sample.id for sample in values.samples[:3])
    said = next((str(value["finish_reason"]) for value in values.outputs if value is not None), "unreadable")
    hint = "; check that the ids of the predictions match the data set" if (status == MISSING).all() else ""
    raise DataError(
        f"{setting.name}: none of the {len(status)} samples ({first}, …) has a caption; the first one: {said}{hint}"
    )


task = Captioning()
