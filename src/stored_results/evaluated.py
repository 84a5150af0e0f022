"""The samples of an eval setting, and the evaluations that have outputs for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation
from testbed.errors import StoreError
from testbed.graph.stored import EvaluationValues
from testbed.metric_specs import HIGHER, LOWER, MetricSpec, agreed, main_score_of, right_or_wrong
from testbed.stored_results.predictions import ClassNames, best_names, class_names
from testbed.stored_results.side_by_side import evaluations_on
from testbed.tasks.image_embedding import task as image_embedding
from testbed.tasks.parts.logits import viewed_logits

LOGITS, TEXT = "logits", "text"
_PARTS = ("view", "forward")  # of an identity, in full


@dataclass(frozen=True)
class ShownEvaluation:
    """An evaluation on a setting.

    Attributes:
        evaluation: The evaluation.
        kind: The kind of its outputs; empty if it has none.
        root: The evaluation that has them.
        identity: Its identity, of which the parts that say how outputs are seen are in full.
        scores: The names of its per-sample scores.
        main: The main one; None if it has none.
        right: The one that says whether a sample is right; None if it has none.
        specs: What the scores declare, by name.
    """

    evaluation: Evaluation
    kind: str
    root: int
    identity: dict[str, Any]
    scores: tuple[str, ...]
    main: str | None
    right: str | None
    specs: Mapping[str, MetricSpec]

    @property
    def id(self) -> int:
        """The id of the evaluation."""
        return self.evaluation.id

    @property
    def seen_as(self) -> str:
        """Equal for evaluations whose logits are seen in the same way."""
        return str([(self.evaluation.identity or {}).get(part) for part in _PARTS])

    def logits(self, rows: Array) -> Array:
        """Stored logits [n, C] as metrics see them, float32 [n, classes that targets index]."""
        view = self.identity.get("view") or {}
        restricted = bool((self.identity.get("forward") or {}).get("restricted"))
        named = view.get("class_sublist"), view.get("class_groups")
        seen = viewed_logits(rows, *named, restricted, self.evaluation.eval_setting)
        return np.asarray(seen, dtype=np.float32)


def _name(spec: MetricSpec | None) -> str | None:
    return None if spec is None else spec.name


@dataclass
class SettingSamples:
    """The samples of a setting.

    Their positions are those of the data set that most of its evaluations have.

    Attributes:
        store: The results store.
        name: The setting.
        shown: The reported evaluation of each model that has samples, in the order of the models' names.
        dataset: The id of the data set.
    """

    store: Store
    name: str
    shown: list[ShownEvaluation]
    dataset: int
    _places: dict[int, dict[tuple[str, str], int]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, name: str) -> SettingSamples | None:
        """The samples of a setting; None if no evaluation on it has any, or its outputs only serve other settings."""
        if store.names.tasks().get(name, (None, None))[0] == image_embedding.name:
            return None
        try:
            found = [each for each in evaluations_on(store, name).values() if each.dataset_id is not None]
        except StoreError:
            return None
        return cls.among(store, name, found) if found else None

    @classmethod
    def among(cls, store: Store, name: str, evaluations: Sequence[Evaluation]) -> SettingSamples:
        """The samples of some evaluations on a setting."""
        kinds = store.samples.first_kinds(evaluation.root for evaluation in evaluations)
        specs = store.scores.specs(evaluation.id for evaluation in evaluations)
        identities = [evaluation.identity or {} for evaluation in evaluations]
        digests = {str(identity[part]) for identity in identities for part in _PARTS if part in identity}
        contents = store.evaluations.definitions(digests)
        shown = [
            ShownEvaluation(
                evaluation=each,
                kind=kinds.get(each.root, ""),
                root=each.root,
                identity={**identity, **{part: contents.get(str(identity.get(part)), {}) for part in _PARTS}},
                scores=tuple(sorted(specs[each.id])),
                main=_name(main_score_of(specs[each.id].values())),
                right=_name(right_or_wrong(specs[each.id].values())),
                specs=specs[each.id],
            )
            for each, identity in zip(evaluations, identities, strict=True)
        ]
        datasets = Counter(evaluation.dataset_id for evaluation in evaluations)
        dataset = max(datasets, key=lambda each: (datasets[each], each or 0))
        assert dataset is not None
        return cls(store, name, shown, dataset)

    @cached_property
    def head(self) -> Any:
        """The data set, without its samples."""
        return self.store.datasets.head(self.dataset)

    @property
    def size(self) -> int:
        """Returns the number of samples."""
        return int(self.head.size)

    @property
    def kind(self) -> str:
        """The kind of outputs that most evaluations have."""
        kinds = Counter(evaluation.kind for evaluation in self.shown)
        return max(kinds, key=lambda each: (kinds[each], each))

    @property
    def right(self) -> str | None:
        """The name of the score that marks samples as right or wrong."""
        names = Counter(evaluation.right for evaluation in self.shown if evaluation.right is not None)
        return max(names, key=lambda each: (names[each], each)) if names else None

    @property
    def main(self) -> str | None:
        """The name of the main score; of settings with right and wrong samples, the one that marks them."""
        if self.right is not None:
            return self.right
        names = Counter(evaluation.main for evaluation in self.shown if evaluation.main is not None)
        return max(names, key=lambda each: (names[each], each)) if names else None

    @property
    def larger(self) -> bool | None:
        """Returns whether a larger main score is better; None if that is not known."""
        if self.spec is None or self.spec.better not in (HIGHER, LOWER):
            return None
        return self.spec.better == HIGHER

    @property
    def spec(self) -> MetricSpec | None:
        """Returns the declaration of the main score; None if there is none."""
        found = [spec for evaluation in self.shown for name, spec in evaluation.specs.items() if name == self.main]
        return agreed(found) if found else None

    @cached_property
    def classes(self) -> ClassNames:
        """The names of the classes that targets index."""
        given = []
        head = DatasetInfo(self.head.name, self.head.fingerprint, (), self.head.class_names)
        seen = set()
        for evaluation in self.shown:
            if evaluation.kind == LOGITS and evaluation.seen_as not in seen:
                seen.add(evaluation.seen_as)
                given.append(class_names(evaluation.identity, head, self._width(evaluation)))
        return best_names(given)

    def _width(self, shown: ShownEvaluation) -> int | None:
        """The number of classes that targets index; None if it is unknown."""
        rows = self.store.samples.output_rows(LOGITS, {shown.root: [0]})[shown.root]
        return None if rows[0] is None else int(shown.logits(rows[0][None]).shape[1])

    def positions_in(self, shown: ShownEvaluation, positions: Sequence[int]) -> list[int | None]:
        """Returns the positions of samples in the data set of an evaluation; None for missing ones."""
        dataset = shown.evaluation.dataset_id
        if dataset == self.dataset or dataset is None:
            size = shown.evaluation.size
            return [position if size is None or position < size else None for position in positions]
        there = self._where(dataset)
        infos = self.store.datasets.samples(self.dataset, positions)
        return [
            there.get((infos[position].id, infos[position].digest)) if position in infos else None
            for position in positions
        ]

    def places_in(self, shown: ShownEvaluation) -> Array:
        """`positions_in` of all samples: integer array [n], −1 for those that the evaluation does not have."""
        if shown.evaluation.dataset_id == self.dataset:
            places = np.arange(self.size)
            return places if shown.evaluation.size is None else np.where(places < shown.evaluation.size, places, -1)
        own = self.positions_in(shown, range(self.size))
        return np.array([-1 if place is None else place for place in own], dtype=np.int64)

    def _where(self, dataset: int) -> dict[tuple[str, str], int]:
        if dataset not in self._places:
            samples = self.store.datasets.get(dataset).samples
            self._places[dataset] = {(each.id, each.digest): index for index, each in enumerate(samples)}
        return self._places[dataset]

    def output_rows(self, shown: ShownEvaluation, positions: Sequence[int]) -> list[Any]:
        """The outputs of samples: arrays, or JSON values; None where there is none."""
        own = self.positions_in(shown, positions)
        if shown.root == shown.id:
            return self.store.samples.output_rows(shown.kind, {shown.id: own})[shown.id]
        known = [place for place in own if place is not None]
        root, places = self.store.samples.source_places(shown.id, known)
        there = dict(zip(known, places, strict=True))
        wanted = [None if place is None else there[place] for place in own]
        return self.store.samples.output_rows(shown.kind, {root: wanted})[root]

    def outputs(self, positions: Sequence[int]) -> list[list[Any]]:
        """The outputs of samples for every evaluation, as `output_rows`."""
        together: dict[str, dict[int, list[int | None]]] = {}
        for evaluation in self.shown:
            if evaluation.root == evaluation.id:
                together.setdefault(evaluation.kind, {})[evaluation.id] = self.positions_in(evaluation, positions)
        found: dict[int, list[Any]] = {}
        for kind, wanted in together.items():
            found.update(self.store.samples.output_rows(kind, wanted))
        return [found[each.id] if each.id in found else self.output_rows(each, positions) for each in self.shown]

    def blocks(self, shown: ShownEvaluation) -> Iterator[tuple[Array, Array]]:
        """The outputs of an evaluation, a stored chunk at a time: positions of samples [m], their outputs [m, …]."""
        own = self.places_in(shown)
        known = np.flatnonzero(own >= 0)
        root, places = self.store.samples.source_places(shown.id, own[known].tolist())
        there = np.array([-1 if place is None else place for place in places], dtype=np.int64)
        position = np.full(max(int(there.max(initial=-1)) + 1, 1), -1)
        position[there[there >= 0]] = known[there >= 0]
        for start, values in self.store.samples.output_blocks(root, shown.kind):
            at = position[start : start + len(values)]
            if (at >= 0).any():
                yield at[at >= 0], values[: len(at)][at >= 0]

    def values_of(self, shown: ShownEvaluation) -> EvaluationValues:
        """Returns the values that an evaluation was scored from."""
        return EvaluationValues(self.store, shown.evaluation)
