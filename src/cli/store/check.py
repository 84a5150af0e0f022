"""``testbed store check``, ``repair`` and ``salvage``: damage is found, dropped, and computed again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.options import EXIT_ERROR, data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import count, print_json, say

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.db.upkeep.damage import Fault
    from testbed.db.upkeep.repair import Repaired
    from testbed.entities import Evaluation


@store_command
@click.option("--deep", is_flag=True, help="Also compute all scores and metrics again from the stored outputs.")
@plugin_option
@data_root_option
def check(deep: bool, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Look for damage.

    Verifies every checksum and digest, and finds what is incomplete; prints a line for each fault.
    """
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        found = list(_faults(store, deep, plugins))
    faults = [_line(fault) for fault in found]
    if as_json:
        print_json({"ok": not faults, "faults": faults})
    else:
        for fault in faults:
            say(fault)
        advice = "; testbed store repair drops what is damaged" if any(fault.is_curable for fault in found) else ""
        told = f"{count(len(faults), 'fault')} found{advice}"
        say(told if faults else "the store is sound", err=bool(faults))
    return EXIT_ERROR if faults else 0


@store_command
@click.option("--deep", is_flag=True, help="Drop what check --deep finds, too.")
@plugin_option
@data_root_option
def repair(deep: bool, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Drop what is damaged, and say what computes it again.

    What check finds damaged is dropped, with the scores that depend on it. Make a backup first.
    """
    from testbed.db.store import Store

    with Store.open(db_url, "write") as store:
        return _repair(store, deep, plugins, as_json)


@store_command
@click.argument("new", type=click.Path(path_type=Path))
@plugin_option
@data_root_option
def salvage(new: Path, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Copy what can be read of a damaged SQLite store to a new one.

    The new store is repaired; the damaged one is left as it is.
    """
    from testbed.db.store import Store
    from testbed.db.upkeep.salvage import salvage as copy

    rows, lost = copy(db_url, new)
    if lost:
        say(
            f"note: rows of {', '.join(lost)} are lost; testbed store repair --deep --db-url {new} finds the"
            " evaluations that lack scores or metrics",
            err=True,
        )
    with Store.open(str(new), "write") as store:
        if not as_json:
            say(f"{count(rows, 'row')} copied to {new}")
        return _repair(store, False, plugins, as_json)


def _line(fault: Fault) -> str:
    return f"{fault.text}; {fault.lasts}" if fault.lasts else fault.text


def _faults(store: Store, deep: bool, plugins: Sequence[str]) -> Iterable[Fault]:
    yield from store.maintenance.faults()
    if not deep:
        return
    from testbed.registry import registry
    from testbed.runner.name_check import misnamed
    from testbed.scoring.deep_check import deep_faults

    registry.load(plugins)
    use_own_names(store.full_url)
    new: Counter[str] = Counter()
    scored = partial(deep_faults, added=lambda _, names: new.update(names))
    for look, what in ((misnamed, "not compared with the registry"), (scored, "not scored again")):
        skipped: Counter[str] = Counter()
        yield from look(store, registry, lambda _, why, skipped=skipped: skipped.update([why]))  # type: ignore[misc]
        for why, number in skipped.most_common():
            say(f"note: {count(number, 'evaluation')} {what}: {why}", err=True)
    for name, number in new.most_common():
        say(f"note: {name} is new: {count(number, 'evaluation')} without it; testbed rescore adds it", err=True)


def _repair(store: Store, deep: bool, plugins: Sequence[str], as_json: bool) -> int:
    store.maintenance.reindex()
    done = store.maintenance.repair(lambda: _faults(store, deep, plugins))
    left = [_line(fault) for fault in done.left]
    commands = _commands(done)
    if as_json:
        print_json({"ok": not left, "repaired": [each.text for each in done.done], "left": left, "commands": commands})
        return EXIT_ERROR if left else 0
    for fault in done.done:
        say(f"repaired: {fault.text}")
    for line in left:
        say(f"not repaired: {line}")
    for evaluation in done.hidden:
        say(f"removed: evaluation {evaluation.id} ({evaluation.model} on {evaluation.eval_setting})")
    if commands:
        say("What is lacking now is computed by (with the same --db-url and --plugin):")
        for command in commands:
            click.echo(f"  {command}")
    told = "nothing to repair" if not done.done else f"{count(len(done.done), 'fault')} repaired"
    say(f"{told}; {count(len(left), 'fault')} left" if left else told)
    return EXIT_ERROR if left else 0


def _commands(done: Repaired) -> list[str]:
    """The commands that compute what a repair dropped, one for each setting."""
    runs: dict[tuple[str, ...], list[str]] = {}
    imports: list[str] = []
    for each in [*done.again, *done.hidden]:
        if each.origin == "imported":
            imports.append(f"testbed import {shlex.quote(each.source or 'FILE')}")
        else:
            runs.setdefault((each.eval_setting, *_options(each)), []).append(each.model)
    told = [
        shlex.join(["testbed", "run", *dict.fromkeys(models), "--on", *words]) for words, models in sorted(runs.items())
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
