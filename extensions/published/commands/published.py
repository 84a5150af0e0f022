"""``testbed published``: compares published values with each other and with your own results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import (
    limit_option,
    model_argument,
    models_option,
    note,
    setting_argument,
    settings_option,
)
from testbed.console.groups import Group
from testbed.console.options import ManyWords, plugin_option, store_command
from testbed.console.output import count, print_json, say, table
from testbed.entities import OVERALL
from testbed.errors import TestbedError
from testbed.formatting import fixed, metric_value, percent

if TYPE_CHECKING:
    from testbed.claims.compare import Coverage, Disagreement
    from testbed.entities import Claim, Result
    from testbed.extensions.published.adding import FileClaims

DETAIL = " " * 11  # indentation of details about the value above
_NAMED = 4  # names of a reason
_COLUMNS = 8  # listed columns whose values are not claims
_USUAL = "top1"


@store_command
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "--from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Read the files from this folder: a clone of the source's repository, or one with a folder for each source.",
)
def fetch(sources: Sequence[str], folder: Path | None, db_url: str | None, as_json: bool) -> int:
    """Store the tables of known sources.

    The sources are timm, open_clip, clip_benchmark, mobileclip, robustbench and mteb; the default is all of them. Files
    are downloaded from GitHub, each at a fixed commit, into the cache folder, and their digests are checked.
    """
    from testbed.db.store import Store
    from testbed.extensions.published.adding import add_known
    from testbed.extensions.published.sources import downloaded, files_of, in_folder

    wanted = files_of(sources)
    if folder is not None:
        found, missing = in_folder(folder, wanted)
        if missing:
            note(f"{folder} does not hold {count(len(missing), 'file')}, such as {missing[0].file}")
    else:
        found, missing = downloaded(wanted, note)
        for missing_name in missing:
            note(
                f"{missing_name.file} was collected from {missing_name.path} of {missing_name.repository}; use --from"
                " DIR to read it from a folder"
            )
    with Store.create(db_url) as store:
        added = [add_known(store, file, path) for file, path in found.items()]
    _print_added(added, as_json)
    return 0


@store_command
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@click.option("--source", metavar="NAME", help="The name of the source.  [default: the file's name without its suffix]")
@click.option(
    "--map",
    "words",
    cls=ManyWords,
    metavar="WORD",
    help="The columns of a table in another format: model=COLUMN setting=COLUMN|NAME value=COLUMN, and"
    " metric=COLUMN|NAME unit=percent|fraction|NAME n=COLUMN|NUMBER.",
)
@plugin_option
def add(
    file: Path, source: str | None, words: Sequence[str], plugins: Sequence[str], db_url: str | None, as_json: bool
) -> int:
    """Store the values of a file.

    FILE is a table or a JSON file, whose format is recognised by its columns, or a folder of JSON files in one format.
    """
    from testbed.claims.document import read_document
    from testbed.db.store import Store
    from testbed.extensions.published.adding import add as add_documents
    from testbed.extensions.published.adding import read_folder
    from testbed.extensions.published.mapped import read_map
    from testbed.registry import registry

    columns, documents = read_map(words), read_folder(file) if file.is_dir() else [read_document(file)]
    registry.load(plugins)
    with Store.create(db_url) as store:
        added = add_documents(store, documents, source or file.stem, columns)
    _print_added([added], as_json)
    return 0


@store_command
@model_argument
@setting_argument
def show(model: str, setting: str, db_url: str | None, as_json: bool) -> int:
    """Show published values of a cell beside your own.

    Models with the same weights count as one, regardless of their names.
    """
    from testbed.claims.agreement import measured_in_words, standings
    from testbed.claims.compare import cell
    from testbed.claims.listing import NOTHING
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        claims, measured, compared = cell(store, model, setting)
    if as_json:
        print_json(
            {
                "published": [asdict(each) for each in claims],
                "measured": [asdict(each) for each in measured],
                "compared": [claim_comparison.as_object() for _, claim_comparison in compared],
            }
        )
        return 0
    if not claims and not measured:
        raise TestbedError(
            f"{model} on {setting}: {NOTHING}, and nothing was measured; testbed published coverage lists the sources"
        )
    if not claims:
        say(NOTHING)
    for claim in claims:
        _print_claim(claim, model)
        for claim_comparison in (comparison for of, comparison in compared if of is claim):
            name = "" if claim_comparison.model == model else f"{claim_comparison.model}: "
            say(f"{DETAIL}{name}{measured_in_words(claim_comparison)}")
    for line in standings(claims):
        say(line)
    if not measured:
        say("not measured here")
    for result in measured:
        _print_measured(result, model)
    return 0


@store_command
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@click.option(
    "--by", type=float, default=1, show_default=True, metavar="POINTS", help="List pairs that differ by more."
)
@models_option
@settings_option
@limit_option
def disagree(
    sources: Sequence[str],
    by: float,
    models: Sequence[str],
    settings: Sequence[str],
    limit: int,
    db_url: str | None,
    as_json: bool,
) -> int:
    """List values of different sources that differ.

    Two values form a pair if they share weights, setting and metric.
    """
    from testbed.claims.compare import about, disagreements
    from testbed.claims.names import mapped_now
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        known = [source.name for source in store.claims.sources()]
        if unknown := [source for source in sources if source not in known]:
            stored = ", ".join(dict.fromkeys(known)) or "no sources"
            raise TestbedError(f"nothing from {unknown[0]!r} is stored; stored sources: {stored}")
        claims = mapped_now(store, store.claims.find(sources=sources or None))
    found = disagreements(about(claims, models, settings))
    if as_json:
        print_json([_as_object(disagreement, Decimal(repr(by))) for disagreement in found])
        return 0
    if not found:
        say("no two sources have values with the same weights, setting and metric")
    for disagreement in found:
        say(disagreement.summary(by))
    for disagreement in found:
        _print_pairs(disagreement, Decimal(repr(by)), limit)
    return 0


@store_command
def coverage(db_url: str | None, as_json: bool) -> int:
    """Show how many values of each source are stored, and which could not be assigned.

    Values are either claims or other numbers, such as numbers of parameters. A claim is mapped if testbed has its
    model and its eval setting.
    """
    from testbed.claims.compare import coverage as covered
    from testbed.claims.names import mapped_now
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        found = covered(store.claims.sources(), mapped_now(store, store.claims.find()))
    if as_json:
        print_json([{**vars(source), "values": source.values, "mapped": source.mapped} for source in found])
        return 0
    if not found:
        say("nothing is stored; testbed published fetch stores the known sources")
        return 0
    rows = [
        [
            source.name,
            *(f"{number:,}" for number in (source.files, source.rows, source.values, source.claims, source.mapped)),
        ]
        for source in found
    ]
    click.echo(table(["source", "files", "rows", "values", "claims", "mapped"], rows, right=range(1, 6)))
    for source in found:
        _print_reasons(source)
    return 0


@store_command
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
def prefer(sources: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Set the order of preference of sources.

    Cells without measured values show published ones; if there are several, that of the first source. The named
    sources come first, the others keep their order. Without a name, prints the order.
    """
    from testbed.db.store import Store

    with Store.open(db_url, "write" if sources else "read") as store:
        known = store.claims.order()
        if unknown := [source for source in sources if source not in known]:
            raise TestbedError(f"nothing from {unknown[0]!r} is stored; stored sources: {', '.join(known) or 'none'}")
        if sources:
            store.claims.prefer(sources)
            known = store.claims.order()
    if as_json:
        print_json(known)
    else:
        click.echo("\n".join(known) or "nothing is stored; testbed published fetch stores the known sources")
    return 0


def _as_object(found: Disagreement, by: Decimal) -> dict[str, Any]:
    return {
        "sources": [found.first, found.second],
        "pairs": len(found.pairs),
        "models": found.models,
        "sets": found.settings,
        "more_than_1_point": len(found.beyond(Decimal(1))),
        "more_than_5_points": len(found.beyond(Decimal(5))),
        "differing": [
            {
                "points": float(pair.points),
                "weights": pair.weights,
                "first": asdict(pair.first),
                "second": asdict(pair.second),
            }
            for pair in found.beyond(by)
        ],
    }


def _print_pairs(found: Disagreement, by: Decimal, limit: int) -> None:
    beyond = found.beyond(by)
    if not beyond:
        return
    rows = [
        [
            fixed(float(pair.points), 2, signed=True),
            pair.first.model,
            _on(pair.first),
            percent(pair.first.value),
            percent(pair.second.value),
        ]
        for pair in beyond[:limit]
    ]
    header = ["points", "model", "eval setting", found.first, found.second]
    click.echo(f"\n{table(header, rows, right=(0, 3, 4))}")
    if len(beyond) > limit:
        say(f"… and {len(beyond) - limit:,} more (--limit)")


def _on(claim: Claim) -> str:
    """The setting, with the metric and the slice if they are not the usual ones."""
    further = [*([] if claim.metric == _USUAL else [claim.metric]), *([] if claim.slice == OVERALL else [claim.slice])]
    return " ".join([claim.eval_setting, *further])


def _print_claim(claim: Claim, model: str) -> None:
    from testbed.claims.listing import link

    assert claim.source is not None
    value = metric_value(claim.value, claim.unit)
    say(f"{value:>9}  {_what(claim.metric, claim.slice)}, {claim.source.name}")
    told = [f"{claim.source.file}, {claim.row}"]
    told += [] if claim.model == model else [f"as {claim.model}"]
    told += [f"{key} {text}" for key, text in claim.protocol.items()]
    told += [] if claim.n is None else [f"n {claim.n:,}"]
    told += [] if claim.why is None else [claim.why]
    say(f"{DETAIL}{'; '.join(told)}")
    if address := link(claim.source):
        click.echo(f"{DETAIL}{address}")


def _print_measured(result: Result, model: str) -> None:
    value = metric_value(result.value, result.unit, result.stderr)
    say(f"{value:>9}  {_what(result.metric, result.slice)}, measured here")
    told = [] if result.model == model else [f"as {result.model}"]
    told += [] if result.n is None else [f"n {result.n:,}"]
    say(f"{DETAIL}{'; '.join([*told, f'evaluation {result.evaluation_id}'])}")


def _what(metric: str, slice: str) -> str:
    return metric if slice == OVERALL else f"{metric} ({slice})"


def _print_reasons(found: Coverage) -> None:
    for why, names in found.unmapped.items():
        named = [name for name, _ in names.most_common(_NAMED)]
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        say(f"\n{found.name}: {_unmapped(names.total())}: {why}:")
        say(f"  {', '.join(named)}{more}")
    if found.left_out:
        say(f"\n{found.name}: {found.left_out.total():,} values are not claims:")
        named = [f"{name} {number:,}" for name, number in found.left_out.most_common(_COLUMNS)]
        others = len(found.left_out) - len(named)
        named += [f"and {count(others, 'further column')}"] if others else []
        say(f"  {', '.join(named)}")


def _print_added(added: Sequence[FileClaims], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    **asdict(added_file.source),
                    "claims": len(added_file.claims),
                    "new": added_file.new,
                    "unmapped": added_file.unmapped,
                }
                for added_file in added
            ]
        )
        return
    names = list(dict.fromkeys(added_file.source.name for added_file in added))
    rows = []
    for name in names:
        of = [added_file for added_file in added if added_file.source.name == name]
        claims, new = (
            sum(numbers)
            for numbers in ((len(added_file.claims) for added_file in of), (added_file.new for added_file in of))
        )
        mapped = claims - sum(added_file.unmapped.total() for added_file in of)
        read = sum(added_file.source.rows for added_file in of)
        rows.append([name, *(f"{number:,}" for number in (len(of), read, claims, new, mapped))])
    click.echo(table(["source", "files", "rows", "claims", "new", "mapped"], rows, right=range(1, 6)))
    if len(added) == 1:
        say(f"{added[0].source.path} is {added[0].source.form}")
        for why, number in added[0].unmapped.items():
            say(f"{_unmapped(number)}: {why}")


def _unmapped(number: int) -> str:
    return "1 claim is not mapped" if number == 1 else f"{number:,} claims are not mapped"


@click.command(
    cls=Group,
    sections={
        "Store": {name: f"{__name__}:{name}" for name in ("fetch", "add")},
        "Compare": {
            "list": "testbed.extensions.published.commands.listing:command",
            **{name: f"{__name__}:{name}" for name in ("show", "disagree", "coverage", "prefer")},
        },
    },
)
def command() -> None:
    """Compare published values with your own results."""
