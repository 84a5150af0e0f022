"""The explorer as a folder of files: it opens from the file system, needs no server and asks nobody for anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.console.options import ManyWords, ManyWordsCommand, data_root_option, run_command, store_options, use
from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.inputs import Inputs

LIMIT = 500


@click.command(cls=ManyWordsCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), default=Path("site"), show_default=True, help="The folder.")
@click.option("--metric", metavar="NAME", help="The metric that is shown first.  [default: each setting's main one]")
@click.option(
    "--samples",
    "--gallery",
    "samples",
    cls=ManyWords,
    metavar="SETTING",
    help="Settings whose samples to include, with pictures if the data or thumbnails are available: names or patterns.",
)
@click.option(
    "--samples-limit",
    type=click.IntRange(min=0),
    default=LIMIT,
    show_default=True,
    metavar="N",
    help="At most N samples of each: half of them those that most models get wrong, half evenly spread. 0: all.",
)
@store_options
@data_root_option
def command(
    out: Path,
    metric: str | None,
    samples: Sequence[str],
    samples_limit: int,
    db_url: str | None,
    plugins: Sequence[str],
    data_root: str | None,
) -> int:
    """Write the stored results as web pages, to be opened from the file system or put on any server."""
    from testbed.db.store import Store
    from testbed.plotting.explorer.explorer import make_explorer, samples_part
    from testbed.plotting.explorer.export import INDEX, choose_samples, write
    from testbed.plotting.explorer.pictures import Pictures
    from testbed.registry import registry

    use(Inputs.from_environment().but(data_root=data_root))
    registry.load(plugins)
    with Store.open(db_url) as store:
        chosen = choose_samples(store, samples, samples_limit)
        shown = store.display_url.rpartition("/")[2]
        explorer = make_explorer(store, registry, metric, shown, chosen)
        if metric is not None and metric not in explorer.document("index")["metrics"]:
            raise TestbedError(f"the store has no results of {metric}; run eval.py, or db.py --import-results FILE")
        pictures = Pictures(store, registry)
        done = write(out, explorer, samples_part(explorer), pictures, chosen, lambda note: click.echo(note, err=True))
    samples_told = f", {count(sum(map(len, chosen.values())), 'sample')} of {count(len(chosen), 'setting')}"
    click.echo(
        f"{out / INDEX} ({count(done.files, 'file')}, of which {count(done.pictures, 'picture')};"
        f" {done.size / 1e6:.1f} MB{samples_told if chosen else ''})"
    )
    return 0


def main() -> None:
    """The program."""
    run_command(command)


if __name__ == "__main__":
    main()
