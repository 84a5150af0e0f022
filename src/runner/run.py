"""A run: from names to results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testbed import extending
from testbed.claims.hook import NAME as PUBLISHED
from testbed.claims.hook import PublishedHook
from testbed.contracts.surroundings import same_random_numbers
from testbed.db.payloads.locations import refuse_memory
from testbed.db.store import Store
from testbed.errors import TestbedError
from testbed.execution.computation import Computation
from testbed.execution.progress import Progress, SilentProgress
from testbed.execution.report import Report
from testbed.execution.sharing import Presence
from testbed.execution.state import Hook
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.inputs import active, using
from testbed.planning.plan import Planner
from testbed.provenance.manifest import EDITED
from testbed.registry.catalog import Catalog
from testbed.runner.greedy import MemberResults, choose_soups, named_in
from testbed.runner.recompute import amount
from testbed.runner.staleness import StalenessChecker
from testbed.tasks.parts.recorded_sets import pairs_of
from testbed.tracing import access_log
from testbed.tracing.patches import traced


@traced
def run(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    progress: Progress | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
) -> Report:
    """Runs models on eval settings and stores everything.

    Recorded answers of VLMEvalKit are run on the settings of their set alone, if there are such settings.

    Args:
        models: Canonical names of models.
        settings: Canonical names of eval settings.
        pairs: A model and a setting each: only these are run.

    Returns:
        How each cell ended. A cell that failed is a row in the store with its reason; the others went on.

    Raises:
        TestbedError: If the run as a whole cannot start or go on; what was stored before that is kept. Its attribute
            ``report`` says how far the run had come.
    """
    with same_random_numbers():
        return _run_all(catalog, options.resolved(), models, settings, progress or SilentProgress(), pairs)


def _run_all(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    progress: Progress,
    pairs: Sequence[tuple[str, str]] | None,
) -> Report:
    access_log.begin()
    with using(options.inputs or active()):
        catalog.load(options.plugins)
        options = _where_known(catalog, options, models, settings, progress)
        options, stopped = choose_soups(
            catalog,
            options,
            models,
            lambda own, members, on: MemberResults.by(run(catalog, own, members, [on], progress), own.db_url),
            progress.note,
        )
    if stopped is not None:
        return stopped
    with using(options.inputs or active()):
        if options.executor != "inline":
            refuse_memory(options.payload_url or "")
        with Store.create(options.db_url, options.payload_url) as store, Presence(store) as presence:
            computation = Computation(catalog, options, store, progress, hooks=_hooks(progress))
            try:
                report = _run(computation, pairs_of(catalog, models, settings) if pairs is None else pairs)
            except TestbedError as error:
                error.report = computation.report
                raise
            presence.outcome = _outcome(report)
            return report


def run_pairs(
    catalog: Catalog, options: RunOptions, pairs: Sequence[tuple[str, str]], progress: Progress | None = None
) -> Report:
    """Runs pairs of a model and a setting, and no others; see `run`."""
    return run(catalog, options, [each for each, _ in pairs], [each for _, each in pairs], progress, pairs)


def _hooks(progress: Progress) -> dict[str, Hook]:
    """The hooks of a run: the comparison with published values, and those of extensions."""
    installed = extending.load_all(extending.HOOK, progress.note)
    return {PUBLISHED: PublishedHook(), **{name: make() for name, make in installed.items()}}


def _outcome(report: Report) -> str:
    if report.interrupted:
        return "interrupted"
    return "complete" if report.ok else "incomplete"


def _where_known(
    catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str], progress: Progress
) -> RunOptions:
    """The options, with everything computed in this process if others do not know a definition: that of a notebook."""
    parts = [made for model in models for made in named_in(catalog, model)]
    used, on = {*models, *(name for made in parts for name in made.of)}, {*settings, *(made.value for made in parts)}
    own = catalog.models.in_main() & used
    own |= {name for name in catalog.eval_settings.in_main() if any(each.startswith(name) for each in on)}
    if not own:
        return options
    others = options.executor in ("processes", "ray")
    if others:
        more = f" and {len(own) - 1} more are" if len(own) > 1 else " is"
        progress.note(
            f"{min(own)}{more} defined in this program only, so this process computes everything; definitions in a"
            " file that is given as a plug-in can use several GPUs"
        )
    return replace(options, executor="inline" if others else options.executor, data_workers=0)


def _run(computation: Computation, pairs: Sequence[tuple[str, str]]) -> Report:
    """Plans, checks what the plan builds on where that may be outdated, and computes the rest."""
    catalog, options, store = computation.catalog, computation.options, computation.store
    progress, report, state = computation.progress, computation.report, computation.state
    checker = StalenessChecker(catalog, store, options, state.records, progress, state.record, state.environment)
    report.checks = checker.checks
    planner = Planner(catalog, store, options)
    try:
        plan = checker.check(planner, pairs)
        if options.verify is not None:
            checker.verify(plan, amount(options.verify))
        store.evaluations.confirm([cell.stored.id for cell in plan.of(Action.DONE) if cell.stored is not None])
    except KeyboardInterrupt:
        if not planner.planned:
            raise  # making a plan may take as long as what the user has interrupted
        plan = planner.plan_pairs(pairs)
        report.interrupted = True
    computation.compute(plan, checker.suspects)
    if not report.interrupted:
        report.hooks = computation.hooks.ended(store, report.plan, report.evaluations)
    for name in state.records.edited():
        progress.note(f"{name} {EDITED}; what was computed is that of the version in memory")
    for name in state.records.mark_changed():
        progress.note(f"{name} changed while it was read; the next run checks what was computed from it")
    return report
