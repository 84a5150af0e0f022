"""Draws the figures of the paper from the store: to HTML, and to other formats if a browser can draw them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.options import Command, ManyWords, label_option, run_command
from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.plotting import (
    effective_robustness,
    paper_appendix_correlations,
    paper_appendix_grid,
    paper_appendix_models,
    paper_appendix_resnet50,
    paper_hypothetical,
    paper_shifts,
)
from testbed.plotting.frame import Grid, load_grid
from testbed.plotting.images import IMAGE_SUFFIXES, images_problem, write_images
from testbed.plotting.own.source import Omission, skipped
from testbed.plotting.page import drawn, width_option
from testbed.plotting.picture import Choice, Picture, compute, write
from testbed.plotting.stats import TRANSFORMS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


SCRIPTS = (
    paper_appendix_correlations,
    paper_appendix_grid,
    paper_appendix_models,
    paper_appendix_resnet50,
    paper_hypothetical,
    effective_robustness,
)


def pictures() -> list[Picture]:
    """Returns every figure: the shifts, and those with scripts of their own."""
    return [*paper_shifts.PICTURES.values(), *(module.PICTURE for module in SCRIPTS)]


@click.command(cls=Command)
@click.option("--db-url", metavar="URL", help="The results store.  [default: as for testbed]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("figs"), show_default=True, help="The folder.")
@click.option(
    "--formats",
    cls=ManyWords,
    type=click.Choice([suffix[1:] for suffix in IMAGE_SUFFIXES]),
    help="Image formats to write in addition to HTML.  [default: pdf, if a browser can draw it]",
)
@click.option("--transform", "scale", type=click.Choice(TRANSFORMS), help="The scale of all axes.")
@label_option
@width_option
@click.option("--metric", default="top1", show_default=True, help="The metric to draw.")
def command(
    db_url: str | None,
    out: Path,
    formats: tuple[str, ...],
    scale: str | None,
    labels: tuple[str, ...],
    width: float | None,
    metric: str,
) -> int:
    """Draw the figures of the paper from stored results.

    Prints a line about figures that were skipped because their settings are not stored.
    """
    problem = images_problem()
    if problem and formats:
        raise TestbedError(problem)
    made = draw_all(load_grid(db_url, metric), out, scale, labels)
    if not made:
        raise TestbedError("none of the figures' settings are stored; testbed run or testbed import adds some")
    if problem:
        click.echo(f"note: no PDF: {problem}", err=True)
    else:
        kinds = formats or ("pdf",)
        printed, narrow = [], []
        for draw, path in made:
            try:
                printed.append((drawn(draw, width), path))
            except TestbedError as error:
                narrow.append(Omission(f"{path.stem} as an image", str(error)))
        if narrow:
            click.echo(skipped(narrow), err=True)
        images = [(figure, path.with_suffix(f".{kind}")) for figure, path in printed for kind in kinds]
        write_images([figure for figure, _ in images], [path for _, path in images])
    click.echo(f"{count(len(made), 'figure')} in {out}/")
    return 0


def draw_all(
    grid: Grid, out: Path, scale: str | None = None, labels: Sequence[str] = ()
) -> list[tuple[Callable[[], Figure], Path]]:
    """Writes each figure as HTML, except those with too few results.

    Returns:
        For each, what draws it again, in another size, and its path.
    """
    made: list[tuple[Callable[[], Figure], Path]] = []
    passed = []
    for picture in pictures():
        try:
            draw = partial(picture.draw, compute(picture, grid, Choice(scale=scale, labels=labels)))
            figure = draw()
        except TestbedError as error:
            passed.append(Omission(picture.name, str(error).partition(" in the stored results")[0]))
            continue
        path = out / f"{picture.name}.html"
        write(figure, path, plotlyjs="directory")
        made.append((draw, path))
    if passed:
        click.echo(skipped(passed), err=True)
    return made


if __name__ == "__main__":
    run_command(command)
