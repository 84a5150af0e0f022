"""``testbed store check``, ``repair`` and ``salvage``: find damage, drop it, and print how to recompute it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.options import EXIT_ERROR, data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import count, print_json, say
from testbed.errors import StoreDamagedError, StoreError

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.db.upkeep.damage import Fault
    from testbed.db.upkeep.repair import RepairReport
    from testbed.entities import Evaluation


@store_command
@click.option("--deep", is_flag=True, help="Also recompute all scores and metrics from the stored outputs.")
@plugin_option
@data_root_option
def check(deep: bool, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Look for damage.

    Verifies every checksum and digest, and finds incomplete records; prints a line for each fault.
    """
    from testbed.db.store import Store

    found = []
    with _no_advice_of_itself(), Store.open(db_url) as store:
        for fault in _faults(store, deep, plugins):
            found.append(fault)
            if not as_json:
                say(_line(fault))
    if as_json:
        print_json({"ok": not found, "faults": [_line(fault) for fault in found]})
    else:
        advice = "; testbed store repair drops the damaged parts" if any(fault.is_curable for fault in found) else ""
        told = f"{count(len(found), 'fault')} found{advice}"
        say(told if found else "the store is sound", err=bool(found))
    return EXIT_ERROR if found else 0


@store_command
@click.option("--deep", is_flag=True, help="Also drop what check --deep finds.")
@plugin_option
@data_root_option
def repair(deep: bool, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Drop damaged parts, and print the commands that recompute them.

    Drops what check reports as damaged, and the scores that depend on it. Make a backup first.
    """
    from testbed.db.store import Store

    with _no_advice_of_itself(), Store.open(db_url, "write") as store:
        return _repair(store, deep, plugins, as_json)


@store_command
@click.argument("new", type=click.Path(path_type=Path))
@plugin_option
@data_root_option
def salvage(new: Path, plugins: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Copy the readable parts of a damaged SQLite store to a new one.

    The new store is repaired; the damaged one stays unchanged.
    """
    from testbed.db.store import Store
    from testbed.db.upkeep.salvage import salvage as copy

    rows, lost = copy(db_url, new)
    if lost:
        say(
            f"note: rows of {', '.join(lost)} are lost; testbed store repair --deep --db-url {new} finds the"
            " evaluations without scores or metrics",
            err=True,
        )
    with Store.open(str(new), "write") as store:
        if not as_json:
            say(f"{count(rows, 'row')} copied to {new}")
        return _repair(store, False, plugins, as_json)


@contextmanager
def _no_advice_of_itself() -> Iterator[None]:
    """Removes the advice to run a check where even a check cannot read the file."""
    from testbed.db.upkeep.soundness import SALVAGE

    try:
        yield
    except StoreDamagedError as error:
        raise StoreDamagedError(error.what, SALVAGE) from error


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
    told: list[str] = []

    def tell(fault: Fault) -> None:
        told.append(fault.text)
        if not as_json:
            say(f"repaired: {fault.text}")

    try:
        done = store.maintenance.repair(lambda: _faults(store, deep, plugins), tell)
    except StoreError as error:
        if as_json:
            print_json({"ok": False, "repaired": told, "error": str(error)})
        raise
    left = [_line(fault) for fault in done.left]
    commands = _commands(done)
    if as_json:
        print_json({"ok": not left, "repaired": told, "left": left, "commands": commands})
        return EXIT_ERROR if left else 0
    for line in left:
        say(f"not repaired: {line}")
    for evaluation in done.hidden:
        say(f"removed: evaluation {evaluation.id} ({evaluation.model} on {evaluation.eval_setting})")
    if commands:
        say("To recompute what was removed, run (with the same --db-url and --plugin):")
        for command in commands:
            click.echo(f"  {command}")
    summary = "nothing to repair" if not told else f"{count(len(told), 'fault')} repaired"
    say(f"{summary}; {count(len(left), 'fault')} left" if left else summary)
    return EXIT_ERROR if left else 0


def _commands(done: RepairReport) -> list[str]:
    """The commands that recompute what a repair dropped, one for each setting."""
    runs: dict[tuple[str, ...], list[str]] = {}
    imports: list[str] = []
    for evaluation in [*done.again, *done.hidden]:
        if evaluation.origin == "imported":
            imports.append(f"testbed import {shlex.quote(evaluation.source or 'FILE')}")
        else:
            runs.setdefault((evaluation.eval_setting, *_options(evaluation)), []).append(evaluation.model)
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
