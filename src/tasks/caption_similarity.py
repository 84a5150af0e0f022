"""Captions against reference captions, by a text embedder: CLIP-CC-Bench's metrics, and variants of the same kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.data.language.sentences import Splitter, get_splitter
from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metric_specs import NEITHER, MetricSpec
from testbed.metrics.caption_similarity import (
    SCORER,
    SimilarityOptions,
    score_captions,
    similarity_metrics,
    texts_of,
)
from testbed.metrics.scorers.caption_status import ERROR
from testbed.tasks.captioning import CaptioningOptions, require_some
from testbed.tasks.parts.generation import READING, texts_and_status
from testbed.tasks.parts.scorer import ScorerTask, require_scored
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class CaptionSimilarity(ScorerTask):
    """The cosine of caption and reference, and precision, recall and F1 of their sentences."""

    name = "caption_similarity"
    options = CaptioningOptions
    scorer = SCORER

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The kernel's options, and what cuts texts into sentences."""
        options = options_of(setting, CaptioningOptions).similarity
        splitter = splitter_of(setting, options)
        cut = {"splitter": splitter.id} if splitter is not None else {}
        return {"scorer": SCORER, **options.spec(), **cut, **READING}

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """Captions, references, and the sentences of both."""
        options = options_of(setting, CaptioningOptions).similarity
        captions, _ = texts_and_status(values.outputs)
        ids = [sample.id for sample in values.samples]
        return texts_of(captions, references_of(setting, values.samples), splitter_of(setting, options), options, ids)

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """See `testbed.metrics.caption_similarity`; in the scale of the unit interval and raw."""
        options = options_of(setting, CaptioningOptions).similarity
        captions, status = texts_and_status(values.outputs)
        require_some(status, values, setting)
        ids = [sample.id for sample in values.samples]
        splitter, references = splitter_of(setting, options), references_of(setting, values.samples)
        texts = texts_of(captions, references, splitter, options, ids)
        rows = {text: row for row, text in enumerate(texts)}
        scores = score_captions(
            captions, references, rows, values.texts(texts), splitter, options, errors=status == ERROR, ids=ids
        )
        require_scored(scores.scores["status"], setting)
        baselines = [
            MetricSpec(f"{name}_baseline", "", NEITHER).metric(value, options.baseline_pairs, scorer=SCORER)
            for name, value in scores.baselines.items()
        ]
        return scores.rows(), [*similarity_metrics(scores), *baselines]


def splitter_of(setting: EvalSetting, options: SimilarityOptions) -> Splitter | None:
    """Returns the sentence splitter of the setting's language; None if no text has to be split."""
    return get_splitter(options.chunking, setting.language) if options.fine else None


def references_of(setting: EvalSetting, samples: Sequence[SampleInfo]) -> list[list[str]]:
    """The reference captions of each sample; raises DataError if targets are something else."""
    for sample in samples:
        if not isinstance(sample.target, list) or not all(isinstance(each, str) for each in sample.target):
            raise DataError(
                f"{setting.name}: a list of reference captions is expected as the target of {sample.id}, got"
                f" {sample.target!r}"
            )
    return [sample.target for sample in samples]


task = CaptionSimilarity()
