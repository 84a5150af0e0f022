"""The README's second example, as a reader types it, and what it prints."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from warm_python import WarmPython

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROW = re.compile(r"^ +\d +1–3 +(efficientnet-lite\d) +([\d.]+) %  \[([\d.]+), ([\d.]+)\]", flags=re.MULTILINE)
ALL, ONE = "photos-c", "photos+imagenet-c.fog.3"  # a setting of all takes a seventieth of the time


@pytest.fixture(scope="module")
def section(root: Path) -> list[str]:
    """The blocks of the section."""
    text = (root / "README.md").read_text(encoding="utf-8").partition("## Published networks on photographs\n")[2]
    return re.findall(r"```\n(.*?)```", text.partition("\n## ")[0], flags=re.DOTALL)


@pytest.fixture(scope="module", params=[ONE, pytest.param(ALL, marks=pytest.mark.long)])
def shifts(request: pytest.FixtureRequest) -> Any:
    """The corrupted photographs: some, or all that the README names."""
    return request.param


@pytest.fixture(scope="module")
def start(root: Path, tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython, shifts: str) -> Any:
    """A function that runs ``testbed`` in a folder, with the words of the README; it never fails."""
    folder = tmp_path_factory.mktemp("readme")

    def run(words: list[str], *more: str) -> str:
        done = warm_python.run(root / "tests/support/bin/testbed", [*words, *more], folder, os.environ)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        assert words[0] != "site" or (folder / "site" / "index.html").is_file()
        return done.stdout

    return run


@pytest.fixture(scope="module")
def typed(section: list[str]) -> dict[str, list[str]]:
    """The commands of the section, by the first word of each."""
    installing, *lines = [line.partition("  #")[0] for block in (section[0], section[2]) for line in block.splitlines()]
    assert shlex.split(installing) == ["pip", "install", "-e", ".[lite,photos]"]
    commands = [shlex.split(command) for line in lines for command in line.split("&&")]
    assert {testbed for testbed, *_ in commands} == {"testbed"}
    assert ALL in commands[0]
    return {words[0]: words for _, *words in commands}


@pytest.fixture(scope="module")
def printed(typed: dict[str, list[str]], start: Any, shifts: str) -> dict[str, str]:
    """What each command printed, by its first word."""
    running, *others = typed.values()
    found = {"run": start([shifts if word == ALL else word for word in running], "--executor", "inline")}
    return found | {words[0]: start(words) for words in others}


def test_the_run_has_as_many_cells_as_the_readme_says(printed, typed, start, shifts, root):
    said = re.search(r"classes: (\d+) cells", (root / "README.md").read_text(encoding="utf-8"))[1]
    assert re.search(rf"\b{said} cells", start(typed["run"], "--dry-run"))
    cells = said if shifts == ALL else 6
    assert f"{cells} cells: {cells} complete." in printed["run"]


def test_the_ranks_are_those_of_the_readme(printed, section, shifts):
    said, found = (
        {model: list(map(float, numbers)) for model, *numbers in ROW.findall(text)}
        for text in (section[1], printed["rank"])
    )
    assert len(said) == 3
    assert all(re.search(rf"^ +\d .* {name} ", printed["rank"], re.MULTILINE) for name in said)
    if shifts == ALL:
        assert found == {model: pytest.approx(numbers, abs=3) for model, numbers in said.items()}  # processors round
    assert "tied with all 2 others" in printed["rank"]


def test_four_photographs_decide_nothing_and_the_cat_is_taken_for_another(printed):
    assert re.search(r"^photos +efficientnet-lite0 +efficientnet-lite2 +4 .* tied$", printed["compare"], re.MULTILINE)
    assert re.search(r"chelsea\.png .* 2 of 3 ", printed["hardest"])
