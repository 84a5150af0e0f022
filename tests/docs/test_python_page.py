"""The Python of docs/python.md and of the README's first example runs, and prints what the page says."""

from __future__ import annotations

import os
import re

import pytest
from near_text import assert_near

MARK = "---- next block"
HEADING = "## From Python"


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(warm_python, folder, code: str) -> str:
    (folder / "script.py").write_text(code)
    done = warm_python.run(folder / "script.py", [], folder, dict(os.environ))
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_the_examples_of_the_page_print_what_it_says(root, tmp_path, warm_python, shared_cache):
    text = (root / "docs" / "python.md").read_text(encoding="utf-8")
    code, said = blocks(text, "python"), blocks(text, "text")
    assert len(code) == len(said) > 5
    printed = run(warm_python, tmp_path, f"\nprint({MARK!r})\n".join(code)).split(MARK + "\n")
    for one, other in zip(printed, said, strict=True):
        assert_near(one, other)


def test_the_readmes_call_gives_frames(root, tmp_path, warm_python, shared_cache):
    text = (root / "README.md").read_text(encoding="utf-8").partition(HEADING)[2]
    code = blocks(text, "python")[0]
    code = code.replace("db=", 'executor="inline", db=')  # seconds faster
    printed = run(warm_python, tmp_path, f"{code}\nprint(len(found), *found.frame.columns[:3])")
    assert printed.split() == ["12", "model", "eval_setting", "metric"]
