"""The plug-ins of docs/adding-a-metric.md and docs/adding-a-judge.md do what the pages say, and a change counts."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from near_text import assert_near

EXAMPLE = re.compile(
    r"`(\w+\.py)`:\n\n```python\n(.*?)```\n\n```\n(testbed run .*?)\n```\n\n```text\n(.*?)```", re.DOTALL
)
# What is changed in a file, and how its cells then end: nothing but scores, and what judges say, is computed again.
CHANGES = {
    "distance.py": ("distances = (", "distances = 2 * (", "2 derived"),
    "brief.py": ("words == 1", "words <= 4", "2 derived"),
    "sentence.py": ('("yes", "no")', '("no", "yes")', "2 scored"),
}


def examples(root: Path) -> dict[str, tuple[str, str, str]]:
    """File → its text, the command, and what the command prints."""
    pages = [(root / "docs" / name).read_text(encoding="utf-8") for name in ("adding-a-metric.md", "adding-a-judge.md")]
    return {name: tuple(rest) for page in pages for name, *rest in EXAMPLE.findall(page)}


@pytest.mark.parametrize("name", CHANGES)
def test_a_plug_in_of_the_page_prints_what_it_says(
    root: Path, tmp_path: Path, warm_python: Any, shared_cache: Any, name: str
) -> None:
    code, command, said = examples(root)[name]
    environment = {**os.environ, "TESTBED_DB": str(tmp_path / "testbed.db")}

    def run() -> str:
        words = [*shlex.split(command)[1:], "--executor", "inline"]
        done = warm_python.run(root / "tests/support/bin/testbed", words, tmp_path, environment)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    (tmp_path / name).write_text(code, encoding="utf-8")
    assert_near(run().partition("\n\n")[0], said)
    assert "2 cells: 2 stored" in run()
    before, after, ends = CHANGES[name]
    assert code.count(before) == 1
    (tmp_path / name).write_text(code.replace(before, after), encoding="utf-8")
    assert f"2 cells: {ends}" in run()


def test_every_example_of_the_pages_is_run(root: Path) -> None:
    assert set(examples(root)) == set(CHANGES)
