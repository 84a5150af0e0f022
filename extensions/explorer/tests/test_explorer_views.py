"""Every view of the explorer in each size and theme: what axe finds, what is cut off, what is on the first screen."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import AXE, drive
from playwright.sync_api import expect

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource, TrainingCheckpoint
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import choose_samples, write
from testbed.extensions.published.importing import import_results
from testbed.stored_results.pictures import Pictures

MODELS = ("resnet50", "vgg19", *(f"standard{number}" for number in range(4)), "more0")
V2 = "imagenetv2-matched-frequency-format-val"
COLUMNS = ("val", V2, "imagenet-r", *(f"imagenet-c.brightness.{severity}_on-disk" for severity in (1, 3, 5)))
SAMPLES = 6  # of each setting, in the pages
PAPERS = {"portrait": 718, "landscape": 1047}  # pixels of A4 within its margins of 10 mm
SIZES = {"large": (1440, 900), "laptop": (1280, 720), "phone": (360, 740)}


RUN_AXE = """([theme, rules]) => {
  document.documentElement.dataset.theme = theme;
  return axe.run({ resultTypes: ["violations"], preload: false, ...rules }).then((done) => done.violations);
}"""


@pytest.fixture(scope="module")
def site(world, table, tmp_path_factory) -> tuple[str, list[str]]:
    """The address of an export with samples of every task, published values and what disagrees with them; its views."""
    folder: Path = tmp_path_factory.mktemp("views")
    with (folder / "table.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["model", *COLUMNS], *([name, *map(table[name].get, COLUMNS)] for name in MODELS)])
    url = str(shutil.copy(Path(world[0]), folder / "views.db"))
    declared = {"better": "higher", "lowest": 0, "highest": 1, "headline": 10, "zero_one": True}
    with Store.open(url, "write") as store:
        import_results(store, folder / "table.csv")
        for name, shift in (("blog", 0.2), ("paper", 0.3)):
            claims = [Claim("one", "plain", "top1", shift, "fraction", str(shift), "row 2", "top1", **declared)]
            store.claims.add(ClaimSource(name, f"{name}.csv", name[0] * 64, "a table"), claims)
        ids = [each.id for each in store.evaluations.find(["one", "two"], ["plain"])]
        for step, number in enumerate(ids):
            store.checkpoints.note([number], TrainingCheckpoint("/runs/a", step, "epoch"))
        chosen = choose_samples(store, ["*"], SAMPLES)
        explorer = make_explorer(store, world[1], None, "views.db", chosen)
        write(folder / "site", explorer, samples_part(explorer), Pictures(store, world[1]), chosen)
    tasks = dict.fromkeys(each["task"] for each in explorer.document("index")["columns"])
    return (folder / "site" / "index.html").as_uri(), [
        *(f"leaderboard?task={quote(task)}" for task in tasks),
        "leaderboard?task=all&mean=1&ci=1&pin=vgg19",
        "leaderboard?task=all&cols=*",
        "leaderboard?picker",
        f"leaderboard?find=plain&open={ids[0]}.top1",
        *("leaderboard?find=nobody", "leaderboard?find=resnet*", "model/nobody", "model/vgg19", "model/one"),
        *("setting/val", "setting/plain", f"cell/{ids[0]}", f"confusion/{ids[0]}"),
        *(f"{name}/{ids[0]}/{ids[1]}" for name in ("compare", "difference")),
        *("samples/plain?model=one", "sample/plain/toy%2F0000", "sample/noisy/toy%2F0000"),
        *("sample/captions/toy%2F0000", "sample/described/toy%2F0000", "sample/questions/1"),
        *("sample/choices/toy%2F0000", "plot", "robustness", "severity", "disagreements", "published"),
        *("training", "training?mean=1", "models?models=resnet50|vgg19", "models?models=resnet50|vgg19|more0"),
        *("leaderboard?shown=menu", "leaderboard?shown=chosen"),
    ]


@pytest.fixture
def opened(browser, site) -> Iterator[Callable[[int, int], Any]]:
    """Opens the page in a size; an error of a script is a failure."""
    faults: list[str] = []
    pages = []

    def open_page(width: int, height: int) -> Any:
        pages.append(browser.new_page(viewport={"width": width, "height": height}))
        pages[-1].on("pageerror", lambda error: faults.append(str(error)))
        pages[-1].goto(site[0])
        pages[-1].wait_for_selector("#board")
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


def go(page: Any, view: str) -> None:
    """Shows a view, whole: with its samples, and with the column picker, a menu or a choice if it says so."""
    page.evaluate("view => { document.querySelector('main').replaceChildren(); location.hash = `#/${view}`; }", view)
    page.wait_for_selector("main h1", state="attached")
    if "picker" in view:
        page.evaluate("for (const each of document.querySelectorAll('.fold, .picker')) each.open = true")
        page.wait_for_selector(".picked input", state="attached")
    elif "shown=menu" in view:
        page.locator("#menu-val").evaluate("each => each.click()")
    elif "shown=chosen" in view:
        page.locator(".choose").first.evaluate("each => each.click()")
    elif "open=" in view:
        page.wait_for_selector("dialog[open] #metrics")


def overflow(page: Any, width: int) -> list[str]:
    """What reaches beyond the right edge of a page of that width, and is in no box that scrolls."""
    return page.evaluate(
        """width => [...document.querySelectorAll("body *")].filter((each) => {
          const box = each.getBoundingClientRect();
          if (!box.width || box.right <= width + 0.5 || each.closest(".hidden, .skip, dialog")) return false;
          for (let up = each.parentElement; up; up = up.parentElement) {
            if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return false;
          }
          return true;
        }).map((each) => each.outerHTML.slice(0, 90))""",
        width,
    )


def cut_placeholders(page: Any) -> list[str]:
    """The examples in fields that are too narrow for them."""
    return page.evaluate(
        """() => [...document.querySelectorAll("input[placeholder]")].filter((each) => {
          if (!each.checkVisibility()) return false;
          const style = getComputedStyle(each), pen = document.createElement("canvas").getContext("2d");
          pen.font = style.font;
          const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
          return pen.measureText(each.placeholder).width > room - (each.list ? 16 : 0);
        }).map((each) => each.placeholder)"""
    )


@drive
@pytest.mark.parametrize(
    "size", [*(pytest.param(each, marks=pytest.mark.long) for each in ("large", "laptop")), "phone"]
)
def test_axe_finds_nothing_wrong_and_tables_are_on_the_first_screen(size, opened, site):
    width, height = SIZES[size]
    page = opened(width, height)
    page.evaluate(AXE.read_text())
    for view in site[1]:
        go(page, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert cut_placeholders(page) == [], view
        if view.startswith("leaderboard?task="):
            box = page.locator("#board tbody td").first.bounding_box()
            assert box["y"] + box["height"] <= height, view
        colours = {"runOnly": ["color-contrast"]}  # which no size changes
        others = {"rules": {"color-contrast": {"enabled": False}}}
        themes = [("light", {}), ("dark", colours)] if size == "large" else [("light", others)]
        for theme, rules in themes:
            found = page.evaluate(RUN_AXE, [theme, rules])
            assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == [], (view, theme)


@drive
@pytest.mark.long
@pytest.mark.parametrize("paper", ["portrait", "landscape"])
def test_nothing_is_cut_off_on_paper(paper, opened, site):
    page = opened(PAPERS[paper], 900)
    page.emulate_media(media="print")
    page.wait_for_timeout(300)  # it is drawn anew
    for view in site[1]:
        go(page, view)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate("document.documentElement.scrollWidth") <= PAPERS[paper], view
        assert overflow(page, PAPERS[paper]) == [], view
        page.evaluate("dispatchEvent(new Event('afterprint'))")


TAB = '#views [data-view="{}"]'
NUMBER = '#board [data-column="plain"] a >> nth=0'
QUESTIONS: dict[
    str, tuple[list[str], str, str]
] = {  # what is clicked from the start page, where the answer is, and a part of it
    "which model is best": ([], "#answer", "val"),
    "is the difference significant": (['[data-sort="plain"]'], "#answer", "plain: .*(leads|tied)"),
    "which samples are wrong": ([NUMBER, "#wrong-samples"], "#count", "of 6 samples"),
    "where do A and B differ": ([NUMBER, "#against a >> nth=0"], "#samples", "Only one right: [0-9]+"),
    "what is published": ([NUMBER], "dialog #headline", "published .* measured"),
    "a figure": ([TAB.format("plot")], "#svg", "SVG"),
    "how robust is my model": ([TAB.format("robustness")], "#robustness tr.pinned", "vgg19"),
    "how does it fall with severity": ([TAB.format("severity")], ".curves svg", "0 \\(clean\\)"),
    "which class is worst": ([NUMBER], "dialog #worst-class tbody tr >> nth=0", "[0-9]+ – [0-9]+|[0-9.]+"),
    "is it calibrated": ([NUMBER], "dialog #reliability", "Expected calibration error: [0-9.]+ %"),
    "what changed between checkpoints": (
        [TAB.format("training")],
        '#changes tr:has-text("plain")',
        "epoch [01] is better|tied",
    ),
}


@drive
def test_questions_of_a_decision_are_answered_in_two_clicks(opened, site):
    page = opened(*SIZES["large"])
    page.set_default_timeout(8000)
    for question, (clicks, where, answer) in QUESTIONS.items():
        assert len(clicks) <= 2
        page.goto("about:blank")
        page.goto(f"{site[0]}#/leaderboard?pin=vgg19")
        page.wait_for_selector("#board")
        for each in clicks:
            page.locator(each).click()
        expect(page.locator(where), question).to_contain_text(re.compile(answer, re.DOTALL))


@drive
def test_a_bibliography_names_the_sources_of_what_is_shown(opened, tmp_path):
    page = opened(*SIZES["large"])
    board = "leaderboard?task=all&cols="
    for view, published, own in (
        (f"{board}val", True, False),
        (f"{board}plain", False, True),
        (f"{board}val|plain", True, True),
        ("published/vgg19", True, False),
    ):
        go(page, view)
        with page.expect_download() as download:
            page.locator("#bibtex").click()
        download.value.save_as(tmp_path / "shown.bib")
        written = (tmp_path / "shown.bib").read_text()
        assert (written.count("@misc{published_table,"), written.count("@misc{testbed_results,")) == (published, own)
        assert "blog" not in written  # whose values are beside results of this store
