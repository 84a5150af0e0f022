"""``python -m testbed``, or the command ``testbed``: all programs under one name."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import click

from testbed import __version__
from testbed.console.options import run_command


class _Program(NamedTuple):
    module: str  # its click command is called `command`
    help: str


PROGRAMS = {
    "eval": _Program("testbed.cli.eval", "Run models on eval settings, and store every output and every metric."),
    "db": _Program("testbed.cli.db", "Query and edit the results store."),
    "corrupt": _Program("testbed.cli.corrupt", "Write corrupted copies of a folder of images."),
    "export-wds": _Program("testbed.cli.export_wds", "Write a data set in CLIP benchmark's webdataset format."),
    "site": _Program("testbed.plotting.site", "Write the stored results as a web page."),
    "figures": _Program("testbed.plotting.figures", "Draw what the store holds."),
    "paper-plots": _Program("testbed.plotting.paper_plots", "Draw the figures of ImageNet-testbed's paper."),
}


class _Programs(click.Group):
    """The programs; each is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(PROGRAMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A program by its name."""
        if cmd_name not in PROGRAMS:
            return None
        command: click.Command = import_module(PROGRAMS[cmd_name].module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the programs without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, program.help) for name, program in PROGRAMS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Completes the names of the programs without importing them."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        chosen = {name: program for name, program in PROGRAMS.items() if name.startswith(incomplete)}
        return [CompletionItem(name, help=program.help) for name, program in chosen.items()]


@click.command(cls=_Programs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="testbed %(version)s", help="Print the version and exit.")
def command() -> None:
    """Evaluate models under many settings, and query what is stored.

    COMMAND --help tells a command's options.
    """


def main() -> None:
    """The program."""
    run_command(command)


if __name__ == "__main__":
    main()
