"""``testbed publish``: writes measured results and their site to a folder, for a git repository or the hub."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import models_option, note, note_counts, settings_option
from testbed.console.options import plugin_option, store_command
from testbed.console.output import count, print_json

SITE = "site"
SITE_TITLE = "Results"  # not the name of the folder: equal stores give equal files


@store_command
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@models_option
@settings_option
@click.option("--no-site", is_flag=True, help="Write only the results, without web pages.")
@plugin_option
def command(
    folder: Path,
    models: Sequence[str],
    settings: Sequence[str],
    no_site: bool,
    plugins: Sequence[str],
    db_url: str | None,
    as_json: bool,
) -> int:
    """Publish measured results in a git repository or a data set.

    DIR gets results.csv, manifest.json, a README with a table, and a site. testbed published add DIR reads them into
    another store, with full precision. Equal stores give equal files.
    """
    from testbed.db.store import Store
    from testbed.extensions.published.publishing import publish
    from testbed.registry import registry

    registry.load(plugins)
    with Store.open(db_url) as store:
        done = publish(store, folder, models, settings)
    files = 0 if no_site else _write_sites(folder)
    if as_json:
        print_json({**vars(done), "site": files})
        return 0
    note_counts(done.left_out)
    site = "" if no_site else f", with a site of {count(files, 'file')}"
    click.echo(f"{count(done.values, 'value')} of {count(done.cells, 'cell')} written to {folder}{site}")
    return 0


def _write_sites(folder: Path) -> int:
    """Writes the pages of all installed site makers; returns the number of files."""
    from testbed import extending
    from testbed.db.store import Store
    from testbed.extensions.published.adding import add, read_folder

    makers = extending.load_all(extending.SITE, note)
    if not makers:
        return 0
    with tempfile.TemporaryDirectory() as place, Store.create(str(Path(place) / "published.db")) as store:
        add(store, read_folder(folder), SITE_TITLE, own_names=True, settings=None)
        return sum(write(store, folder / SITE, SITE_TITLE) for write in makers.values())
