"""Runs on ever more samples in random order, until the interval is narrow enough, or one of two models is better.

Each look is a run on a setting of its own, such as ``val.random-800``, which reuses the outputs of the looks before.
What is decided holds for all samples of the setting, with 95 % confidence at all looks together; see
`testbed.metrics.inference.sequential`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from testbed.db.store import Store
from testbed.errors import DataError, RunError, StoreError, TestbedError, shortened
from testbed.execution.report import Report
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.graph.stored import depends_on_batch
from testbed.metrics.inference.sequential import ALPHA
from testbed.planning.plan import Planner
from testbed.registry.catalog import Catalog
from testbed.registry.references import SettingReference
from testbed.registry.select import select
from testbed.runner.drawn import MeanEstimate, Population, gain_of, mean_of
from testbed.tasks.parts.recorded_sets import pairs_of

BETTER = "better"
FIRST = (100, 140)  # the first looks; the next ones are at twice as many, and so on
_STEPS_ANEW = 3
_NEARLY_ALL = 0.8  # of the samples
# Looks at fewer samples than this share of what is likely needed are left out: they cost a start for nothing, and where
# all is computed anew, their samples.
_WORTH = {False: 0.5, True: 1.3}


@dataclass(frozen=True)
class Goal:
    """The condition for stopping.

    Attributes:
        half: The mean of all samples is this close to the value, in points, or in the unit of a metric that is not a
            fraction; None if models are compared.
        than: The model that each of the others is compared with; empty if none is.
        metric: The metric; None for the main one.
    """

    half: float | None = None
    than: str = ""
    metric: str | None = None


@dataclass
class SampledCell:
    """A model on a setting, and how far it came.

    Attributes:
        looks: The numbers of samples of the looks, and the settings that have them; the last one has all samples.
        now: The place of the next look.
        estimate: After the last look.
        decided: Whether the goal is reached.
        why: Why it was given up; empty if it was not.
        looked: How many looks there were.
        anew: Whether each look computes all its samples, since outputs depend on the batch.
        computed: The number of samples that were computed, those stored before included.
        evaluation_id: That of the last look.
        nearly_all: Whether the goal takes nearly all samples.
    """

    model: str
    setting: str
    population: Population | None = None
    looks: Sequence[tuple[int, str]] = ()
    now: int = 0
    estimate: MeanEstimate | None = None
    decided: bool = False
    why: str = ""
    looked: int = 0
    anew: bool = False
    computed: int = 0
    evaluation_id: int | None = None
    nearly_all: bool = False

    @property
    def open(self) -> bool:
        """Returns whether there is another look."""
        return not self.decided and not self.why

    @property
    def name(self) -> str:
        """The setting of the next look."""
        return self.looks[self.now][1]


@dataclass
class UntilOutcome:
    """The outcome of a run until a goal.

    Attributes:
        cells: Each model on each setting.
        reports: Of the runs, one for each look.
    """

    cells: list[SampledCell]
    reports: list[Report] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        """Returns whether the user ended it."""
        return any(report.interrupted for report in self.reports)


def goal_of(text: str, catalog: Catalog, models: Sequence[str]) -> Goal:
    """The goal that is written as ``0.5``, ``top5:0.5``, ``better:MODEL`` or ``top5:better:MODEL``.

    Args:
        text: What is written.
        models: Canonical names of the models that are run.

    Raises:
        RunError: If it is not a goal; the message begins with the text.
    """
    first, colon, rest = text.partition(":")
    metric = None
    if colon and first != BETTER:
        metric, (first, colon, rest) = first, rest.partition(":")
    if first == BETTER and rest:
        names = select(catalog.models, catalog.model_collections, [rest])
        if len(names) > 1:
            raise RunError(f"{text}: {rest} are {len(names)} models; name one")
        if not set(models) - {*names}:
            raise RunError(f"{text}: name another model to compare with it")
        return Goal(than=names[0], metric=metric)
    try:
        half = float(first) if not colon else math.nan
    except ValueError:
        half = math.nan
    if not 0 < half < math.inf:
        raise RunError(
            f"{shortened(text)}: expected how close the metric must be known, in points, such as 0.5 or top5:0.5, or a"
            " model to compare with, such as better:resnet50"
        )
    return Goal(half=half, metric=metric)


RunPairs = Callable[[Sequence[tuple[str, str]]], Report]


def run_until(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    goal: Goal,
    run: RunPairs,
    tell: Callable[[str], None] = lambda note: None,
) -> UntilOutcome:
    """Runs each model on each setting until the goal is reached.

    Args:
        models: Canonical names; that of the goal is not compared with itself.
        settings: Canonical names.
        goal: When to stop.
        run: Runs pairs of a model and a setting.
        tell: Called with a note where the goal takes nearly all samples.

    Raises:
        TestbedError: As `testbed.runner.run.run`.
    """
    populations = {setting: _population(catalog, setting) for setting in settings}
    pairs = [pair for pair in pairs_of(catalog, models, settings) if pair[0] != goal.than]
    outcome = UntilOutcome([_begun(catalog, *pair, populations[pair[1]]) for pair in pairs])
    with Store.create(options.db_url, options.payload_url) as store:
        _skip_what_is_stored(catalog, options, store, outcome.cells)
        while (waiting := [cell for cell in outcome.cells if cell.open]) and not outcome.interrupted:
            asked = [(sampled_cell.model, sampled_cell.name) for sampled_cell in waiting]
            report = run(list(dict.fromkeys(asked + [(goal.than, name) for _, name in asked if goal.than])))
            outcome.reports.append(report)
            if not report.interrupted:
                for sampled_cell in waiting:
                    _look(store, sampled_cell, goal, report)
                    _tell_if_nearly_all(sampled_cell, goal, tell)
                _go_together([sampled_cell for sampled_cell in waiting if sampled_cell.open])
    return outcome


def _population(catalog: Catalog, setting: str) -> Population | str:
    try:
        if SettingReference.parse(setting).first:
            raise DataError(f"{setting} is a part of a setting; --until chooses the part itself")
        if catalog.get_eval_setting(setting).task == "retrieval":
            raise DataError(
                f"on {setting}, each sample is compared with all others, so that fewer samples are another, easier"
                " task; run it without --until"
            )
        return Population.of(catalog, setting)
    except (TestbedError, OSError) as error:
        return str(error)


def _begun(catalog: Catalog, model: str, setting: str, population: Population | str) -> SampledCell:
    if isinstance(population, str):
        return SampledCell(model, setting, why=population)
    reference = catalog.eval_settings.reference(setting) or SettingReference(setting)
    looks = [(each, str(replace(reference, first=each))) for each in looks_of(population.size)]
    return SampledCell(model, setting, population, [*looks, (population.size, setting)])


def looks_of(size: int) -> Iterator[int]:
    """100, 140, 200, 280, 400, …, below the number of all samples."""
    times = 1
    while FIRST[0] * times < size:
        yield from (first * times for first in FIRST if first * times < size)
        times *= 2


def _skip_what_is_stored(catalog: Catalog, options: RunOptions, store: Store, cells: Sequence[SampledCell]) -> None:
    """Begins with the largest look whose results are stored: the interval holds at any."""
    planner = Planner(catalog, store, options, fetch=False)
    for cell in cells:
        names = [name for _, name in cell.looks]
        stored = {
            each.eval_setting for each in store.evaluations.find([cell.model], names) if each.status == "complete"
        }
        for place in reversed(range(len(names))):
            if names[place] in stored and planner.plan([cell.model], [names[place]]).of(Action.DONE):
                cell.now = place
                break


def _go_together(cells: Sequence[SampledCell]) -> None:
    """Gives all models of a setting the same look, so that each image is decoded once for all of them."""
    for cell in cells:
        cell.now = min(sampled_cell.now for sampled_cell in cells if sampled_cell.setting == cell.setting)


def _look(store: Store, cell: SampledCell, goal: Goal, report: Report) -> None:
    """Looks at what a run has computed, and decides about the next look."""
    assert cell.population is not None
    name = cell.name
    ids = {(each.model, each.setting): each.evaluation_id for each in report.finished}
    lacking = [model for model in (cell.model, goal.than) if model and ids.get((model, name)) is None]
    if lacking:
        ended = {(outcome.model, outcome.setting): outcome.reason or outcome.status for outcome in report.outcomes}
        cell.why = f"{lacking[0]} on {name}: {ended.get((lacking[0], name), 'no results')}"
        return
    own = store.evaluations.get(ids[cell.model, name] or 0)
    try:
        if goal.than:
            other = store.evaluations.get(ids[goal.than, name] or 0)
            found = gain_of(store, own, other, cell.population, goal.metric)
        else:
            found = mean_of(store, own, cell.population, goal.metric, goal.half or 0)
    except StoreError as error:
        cell.why = str(error)
        return
    cell.estimate, cell.evaluation_id, cell.looked = found, own.id, cell.looked + 1
    if goal.half is None:
        cell.decided = found.low > 0 or found.high < 0 or found.n == cell.population.size
    else:
        half = goal.half / 100 if found.points else goal.half
        cell.decided = found.half_width <= half
    models = {cell.model, goal.than} - {""}
    asked = [each for each in report.plan.cells if each.setting == name and each.model in models]
    anew = {each.model for each in asked if depends_on_batch(each)}
    for each in models - anew:
        _keep_once(store, cell, each, ids[each, name] or 0)
    cell.anew = cell.model in anew
    cell.computed = found.n + (cell.computed if cell.anew else 0)
    if cell.decided:
        return
    # Looks that compute all anew cost the least in all if each has about e times as many samples as the one before.
    cell.now = min(cell.now + (_STEPS_ANEW if cell.anew else 1), len(cell.looks) - 1)
    if goal.half is not None:
        needed = _needed(found, half, cell.population.size)
        while cell.now < len(cell.looks) - 1 and cell.looks[cell.now][0] < _WORTH[cell.anew] * needed:
            cell.now += 1


def _tell_if_nearly_all(cell: SampledCell, goal: Goal, tell: Callable[[str], None]) -> None:
    """Notes, once, that a goal probably takes nearly as many samples as there are."""
    if cell.estimate is None or cell.population is None or cell.nearly_all:
        return
    size, found = cell.population.size, cell.estimate
    if goal.half is not None:
        needed = _needed(found, goal.half / 100 if found.points else goal.half, size)
    else:
        needed = found.n if cell.looked > 1 else 0  # the first look may be at all samples, if these are stored
    cell.nearly_all = len(cell.looks) > 1 and needed >= _NEARLY_ALL * size
    if cell.nearly_all:
        what = "a decision" if goal.half is None else f"± {goal.half:g}"
        tell(
            f"{cell.model} on {cell.setting}: {what} takes nearly all of the {size:,} samples; a run without --until"
            " costs hardly more, and is exact"
        )


def _keep_once(store: Store, cell: SampledCell, model: str, evaluation_id: int) -> None:
    """Stores the outputs of earlier looks only as those of this one, which has them all."""
    names = [name for _, name in cell.looks[: cell.now]]
    earlier = store.evaluations.find([model], names, statuses=["complete"])
    store.outputs.keep_once(evaluation_id, [evaluation.id for evaluation in earlier])


def _needed(found: MeanEstimate, half: float, size: int) -> float:
    """About how many samples an interval needs; only how many looks there are depends on it."""
    wide = found.high - found.low
    unlimited = 2 * found.variance * math.log(2 / ALPHA) / half**2 if wide else 0.0
    return unlimited / (1 + unlimited / size)
