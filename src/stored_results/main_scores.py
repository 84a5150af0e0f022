"""The per-sample score that an analysis is about, and which way it is better, from what scores declare."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from testbed.db.store import Store
from testbed.entities import Better, Evaluation
from testbed.errors import StoreError
from testbed.metric_specs import HIGHER, LOWER, NEITHER, MetricSpec, agreed, main_score_of, right_or_wrong
from testbed.stored_results.side_by_side import evaluations_on

_SHOWN = 12  # names in a message


def larger_is_better(spec: MetricSpec, asked: Better | None = None) -> bool:
    """Returns whether larger is better, as the metric declares, else as given by the user.

    Raises:
        StoreError: If neither is known, or they differ.
    """
    if asked and spec.better in (HIGHER, LOWER) and asked != spec.better:
        raise StoreError(f"{spec.name} declares that {spec.better} is better, but {asked} was given: leave it out")
    better = asked or spec.better
    if better in (HIGHER, LOWER):
        return better == HIGHER
    said = "declares that neither is better" if better == NEITHER else "does not declare it"
    raise StoreError(
        f"whether a higher or a lower {spec.name} is better is unknown: the metric {said}; give --better higher or"
        " --better lower"
    )


def score_spec(store: Store, evaluations: Iterable[Evaluation], score: str) -> MetricSpec:
    """Returns the declaration of a per-sample score; None if no evaluation has it."""
    found = store.scores.specs(evaluation.id for evaluation in evaluations)
    return agreed([specs[score] for specs in found.values() if score in specs] or [MetricSpec(score, "")])


def main_score(store: Store, cells: Mapping[str, Iterable[Evaluation]], binary: bool = False) -> str:
    """The main per-sample score of settings.

    Args:
        cells: Setting → its evaluations.
        binary: Whether a score of 0 and 1 is needed.

    Raises:
        StoreError: If they have none in common; lists those of each.
    """
    specs = {setting: _scores(store, on) for setting, on in cells.items()}
    shared = set.intersection(*(set(of) for of in specs.values()))
    common = [agreed(of[name] for of in specs.values()) for name in shared]
    found = right_or_wrong(common) if binary else main_score_of(common)
    if found is not None:
        return found.name
    for setting, has in specs.items():
        if not has:
            metrics = {metric.name for evaluation in cells[setting] for metric in store.results.metrics(evaluation.id)}
            raise StoreError(
                f"{setting} has no per-sample scores; its metrics are {_listed(metrics)}; testbed grid"
                f" '{setting}' shows one for all models"
            )
    kind = "main per-sample score of 0 and 1" if binary else "main per-sample score"
    listed = "; ".join(f"{setting} has {_listed(each)}" for setting, each in specs.items())
    none = "no common" if len(specs) > 1 else "no"
    raise StoreError(f"there is {none} {kind}: {listed}; --score chooses one")


def main_score_on(store: Store, settings: Iterable[str], binary: bool = False, first: Collection[int] = ()) -> str:
    """The `main_score` of what is reported on settings; evaluations with ids in ``first`` take precedence."""
    return main_score(store, {setting: evaluations_on(store, setting, first).values() for setting in settings}, binary)


def _scores(store: Store, evaluations: Iterable[Evaluation]) -> dict[str, MetricSpec]:
    several: dict[str, list[MetricSpec]] = {}
    for specs in store.scores.specs(evaluation.id for evaluation in evaluations).values():
        for name, spec in specs.items():
            several.setdefault(name, []).append(spec)
    return {name: agreed(each) for name, each in several.items()}


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(shown)}{more}" if shown else "none"
