"""``db.py --merge`` and ``--copy-to``: from one store to another, on SQLite or Postgres."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.console.output import count, print_json, shares

if TYPE_CHECKING:
    from testbed.db.upkeep.merge import Merged


def merge_into(given: dict[str, Any]) -> int:
    """Copies what another store has into this one."""
    return _copy(given["merge"], given["db_url"], given)


def copy_to(given: dict[str, Any]) -> int:
    """Copies this store to another one, which is made if need be."""
    return _copy(given["db_url"], given["copy_to"], given)


def _copy(source_url: str | None, target_url: str | None, given: dict[str, Any]) -> int:
    from testbed.db.payloads.locations import refuse_memory
    from testbed.db.store import Store
    from testbed.db.upkeep.merge import merge

    refuse_memory(given["payload_url"] or "")
    with Store.open(source_url) as source, Store.create(target_url, given["payload_url"]) as target:
        _require_two(source, target)
        merged = merge(source, target, not given["no_outputs"], shares())
        _print(merged, target.display_url, given["as_json"])
    return 1 if merged.unreadable else 0


def _require_two(source: Any, target: Any) -> None:
    if source.display_url == target.display_url:
        raise click.UsageError(f"both stores are {source.display_url}")


def _print(merged: Merged, where: str, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(merged), "store": where})
        return
    for line in merged.conflicts:
        click.echo(f"conflict: {line}")
    for line in merged.unreadable:
        click.echo(f"not copied: {line}")
    known = f"; {merged.known:,} were there already" if merged.known else ""
    conflicts = f"; {count(len(merged.conflicts), 'conflict')}" if merged.conflicts else ""
    click.echo(f"{count(merged.copied, 'evaluation')} copied to {where}{known}{conflicts}")
