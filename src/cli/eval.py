"""``eval.py`` / ``testbed eval``: runs models on eval settings."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.clip_benchmark_words import HINTS
from testbed.cli.options.download import download_missing, download_option
from testbed.cli.options.machines import machine_choices, machine_options
from testbed.cli.options.preprocessing import class_order, preprocessing, preprocessing_options, require_checkpoints
from testbed.cli.options.scorers import as_scored, scorer_options
from testbed.cli.options.tasks import as_captioners, as_tasks, given_files, task_options
from testbed.cli.run.checks import check_as_object, require_amount
from testbed.cli.run.clip_cc import ClipCcRun, clip_cc_options, export_run, translate
from testbed.cli.run.dry_run import dry_run as show_plan
from testbed.cli.run.files import write_heads, write_logdir
from testbed.cli.run.log_file import log_file
from testbed.cli.run.progress import command_progress
from testbed.cli.run.recorded_files import recorded_option, with_recorded
from testbed.cli.run.report import FINISHED, not_finite, print_ended, print_report, unexpected
from testbed.cli.run.thumbnails import thumbnails_of
from testbed.console.completion import registered
from testbed.console.model_lines import models_as_objects
from testbed.console.options import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    ManyWords,
    ManyWordsCommand,
    checkpoints_option,
    data_root_option,
    lmu_data_option,
    predictions_option,
    run_command,
    set_up_logging,
    store_options,
    use,
)
from testbed.console.output import print_json
from testbed.errors import TestbedError
from testbed.inputs import MAX_MEGAPIXELS, Inputs
from testbed.paths import expanded
from testbed.registry.folders import settings_of_folders

if TYPE_CHECKING:
    from testbed.cli.run.log_file import LogFile
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog

POSITIVE = click.IntRange(min=1)


@click.command(
    cls=ManyWordsCommand,
    hints=HINTS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--models",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=registered("model"),
    help="Models: names, patterns ('timm/convnext*'), collections (demo), or a text file of these.",
)
@click.option(
    "--eval-settings",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=registered("eval setting"),
    help="Eval settings: names, patterns ('digits-c.*'), collections (demo), folders of images (one folder per class),"
    " or a text file of these.",
)
@click.option("--db/--no-db", default=True, help="Whether to store the results.  [default: --db]")
@click.option(
    "--logdir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also write metrics.json and the outputs to this folder.",
)
@store_options
@click.option(
    "--payload-url", metavar="URL", help="Store outputs at an fsspec URL (s3://…, file://…), not in the database."
)
@data_root_option
@download_option
@predictions_option
@checkpoints_option
@lmu_data_option
@clip_cc_options
@click.option(
    "--vlmevalkit",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Run the models on the sets of a configuration file of VLMEvalKit, besides those that are named.",
)
@recorded_option
@preprocessing_options
@task_options
@scorer_options
@machine_options
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")
@click.option("--limit", type=POSITIVE, metavar="N", help="At most N samples of each setting, evenly spread.")
@click.option(
    "--batch-size",
    type=POSITIVE,
    metavar="N",
    help="Batch size (attacks and vLLM use the model's own).  [default: each model's own]",
)
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Precision of the models (the lower ones by torch.autocast).",
)
@click.option(
    "--store-dtype",
    type=click.Choice(["float16"]),
    help="Store logits and embeddings rounded to 3 digits, at half the size, as separate evaluations.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for perturbations, sampling and random weights."
)
@click.option("--random-weights", is_flag=True, help="Build untrained architectures; their results are marked.")
@click.option(
    "--strict",
    is_flag=True,
    help="Stop at a sample that cannot be read instead of counting it as wrong; fail if outputs are NaN or infinite, or"
    " if a data set leaves out what may be samples.",
)
@click.option(
    "--max-megapixels",
    type=POSITIVE,
    metavar="N",
    help=f"Do not decode images of more than N million pixels; they count as unreadable.  [default: {MAX_MEGAPIXELS}]",
)
@click.option("--no-shared-pass", is_flag=True, help="Read the images again for each cell.")
@click.option(
    "--trust", is_flag=True, help="Reuse stored results unchecked, even if files or versions have changed since."
)
@click.option(
    "--verify",
    metavar="N|P%",
    help="Recompute N samples (or P percent) of each stored result, compare, and store the outcome.",
)
@click.option("--override", is_flag=True, help="Run stored cells again; the stored evaluations are hidden.")
@click.option(
    "--thumbnails",
    is_flag=True,
    help="Also store a small JPEG of each sample, for db.py --serve where the data are not. Reads each image again.",
)
@click.option(
    "--log-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Append what happens to this file, as JSON lines: passes, their progress, messages, and how each cell ended.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Print more; show where errors come from.")
def command(
    models: Sequence[str],
    eval_settings: Sequence[str],
    logdir: Path | None,
    data_root: str | None,
    predictions: str | None,
    checkpoints: str | None,
    lmu_data: str | None,
    clip_cc: Path | None,
    base_dir: Path | None,
    db: bool,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Run models on eval settings, on all GPUs, and store every output and every metric.

    Stored results are not computed again. To resume an interrupted run, give the same command again.

    \b
    Examples:
      python eval.py --models demo --eval-settings demo
      python eval.py --gpus 0 1 --models resnet50 densenet121 --eval-settings val
      python eval.py --models 'timm/convnext*' --eval-settings val --dry-run
    """
    from dataclasses import replace

    from testbed.execution.executors import executor_kind
    from testbed.registry import registry
    from testbed.registry.select import replaced, select

    inputs = Inputs.from_environment().but(
        data_root=data_root,
        predictions=predictions,
        checkpoints=checkpoints,
        lmu_data=lmu_data,
        max_megapixels=given["max_megapixels"],
        **given_files(given),
    )
    inputs = replace(inputs, preprocessing=preprocessing(given), class_order=class_order(given))
    set_up_logging(verbose, lambda line: click.echo(line, err=True))
    require_amount(given["verify"])
    if given["thumbnails"] and not db:
        raise click.UsageError("--thumbnails stores pictures; it cannot be used with --no-db")
    options = _options(given, inputs, verbose)
    if given["vlmevalkit"] is not None:
        models, eval_settings, options = _with_config(given["vlmevalkit"], models, eval_settings, options)
    if given["recorded"] is not None:
        models, eval_settings = with_recorded(given["recorded"], models, eval_settings, inputs)
    bench = translate(clip_cc, base_dir, models, predictions) if clip_cc is not None else None
    if bench is not None:
        models, options = bench.models, bench.options(options)
    else:
        _require(models, eval_settings, base_dir)
    inputs = options.inputs or inputs
    use(inputs)
    if not dry_run:
        executor_kind(options.executor).start_ahead()  # while this process imports the same, and plans
    registry.load(options.plugins)
    eval_settings, inputs = settings_of_folders(registry, eval_settings, inputs)
    use(inputs)
    options = replace(options, inputs=inputs)
    if bench is not None and not eval_settings:
        eval_settings = bench.settings(registry, given["scorers"])
    chosen_models = as_captioners(select(registry.models, registry.model_collections, models), given["task"])
    require_checkpoints(inputs, chosen_models)
    chosen_settings = as_tasks(select(registry.eval_settings, registry.eval_setting_collections, eval_settings), given)
    chosen_settings = as_scored(registry, chosen_settings, given["scorers"], given["scoring"])
    for line in (*replaced(registry.models, chosen_models), *replaced(registry.eval_settings, chosen_settings)):
        click.echo(line, err=True)
    if given["download"] is not None and not dry_run:
        download_missing(chosen_settings, given["download"])
    if dry_run:
        return show_plan(registry, options, chosen_models, chosen_settings, as_json)
    with log_file(given["log_file"], chosen_models, chosen_settings) as log:
        run = partial(
            _run,
            registry,
            models=chosen_models,
            settings=chosen_settings,
            logdir=logdir,
            as_json=as_json,
            heads=given["save_clf"],
            bench=bench,
            log=log,
        )
        if db:
            return run(options=options, thumbnails=bool(given["thumbnails"]))
        with tempfile.TemporaryDirectory(prefix="testbed-") as folder:
            kept_here = replace(options, db_url=str(Path(folder) / "results.db"), payload_url="")
            return run(options=kept_here, kept=False)


def _with_config(
    path: Path, models: Sequence[str], eval_settings: Sequence[str], options: RunOptions
) -> tuple[Sequence[str], Sequence[str], RunOptions]:
    """Models, settings and options with those of a configuration file of VLMEvalKit's."""
    from dataclasses import replace

    from testbed.models.loading.vlmeval_config import read_config

    config = read_config(path)
    plugins = (*options.plugins, str(expanded(path).resolve()))
    return (*models, *config.models), (*eval_settings, *config.data.values()), replace(options, plugins=plugins)


def _require(models: Sequence[str], eval_settings: Sequence[str], base_dir: Path | None) -> None:
    """Checks the options that are required without --clip-cc, or require it."""
    for option, words in (("--models", models), ("--eval-settings", eval_settings)):
        if not words:
            raise click.MissingParameter(param_hint=f"'{option}'", param_type="option")
    if base_dir is not None:
        raise click.UsageError("--base-dir requires --clip-cc")


def _options(given: dict[str, Any], inputs: Inputs, verbose: bool) -> RunOptions:
    from testbed.graph.options import RunOptions

    if given["store_dtype"] and given["dtype"] != "float32":
        raise click.UsageError(
            f"--store-dtype is for --dtype float32; outputs of {given['dtype']} are as small already"
        )
    return RunOptions(
        db_url=given["db_url"],
        payload_url=given["payload_url"],
        plugins=tuple(str(expanded(plugin).resolve()) for plugin in given["plugins"]),
        limit=given["limit"],
        batch_size=given["batch_size"],
        dtype=given["dtype"],
        store_dtype=given["store_dtype"],
        seed=given["seed"],
        random_weights=given["random_weights"],
        strict=given["strict"],
        share_passes=not given["no_shared_pass"],
        trust=given["trust"],
        verify=given["verify"],
        override=given["override"],
        verbose=verbose,
        inputs=inputs,
        **machine_choices(given),
    )


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
    bench: ClipCcRun | None = None,
    thumbnails: bool = False,
    log: LogFile | None = None,
) -> int:
    from testbed.cli.run.clip_cc_log import log_outcomes, logged
    from testbed.cli.run.other_sizes import as_objects, other_sizes, print_other_sizes
    from testbed.db.store import Store
    from testbed.execution.progress import Several
    from testbed.planning.left_out import as_object
    from testbed.runner.run import run

    told_here = command_progress(options)
    progress = told_here if log is None else Several(told_here, log)
    set_up_logging(options.verbose, progress.note)
    with logged(bench if options.limit is None else None, progress, options.progress_interval) as told:
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
        with Store.open(options.db_url) as store:
            finished = [each.evaluation_id for each in report.of(*FINISHED) if each.evaluation_id is not None]
            results = store.results_of(finished)
        sizes = other_sizes(catalog, options, report, results)
        if bench is not None and options.limit is None:
            log_outcomes(report, results)
    with Store.open(options.db_url) as store:
        unreadable = store.unreadable(finished)
        broken = {each.evaluation_id for each in not_finite(results)}
        if logdir is not None:
            write_logdir(store, report, logdir)
        if heads is not None:
            write_heads(store, finished, heads)
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
                    "other_sizes": as_objects(sizes),
                    "results": [asdict(result) for result in results],
                    "left_out": as_object(report.left_out),
                    "disagreements": report.disagreements,
                    "checks": [check_as_object(each) for each in report.checks],
                    "times": [each.as_object() for _, each in sorted(report.times.items())],
                    "store": store.display_url if kept else None,
                }
            )
        else:
            print_report(
                report, results, unreadable, models, settings, options.override, store.display_url if kept else None
            )
            print_other_sizes(sizes)
        if bench is not None:
            partial = options.limit is not None
            export_run(store, report.of(*FINISHED), bench.results, partial, bench.scale, bench.form)
    if thumbnails and not report.interrupted:
        thumbnails_of(catalog, options, report)
    if report.interrupted:
        return EXIT_INTERRUPTED
    lacking = options.strict and unexpected(report.left_out)
    if lacking:
        click.echo("--strict: what is left out may be samples, so the exit status is 1", err=True)
    objected = lacking or (options.strict and broken)
    return 0 if report.ok and not objected else EXIT_ERROR


def main() -> None:
    """The program."""
    run_command(command)
