"""The interface for extensions of ``testbed run``: their options and actions; see `testbed.extending`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from testbed import extending

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.entities import Result
    from testbed.execution.progress import Progress
    from testbed.execution.report import Report
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog


@dataclass(frozen=True)
class RunRequest:
    """A run's request, before it is planned.

    Attributes:
        models: Names, patterns and collections, as the user wrote them; `settings` likewise.
        options: The options of the run.
    """

    models: Sequence[str]
    settings: Sequence[str]
    options: RunOptions

    def but(self, **changes: Any) -> RunRequest:
        """Returns a copy with other values of some attributes."""
        return replace(self, **changes)


class RunPart:
    """An extension's hooks for one run; these do nothing. Subclasses override those that they need.

    The methods are called in the order of their definition.
    """

    def changed(self, request: RunRequest) -> RunRequest:
        """Returns the request with this part's additions."""
        return request

    def settings(self, catalog: Catalog, scorers: Sequence[str]) -> Sequence[str]:
        """Returns the settings of a run that names none; ``scorers`` are as the user wrote them."""
        return ()

    def watching(self, progress: Progress, options: RunOptions) -> AbstractContextManager[Progress]:
        """Returns a context for the run, with the progress to report to in place of ``progress``."""
        return nullcontext(progress)

    def ended(self, report: Report, results: Sequence[Result]) -> None:
        """Called when all cells have ended, within the context of `watching`."""

    def printed(self, catalog: Catalog, options: RunOptions, store: Store, report: Report) -> None:
        """Called when the results are stored and printed."""


@dataclass(frozen=True)
class RunOption:
    """Options that an extension adds to ``testbed run``.

    Attributes:
        parameters: Options of click, see `testbed.console.options.Option`. The first one requests the part.
        part: Makes the part of a run from the values of these options by name; None if the options do not request it.
            The second argument is the request as it is before any part changes it.
        stores: Whether it stores something besides results and is therefore incompatible with ``--no-db``.
    """

    parameters: Sequence[click.Parameter]
    part: Callable[[Mapping[str, Any], RunRequest], RunPart | None]
    stores: bool = False

    @property
    def flag(self) -> str:
        """The option that requests the part."""
        return self.parameters[0].opts[0]


def installed_options() -> Sequence[RunOption]:
    """Returns the options of all installed extensions; a faulty extension is one line on stderr."""
    return tuple(extending.load_all(extending.RUN, lambda line: click.echo(line, err=True)).values())


def parts_of(
    options: Sequence[RunOption], given: dict[str, Any], request: RunRequest, kept: bool
) -> dict[str, RunPart]:
    """Creates the parts of a run, and removes their options from the given ones.

    Args:
        options: The extensions' options.
        given: The values of all options by name.
        kept: Whether the run has a persistent store.

    Returns:
        Requesting option → part.

    Raises:
        click.UsageError: If a part stores something but the run has no store.
    """
    parts = {}
    for option in options:
        values = {str(parameter.name): given.pop(str(parameter.name)) for parameter in option.parameters}
        part = option.part(values, request)
        if part is not None:
            if option.stores and not kept:
                raise click.UsageError(f"{option.flag} adds to the store; it cannot be used with --no-db")
            parts[option.flag] = part
    return parts
