"""Captions against the images that they are about, by a dual encoder: CLIPScore, and RefCLIPScore with references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, Score
from testbed.graph.nodes import Built
from testbed.metrics.clip.pairs import REF_CLIP_SCORE, clip_score_metrics, cosine, pair_cosines, ref_clip_score
from testbed.metrics.scorers.caption_status import EMPTY, ERROR, SCORED, STATUS, shares
from testbed.tasks.caption_similarity import references_of
from testbed.tasks.captioning import CaptioningOptions, require_some
from testbed.tasks.clip_score import SCORER
from testbed.tasks.parts.generation import READING, texts_and_status
from testbed.tasks.parts.scorer import ScorerTask, require_scored
from testbed.tasks.task_base import options_of

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

    Array = Array

COSINE, REFERENCE_COSINE = cosine("cosine"), cosine("reference_cosine")


class CaptionClipScore(ScorerTask):
    """The cosine of caption and image."""

    name = "caption_clip_score"
    options = CaptioningOptions
    scorer = SCORER

    def build(self, graph: Graph) -> Built:
        """The captions, and the judge's embeddings of the texts and the images."""
        built = super().build(graph)
        images = graph.image_embeddings(graph.judged, by=graph.judge)
        return Built(built.outputs, {**built.inputs, "images": images})

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The scorer's formulas, and what is put in front of captions."""
        return {"scorer": SCORER, "prefix": options_of(setting, CaptioningOptions).prefix, **READING}

    def texts(self, setting: EvalSetting, values: Values) -> list[str]:
        """Captions and references."""
        captions, _ = texts_and_status(values.outputs)
        before = options_of(setting, CaptioningOptions).prefix
        given = [caption for caption in captions if caption]
        given += [each.strip() for several in references_of(setting, values.samples) for each in several]
        return list(dict.fromkeys(before + text for text in given))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """CLIPScore needs no reference; RefCLIPScore is of the samples that have some.

        Missing captions, errors and images that cannot be read are not scored; a blank caption scores 0.

        Returns:
            The scores ``cosine`` and ``reference_cosine`` (of the most similar reference), both raw, ``ref_clip_score``
            and ``status``; the metrics ``clip_score``, ``clip_score_pairwise`` and ``ref_clip_score`` (see
            `testbed.metrics.clip.pairs`), ``coverage`` and ``empty``.
        """
        captions, status = texts_and_status(values.outputs)
        require_some(status, values, setting)
        images = values.images()
        status[list(images.errors)] = ERROR
        texts = self.texts(setting, values)
        embedded, row = values.texts(texts), {text: place for place, text in enumerate(texts)}
        before, scored = options_of(setting, CaptioningOptions).prefix, np.flatnonzero(status == SCORED)
        own = embedded[[row[before + str(captions[place])] for place in scored]]
        references = references_of(setting, values.samples)
        others = [embedded[[row[before + each.strip()] for each in references[place]]] for place in scored]
        cosines = np.where(status == EMPTY, 0.0, np.nan)
        if len(scored):
            cosines[scored] = pair_cosines(images.values[scored], own)
        nearest = np.where((status == EMPTY) & np.array([bool(reference) for reference in references]), 0.0, np.nan)
        nearest[scored] = [_nearest(caption, several) for caption, several in zip(own, others, strict=True)]
        status[(status == SCORED) & np.isnan(cosines)] = ERROR  # an embedding is not finite
        require_scored(status, setting)
        combined = ref_clip_score(cosines, nearest[:, None])
        scores = [COSINE.score(cosines, SCORER), STATUS.score(status, SCORER)]
        referred = any(references)
        if referred:
            scores += [REFERENCE_COSINE.score(nearest, SCORER), REF_CLIP_SCORE.score(combined, SCORER)]
        metrics = clip_score_metrics(cosines, reference_scores=combined if referred else None, scorer=SCORER)
        return scores, [*metrics, *shares(status, SCORER)]


def _nearest(caption: Array, references: Array) -> float:
    """The cosine of a caption [D] and the most similar of its references [m, D]; NaN without references."""
    if not len(references):
        return float("nan")
    return float(pair_cosines(np.repeat(caption[None], len(references), axis=0), references).max())


task = CaptionClipScore()
