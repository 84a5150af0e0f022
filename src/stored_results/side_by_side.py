"""Models side by side: the reported evaluations, the samples they share, and their scores on these.

A sample is identified by id and content, so that models evaluated on different parts of a data set can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from testbed.arrays import Array
from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import OVERALL, DatasetInfo, Evaluation, current, groups_of
from testbed.errors import StoreError
from testbed.metrics.inference.clusters import clusters_of
from testbed.registry.references import SettingReference

Key = tuple[str, str]  # a sample's id and the digest of its content
Tell = Callable[[str], None]
Chosen = dict[str, dict[str, Evaluation]]  # setting → model → evaluation, the models in the order of their names

_NAMED = 5  # models that a note names
_READ_AT_ONCE = 100  # evaluations whose scores are in memory beside the table that is made of them


@dataclass(frozen=True)
class SideBySide:
    """Models on the samples of a setting that all of them have.

    Attributes:
        eval_setting: The setting.
        evaluations: One per model, in the order of the models' names.
        keys: The n samples in common: id and digest of the content, sorted.
        places: For each evaluation, the positions of these samples in its data set: integer arrays [n].
        scores: Float64 array [n, models] without NaN; zeros if no score was requested.
        most: The largest number of samples of any of the models.
    """

    eval_setting: str
    evaluations: tuple[Evaluation, ...]
    keys: list[Key]
    places: list[Array]
    scores: Array
    most: int

    @property
    def models(self) -> list[str]:
        """Their names, sorted."""
        return [evaluation.model for evaluation in self.evaluations]

    @property
    def binary(self) -> bool:
        """Returns whether all scores are 0 or 1."""
        return bool(np.isin(self.scores, (0, 1)).all())


class SampleTable:
    """The data sets of a store; the last eight are cached."""

    def __init__(self, store: Store) -> None:
        self.dataset: Callable[[int], DatasetInfo] = lru_cache(maxsize=8)(store.datasets.get)
        self.places: Callable[[int], dict[Key, int]] = lru_cache(maxsize=8)(self._places)

    def of(self, evaluation: Evaluation) -> DatasetInfo:
        """The data set of an evaluation."""
        return self.dataset(dataset_id(evaluation))

    def _places(self, dataset_id: int) -> dict[Key, int]:
        """The position of each sample; of duplicates the first."""
        places: dict[Key, int] = {}
        for index, sample in enumerate(self.dataset(dataset_id).samples):
            places.setdefault((sample.id, sample.digest), index)
        return places


def dataset_id(evaluation: Evaluation) -> int:
    """The id of an evaluation's data set; only imported evaluations have none."""
    if evaluation.dataset_id is None:
        raise StoreError(f"evaluation {evaluation.id} has no samples")
    return evaluation.dataset_id


# Which evaluations ------------------------------------------------------------------------------------------------


def evaluation_of(store: Store, model: str, setting: str) -> Evaluation:
    """The reported evaluation of a cell, among those that are not imported; raises StoreError if there is none."""
    own = _own(store.evaluations.find([model], [setting]))
    if not own:
        store.names.require("model", model)
        store.names.require("eval setting", setting)
        raise StoreError(
            f"the store has no outputs of {model} on {setting}; run: testbed run '{model}' --on '{setting}'"
        )
    return current(own)[0]


def evaluations_on(
    store: Store, setting: str, first: Collection[int] = (), imported: bool = False
) -> dict[str, Evaluation]:
    """The reported evaluation of each model on a setting, in the order of the models' names.

    Args:
        first: Ids of evaluations that take precedence over the reported ones.
        imported: Whether imported evaluations count, which have metrics but no samples.

    Raises:
        StoreError: If there is none.
    """
    by_model: dict[str, list[Evaluation]] = {}
    for evaluation in _own(store.evaluations.find(None, [setting]), imported):
        by_model.setdefault(evaluation.model, []).append(evaluation)
    if not by_model:
        store.names.require("eval setting", setting)
        raise StoreError(f"the store has no outputs on {setting}; run: testbed run MODEL… --on '{setting}'")
    return {
        model: current([evaluation for evaluation in by_model[model] if evaluation.id in first] or by_model[model])[0]
        for model in sorted(by_model)
    }


def _own(evaluations: Iterable[Evaluation], imported: bool = False) -> list[Evaluation]:
    return [
        evaluation
        for evaluation in evaluations
        if evaluation.status == "complete" and (imported or evaluation.origin != "imported")
    ]


def choose(
    store: Store,
    settings: Sequence[str],
    models: Sequence[str] = (),
    score: str | None = None,
    at_least: int = 1,
    tell: Tell = lambda note: None,
    first: Collection[int] = (),
) -> Chosen:
    """Chooses the evaluations for an analysis: the same models on each setting.

    Args:
        models: Names or patterns; none means all.
        score: A per-sample score that each must have.
        at_least: The minimum number of models.
        tell: Called with a note on models that were left out because they lack a setting or the score. A model that
            was requested by name is never left out.
        first: Ids of evaluations that take precedence over the reported ones.

    Raises:
        StoreError: If a setting has no outputs, a model requested by name lacks something, or too few are left.
    """
    found = {setting: evaluations_on(store, setting, first) for setting in settings}
    every = {model for on in found.values() for model in on}
    for word in models:
        if word in every or not any(character in "*?[" for character in word):
            for setting in settings:
                if word not in found[setting]:
                    evaluation_of(store, word, setting)  # raises an error that names what is missing
    wanted = matching_names("model", models, every)
    lacking: dict[str, str] = {}
    for setting in settings:
        lacking.update(dict.fromkeys(wanted - set(found[setting]), f"no outputs on {setting}"))
    if score is not None:
        lacking |= _without_score(store, found, wanted, models, score)
    left = sorted(wanted - set(lacking))
    if lacking:
        named = [f"{model} ({lacking[model]})" for model in sorted(lacking)]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        tell(f"left out: {', '.join(named[:_NAMED])}{more}")
    if len(left) < at_least:
        which = f", {left[0]}" if len(left) == 1 else ""
        raise StoreError(
            f"{_words(at_least)} needed on {', '.join(settings)}; available: {len(left)}{which}"
            + (f" ({'; '.join(sorted(set(lacking.values())))})" if lacking else "")
        )
    chosen = {setting: {model: found[setting][model] for model in left} for setting in settings}
    tell_of_other_scorers(chosen, tell)
    return chosen


def tell_of_other_scorers(chosen: Chosen, tell: Tell) -> None:
    """Notes models whose captions were judged in a different way than most, such as by another version of the judge."""
    for setting, on in chosen.items():
        if SettingReference.parse(setting).judge:
            odd = odd_ones({model: (evaluation.identity or {}).get("view") for model, evaluation in on.items()})
            if odd:
                tell(
                    f"on {setting}, {odd} scored by a different version of the judge, or by different rules, than most"
                    " models; to compare them, run all of them again (up-to-date results are reused)"
                )


def odd_ones(ways: Mapping[str, Hashable]) -> str:
    """The models that differ from most, for a message; an empty string if there are none."""
    usual = Counter(ways.values()).most_common(1)[:1]
    odd = [model for model, way in ways.items() if way != usual[0][0]]
    more = f" and {len(odd) - _NAMED} more" if len(odd) > _NAMED else ""
    return f"{', '.join(odd[:_NAMED])}{more} {'was' if len(odd) == 1 else 'were'}" if odd else ""


def _words(number: int) -> str:
    return "a model is" if number == 1 else f"{'two' if number == 2 else number} or more models are"


def _without_score(store: Store, found: Chosen, wanted: set[str], named: Sequence[str], score: str) -> dict[str, str]:
    """The wanted models that lack the score on some setting, and what they lack."""
    cells = [on[model] for on in found.values() for model in sorted(wanted & set(on))]
    names = store.scores.names(cell.id for cell in cells)
    lacking = {}
    for evaluation in cells:
        if score not in names[evaluation.id]:
            if evaluation.model in named:
                raise no_score(evaluation, score, names[evaluation.id])
            lacking[evaluation.model] = f"no per-sample score {score!r} on {evaluation.eval_setting}"
    if len(lacking) == len({cell.model for cell in cells}) > 1:
        raise no_score(cells[0], score, names[cells[0].id])
    return lacking


def no_score(evaluation: Evaluation, score: str, names: Iterable[str]) -> StoreError:
    """The error for an evaluation without the score."""
    return StoreError(
        f"{evaluation.model} on {evaluation.eval_setting} has no per-sample score {score!r}; it has"
        f" {', '.join(sorted(set(names))) or 'none'} (--score chooses one; testbed rescore computes"
        " today's scores)"
    )


def matching_models(store: Store, words: Iterable[str]) -> list[str]:
    """Models with outputs by name or pattern, in order, each once; raises UnknownNameError if a pattern has none."""
    words = list(words)
    if not any(_is_pattern(word) for word in words):
        return list(dict.fromkeys(words))
    known = {evaluation.model for evaluation in _own(store.evaluations.find())}
    chosen = (sorted(matching_names("model", [word], known)) if _is_pattern(word) else [word] for word in words)
    return list(dict.fromkeys(name for names in chosen for name in names))


def _is_pattern(word: str) -> bool:
    return any(character in "*?[" for character in word)


def matching_settings(store: Store, words: Iterable[str], imported: bool = False) -> list[str]:
    """Settings by name, or by pattern among those with outputs; each once, in the given order.

    Args:
        words: Names and patterns.
        imported: Whether settings with numbers from elsewhere also count.

    Raises:
        UnknownNameError: If a pattern matches none.
    """
    chosen: dict[str, None] = {}
    known: set[str] | None = None
    for word in words:
        if _is_pattern(word):
            if known is None:
                names = {evaluation.eval_setting for evaluation in _own(store.evaluations.find())}
                names |= (
                    {row[0] for row in store.results.rows(["eval_setting"], slices=[OVERALL])} if imported else set()
                )
                known = {name for name in names if not SettingReference.parse(name).node}
            chosen.update(dict.fromkeys(sorted(matching_names("eval setting", [word], known))))
        else:
            chosen.setdefault(word)
    return list(chosen)


# Their scores -----------------------------------------------------------------------------------------------------


def scores_of(store: Store, evaluation: Evaluation, score: str) -> Array:
    """The score of each sample: float64 array [samples], NaN for samples without one.

    Raises:
        StoreError: If there is no such score.
    """
    ((_, found),) = all_scores(store, [evaluation], score)
    return found


def all_scores(store: Store, evaluations: Sequence[Evaluation], score: str) -> Iterator[tuple[Evaluation, Array]]:
    """Returns the `scores_of` many evaluations, which are read together and not all held at once."""
    for start in range(0, len(evaluations), _READ_AT_ONCE):
        part = evaluations[start : start + _READ_AT_ONCE]
        found = store.scores.of_each([evaluation.id for evaluation in part], score)
        for each in part:
            if each.id not in found:
                raise no_score(each, score, store.scores.names([each.id])[each.id])
            yield each, found[each.id].astype(np.float64)


def side_by_side(
    store: Store,
    samples: SampleTable,
    setting: str,
    evaluations: dict[str, Evaluation],
    score: str | None = None,
    tell: Tell = lambda note: None,
) -> SideBySide:
    """Puts models side by side on the samples that all of them have.

    Args:
        samples: The data sets of that store.
        evaluations: One per model, from `choose`.
        score: The per-sample score; samples count if all models have it. None: every sample counts.
        tell: Called with a note if a model has more samples than all have in common.

    Raises:
        StoreError: If they have none in common, or a score is infinite.
    """
    cells = tuple(evaluations[model] for model in sorted(evaluations))
    maps = {each: samples.places(each) for each in sorted({dataset_id(cell) for cell in cells})}
    keys = sorted(set.intersection(*(set(places) for places in maps.values())))
    places = {each: np.array([where[key] for key in keys], dtype=np.int64) for each, where in maps.items()}
    columns = np.zeros((len(keys), len(cells)))
    most = max(len(where) for where in maps.values()) if score is None else 0
    for column, (evaluation, values) in enumerate(all_scores(store, cells, score) if score is not None else ()):
        if np.isinf(values).any():
            raise StoreError(f"{evaluation.model} on {setting} has an infinite {score}, so there is no mean to compare")
        most = max(most, int((~np.isnan(values)).sum()))
        columns[:, column] = values[places[dataset_id(evaluation)]]
    counted = np.flatnonzero(~np.isnan(columns).any(axis=1))
    if not len(counted):
        what = "samples" if score is None else f"samples with {score}"
        names = f"the {len(cells)} models have" if len(cells) > 1 else f"{cells[0].model} has"
        raise StoreError(f"{names} no {what} of {setting}{' in common' if len(cells) > 1 else ''}")
    if len(counted) < most:
        tell(f"only the {len(counted):,} samples of {setting} that all models have count; one model has {most:,}")
    return SideBySide(
        eval_setting=setting,
        evaluations=cells,
        keys=[keys[place] for place in counted],
        places=[places[dataset_id(cell)][counted] for cell in cells],
        scores=columns[counted],
        most=most,
    )


def clusters_in(samples: SampleTable, table: SideBySide) -> Array | None:
    """Returns the clusters of samples: integer array [n], or None if each is alone; see `clusters_of`."""
    groups = groups_of(samples.of(table.evaluations[0]).samples)
    return None if groups is None else clusters_of(groups[place] for place in table.places[0])


def require_binary(table: SideBySide, score: str, what: str) -> None:
    """Checks that scores are 0 or 1; raises StoreError if a score is neither 0 nor 1."""
    if not table.binary:
        raise StoreError(f"{what} needs a score of 0 and 1, such as top1; {score} on {table.eval_setting} is not")
