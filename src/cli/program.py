"""The program ``testbed``; each command's module is imported when the command is called."""

from __future__ import annotations

import click

from testbed import extending
from testbed.console.groups import Group
from testbed.console.options import run_command, version_option
from testbed.extending import SECTIONS as SECTION_HEADINGS

_STORE = "testbed.cli.store"
SECTIONS = {
    SECTION_HEADINGS["evaluate"]: {
        "run": "testbed.cli.eval:run",
        "rescore": "testbed.cli.rescore",
    },
    SECTION_HEADINGS["results"]: {
        "list": "testbed.cli.program:lists",
        "show": "testbed.cli.show",
    },
    SECTION_HEADINGS["analyse"]: {},
    SECTION_HEADINGS["files"]: {
        "store": "testbed.cli.program:store",
        "export": "testbed.cli.program:export",
    },
}


@version_option
@click.command(cls=Group, sections=SECTIONS, extended=extending.COMMAND, headings=SECTION_HEADINGS)
def command() -> None:
    """Evaluate models and query stored results; see COMMAND --help."""


@click.command(
    cls=Group,
    sections={
        "Commands": {
            "models": "testbed.cli.lists:models",
            "settings": "testbed.cli.lists:settings",
            "results": "testbed.cli.lists:results",
        }
    },
)
def lists() -> None:
    """List models, settings and results."""


@click.command(cls=Group, sections={"Commands": {"logits": "testbed.cli.exports.logits"}}, extended=extending.EXPORT)
def export() -> None:
    """Export results, outputs, verdicts and data sets as files."""


@click.command(
    cls=Group,
    sections={
        "State and damage": {
            "status": f"{_STORE}.status",
            "check": f"{_STORE}.check:check",
            "repair": f"{_STORE}.check:repair",
            "salvage": f"{_STORE}.check:salvage",
            "verify": f"{_STORE}.verify",
        },
        "Copies and versions": {
            "backup": f"{_STORE}.copies:backup",
            "copy": f"{_STORE}.copies:copy",
            "merge": f"{_STORE}.copies:merge",
            "upgrade": f"{_STORE}.copies:upgrade",
        },
        "Contents": {
            "add": f"{_STORE}.edit:add",
            "rename": f"{_STORE}.edit:rename",
            "remove": f"{_STORE}.edit:remove",
            "restore": f"{_STORE}.edit:restore",
            "purge": f"{_STORE}.gc:purge",
            "gc": f"{_STORE}.gc",
        },
    },
)
def store() -> None:
    """Manage the store: status, damage, copies, names."""


def main() -> None:
    """Runs the program."""
    run_command(command)
