"""Entry points that extend testbed, all of the group ``testbed.extensions``.

An installed package extends testbed by entry points of this group, which are named ``KIND.NAME``. Testbed's own
extensions, the packages in `testbed.extensions` and `testbed.plotting`, come in the same way, and the rest of testbed
imports none of them. Names come from the metadata of the installed packages; nothing is imported before it is used.

=====================  ============================  ==================================================================
entry point            object                        used by
=====================  ============================  ==================================================================
command.SECTION.NAME   a command of click            ``testbed NAME``; `SECTIONS` has the headings of the help
export.NAME            a command of click            ``testbed export NAME``
run.NAME               a `testbed.cli.run.part.      ``testbed run`` and ``eval.py``: further options, and what they do
                       RunOption`
hook.NAME              a class, see                  every run: what is done with its results besides storing
                       `testbed.execution.state.     them
                       Hook`
results.NAME           ``f(results, ...)``           ``testbed.results().NAME(...)``, a method of its results
executor.NAME          a class, see                  ``testbed run --executor NAME``
                       `testbed.execution.executors`
definitions.NAME       a package                     every run: its modules register models and eval settings
claims.NAME            a `testbed.claims.form.Form`  readers of published values, by the form of their files
importer.NAME          ``f(store, source, ...)``     ``testbed import``: reads files of published values
site.NAME              ``f(store, folder, title)``   ``testbed publish``: writes web pages, returns the number of files
=====================  ============================  ==================================================================

Models, eval settings and metrics of other packages need none of these: they are registered by the entry points of the
group ``testbed.plugins``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from testbed.calls import catchable, reason_of
from testbed.errors import ExtensionError
from testbed.installed import installed_points

GROUP = "testbed.extensions"
ENV_NO_EXTENSIONS = "TESTBED_NO_EXTENSIONS"
COMMAND, EXPORT, RUN, HOOK, RESULTS, EXECUTOR = "command", "export", "run", "hook", "results", "executor"
DEFINITIONS, CLAIMS, IMPORTER, SITE = "definitions", "claims", "importer", "site"
SECTIONS = {"evaluate": "Evaluate", "results": "Look at results", "analyse": "Analyse", "files": "Store and files"}


def names(kind: str) -> list[str]:
    """Returns the names of all installed entry points of a kind, in alphabetical order."""
    return sorted(_installed().get(kind, ()))


def load(kind: str, name: str) -> Any:
    """Imports the object of an entry point.

    Raises:
        ExtensionError: If there is none of this name, several packages have one, or importing it fails.
    """
    points = _installed().get(kind, {}).get(name, ())
    if not points:
        raise ExtensionError(f"no installed extension has {kind}.{name}")
    if len(points) > 1:
        packages = " and ".join(sorted(map(_package, points)))
        raise ExtensionError(f"{packages} both have an extension {kind}.{name}; uninstall one of them")
    try:
        with catchable():
            return points[0].load()
    except Exception as error:
        raise ExtensionError(
            f"the extension {kind}.{name} of {_package(points[0])} cannot be loaded: {reason_of(error)}; uninstall it,"
            f" or set {ENV_NO_EXTENSIONS}=1 to do without extensions"
        ) from error


def load_all(kind: str, note: Callable[[str], None]) -> dict[str, Any]:
    """Imports the objects of all entry points of a kind.

    Args:
        kind: The kind.
        note: Receives a line for each entry point that cannot be loaded; the others are returned.

    Returns:
        Name → object, in alphabetical order.
    """
    loaded = {}
    for name in names(kind):
        try:
            loaded[name] = load(kind, name)
        except ExtensionError as error:
            note(str(error))
    return loaded


@cache
def _installed() -> Mapping[str, Mapping[str, Sequence[EntryPoint]]]:
    """Returns kind → name → entry points; several if packages disagree about a name."""
    points_by_kind: dict[str, dict[str, list[EntryPoint]]] = {}
    if os.environ.get(ENV_NO_EXTENSIONS):
        return points_by_kind
    for entry_point in installed_points(GROUP):
        kind, _, name = entry_point.name.partition(".")
        same = points_by_kind.setdefault(kind, {}).setdefault(name, [])
        if entry_point.value not in (other.value for other in same):  # a package may be found twice on the path
            same.append(entry_point)
    return points_by_kind


def _package(entry_point: EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist else entry_point.value
