"""The explorer's plots as people see, print and export them, and a model's mark there and in Python's figures."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from browser import drive
from click.testing import CliRunner

from testbed.db.store import Store
from testbed.extensions.analyses.commands.grid import command as grid
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.plotting.figures import figures
from testbed.plotting.marks import COLOURS, GREY, model_marks
from testbed.plotting.stats import bootstrap_band, transform
from testbed.plotting.style import percent_ticks
from testbed.registry import registry
from testbed.stored_results.pictures import Pictures

V2 = "imagenetv2-matched-frequency-format-val"
NATURAL = (V2, "imagenet-sketch", "imagenet-a", "imagenet-r", "objectnet-1.0-beta")
PLOT = f"plot?x=val&y={V2}"


def export(url: str, catalog: Any, folder: Path) -> str:
    with Store.open(url) as store:
        explorer = make_explorer(store, catalog, None, "store.db")
        write(folder, explorer, samples_part(explorer), Pictures(store, catalog), {})
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def site(published, tmp_path_factory) -> str:
    return export(published, registry, tmp_path_factory.mktemp("plots"))


@pytest.fixture
def page(browser) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 720}, accept_downloads=True)
    opened.set_default_timeout(8000)
    yield opened
    opened.close()


def go(page, site: str, place: str, wait: str = "canvas[data-points]") -> None:
    page.goto("about:blank")  # the page anew, not only its address
    page.goto(f"{site}#/{place}")
    page.wait_for_selector(wait)


def marks_in(svg: str) -> dict[str, str]:
    """Model → colour of its point."""
    found = re.findall(r'<path [^>]*fill="(#\w+)"[^>]*><title>([^<]*)</title>', svg)
    return {name: colour for colour, name in reversed(found)}


@drive
@pytest.mark.parametrize("view", ["plot", pytest.param("robustness", marks=pytest.mark.long)])
def test_a_store_with_several_tasks_opens_with_models(page, world, tmp_path, view):
    url, catalog = world
    go(page, export(url, catalog, tmp_path), view, "main .note")
    if view == "plot":
        assert int(page.locator("canvas").get_attribute("data-points")) > 1
    else:
        assert page.locator("#robustness tbody tr").count() > 1


@drive
@pytest.mark.parametrize(("key", "title"), [("y", "greyscale against val"), ("x", "{} against greyscale")])
def test_choosing_one_axis_keeps_the_other_which_is_in_the_address_then(page, site, table, key, title):
    drop = {name: np.mean([row["val"] - row[name] for row in table.values() if row["val"] >= 55]) for name in NATURAL}
    largest = max(drop, key=drop.get)  # plots open on val against the largest of the natural shifts
    go(page, site, "plot")
    assert page.locator("h1").inner_text() == f"{largest} against val"
    page.select_option(f'[data-key="{key}"]', "greyscale")
    page.wait_for_function("said => document.querySelector('main h1').innerText === said", arg=title.format(largest))
    assert {"x": "val", "y": largest, key: "greyscale"}.items() <= dict(parse_qsl(page.url.partition("?")[2])).items()
    page.go_back()
    page.wait_for_function("said => document.querySelector('main h1').innerText === said", arg=f"{largest} against val")


@drive
def test_a_line_takes_five_models(page, site, table):
    val = sorted(row["val"] for name, row in table.items() if re.fullmatch(r"resnet50|vgg19|standard\d+", name))
    for count, text in ((5, "line through 5 models"), (4, "no line: at least 5 models are needed, 4 match")):
        go(page, site, f"{PLOT}&least={val[-count]}")
        assert text in page.locator("main .note").inner_text()
        assert ("95 % band" in page.evaluate("T.shownPlot.svg()")) == (count == 5)


@drive
def test_a_pinned_model_is_shown_wherever_it_stands_and_changes_no_line(page, site, table):
    assert table["weak"]["val"] < 55
    notes = {}
    for pin in ("more0", "weak"):
        go(page, site, PLOT.replace("plot?", "robustness?") + f"&pin={pin}")
        assert page.locator("#robustness tbody tr:not(.space)").first.locator("th").inner_text().endswith(pin)
        notes[pin] = page.locator("main .note", has_text="the line through").inner_text()
    (shown, line), (with_weak, same_line) = (note.split(" models; ", 1) for note in notes.values())
    assert int(with_weak) == int(shown) + 1
    assert same_line == line


@drive
def test_the_band_is_pythons(page, site, table):
    rows = [row for name, row in table.items() if re.fullmatch(r"resnet50|vgg19|standard\d+", name)]
    points = [{"x": row["val"], "y": row[V2]} for row in rows]
    x, y = (np.array([point[key] for point in points]) / 100 for key in "xy")
    at = np.array([0.6, 0.7, 0.85])
    go(page, site, PLOT)
    found = page.evaluate("([points, at]) => T.band(points, 'logit', at)", [points, transform(at, "logit").tolist()])
    expected = np.stack([transform(each, "logit") for each in bootstrap_band(x, y, at)], axis=1)
    assert np.array(found) == pytest.approx(expected, abs=0.15 * np.ptp(expected, axis=1).max())


@drive
def test_ticks_are_pythons(page, site):
    go(page, site, PLOT)
    asked = "([low, high, scale]) => T.ticks(low, high, T.SCALES[scale][0]).map(({ tick }) => tick)"
    for scale in ("logit", "probit", "linear"):
        for ends in ([0.007, 0.92], [0.0005, 0.95], [0.553, 0.91], [0.0011, 0.012], [0.0801, 0.1203], [0.0011, 0.9989]):
            low, high = map(float, transform(ends, scale))
            shown = page.evaluate(asked, [low, high, scale])
            assert shown == pytest.approx(percent_ticks((low, high), scale)), (scale, ends)


@drive
def test_a_model_has_one_colour_on_all_pages_and_in_figures(page, site, published):
    with Store.open(published) as store:
        marks = model_marks({each.name: each.model_type for each in store.results.model_facts()})
    go(page, site, PLOT)
    drawn = marks_in(page.evaluate("T.shownPlot.svg()"))
    assert {name: marks[name].colour for name in drawn if name in marks} == {
        name: colour for name, colour in drawn.items() if name in marks
    }
    assert len({drawn[name] for name in ("vgg19", "resnet50", "standard3", "more2", "lp2")}) == 5
    go(page, site, "severity?of=imagenet-c.brightness_on-disk", ".curves svg")
    names = page.locator("#severity tbody th").all_inner_texts()[:8]
    strokes = page.locator(".curves polyline").evaluate_all("all => all.map((each) => each.getAttribute('stroke'))")
    own = [marks[name].colour for name in names]
    first = [colour != GREY and colour not in own[:place] for place, colour in enumerate(own)]
    assert [stroke for stroke, alone in zip(strokes, first, strict=True) if alone] == [
        colour for colour, alone in zip(own, first, strict=True) if alone
    ]
    assert len(set(strokes)) == len(names)  # no two curves have one colour
    assert page.locator(".curves text").all_text_contents()[-len(names) :] == names
    found, _ = figures(published, ["severity"], names, ["imagenet-c.brightness*_on-disk"])
    lines = {trace.name: trace.line.color for trace in found["severity--imagenet-c.brightness_on-disk"].data}
    assert [lines[name] for name in names] == own


def test_marks_are_those_of_the_whole_store_by_family():
    few = model_marks(dict.fromkeys(("digits-knn", "digits-cnn", "digits-mlp")))
    assert len({(mark.colour, mark.symbol) for mark in few.values()}) == 3
    many = {f"{family}{number}": None for family in "abcdefghijk" for number in range(1, 13 - ord(family) + ord("a"))}
    marks = model_marks(many)
    assert {marks[f"a{number}"].colour for number in range(1, 13)} == {COLOURS[0]}
    assert len({marks[f"{family}1"].colour for family in "abcdefgh"}) == 8
    assert {marks[f"{family}1"].colour for family in "ijk"} == {GREY}
    assert len({marks[f"a{number}"].symbol for number in range(1, 11)}) == 10
    typed = model_marks({"a1": "Standard training", "a2": None, "b_in1k": "mine"})
    assert len({mark.symbol for mark in typed.values()}) == 3


@drive
def test_an_exported_plot_has_title_axes_legend_and_what_the_line_is(page, site, tmp_path):
    go(page, site, PLOT)
    for kind in ("svg", "png", "latex"):
        with page.expect_download() as download:
            page.locator(f"#{kind}").click()
        download.value.save_as(tmp_path / f"plot.{kind}")
    latex = (tmp_path / "plot.latex").read_text()
    assert rf"\caption{{{V2} against val. Metric: top1. " in latex
    assert latex.count(r"\bfseries") == 2  # the best of each column
    svg = (tmp_path / "plot.svg").read_text()
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", svg)
    said = page.locator("main .note").inner_text()
    slope, r2 = re.search(r"slope (\S+), .* r² (\S+)", said).groups()
    for text in (f"{V2} against val", "val (top-1, %)", f"{V2} (top-1, %)", "Standard training", "y = x"):
        assert text in texts
    assert f"n = 14, slope {slope}, r² {r2}" in texts
    assert "95 % band of the line, bootstrap" in texts
    assert set(re.findall(r'font-family="([^"]*)"', svg)) == {"Helvetica, Arial, sans-serif"}
    width = int(re.search(r'<svg [^>]*width="(\d+)"', svg)[1])
    assert int.from_bytes((tmp_path / "plot.png").read_bytes()[16:20], "big") == 3 * width
    page.evaluate("window.print = () => {}")
    page.locator("#pdf").click()
    page.emulate_media(media="print")
    assert page.locator("main").is_hidden()
    assert page.locator("#sheet").get_by_text(f"n = 14, slope {slope}").is_visible()
    content = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 1
    assert page.locator("#sheet").count() == 0  # all is as before


@drive
def test_a_printed_page_has_the_legend_and_readable_numbers(page, site):
    go(page, site, PLOT)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".on-paper").get_by_text("y = x").is_visible()
    page.emulate_media(media="screen")
    go(page, site, "leaderboard?cols=*", "#board")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    size = "all => Math.min(...all.map((each) => parseFloat(getComputedStyle(each).fontSize)))"
    sheet = 190 / 25.4 * 96  # pixels of A4, upright, within its margins
    assert page.locator("#print td").evaluate_all(size) >= 7 * 96 / 72  # 7 pt
    assert max(page.locator("#print table").evaluate_all("all => all.map((each) => each.scrollWidth)")) <= sheet


@drive
def test_names_of_pinned_and_outlying_models_do_not_overlap(page, site):
    go(page, site, f"{PLOT}&pin=standard3|vgg19")
    boxes = page.evaluate(
        """() => {
        const holder = document.body.appendChild(document.createElement("div"));
        const box = (each) => each.getBoundingClientRect();
        holder.innerHTML = T.shownPlot.svg();
        const names = [...holder.querySelectorAll('text[font-size="12"]')];
        const legend = box(names.find((each) => each.textContent === "y = x")).left;
        const shown = names.filter((each) => box(each).left < legend - 5);
        return shown.map((each) => ({ name: each.textContent, ...box(each).toJSON() }));
        }"""
    )
    names = [box["name"] for box in boxes]
    assert {"standard3", "vgg19"} <= set(names)
    assert len(names) >= 5
    for a, b in itertools.combinations(boxes, 2):  # the heights of lines of text may touch
        beside = a["right"] <= b["left"] or b["right"] <= a["left"]
        assert beside or a["bottom"] <= b["top"] + 3 or b["bottom"] <= a["top"] + 3, (a, b)


@drive
def test_a_plot_zooms_by_keys_by_buttons_and_by_a_box(page, site):
    go(page, site, PLOT)
    canvas = page.locator("canvas")
    every = int(canvas.get_attribute("data-points"))
    shown = lambda: int(canvas.get_attribute("data-points"))  # noqa: E731
    canvas.focus()
    page.keyboard.press("+")
    assert 0 < shown() < every
    page.keyboard.press("0")
    assert shown() == every
    page.get_by_label("Zoom in").click()
    assert shown() < every
    page.get_by_label("Zoom to all").click()
    assert shown() == every
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.5, steps=3)
    page.mouse.up()
    assert 0 < shown() < every
    assert "#/plot" in page.url


@drive
def test_severity_curves_are_as_wide_as_the_page_and_have_intervals(page, site):
    page.set_viewport_size({"width": 1440, "height": 900})
    go(page, site, "severity?of=imagenet-c.brightness_on-disk", ".curves svg")
    assert page.locator(".curves svg").bounding_box()["width"] >= 1380
    curves = page.locator(".curves polyline").count()
    assert page.locator(".curves line[opacity]").count() == 3 * 6 * curves  # a bar and its two ends at each severity
    with page.expect_download() as download:
        page.locator("#svg").click()
    said = Path(download.value.path()).read_text()
    for text in ("imagenet-c.brightness_on-disk", "severity; bars: 95 %", "top1 (%)"):
        assert f">{text}</text>" in said


@drive
def test_latex_from_the_page_is_that_of_the_command(page, site, published, table):
    columns = ["val", "imagenet-r", "avg_pgd"]
    go(page, site, f"leaderboard?cols={'|'.join(columns)}", "#board")
    with page.expect_download() as download:
        page.locator("#latex").click()
    text = Path(download.value.path()).read_text()
    done = CliRunner().invoke(grid, [*columns, "--format", "latex", "--db-url", published], standalone_mode=False)
    assert done.exception is None, done.output
    theirs = done.stdout
    rows, expected = (
        {line.split(" & ")[0]: line for line in whole[whole.rindex(r"\midrule") :].splitlines() if line.endswith(r"\\")}
        for whole in (text, theirs)
    )
    order = re.search(r"^model & (.*) .{2}$", text, re.M)[1].split(" & ")
    assert [re.sub(r"^.*{([^{}]*)}+$", r"\1", each) for each in order] == [name.replace("_", r"\_") for name in columns]
    (spec,) = set(re.findall(r"begin{(?:tabular|longtable)}{(.*)}", text + theirs))  # the same
    assert spec.startswith("lS[table-format=")
    assert rows == expected
    assert sum(r"\bfseries" in line for line in rows.values()) >= 1
    assert any("^{=" in line for line in rows.values())
    for command in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert command in text
    with page.expect_download() as download:
        page.locator("#csv").click()
    with Path(download.value.path()).open(newline="") as file:
        raw = {row["model"]: float(row["val"]) for row in csv.DictReader(file)}
    assert raw == pytest.approx({name: row["val"] / 100 for name, row in table.items()}, rel=1e-12)
