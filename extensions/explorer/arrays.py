"""Arrays with a value for each sample of a setting: outputs of an evaluation, and data for filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import SampleInfo, groups_of
from testbed.extensions.explorer.packing import packed_counts
from testbed.metrics.inference.clusters import clusters_of
from testbed.stored_results.evaluated import LOGITS, SettingSamples, ShownEvaluation
from testbed.stored_results.slices import slice_text

TOP = 5  # classes shown of each prediction
_MOST_VALUES = 500  # maximum values of a slice that is a filter
RIGHT = 0.5  # a sample whose score is at least this counts as right


@dataclass(frozen=True)
class EvaluationArrays:
    """The outputs of an evaluation for each of the n samples of its setting.

    Attributes:
        score: Its main score, float [n]; NaN if missing.
        prediction: The class with the largest logit, int [n]; −1 if missing. None without logits.
        confidence: The share of that class, float [n], or NaN.
        errors: Positions of the samples that could not be read.
        top: The best classes and their shares, [kept samples, k] each; None if not kept.
        kept: The positions of these samples, in order.
    """

    score: Array
    prediction: Array | None
    confidence: Array | None
    errors: frozenset[int]
    top: tuple[Array, Array] | None
    kept: Array

    def has_top(self, positions: Sequence[int]) -> bool:
        """Returns whether the best classes of these samples are kept."""
        return self.top is not None and bool(np.isin(positions, self.kept).all())

    def top_of(self, positions: Sequence[int]) -> tuple[Array, Array]:
        """The best classes of samples."""
        assert self.top is not None
        rows = np.searchsorted(self.kept, positions)
        return self.top[0][rows], self.top[1][rows]


def arrays_of(
    samples: SettingSamples, shown: ShownEvaluation, keep: Sequence[int], multilabel: bool
) -> EvaluationArrays:
    """Computes the arrays of an evaluation.

    Args:
        samples: The samples of its setting.
        shown: The evaluation.
        keep: Positions of the samples whose best classes to keep, in order.
        multilabel: Whether a sample may have several classes.
    """
    errors = samples.store.outputs.errors(shown.id)
    own = samples.places_in(shown)
    there = {int(at): index for index, at in enumerate(own) if at >= 0} if errors else {}
    unread = frozenset(there[at] for at in errors if at in there)
    score = _score(samples, shown, own)
    kept = np.asarray(keep, dtype=np.int64)
    if shown.kind != LOGITS:
        return EvaluationArrays(score, None, None, unread, None, kept)
    prediction = np.full(samples.size, -1, dtype=np.int32)
    confidence = np.full(samples.size, np.nan, dtype=np.float32)
    top: tuple[Array, Array] | None = None
    for positions, logits in samples.blocks(shown):
        best, shares = top_classes(shown, logits, multilabel)
        prediction[positions], confidence[positions] = best[:, 0], shares[:, 0]
        if top is None:
            shape = len(kept), best.shape[1]
            top = np.full(shape, -1, dtype=np.int32), np.full(shape, np.nan, dtype=np.float32)
        rows = np.searchsorted(kept, positions)
        here = np.flatnonzero(np.isin(positions, kept))
        top[0][rows[here]], top[1][rows[here]] = best[here], shares[here]
    sure = None if multilabel else confidence  # a logit is not a share
    return EvaluationArrays(score, prediction, sure, unread, top if len(kept) else None, kept)


def _wide(values: Array, width: int) -> Array:
    lacking = width - values.shape[1]
    return np.pad(values, ((0, 0), (0, lacking)), constant_values=-1 if values.dtype.kind == "i" else np.nan)


def _score(samples: SettingSamples, shown: ShownEvaluation, own: Array) -> Array:
    """The main score of each sample, float [n]; NaN if missing."""
    name = shown.right or shown.main
    found = np.full(samples.size, np.nan, dtype=np.float32)
    if name is None:
        return found
    values = next(iter(samples.store.scores.read(shown.id, name).values()))
    known = (own >= 0) & (own < len(values))
    found[known] = values[own[known]]
    return np.where(np.isfinite(found), found, np.nan)


def top_classes(shown: ShownEvaluation, rows: Array, multilabel: bool) -> tuple[Array, Array]:
    """Finds the classes with the largest logits, and their shares.

    Args:
        shown: The evaluation.
        rows: Stored logits [n, C]; NaN for a sample without output.
        multilabel: Whether to return the logits instead of their softmax.

    Returns:
        Integer array [n, k] and float array [n, k]; −1 and NaN for a sample without finite logits.
    """
    logits = shown.logits(rows)
    known = np.asarray(np.isfinite(logits).all(axis=1))
    logits = np.where(known[:, None], logits, 0)
    k = min(TOP, logits.shape[1])
    best = np.argpartition(-logits, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(logits, best, axis=1)
    order = np.lexsort((best, -values), axis=1)  # ties: the first class, as in metrics
    best, values = np.take_along_axis(best, order, axis=1), np.take_along_axis(values, order, axis=1)
    best[:, 0] = np.argmax(logits, axis=1)
    if multilabel:
        shares = values.astype(np.float64)
    else:
        largest = values[:, :1]
        shares = np.exp(values - largest, dtype=np.float64)
        shares /= np.exp(logits - largest).sum(axis=1, keepdims=True, dtype=np.float64)
    return np.where(known[:, None], best, -1), np.where(known[:, None], shares, np.nan)


def _stacked(rows: Sequence[Any], width: int) -> Array:
    """Stacks rows to an array [n, width]; NaN for None."""
    lacking = np.full(width, np.nan, dtype=np.float32)
    return np.stack([lacking if row is None else row for row in rows])


def top_of_all(
    shown: Sequence[ShownEvaluation], outputs: Sequence[Sequence[Any]], multilabel: bool
) -> list[tuple[Array, Array]]:
    """Computes `top_classes` of several evaluations, batched by view; all with the same k."""
    alike: dict[tuple[str, Any], list[int]] = {}
    for number, (evaluation, rows) in enumerate(zip(shown, outputs, strict=True)):
        shape = next((row.shape for row in rows if row is not None), None)
        alike.setdefault((evaluation.seen_as, shape), []).append(number)
    found: dict[int, tuple[Array, Array]] = {}
    for (_, shape), numbers in alike.items():
        together = [row for number in numbers for row in outputs[number]]
        length = len(outputs[numbers[0]])
        if shape is None:
            classes, shares = np.full((len(together), 1), -1), np.full((len(together), 1), np.nan)
        else:
            classes, shares = top_classes(shown[numbers[0]], _stacked(together, shape[0]), multilabel)
        for index, number in enumerate(numbers):
            part = slice(index * length, (index + 1) * length)
            found[number] = classes[part], shares[part]
    width = max(classes.shape[1] for classes, _ in found.values())
    return [(_wide(found[place][0], width), _wide(found[place][1], width)) for place in range(len(shown))]


def filters_of(samples: SettingSamples) -> dict[str, Any]:
    """The filters of the grid of samples: class, slices, and numbers of models that are right and wrong.

    Includes the groups of samples for comparisons: see `clusters_of`.
    """
    infos = samples.store.datasets.get(samples.dataset).samples
    right, counted = right_counts(samples)
    slices = {}
    groups = groups_of(infos)
    clusters = None if groups is None else clusters_of(groups)
    if groups is not None:
        slices["group"] = list(groups)
    for key in sorted({key for info in infos for key in info.slices or {}}):
        slices[key] = [slice_text((info.slices or {}).get(key)) for info in infos]
    return {
        "target": packed_counts(np.array([_class(info) for info in infos])),
        "right": packed_counts(right),
        "counted": packed_counts(counted),
        "clusters": None if clusters is None else packed_counts(clusters),
        "slices": {key: made for key, values in slices.items() if (made := _coded(values)) is not None},
    }


def right_counts(samples: SettingSamples) -> tuple[Array, Array]:
    """Counts models that are right, and models with a score: integer arrays [n]."""
    right, counted = np.zeros(samples.size, dtype=np.int64), np.zeros(samples.size, dtype=np.int64)
    for shown_one in samples.shown:
        if shown_one.right is not None:
            score = _score(samples, shown_one, samples.places_in(shown_one))
            right += np.nan_to_num(score) >= RIGHT
            counted += ~np.isnan(score)
    return right, counted


def _class(info: SampleInfo) -> int:
    """The only class of a sample; −1 if it has several or none."""
    target = info.target[0] if isinstance(info.target, list) and len(info.target) == 1 else info.target
    return target if type(target) is int and target >= 0 else -1


def _coded(values: Sequence[str | None]) -> dict[str, Any] | None:
    names = sorted({value for value in values if value is not None})
    if not 1 < len(names) <= _MOST_VALUES:
        return None
    code = {name: number for number, name in enumerate(names)}
    return {"names": names, "codes": packed_counts(np.array([-1 if text is None else code[text] for text in values]))}
