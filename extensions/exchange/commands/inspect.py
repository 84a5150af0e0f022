"""``testbed export inspect``: answers in text as a log of Inspect AI."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import model_argument, note, setting_argument
from testbed.console.options import data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import count
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from testbed.db.store import Store
    from testbed.extensions.exchange.inspect_logs import Picture
    from testbed.stored_results.measured_cells import MeasuredCell


@store_command
@model_argument
@setting_argument
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="The log.",
)
@click.option("--pictures", is_flag=True, help="Include small pictures instead of the samples' ids.")
@plugin_option
@data_root_option
def command(model: str, setting: str, out: Path, pictures: bool, plugins: Sequence[str], db_url: str | None) -> int:
    """Write answers in text as a JSON log of Inspect AI.

    inspect view shows it, and inspect_ai.log.read_eval_log reads it.
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange.inspect_logs import as_json, inspect_log
    from testbed.paths import write_atomically
    from testbed.registry import registry
    from testbed.stored_results.measured_cells import measured_cells

    if out.suffix != ".json":
        raise TestbedError(f"the name of a JSON log has to end in .json; got {out.name}")
    if pictures:
        registry.load(plugins)
        use_own_names(db_url)
    missing: list[str] = []
    with Store.open(db_url) as store:
        cells, _ = measured_cells(store, [model], [setting])
        if len(cells) > 1:
            raise TestbedError(f"a log has one cell, but {model} on {setting} matches {len(cells):,}")
        log = inspect_log(store, cells[0], _pictures(store, cells[0], missing) if pictures else lambda _, name: name)
    if missing:
        note(f"{count(len(missing), 'picture')} cannot be shown: {missing[0]}")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, as_json(log).encode())
    click.echo(f"{count(len(log['samples']), 'sample')} written to {out}")
    return 0


def _pictures(store: Store, cell: MeasuredCell, missing: list[str]) -> Picture:
    """Small pictures as data URIs, else the ids of samples, with the reasons in ``missing``."""
    from testbed.registry import registry
    from testbed.stored_results.evaluated import SettingSamples
    from testbed.stored_results.pictures import Pictures

    shown = SettingSamples.among(store, cell.evaluation.eval_setting, [cell.evaluation])
    made = Pictures(store, registry)

    def picture(place: int, name: str) -> str:
        found = made.picture(shown, place)
        if isinstance(found, str):
            missing.append(found)
            return name
        return f"data:image/jpeg;base64,{base64.b64encode(found).decode()}"

    return picture
