"""Multi-label classification: an image has several classes, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.entities import Metric, Score
from testbed.errors import DefinitionError
from testbed.metrics.scorers.multilabel import SCORER, score_labels
from testbed.tasks.classification import Classification
from testbed.tasks.parts.logits import viewed_logits

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class MultiLabel(Classification):
    """Logits as in classification, from a classifier or zero-shot, which rank the images for each class."""

    name = "multilabel"

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The evaluated classes, and the scorer."""
        if setting.metrics_fn is not None:
            raise DefinitionError(f"{setting.name}: metrics_fn is for classification, not for multi-label settings")
        return {**super().view_spec(setting), "metric": {"scorer": SCORER}}

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Mean average precision."""
        logits = viewed_logits(
            values.outputs, setting.class_sublist, setting.class_groups, values.restricted, setting.name
        )
        return score_labels(logits, values.samples, values.class_names, setting.name)


task = MultiLabel()
