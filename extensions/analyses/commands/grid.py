"""``testbed grid``: models × settings as text, for a terminal, a README or a paper."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import better_option, metric_option, models_option, note
from testbed.console.columns import prose
from testbed.console.completion import stored
from testbed.console.options import Argument, store_command
from testbed.console.output import grid, print_json
from testbed.console.run_remarks import SHOWN
from testbed.entities import ELSEWHERE, FRACTION, NOT_FINITE, OVERALL, Better
from testbed.errors import StoreError
from testbed.extensions.analyses.commands.latex import TableCell, format_option, tabular
from testbed.formatting import bare_value
from testbed.metric_specs import HIGHER, LOWER, MetricSpec

if TYPE_CHECKING:
    import pandas as pd

    from testbed.db.store import Store
    from testbed.plotting.frame import Grid

FORMS = ("table", "markdown", "latex")
MISSING = "–"
MARKS = {"differ_from_published": "differs from the published value", "published": "published, not measured here"}
BEFORE_MARK = {"table": "", "markdown": "\n\\"}


@store_command
@click.argument(
    "patterns", nargs=-1, required=True, metavar="PATTERN...", cls=Argument, shell_complete=stored("eval setting")
)
@models_option
@metric_option
@format_option(*FORMS)
@better_option
def command(
    patterns: Sequence[str],
    models: Sequence[str],
    metric: str | None,
    form: str,
    better: Better | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Print a table of models × settings, as text, Markdown or LaTeX.

    Patterns name settings; averages such as avg_corruptions are also columns, and so is the difference of two columns,
    such as 'val - imagenet-w'.
    """
    from testbed.db.parts.names import matching_names
    from testbed.plotting.frame import load_grid, with_differences

    loaded = with_differences(load_grid(db_url, metric, sizes=form == "latex"), patterns)
    values = loaded.values
    columns = _columns(loaded, patterns)
    wanted = matching_names("model", models, values.index)
    chosen = values.loc[[name for name in values.index if name in wanted], columns]
    chosen = in_order(chosen.dropna(how="all"), loaded.specs[columns[0]], better)
    others = {name: loaded.others[name] for name in columns if name in loaded.others}
    named = {"metrics": others} if others else {}
    marked = _marked(db_url, list(chosen.index), {name: others.get(name, loaded.metric) for name in columns})
    if as_json:
        print_json(
            [
                {"model": model, **{name: value for name, value in row.items() if not math.isnan(value)}, **named}
                | {key: found for key, (_, cells) in marked.items() if (found := _of(model, columns, cells))}
                for model, row in chosen.to_dict("index").items()
            ]
        )
        return 0
    _note_not_finite(db_url, set(chosen.index))
    units = [loaded.specs[name].unit for name in columns]
    cells = [
        [
            bare_value(value, unit) + "".join(mark for mark, cells in marked.values() if (model, name) in cells)
            for name, value, unit in zip(columns, row, units, strict=True)
        ]
        for model, row in zip(chosen.index, chosen.to_numpy(), strict=True)
    ]
    usual = units[0] if len(set(units)) == 1 else FRACTION
    corner = ", ".join(filter(None, (f"{loaded.metric}{' (or the metric named)' if others else ''}", _shown(usual))))
    heads = []
    for name, unit in zip(columns, units, strict=True):
        about = ([others[name]] if name in others else []) + ([_shown(unit)] if unit not in ("", usual) else [])
        heads.append(f"{name} ({', '.join(about)})" if about else name)
    if form == "latex":
        rows = _results(db_url, loaded, chosen, marked)
        click.echo(tabular("l" + "S" * len(heads), [corner, *heads], rows, _caption(db_url, loaded, columns, marked)))
    else:
        click.echo(as_text(list(chosen.index), heads, cells, form, corner))
    for key, (mark, those) in marked.items():
        if those and form != "latex":  # whose caption has them
            line = f"{BEFORE_MARK[form]}{mark} {MARKS[key]}: testbed published show MODEL SETTING"
            click.echo(prose(line) if form == "table" else line)
    return 0


def _of(model: str, columns: Sequence[str], cells: Set[tuple[str, str]]) -> list[str]:
    return [name for name in columns if (model, name) in cells]


def _marked(
    db_url: str | None, models: Sequence[str], metrics: Mapping[str, str]
) -> dict[str, tuple[str, set[tuple[str, str]]]]:
    """Reason for marking → the mark, and the cells: measured values with published ones that differ, published ones.

    Args:
        db_url: The store.
        models: The models.
        metrics: Setting → the metric that is shown.
    """
    from testbed.claims.agreement import PublishedValues, differing
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        known = store.names.tasks()
        stored = [name for name in metrics if name in known]  # without averages
        results = store.results.find(models, stored, set(metrics.values()), [OVERALL]) if stored else []
        shown = [result for result in results if result.metric == metrics[result.eval_setting]]
        own = [result for result in shown if result.origin not in ELSEWHERE]
        published = PublishedValues(store, {result.model for result in own}, {result.eval_setting for result in own})
        theirs = {(result.model, result.eval_setting) for result in shown if result.origin == "published"}
        return {
            "differ_from_published": ("*", {comparison.cell for comparison in differing(published.compare(own))}),
            "published": ("†", theirs),
        }


def _caption(
    db_url: str | None, loaded: Grid, columns: Sequence[str], marked: Mapping[str, tuple[str, Set[tuple[str, str]]]]
) -> list[str]:
    """Sentences on the metrics, the numbers of samples, and the sources of published values."""
    from testbed.db.store import Store

    metrics = dict.fromkeys(loaded.others.get(name, loaded.metric) for name in columns)
    told = [f"Results by model and eval setting: {', '.join(metrics)}"]
    sizes = {name: int(of.max()) for name in columns if len(of := loaded.sizes[name].dropna())}
    if len(set(sizes.values())) == 1 and len(sizes) == len(columns):
        told.append(f"n = {next(iter(sizes.values())):,} samples")
    elif sizes:
        told.append(f"n: {', '.join(f'{name} {size:,}' for name, size in sizes.items())}")
    _, published = marked["published"]
    with Store.open(db_url) as store:
        found = store.claims.sources_of_results()
    sources = {source for (model, name, _), source in found.items() if (model, name) in published}
    return [*told, *([f"Sources of published values: {', '.join(sorted(sources))}"] if sources else [])]


def _results(
    db_url: str | None, loaded: Grid, chosen: pd.DataFrame, marked: Mapping[str, tuple[str, Set[tuple[str, str]]]]
) -> list[list[str | TableCell]]:
    """The results of each model, with intervals, the best ones, and ties with them."""
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        stored = store.names.tasks()
        columns = {
            name: _cells(store, loaded, name, dict(chosen[name].dropna()), name in stored) for name in chosen.columns
        }
    published, differing = (marked[key][1] for key in ("published", "differ_from_published"))
    missing = TableCell(math.nan)
    return [
        [
            model,
            *(
                replace(
                    columns[name].get(model, missing),
                    published=(model, name) in published,
                    differs=(model, name) in differing,
                )
                for name in chosen.columns
            ),
        ]
        for model in chosen.index
    ]


def _cells(store: Store, loaded: Grid, name: str, values: dict[str, float], is_setting: bool) -> dict[str, TableCell]:
    """The results of a column by model. Averages have no interval, since their samples are not independent."""
    from testbed.extensions.analyses.ties import tied_with_best
    from testbed.metrics.inference.intervals import interval

    spec, metric = loaded.specs[name], loaded.others.get(name, loaded.metric)
    found = store.results.find(list(values), [name], [metric], [OVERALL]) if is_setting else []
    errors = {result.model: result.stderr for result in found if result.stderr is not None}
    clusters = {result.model: result.clusters for result in found}
    sizes = {model: int(n) for model, n in loaded.sizes[name].dropna().items() if model in values and is_setting}
    best, tied = tied_with_best(store, name, spec, values, errors, sizes)
    cells = {}
    for model, value in values.items():
        ends = interval(spec, value, errors.get(model), sizes.get(model), clusters.get(model))
        low, high = ends or (math.nan, math.nan)
        marks = {"best": model in best, "tied": model in tied}
        cells[model] = TableCell(value, low, high, spec.unit, **marks)
    return cells


def in_order(values: pd.DataFrame, spec: MetricSpec, better: Better | None = None) -> pd.DataFrame:
    """Models × settings, the best model in the first column first; sorted by name if it is unknown which is best.

    Args:
        values: Models × settings.
        spec: Declaration of the first column's metric.
        better: The user's choice, for a metric that does not declare it.

    Raises:
        StoreError: If the metric declares the other direction.
    """
    from testbed.stored_results.main_scores import larger_is_better

    if better or spec.better in (HIGHER, LOWER):
        return values.sort_values(values.columns[0], ascending=not larger_is_better(spec, better), kind="stable")
    note(f"{spec.name}: direction unknown, so models are sorted by name; --better sorts by value")
    return values.sort_index(kind="stable")


def _shown(unit: str) -> str:
    return "%" if unit == FRACTION else unit


def _note_not_finite(db_url: str | None, models: Set[str]) -> None:
    """Prints a note about models with outputs that are NaN or infinite."""
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        rows = store.results.rows(["model", "eval_setting"], metrics=[NOT_FINITE])
    settings: dict[str, set[str]] = {}
    for model, setting in rows:
        if model in models:
            settings.setdefault(model, set()).add(setting)
    for model, on in sorted(settings.items())[:SHOWN]:
        which = next(iter(on)) if len(on) == 1 else f"{len(on)} settings"
        note(f"{model} has outputs that are NaN or infinite on {which}; testbed show lists how many")


def _columns(loaded: Grid, patterns: Sequence[str]) -> list[str]:
    """Selects the columns that patterns match, in the patterns' order, without duplicates.

    Raises:
        StoreError: If a pattern matches none.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        hits = loaded.matching(pattern)
        if not hits:
            known = len(loaded.values.columns)
            if not known:
                raise StoreError(f"the store has no results of the metric {loaded.metric!r}")
            raise StoreError(f"no column of the stored results matches {pattern!r}; there are {known}")
        found.update(dict.fromkeys(hits))
    return list(found)


def as_text(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], form: str, corner: str) -> str:
    """Formats a table as text.

    Args:
        rows: The models.
        columns: The settings.
        cells: Texts [rows, columns].
        form: ``table`` or ``markdown``.
        corner: Description of the numbers.
    """
    if form == "markdown":
        lines = [[corner, *columns], ["---", *["---:"] * len(columns)]]
        lines += [[name, *row] for name, row in zip(rows, cells, strict=True)]
        return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in lines)
    placed = {
        (name, column): cell
        for name, row in zip(rows, cells, strict=True)
        for column, cell in zip(columns, row, strict=True)
    }
    return grid(rows, columns, placed, corner, shutil.get_terminal_size((120, 24)).columns)
