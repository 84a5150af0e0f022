"""Image-caption selection (Winoground, SugarCrepe, ARO): which of a few captions belongs to which of a few images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from testbed.entities import Metric, Score
from testbed.metrics.scorers.selection import SCORER, find_instances, score_selection
from testbed.tasks.parts.embedding import EmbeddingTask

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class CaptionSelection(EmbeddingTask):
    """The images and captions of an instance against each other, by cosine."""

    name = "selection"
    scorer = SCORER

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """The captions of all instances."""
        instances = find_instances(values.samples, setting.name)
        return list(dict.fromkeys(caption for instance in instances for caption in instance.captions))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Text, image and group accuracy."""
        instances = find_instances(values.samples, setting.name)
        texts = self.texts(setting, values)
        place = {text: row for row, text in enumerate(texts)}
        rows = np.asarray([place[caption] for instance in instances for caption in instance.captions], dtype=np.int64)
        embedded = values.texts(texts)
        return score_selection(values.outputs, embedded[rows], instances)


task = CaptionSelection()
