"""Groups of commands: each command is imported when it is called; extensions add theirs."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from testbed import extending
from testbed.console.help import Context
from testbed.console.nearest import nearest_commands
from testbed.console.options import CONTEXT, UnknownOption
from testbed.errors import ExtensionError


class Group(click.Group):
    """A group of commands under headings; each is imported when called, and all of them for the help.

    Args:
        sections: Heading → name → the command's module, with its attribute if that is not called `command`.
        extended: The kind of the entry points whose commands belong to this group, see `testbed.extending`.
        headings: Section of an entry point ``SECTION.NAME`` → heading. Without headings, all are listed under the first
            one.
    """

    context_class = Context

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Mapping[str, str]],
        extended: str = "",
        headings: Mapping[str, str] | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*arguments, context_settings=CONTEXT, **keywords)
        self._own = sections
        self._extended = extended
        self._headings = headings

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """Heading → name → the command's module, or its entry point with a leading ``KIND.``."""
        sections = {heading: dict(section) for heading, section in self._own.items()}
        own = {name for section in sections.values() for name in section}
        for found in extending.names(self._extended) if self._extended else ():
            section, _, name = found.rpartition(".")
            heading = self._headings.get(section, section.capitalize()) if self._headings else next(iter(sections))
            if name not in own:
                sections.setdefault(heading, {})[name] = found
        return sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names, in the order of the help."""
        return [name for section in self.sections.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command by its name; raises ExtensionError if it belongs to an extension that cannot be loaded."""
        command: click.Command
        for section in self._own.values():  # first, since searching entry points takes time
            if cmd_name in section:
                module, _, attribute = section[cmd_name].partition(":")
                command = getattr(import_module(module), attribute or "command")
                return command
        for section in self.sections.values():
            if cmd_name in section:
                command = extending.load(self._extended, section[cmd_name])
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the first word names.

        Raises:
            UnknownOption: If the command is unknown; the message names the nearest one, also of other groups.
        """
        word = args[0] if args else ""
        if ctx.resilient_parsing or not word or word.startswith("-") or self.get_command(ctx, word) is not None:
            return super().resolve_command(ctx, args)
        near = nearest_commands(ctx, word)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        raise UnknownOption(
            f"unknown command {ctx.command_path} {word}; {meant}{ctx.command_path} --help lists the commands"
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands under their headings; for one that cannot be loaded, the reason."""
        for heading, section in self.sections.items():
            if section:
                with formatter.section(heading):
                    formatter.write_dl([(name, self._short_help(ctx, name)) for name in section])

    def _short_help(self, ctx: click.Context, name: str) -> str:
        try:
            command = self.get_command(ctx, name)
        except ExtensionError as error:
            return str(error)
        return "" if command is None else command.get_short_help_str(90)
