"""``testbed run`` and ``eval.py``: models on eval settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options import clip_benchmark_words, vlmevalkit_words
from testbed.cli.options.inputs import InputOptions, download_missing, require_checkpoints
from testbed.cli.options.run import MODELS, OPTIONS, SETTINGS, picked
from testbed.cli.options.tasks import TaskOptions, as_captioners, as_scored, as_tasks
from testbed.cli.run.checks import check_as_object, require_amount
from testbed.cli.run.dry_run import dry_run as show_plan
from testbed.cli.run.files import log_to_trackers, trackers, write_heads, write_logdir
from testbed.cli.run.part import RunPart, RunRequest, installed_options, parts_of
from testbed.cli.run.progress import command_progress
from testbed.cli.run.progress import log_file as open_log
from testbed.cli.run.recorded_files import with_recorded
from testbed.cli.run.report import print_ended, print_report, unexpected
from testbed.cli.run.until import check_no_other, goal_of, run_and_print
from testbed.console.class_lines import as_run, readings_as_objects
from testbed.console.model_lines import models_as_objects
from testbed.console.options import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    Argument,
    Command,
    ManyWords,
    run_command,
    set_up_logging,
    use,
    version_option,
)
from testbed.console.output import print_json
from testbed.console.run_remarks import first_unread, not_finite
from testbed.db.connection.lookup import all_stored
from testbed.errors import TestbedError
from testbed.graph.options import RunOptions
from testbed.models.base.definition import FLOAT32, TF32
from testbed.paths import expanded, own_temporary
from testbed.planning.own_names import own_names_of, with_short_names
from testbed.registry.folders import settings_of_folders

if TYPE_CHECKING:
    from testbed.cli.run.progress import LogFile
    from testbed.execution.progress import Progress
    from testbed.registry.catalog import Catalog
    from testbed.trackers.mirrors import Mirror


def evaluate(
    models: Sequence[str],
    eval_settings: Sequence[str],
    download: str | None,
    predictions: str | None,
    vlmevalkit: Path | None,
    recorded: Path | None,
    save_clf: Path | None,
    scorers: Sequence[str],
    scoring: str,
    db: bool,
    fail_on_disagreement: bool,
    until: str | None,
    logdir: Path | None,
    log_file: Path | None,
    logs: Sequence[str],
    dry_run: bool,
    as_json: bool,
    name: str | None = None,
    **given: Any,
) -> int:
    """Runs models on eval settings; ``given`` has the fields of `InputOptions`, `TaskOptions` and `RunOptions`."""
    from testbed.execution.executors import executor_kind
    from testbed.registry import registry
    from testbed.registry.select import replaced, select

    inputs = picked(InputOptions, given, predictions=predictions).inputs()
    task = picked(TaskOptions, given)
    options = picked(RunOptions, given, inputs=inputs)
    set_up_logging(options.verbose, lambda line: click.echo(line, err=True))
    require_amount(options.verify)
    request = RunRequest(models, eval_settings, options)
    parts = parts_of(RUN_OPTIONS, given, request, db)
    if logs and not db:
        raise click.UsageError("--log records in the store what was logged; it cannot be used with --no-db")
    if options.store_dtype and options.dtype not in (FLOAT32, TF32):
        raise click.UsageError(f"--store-dtype is for --dtype float32; {options.dtype} outputs already have this size")
    if until is not None:
        check_no_other(
            {
                "--limit": options.limit is not None,
                "--override": options.override,
                "--verify": options.verify is not None,
                "--dry-run": dry_run,
                "--save-clf": save_clf is not None,
                "--logdir": logdir is not None,
                "--log": bool(logs),
                "--fail-on-disagreement": fail_on_disagreement,
                **dict.fromkeys(parts, True),
            }
        )
    if vlmevalkit is not None:
        request = _with_config(vlmevalkit, request)
    if recorded is not None:
        models, eval_settings = with_recorded(recorded, request.models, request.settings, inputs)
        request = request.but(models=models, settings=eval_settings)
    for part in parts.values():
        request = part.changed(request)
    models, eval_settings, options = request.models, request.settings, request.options
    _require("models", models)
    if not parts:
        _require("eval_settings", eval_settings)
    inputs = options.inputs or inputs
    use(inputs)
    registry.load(options.plugins)
    eval_settings, inputs = settings_of_folders(registry, eval_settings, inputs)
    use(inputs)
    options = replace(options, inputs=inputs)
    for part in parts.values():
        eval_settings = eval_settings or part.settings(registry, scorers)
    _require("eval_settings", eval_settings)
    inputs = replace(inputs, own_names=own_names_of(options.db_url))
    use(inputs)
    chosen_models = as_captioners(select(registry.models, registry.model_collections, models), task.task)
    require_checkpoints(inputs, chosen_models)
    chosen_models, inputs, said = with_short_names(registry, chosen_models, inputs, options.db_url, name)
    for line in said:
        click.echo(line, err=True)
    use(inputs)
    options = replace(options, inputs=inputs)
    chosen_settings = as_tasks(select(registry.eval_settings, registry.eval_setting_collections, eval_settings), task)
    chosen_settings = as_scored(registry, chosen_settings, scorers, scoring)
    if not dry_run and (options.override or not all_stored(options.db_url, chosen_models, chosen_settings)):
        executor_kind(options.executor).start_ahead()  # workers import while this process imports and plans
    for line in (*replaced(registry.models, chosen_models), *replaced(registry.eval_settings, chosen_settings)):
        click.echo(line, err=True)
    if download is not None and not dry_run:
        download_missing(chosen_settings, download)
    if dry_run:
        return show_plan(registry, options, chosen_models, chosen_settings, as_json)
    mirrors = trackers(logs, options.db_url)
    goal = None if until is None else goal_of(until, registry, chosen_models)
    with open_log(log_file, chosen_models, chosen_settings) as log:
        run = partial(
            _run,
            registry,
            models=chosen_models,
            settings=chosen_settings,
            logdir=logdir,
            as_json=as_json,
            heads=save_clf,
            parts=list(parts.values()),
            log=log,
            fail_on_disagreement=fail_on_disagreement,
            mirrors=mirrors,
        )
        if goal is not None:
            run = partial(run_and_print, registry, chosen_models, chosen_settings, goal, as_json=as_json, log=log)
        if db:
            return run(options=options)
        with own_temporary() as folder:
            kept_here = replace(options, db_url=str(Path(folder) / "results.db"), payload_url="")
            return run(options=kept_here, kept=False)


RUN_OPTIONS = installed_options()
# Hints for eval.py's option names given to `testbed run`.
OF_EVAL = {
    "--models": "write the models' names after run: testbed run resnet50 --on val",
    "--eval-settings": "write the settings' names after --on: testbed run resnet50 --on val",
}


def _command(
    name: str, own: list[click.Parameter], examples: Sequence[str], hints: Mapping[str, str], more: str = ""
) -> Command:
    lines = "\n".join(f"  {example}" for example in examples)
    return Command(
        name,
        callback=evaluate,
        params=[*own, *OPTIONS, *(parameter for option in RUN_OPTIONS for parameter in option.parameters)],
        hints={**hints, **vlmevalkit_words.HINTS, **clip_benchmark_words.HINTS},
        help=f"""Run models on eval settings, and store every output and metric.

All GPUs are used. Stored results are not computed again. To resume an interrupted run, give the same command again.
{more}
\b
Examples:
{lines}""",
    )


run = _command(
    "run",
    [
        Argument(["models"], nargs=-1, metavar="MODEL...", shell_complete=MODELS["shell_complete"]),
        ManyWords(["--on", "eval_settings"], heading="What", **SETTINGS),
    ],
    (
        "testbed run demo --on demo",
        "testbed run resnet50 densenet121 --on val --gpus 0 1",
        "testbed run 'timm/convnext*' --on val --dry-run",
    ),
    OF_EVAL,
    f"\n{MODELS['help']}\n",
)
command = _command(
    "eval.py",
    [
        ManyWords(["--models"], heading="What", **MODELS),
        ManyWords(["--eval-settings"], heading="What", **SETTINGS),
    ],
    (
        "python eval.py --models demo --eval-settings demo",
        "python eval.py --gpus 0 1 --models resnet50 densenet121 --eval-settings val",
        "python eval.py --models 'timm/convnext*' --eval-settings val --dry-run",
    ),
    {"--on": "use --eval-settings"},
)
version_option(command)


def _with_config(path: Path, request: RunRequest) -> RunRequest:
    """Adds the models and settings of a VLMEvalKit configuration file to a request."""
    from testbed.models.loading.vlmeval_config import read_config

    config = read_config(path)
    options = replace(request.options, plugins=(*request.options.plugins, str(expanded(path).resolve())))
    return RunRequest((*request.models, *config.models), (*request.settings, *config.data.values()), options)


def _require(name: str, words: Sequence[str]) -> None:
    """Checks that a run has models or settings."""
    if not words:
        raise click.MissingParameter(param=_parameter(name))


def _parameter(name: str) -> click.Parameter:
    return next(parameter for parameter in click.get_current_context().command.params if parameter.name == name)


# Run --------------------------------------------------------------------------------------------------------------


def _run(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    logdir: Path | None,
    as_json: bool,
    kept: bool = True,
    heads: Path | None = None,
    parts: Sequence[RunPart] = (),
    log: LogFile | None = None,
    fail_on_disagreement: bool = False,
    mirrors: Sequence[Mirror] = (),
) -> int:
    from testbed.claims.agreement import differing
    from testbed.claims.hook import comparisons
    from testbed.cli.run.other_sizes import as_objects, other_sizes, print_other_sizes
    from testbed.db.store import Store
    from testbed.execution.progress import Several
    from testbed.graph.cells import left_out_as_object
    from testbed.runner.run import run

    told_here = command_progress(options)
    progress = told_here if log is None else Several(told_here, log)
    set_up_logging(options.verbose, progress.note)
    with ExitStack() as stack:
        told: Progress = progress
        for part in parts:
            told = stack.enter_context(part.watching(told, options))
        try:
            report = run(catalog, options, models, settings, told)
            if log is not None:
                log.report(report)
        except TestbedError as error:
            if error.report is not None and not as_json:
                print_ended(error.report, options, models, settings)
            raise
        finally:
            progress.close()
        settings = as_run(report, settings)
        with Store.open(options.db_url) as store:
            results = store.results.of(report.evaluations)
        sizes = other_sizes(catalog, options, report, results)
        for part in parts:
            part.ended(report, results)
    with Store.open(options.db_url) as store:
        unreadable = store.outputs.unreadable(report.evaluations)
        broken = {entry.evaluation_id for entry in not_finite(results)}
        if logdir is not None:
            write_logdir(store, report, logdir)
        if heads is not None:
            write_heads(store, report.evaluations, heads)
        if as_json:
            print_json(
                {
                    "outcomes": [
                        {
                            **vars(outcome),
                            "unreadable": unreadable.get(outcome.evaluation_id or 0, 0),
                            "not_finite": outcome.evaluation_id in broken,
                        }
                        for outcome in report.outcomes
                    ],
                    "models": models_as_objects(report),
                    "classes": readings_as_objects(report),
                    "other_sizes": as_objects(sizes),
                    "results": [asdict(result) for result in results],
                    "left_out": left_out_as_object(report.left_out),
                    "published": [comparison.as_object() for comparison in comparisons(report.hooks)],
                    "checks": [check_as_object(check) for check in report.checks],
                    "times": [times.as_object() for _, times in sorted(report.times.items())],
                    "store": store.display_url if kept else None,
                }
            )
        else:
            named, shown = first_unread(store, unreadable), store.display_url if kept else None
            print_report(report, results, unreadable, models, settings, options.override, shown, named)
            print_other_sizes(sizes)
        for part in parts:
            part.printed(catalog, options, store, report)
    logged_all = log_to_trackers(options.db_url, mirrors, report)
    if report.interrupted:
        return EXIT_INTERRUPTED
    lacking = options.strict and unexpected(report.left_out)
    if lacking:
        click.echo("--strict: the files left out may be samples, so the exit status is 1", err=True)
    disagreeing = differing(comparisons(report.hooks)) if fail_on_disagreement else []
    if disagreeing:
        differ = "1 number differs" if len(disagreeing) == 1 else f"{len(disagreeing):,} numbers differ"
        click.echo(f"--fail-on-disagreement: {differ} from published ones, so the exit status is 1", err=True)
    objected = lacking or disagreeing or (options.strict and broken)
    return 0 if report.ok and logged_all and not objected else EXIT_ERROR


def main() -> None:
    """Runs the program ``eval.py``."""
    run_command(command)
