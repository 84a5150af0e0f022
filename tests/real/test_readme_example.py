"""The README's second example, as a reader types it, and what it prints."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from warm_python import WarmPython

pytestmark = [pytest.mark.real, pytest.mark.slow]

ROW = re.compile(r"^ +\d +1–3 +(efficientnet-lite\d) +([\d.]+) %  \[([\d.]+), ([\d.]+)\]", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def section(root: Path) -> list[str]:
    """The blocks of the section."""
    text = (root / "README.md").read_text(encoding="utf-8").partition("## Published networks on photographs\n")[2]
    return re.findall(r"```\n(.*?)```", text.partition("\n## ")[0], flags=re.DOTALL)


@pytest.fixture(scope="module")
def printed(section: list[str], root: Path, tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython) -> dict:
    """What each command printed, by its first word; none failed."""
    folder = tmp_path_factory.mktemp("readme")
    installing, *lines = [line.partition("  #")[0] for block in (section[0], section[2]) for line in block.splitlines()]
    assert shlex.split(installing) == ["pip", "install", "-e", ".[lite,photos]"]
    found = {}
    for words in (shlex.split(command) for line in lines for command in line.split("&&")):
        assert words.pop(0) == "testbed"
        inline = ["--executor", "inline"] if words[0] == "run" else []
        done = warm_python.run(root / "tests/support/bin/testbed", [*words, *inline], folder, os.environ)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        found[words[0]] = done.stdout
    assert (folder / "site" / "index.html").is_file()
    return found


def test_the_run_has_as_many_cells_as_the_readme_says(printed, section, root):
    said = re.search(r"classes: (\d+) cells", (root / "README.md").read_text(encoding="utf-8"))
    assert f"{said[1]} cells: {said[1]} complete." in printed["run"]


def test_the_ranks_are_those_of_the_readme(printed, section):
    said, found = (
        {model: list(map(float, numbers)) for model, *numbers in ROW.findall(text)}
        for text in (section[1], printed["rank"])
    )
    assert len(said) == 3
    assert found == {model: pytest.approx(numbers, abs=3) for model, numbers in said.items()}  # processors round
    assert "tied with all 2 others" in printed["rank"]


def test_four_photographs_decide_nothing_and_the_cat_is_taken_for_another(printed):
    assert re.search(r"^photos +efficientnet-lite0 +efficientnet-lite2 +4 .* tied$", printed["compare"], re.MULTILINE)
    assert re.search(r"chelsea\.png .* 2 of 3 ", printed["hardest"])
