"""Retrieval: which caption belongs to an image and which image to a caption, among all of a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.entities import Metric, Score
from testbed.errors import DefinitionError
from testbed.metrics.scorers.retrieval import RECALL_K, SCORER, flat_captions, score_retrieval
from testbed.tasks.parts.embedding import TextTask

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class Retrieval(TextTask):
    """Images and their captions, each against all others, by cosine."""

    name = "retrieval"
    options = frozenset({"recall_k"})
    scorer = SCORER

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """As every task on texts, and the k of recall@k."""
        return {**super().view_spec(setting), "recall_k": recall_k(setting)}

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
        return score_retrieval(values.outputs, embedded[rows], owners, recall_k(setting))


def recall_k(setting: EvalSetting) -> list[int]:
    """The k of recall@k that a setting asks for, in ascending order.

    Raises:
        DefinitionError: If they are no positive integers.
    """
    given = setting.task_options.get("recall_k", RECALL_K)
    if not given or not all(type(k) is int and k > 0 for k in given):
        raise DefinitionError(f"{setting.name}: recall_k is a list of integers larger than 0, not {given!r}")
    return sorted(set(given))


task = Retrieval()
