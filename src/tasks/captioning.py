"""Captioning: a model describes an image (or a video) in words.

Captions are stored, and compared with reference captions word by word; judges score them later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, Score, groups_of
from testbed.errors import DataError
from testbed.metric_specs import NEITHER, MetricSpec
from testbed.metrics.caption_similarity import SimilarityOptions
from testbed.metrics.captions.rows import OverlapOptions, overlap_rows
from testbed.metrics.inference.clusters import clusters_of, effective_clusters
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.caption_status import ERROR, MISSING, STATUS, shares
from testbed.models.base.capability import Message
from testbed.tasks.parts.generation import GenerationOptions, GenerationTask, texts_and_status
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = Array

SCORER = "captioning@2"
WORDS = MetricSpec("words", "words", NEITHER, lowest=0)


@dataclass(frozen=True)
class CaptioningOptions(GenerationOptions):
    """The task options of captioning.

    Attributes:
        overlap: How captions are compared with reference captions.
        similarity: For judges that compare captions with references.
        prefix: For judges that compare captions with images: a text put in front of captions.
    """

    overlap: OverlapOptions = field(default_factory=OverlapOptions)
    similarity: SimilarityOptions = field(default_factory=SimilarityOptions)
    prefix: str = ""


class Captioning(GenerationTask):
    """Generates a caption from an image and an optional prompt."""

    name = "captioning"
    options = CaptioningOptions
    scorer = SCORER

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The scorer, and how captions are compared with references, where the setting says that."""
        given = options_of(setting, CaptioningOptions).overlap.spec()
        return {**super().view_spec(setting), **({"overlap": given} if given else {})}

    def message(self, setting: EvalSetting, sample: str, image: Any | None) -> Message:
        """The image, and the setting's prompt if it has one."""
        prompt = options_of(setting, CaptioningOptions).prompt
        return Message([part for part in (image, prompt) if part is not None], sample=sample)

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The coverage and the length of captions, and what they share with reference captions, where there are some.

        Returns:
            The scores ``status`` (0 a caption, 1 none, 2 a blank one or a refusal, 3 an error) and ``words`` (of each
            caption); the metrics ``coverage`` (the share of samples with a caption, blank or not), ``empty`` (with a
            blank one) and ``words`` (the mean over the captions). With references, the scores and metrics of
            `overlap_rows` too.

        Raises:
            DataError: If no sample has a caption.
        """
        texts, status = texts_and_status(values.outputs)
        require_some(status, values, setting)
        words = np.asarray([np.nan if text is None else len(text.split()) for text in texts], dtype=np.float64)
        counted = words[~np.isnan(words)]
        groups = groups_of(values.samples)
        clusters = None if groups is None else clusters_of(groups)
        clusters = None if clusters is None else clusters[~np.isnan(words)]
        mean, stderr = mean_and_stderr(counted, clusters)
        scores = [STATUS.score(status, SCORER), WORDS.score(words, SCORER)]
        length = WORDS.metric(mean, len(counted), stderr, scorer=SCORER, clusters=effective_clusters(clusters))
        more_scores, more_metrics = overlap_rows(
            texts,
            [captions_in(sample.target) for sample in values.samples],
            options_of(setting, CaptioningOptions).overlap,
        )
        return [*scores, *more_scores], [*shares(status, SCORER), length, *more_metrics]


def captions_in(target: Any) -> list[str]:
    """The reference captions of a sample; none if its target is something else, such as a class."""
    texts = target if isinstance(target, list) else []
    return texts if all(isinstance(text, str) for text in texts) else []


def require_some(status: Array, values: Values, setting: EvalSetting) -> None:
    """Checks that at least one sample has a caption; raises DataError if none has."""
    if ((status != MISSING) & (status != ERROR)).any():
        return
    first = ", ".join(sample.id for sample in values.samples[:3])
    said = next((str(value["finish_reason"]) for value in values.outputs if value is not None), "unreadable")
    hint = "; check that the ids of the predictions match the data set" if (status == MISSING).all() else ""
    raise DataError(
        f"{setting.name}: none of the {len(status)} samples ({first}, …) has a caption; the first one: {said}{hint}"
    )


task = Captioning()
