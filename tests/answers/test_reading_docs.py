"""The examples in docs/reading-answers.md are what the rules read."""

from __future__ import annotations

import re

import pytest

from testbed.answers.scorings import RULES, SCORINGS

ANIMALS = {"A": "cat", "B": "dog", "C": "bird", "D": "fish", "answer": "B"}


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "reading-answers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("title", "name", "columns"),
    [("Multiple choice", "multiple_choice", ANIMALS), ("Yes or no", "yes_no", {"answer": "Yes"})],
)
def test_the_tables_of_answers(page, title, name, columns):
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(.*)` \| (\S+) \| (\S+) \|$", section, flags=re.MULTILINE)
    assert len(rows) > 8
    for text, *expected in rows:
        read = [SCORINGS[name](columns, text, rules).extracted or "–" for rules in ("default", "vlmevalkit")]
        assert read == expected, text


def test_the_names_and_versions(page):
    assert all(f"`{name}`" in page for name in SCORINGS)
    assert all(f"| `{name}` | `{version}` |" in page for name, version in RULES.items())


def test_the_example(page, capsys):
    code = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0]
    exec(compile(code, "reading-answers.md", "exec"), {})
    assert capsys.readouterr().out == "B 1.0 answer is\n"


def test_what_the_page_lists_as_not_recognised(page):
    """What is read of these, or is not, although a person would read something else."""
    text = " ".join(page.split())
    choice = {**ANIMALS, "C": "banana"}
    for example, letter in {"B is a trap": "B", "Вариант B неверен": "B", "Plan B": "B", "banana bread": "C"}.items():
        assert example in text
        assert SCORINGS["multiple_choice"](choice, example).extracted == letter
    for example, value in {"5'": "5", "two grand": "2", "五": None, "4!": "24"}.items():
        assert example in text
        assert SCORINGS["number"]({"answer": "6"}, example).extracted == value
    for example in ("It looks red", "The color is red"):
        assert example in text
        assert [SCORINGS[name]({"answer": "red"}, example).score for name in ("exact", "anls", "relaxed")] == [0, 0, 0]
