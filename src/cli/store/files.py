"""The actions of ``db.py`` that write results and outputs to files, or read published results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from testbed.console.output import count, print_json
from testbed.entities import OVERALL
from testbed.errors import TestbedError
from testbed.redaction import redacted_word

if TYPE_CHECKING:
    from testbed.entities import Result

LOGIT_FORMS = ("npz", "csv", "parquet")


def save_logits(given: dict[str, Any]) -> int:
    """Writes the logits of all models on a setting."""
    from testbed.db.store import Store
    from testbed.exchange import export

    setting, folder = given["save_logits"]
    form = given["form"] or "npz"
    if form not in LOGIT_FORMS:
        raise click.UsageError(f"--save-logits writes {', '.join(LOGIT_FORMS)}, not {form}")
    with Store.open(given["db_url"]) as store:
        try:
            entries = export.save_logits(
                store, setting, Path(folder), list(given["models"]) or None, cast(Any, form), given["everything"]
            )
        except OSError as error:
            raise TestbedError(f"the logits cannot be written to {folder}: {error.strerror or error}") from error
    if given["as_json"]:
        print_json(entries)
    else:
        for entry in entries:
            label = f" ({entry['label']})" if "label" in entry else ""
            click.echo(f"{entry['model']}{label}: {Path(folder) / entry['file']}")
        click.echo(f"{count(len(entries), 'file')} and {Path(folder) / export.MANIFEST}", err=True)
    return 0


def save_texts(given: dict[str, Any]) -> int:
    """Writes the texts of all models on a setting."""
    from testbed.db.store import Store
    from testbed.exchange import export_texts

    setting, folder = given["save_texts"]
    with Store.open(given["db_url"]) as store:
        try:
            files = export_texts.save_texts(store, setting, Path(folder), list(given["models"]) or None)
        except OSError as error:
            raise TestbedError(f"the texts cannot be written to {folder}: {error.strerror or error}") from error
    if given["as_json"]:
        print_json([str(file) for file in files])
    else:
        for file in files:
            click.echo(file)
    return 0


def import_table(given: dict[str, Any]) -> int:
    """Imports a published table."""
    from testbed.compat.importing import import_results
    from testbed.db.store import Store
    from testbed.registry import registry

    if "://" not in given["import_results"] and not Path(given["import_results"]).exists():
        raise TestbedError(f"there is no file {redacted_word(given['import_results'])}")
    registry.load(given["plugins"])
    with Store.create(given["db_url"]) as store:
        known = {*registry.eval_settings.names(), *(each.name for each in store.list_names("eval setting"))}
        settings = None if given["override"] else known
        report = import_results(store, given["import_results"], given["model_types"], settings)
    if given["as_json"]:
        print_json(vars(report))
        return 0
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    source = redacted_word(given["import_results"])
    values = f"{report.values:,} values of {count(report.cells, 'cell')}"
    click.echo(f"{source} ({report.form}): {values}, {report.new:,} of them new")
    return 0


def export_csv(given: dict[str, Any]) -> int:
    """Writes ImageNet-testbed's table."""
    from testbed.compat import importing
    from testbed.db.store import Store

    with Store.open(given["db_url"]) as store:
        results = store.results(metrics=["top1", *importing.METRIC_SUFFIXES], slices=["overall"])
    rows, columns = importing.export_csv(results, given["export_csv"])
    click.echo(f"{count(rows, 'model')} × {count(columns, 'column')} written to {given['export_csv']}")
    return 0


def export_vlmevalkit(given: dict[str, Any]) -> int:
    """Writes answers and scores in VLMEvalKit's format."""
    from testbed.compat.vlmevalkit import vlmevalkit_files
    from testbed.db.store import Store

    folder: Path = given["export_vlmevalkit"]
    with Store.open(given["db_url"]) as store:
        files = vlmevalkit_files.export_vlmevalkit(
            store, folder, given["models"] or None, given["eval_settings"] or None
        )
    if given["as_json"]:
        print_json([str(file) for file in files])
    else:
        click.echo(f"{count(len(files), 'file')} written to {folder}")
    return 0


def export_verdicts(given: dict[str, Any]) -> int:
    """Writes what judges said, as a file of labels."""
    from testbed.db.store import Store
    from testbed.exchange import verdicts
    from testbed.registry import registry

    path: Path = given["export_verdicts"]
    registry.load(given["plugins"])
    with Store.open(given["db_url"]) as store:
        rows = verdicts.export_verdicts(store, registry, path, given["models"] or None, given["eval_settings"] or None)
    click.echo(f"{count(rows, 'verdict')} written to {path}")
    return 0


def suggest_labels(given: dict[str, Any]) -> int:
    """Writes answers for people to label."""
    from testbed.db.store import Store
    from testbed.exchange import verdicts

    number, path = given["suggest_labels"]
    with Store.open(given["db_url"]) as store:
        chosen = (given["models"] or None, given["eval_settings"] or None)
        rows = verdicts.suggest_labels(store, Path(path), number, *chosen, seed=0)
    click.echo(f"{count(rows, 'answer')} written to {path}; fill in the column label: 1 is right, 0 is wrong")
    return 0


def export_clip_benchmark(given: dict[str, Any]) -> int:
    """Writes results in CLIP benchmark's formats."""
    from testbed.analyses import labels
    from testbed.compat.clip_benchmark import clip_benchmark_files
    from testbed.db.store import Store

    path: Path = given["export_clip_benchmark"]
    dumped = [key for key in ("classnames", "templates") if given[f"dump_{key}"]]
    as_csv = path.suffix.lower() == ".csv"
    if as_csv and dumped:
        raise click.UsageError("--dump-classnames and --dump-templates write to JSON files: give a folder")
    partial: set[tuple[str, str]] = set()

    def noted(results: Iterable[Result]) -> Iterator[Result]:
        for each in results:
            if each.sample_limit or each.random_weights:
                partial.add((each.eval_setting, each.model))
            yield each

    with Store.open(given["db_url"]) as store:
        others = labels.unreported(store) if given["everything"] else {}
        more = store.results_of(others)
        more.sort(key=lambda each: (each.eval_setting, each.model, others[each.evaluation_id]))
        results: Iterable[Result] = chain(store.stream_results(slices=[OVERALL]), more)
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


def export_clip_cc(given: dict[str, Any]) -> int:
    """Writes caption scores in CLIP-CC-Bench's format."""
    from testbed.cli.run.clip_cc import export
    from testbed.db.store import Store

    with Store.open(given["db_url"]) as store:
        export(store, given["export_clip_cc"], given["models"], given["eval_settings"], given["scale"])
    return 0
