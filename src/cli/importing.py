"""``testbed import``: published results, and results of other stores' exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.console.options import plugin_option, store_command
from testbed.console.output import count, print_json
from testbed.errors import TestbedError
from testbed.redaction import redacted_word


@store_command
@click.argument("file")
@click.option("--model-types", type=click.Path(path_type=Path), metavar="FILE", help="A CSV of model types.")
@click.option("--override", is_flag=True, help="Take names of settings that are not in the registry.")
@plugin_option
def command(
    file: str, model_types: Path | None, override: bool, plugins: Sequence[str], db_url: str | None, as_json: bool
) -> int:
    """Import results under the names that their file has.

    FILE is ImageNet-testbed's CSV; a CSV, JSON or folder of JSON files of CLIP benchmark or CLIP-CC-Bench; or another
    file that testbed published add recognises: its numbers are published values. Or it is a store from before the
    first release.
    """
    from testbed.db.store import Store
    from testbed.published.importing import import_results
    from testbed.registry import registry

    if "://" not in file and not Path(file).exists():
        raise TestbedError(f"there is no file {redacted_word(file)}")
    registry.load(plugins)
    with Store.create(db_url) as store:
        known = {*registry.eval_settings.names(), *(each.name for each in store.names.all("eval setting"))}
        report = import_results(store, file, model_types, None if override else known)
    if as_json:
        print_json(vars(report))
        return 0
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    values = f"{report.values:,} values of {count(report.cells, 'cell')}"
    click.echo(f"{redacted_word(file)} ({report.form}): {values}, {report.new:,} of them new")
    return 0
