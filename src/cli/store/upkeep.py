"""The actions of ``db.py`` that keep a store whole: check, repair, copy, salvage and upgrade it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed.cli.store.copies import copy_to, merge_into
from testbed.console.called import as_called
from testbed.console.options import EXIT_ERROR
from testbed.console.output import count, print_json

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.db.upkeep.damage import Fault
    from testbed.db.upkeep.repair import Repaired
    from testbed.entities import Evaluation

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--check", is_flag=True, help="Look for damage: verify every checksum and digest, find what is incomplete."
    ),
    click.option(
        "--deep",
        is_flag=True,
        help="With --check and --repair: also compute all scores and metrics again from the stored outputs.",
    ),
    click.option(
        "--repair",
        is_flag=True,
        help="Drop what --check finds damaged, with the scores that depend on it, and say which commands compute it"
        " again. Make a --backup first.",
    ),
    click.option(
        "--backup", type=click.Path(path_type=Path), metavar="FILE", help="Copy a SQLite store, also while it is used."
    ),
    click.option(
        "--salvage",
        type=click.Path(path_type=Path),
        metavar="NEW",
        help="Copy what can be read of a damaged SQLite store to a new one, and repair that.",
    ),
    click.option(
        "--merge",
        metavar="STORE",
        help="Copy what another store (a path or a URL) has into this one; what is complete here stays.",
    ),
    click.option(
        "--copy-to",
        metavar="STORE",
        help="Copy this store to another one, also from SQLite to Postgres and back; again: copy what is new.",
    ),
    click.option(
        "--no-outputs",
        is_flag=True,
        help="With --merge and --copy-to: leave out outputs; results count as imported and cannot be scored again.",
    ),
    click.option(
        "--payload-url",
        metavar="URL",
        help="With --merge and --copy-to: where outputs are stored, as for eval.py. With --gc and --purge: look there"
        " too.",
    ),
    click.option(
        "--gc",
        is_flag=True,
        help="Delete files of outputs that no row of the store names; with --override also those in folders that this"
        " store does not know.",
    ),
    click.option(
        "--upgrade",
        is_flag=True,
        help="Upgrade the store to this version's schema; make one in an empty Postgres database.",
    ),
)


def upkeep_options(function: F) -> F:
    """The options of these actions."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def check(given: dict[str, Any]) -> int:
    """Prints a line for each fault."""
    from testbed.db.store import Store

    with Store.open(given["db_url"]) as store:
        found = list(_faults(store, given))
    faults = [_line(fault) for fault in found]
    if given["as_json"]:
        print_json({"ok": not faults, "faults": faults})
    else:
        for fault in faults:
            click.echo(fault)
        advice = "; --repair drops what is damaged" if any(fault.is_curable for fault in found) else ""
        told = f"{count(len(faults), 'fault')} found{advice}"
        click.echo(told if faults else "the store is sound", err=bool(faults))
    return EXIT_ERROR if faults else 0


def repair(given: dict[str, Any]) -> int:
    """Repairs the store, and prints what was done and what is to be run."""
    from testbed.db.store import Store

    with Store.open(given["db_url"], "write") as store:
        return _repair(store, given)


def collect_garbage(given: dict[str, Any]) -> int:
    """Deletes files of outputs that no row names."""
    from testbed.db.payloads.encoding import delete_uri
    from testbed.db.store import Store
    from testbed.db.upkeep.garbage import garbage

    with Store.open(given["db_url"], "write") as store:
        found = garbage(store, [given["payload_url"]] if given["payload_url"] else [])
    deleted = {**found.own, **(found.others if given["override"] else {})}
    for uri in deleted:
        delete_uri(uri)
    left = {} if given["override"] else found.others
    if given["as_json"]:
        print_json({"deleted": sorted(deleted), "unknown": sorted(left), "young": found.young})
        return 0
    click.echo(f"{count(len(deleted), 'file')} deleted, {sum(deleted.values()):,} bytes")
    if left:
        what = f"{count(len(left), 'file')} ({sum(left.values()):,} bytes)"
        click.echo(
            f"{what} left in folders that this store does not know: of evaluations that were purged, or of another"
            " store. If no other store has its outputs there, add --override"
        )
    if found.young:
        click.echo(f"{count(found.young, 'file')} left: less than an hour old, so a run may be about to store the rows")
    return 0


def salvage(given: dict[str, Any]) -> int:
    """Copies what can be read to a new store, and repairs that."""
    from testbed.db.store import Store
    from testbed.db.upkeep.salvage import salvage as copy

    rows, lost = copy(given["db_url"], given["salvage"])
    if lost:
        click.echo(
            f"note: rows of {', '.join(lost)} are lost; {as_called('db.py')} --repair --deep"
            f" --db-url {given['salvage']} finds the evaluations that lack scores or metrics",
            err=True,
        )
    with Store.open(str(given["salvage"]), "write") as store:
        if not given["as_json"]:
            click.echo(f"{count(rows, 'row')} copied to {given['salvage']}")
        return _repair(store, given)


def backup(given: dict[str, Any]) -> int:
    """Copies a SQLite store."""
    from testbed.db.upkeep.salvage import backup as copy

    copy(given["db_url"], given["backup"])
    click.echo(f"the store is copied to {given['backup']}; outputs at a --payload-url are not in it")
    return 0


def upgrade(given: dict[str, Any]) -> int:
    """Upgrades the schema."""
    from testbed.db.store import upgrade as to_head

    before, after = to_head(given["db_url"])
    said = (
        "it was made now" if before is None else "already up to date" if before == after else f"upgraded from {before}"
    )
    click.echo(f"the store has schema version {after}; {said}")
    return 0


def _line(fault: Fault) -> str:
    return f"{fault.text}; {fault.lasts}" if fault.lasts else fault.text


def _faults(store: Store, given: dict[str, Any]) -> Iterable[Fault]:
    yield from store.faults()
    if not given["deep"]:
        return
    from testbed.registry import registry
    from testbed.runner.name_check import misnamed
    from testbed.scoring.deep_check import deep_faults

    registry.load(given["plugins"])
    for look, what in ((misnamed, "not compared with the registry"), (deep_faults, "not scored again")):
        skipped: Counter[str] = Counter()
        yield from look(store, registry, lambda _, why, skipped=skipped: skipped.update([why]))  # type: ignore[misc]
        for why, number in skipped.most_common():
            click.echo(f"note: {count(number, 'evaluation')} {what}: {why}", err=True)


def _repair(store: Store, given: dict[str, Any]) -> int:
    store.reindex()
    done = store.repair(lambda: _faults(store, given))
    left = [_line(fault) for fault in done.left]
    commands = _commands(done)
    if given["as_json"]:
        print_json({"ok": not left, "repaired": [each.text for each in done.done], "left": left, "commands": commands})
        return EXIT_ERROR if left else 0
    for fault in done.done:
        click.echo(f"repaired: {fault.text}")
    for line in left:
        click.echo(f"not repaired: {line}")
    for evaluation in done.hidden:
        click.echo(f"removed: evaluation {evaluation.id} ({evaluation.model} on {evaluation.eval_setting})")
    if commands:
        click.echo("What is lacking now is computed by (with the same --db-url and --plugin):")
        for command in commands:
            click.echo(f"  {command}")
    told = "nothing to repair" if not done.done else f"{count(len(done.done), 'fault')} repaired"
    click.echo(f"{told}; {count(len(left), 'fault')} left" if left else told)
    return EXIT_ERROR if left else 0


def _commands(done: Repaired) -> list[str]:
    """The commands that compute what a repair dropped, one for each setting."""
    runs: dict[tuple[str, ...], list[str]] = {}
    imports: list[str] = []
    for each in [*done.again, *done.hidden]:
        if each.origin == "imported":
            imports.append(f"{as_called('python db.py')} --import-results {shlex.quote(each.source or 'FILE')}")
        else:
            runs.setdefault((each.eval_setting, *_options(each)), []).append(each.model)
    told = [
        shlex.join(
            [*as_called("python eval.py").split(), "--models", *dict.fromkeys(models), "--eval-settings", *words]
        )
        for words, models in sorted(runs.items())
    ]
    return [*told, *dict.fromkeys(imports)]


def _options(evaluation: Evaluation) -> list[str]:
    words = []
    if evaluation.sample_limit is not None:
        words += ["--limit", str(evaluation.sample_limit)]
    computed, _, stored = (evaluation.dtype or "float32").partition("/")
    if computed != "float32":
        words += ["--dtype", computed]
    if stored:
        words += ["--store-dtype", stored]
    return [*words, "--random-weights"] if evaluation.random_weights else words


ACTIONS = {
    "merge": merge_into,
    "copy_to": copy_to,
    "gc": collect_garbage,
    "backup": backup,
    "repair": repair,
    "check": check,
}
