"""Clicks and seconds from a question to its answer: on the explorer's pages, served and from files, and by a command.

python benchmarks/explorer_answers.py [--db-url URL] [--repeats 5]   (needs Playwright and a Chromium or Chrome)

The seconds are those of the machine, from opening the page, or from calling the command, until the answer is there.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from explorer_samples import BROWSER, served
from paired import machine, seconds

MODEL, SETTING, PUBLISHED = "digits-knn", "digits", 97.1  # which the demo has; a value that somebody may have published
FIRST_LINE = "98.70 % leads"


@dataclass
class Question:
    """A user's question.

    Attributes:
        text: The question.
        steps: What is clicked on, one after the other, by Playwright's selectors.
        answer: A text that is visible when the answer is there; empty if the last click downloads it.
        command: What answers it in a terminal.
        clicks: How many there were.
    """

    text: str
    steps: tuple[str, ...]
    answer: str
    command: str
    clicks: int = field(default=0, init=False)


QUESTIONS = (
    Question("Which model is the best?", (), FIRST_LINE, f"testbed rank {SETTING}"),
    Question(
        "Is that significant?",
        (),
        "tied with digits-cnn, digits-cnn-noise, digits-mlp (Holm)",
        f"testbed rank {SETTING}",
    ),
    Question(
        "Which samples does it get wrong?",
        ("#board a >> text=98.70*", "text=wrong samples of"),
        "7 of 540 samples",
        f"testbed hardest {SETTING} --models {MODEL}",
    ),
    Question(
        "Is it the same as published?",
        ("#board a >> text=98.70*",),
        "differs by +1.6 points",
        f"testbed published show {MODEL} {SETTING}",
    ),
    Question(
        "A figure for the paper",
        ("nav a >> text=Plot", "#svg"),
        "",
        f"testbed figures --kinds ranking --on {SETTING} --formats svg",
    ),
)


def ask(page: Any, address: str, question: Question) -> None:
    """Opens the first page and clicks until the answer is there."""
    page.goto("about:blank")
    page.goto(address)
    question.clicks = 0
    for step in question.steps:
        last = step == question.steps[-1] and not question.answer
        with page.expect_download() if last else contextlib.nullcontext():
            page.locator(step).first.click()
        question.clicks += 1
    if question.answer:
        page.get_by_text(question.answer).first.wait_for()


def median(work: Callable[[], object], repeats: int) -> float:
    """The median time of some calls, after one that does not count."""
    work()
    return statistics.median(seconds(work) for _ in range(repeats))


def on_pages(address: str, repeats: int) -> list[float]:
    """The seconds of each question."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 720}, accept_downloads=True)
        times = [median(lambda question=question: ask(page, address, question), repeats) for question in QUESTIONS]
        browser.close()
    return times


def testbed(*words: str, where: Path) -> None:
    """Runs a command in a folder."""
    done = subprocess.run([sys.executable, "-m", "testbed", *words], cwd=where, capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"testbed {' '.join(words)}: {done.stderr.strip()}")


def prepare(folder: Path, db_url: str | None) -> None:
    """The demo's store with a published value, and its pages as files."""
    if db_url is None:
        testbed("run", "demo", "--on", "demo", where=folder)
    else:
        testbed("store", "backup", str(folder / "testbed.db"), "--db-url", db_url, where=folder)
    (folder / "blog.csv").write_text(f"net,acc\n{MODEL},{PUBLISHED}\n")
    told = ["model=net", f"setting={SETTING}", "value=acc", "unit=percent"]
    testbed("published", "add", "blog.csv", "--map", *told, "--source", "a blog", where=folder)
    testbed("site", "--out", "site", "--samples", SETTING, "--samples-limit", "1000", where=folder)


def table(pages: list[float], files: list[float], terminal: list[float]) -> str:
    """The numbers in Markdown."""
    rows = [
        ["question", "clicks", "served, s", "from files, s", "in the terminal", "s"],
        ["---", *["---:"] * 3, "---", "---:"],
    ]
    for each, *times in zip(QUESTIONS, pages, files, terminal, strict=True):
        first, second, third = (f"{value:.2f}" for value in times)
        rows.append([each.text, str(each.clicks), first, second, f"`{each.command}`", third])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@click.command()
@click.option("--db-url", help="A SQLite store with the demo's results, which is copied.  [default: the demo is run]")
@click.option("--repeats", default=5, show_default=True)
def main(db_url: str | None, repeats: int) -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, db_url)
        with served(folder / "testbed.db") as address:
            pages = on_pages(address, repeats)
        files = on_pages((folder / "site" / "index.html").as_uri(), repeats)
        words = [question.command.removeprefix("testbed ").split() for question in QUESTIONS]
        terminal = [median(lambda word=word: testbed(*word, where=folder), repeats) for word in words]
    click.echo(f"{machine()}; medians of {repeats}\n\n{table(pages, files, terminal)}")


if __name__ == "__main__":
    main()
