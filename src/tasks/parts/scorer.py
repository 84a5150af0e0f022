"""The base of tasks in which a judge scores the captions of another setting."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from testbed.arrays import Array
from testbed.errors import DataError
from testbed.graph.nodes import Built
from testbed.metrics.scorers.caption_status import EMPTY, SCORED
from testbed.tasks.captioning import task as captioning
from testbed.tasks.task_base import Task

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = Array


class ScorerTask(Task):
    """Stored captions, scored with a judge's embeddings of texts."""

    leaves_out_unreadable = True

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """Checks the capabilities of the captioner, as for captioning."""
        return captioning.route(model, setting)

    def build(self, graph: Graph) -> Built:
        """The captions, and the judge's embeddings of the texts."""
        captions = graph.outputs_of(graph.judged)
        return Built(captions, {"texts": graph.text_embeddings(self.texts, by=graph.judge)})

    @abstractmethod
    def texts(self, setting: EvalSetting, values: Values) -> Sequence[str]:
        """The texts of a setting's samples and their captions, each once."""


def require_scored(status: Array, setting: EvalSetting) -> None:
    """Checks that embeddings are such that some caption could be scored; raises DataError if none could."""
    if np.isin(status, (SCORED, EMPTY)).any():
        return
    scorer = setting.scoring.by if setting.scoring is not None else "the scorer"
    raise DataError(
        f"{setting.name}: none of the {len(status)} captions can be scored: embeddings of {scorer} are not finite. At"
        " another --dtype they may be; --override embeds the texts again"
    )
