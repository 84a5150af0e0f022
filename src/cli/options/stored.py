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


models_argument = click.argument(
    "models", nargs=-1, required=True, metavar="MODEL...", cls=Argument, shell_complete=stored("model")
)
model_argument = click.argument("model", cls=Argument, shell_complete=stored("model"))
setting_argument = click.argument("setting", cls=Argument, shell_complete=stored("eval setting"))
settings_argument = click.argument(
    "settings", nargs=-1, required=True, metavar="SETTING...", cls=Argument, shell_complete=stored("eval setting")
)
folder_argument = click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
models_option = click.option(
    "--models",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=stored("model"),
    help="Only these models: names or patterns.",
)
settings_option = click.option(
    "--on", "settings", cls=ManyWords, help="Only these eval settings: names or patterns.", **STORED_SETTING
)
required_settings_option = click.option(
    "--on", "settings", cls=ManyWords, required=True, help="The eval settings: names or patterns.", **STORED_SETTING
)
score_option = click.option(
    "--score", metavar="NAME", help="The score of each sample.  [default: the main one of the settings, such as top1]"
)
metric_option = click.option("--metric", metavar="NAME", help="The metric.  [default: the main one of each setting]")
shown_first_option = click.option(  # for the explorer
    "--metric", metavar="NAME", help="The metric that is shown first.  [default: each setting's main one]"
)
pin_option = click.option(  # for the explorer
    "--pin",
    "pins",
    cls=ManyWords,
    help="Models to list first and mark in every view.  [default: beside published values, the one evaluated last]",
    **STORED_MODEL,
)
every_evaluation_option = click.option(
    "--all", "everything", is_flag=True, help="All evaluations of a cell, not only the reported one."
)
unregistered_option = click.option("--override", is_flag=True, help="Accept names that are not in the registry.")
better_option = click.option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    help="Whether higher or lower values are better, for a metric that does not declare it.",
)
limit_option = click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="Print at most N lines."
)


def folder_option(default: str) -> Callable[[F], F]:
    """Adds --out."""
    return click.option(
        "--out", type=click.Path(path_type=Path), default=Path(default), show_default=True, help="The folder."
    )


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
