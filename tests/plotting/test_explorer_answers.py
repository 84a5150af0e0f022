"""From a number to its cause, and the answer first: the leaderboard and the drawer, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from browser import drive
from explorer_pages import plain_server, running
from sample_world import BROKEN, COUNT

from testbed.cli.serve import Page
from testbed.db.store import Store
from testbed.plotting.explorer.explorer import make_explorer, samples_part
from testbed.plotting.explorer.export import choose_samples, write
from testbed.plotting.explorer.pictures import Pictures


@pytest.fixture(scope="module")
def store(world) -> Iterator[Store]:
    with Store.open(world[0]) as opened:
        yield opened


@pytest.fixture(scope="module")
def site(store, world, tmp_path_factory) -> Path:
    """An export with the samples of one setting."""
    out: Path = tmp_path_factory.mktemp("site")
    chosen = choose_samples(store, ["plain"], COUNT)
    explorer = make_explorer(store, world[1], None, "samples.db", chosen)
    write(out, explorer, samples_part(explorer), Pictures(store, world[1]), chosen)
    return out


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a view; an error of a script is a failure."""
    faults: list[str] = []
    contexts = []

    def open_view(view: str, width: int = 1280, height: int = 720, address: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        opened = contexts[-1].new_page()
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.goto(f"{address or (site / 'index.html').as_uri()}#/{view}")
        opened.wait_for_selector("main h1")
        return opened

    yield open_view
    for each in contexts:
        each.close()
    assert faults == []


# The drawer -------------------------------------------------------------------------------------------------------


def number_of(opened: Any, model: str, column: str) -> Any:
    """The link of a number."""
    return opened.locator("#board tbody tr", has_text=model).locator(f'[data-column="{column}"] a')


@drive
@pytest.mark.parametrize("kind", ["files", "server", "serve"])
def test_a_number_opens_its_evaluation_which_is_in_the_address(kind, page, site, store, world):
    (one,) = store.evaluations.find(["one"], ["plain"])
    top1 = next(each for each in store.results.of([one.id]) if (each.metric, each.slice) == ("top1", "overall"))
    with {
        "files": lambda: nullcontext(""),
        "server": lambda: plain_server(site),
        "serve": lambda: running(Page(world[0], "127.0.0.1", 0, None, "samples.db", world[1])),
    }[kind]() as address:
        opened = page("leaderboard?find=on:plain", height=600, address=address)
        number_of(opened, "one", "plain").click()
        drawer = opened.locator("dialog[open]")
        assert drawer.locator("#headline strong").inner_text() == f"{100 * top1.value:.2f} %"
        assert drawer.locator("#metrics tbody tr").first.bounding_box()["height"] > 15
        opened.reload()
        drawer.wait_for()
        wrong = round(COUNT * (1 - top1.value))
        drawer.get_by_role("link", name=f"{wrong} wrong samples of {COUNT}").click()
        opened.wait_for_selector(".gallery")
        assert opened.locator(".gallery li").count() == wrong
        opened.go_back()
        drawer.wait_for()
        opened.keyboard.press("Escape")
        opened.wait_for_selector("dialog:not([open])", state="attached")
        assert opened.url.endswith("#/leaderboard?find=on%3Aplain")


@drive
def test_the_drawer_opens_by_keyboard_and_back_returns_to_the_number(page):
    opened = page("leaderboard?find=on:plain")
    number_of(opened, "two", "plain").press("Enter")
    opened.wait_for_selector("dialog[open] #headline")
    opened.go_back()
    opened.wait_for_selector("dialog:not([open])", state="attached")
    assert opened.evaluate("document.activeElement.closest('tr').innerText").startswith("☆\ntwo")
    opened.go_forward()
    opened.wait_for_selector("dialog[open] #headline")
    opened.locator("#close").click()
    opened.wait_for_selector("dialog:not([open])", state="attached")
    assert "open=" not in opened.url


@drive
def test_samples_that_could_not_be_read_are_named(page):
    opened = page("leaderboard?find=on:plain")
    assert number_of(opened, "one", "plain").inner_text().endswith("‡")
    assert "‡ some samples could not be read" in opened.locator("main").inner_text()
    number_of(opened, "one", "plain").click()
    said = opened.locator("#unread").inner_text()
    assert "1 sample could not be read" in said
    assert f"toy/{BROKEN:04d} is broken" in said
    opened.locator("#unread a").click()
    opened.wait_for_function("name => document.querySelector('main h1').innerText.includes(name)", arg=f"{BROKEN:04d}")
