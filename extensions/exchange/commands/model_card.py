"""``testbed export model-card``: the results of a model for its card on the hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import model_argument, note, note_counts, settings_option
from testbed.console.options import ManyWords, store_command
from testbed.errors import TestbedError
from testbed.yamltext import to_yaml


@store_command
@model_argument
@settings_option
@click.option("--name", metavar="NAME", help="The model's name in the card.  [default: the model's]")
@click.option("--all", "everything", is_flag=True, help="Include all metrics, not only the main one of each setting.")
@click.option(
    "--hub",
    cls=ManyWords,
    metavar="SETTING=id=ID",
    help="A setting's data set on the hub: SETTING=id=OWNER/NAME,config=…,split=…,revision=…,task=…; task is"
    " the id of a task with a leaderboard.",
)
@click.option(
    "--readme",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Put the results into the front matter of this README.",
)
@click.option("--write", is_flag=True, help="Write the file given by --readme instead of printing it.")
@click.option(
    "--eval-results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the main results on data sets with a task: a file of .eval_results.",
)
@click.option("--source", metavar="URL", help="URL of the results, for --eval-results.")
def command(
    model: str,
    settings: Sequence[str],
    name: str | None,
    everything: bool,
    hub: Sequence[str],
    readme: Path | None,
    write: bool,
    eval_results: Path | None,
    source: str | None,
    db_url: str | None,
) -> int:
    """Write the results of a model for its card: model-index, as YAML.

    Prints the results; --readme prints an existing README with them. Rates are fractions. A data set has a hub id
    only if it was read from the hub, or if --hub gives one.
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange import model_cards as cards
    from testbed.paths import write_atomically
    from testbed.stored_results.measured_cells import measured_cells

    if write and readme is None:
        raise click.UsageError("--write requires --readme FILE")
    with Store.open(db_url) as store:
        cells, left_out = measured_cells(store, [model], settings)
    if len({cell.model for cell in cells}) > 1:
        raise TestbedError(f"a card has one model; {model} matches {', '.join(sorted({c.model for c in cells}))}")
    note_counts(left_out)
    results = cards.card_results(cells, cards.read_hub(hub), everything)
    partial = sum(cell.evaluation.sample_limit is not None or cell.evaluation.random_weights for cell in cells)
    if partial:
        note(
            f"{partial:,} of {len(cells):,} cells used part of the samples or random weights, which a card cannot"
            " express"
        )
    index = cards.model_index(name or cells[0].model, results)
    if eval_results is not None:
        main = cards.card_results(cells, cards.read_hub(hub))  # a leaderboard has one value per task
        entries = cards.eval_results(main, source)
        if not entries:
            raise TestbedError("no result has a task on the hub; use --hub SETTING=id=OWNER/NAME,task=TASK")
        if lacking := len(main) - len(entries):
            note(f"{lacking:,} of {len(main):,} settings have no task, and are not in {eval_results}")
        eval_results.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(eval_results, to_yaml(entries).encode())
    if readme is None:
        click.echo(to_yaml({cards.INDEX: index}), nl=False)
        return 0
    try:
        text = readme.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TestbedError(f"{readme} cannot be read: {error}") from error
    merged = cards.merged_card(text, index, str(readme))
    if write:
        write_atomically(readme, merged.encode())
        click.echo(f"results written to {readme}")
    else:
        click.echo(merged, nl=False)
    return 0
