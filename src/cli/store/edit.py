"""The actions of ``db.py`` that edit the store: add, hide, restore, rename and delete names and evaluations."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.console.called import as_called
from testbed.console.output import count
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from testbed.db.names import Kind

MODEL: Kind = "model"
SETTING: Kind = "eval setting"
_SHOWN = 5  # files


def add(kind: Kind, names: Sequence[str], given: dict[str, Any]) -> int:
    """Adds names of the registry to the store; with --override also names that it does not have."""
    from testbed.db.store import Store
    from testbed.registry import registry

    registry.load(given["plugins"])
    table: Any = registry.models if kind == MODEL else registry.eval_settings
    fields: dict[str, dict[str, Any]] = {}
    for name in names:
        if given["override"] and name not in table:
            fields[name] = {}
            continue
        definition = table.get(name)
        fields[name] = (
            {"model_type": definition.model_type}
            if kind == MODEL
            else {"parent": definition.parent_eval_setting, "task": definition.task}
        )
    with Store.create(given["db_url"]) as store:
        for name in names:
            fresh = store.add_name(kind, name, **fields[name])
            click.echo(f"{kind} {name}: {'added to the store' if fresh else 'already in the store'}")
    return 0


def remove(kind: Kind, names: Sequence[str], given: dict[str, Any]) -> int:
    """Hides names and their evaluations."""
    from testbed.db.store import Store

    with Store.open(given["db_url"], "write") as store:
        for name in names:
            hidden = store.hide(kind, name)
            undo = shlex.join([*as_called("python db.py").split(), f"--restore-{kind.replace(' ', '-')}", name])
            click.echo(f"{kind} {name} and {count(hidden, 'evaluation')} removed; {undo} undoes it")
    return 0


def restore(kind: Kind, names: Sequence[str], given: dict[str, Any]) -> int:
    """Undoes `remove`."""
    from testbed.db.store import Store

    with Store.open(given["db_url"], "write") as store:
        for name in names:
            click.echo(f"{kind} {name} and {count(store.unhide(kind, name), 'evaluation')} restored")
    return 0


def remove_evaluation(given: dict[str, Any]) -> int:
    """Hides the evaluations of a cell."""
    from testbed.db.store import Store

    model, setting = given["remove_evaluation"]
    with Store.open(given["db_url"], "write") as store:
        hidden = store.hide_evaluations(model, setting)
    undo = shlex.join([*as_called("python db.py").split(), "--restore-evaluation", model, setting])
    click.echo(f"{count(hidden, 'evaluation')} of {model} on {setting} removed; {undo} undoes it")
    return 0


def restore_evaluation(given: dict[str, Any]) -> int:
    """Undoes `remove_evaluation`."""
    from testbed.db.store import Store

    model, setting = given["restore_evaluation"]
    with Store.open(given["db_url"], "write") as store:
        click.echo(f"{count(store.unhide_evaluations(model, setting), 'evaluation')} of {model} on {setting} restored")
    return 0


def purge(given: dict[str, Any]) -> int:
    """Permanently deletes what was removed."""
    from testbed.db.store import Store

    if not given["override"]:
        raise TestbedError(
            "--purge permanently deletes everything that was removed, including outputs; add --override to confirm"
        )
    left: list[tuple[str, str]] = []
    with Store.open(given["db_url"], "write", given["payload_url"]) as store:
        evaluations, names = store.purge_hidden(lambda uri, why: left.append((uri, why)))
    click.echo(f"{count(evaluations, 'evaluation')} and {count(names, 'name')} deleted")
    for uri, why in left[:_SHOWN]:
        click.echo(f"note: the file {uri} stays: {why}", err=True)
    if left:
        click.echo(
            f"note: {count(len(left), 'file')} in all; if outputs of this store were moved there, or the store was,"
            " name their place with --payload-url",
            err=True,
        )
    return 0


def rename(kind: Kind, names: Sequence[str], given: dict[str, Any]) -> int:
    """Renames a model or setting in the store."""
    from testbed.db.store import Store

    old, new = names
    with Store.open(given["db_url"], "write") as store:
        store.rename(kind, old, new)
    click.echo(f"{kind} {old} renamed to {new} in the store; rename its definition too")
    return 0
