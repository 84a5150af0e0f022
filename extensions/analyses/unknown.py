"""Out-of-distribution detection: whether stored logits tell samples of known classes from others.

As in OpenOOD v1.5 (Zhang et al. 2023), the samples that are out of the distribution are the positive ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation, SampleInfo
from testbed.errors import DataError, StoreError
from testbed.metrics.inference.detection import (
    DetectionInterval,
    LinearisedNumber,
    area,
    estimate,
    false_positive_rate,
    precision,
)
from testbed.metrics.ood_scores import SCORES, ood_scores, typical_probabilities
from testbed.metrics.sureness import KL_MATCHING
from testbed.stored_results.predictions import LOGITS, has_logits
from testbed.stored_results.side_by_side import SampleTable, Tell, choose, evaluation_of

Array = np.ndarray[Any, Any]

MEAN = "mean"
_FITTING = 10  # one sample of so many fits the typical probabilities


@dataclass(frozen=True)
class Detection:
    """How well a score of a model tells the samples of a setting from those in the distribution.

    Attributes:
        model: The model.
        score: One of `testbed.metrics.ood_scores.SCORES`.
        kind: What the setting was given as: ``near``, ``far`` or ``out``.
        eval_setting: The setting; `MEAN` for the mean over all of a kind.
        n_in: The number of samples in the distribution.
        n_out: The number of those out of it; of a mean, of all settings together.
        auroc: The area under the ROC curve.
        fpr95: The share of samples in the distribution that the highest threshold takes for others at which it finds
            95 % of the others.
        aupr_out: Average precision with the samples out of the distribution as the positive ones.
        aupr_in: The same with those in the distribution, and with the sign of the score turned.
    """

    model: str
    score: str
    kind: str
    eval_setting: str
    n_in: int
    n_out: int
    auroc: DetectionInterval
    fpr95: DetectionInterval
    aupr_out: DetectionInterval
    aupr_in: DetectionInterval


@dataclass(frozen=True)
class _Side:
    """The logits of some samples, and which of these belong together."""

    logits: Array
    clusters: Array


def detections(
    store: Store,
    models: Sequence[str],
    inside: str,
    outside: Mapping[str, Sequence[str]],
    scores: Sequence[str] = (),
    fit: str | None = None,
    tell: Tell = lambda note: None,
) -> list[Detection]:
    """Tells samples in the distribution from those out of it, by each score of each model.

    Samples that could not be read count as wrong: they are taken for the other kind.

    Args:
        store: The results store.
        models: Names or patterns; none means all with outputs on all of the settings.
        inside: The setting whose samples are in the distribution.
        outside: Kind → settings whose samples are not: those of no class (the target −1) if there are any, else all.
        scores: Of `testbed.metrics.ood_scores.SCORES`; none means all.
        fit: The setting whose samples give the typical probabilities for ``kl_matching``; they do not count as samples
            in the distribution. None: a tenth of those of ``inside``.
        tell: Called with notes on what was left out.

    Returns:
        By model, score and kind; where a kind has several settings, their mean after them.

    Raises:
        DataError: If a score is unknown, a setting is on both sides, or too few samples are left.
        StoreError: If outputs are missing, or a model has other classes on the settings.
    """
    scores = list(dict.fromkeys(scores)) or list(SCORES)
    if strange := [each for each in scores if each not in SCORES]:
        raise DataError(f"there is no score {strange[0]!r}; there are {', '.join(SCORES)}")
    if fit is not None and KL_MATCHING not in scores:
        raise DataError(f"{fit} would fit {KL_MATCHING}, which is not among the scores: {', '.join(scores)}")
    every = [setting for settings in outside.values() for setting in settings]
    if not every:
        raise DataError("no setting is out of the distribution; --out, --near and --far name some")
    if inside in every:
        raise DataError(f"{inside} is in the distribution, so that it cannot be out of it, too")
    if twice := [each for each in every if every.count(each) > 1]:
        raise DataError(f"{twice[0]} is given twice; each setting is near, far or just out of the distribution")
    chosen = choose(store, [inside, *every], models, tell=tell)
    reader = _Reader(store, inside, fit if KL_MATCHING in scores else None, KL_MATCHING in scores, tell)
    return [
        row
        for model in chosen[inside]
        for row in _of_model(model, reader, {each: on[model] for each, on in chosen.items()}, outside, scores)
    ]


def _of_model(
    model: str,
    reader: _Reader,
    cells: Mapping[str, Evaluation],
    outside: Mapping[str, Sequence[str]],
    scores: Sequence[str],
) -> Iterator[Detection]:
    known, typical = reader.inside(cells[reader.setting])
    familiar = {name: np.where(np.isnan(of), np.inf, of) for name, of in _scored(known, scores, typical).items()}
    found: dict[str, dict[str, _Numbers]] = {name: {} for name in scores}
    for setting in (each for settings in outside.values() for each in settings):
        others = reader.outside(cells[setting], cells[reader.setting], known.logits.shape[1])
        for name, of in _scored(others, scores, typical).items():
            found[name][setting] = _Numbers.of(np.where(np.isnan(of), -np.inf, of), familiar[name], others.clusters)
    for name in scores:
        for kind, settings in outside.items():
            for setting in settings:
                yield _row(model, name, kind, setting, [found[name][setting]], known.clusters)
            if len(settings) > 1:
                yield _row(model, name, kind, MEAN, [found[name][each] for each in settings], known.clusters)


def _scored(side: _Side, scores: Sequence[str], typical: Array | None) -> dict[str, Array]:
    return ood_scores(side.logits, scores, typical)


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a setting, in the order of `Detection`, and which of its samples belong together."""

    each: tuple[LinearisedNumber, ...]
    clusters: Array

    @classmethod
    def of(cls, unlike: Array, familiar: Array, clusters: Array) -> _Numbers:
        turned = precision(-familiar, -unlike)
        return cls(
            (
                area(unlike, familiar),
                false_positive_rate(unlike, familiar, clusters),
                precision(unlike, familiar),
                LinearisedNumber(turned.value, turned.negative, turned.positive),
            ),
            clusters,
        )


def _row(model: str, score: str, kind: str, setting: str, found: Sequence[_Numbers], clusters: Array) -> Detection:
    """The numbers of a setting, or the means over several, given which samples in the distribution belong together."""
    auroc, fpr95, aupr_out, aupr_in = (
        estimate(several, [each.clusters for each in found], clusters)
        for several in zip(*(each.each for each in found), strict=True)
    )
    sizes = len(clusters), sum(len(each.clusters) for each in found)
    return Detection(model, score, kind, setting, *sizes, auroc, fpr95, aupr_out, aupr_in)


class _Reader:
    """Reads the logits of both sides.

    Args:
        store: The results store.
        setting: The one in the distribution.
        fit: The setting that fits typical probabilities; None for a part of the former.
        fitted: Whether they are needed.
        tell: Called with notes, each once.
    """

    def __init__(self, store: Store, setting: str, fit: str | None, fitted: bool, tell: Tell) -> None:
        self.setting = setting
        self._store, self._fit, self._fitted = store, fit, fitted
        self._samples, self._numbers, self._told = SampleTable(store), dict[str, int](), set[str]()
        self._say = tell

    def inside(self, evaluation: Evaluation) -> tuple[_Side, Array | None]:
        """The samples in the distribution, and the typical probabilities if they are needed."""
        data, logits = self._samples.of(evaluation), self._logits(evaluation)
        clusters = self._clusters(data)
        if not self._fitted:
            return _Side(logits, clusters), None
        if self._fit is None:
            fitting = _tenth(data.samples)
            others, whose = logits[fitting], f"a tenth of the samples of {self.setting}"
        else:
            cell = evaluation_of(self._store, evaluation.model, self._fit)
            others = self._logits(cell, evaluation, logits.shape[1])
            there = {each.digest for each in self._samples.of(cell).samples}
            fitting = np.array([each.digest in there for each in data.samples], dtype=bool)
            whose = f"samples of {self._fit}"
        if fitting.all():
            raise DataError(
                f"all samples of {self.setting} fit the typical probabilities of {KL_MATCHING}, so that none is left;"
                " name another setting with --fit, or other scores"
            )
        if not np.isfinite(others).all(axis=1).any():
            raise DataError(f"{evaluation.model} has no finite logits to fit {KL_MATCHING} on {whose}")
        self._tell(
            f"{whose} fit {KL_MATCHING}; {int(fitting.sum()):,} of the {len(fitting):,} samples of {self.setting} are"
            " among them and do not count"
        )
        return _Side(logits[~fitting], clusters[~fitting]), typical_probabilities(others)

    def outside(self, evaluation: Evaluation, as_in: Evaluation, classes: int) -> _Side:
        """The samples out of the distribution, with the classes of another evaluation to choose from."""
        data, logits = self._samples.of(evaluation), self._logits(evaluation, as_in, classes)
        strange = np.array([type(each.target) is int and each.target < 0 for each in data.samples], dtype=bool)
        if strange.any() and not strange.all():
            self._tell(f"only the {int(strange.sum()):,} samples of {evaluation.eval_setting} of no class count")
        kept = strange if strange.any() else ~strange
        return _Side(logits[kept], self._clusters(data)[kept])

    def _logits(self, evaluation: Evaluation, as_in: Evaluation | None = None, classes: int | None = None) -> Array:
        """The logits of an evaluation, restricted to the classes of another one: float array [n, classes]."""
        from testbed.tasks.parts.logits import viewed_logits

        what = f"{evaluation.model} on {evaluation.eval_setting}"
        if not has_logits(self._store, evaluation):
            raise StoreError(f"{what} has no stored logits; scores of what is unknown are made from these")
        own, wanted = (self._store.evaluations.identity(each) for each in (evaluation, as_in or evaluation))
        view = wanted.get("view")
        if not isinstance(view, dict):
            raise StoreError(f"{what} has no record of which logits count; run it again with testbed run --override")
        restricted = bool(own.get("forward", {}).get("restricted"))
        logits = viewed_logits(
            self._store.outputs.read(evaluation.id, LOGITS),
            *(view.get("class_sublist"), view.get("class_groups"), restricted, evaluation.eval_setting),
        )
        if classes not in (None, logits.shape[1]):
            raise StoreError(
                f"{evaluation.model} has {logits.shape[1]:,} classes on {evaluation.eval_setting}, but {classes:,} on"
                f" {self.setting}; both need the same"
            )
        return logits

    def _clusters(self, data: DatasetInfo) -> Array:
        """Which samples belong together: those of a group, and those of the same content."""
        keys = (each.digest if each.group is None else f"group {data.name}/{each.group}" for each in data.samples)
        return np.array([self._numbers.setdefault(key, len(self._numbers)) for key in keys], dtype=np.int64)

    def _tell(self, note: str) -> None:
        if note not in self._told:
            self._told.add(note)
            self._say(note)


def _tenth(samples: Sequence[SampleInfo]) -> Array:
    """Which samples fit: those with the lowest SHA-256 of their id, so that they are the same ones for all models."""
    ranks = [hashlib.sha256(each.id.encode()).digest() for each in samples]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    chosen = np.zeros(len(ranks), dtype=bool)
    chosen[order[: max(1, len(ranks) // _FITTING)]] = True
    return chosen
