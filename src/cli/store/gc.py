"""``testbed store gc`` and ``purge``: delete what is no longer needed."""

from __future__ import annotations

import click

from testbed.console.options import store_command
from testbed.console.output import count, print_json, say
from testbed.errors import TestbedError

_SHOWN = 5  # files


_payload_option = click.option("--payload-url", metavar="URL", help="Also look for files of outputs there.")


@store_command
@_payload_option
@click.option("--override", is_flag=True, help="Also delete files in folders that this store has no record of.")
def command(payload_url: str | None, override: bool, db_url: str | None, as_json: bool) -> int:
    """Delete output files that the store does not refer to."""
    from testbed.db.payloads.encoding import delete_uri
    from testbed.db.store import Store
    from testbed.db.upkeep.garbage import garbage

    with Store.open(db_url, "write") as store:
        found = garbage(store, [payload_url] if payload_url else [])
    deleted = {**found.own, **(found.others if override else {})}
    for uri in deleted:
        delete_uri(uri)
    left = {} if override else found.others
    if as_json:
        print_json({"deleted": sorted(deleted), "unknown": sorted(left), "young": found.young})
        return 0
    say(f"{count(len(deleted), 'file')} deleted, {sum(deleted.values()):,} bytes")
    if left:
        what = f"{count(len(left), 'file')} ({sum(left.values()):,} bytes)"
        say(
            f"{what} left in folders that this store has no record of: from purged evaluations, or from another"
            " store. If no other store has its outputs there, add --override"
        )
    if found.young:
        say(f"{count(found.young, 'file')} left: less than an hour old, so a run may be about to store the rows")
    return 0


@store_command
@_payload_option
@click.option("--override", is_flag=True, help="Confirm the deletion.")
def purge(payload_url: str | None, override: bool, db_url: str | None) -> int:
    """Permanently delete what was removed, including its outputs."""
    from testbed.db.store import Store

    if not override:
        raise TestbedError(
            "this permanently deletes everything that was removed, including outputs; add --override to confirm"
        )
    left: list[tuple[str, str]] = []
    with Store.open(db_url, "write", payload_url) as store:
        evaluations, names = store.removal.purge(lambda uri, why: left.append((uri, why)))
    say(f"{count(evaluations, 'evaluation')} and {count(names, 'name')} deleted")
    for uri, why in left[:_SHOWN]:
        say(f"note: the file {uri} stays: {why}", err=True)
    if left:
        say(
            f"note: {count(len(left), 'file')} in all; if outputs of this store were moved there, or the store was,"
            " name their place with --payload-url; testbed store gc lists files that no evaluation refers to",
            err=True,
        )
    return 0
