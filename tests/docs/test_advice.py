"""Advice in messages: every command and option that the code names is one of today's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from testbed.cli import program

ROOT = Path(__file__).parent.parent.parent
GAP = "\0"  # in place of what an f-string fills in
COMMAND = re.compile(r"(?<![\w./-])testbed((?: [a-z][a-z-]*)+)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*\0?")
# After these words, "testbed" is a name in a sentence.
PROSE = frozenset("has have reads writes needs created cannot does from random".split())
# Texts that name the options of other programs, or of ImageNet-testbed's scripts.
FOREIGN = re.compile(
    r"pip install|pg_dump|ray start|inspect |git |python db\.py|eval\.py|ImageNet-testbed|--mode eval|--add-…"
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The strings of a file that are not docstrings, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            parts.update(id(each) for each in ast.walk(node) if each is not node and isinstance(each, ast.Constant))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(each.value) if isinstance(each, ast.Constant) else GAP for each in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def found(words: list[str]) -> tuple[click.Command, int]:
    """The command that words begin with, and how many of them name it."""
    command: click.Command = program.command
    for number, word in enumerate(words):
        inner = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if inner is None:
            return command, number
        command = inner
    return command, len(words)


@cache
def commands() -> tuple[click.Command, ...]:
    def below(command: click.Command) -> Iterator[click.Command]:
        yield command
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                inner = command.get_command(click.Context(command), name)
                assert inner is not None
                yield from below(inner)

    return tuple(below(program.command))


@cache
def options(command: click.Command) -> frozenset[str]:
    return frozenset(name for each in command.params for name in (*each.opts, *each.secondary_opts)) | {"--help"}


def wrong(text: str) -> Iterator[str]:
    """What a text advises that there is not."""
    named = []
    for words in (match[1].split() for match in COMMAND.finditer(text)):
        command, number = found(words)
        if number == 0 and words[0] in PROSE:
            continue
        if number == 0 or (isinstance(command, click.Group) and number < len(words)):
            yield f"testbed {' '.join(words)}"
        named.append(command)
    known = frozenset().union(*map(options, commands()))
    of_one = options(named[0]) if len(named) == 1 else known
    for option in OPTION.findall(text):
        if FOREIGN.search(text):
            continue
        if option.rstrip(GAP) not in known:
            yield option.replace(GAP, "…")
        elif named and option not in of_one and text.find(option) > text.find("testbed "):
            yield f"{option}, which testbed {named[0].name} does not have"


@pytest.mark.parametrize("package", ["src", "db", "plotting", "extensions"])
def test_what_messages_advise_is_there(package: str) -> None:
    stale = [
        f"{path.relative_to(ROOT)}:{line}: {each}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if "tests" not in path.relative_to(ROOT).parts
        for line, text in texts(path)
        if len(text.split()) > 2
        for each in wrong(text)
    ]
    assert stale == []
