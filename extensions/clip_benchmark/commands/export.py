"""``testbed export clip-benchmark``: results in CLIP benchmark's formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import every_evaluation_option, note_parts
from testbed.console.options import store_command
from testbed.console.output import count
from testbed.entities import OVERALL
from testbed.registry.references import is_part

if TYPE_CHECKING:
    from testbed.entities import Result


@store_command
@click.argument("path", type=click.Path(path_type=Path), metavar="DIR|FILE.csv")
@every_evaluation_option
@click.option("--dump-classnames", is_flag=True, help="Also write class names to JSON files.")
@click.option("--dump-templates", is_flag=True, help="Also write prompt templates to JSON files.")
def command(path: Path, everything: bool, dump_classnames: bool, dump_templates: bool, db_url: str | None) -> int:
    """Write results as CLIP benchmark's JSON files or CSV table."""
    from testbed.db.store import Store
    from testbed.extensions.clip_benchmark import clip_benchmark_files
    from testbed.stored_results import labels

    dumped = [key for key, asked in (("classnames", dump_classnames), ("templates", dump_templates)) if asked]
    as_csv = path.suffix.lower() == ".csv"
    if as_csv and dumped:
        raise click.UsageError("--dump-classnames and --dump-templates write to JSON files: give a folder")
    partial: set[tuple[str, str]] = set()

    def noted(results: Iterable[Result]) -> Iterator[Result]:
        for result in results:
            if is_part(result.eval_setting):
                continue
            if result.sample_limit or result.random_weights:
                partial.add((result.eval_setting, result.model))
            yield result

    with Store.open(db_url) as store:
        note_parts(store)
        others = labels.unreported(store) if everything else {}
        more = store.results.of(others)
        more.sort(key=lambda each: (each.eval_setting, each.model, others[each.evaluation_id]))
        results: Iterable[Result] = chain(store.results.stream(slices=[OVERALL]), more)
        texts = {}
        if dumped:
            results = list(results)
            texts = clip_benchmark_files.dumped_texts(store, results, dumped)
        records = clip_benchmark_files.records_by_cell(noted(results), others, texts)
        if as_csv:
            rows = clip_benchmark_files.write_csv([record for _, record in sorted(records, key=itemgetter(0))], path)
            click.echo(f"{count(rows, 'row')} written to {path}")
        else:
            files = clip_benchmark_files.write_json((record for _, record in records), path)
            click.echo(f"{count(files, 'JSON file')} written to {path}")
    if partial:
        note = f"note: {count(len(partial), 'stored cell')} used part of the samples or random weights"
        click.echo(f"{note}, which CLIP benchmark's format cannot express", err=True)
    return 0
