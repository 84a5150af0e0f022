"""The explorer's view of watched training runs: its documents, and the page from files and from a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from browser import drive
from explorer_pages import running
from stored_cells import put, samples_of, saying
from toy import toy_catalog

from testbed.db.store import Store
from testbed.entities import CellRecord, Metric, TrainingCheckpoint
from testbed.extensions.explorer.commands.serve import Page
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.extensions.explorer.training import labels
from testbed.metrics.inference.statistics import wilson
from testbed.metrics.scorers.classification import top
from testbed.stored_results.checkpoints import curves
from testbed.stored_results.pictures import Pictures

TARGETS = [0, 1] * 50
RUNS = {
    "/r/a": {1: (50, 40), 2: (80, 60), 10: (90, 50)},
    "/r/b": {1: (60, None), 2: (70, 75)},
    "/r/one": {500: (30, 20)},
}
SETTINGS = ("val", "dim")


def fill(store: Store) -> None:
    """Runs with epochs, one of which lacks a result and one of which failed; a run of one checkpoint, with a step."""
    for run, epochs in RUNS.items():
        unit = "step" if run == "/r/one" else "epoch"
        for step, counts in epochs.items():
            for setting, right in zip(SETTINGS, counts, strict=True):
                if right is not None:
                    said = [target if place < right else 2 for place, target in enumerate(TARGETS)]
                    top1 = top(1).metric(right / 100, 100)
                    cell = put(store, f"net,{run}/{step}.pt", setting, samples_of(TARGETS), saying(said), metric=top1)
                    store.checkpoints.note([cell.id], TrainingCheckpoint(run, step, unit))
    put(store, "net,/r/a/2.pt", "words", samples_of(TARGETS), None, metric=Metric("length", 7.5, n=100, unit="words"))
    for setting in SETTINGS:
        store.evaluations.record_failure(CellRecord("net,/r/a/3.pt", setting, "unidentified"), "failed", "torn", {}, {})
    failed = store.evaluations.find(["net,/r/a/3.pt"])
    store.checkpoints.note([each.id for each in failed], TrainingCheckpoint("/r/a", 3, "epoch"))


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("training") / "runs.db")
    with Store.create(path) as store:
        fill(store)
    return path


@pytest.fixture(scope="module")
def site(url, tmp_path_factory) -> str:
    return export(url, tmp_path_factory.mktemp("files"))


def export(url: str, folder: Path) -> str:
    with Store.open(url) as store:
        explorer = make_explorer(store, toy_catalog(), None, "runs.db")
        write(folder, explorer, samples_part(explorer), Pictures(store, toy_catalog()), {})
    return (folder / "index.html").as_uri()


# Documents --------------------------------------------------------------------------------------------------------


def test_a_document_has_the_points_of_the_curves(url):
    with Store.open(url) as store:
        explorer, found = make_explorer(store, toy_catalog(), None, "x"), curves(store, ["/r/a"])
        doc = explorer.document("training/0")
        assert [each["name"] for each in explorer.document("training")] == sorted(RUNS)
    assert [curve["setting"] for curve in doc["curves"]] == ["dim", "val", "words"]
    for curve, mine in zip(doc["curves"], found, strict=True):
        assert [tuple(doc["checkpoints"][at]) for at in curve["at"]] == [
            (each.checkpoint.step, each.model) for each in mine.points
        ]
        for name in ("value", "low", "high", "n"):
            assert curve[name] == pytest.approx([getattr(each, name) for each in mine.points])
        assert curve["evaluations"] == [each.evaluation for each in mine.points]
    assert [curve["best"] for curve in doc["curves"]] == [1, 2, None]  # nobody knows whether more words are better
    assert doc["metrics"] == ["length", "top1"]
    other = explorer.document("training/0/0")
    assert other["checkpoints"] == [(2, "net,/r/a/2.pt")]
    assert other["curves"] == [{**doc["curves"][2], "at": [0]}]
    assert {"training", "training/0", "training/0/1", "training/2/0"} <= set(explorer.paths())
    for path in ("training/0/2", "training/3", "training/0/0/0", "training/x"):
        with pytest.raises(KeyError):
            explorer.document(path)
    assert doc["failed"] == [["epoch 3", "dim", "torn"], ["epoch 3", "val", "torn"]]


def test_results_in_another_unit_than_most_of_the_run_are_counted(tmp_path):
    with Store.create(str(tmp_path / "runs.db")) as store:
        for step, unit in ((1, "epoch"), (2, "epoch"), (900, "step")):
            cell = put(store, f"net{step}", "val", samples_of(TARGETS), None)
            store.checkpoints.note([cell.id], TrainingCheckpoint("/r/a", step, unit))
        doc = make_explorer(store, toy_catalog(), None, "x").document("training/0")
    assert (doc["unit"], doc["others"], len(doc["checkpoints"])) == ("epoch", 1, 2)


def test_without_watched_runs_there_are_no_documents(published):
    with Store.open(published) as store:
        explorer = make_explorer(store, toy_catalog(), None, "x")
        assert not [each for each in explorer.paths() if each.startswith("training")]
        assert "training" not in explorer.document("index")
        for path in ("training", "training/0"):
            with pytest.raises(KeyError):
                explorer.document(path)


@pytest.mark.parametrize(
    ("runs", "shown"),
    [
        (["/x/runs/a"], ["runs/a"]),
        (["/x/runs/a", "/x/runs/b"], ["runs/a", "runs/b"]),
        (["/x/runs", "/x/runs/b"], ["x/runs", "x/runs/b"]),
        (["/a", "/b"], ["a", "b"]),
        (["mine", "/x/runs/b"], ["mine", "/x/runs/b"]),
    ],
)
def test_runs_are_called_by_what_tells_them_apart(runs, shown):
    assert labels(runs) == shown


# Pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser) -> Iterator[Any]:
    opened, faults = browser.new_page(viewport={"width": 1280, "height": 720}), []
    opened.set_default_timeout(8000)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    opened.close()
    assert faults == []


@pytest.fixture
def go(page, site) -> Callable[..., None]:
    def open_at(place: str, base: str = site, wait: str = "#training") -> None:
        page.goto("about:blank")
        page.goto(f"{base}#/{place}")
        page.wait_for_selector(wait)

    return open_at


def rows(page: Any) -> list[list[str]]:
    return [each.split("\t") for each in page.locator("#training tbody tr").all_inner_texts()]


@drive
@pytest.mark.parametrize("served", [False, True], ids=["from files", "served"])
def test_a_run_is_a_line_for_each_setting_with_what_failed(page, go, site, url, served):
    with running(Page(url, "127.0.0.1", 0, None, "runs.db", toy_catalog())) if served else nullcontext(site) as base:
        go("training", base)
        assert page.locator('#views [data-view="training"]').is_visible()
        assert page.locator("h1").inner_text() == "Training: r/a"
        assert rows(page) == [
            ["epoch 1", "40.00", "50.00"],
            ["epoch 2", "60.00", "80.00"],
            ["epoch 10", "50.00", "90.00"],
        ]
        assert page.locator("#training td.tied").all_inner_texts() == ["60.00", "90.00"]
        assert page.locator("canvas").get_attribute("data-points") == "6"
        assert page.locator(".legend li").all_inner_texts()[:2] == ["dim", "val"]
        assert "Not drawn: words (not in %)." in page.locator("main > .note").inner_text()
        page.wait_for_function("() => !document.getElementById('changes').innerText.includes('…')")
        changes = [each.split("\t") for each in page.locator("#changes tbody tr").all_inner_texts()]
        assert [each[:4] for each in changes] == [
            ["dim (top1, %)", "60.00", "50.00", "−10.00"],
            ["val (top1, %)", "80.00", "90.00", "+10.00"],
        ]
        assert [each[5] for each in changes] == ["epoch 2 is better", "epoch 10 is better"]
        assert page.locator("#failed summary").inner_text().startswith("1 checkpoint without a result")
        page.locator("#failed summary").click()
        assert page.locator("#failed li").all_inner_texts() == ["epoch 3, dim, val: torn"]


@drive
def test_pointing_and_keys_tell_a_checkpoint_and_a_click_opens_its_evaluation(page, go):
    go("training?on=val")
    canvas = page.locator("canvas")
    canvas.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    low, high = (f"{100 * end:.2f}" for end in wilson(0.9, 100))
    told = ["epoch 10, the best", "val", "top1: 90.00 %", f"95 %: [{low}, {high}]", "100 samples"]
    assert page.locator("#tip").inner_text().splitlines() == told
    x, y = page.evaluate("T.shownPlot.where('epoch 2')")
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert page.locator("#tip").inner_text().splitlines()[0] == "epoch 2"
    page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait_for_selector("dialog[open] #metrics")
    assert "80.00 %" in page.locator("dialog #headline").inner_text()
    page.locator("#close").click()
    page.wait_for_selector("dialog[open]", state="detached")
    assert page.locator("h1").inner_text() == "Training: r/a"
    assert "open=" not in page.url
    page.locator("#training").get_by_role("link", name="50.00").click()
    page.wait_for_selector("dialog[open] #metrics")


@drive
def test_the_address_keeps_runs_settings_and_the_mean(page, go):
    go("training")
    page.locator("#run-1").check()
    page.wait_for_function("() => document.querySelector('h1').innerText === 'Training: 2 runs'")
    page.locator("#mean").check()
    page.wait_for_function("() => document.querySelector('#training').innerText.includes('mean of 2 settings')")
    assert unquote(page.url.partition("?")[2]) == "run=/r/a|/r/b&mean=1"
    assert rows(page) == [
        *(["epoch 1", "r/a", "45.00"], ["epoch 2", "r/a", "70.00"], ["epoch 10", "r/a", "70.00"]),
        ["epoch 2", "r/b", "72.50"],
    ]
    assert page.locator("#training td.tied").all_inner_texts() == ["70.00", "72.50"]  # of equal ones the first
    said = page.locator("main > .note").inner_text()
    assert "Not in the mean: 1 checkpoint without a result on some of the settings." in said
    assert "from the mean of the lower ends to that of the upper ends: about 95 % or more" in said
    ends = [sum(end) / 2 for end in zip(wilson(0.4, 100), wilson(0.5, 100), strict=True)]
    expected = "95 %: [{:.2f}, {:.2f}]".format(*(100 * end for end in ends))
    assert page.locator("#training tbody td").nth(1).get_attribute("title") == expected
    page.select_option("#choose-metric", "top1")
    page.wait_for_function("() => location.hash.endsWith('&metric=top1')")
    page.wait_for_function("() => document.querySelector('main > .note').innerText.includes('words (no top1)')")
    page.locator("#on-1").uncheck()
    page.wait_for_function("() => !document.querySelector('#training').innerText.includes('mean')")
    page.go_back()
    page.wait_for_function("() => document.querySelector('#training').innerText.includes('mean of 2 settings')")
    go("training?find=2.pt")
    assert rows(page) == [["epoch 2", "60.00", "80.00"]]
    page.fill("#box-find", "*/1.pt")
    page.press("#box-find", "Enter")
    page.wait_for_function("() => document.querySelector('#training').innerText.includes('epoch 1')")
    assert rows(page) == [["epoch 1", "40.00", "50.00"]]
    go("training?run=/r/b|/r/nowhere&on=dim")
    assert page.locator(".problem").inner_text() == "Not here: /r/nowhere"
    assert rows(page) == [["epoch 2", "75.00"]]


# How many names and lines a plot has, and how many names are over a line.
OVER_LINES = """() => {
  const holder = document.body.appendChild(document.createElement("div"));
  holder.innerHTML = T.shownPlot.svg();
  const boxes = [...holder.querySelectorAll("text[paint-order]")].map((each) => each.getBoundingClientRect());
  const lines = [...holder.querySelectorAll('g[clip-path] > [stroke-width="2"]')];
  const { left, top } = holder.querySelector("svg").getBoundingClientRect();
  const at = (line, part) => line.getPointAtLength(part / 499 * line.getTotalLength());
  const along = (line) => Array.from({ length: 500 }, (_, part) => at(line, part));
  const within = (box, x, y) => x > box.left && x < box.right && y > box.top && y < box.bottom;
  const over = (box) => lines.some((line) => along(line).some(({ x, y }) => within(box, x + left, y + top)));
  return [boxes.length, lines.length, boxes.filter(over).length];
}"""


@drive
def test_runs_that_count_otherwise_and_single_checkpoints(page, go):
    go("training?run=/r/a|/r/one&on=val")
    assert "Not drawn: r/one (not counted in epochs)." in page.locator("main > .note").inner_text()
    assert len(rows(page)) == 3
    go("training?run=/r/one&on=val")
    assert rows(page) == [["step 500", "30.00"]]
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", page.evaluate("T.shownPlot.svg()"))
    assert {"step", "500", "top1 (%)", "step 500, the best", "Training: r/one"} <= set(texts)
    go("training?on=dim|val")
    assert page.evaluate(OVER_LINES) == [2, 2, 0]
    go("training?on=words")
    assert rows(page) == [["epoch 2", "7.50"]]
    said = page.locator("main > .note").inner_text()
    assert "It is unknown whether a higher or a lower length is better" in said


@drive
def test_without_watched_runs_there_is_no_tab_and_nothing_more_is_loaded(page, published, tmp_path):
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url.rpartition("/")[2]))
    site = export(published, tmp_path)
    page.goto(site)
    page.wait_for_selector("#board")
    assert page.locator('#views [data-view="training"]').is_hidden()
    assert not [each for each in loaded if each.startswith("training")]
    page.goto(f"{site}#/training")
    page.get_by_role("heading", name="No training run was watched here").wait_for()
