"""``testbed site``: writes the explorer as a folder of files that works without a server or network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import STORED_SETTING, folder_option, note_parts, pin_option, shown_first_option
from testbed.console.options import ManyWords, data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import count
from testbed.errors import TestbedError


@store_command
@folder_option("site")
@shown_first_option
@pin_option
@click.option(
    "--samples",
    "--gallery",
    "samples",
    cls=ManyWords,
    help="Settings whose samples to include, with pictures if the data or thumbnails are available: names or patterns.",
    **STORED_SETTING,
)
@click.option(
    "--samples-limit",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    metavar="N",
    help="Maximum number of samples per setting: half are those that most models get wrong, half are evenly spread. 0:"
    " all.",
)
@plugin_option
@data_root_option
def command(
    out: Path,
    metric: str | None,
    samples: Sequence[str],
    samples_limit: int,
    pins: Sequence[str],
    plugins: Sequence[str],
    db_url: str | None,
) -> int:
    """Write results as web pages that need no server."""
    from testbed.db.store import Store
    from testbed.extensions.explorer.defaults import known_models
    from testbed.extensions.explorer.explorer import make_explorer, samples_part
    from testbed.extensions.explorer.export import INDEX, choose_samples, write
    from testbed.registry import registry
    from testbed.stored_results.pictures import Pictures

    registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url) as store:
        chosen = choose_samples(store, samples, samples_limit)
        note_parts(store, chosen)
        shown = store.display_url.rpartition("/")[2]
        explorer = make_explorer(store, registry, metric, shown, chosen, pinned=known_models(store, pins) or None)
        if metric is not None and metric not in explorer.document("index")["metrics"]:
            raise TestbedError(f"the store has no results of {metric}; testbed run or testbed import adds some")
        pictures = Pictures(store, registry)
        done = write(out, explorer, samples_part(explorer), pictures, chosen, lambda note: click.echo(note, err=True))
    samples_told = f", {count(sum(map(len, chosen.values())), 'sample')} of {count(len(chosen), 'setting')}"
    click.echo(
        f"{out / INDEX} ({count(done.files, 'file')}, of which {count(done.pictures, 'picture')};"
        f" {done.size / 1e6:.1f} MB{samples_told if chosen else ''})"
    )
    return 0
