"""``testbed watch``: evaluates checkpoints of a training run as they appear."""

from __future__ import annotations

import copy
import glob
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.inputs import InputOptions, require_checkpoints
from testbed.cli.options.run import SETTINGS, picked, some_options
from testbed.console.completion import registered
from testbed.console.options import Argument, ManyWords, Option, store_command, use
from testbed.console.output import count
from testbed.errors import DataError, UnknownNameError
from testbed.formatting import difference, metric_value, p_value, shown_unit
from testbed.jsontext import finite
from testbed.visible import escaped_json, visible_line

if TYPE_CHECKING:
    from testbed.extensions.watching.loop import Watch
    from testbed.extensions.watching.pairing import CheckpointComparison
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog
    from testbed.stored_results.checkpoint_steps import CheckpointFile

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
SETTLE = 10.0
# Options shared with `testbed run`: metavar and short help.
SHARED = {
    "limit": ("N", "Maximum number of samples of each setting."),
    "data_root": ("DIR", "The folder with the data sets."),
    "plugins": ("FILE", "Files that define models or eval settings."),
    "image_size": ("SIZE", "How the model was trained: [RESIZE] CROP."),
    "mean": ("X", "Likewise: the mean, three numbers."),
    "std": ("X", "Likewise: the standard deviation."),
    "interpolation": ("NAME", "Likewise: the interpolation."),
    "class_order": ("ORDER", "Likewise: the order of the classes."),
    "weights_entry": ("NAME", "Likewise: the entry with the weights, such as ema.module."),
    "gpus": ("ID", "GPUs to use.  [default: all, else the CPU]"),
    "executor": ("NAME", "Where cells are computed: processes, inline, ray."),
    "logs": ("WHERE", "Log results to tensorboard:DIR, wandb[:PROJECT], mlflow[:URI]."),
}


class Seconds(click.ParamType[float]):
    """A time span, such as ``90s``, ``15m``, ``2h`` or ``1d``; without a unit in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parses the value to seconds."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is not a duration; write for example 90s, 15m or 2h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@store_command
@click.argument("files", nargs=-1, required=True, metavar="PATTERN...", cls=Argument, type=click.Path())
@click.option(
    "--arch",
    required=True,
    metavar="NAME",
    shell_complete=registered("model"),
    help="The architecture, as in testbed run NAME,FILE.",
)
@click.option(
    "--on",
    "eval_settings",
    cls=ManyWords,
    required=True,
    **SETTINGS,
)
@click.option(
    "--pattern",
    metavar="REGEX",
    help=r"Where epoch and step are in the path: (?P<epoch>\d+), (?P<step>\d+).  [default: after these words, else the"
    " last number]",
)
@click.option(
    "--settle",
    type=Seconds(),
    default=SETTLE,
    metavar="TIME",
    help="Files are complete when unchanged for this long.  [default: 10s]",
)
@click.option("--marker", metavar="PATH", help="Files are complete when this exists: '{path}.done'.")
@click.option("--latest", is_flag=True, help="Evaluate the newest step first if several wait.")
@click.option("--until", type=int, metavar="N", help="End after N checkpoints have results.")
@click.option("--idle", type=Seconds(), metavar="TIME", help="End after this long without new or changed files.")
@click.option("--best-on", metavar="SETTING", help="The setting for choosing the best one.  [default: the first]")
@click.option(
    "--on-new-best",
    metavar="COMMAND",
    help="Run this command on each new best checkpoint, without a shell; {path}, {run}, {step}, {setting}, {metric},"
    " {value} are replaced.",
)
def command(
    files: Sequence[str],
    arch: str,
    eval_settings: Sequence[str],
    pattern: str | None,
    settle: float,
    marker: str | None,
    latest: bool,
    until: int | None,
    idle: float | None,
    best_on: str | None,
    on_new_best: str | None,
    logs: Sequence[str],
    db_url: str | None,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Evaluate the checkpoints of a training run as they appear.

    Compares each one with the best before it. Run the same command again to resume. Quote the pattern, so that the
    shell does not expand it.

    \b
    Example:
      testbed watch 'runs/*/epoch_*.pt' --arch resnet50 --on val imagenetv2 --until 90
    """
    from testbed.cli.run.progress import command_progress
    from testbed.extensions.watching.files import Files
    from testbed.extensions.watching.hook import run_hook, words_of
    from testbed.extensions.watching.loop import Reporter, Watch, WatchRequest
    from testbed.graph.options import RunOptions
    from testbed.stored_results.checkpoint_steps import compiled
    from testbed.trackers.results import mirrors_of

    words = None if on_new_best is None else words_of(on_new_best)
    regex = None if pattern is None else compiled(pattern)
    if until is not None and until < 1:
        raise click.UsageError(f"--until requires a number of checkpoints, at least 1; got {until}")
    if marker is not None and "{path}" not in marker and "{folder}" not in marker:
        raise click.UsageError(f"--marker requires {{path}} or {{folder}}, such as '{{path}}.done'; got {marker}")
    inputs = picked(InputOptions, given).inputs()
    options = picked(RunOptions, given, db_url=db_url, inputs=inputs, verbose=verbose)
    catalog, options, settings = _prepared(options, arch, eval_settings)
    chosen = _best_on(catalog, best_on, settings)
    if not any(glob.has_magic(file) for file in files):
        click.echo(
            f"note: watching only {count(len(files), 'file')} and no pattern; quote patterns, as in"
            " 'runs/*/epoch_*.pt'",
            err=True,
        )

    def on_best(found: CheckpointFile, row: CheckpointComparison) -> None:
        if words and (problem := run_hook(words, found.path, row)):
            click.echo(problem, err=True)

    reporter = Reporter(
        line=lambda text: click.echo(visible_line(text), err=True),
        rows=_json_lines if as_json else _lines,
        best_on=chosen,
        new_best=on_best if words else None,
        mirrors=mirrors_of(logs, db_url),
        progress=lambda: command_progress(options),
    )
    wanted = WatchRequest(tuple(files), arch, tuple(settings), regex, marker, until, idle)
    watch = Watch(catalog, options, wanted, Files(settle, latest), reporter)
    return _watched(watch)


for _shared in some_options(*SHARED):
    assert isinstance(_shared, Option)
    _option = copy.copy(_shared)
    _option.metavar, _option.help = SHARED[str(_option.name)]
    _option.heading, _option.show_default = "Options", False
    command.params.append(_option)


def _prepared(options: RunOptions, arch: str, words: Sequence[str]) -> tuple[Catalog, RunOptions, list[str]]:
    """The registry, options with all inputs, and the settings' names.

    Raises:
        UnknownNameError: If the architecture or a setting is unknown.
    """
    from testbed.registry import registry
    from testbed.registry.folders import settings_of_folders
    from testbed.registry.select import select

    assert options.inputs is not None
    use(options.inputs)
    registry.load(options.plugins)
    name = registry.models.canonical(f"{arch},/checkpoint.pt")
    if name is None:
        raise UnknownNameError(
            f"--arch {arch}: no family of models takes {arch},FILE; use a name of torchvision, timm/… or open_clip,"
            " such as resnet50, timm/vit_base_patch16_224 or ViT-B-32"
        )
    require_checkpoints(options.inputs, [name])
    words, inputs = settings_of_folders(registry, words, options.inputs)
    use(inputs)
    settings = select(registry.eval_settings, registry.eval_setting_collections, words)
    return registry, replace(options, inputs=inputs), settings


def _best_on(catalog: Catalog, asked: str | None, settings: Sequence[str]) -> str:
    if asked is None:
        return settings[0]
    name = catalog.eval_settings.canonical(asked) or asked
    if name not in settings:
        raise DataError(f"--best-on {asked} is not among the settings of --on: {', '.join(settings)}")
    return name


def _watched(watch: Watch) -> int:
    """Watches, and prints a summary at the end."""
    try:
        watch.run()
    except KeyboardInterrupt:
        click.echo("interrupted; run the same command again to resume", err=True)
    finally:
        watch.close()
    for line in _bests(watch):
        click.echo(visible_line(line), err=True)
    click.echo(_ending(watch), err=True)
    return 1 if watch.summary.failed or watch.files.counts["given up"] else 0


def _ending(watch: Watch) -> str:
    done, counts = watch.summary, watch.files.counts
    parts = [f"{count(len(done.evaluated), 'checkpoint')} evaluated, {len(done.here):,} of them by this watch"]
    for number, noun, fate in (
        (len(done.failed), "evaluation", "failed"),
        (counts["waiting"], "file", "waiting"),
        (counts["given up"], "file", "given up"),
        (watch.files.gone, "file", "deleted before evaluation"),
        (counts["left out"] + watch.stepless, "file", "left out"),
    ):
        parts += [f"{count(number, noun)} {fate}"] if number else []
    return "; ".join(parts)


def _bests(watch: Watch) -> Iterator[str]:
    """Formats lines such as ``runs/a  digits  best: epoch 3, top1 93.15 %; expected on other samples: 92.4 %``."""
    from testbed.db.store import Store
    from testbed.extensions.watching.pairing import bests
    from testbed.stored_results.checkpoint_steps import label_of

    runs = {checkpoint.run for checkpoint in watch.summary.evaluated}
    if not runs:
        return
    with Store.open(watch.options.db_url) as store:
        found = bests(store, runs, watch.wanted.settings)
    for curve, best, expected in found:
        name, unit = curve.spec.name, curve.spec.unit
        yield (
            f"{label_of(curve.run)}  {curve.eval_setting}  best: {best.checkpoint.label},"
            f" {name} {metric_value(best.value, unit)}; expected on other samples: {metric_value(expected, unit)}"
        )


# Results ----------------------------------------------------------------------------------------------------------


def _json_lines(found: CheckpointFile, rows: Sequence[CheckpointComparison]) -> None:
    for row in rows:
        told = {"path": found.path, **row.as_object()}
        click.echo(escaped_json(json.dumps(finite(told), ensure_ascii=False, allow_nan=False)))
    sys.stdout.flush()


def _lines(found: CheckpointFile, rows: Sequence[CheckpointComparison]) -> None:
    for row in rows:
        click.echo(visible_line(_line(row)))
    sys.stdout.flush()


def _line(row: CheckpointComparison) -> str:
    """Formats a line such as ``a  epoch 3  digits  top1 93.15 %  better than epoch 2 (+0.74 points, p = 0.0300)``."""
    from testbed.stored_results.checkpoint_steps import label_of

    spec, point = row.curve.spec, row.point
    value = f"{spec.name} {metric_value(point.value, spec.unit)}"
    if row.not_finite:
        value += f" (NaN or infinite outputs for {row.not_finite:,} of {count(point.n or row.not_finite, 'sample')})"
    return "  ".join([label_of(row.curve.run), point.checkpoint.label, row.curve.eval_setting, value, _verdict(row)])


def _verdict(row: CheckpointComparison) -> str:
    from testbed.extensions.watching.pairing import FIRST, TIED

    best = ", new best" if row.new_best else ""
    if row.verdict == FIRST:
        return f"the first{best}"
    if row.best is None or row.comparison is None or row.score is None or row.p is None:
        return f"not compared: {row.why}{best}"
    shown = difference(row.comparison.difference, shown_unit(row.score, row.comparison.binary))
    word = "tied with" if row.verdict == TIED else f"{row.verdict} than"
    p = f"p = {p_value(row.p)}".replace("= <", "< ")
    return f"{word} {row.best.checkpoint.label} ({shown}, {p}){best}"
