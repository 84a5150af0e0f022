"""CLIPScore of images and captions that are given: how well a dual encoder finds that they belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, Score
from testbed.metric_specs import MAIN
from testbed.metrics.clip.pairs import CLIP_SCORE, clip_score_metrics, cosine, pair_cosines
from testbed.metrics.scorers.retrieval import columns_of_captions, flat_captions
from testbed.tasks.parts.embedding import EmbeddingTask
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


SCORER = "clip_score@2"
_PAIRS = 2**15  # at a time, so that an image's embedding is not held once for each of its captions


@dataclass(frozen=True)
class ClipScoreOptions:
    """The task options of CLIPScore: a text in front of captions."""

    prefix: str = ""


class ClipScore(EmbeddingTask):
    """Each image with each of its own captions, by cosine."""

    name = "clip_score"
    options = ClipScoreOptions
    scorer = SCORER
    leaves_out_unreadable = True

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Adds the prefix of captions to what every task on texts describes."""
        return {**super().view_spec(setting), "prefix": options_of(setting, ClipScoreOptions).prefix}

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """The captions, each with the prefix."""
        before = options_of(setting, ClipScoreOptions).prefix
        return [before + caption for caption in dict.fromkeys(flat_captions(values.samples, setting.name)[0])]

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The cosines of all pairs, and their means."""
        captions, owners = flat_captions(values.samples, setting.name)
        texts, before = self.texts(setting, values), options_of(setting, ClipScoreOptions).prefix
        place = {text: row for row, text in enumerate(texts)}
        rows = np.asarray([place[before + caption] for caption in captions], dtype=np.int64)
        embedded = values.texts(texts)
        return score_pairs(values.outputs, embedded, owners, rows)


def score_pairs(images: Array, texts: Array, owners: Array, rows: Array) -> tuple[list[Score], list[Metric]]:
    """CLIPScore of all pairs of an image and one of its captions.

    Args:
        images: Float array [N, D]; a sample that could not be read is NaN, and its pairs are not scored.
        texts: Float array [T, D]: the distinct captions.
        owners: Integer array [M]: the image of each pair.
        rows: Integer array [M]: the row of ``texts`` of each pair.

    Returns:
        Scores of each image, raw cosines: ``clip_score``, the mean over its captions, and ``cosine.1``, ``cosine.2``, …
        of its captions in their order; NaN where there are none or fewer, or the image could not be read.
        And the metrics of `clip_score_metrics`, fractions over all pairs; the captions of an image are not independent,
        and standard errors are those of clusters.
    """
    owners = np.asarray(owners, dtype=np.int64)
    parts = [slice(start, start + _PAIRS) for start in range(0, len(owners), _PAIRS)]
    cosines = np.concatenate([np.zeros(0), *(pair_cosines(images[owners[part]], texts[rows[part]]) for part in parts)])
    counts = np.bincount(owners, minlength=len(images))
    sums = np.bincount(owners, weights=cosines, minlength=len(images))
    means = np.divide(sums, counts, out=np.full(len(images), np.nan), where=counts > 0)
    scores = [cosine(CLIP_SCORE.name, headline=MAIN).score(means, SCORER)]
    columns = columns_of_captions(cosines, owners, len(images))
    scores += [cosine(f"cosine.{number}").score(row, SCORER) for number, row in enumerate(columns, start=1)]
    return scores, clip_score_metrics(cosines, owners, scorer=SCORER)


task = ClipScore()
