"""What both commands share: options that take several words, the store, plug-ins, and how errors are told."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from testbed import __version__
from testbed.console import streams
from testbed.console.called import as_called
from testbed.console.ending import ending_at_once
from testbed.console.streams import visible_output
from testbed.errors import TestbedError
from testbed.inputs import ENV_CHECKPOINTS, ENV_DATA, ENV_LMU_DATA, ENV_PREDICTIONS, Inputs, using
from testbed.paths import ENV_DB
from testbed.process.parent_death import end_children_by_sigterm
from testbed.redaction import redacted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])

EXIT_ERROR = 1
EXIT_INTERRUPTED = 130
_WORDS = "testbed.words"  # of the command line, as click keeps them for the completion


class ManyWords(click.Option):
    """An option that takes one word or several: ``--models resnet50 densenet121``."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        keywords["multiple"] = True
        super().__init__(*arguments, **keywords)

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Shows that several words may follow."""
        record = super().get_help_record(ctx)
        return None if record is None else (f"{record[0]}...", record[1])


class ManyWordsCommand(click.Command):
    """A command whose `ManyWords` options take all words up to the next option, and whose names may have underscores.

    It has ``--version``.

    Args:
        hints: What to say of options of other programs, by name.
    """

    def __init__(self, *arguments: Any, hints: Mapping[str, str] | None = None, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.hints = hints or {}
        self.params.append(
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Print the version and exit.",
            )
        )

    def get_help(self, ctx: click.Context) -> str:
        """The help, with examples as the program was called."""
        return as_called(super().get_help(ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Writes ``--models a b`` as ``--models a --models b``, which click understands."""
        known = {name for each in self.params for name in (*each.opts, *each.secondary_opts)}
        args = [with_dashes(each, known) for each in args]
        for name in (with_dashes(each, set(self.hints)).partition("=")[0] for each in args):
            if name in self.hints and name not in known and not ctx.resilient_parsing:
                raise click.UsageError(f"there is no option {name}; {self.hints[name]}", ctx)
        ctx.meta[_WORDS] = args
        return super().parse_args(ctx, spread(args, set(self._many)))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Completes the second word of a `ManyWords` option, too, and those after it."""
        last = next((each for each in reversed(ctx.meta.get(_WORDS, [])) if each.startswith("-")), "")
        option = self._many.get(last.partition("=")[0])
        if option is None or incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return option.shell_complete(ctx, incomplete)

    @property
    def _many(self) -> dict[str, click.Parameter]:
        return {name: each for each in self.params if isinstance(each, ManyWords) for name in each.opts}


def _print_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(f"testbed {__version__}")
        context.exit()


def with_dashes(argument: str, known: Collection[str]) -> str:
    """``--batch_size`` as ``--batch-size``, if only the latter is known; any other argument as it is."""
    name, mark, value = argument.partition("=")
    dashed = name.replace("_", "-")
    return f"{dashed}{mark}{value}" if name.startswith("--") and name not in known and dashed in known else argument


def spread(arguments: Sequence[str], many: set[str]) -> list[str]:
    """Repeats an option before each word that follows it.

    Args:
        arguments: The command line.
        many: The options that take several words.
    """
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


def store_options(function: F) -> F:
    """--db-url and --plugin, which both commands have."""
    function = click.option(
        "--plugin",
        "plugins",
        cls=ManyWords,
        metavar="FILE",
        help="Python files that define models or eval settings (files written for ImageNet-testbed, too), or"
        " YAML files of CLIP-CC-Bench, which define decoders.",
    )(function)
    return click.option(
        "--db-url",
        metavar="URL",
        help=f"The results store: a path or sqlite:///PATH, or postgresql://USER@HOST/DATABASE."
        f"  [default: ${ENV_DB}, else testbed.db in the working folder]",
    )(function)


def data_root_option(function: F) -> F:
    """--data-root."""
    return click.option(
        "--data-root", metavar="DIR", help=f"The folder with the data sets, by name.  [default: ${ENV_DATA}]"
    )(function)


def use(inputs: Inputs) -> None:
    """Makes inputs the active ones until the command ends."""
    click.get_current_context().with_resource(using(inputs))


def predictions_option(function: F) -> F:
    """--predictions."""
    return click.option(
        "--predictions",
        metavar="DIR",
        help=f"The folder with recorded predictions, for models named replay:NAME.  [default: ${ENV_PREDICTIONS}]",
    )(function)


def checkpoints_option(function: F) -> F:
    """--checkpoints."""
    return click.option(
        "--checkpoints",
        metavar="DIR",
        help="The folder with the checkpoints of models that files of ImageNet-testbed define, by the model's name."
        f"  [default: ${ENV_CHECKPOINTS}]",
    )(function)


def lmu_data_option(function: F) -> F:
    """--lmu-data."""
    return click.option(
        "--lmu-data",
        metavar="DIR",
        help="VLMEvalKit's folder of tables, with DIR/NAME.tsv and pictures in DIR/images."
        f"  [default: ${ENV_LMU_DATA}, else ~/LMUData]",
    )(function)


def run_command(command: click.Command) -> None:
    """Runs a command as a program: a user's mistake gives one clear line, never a traceback."""
    signal.signal(signal.SIGTERM, _interrupt)
    end_children_by_sigterm()
    with ending_at_once(sys._getframe(1)), visible_output():
        _run(command)


def _run(command: click.Command) -> None:
    try:
        code = command.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        fail("interrupted", EXIT_INTERRUPTED)
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        click.echo(as_called(told.getvalue()), err=True, nl=False)
        sys.exit(error.exit_code)
    except TestbedError as error:
        logging.getLogger("testbed").debug("failed", exc_info=True)
        fail(str(error), EXIT_ERROR)
    except KeyboardInterrupt:
        fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, as after "| head"
        _discard_output()
        sys.exit(EXIT_ERROR)
    except OSError as error:
        if not _is_of_output(traceback.extract_tb(error.__traceback__)[-1]):
            raise
        _discard_output()
        fail(f"the output cannot be written: {error.strerror or error}", EXIT_ERROR)
    sys.exit(code if isinstance(code, int) else 0)


def _is_of_output(frame: traceback.FrameSummary) -> bool:
    """Whether an error comes from writing our output."""
    return frame.name in ("echo", "_run") or frame.filename == streams.__file__


def _discard_output() -> None:
    """Drops what is left of the output, which cannot be written: a disk is full, or nobody reads it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> None:
    """Prints an error and ends the program."""
    click.echo(f"Error: {as_called(message)}", err=True)
    sys.exit(code)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt


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
        """Writes the message, with its traceback if it has one."""
        self._write(as_called(redacted(self.format(record))))
