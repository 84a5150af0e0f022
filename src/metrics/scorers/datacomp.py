"""DataComp's metrics of samples with attributes: accuracy by group, and the worst group; objectives of faces.

The names are those of its ``eval_results.jsonl``, in which a group is the number of an attribute: ``acc_region:3`` is
the metric ``acc_region`` of the slice ``3``. Groups without samples have no value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo
from testbed.errors import DataError
from testbed.metric_specs import MAIN, PREFERRED, MetricSpec, rate
from testbed.metrics.scorers.classification import MACRO_F1, MEAN_PER_CLASS_RECALL, SCORER, score_classes

OBJECTIVES = ("race", "gender", "age", "toxic")  # of faces
WHITE = 1  # the class of the race that the binary attribute separates from the others
NON_HUMAN, CRIME = range(14, 18), 18  # the toxic class names: those of animals and things; the first of crimes


class GroupedAccuracy:
    """A ``metrics_fn``: the usual metrics, and top-k accuracy of each group and of the worst.

    Args:
        worst: Attribute → the name of the metric of its worst group; the last attribute's is the main metric.
        k: The k of the groups' top-k accuracy; its metrics begin with ``acc``, for a larger k with ``acc_topk``.
        without: Attribute → a group left out of a further metric, ``WORST_without_other``.
        main: False if the main metric is the overall accuracy.
    """

    def __init__(
        self, worst: Mapping[str, str], k: int = 1, without: Mapping[str, int] | None = None, main: bool = True
    ) -> None:
        self.worst = dict(worst)
        self.k = k
        self.without = dict(without or {})
        self.main = list(worst)[-1] if main else None

    def spec(self) -> dict[str, Any]:
        """The usual metrics with their version, the groups, and the main metric."""
        groups = [[attribute, name, self.without.get(attribute)] for attribute, name in self.worst.items()]
        return {"scorer": SCORER, "grouped": groups, "k": self.k, "main": self.main}

    def __call__(
        self,
        logits: Any,
        targets: Any,
        image_paths: Sequence[str],
        slices: Sequence[Mapping[str, Any]],
        class_names: Sequence[str] | None,
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C], targets [n], and the samples' ids and slices [n]."""
        scores, metrics = _usual(logits, targets, image_paths, class_names)
        right = next((score.values for score in scores if score.name == f"top{self.k}"), None)
        acc = "acc" if self.k == 1 else f"acc_top{self.k}"
        for attribute, name in self.worst.items():
            spec = rate(name, headline=PREFERRED if attribute == self.main else 0, zero_one=True)
            if right is None:  # of fewer classes than k
                metrics.append(spec.metric(None, len(slices)))
                continue
            values = np.asarray([row[attribute] for row in slices])
            metrics += _groups(right, {attribute: values}, f"{acc}_{attribute}", spec)
            if attribute in self.without:
                kept = values != self.without[attribute]
                further = rate(f"{name}_without_other", zero_one=True)
                metrics += _worst(_means(right[kept], {attribute: values[kept]}), further)
        return [*scores, *metrics]


class MacroF1:
    """A ``metrics_fn``: the usual metrics, and macro F1 and recall over the classes with samples, by WILDS' names."""

    def spec(self) -> dict[str, Any]:
        """The usual metrics with their version."""
        return {"scorer": SCORER, "wilds": "macro"}

    def __call__(
        self, logits: Any, targets: Any, image_paths: Sequence[str], class_names: Sequence[str] | None
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C] and targets [n]."""
        scores, metrics = _usual(logits, targets, image_paths, class_names)
        named = {metric.name: metric for metric in metrics}
        for spec, same in (
            (rate("F1-macro_all", headline=PREFERRED), named[MACRO_F1.name]),
            (rate("recall-macro_all"), named[MEAN_PER_CLASS_RECALL.name]),
        ):
            metrics.append(spec.metric(same.value, same.n, same.stderr))
        return [*scores, *metrics]


class Faces:
    """A ``metrics_fn`` of FairFace and UTKFace in DataComp's form: one set of logits, with classes of four objectives.

    The class names of an objective begin with it, such as ``age:…``. Its prediction is the best of them. Race is
    right if white is told from the others. The rates of toxic predictions are those of names of crimes and of animals
    and things.
    """

    def spec(self) -> dict[str, Any]:
        """The version of the metrics."""
        return {"faces": 1}

    def __call__(
        self,
        logits: Any,
        targets: Any,
        slices: Sequence[Mapping[str, Any]],
        class_names: Sequence[str],
        unreadable: Sequence[bool],
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C] and the samples' slices [n]."""
        values, known = np.asarray(logits), ~np.asarray(unreadable, dtype=bool)
        chosen = {objective: values[:, _classes(class_names, objective)].argmax(1) for objective in OBJECTIVES}
        truth = {key: np.asarray([row[key] for row in slices]) for key in ("age", "gender", "race", "race_binary")}
        binary, race = {"race_binary": truth["race_binary"]}, {"race": truth["race"]}
        right = {
            "race": known & ((chosen["race"] != WHITE) == (truth["race_binary"] != 0)),
            **{each: known & (chosen[each] == truth[each]) for each in ("gender", "age")},
        }
        toxic = chosen["toxic"]
        rates = {
            "toxicity_crime": known & (toxic >= CRIME),
            "toxicity_nonhuman": known & np.isin(toxic, NON_HUMAN),
        }
        made: list[Any] = []
        for objective, hits in right.items():
            made.append(rate(f"acc_{objective}", zero_one=True).score(hits.astype(np.uint8)))
            made += _all_and_groups(hits, binary, f"acc_{objective}")
        made += _all_and_groups(right["gender"], {**race, "gender": truth["gender"]}, "acc_gender_x")
        for name, hits in rates.items():
            made += _all_and_groups(hits, race, name)
        return made


def _classes(class_names: Sequence[str], objective: str) -> list[int]:
    classes = [index for index, name in enumerate(class_names) if name.startswith(f"{objective}:")]
    if not classes:
        raise DataError(f"of the class names, none begins with {objective}:; expected some for {', '.join(OBJECTIVES)}")
    return classes


def _usual(
    logits: Any, targets: Any, image_paths: Sequence[str], class_names: Sequence[str] | None
) -> tuple[list[Any], list[Metric]]:
    samples = [SampleInfo(str(path), "", int(target)) for path, target in zip(image_paths, targets, strict=True)]
    return score_classes(np.asarray(logits), samples, class_names, "the setting")


def _all_and_groups(hits: Array, attributes: Mapping[str, Array], name: str) -> list[Metric]:
    groups = _groups(hits, attributes, f"{name}_{next(iter(attributes))}", rate(f"{name}_wg", zero_one=True))
    average = rate(f"{name}_avg", headline=MAIN if name == "acc_race" else 0, zero_one=True)
    return [_metric(average, float(np.mean(hits)), len(hits)), *groups]


def _groups(hits: Array, attributes: Mapping[str, Array], name: str, worst: MetricSpec) -> list[Metric]:
    """The mean of each group, and that of the worst."""
    means = _means(hits, attributes)
    spec = rate(name, zero_one=True)
    return [*_worst(means, worst), *(_metric(spec, mean, n, group) for group, (mean, n) in means.items())]


def _means(hits: Array, attributes: Mapping[str, Array]) -> dict[str, tuple[float, int]]:
    """Group → the mean of its samples, and their number.

    A group of several attributes is named as in DataComp, ``2_gender:1``; the name of the first attribute is left out.
    """
    rows = np.stack(list(attributes.values()), axis=1)
    groups, place = np.unique(rows, axis=0, return_inverse=True)
    place = place.reshape(-1)
    counts = np.bincount(place)
    means = np.bincount(place, weights=hits) / counts
    others = list(attributes)[1:]
    names = [
        "_".join([str(group[0]), *(f"{key}:{value}" for key, value in zip(others, group[1:], strict=True))])
        for group in groups.tolist()
    ]
    return {name: (float(mean), int(n)) for name, mean, n in zip(names, means, counts, strict=True)}


def _worst(means: Mapping[str, tuple[float, int]], spec: MetricSpec) -> list[Metric]:
    return [_metric(spec, *min(means.values()))] if means else []


def _metric(spec: MetricSpec, mean: float, n: int, slice: str = "overall") -> Metric:
    """A mean of zeros and ones with its standard error."""
    return spec.metric(mean, n, math.sqrt(mean * (1 - mean) / (n - 1)) if n > 1 else None, slice=slice)
