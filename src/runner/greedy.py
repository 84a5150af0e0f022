"""Greedy soups: which members `soup:A+B+C@@greedy=SETTING` keeps, chosen by stored results.

Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing
inference time" (2022), recipe 1. Members are taken in the order of their results on the held-out setting, the best
first. Each one is kept if the mean of the weights with it is not worse there than without it. Members and candidates
are cells like any others: what is stored is not computed again, and what has changed is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.db.store import Store
from testbed.entities import OVERALL, Result
from testbed.execution.report import Report
from testbed.formatting import mean_score
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.inputs import active, using
from testbed.metric_specs import DIRECTIONS, HIGHER, NEITHER, main_metric, spec_of
from testbed.models.made.names import GREEDY, SOUP, Made, made_in, parse
from testbed.planning.plan import Planner
from testbed.registry.catalog import Catalog


@dataclass(frozen=True)
class MemberResults:
    """Models on the held-out setting.

    Attributes:
        results: Their results.
        reasons: Why a model has none.
        stopped: The report of a run that the user has ended; else None.
    """

    results: Sequence[Result]
    reasons: Mapping[str, str]
    stopped: Report | None = None

    @classmethod
    def by(cls, report: Report, db_url: str | None) -> MemberResults:
        """By a run on a store."""
        with Store.open(db_url) as store:
            results = store.results.of(report.evaluations)
        reasons = {outcome.model: outcome.reason or outcome.status for outcome in report.outcomes}
        return cls(results, reasons, report if report.interrupted else None)


Evaluate = Callable[[RunOptions, Sequence[str], str], MemberResults]  # options, models, a setting


class _Stopped(Exception):
    """The user has ended a run of members or of a candidate."""

    def __init__(self, report: Report) -> None:
        self.report = report


class _Unusable(Exception):
    """A soup cannot be chosen; the message gives the reason."""


def choose_soups(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    evaluate: Evaluate,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[RunOptions, Report | None]:
    """Chooses the members of all greedy soups among some models, and among what these are made of.

    Args:
        models: Canonical names.
        evaluate: Evaluates models on a setting, or finds what is stored.
        tell: Called with a line about each soup.

    Returns:
        The options with what is kept; and the report of the run in which the user ended it, else None.
    """
    inputs = options.inputs or active()
    once = replace(options, override=False, verify=None)  # which are about what the user has named
    for made in dict.fromkeys(each for name in models for each in named_in(catalog, name) if each.how == GREEDY):
        if str(made) in dict(inputs.kept):
            continue
        kept: tuple[str, ...] | str
        try:
            with using(inputs):
                kept, told = _chosen(catalog, made, replace(once, inputs=inputs), evaluate)
            tell(f"{made}: {told}")
        except _Unusable as why:
            kept = str(why)
        except _Stopped as stopped:
            return options, stopped.report
        inputs = replace(inputs, kept=(*inputs.kept, (str(made), kept)))
    return replace(options, inputs=inputs), None


def with_stored_soups(catalog: Catalog, options: RunOptions, store: Store | None, models: Sequence[str]) -> RunOptions:
    """The options with what greedy soups keep by what is stored; runs nothing."""

    def stored(own: RunOptions, members: Sequence[str], on: str) -> MemberResults:
        plan = Planner(catalog, store, own, fetch=False).plan(members, [on])
        ids = [cell.stored.id for cell in plan.of(Action.DONE) if cell.stored is not None]
        results = [] if store is None else store.results.of(ids)
        return MemberResults(results, dict.fromkeys(members, "not evaluated yet; a run does this first"))

    return choose_soups(catalog, options, models, stored)[0]


def named_in(catalog: Catalog, model: str) -> list[Made]:
    """Returns the derived models within a model's name, the innermost first."""
    return list(made_in(model, catalog.models.canonical, catalog.eval_settings.canonical))


def _chosen(catalog: Catalog, made: Made, options: RunOptions, evaluate: Evaluate) -> tuple[tuple[str, ...], str]:
    """The members that are kept, in the order of their names, and how they were found, in words."""
    soup = parse(made.of[0], catalog.models.canonical, catalog.eval_settings.canonical)
    results = _results(evaluate(options, soup.of, made.value), soup.of, made)
    sign = 1 if results[soup.of[0]].better == HIGHER else -1
    first, *others = sorted(soup.of, key=lambda each: -sign * (results[each].value or 0))
    kept, best = [first], results[first]
    steps = [f"{first} {_shown(best)}"]
    for other in others:
        among = [*kept, other]
        candidate = str(Made(SOUP, tuple(name for name in soup.of if name in among)))
        found = _results(evaluate(options, [candidate], made.value), [candidate], made)[candidate]
        better = sign * ((found.value or 0) - (best.value or 0)) >= 0
        steps.append(f"with {other} {_shown(found)}{'' if better else ' (left out)'}")
        if better:
            kept, best = among, found
    ordered = tuple(name for name in soup.of if name in kept)
    is_now = str(Made(SOUP, ordered)) if len(ordered) > 1 else ordered[0]
    return ordered, f"{is_now}, chosen by {best.metric} on {made.value}: {', '.join(steps)}"


def _results(done: MemberResults, models: Sequence[str], made: Made) -> dict[str, Result]:
    """The main metric of each model on the held-out setting.

    Raises:
        _Stopped: If the run was interrupted.
        _Unusable: If one has no results, or a metric that says nothing about what is better.
    """
    if done.stopped is not None:
        raise _Stopped(done.stopped)
    found = [result for result in done.results if result.slice == OVERALL]
    metric = main_metric({spec_of(each) for each in found})
    chosen = {each.model: each for each in found if metric is not None and each.metric == metric.name}
    for model in models:
        if model not in chosen or chosen[model].value is None:
            why = done.reasons.get(model) or "no results"
            raise _Unusable(f"{model} on {made.value}, by which members are chosen: {why}")
        if chosen[model].better not in DIRECTIONS or chosen[model].better == NEITHER:
            raise _Unusable(
                f"{made.value} has no metric of which larger or smaller values are better, so that no members of"
                f" {made.of[0]} can be chosen by it"
            )
    return chosen


def _shown(result: Result) -> str:
    return mean_score(result.value or 0, result.unit)
