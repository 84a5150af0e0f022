"""Association (WinoGAViL): which images of an instance go with its cue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from testbed.entities import Metric, Score
from testbed.metrics.scorers.association import SCORER, instances_of, score_association
from testbed.tasks.parts.embedding import EmbeddingTask

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class Association(EmbeddingTask):
    """The images of an instance against its cue, by cosine."""

    name = "association"
    scorer = SCORER

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """The cues of all instances, each once."""
        return list(dict.fromkeys(instance.captions[0] for instance in instances_of(values.samples, setting.name)))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Jaccard indices."""
        instances = instances_of(values.samples, setting.name)
        texts = self.texts(setting, values)
        place = {text: row for row, text in enumerate(texts)}
        rows = np.asarray([place[instance.captions[0]] for instance in instances], dtype=np.int64)
        return score_association(values.outputs, values.texts(texts)[rows], instances)


task = Association()
