"""Options that several commands on stored results share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed.console.completion import stored
from testbed.console.options import Argument, ManyWords
from testbed.console.output import say

if TYPE_CHECKING:
    from testbed.db.store import Store

F = TypeVar("F", bound=Callable[..., Any])

STORED_SETTING: dict[str, Any] = {"metavar": "SETTING", "shell_complete": stored("eval setting")}
STORED_MODEL: dict[str, Any] = {"metavar": "MODEL", "shell_complete": stored("model")}


def models_argument(function: F) -> F:
    """Adds the argument MODELS: one or more."""
    return click.argument(
        "models", nargs=-1, required=True, metavar="MODEL...", cls=Argument, shell_complete=stored("model")
    )(function)


def model_argument(function: F) -> F:
    """Adds the argument MODEL."""
    return click.argument("model", cls=Argument, shell_complete=stored("model"))(function)


def setting_argument(function: F) -> F:
    """Adds the argument SETTING."""
    return click.argument("setting", cls=Argument, shell_complete=stored("eval setting"))(function)


def settings_argument(function: F) -> F:
    """Adds the argument SETTINGS: one or more."""
    complete = stored("eval setting")
    return click.argument(
        "settings", nargs=-1, required=True, metavar="SETTING...", cls=Argument, shell_complete=complete
    )(function)


def folder_argument(function: F) -> F:
    """Adds the argument DIR, the output folder, as ``folder``."""
    return click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")(function)


def models_option(function: F) -> F:
    """Adds --models."""
    return click.option(
        "--models",
        cls=ManyWords,
        metavar="NAME",
        shell_complete=stored("model"),
        help="Only these models: names or patterns.",
    )(function)


def settings_option(function: F) -> F:
    """Adds --on, for eval settings."""
    only = "Only these eval settings: names or patterns."
    return click.option("--on", "settings", cls=ManyWords, help=only, **STORED_SETTING)(function)


def required_settings_option(function: F) -> F:
    """Adds --on, for a command that requires eval settings."""
    these = "The eval settings: names or patterns."
    return click.option("--on", "settings", cls=ManyWords, required=True, help=these, **STORED_SETTING)(function)


def score_option(function: F) -> F:
    """Adds --score."""
    return click.option(
        "--score",
        metavar="NAME",
        help="The score of each sample.  [default: the main one of the settings, such as top1]",
    )(function)


def metric_option(function: F) -> F:
    """Adds --metric."""
    of_each = "The metric.  [default: the main one of each setting]"
    return click.option("--metric", metavar="NAME", help=of_each)(function)


def shown_first_option(function: F) -> F:
    """Adds --metric, for the explorer."""
    first = "The metric that is shown first.  [default: each setting's main one]"
    return click.option("--metric", metavar="NAME", help=first)(function)


def pin_option(function: F) -> F:
    """Adds --pin, for the explorer, as ``pins``."""
    first = "Models to list first and mark in every view.  [default: beside published values, the one evaluated last]"
    return click.option("--pin", "pins", cls=ManyWords, help=first, **STORED_MODEL)(function)


def every_evaluation_option(function: F) -> F:
    """Adds --all, as ``everything``."""
    every = "All evaluations of a cell, not only the reported one."
    return click.option("--all", "everything", is_flag=True, help=every)(function)


def folder_option(default: str) -> Callable[[F], F]:
    """Adds --out."""
    return click.option(
        "--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help="The folder."
    )


def unregistered_option(function: F) -> F:
    """Adds --override, for names."""
    return click.option("--override", is_flag=True, help="Accept names that are not in the registry.")(function)


def better_option(function: F) -> F:
    """Adds --better."""
    return click.option(
        "--better",
        type=click.Choice(["higher", "lower"]),
        help="Whether higher or lower values are better, for a metric that does not declare it.",
    )(function)


def limit_option(function: F) -> F:
    """Adds --limit."""
    return click.option(
        "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Print at most N lines."
    )(function)


def note_parts(store: Store, named: Collection[str] = ()) -> None:
    """Prints a note about the parts of settings that are not shown because they were not named."""
    from testbed.db.parts.names import parts_left_out

    if told := parts_left_out(set(store.results.sampled_settings()) - set(named)):
        note(told)


def note(text: str) -> None:
    """Prints a note to stderr, such as which models were left out."""
    say(f"note: {text}", err=True)


def note_counts(left_out: Mapping[str, int]) -> None:
    """Prints a note about what was left out: kind → count."""
    for what, number in left_out.items():
        note(f"{number:,} {what}")
