"""Image-caption selection (Winoground, SugarCrepe, ARO): which of a few captions belongs to which of a few images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.entities import Metric, SampleInfo, Score
from testbed.metrics.selection_scores import SCORER, find_instances, score_selection
from testbed.tasks.embedding_base import TextTask, text_embeddings
from testbed.tasks.task_base import Outputs

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition


class CaptionSelection(TextTask):
    """The images and captions of an instance against each other, by cosine."""

    name = "selection"
    scorer = SCORER

    def texts(
        self, setting: EvalSetting, samples: Sequence[SampleInfo], outputs: Callable[[], Iterable[Any]] = tuple
    ) -> list[str]:
        """The captions of all instances."""
        instances = find_instances(samples, setting.name)
        return list(dict.fromkeys(caption for instance in instances for caption in instance.captions))

    def score(
        self, outputs: Outputs, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Text, image and group accuracy."""
        instances = find_instances(outputs.samples, setting.name)
        texts = self.texts(setting, outputs.samples)
        place = {text: row for row, text in enumerate(texts)}
        rows = np.asarray([place[caption] for each in instances for caption in each.captions], dtype=np.int64)
        embedded = text_embeddings(outputs, texts, setting.language)
        return score_selection(outputs.values, embedded[rows], instances)


task = CaptionSelection()
