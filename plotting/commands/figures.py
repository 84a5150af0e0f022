"""``testbed figures``: figures of stored results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import folder_option, models_option, note_parts, settings_option
from testbed.console.options import ManyWords, label_option, plugin_option, store_command, use_own_names
from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.plotting.images import IMAGE_SUFFIXES
from testbed.plotting.page import width_option

KINDS = ("shifts", "severity", "ranking", "reliability", "coverage", "confusion", "cost", "compute", "training")


@store_command
@folder_option("figures")
@click.option("--kinds", cls=ManyWords, type=click.Choice(KINDS), help="The kinds to draw.  [default: everything]")
@models_option
@settings_option
@click.option("--metric", metavar="NAME", help="The metric, a rate.  [default: the main one of each setting]")
@click.option(
    "--clean",
    metavar="SETTING",
    help="The setting that shifts are compared with.  [default: the unperturbed setting of the same samples, else val]",
)
@click.option(
    "--compute",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="A CSV table of the models' training compute: model, compute, and optionally group.",
)
@label_option
@click.option(
    "--formats",
    cls=ManyWords,
    type=click.Choice([suffix[1:] for suffix in IMAGE_SUFFIXES]),
    help="Image formats to write in addition to HTML; they require the extra figures and a browser.",
)
@width_option
@plugin_option
def command(
    out: Path,
    kinds: Sequence[str],
    models: Sequence[str],
    settings: Sequence[str],
    metric: str | None,
    clean: str | None,
    compute: Path | None,
    labels: Sequence[str],
    formats: Sequence[str],
    width: float | None,
    plugins: Sequence[str],
    db_url: str | None,
) -> int:
    """Draw figures of stored results, as HTML and JSON.

    Kinds: clean accuracy against each shift; accuracy by severity; rankings with ties; reliability diagrams; risk by
    coverage; confusion matrices; accuracy against the number of parameters; power laws of the error by training
    compute; curves of watched training runs. Prints a line about what was skipped.
    """
    if "compute" in kinds and compute is None:
        raise click.UsageError("--kinds compute needs --compute FILE, a table with the columns model and compute")
    from testbed.db.store import Store
    from testbed.plotting.figures import collect
    from testbed.plotting.images import images_problem, write_images
    from testbed.plotting.own.source import Own, skipped
    from testbed.plotting.page import drawn, require_images
    from testbed.plotting.picture import write
    from testbed.registry import registry

    require_images(width, formats)
    problem = images_problem() if formats else None
    if problem:
        raise TestbedError(problem)
    if plugins:
        registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url) as store:
        if not settings:
            note_parts(store)
        found, passed = collect(Own(store, db_url, models, settings, metric, clean, labels, compute), kinds)
        made = [(drawing, drawing.draw(), out / f"{drawing.name}.html") for drawing in found]
        printed = [(drawn(each.draw, width) if width and formats else figure, path) for each, figure, path in made]
    for each, figure, path in made:
        write(figure, path, plotlyjs="directory")
        path.with_suffix(".json").write_text(json.dumps(each.numbers, indent=1, ensure_ascii=False), encoding="utf-8")
    images = [(figure, path.with_suffix(f".{kind}")) for figure, path in printed for kind in formats]
    if images:
        write_images([figure for figure, _ in images], [path for _, path in images])
    if passed:
        click.echo(skipped(passed), err=True)
    click.echo(f"{count(len(found), 'figure')} in {out}/")
    return 0 if found else 1
