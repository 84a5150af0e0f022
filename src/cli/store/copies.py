"""``testbed store merge``, ``copy``, ``backup`` and ``upgrade``: between stores, or to the current schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed.console.options import store_command
from testbed.console.output import count, print_json, shares

if TYPE_CHECKING:
    from testbed.db.upkeep.merge import MergeReport

F = TypeVar("F", bound=Callable[..., Any])


def _copy_options(function: F) -> F:
    """Adds --no-outputs and --payload-url."""
    function = click.option(
        "--payload-url", metavar="URL", help="Where the target store keeps outputs, as for testbed run."
    )(function)
    return click.option(
        "--no-outputs",
        is_flag=True,
        help="Leave out outputs; results count as imported and cannot be scored again.",
    )(function)


@store_command
@click.argument("other", metavar="STORE")
@_copy_options
def merge(other: str, no_outputs: bool, payload_url: str | None, db_url: str | None, as_json: bool) -> int:
    """Copy another store's results into this one.

    STORE is a path or a URL. Complete results of this store are kept.
    """
    return _copy(other, db_url, payload_url, not no_outputs, as_json)


@store_command
@click.argument("other", metavar="STORE")
@_copy_options
def copy(other: str, no_outputs: bool, payload_url: str | None, db_url: str | None, as_json: bool) -> int:
    """Copy this store to another one, for example from SQLite to Postgres.

    STORE is a path or a URL. Run the command again to copy new results.
    """
    return _copy(db_url, other, payload_url, not no_outputs, as_json)


@store_command
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path, db_url: str | None) -> int:
    """Copy a SQLite store, even while it is in use."""
    from testbed.db.upkeep.salvage import backup as copy

    copy(db_url, file)
    click.echo(f"the store is copied to {file}; outputs at a --payload-url are not in it")
    return 0


@store_command
def upgrade(db_url: str | None) -> int:
    """Upgrade the store to this version's schema.

    In an empty Postgres database, creates a store.
    """
    from testbed.db.store import upgrade as to_head

    before, after = to_head(db_url)
    said = "just created" if before is None else "already up to date" if before == after else f"upgraded from {before}"
    click.echo(f"the store has schema version {after}; {said}")
    return 0


def _copy(source_url: str | None, target_url: str | None, payload_url: str | None, outputs: bool, as_json: bool) -> int:
    from testbed.db.payloads.locations import refuse_memory
    from testbed.db.store import Store
    from testbed.db.upkeep.merge import merge

    refuse_memory(payload_url or "")
    with Store.open(source_url) as source, Store.create(target_url, payload_url) as target:
        _require_two(source, target)
        merged = merge(source, target, outputs, shares())
        _print(merged, target.display_url, as_json)
    return 1 if merged.unreadable else 0


def _require_two(source: Any, target: Any) -> None:
    if source.display_url == target.display_url:
        raise click.UsageError(f"both stores are {source.display_url}")


def _print(merged: MergeReport, where: str, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(merged), "store": where})
        return
    for line in merged.conflicts:
        click.echo(f"conflict: {line}")
    for line in merged.unreadable:
        click.echo(f"not copied: {line}")
    known = f"; {merged.known:,} were already there" if merged.known else ""
    conflicts = f"; {count(len(merged.conflicts), 'conflict')}" if merged.conflicts else ""
    click.echo(f"{count(merged.copied, 'evaluation')} copied to {where}{known}{conflicts}")
