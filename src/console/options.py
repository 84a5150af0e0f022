"""Shared code of commands: options that take several words, groups, the store, plug-ins, and error reporting."""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from testbed import __version__
from testbed.console import streams
from testbed.console.clearer import clearer
from testbed.console.help import Context
from testbed.console.nearest import other_names
from testbed.console.streams import visible_output
from testbed.errors import TestbedError
from testbed.inputs import ENV_DATA, Inputs, OwnName, active, using
from testbed.paths import ENV_DB, expanded
from testbed.process.ending import ending_at_once
from testbed.process.parent_death import end_children_by_sigterm
from testbed.process.signals import ignore_all, raise_all
from testbed.redaction import redacted
from testbed.registry.own_files import own_path

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130
CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
DB_URL: dict[str, Any] = {
    "metavar": "URL",
    "help": f"The results store: a path or sqlite:///PATH, or postgresql://USER@HOST/DATABASE.  [default: ${ENV_DB},"
    " else testbed.db in the working folder]",
}
DATA_ROOT: dict[str, Any] = {
    "metavar": "DIR",
    "help": f"The folder with the data sets, by name.  [default: ${ENV_DATA}]",
}
_WORDS = "testbed.words"  # key of the command line's words in click's context, for completion


class Option(click.Option):
    """An option that may stand under a heading of the help."""

    def __init__(self, *arguments: Any, heading: str = "Options", **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.heading = heading


class ManyWords(Option):
    """An option that takes one word or several: ``--models resnet50 densenet121``."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        keywords["multiple"] = True
        super().__init__(*arguments, **keywords)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Shows that several words may follow."""
        record = super().get_help_record(ctx)
        return None if record is None else (f"{record[0]}...", record[1])


class Command(click.Command):
    """A command whose `ManyWords` options take all words up to the next option, and whose names may have underscores.

    Args:
        hints: Messages for options that it does not have, by name; the first match is printed. In addition,
            `OTHER_NAMES` suggests the command's own name for an option that other commands name differently.
    """

    context_class = Context

    def __init__(self, *arguments: Any, hints: Mapping[str, str] | None = None, **keywords: Any) -> None:
        keywords.setdefault("context_settings", CONTEXT)
        super().__init__(*arguments, **keywords)
        self.hints = hints or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options under their headings, in the order in which these come first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                heading = parameter.heading if isinstance(parameter, Option) else "Options"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrites ``--models a b`` as ``--models a --models b``, which click understands."""
        known = {name for parameter in self.params for name in (*parameter.opts, *parameter.secondary_opts)}
        args = [with_dashes(arg, known) for arg in args]
        hints = {**self.hints, **other_names(known, self.hints)}
        given = {with_dashes(arg, set(hints)).partition("=")[0] for arg in args} - known
        for name, hint in hints.items():
            if name in given and not ctx.resilient_parsing:
                raise UnknownOption(f"unknown option {name}; {hint}")
        ctx.meta[_WORDS] = args
        try:
            return super().parse_args(ctx, spread(args, set(self._many)))
        except click.UsageError as error:
            raise clearer(error, ctx.command_path, args) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; what it finds missing is reported as what click does."""
        try:
            return super().invoke(ctx)
        except click.MissingParameter as error:
            raise clearer(error, ctx.command_path, ctx.meta.get(_WORDS, ())) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Also completes the second and later words of a `ManyWords` option."""
        option = self.open_option(ctx, incomplete)
        return super().shell_complete(ctx, incomplete) if option is None else option.shell_complete(ctx, incomplete)

    def open_option(self, ctx: click.Context, incomplete: str) -> click.Parameter | None:
        """The `ManyWords` option that the next word belongs to, if there is one."""
        last = next((word for word in reversed(ctx.meta.get(_WORDS, [])) if word.startswith("-")), "")
        return None if incomplete.startswith("-") else self._many.get(last.partition("=")[0])

    @property
    def _many(self) -> dict[str, click.Parameter]:
        return {
            name: parameter for parameter in self.params if isinstance(parameter, ManyWords) for name in parameter.opts
        }


class Argument(click.Argument):
    """An argument of a `Command`; the words that belong to an option are not completed as if they were its own."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the argument, or the option that the word belongs to."""
        command = ctx.command
        option = command.open_option(ctx, incomplete) if isinstance(command, Command) else None
        return super().shell_complete(ctx, incomplete) if option is None else option.shell_complete(ctx, incomplete)


class UnknownOption(click.ClickException):
    """An unknown option or command, and what to use instead."""

    exit_code = 2


def with_dashes(argument: str, known: Collection[str]) -> str:
    """Returns ``--batch_size`` as ``--batch-size`` if only the latter exists; any other argument unchanged."""
    name, mark, value = argument.partition("=")
    dashed = name.replace("_", "-")
    return f"{dashed}{mark}{value}" if name.startswith("--") and name not in known and dashed in known else argument


def spread(arguments: Sequence[str], many: set[str]) -> list[str]:
    """Repeats an option before each word that follows it."""
    spread_out: list[str] = []
    current: str | None = None
    fresh = False
    for argument in arguments:
        name = argument.split("=", 1)[0] if argument.startswith("--") else argument
        if argument.startswith("-") and argument != "-":
            current = name if name in many else None
            fresh = current is not None and "=" not in argument
            spread_out.append(argument)
        elif current is not None and not fresh:
            spread_out += [current, argument]
        else:
            spread_out.append(argument)
            fresh = False
    return spread_out


version_option = click.version_option(__version__, message="testbed %(version)s", help="Print the version and exit.")


def plain_command(function: Callable[..., int]) -> Command:
    """Makes a function a command with -v, passed on if it takes ``verbose``."""
    return _completed(click.command(cls=Command)(function), function)


def store_command(function: Callable[..., int]) -> Command:
    """Makes a function a command on the store, with --db-url, -v, and --json if the function takes ``as_json``.

    Paths of checkpoints in names are made absolute, as in the store.
    """
    command = click.command(cls=_StoreCommand)(function)
    if "as_json" in function.__annotations__:
        command.params.append(Option(["--json", "as_json"], is_flag=True, help="Print JSON."))
    command.params.append(Option(["--db-url"], **DB_URL))
    return _completed(command, function)


def _completed(command: Command, function: Callable[..., int]) -> Command:
    taken, say = "verbose" in function.__annotations__, "Show where errors come from."
    command.params.append(Option(["-v", "--verbose"], is_flag=True, expose_value=taken, callback=_log, help=say))
    return command


class _StoreCommand(Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [as_stored(word) for word in args]
        if any(map(own_path, words)):
            named = {own_name.reference: own_name.name for own_name in reversed(_own_names(_value(args, "--db-url")))}
            words = [named.get(word, word) for word in words]
        return super().parse_args(ctx, words)


def use_own_names(url: str | None) -> None:
    """Activates the store's short names of models in files until the command ends."""
    use(replace(active(), own_names=_own_names(url)))


def _own_names(url: str | None) -> tuple[OwnName, ...]:
    from testbed.planning.own_names import own_names_of

    return own_names_of(url)


def _value(args: Sequence[str], option: str) -> str | None:
    """The value of an option in the words of a command line."""
    for place, word in enumerate(args):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return args[place + 1] if place + 1 < len(args) else None
    return None


def as_stored(word: str) -> str:
    """A name as the store has it: with a file's full path, and an ensemble's members sorted by name."""
    if not word.startswith(("ensemble", "soup")):
        return with_full_path(word)
    from testbed.models.made.names import with_members

    return with_members(word, with_full_path)


def with_full_path(word: str) -> str:
    """``ARCH,FILE`` with the file's full path if it exists; any other word unchanged."""
    arch, _, path = word.partition(",")
    file = expanded(path)
    return f"{arch},{file.absolute()}" if ("/" in path or file.suffix) and os.path.isfile(file) else word


def _log(_: click.Context, __: click.Parameter, verbose: bool) -> bool:
    set_up_logging(verbose, lambda line: click.echo(line, err=True))
    return verbose


def _resolved(_: click.Context, __: click.Parameter, files: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(expanded(file).resolve()) for file in files)


PLUGIN: dict[str, Any] = {
    "metavar": "FILE",
    "callback": _resolved,
    "help": "Python files that define models or eval settings (files written for ImageNet-testbed also work), or YAML"
    " files"
    " of CLIP-CC-Bench, which define decoders.",
}


label_option = click.option(
    "--label",
    "labels",
    cls=ManyWords,
    metavar="NAME",
    help="Models whose points are always labelled: names or patterns. Extreme points are labelled where there is room.",
)
plugin_option = click.option("--plugin", "plugins", cls=ManyWords, **PLUGIN)
# In effect until the command ends; it is not passed to the function.
data_root_option = click.option(
    "--data-root",
    expose_value=False,
    callback=lambda _, __, value: use(Inputs.from_environment().but(data_root=value)),
    **DATA_ROOT,
)


def use(inputs: Inputs) -> None:
    """Activates inputs until the command ends."""
    click.get_current_context().with_resource(using(inputs))


def run_command(command: click.Command) -> None:
    """Runs a command as a program: a user's mistake prints one clear line, never a traceback."""
    raise_all()
    end_children_by_sigterm()
    with ending_at_once(sys._getframe(1)), visible_output():
        _run(command)


def _check_working_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise TestbedError(f"the working folder cannot be used ({error.strerror}); cd to another one") from error


def _run(command: click.Command) -> None:
    try:
        _check_working_folder()
        code = command.main(standalone_mode=False)
        ignore_all()
        sys.stdout.flush()
    except click.exceptions.Abort:
        fail("interrupted", EXIT_INTERRUPTED)
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        click.echo(told.getvalue(), err=True, nl=False)
        sys.exit(error.exit_code)
    except TestbedError as error:
        logging.getLogger("testbed").debug("failed", exc_info=True)
        fail(str(error), EXIT_ERROR)
    except KeyboardInterrupt:
        fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has exited, as after "| head"
        _discard_output()
        sys.exit(EXIT_ERROR)
    except OSError as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if frame.name not in ("echo", "_run") and frame.filename != streams.__file__:  # not from writing our output
            if error.filename is None:
                raise
            logging.getLogger("testbed").debug("failed", exc_info=True)
            fail(f"{error.filename} cannot be read or written: {error.strerror or error}", EXIT_ERROR)
        _discard_output()
        fail(f"the output cannot be written: {error.strerror or error}", EXIT_ERROR)
    except Exception as error:
        if not _follows_interrupt(error):
            raise
        fail("interrupted", EXIT_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _follows_interrupt(error: BaseException | None) -> bool:
    """Returns whether an error was raised while Ctrl-C interrupted something, such as a library opening a file."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__context__ or error.__cause__
    return False


def _discard_output() -> None:
    """Drops the rest of the output, which cannot be written: a disk is full, or the reader has exited."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> None:
    """Prints an error and ends the program; Ctrl-C has no effect from here on."""
    ignore_all()
    click.echo(f"Error: {message}", err=True)
    sys.exit(code)


def set_up_logging(verbose: bool, write: Callable[[str], None]) -> None:
    """Sends testbed's log lines to a function."""
    logger = logging.getLogger("testbed")
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.handlers = [_Lines(write)]
    logger.propagate = False


class _Lines(logging.Handler):
    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the message, and its traceback if there is one."""
        self._write(redacted(self.format(record)))
