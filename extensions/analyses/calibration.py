"""Corrects scores from rules or a judge with people's labels of some of the same answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from testbed.arrays import Array
from testbed.entities import groups_of
from testbed.errors import DataError
from testbed.extensions.analyses.calibrated import (
    CorrectedMean,
    labels_alone,
    post_stratified,
    prediction_powered,
    rogan_gladen_of,
)
from testbed.metrics.inference.clusters import clusters_of
from testbed.metrics.inference.judges import krippendorff_alpha
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.stored_results.side_by_side import evaluations_on, matching_models, scores_of
from testbed.tasks.parts.generation import texts_and_status

if TYPE_CHECKING:
    from testbed.answers.judges.label_files import Label
    from testbed.db.store import Store
    from testbed.entities import Evaluation

    Array = Array

Method = Literal["ppi", "post-stratified", "rogan-gladen"]
METHODS: Mapping[str, Callable[..., CorrectedMean]] = {
    "ppi": prediction_powered,
    "post-stratified": post_stratified,
    "rogan-gladen": rogan_gladen_of,
}


@dataclass(frozen=True)
class CalibratedScore:
    """A model's stored and corrected scores on a setting.

    Attributes:
        model: The model.
        n: The number of samples with a score or a label.
        stored: The mean of the stored scores.
        stderr: Its standard error.
        labels: The mean of the labels alone.
        corrected: The corrected mean.
        alpha: Krippendorff's α between stored scores and labels; None if undefined.
        outdated: The number of labels for answers other than the stored ones; these are ignored.
        clusters: The number of groups of samples for all standard errors; None if samples are independent.
    """

    model: str
    n: int
    stored: float | None
    stderr: float | None
    labels: CorrectedMean
    corrected: CorrectedMean
    alpha: float | None
    outdated: int = 0
    clusters: int | None = None


def calibrate(
    store: Store,
    setting: str,
    labels: Mapping[str, Mapping[str, Sequence[Label]]],
    method: Method,
    score: str,
    models: Collection[str] = (),
) -> list[CalibratedScore]:
    """Corrects the scores of models with labels on a setting.

    Args:
        store: The results store.
        setting: The setting, such as ``MMStar@judge``.
        labels: The result of `testbed.answers.judges.label_files.read_labels`; several annotators are averaged.
        method: The correction; docs/reading-answers.md explains the assumptions of each method.
        score: The per-sample score.
        models: Only these models, by names or patterns; all by default.

    Raises:
        DataError: If no model has labels, a label belongs to no sample, or the labelled model is unclear.
    """
    wanted = set(matching_models(store, models))
    chosen = {model: value for model, value in evaluations_on(store, setting).items() if not wanted or model in wanted}
    if "" in labels and len(chosen) > 1:
        raise DataError(
            f"the labels have no column 'model', but {len(chosen)} models are on {setting}; add the"
            " column,"
            " or name one model with --models"
        )
    found = []
    for model, evaluation in sorted(chosen.items()):
        given = {**labels.get("", {}), **labels.get(model, {})}
        if not given or evaluation.dataset_id is None:
            continue
        samples = store.datasets.get(evaluation.dataset_id).samples
        ids, groups = [sample.id for sample in samples], groups_of(samples)
        clusters = None if groups is None else clusters_of(groups)
        unknown = sorted(set(given) - set(ids))
        if unknown:
            raise DataError(
                f"the labels have the id {unknown[0]!r}, which is not a sample of {setting}; its samples are"
                f" {ids[0]!r}, …"
            )
        values = scores_of(store, evaluation, score).astype(np.float64)
        own, outdated = _of_answers(store, evaluation, given, ids)
        scored = ~np.isnan(values)
        mean, stderr = mean_and_stderr(values[scored], None if clusters is None else clusters[scored])
        found.append(
            CalibratedScore(
                model=model,
                n=int((~np.isnan(values) | ~np.isnan(own)).sum()),
                stored=mean,
                stderr=stderr,
                labels=labels_alone(own, clusters=clusters),
                corrected=METHODS[method](own, values, clusters=clusters),
                alpha=krippendorff_alpha(np.stack([values, own])),
                outdated=outdated,
                clusters=None if clusters is None else int(clusters.max()) + 1,
            )
        )
    if not found:
        named = ", ".join(filter(None, sorted(labels)[:3]))
        raise DataError(f"no model on {setting} has labels; {f'labelled: {named}' if named else 'the file has none'}")
    return found


def _of_answers(
    store: Store, evaluation: Evaluation, given: Mapping[str, Sequence[Label]], ids: Sequence[str]
) -> tuple[Array, int]:
    """The mean label of each sample, NaN without a label, and the number of labels for other answers.

    Raises:
        DataError: If all labels are for other answers.
    """
    texts: Sequence[str | None] = [None] * len(ids)
    if any(label.answer.strip() for several in given.values() for label in several):
        texts, _ = texts_and_status(store.outputs.read(evaluation.id, "text"))
    pairs = list(zip(ids, texts, strict=True))
    kept = [[label.score for label in given.get(each, ()) if label.is_of(text)] for each, text in pairs]
    outdated = sum(map(len, given.values())) - sum(map(len, kept))
    if outdated and not any(kept):
        raise DataError(
            f"all labels of {evaluation.model} are for answers other than the stored ones; testbed export answers"
            " writes"
            " these"
        )
    return np.array([np.mean(labels_of) if labels_of else np.nan for labels_of in kept]), outdated
