"""Retrieval: which caption belongs to an image and which image to a caption, among all of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.entities import Metric, Score
from testbed.errors import DefinitionError
from testbed.metrics.scorers.retrieval import RECALL_K, SCORER, flat_captions, score_retrieval
from testbed.tasks.parts.embedding import EmbeddingTask
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


@dataclass(frozen=True)
class RetrievalOptions:
    """The task options of retrieval: the k of recall@k."""

    recall_k: Sequence[int] = RECALL_K

    def __post_init__(self) -> None:
        if not self.recall_k or min(self.recall_k) < 1:
            raise DefinitionError(f"recall_k is a list of integers larger than 0, not {self.recall_k!r}")


class Retrieval(EmbeddingTask):
    """Images and their captions, each against all others, by cosine."""

    name = "retrieval"
    options = RetrievalOptions
    scorer = SCORER

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Adds the k of recall@k to what every task on texts describes."""
        return {**super().view_spec(setting), "recall_k": self._recall_k(setting)}

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """The captions."""
        return list(dict.fromkeys(flat_captions(values.samples, setting.name)[0]))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Recall@k, median and mean reciprocal rank, in both directions."""
        captions, owners = flat_captions(values.samples, setting.name)
        texts = self.texts(setting, values)
        place = {text: row for row, text in enumerate(texts)}
        rows = np.asarray([place[caption] for caption in captions], dtype=np.int64)
        embedded = values.texts(texts)
        return score_retrieval(values.outputs, embedded[rows], owners, self._recall_k(setting))

    def _recall_k(self, setting: EvalSetting) -> list[int]:
        return sorted(set(options_of(setting, RetrievalOptions).recall_k))


task = Retrieval()
