"""Figures as scripts: data step, drawing step, shared options, and output files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.console.options import Command, label_option, run_command
from testbed.console.output import print_json
from testbed.db.parts.names import matching_names
from testbed.entities import FRACTION
from testbed.errors import TestbedError
from testbed.metric_specs import LOWER, NEITHER
from testbed.plotting.frame import Grid, load_grid
from testbed.plotting.images import IMAGE_SUFFIXES, write_images
from testbed.plotting.page import drawn, require_images, width_option
from testbed.plotting.stats import TRANSFORMS

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SUFFIXES = (".html", *IMAGE_SUFFIXES)
AXES = {
    "x": "The setting on the x axis.",
    "y": "The setting on the y axis.",
    "transform": "The scale of both axes.",
}


@dataclass(frozen=True)
class Choice:
    """The options of the command line for a figure; None leaves the default.

    Attributes:
        x: A column of the grid.
        y: A column of the grid.
        scale: A transform.
        labels: Names or patterns of models that are always labelled.
        further: The values of the figure's additional options.
    """

    x: str | None = None
    y: str | None = None
    scale: str | None = None
    labels: Sequence[str] = ()
    further: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        name: Stem of its file name.
        data: Computes the figure's numbers from the stored results and the choice.
        draw: Draws the numbers, without further computation.
        numbers: Converts the numbers to plain values, for ``--json``.
        options: Decorators for the figure's own click options; their values are in a choice's ``further``.
        text: Formats the numbers as a table for the terminal, for ``--table``; None if unsupported.
        axes: Help texts of the options ``x``, ``y`` and ``transform`` that the figure has.
        named: Whether points are labelled, so that ``--label`` applies.
        accuracies: Whether it requires accuracies, that is, fractions where higher is better.
    """

    name: str
    data: Callable[[Grid, Choice], Any]
    draw: Callable[[Any], Figure]
    numbers: Callable[[Any], Any]
    options: Sequence[Callable[..., Any]] = ()
    text: Callable[[Any], str] | None = None
    accuracies: bool = True
    named: bool = False
    axes: Mapping[str, str] = field(default_factory=AXES.copy)

    def main(self) -> None:
        """Runs the program."""
        run_command(picture_command(self))


def picture_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every figure."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the numbers behind the figure."),
        click.option("--metric", default="top1", show_default=True, help="The metric to draw."),
        click.option("--db-url", metavar="URL", help="The results store.  [default: as for testbed]"),
    ):
        function = option(function)
    return function


def picture_command(picture: Picture) -> click.Command:
    """Makes the command of a figure."""

    @picture_options
    @width_option
    @click.option(
        "--out",
        type=click.Path(path_type=Path),
        help=f"The output file, ending in {', '.join(SUFFIXES)}.  [default: {picture.name}.html]",
    )
    def command(
        db_url: str | None,
        metric: str,
        as_json: bool,
        out: Path | None,
        width: float | None,
        x: str | None = None,
        y: str | None = None,
        scale: str | None = None,
        labels: Sequence[str] = (),
        as_table: bool = False,
        **further: Any,
    ) -> int:
        require_images(width, out is not None and out.suffix in IMAGE_SUFFIXES)
        data = compute(picture, load_grid(db_url, metric), Choice(x, y, scale, labels, further))
        if as_json:
            print_json(picture.numbers(data))
        elif as_table and picture.text is not None:
            click.echo(picture.text(data))
        if out is not None or not (as_json or as_table):
            path = out or Path(f"{picture.name}.html")
            write(drawn(partial(picture.draw, data), width), path)
            click.echo(f"{picture.name}: {path}", err=as_json or as_table)
        return 0

    own = list(picture.options)
    if picture.text is not None:
        own.append(click.option("--table", "as_table", is_flag=True, help="Print the numbers as a table."))
    if picture.named:
        own.append(label_option)
    if "transform" in picture.axes:
        own.insert(
            0, click.option("--transform", "scale", type=click.Choice(TRANSFORMS), help=picture.axes["transform"])
        )
    own[:0] = [
        click.option(f"--{axis}", metavar="SETTING", help=picture.axes[axis]) for axis in "xy" if axis in picture.axes
    ]
    for option in reversed(own):
        command = option(command)
    command.__doc__ = (picture.data.__doc__ or "").partition("\n")[0] or None
    return click.command(picture.name, cls=Command)(command)


def compute(picture: Picture, grid: Grid, choice: Choice) -> Any:
    """Computes the numbers of a figure; errors are reported in one line."""
    for spec in grid.specs.values() if picture.accuracies else ():
        if spec.unit != FRACTION or spec.better in (LOWER, NEITHER):
            raise TestbedError(
                f"{picture.name} draws accuracies (fractions, higher is better); {grid.metric} has the unit"
                f" {spec.unit or 'none'!r}, and {spec.better or 'unknown'} as the better direction; choose another"
                " --metric"
            )
    if choice.labels:
        matching_names("model", choice.labels, grid.values.index)  # raises for a pattern without a match
    try:
        return picture.data(grid, choice)
    except ValueError as error:
        raise TestbedError(f"{picture.name} cannot be drawn: {error}") from error


def write(figure: Figure, path: Path, plotlyjs: bool | str = True) -> None:
    """Writes a figure to a file.

    Args:
        figure: The figure.
        path: Its suffix selects the format: .html, or, with kaleido and a browser, .pdf, .png, .svg.
        plotlyjs: For HTML: True puts the library into the file (4.7 MB), ``"directory"`` beside it.

    Raises:
        TestbedError: If the suffix is unknown, the file cannot be written, or images cannot be drawn.
    """
    if path.suffix not in SUFFIXES:
        raise TestbedError(f"{path}: unknown suffix {path.suffix!r}; expected one of {', '.join(SUFFIXES)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".html":
            figure.write_html(path, include_plotlyjs=plotlyjs)
            return
    except OSError as error:
        raise TestbedError(f"{path} cannot be written: {error.strerror or error}") from error
    write_images([figure], [path])
