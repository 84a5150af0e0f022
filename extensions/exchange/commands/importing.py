"""``testbed import``: published results, and results of other stores' exports."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed import extending
from testbed.cli.options.stored import note_counts, unregistered_option
from testbed.console.options import plugin_option, store_command
from testbed.console.output import count, print_json
from testbed.errors import TestbedError
from testbed.redaction import redacted_word

if TYPE_CHECKING:
    from testbed.claims.form import ImportReport
    from testbed.extensions.exchange.recorded import SampleFiles


EVERY_EVAL_EVER, INSPECT = "every-eval-ever", "inspect"


@store_command
@click.argument("words", nargs=-1, required=True, metavar=f"[{EVERY_EVAL_EVER}|{INSPECT}] FILE")
@click.option("--model-types", type=click.Path(path_type=Path), metavar="FILE", help="A CSV of model types.")
@unregistered_option
@click.option(
    "--samples",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the samples of Every Eval Ever's records, or of Inspect AI's log, to this folder: answers for"
    " replay:FILE,"
    " and tables of values.",
)
@plugin_option
def command(
    words: Sequence[str],
    model_types: Path | None,
    override: bool,
    samples: Path | None,
    plugins: Sequence[str],
    db_url: str | None,
    as_json: bool,
) -> int:
    """Import results under the names in their file.

    FILE is ImageNet-testbed's CSV; a CSV, JSON or folder of JSON files of CLIP benchmark or CLIP-CC-Bench; a folder of
    Every Eval Ever's records; or another file that testbed published add recognises; its numbers are published
    values. A JSON log of Inspect AI provides only samples, with --samples.
    """
    from testbed.db.store import Store
    from testbed.registry import registry

    file, form = _given(words)
    if form == INSPECT and samples is None:
        raise TestbedError("a log of Inspect AI provides only samples; use --samples DIR to write them")
    if not Path(file).exists():
        raise TestbedError(f"no such file: {redacted_word(file)}")
    registry.load(plugins)
    written, report = None, None
    with Store.create(db_url) as store:
        known = {*registry.eval_settings.names(), *(stored.name for stored in store.names.all("eval setting"))}
        if form or samples is not None:
            written = _samples(Path(file), form, samples, known)
        if form != INSPECT:
            import_results = extending.load(extending.IMPORTER, "published")
            report = import_results(store, file, model_types, None if override else known)
    if as_json:
        numbers = {} if report is None else vars(report)
        print_json({**numbers, **({} if written is None else {"samples": vars(written)})})
        return 0
    if report is not None:
        _print_report(report, file)
    if written is not None:
        _print_samples(written, samples)
    return 0


def _print_report(report: ImportReport, file: str) -> None:
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    values = f"{report.values:,} values of {count(report.cells, 'cell')}"
    click.echo(f"{redacted_word(file)} ({report.form}): {values}, {report.new:,} of them new")


def _given(words: Sequence[str]) -> tuple[str, str]:
    """The file, and its declared format; empty if undeclared."""
    *form, file = words
    if form not in ([], [EVERY_EVAL_EVER], [INSPECT]):
        said = " ".join(map(redacted_word, words))
        raise click.UsageError(f"expected one FILE, or {EVERY_EVAL_EVER} DIR, or {INSPECT} FILE; got {said}")
    return file, "".join(form)


def _samples(file: Path, form: str, folder: Path | None, known: Collection[str]) -> SampleFiles:
    from testbed.extensions.exchange.every_eval_ever.reading import read_samples, records_in
    from testbed.extensions.exchange.inspect_logs import read_log
    from testbed.extensions.exchange.recorded import write_samples
    from testbed.registry import registry

    def is_known(setting: str) -> bool:
        try:
            return setting in known or registry.eval_settings.canonical(setting) is not None
        except TestbedError:  # not a valid name of a setting
            return False

    paths = records_in(file) if form != INSPECT and file.is_dir() else [file]
    records = map(read_log if form == INSPECT else read_samples, paths)
    return write_samples(records, folder, is_known)


def _print_samples(written: SampleFiles, folder: Path | None) -> None:
    note_counts(written.left_out)
    if folder is None:
        click.echo(f"{count(written.samples, 'sample')} were not imported; use --samples DIR to write them")
        return
    click.echo(f"{count(written.samples, 'sample')} written to {count(len(written.files), 'file')} in {folder}")
    for path, setting in written.answers.items():
        click.echo(f"  testbed run {shlex.quote(f'replay:{path}')} --on {shlex.quote(setting)}")
