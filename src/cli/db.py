"""``db.py``: ImageNet-testbed's options, each mapped to a command of ``testbed``."""

from __future__ import annotations

from typing import Any, NamedTuple

import click

from testbed.cli.program import command as testbed
from testbed.console.completion import registered, stored
from testbed.console.options import DB_URL, PLUGIN, Command, ManyWords, Option, run_command, version_option


class _Action(NamedTuple):
    words: str  # the command of testbed; the option's arguments are appended
    metavar: str
    help: str
    complete: Any = None


_MODEL, _SETTING = stored("model"), stored("eval setting")
ACTIONS = {
    "--print-eval": _Action("show", "MODEL SETTING", "Print the metrics of a model on a setting."),
    "--save-logits": _Action("export logits", "SETTING DIR", "Write the logits of all models on a setting to files."),
    "--list-models-registry": _Action("list models", "", "List the models that can be run."),
    "--list-models-db": _Action("list models --stored", "", "List the models in the store."),
    "--list-eval-settings-registry": _Action("list settings", "", "List the eval settings that can be run."),
    "--list-parent-eval-settings-registry": _Action(
        "list settings --parents", "", "List the eval settings that have no parent."
    ),
    "--list-eval-settings-db": _Action("list settings --stored", "", "List the eval settings in the store."),
    "--add-model": _Action("store add model", "NAME", "Add models of the registry to the store.", registered("model")),
    "--add-eval-setting": _Action(
        "store add setting", "NAME", "Add eval settings of the registry to the store.", registered("eval setting")
    ),
    "--rename-model": _Action("store rename model", "OLD NEW", "Rename a model in the store.", _MODEL),
    "--rename-eval-setting": _Action(
        "store rename setting", "OLD NEW", "Rename an eval setting in the store.", _SETTING
    ),
    "--remove-model": _Action("store remove model", "NAME", "Hide models and their evaluations.", _MODEL),
    "--remove-eval-setting": _Action(
        "store remove setting", "NAME", "Hide eval settings and their evaluations.", _SETTING
    ),
    "--remove-evaluation": _Action("store remove evaluation", "MODEL SETTING", "Hide the evaluations of a cell."),
    "--import-results": _Action("import", "FILE", "Import results under the names in their file."),
    "--export-csv": _Action("export csv", "FILE", "Write ImageNet-testbed's table of results."),
    "--check": _Action("store check", "", "Look for damage in the store."),
}


def _option(flag: str, action: _Action) -> Option:
    if not action.metavar:
        return Option([flag], is_flag=True, help=action.help)
    more = {"metavar": action.metavar, "help": action.help, "shell_complete": action.complete}
    return Option([flag], nargs=2, **more) if " " in action.metavar else ManyWords([flag], **more)


def run(
    as_json: bool, override: bool, verbose: bool, db_url: str | None, plugins: tuple[str, ...], **given: Any
) -> int:
    """Runs the commands that the options name, given as their values."""
    asked = [flag for flag in ACTIONS if given[_name(flag)]]
    # Commands that change the store come first.
    asked.sort(key=lambda flag: not ACTIONS[flag].words.startswith("store"))
    if not asked:
        raise click.UsageError("no action given; --help lists the actions, and testbed --help all commands")
    common = {
        "as_json": ["--json"] * as_json,
        "override": ["--override"] * override,
        "verbose": ["--verbose"] * verbose,
        "db_url": ["--db-url", db_url] if db_url else [],
        "plugins": ["--plugin", *plugins] if plugins else [],
    }
    codes = []
    for flag in asked:
        names, words = given[_name(flag)], ACTIONS[flag].words.split()
        known = {parameter.name for parameter in _command(words).params}
        words += [word for name, said in common.items() if name in known for word in said]
        words += [] if names is True else ["--", *names]
        codes.append(testbed.main(words, prog_name="testbed", standalone_mode=False))
    return max(code if isinstance(code, int) else 0 for code in codes)


def _name(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def _command(words: list[str]) -> click.Command:
    found: click.Command = testbed
    for word in words:
        if isinstance(found, click.Group):
            found = found.get_command(click.Context(found), word) or found
    return found


command = Command(
    "db.py",
    callback=run,
    params=[
        *(_option(flag, action) for flag, action in ACTIONS.items()),
        Option(["--override"], is_flag=True, help="Allow --add-… to add names that are not in the registry."),
        Option(["--json", "as_json"], is_flag=True, help="Print JSON."),
        Option(["--db-url"], **DB_URL),
        ManyWords(["--plugin", "plugins"], **PLUGIN),
        Option(["-v", "--verbose"], is_flag=True, help="Show where errors come from."),
    ],
    help="""Query and edit the results store with ImageNet-testbed's options.

testbed --help lists all commands; testbed show is --print-eval with more options.

\b
Examples:
  python db.py --print-eval digits-cnn digits
  python db.py --save-logits digits out/
  python db.py --list-models-registry | grep resnet""",
)
version_option(command)


def main() -> None:
    """Runs the program."""
    run_command(command)
