"""Options that take several words."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature

import click
import pytest
from click.testing import CliRunner
from tables import cases

import testbed
from testbed.cli.eval import evaluate
from testbed.cli.options.inputs import InputOptions
from testbed.cli.options.run import OPTIONS
from testbed.cli.options.tasks import TaskOptions
from testbed.console.options import Command, ManyWords, spread
from testbed.graph.options import RunOptions


@cases(
    ("given", "expected"),
    [
        ("--models a b c", "--models a --models b --models c"),
        ("--models a", "--models a"),
        ("--models a b --flag --models c d", "--models a --models b --flag --models c --models d"),
        ("--models=a b", "--models=a --models b"),
        ("--gpus 0 1 --models a", "--gpus 0 --gpus 1 --models a"),
        ("--other x --models a b", "--other x --models a --models b"),
        ("--other x y --models a", "--other x y --models a"),
        ("--models a -v b", "--models a -v b"),
        ("--models", "--models"),
        ("--models a - b", "--models a --models - --models b"),
    ],
)
def test_words_after_an_option_belong_to_it(given, expected):
    assert spread(given.split(), {"--models", "--gpus"}) == expected.split()


@click.command(cls=Command)
@click.option("--models", cls=ManyWords)
@click.option("--gpus", cls=ManyWords, type=int)
@click.option("--pair", nargs=2)
@click.option("--flag", is_flag=True)
def toy_command(models, gpus, pair, flag):
    click.echo(f"{models} {gpus} {pair} {flag}")


def test_a_command_gets_lists():
    result = CliRunner().invoke(toy_command, ["--models", "a", "b,c", "--gpus", "0", "1", "--pair", "x", "y", "--flag"])
    assert result.output.strip() == "('a', 'b,c') (0, 1) ('x', 'y') True"


def test_words_that_belong_to_nothing_are_refused():
    result = CliRunner().invoke(toy_command, ["--flag", "stray"])
    assert result.exit_code == 2
    assert "stray" in result.output


def test_help_shows_that_several_words_may_follow():
    assert "--models TEXT..." in CliRunner().invoke(toy_command, ["--help"]).output


@pytest.mark.parametrize("script", ["eval.py", "db.py", "testbed"])
def test_the_version_is_printed_without_anything_else(program, script):
    done = program(script, "--version")
    assert (done.stdout, done.stderr) == (f"testbed {testbed.__version__}\n", "")


def test_every_option_of_a_run_fills_a_field_or_an_argument_of_its_name():
    given = {each.name for each in OPTIONS} | {"models", "eval_settings"}
    of_run, own = {each.name for each in fields(RunOptions)}, set(signature(evaluate).parameters) - {"given"}
    filled = of_run | own | {each.name for kind in (InputOptions, TaskOptions) for each in fields(kind)}
    assert filled - given == {"inputs", "clear_cache_interval", "progress_interval"}  # of no option of their own
    assert given <= filled


def test_a_run_has_the_same_defaults_on_the_command_line_and_in_python():
    names = {"db": "db_url", "workers": "data_workers"}
    defaults = {
        names.get(each.name, each.name): each.default for each in signature(testbed.evaluate).parameters.values()
    }
    of_run = {each.name: each.default for each in fields(RunOptions) if each.name in defaults}
    assert {name: defaults[name] or None for name in of_run} == {name: of_run[name] or None for name in of_run}
