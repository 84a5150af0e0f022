"""Arrays with a value for each sample of a setting: what an evaluation said, and what filters need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.entities import SampleInfo
from testbed.plotting.explorer.evaluated import LOGITS, SettingSamples, Shown
from testbed.plotting.explorer.packing import packed_counts

Array = np.ndarray[Any, Any]

TOP = 5  # classes shown of each prediction
_AT_ONCE = 2048  # samples whose logits are read at a time
_MOST_VALUES = 500  # of a slice; one with more is no filter
RIGHT = 0.5  # a sample whose score is at least this counts as right


@dataclass(frozen=True)
class EvaluationArrays:
    """What an evaluation said of each of the n samples of its setting.

    Attributes:
        score: Its main score, float [n]; NaN where there is none.
        prediction: The class with the largest logit, int [n]; −1 where there is none. None without logits.
        confidence: The share of that class, float [n], or NaN.
        errors: Positions of the samples that could not be read.
        top: The best classes and their shares, [kept samples, k] each; None where they were not kept.
        top_rows: Position → row of ``top``.
    """

    score: Array
    prediction: Array | None
    confidence: Array | None
    errors: frozenset[int]
    top: tuple[Array, Array] | None
    top_rows: dict[int, int]

    def has_top(self, positions: Sequence[int]) -> bool:
        """Whether the best classes of these samples are known."""
        return self.top is not None and all(each in self.top_rows for each in positions)

    def top_of(self, positions: Sequence[int]) -> tuple[Array, Array]:
        """The best classes of samples."""
        assert self.top is not None
        rows = [self.top_rows[each] for each in positions]
        return self.top[0][rows], self.top[1][rows]


def arrays_of(samples: SettingSamples, shown: Shown, keep: Sequence[int], multilabel: bool) -> EvaluationArrays:
    """The arrays of an evaluation.

    Args:
        samples: Of its setting.
        shown: The evaluation.
        keep: Samples whose best classes are kept.
        multilabel: Whether a sample may have several classes.
    """
    errors = samples.store.sample_errors(shown.id)
    every = range(samples.size)
    own = samples.positions_in(shown, every)
    there = {at: place for place, at in enumerate(own) if at is not None}
    unread = frozenset(there[at] for at in errors if at in there)
    score = _score(samples, shown, own)
    if shown.kind != LOGITS:
        return EvaluationArrays(score, None, None, unread, None, {})
    prediction = np.full(samples.size, -1, dtype=np.int64)
    confidence = np.full(samples.size, np.nan)
    kept = sorted(keep)
    parts: list[tuple[Array, Array]] = []
    for start in range(0, samples.size, _AT_ONCE):
        positions = range(start, min(start + _AT_ONCE, samples.size))
        best, shares = top_classes(shown, samples.output_rows(shown, positions), multilabel)
        prediction[start : positions.stop], confidence[start : positions.stop] = best[:, 0], shares[:, 0]
        rows = [each - start for each in kept if start <= each < positions.stop]
        parts.append((best[rows], shares[rows]))
    width = max((part[0].shape[1] for part in parts), default=1)
    top = tuple(np.concatenate([_wide(part[column], width) for part in parts]) for column in (0, 1))
    rows_of = {position: row for row, position in enumerate(kept)}
    sure = None if multilabel else confidence  # a logit is no share
    return EvaluationArrays(score, prediction, sure, unread, (top[0], top[1]) if kept else None, rows_of)


def _wide(values: Array, width: int) -> Array:
    lacking = width - values.shape[1]
    return np.pad(values, ((0, 0), (0, lacking)), constant_values=-1 if values.dtype.kind == "i" else np.nan)


def _score(samples: SettingSamples, shown: Shown, own: Sequence[int | None]) -> Array:
    name = shown.right or shown.main
    found = np.full(samples.size, np.nan)
    if name is None:
        return found
    values = next(iter(samples.store.scores(shown.id, name).values()))
    places = [(place, at) for place, at in enumerate(own) if at is not None and at < len(values)]
    if places:
        to, at = np.array(places).T
        found[to] = values[at]
    return np.where(np.isfinite(found), found, np.nan)


def top_classes(shown: Shown, rows: Sequence[Any], multilabel: bool) -> tuple[Array, Array]:
    """The classes with the largest logits, and their shares.

    Args:
        shown: The evaluation.
        rows: Of each of n samples its logits, or None.
        multilabel: Whether the logits themselves are returned rather than their softmax.

    Returns:
        Integer array [n, k] and float array [n, k]; −1 and NaN for a sample without finite logits.
    """
    known = [place for place, row in enumerate(rows) if row is not None and np.isfinite(row).all()]
    if not known:
        return np.full((len(rows), 1), -1), np.full((len(rows), 1), np.nan)
    logits = shown.logits(np.stack([rows[place] for place in known]))
    k = min(TOP, logits.shape[1])
    best = np.argpartition(-logits, k - 1, axis=1)[:, :k] if k < logits.shape[1] else np.argsort(-logits, axis=1)
    values = np.take_along_axis(logits, best, axis=1)
    order = np.lexsort((best, -values), axis=1)  # of equal logits the first class, as metrics have it
    best, values = np.take_along_axis(best, order, axis=1), np.take_along_axis(values, order, axis=1)
    first = np.argmax(logits, axis=1)
    best[:, 0] = np.where(values[:, 0] == logits[np.arange(len(logits)), first], first, best[:, 0])
    if multilabel:
        shares = values.astype(np.float64)
    else:
        largest = logits.max(axis=1, keepdims=True)
        shares = np.exp(values - largest, dtype=np.float64)
        shares /= np.exp(logits - largest).sum(axis=1, keepdims=True, dtype=np.float64)
    classes, spread = np.full((len(rows), k), -1), np.full((len(rows), k), np.nan)
    classes[known], spread[known] = best, shares
    return classes, spread


def filters_of(samples: SettingSamples) -> dict[str, Any]:
    """What the grid of samples filters by: their class, their slices, and how many models are right and wrong."""
    infos = samples.store.dataset(samples.dataset).samples
    right, counted = right_counts(samples)
    slices = {}
    groups = [info.group for info in infos]
    if any(group is not None for group in groups):
        slices["group"] = groups
    for key in sorted({key for info in infos for key in info.slices or {}}):
        slices[key] = [_text((info.slices or {}).get(key)) for info in infos]
    return {
        "target": packed_counts(np.array([_class(info) for info in infos])),
        "right": packed_counts(right),
        "counted": packed_counts(counted),
        "slices": {key: made for key, values in slices.items() if (made := _coded(values)) is not None},
    }


def right_counts(samples: SettingSamples) -> tuple[Array, Array]:
    """How many models are right, and how many have a score: integer arrays [n]."""
    right, counted = np.zeros(samples.size, dtype=np.int64), np.zeros(samples.size, dtype=np.int64)
    for each in samples.shown:
        if each.right is not None:
            score = _score(samples, each, samples.positions_in(each, range(samples.size)))
            right += np.nan_to_num(score) >= RIGHT
            counted += ~np.isnan(score)
    return right, counted


def _class(info: SampleInfo) -> int:
    """The only class of a sample; −1 if it has several or none."""
    target = info.target[0] if isinstance(info.target, list) and len(info.target) == 1 else info.target
    return target if type(target) is int and target >= 0 else -1


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)


def _coded(values: Sequence[str | None]) -> dict[str, Any] | None:
    names = sorted({value for value in values if value is not None})
    if not 1 < len(names) <= _MOST_VALUES:
        return None
    code = {name: number for number, name in enumerate(names)}
    return {"names": names, "codes": packed_counts(np.array([-1 if each is None else code[each] for each in values]))}
