"""Clicks and seconds from the first page to the answers of ten questions about an own model among published ones.

python benchmarks/explorer_questions.py --db-url URL [--setting val] [--repeats 3]   (needs Playwright and a Chromium)

The store has published values (`testbed published fetch`, ImageNet-testbed's table), and own evaluations with outputs:
at least two checkpoints of a watched run on the setting, one of its shifts, and severities of a corruption.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

import click
from explorer_samples import BROWSER, served
from paired import machine, seconds

NUMBER = '#board tbody tr.pinned [data-column="{setting}"] a'
TAB = '#views [data-view="{view}"]'
# What is clicked from the first page, where the answer is, and a part of it.
QUESTIONS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "Which model is the best?": ((), "#answer", "leads|highest"),
    "Is that significant?": ((), "#answer", "Holm|not tested"),
    "Which samples does my model get wrong?": ((NUMBER, "#wrong-samples"), "#count", "of [0-9,]+ samples"),
    "What is published?": ((TAB.format(view="published"),), "#sources", "."),
    "A figure for the paper": ((TAB.format(view="plot"),), "#pdf", "PDF"),
    "How robust is my model?": ((TAB.format(view="robustness"),), "#robustness tr.pinned", "[+−][0-9.]+"),
    "How does it fall with severity?": ((TAB.format(view="severity"),), ".curves", "0 \\(clean\\)"),
    "Which class is the worst?": ((NUMBER,), "dialog #worst-class tbody tr", "[0-9.]+"),
    "Is it calibrated?": ((NUMBER,), "dialog #reliability", "Expected calibration error"),
    "What changed between two checkpoints?": ((TAB.format(view="training"),), "#changes tbody", "better|tied"),
}


def ask(page: Any, address: str, setting: str, question: str) -> None:
    """Opens the first page and clicks until the answer is there."""
    from playwright.sync_api import expect

    steps, where, answer = QUESTIONS[question]
    page.goto("about:blank")
    page.goto(address)
    for step in steps:
        page.locator(step.format(setting=setting)).first.click()
    expect(page.locator(where).first).to_contain_text(re.compile(answer, re.DOTALL), timeout=60_000)


def loaded(page: Any, address: str) -> float:
    """The megabytes of the first page over the wire."""
    sizes: list[float] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    page.goto(address, wait_until="networkidle")
    return sum(sizes) / 1e6


@click.command()
@click.option("--db-url", required=True, help="The SQLite store.")
@click.option("--setting", default="val", show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(db_url: str, setting: str, repeats: int) -> None:
    """Prints the table."""
    from playwright.sync_api import sync_playwright

    with served(Path(db_url.removeprefix("sqlite:///"))) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        click.echo(f"{machine()}; medians of {repeats}; the first page loads {loaded(page, address):.2f} MB\n")
        click.echo("| question | clicks | seconds |\n| --- | ---: | ---: |")
        for question, (steps, _, _) in QUESTIONS.items():
            ask(page, address, setting, question)
            times = [seconds(lambda question=question: ask(page, address, setting, question)) for _ in range(repeats)]
            click.echo(f"| {question} | {len(steps)} | {statistics.median(times):.2f} |")
        browser.close()


if __name__ == "__main__":
    main()
