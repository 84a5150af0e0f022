"""Out-of-distribution detection from stored logits.

As in OpenOOD v1.5 (Zhang et al. 2023), the samples that are out of the distribution are the positive ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation, SampleInfo
from testbed.errors import DataError, StoreError
from testbed.extensions.analyses.detection import (
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

MEAN = "mean"
_FITTING = 10  # one in this many samples is used to fit the typical probabilities


@dataclass(frozen=True)
class Detection:
    """The performance of a model's score in separating a setting's samples from those in the distribution.

    Attributes:
        model: The model.
        score: One of `testbed.metrics.ood_scores.SCORES`.
        kind: The setting's role: ``near``, ``far`` or ``out``.
        eval_setting: The setting; `MEAN` for the mean over a kind.
        n_in: The number of samples in the distribution.
        n_out: The number of those out of it; for a mean, that of all settings together.
        auroc: The area under the ROC curve.
        fpr95: The false positive rate among samples in the distribution at the highest threshold with 95 % recall.
        aupr_out: Average precision with the samples out of the distribution as the positive ones.
        aupr_in: The same with those in the distribution, and with the sign of the score flipped.
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
    """The logits of some samples, and their groups."""

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
    """Evaluates detection of samples out of the distribution, by each score of each model.

    Unreadable samples count as wrong: they are assigned to the other kind.

    Args:
        store: The results store.
        models: Names or patterns; empty means all with outputs on all of the settings.
        inside: The setting whose samples are in the distribution.
        outside: Kind → settings with samples out of the distribution: those without a class (the target −1) if any,
            else all.
        scores: Names in `testbed.metrics.ood_scores.SCORES`; empty means all.
        fit: The setting whose samples give the typical probabilities for ``kl_matching``; these are excluded from the
            samples in the distribution. None: a tenth of those of ``inside``.
        tell: Called with notes on what was left out.

    Returns:
        Detections by model, score and kind; kinds with several settings end with their mean.

    Raises:
        DataError: If a score is unknown, a setting is on both sides, or too few samples are left.
        StoreError: If outputs are missing, or a model has other classes on the settings.
    """
    scores = list(dict.fromkeys(scores)) or list(SCORES)
    if strange := [score for score in scores if score not in SCORES]:
        raise DataError(f"unknown score {strange[0]!r}; expected any of {', '.join(SCORES)}")
    if fit is not None and KL_MATCHING not in scores:
        raise DataError(f"{fit} would fit {KL_MATCHING}, which is not among the scores: {', '.join(scores)}")
    every = [setting for settings in outside.values() for setting in settings]
    if not every:
        raise DataError("no settings out of the distribution were given; use --out, --near or --far")
    if inside in every:
        raise DataError(f"{inside} is in the distribution, so it cannot also be out of it")
    if twice := [name for name in every if every.count(name) > 1]:
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
    for setting in (text for settings in outside.values() for text in settings):
        others = reader.outside(cells[setting], cells[reader.setting], known.logits.shape[1])
        for name, of in _scored(others, scores, typical).items():
            found[name][setting] = _Numbers.of(np.where(np.isnan(of), -np.inf, of), familiar[name], others.clusters)
    for name in scores:
        for kind, settings in outside.items():
            for setting in settings:
                yield _row(model, name, kind, setting, [found[name][setting]], known.clusters)
            if len(settings) > 1:
                yield _row(model, name, kind, MEAN, [found[name][text] for text in settings], known.clusters)


def _scored(side: _Side, scores: Sequence[str], typical: Array | None) -> dict[str, Array]:
    return ood_scores(side.logits, scores, typical)


@dataclass(frozen=True)
class _Numbers:
    """The numbers of a setting, in the order of `Detection`, and the groups of its samples."""

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
    """The numbers of a setting, or the means over several, given the groups of samples in the distribution."""
    auroc, fpr95, aupr_out, aupr_in = (
        estimate(several, [numbers.clusters for numbers in found], clusters)
        for several in zip(*(numbers.each for numbers in found), strict=True)
    )
    sizes = len(clusters), sum(len(numbers.clusters) for numbers in found)
    return Detection(model, score, kind, setting, *sizes, auroc, fpr95, aupr_out, aupr_in)


class _Reader:
    """Reads the logits of both sides.

    Args:
        store: The results store.
        setting: The setting in the distribution.
        fit: The setting that fits typical probabilities; None for a part of the former.
        fitted: Whether typical probabilities are needed.
        tell: Called with each note once.
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
            there = {sample.digest for sample in self._samples.of(cell).samples}
            fitting = np.array([sample.digest in there for sample in data.samples], dtype=bool)
            whose = f"samples of {self._fit}"
        if fitting.all():
            raise DataError(
                f"all samples of {self.setting} are used to fit the typical probabilities of {KL_MATCHING}, so none"
                " are left; name another setting with --fit, or other scores"
            )
        if not np.isfinite(others).all(axis=1).any():
            raise DataError(f"{evaluation.model} has no finite logits to fit {KL_MATCHING} on {whose}")
        self._tell(
            f"{whose} fit {KL_MATCHING}; {int(fitting.sum()):,} of the {len(fitting):,} samples of {self.setting}"
            " are"
            " among them and are excluded"
        )
        return _Side(logits[~fitting], clusters[~fitting]), typical_probabilities(others)

    def outside(self, evaluation: Evaluation, as_in: Evaluation, classes: int) -> _Side:
        """The samples out of the distribution, restricted to the classes of another evaluation."""
        data, logits = self._samples.of(evaluation), self._logits(evaluation, as_in, classes)
        strange = np.array([type(sample.target) is int and sample.target < 0 for sample in data.samples], dtype=bool)
        if strange.any() and not strange.all():
            self._tell(f"only the {int(strange.sum()):,} samples of {evaluation.eval_setting} without a class count")
        kept = strange if strange.any() else ~strange
        return _Side(logits[kept], self._clusters(data)[kept])

    def _logits(self, evaluation: Evaluation, as_in: Evaluation | None = None, classes: int | None = None) -> Array:
        """The logits of an evaluation, restricted to the classes of another one: float array [n, classes]."""
        from testbed.tasks.parts.logits import viewed_logits

        what = f"{evaluation.model} on {evaluation.eval_setting}"
        if not has_logits(self._store, evaluation):
            raise StoreError(f"{what} has no stored logits, which these scores require")
        own, wanted = (self._store.evaluations.identity(each) for each in (evaluation, as_in or evaluation))
        view = wanted.get("view")
        if not isinstance(view, dict):
            raise StoreError(f"{what} has no record of the logits in use; run it again with testbed run --override")
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
        """Assigns samples to clusters: same group, or same content."""
        keys = (
            sample.digest if sample.group is None else f"group {data.name}/{sample.group}" for sample in data.samples
        )
        return np.array([self._numbers.setdefault(key, len(self._numbers)) for key in keys], dtype=np.int64)

    def _tell(self, note: str) -> None:
        if note not in self._told:
            self._told.add(note)
            self._say(note)


def _tenth(samples: Sequence[SampleInfo]) -> Array:
    """Selects the samples for fitting: those with the lowest SHA-256 of their id, the same for all models."""
    ranks = [hashlib.sha256(sample.id.encode()).digest() for sample in samples]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    chosen = np.zeros(len(ranks), dtype=bool)
    chosen[order[: max(1, len(ranks) // _FITTING)]] = True
    return chosen
