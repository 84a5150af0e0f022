"""``testbed export datacomp``: results as DataComp's files, and the means of its leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import folder_argument, models_option, note_parts
from testbed.console.options import store_command
from testbed.console.output import count, footnote, table
from testbed.formatting import percent

_SHOWN = 3  # missing data sets that are named


@store_command
@folder_argument
@models_option
def command(folder: Path, models: Sequence[str], db_url: str | None) -> int:
    """Write results as DataComp's eval_results.jsonl, and print its means.

    DIR gets a file for each model. The means are those of DataComp's leaderboard, of the main metrics of 38 data sets;
    a mean is shown only if none of its data sets is missing.

    \b
    Example:
      testbed run ViT-B-32,openai --on datacomp38
      testbed export datacomp results --models ViT-B-32,openai
    """
    from testbed.db.store import Store
    from testbed.eval_settings.benchmark_families.datacomp import BY_SETTING, COUNTED, GROUPS, means
    from testbed.extensions.datacomp.results import cells_of, main_metrics, records_of, write
    from testbed.stored_results.side_by_side import matching_models

    with Store.open(db_url) as store:
        names = matching_models(store, models) if models else None
        cells = cells_of(store.results.stream(names, list(BY_SETTING)))
        note_parts(store)
    rows, missing, written, partly = [], {}, 0, 0
    for model, of_model in sorted(cells.items()):
        records = records_of(model, of_model)
        if not records:
            continue
        write(records, folder, model)
        written += 1
        values = main_metrics(records)
        missing[model] = [each.title for each in COUNTED if each.setting not in values]
        rows.append([model, *(percent(value) for value in means(values).values()), f"{len(values)} of {len(COUNTED)}"])
        partly += sum(
            any(result.sample_limit or result.random_weights for result in cell.values()) for cell in of_model.values()
        )
    if rows:
        click.echo(table(["model", *GROUPS, "data sets"], rows, right=range(1, len(GROUPS) + 2)))
        footnote(_missing(missing))
    click.echo(f"{count(written, 'file')} written to {folder}")
    if partly:
        click.echo(f"note: {count(partly, 'stored cell')} used part of the samples or random weights", err=True)
    return 0


def _missing(missing: Mapping[str, Sequence[str]]) -> str:
    lines = []
    for model, titles in missing.items():
        if titles:
            more = f" and {len(titles) - _SHOWN} more" if len(titles) > _SHOWN else ""
            lines.append(f"{model} has no {', '.join(titles[:_SHOWN])}{more}")
    return "; ".join(["means of main metrics, as on DataComp's leaderboard", *lines])
