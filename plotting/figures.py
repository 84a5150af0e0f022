"""Draws whatever a store holds: shifts, severities, rankings, reliability, confusions, cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.completion import stored
from testbed.console.options import ManyWords, ManyWordsCommand, run_command, store_options
from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.plotting.images import IMAGE_SUFFIXES, images_problem, write_images
from testbed.plotting.own import confusion, cost, places, reliability, severity, shifts
from testbed.plotting.own.source import Drawn, Found, Own, Passed, skipped
from testbed.plotting.picture import write

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

KINDS: dict[str, Callable[[Own], Found]] = {
    "shifts": shifts.figures,
    "severity": severity.figures,
    "ranking": places.figures,
    "reliability": reliability.figures,
    "confusion": confusion.figures,
    "cost": cost.figures,
}


def figures(
    db_url: str | None = None,
    kinds: Sequence[str] = (),
    models: Sequence[str] = (),
    eval_settings: Sequence[str] = (),
    metric: str | None = None,
    clean: str | None = None,
) -> tuple[dict[str, Figure], list[Passed]]:
    """The figures of what a store holds.

    Args:
        db_url: The store; default as everywhere.
        kinds: Of `KINDS`; none means all.
        models: Names or patterns; none means all.
        eval_settings: Names or patterns; none means all.
        metric: What is drawn; None: the main metric of each setting. It must be a rate.
        clean: The setting that the others are compared with; None: for perturbed settings the unperturbed one of the
            same samples, for others ``val`` if it is stored.

    Returns:
        Name → plotly's figure; and what was not drawn, with the reasons.

    Raises:
        TestbedError: If there is no store, or it has no such results.
    """
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        drawn, passed = collect(Own(store, db_url, models, eval_settings, metric, clean), kinds)
        return {each.name: each.draw() for each in drawn}, passed


def collect(own: Own, kinds: Sequence[str] = ()) -> tuple[list[Drawn], list[Passed]]:
    """The figures, not drawn yet, and what was skipped.

    Raises:
        TestbedError: If the store has no results to draw.
    """
    if own.frame.empty:
        raise TestbedError("the store has no results to draw; run eval.py, or db.py --import-results FILE")
    if own.clean is not None and own.clean not in own.metrics:
        raise TestbedError(f"--clean {own.clean}: the store has no results on it; db.py --list-eval-settings-db")
    drawn: list[Drawn] = []
    passed: list[Passed] = []
    for kind in kinds or KINDS:
        for each in KINDS[kind](own):
            if isinstance(each, Drawn):
                same = sum(other.name == each.name for other in drawn)  # of names that differ only in odd characters
                drawn.append(each._replace(name=f"{each.name}--{same + 1}") if same else each)
            else:
                passed.append(each)
    return drawn, passed


@click.command(cls=ManyWordsCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), default=Path("figures"), show_default=True, help="The folder.")
@click.option("--kinds", cls=ManyWords, type=click.Choice(list(KINDS)), help="What to draw.  [default: everything]")
@click.option(
    "--models",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=stored("model"),
    help="Models, names or patterns.  [default: all]",
)
@click.option(
    "--eval-settings",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=stored("eval setting"),
    help="Settings, names or patterns.  [default: all]",
)
@click.option("--metric", metavar="NAME", help="The metric, a rate.  [default: the main one of each setting]")
@click.option(
    "--clean",
    metavar="SETTING",
    help="What shifts are compared with.  [default: the unperturbed setting of the same samples, else val]",
)
@click.option(
    "--formats",
    cls=ManyWords,
    type=click.Choice([suffix[1:] for suffix in IMAGE_SUFFIXES]),
    help="Images to draw besides the HTML; they need the extra figures and a browser.",
)
@store_options
def command(
    out: Path,
    kinds: Sequence[str],
    models: Sequence[str],
    eval_settings: Sequence[str],
    metric: str | None,
    clean: str | None,
    formats: Sequence[str],
    db_url: str | None,
    plugins: Sequence[str],
) -> int:
    """Draw what the store holds, as HTML with the numbers beside it as JSON.

    Kinds: clean accuracy against each shift; accuracy by severity; rankings with ties; reliability diagrams; confusion
    matrices; accuracy against the number of parameters. One line says what was skipped.
    """
    from testbed.db.store import Store
    from testbed.registry import registry

    problem = images_problem() if formats else None
    if problem:
        raise TestbedError(problem)
    registry.load(plugins)
    with Store.open(db_url) as store:
        drawn, passed = collect(Own(store, db_url, models, eval_settings, metric, clean), kinds)
        made = [(each.draw(), out / f"{each.name}.html") for each in drawn]
    for (figure, path), each in zip(made, drawn, strict=True):
        write(figure, path, plotlyjs="directory")
        path.with_suffix(".json").write_text(json.dumps(each.numbers, indent=1, ensure_ascii=False), encoding="utf-8")
    images = [(figure, path.with_suffix(f".{kind}")) for figure, path in made for kind in formats]
    if images:
        write_images([figure for figure, _ in images], [path for _, path in images])
    if passed:
        click.echo(skipped(passed), err=True)
    click.echo(f"{count(len(drawn), 'figure')} in {out}/")
    return 0 if drawn else 1


def main() -> None:
    """The program."""
    run_command(command)


if __name__ == "__main__":
    main()
