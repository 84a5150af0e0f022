"""Scores that rules or a judge gave, corrected with the labels that people gave some of the same answers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from testbed.analyses.side_by_side import evaluations_on, scores_of
from testbed.errors import DataError
from testbed.metrics.calibrated import Estimate, labels_alone, post_stratified, prediction_powered, rogan_gladen_of
from testbed.metrics.judges import krippendorff_alpha
from testbed.metrics.statistics import mean_and_stderr

if TYPE_CHECKING:
    from testbed.db.store import Store

    Array = np.ndarray[Any, Any]

Method = Literal["ppi", "post-stratified", "rogan-gladen"]
METHODS: Mapping[str, Callable[..., Estimate]] = {
    "ppi": prediction_powered,
    "post-stratified": post_stratified,
    "rogan-gladen": rogan_gladen_of,
}
ID, LABEL, MODEL, ANNOTATOR = "id", "label", "model", "annotator"
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}


@dataclass(frozen=True)
class Calibrated:
    """A model's score on a setting, as it is stored and corrected.

    Attributes:
        model: The model.
        n: The number of samples with a score or a label.
        stored: The mean of the stored scores.
        stderr: Its standard error.
        labels: The mean of the labels alone.
        corrected: The corrected mean.
        alpha: Krippendorff's α between stored scores and labels; None where they do not tell.
    """

    model: str
    n: int
    stored: float | None
    stderr: float | None
    labels: Estimate
    corrected: Estimate
    alpha: float | None


def read_labels(path: Path) -> dict[str, dict[str, list[float]]]:
    """The labels in a CSV file: model (empty if not said) → sample → the labels of its annotators.

    Columns: ``id`` (of the sample), ``label`` (a number in [0, 1], yes or no, correct or incorrect), and, if there are
    several, ``model`` (whose answer it is about) and ``annotator``; the labels of several annotators are averaged.

    Raises:
        DataError: If the file cannot be read, lacks a column, or a label is none; or an annotator labels an answer
            twice.
    """
    found: dict[str, dict[str, list[float]]] = {}
    seen: set[tuple[str, str, str]] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or ())
            if not {ID, LABEL} <= set(columns):
                raise DataError(f"{path}: expected the columns id and label; found: {', '.join(columns) or 'none'}")
            for row in reader:
                where = f"{path}, line {reader.line_num}"
                key = (row.get(MODEL) or "", row[ID] or "", row.get(ANNOTATOR) or "")
                if key in seen:
                    raise DataError(f"{where}: {row[ID]!r} is labelled twice by the same annotator")
                seen.add(key)
                found.setdefault(key[0], {}).setdefault(key[1], []).append(_label(row[LABEL] or "", where))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not found:
        raise DataError(f"{path} has no labels")
    return found


def _label(text: str, where: str) -> float:
    word = text.strip().lower()
    try:
        value = _WORDS[word] if word in _WORDS else float(word)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise DataError(f"{where}: the label {text!r} is no number from 0 to 1, and not yes or no")
    return value


def calibrate(
    store: Store,
    setting: str,
    labels: Mapping[str, Mapping[str, Sequence[float]]],
    method: Method,
    score: str,
    models: Collection[str] = (),
) -> list[Calibrated]:
    """The corrected scores of the models on a setting that have labels.

    Args:
        store: The results store.
        setting: The setting, such as ``MMStar@judge``.
        labels: As `read_labels` gives them.
        method: How scores are corrected; docs/judges.md says which method is for which labels.
        score: The per-sample score.
        models: Only these models; all by default.

    Raises:
        DataError: If no model has any labels, a label is of no sample, or it is not said whose answers are labelled.
    """
    chosen = {model: each for model, each in evaluations_on(store, setting).items() if not models or model in models}
    if "" in labels and len(chosen) > 1:
        raise DataError(
            f"the labels do not say whose answers they are of, but {len(chosen)} models are on {setting}; give them a"
            " column 'model', or name one model with --models"
        )
    found = []
    for model, evaluation in sorted(chosen.items()):
        given = {**labels.get("", {}), **labels.get(model, {})}
        if not given or evaluation.dataset_id is None:
            continue
        ids = [sample.id for sample in store.dataset(evaluation.dataset_id).samples]
        unknown = sorted(set(given) - set(ids))
        if unknown:
            raise DataError(
                f"the labels are of {unknown[0]!r}, which is no sample of {setting}; these are {ids[0]!r}, …"
            )
        values = scores_of(store, evaluation, score).astype(np.float64)
        own = np.array([np.mean(given[each]) if each in given else np.nan for each in ids])
        mean, stderr = mean_and_stderr(values[~np.isnan(values)])
        found.append(
            Calibrated(
                model=model,
                n=int((~np.isnan(values) | ~np.isnan(own)).sum()),
                stored=mean,
                stderr=stderr,
                labels=labels_alone(own),
                corrected=METHODS[method](own, values),
                alpha=krippendorff_alpha(np.stack([values, own])),
            )
        )
    if not found:
        raise DataError(f"no model on {setting} has labels; they are of {', '.join(sorted(labels)[:3]) or 'nobody'}")
    return found
