"""The web page: its data, and the page itself in a real browser, opened from the file system."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scipy.stats
from click.testing import CliRunner
from toy import toy_catalog, toy_model, toy_setting

from testbed.errors import TestbedError
from testbed.graph.options import RunOptions
from testbed.plotting.page import column_group, contents, script, site_data
from testbed.plotting.site import command
from testbed.plotting.stats import linear_fit
from testbed.runner.run import run

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
V2 = "imagenetv2-matched-frequency-format-val"


@pytest.fixture(scope="module")
def data(published):
    return {**site_data(published), "source": "store.db"}


# Data -------------------------------------------------------------------------------------------------------------


def test_the_page_has_every_number_of_the_table(data, table):
    columns = [column["name"] for column in data["columns"]]
    for model, row in zip(data["models"], data["values"], strict=True):
        shown = {name: value for name, value in zip(columns, row, strict=True) if value is not None}
        expected = {name.removesuffix("_10percent"): float(value) for name, value in table[model["name"]].items()}
        averaged = {name for name in shown if name not in expected}
        assert averaged <= {each["name"] for each in data["columns"] if each["averaged"]}
        assert {name: shown[name] for name in expected} == pytest.approx(expected, abs=1e-9)


def test_models_are_sorted_by_val_and_columns_by_group(data, table):
    assert data["models"][0]["name"] == max(table, key=lambda name: table[name]["val"])
    assert data["columns"][0] == {"name": "val", "group": "ImageNet", "n": 50000, "averaged": False}
    groups = [column["group"] for column in data["columns"]]
    assert len(dict.fromkeys(groups)) == sum(
        one != other for one, other in zip(groups, [None, *groups[:-1]], strict=True)
    )


@pytest.mark.parametrize(
    ("column", "group"),
    [
        ("val", "ImageNet"),
        ("val-on-imagenet-a-classes", "ImageNet"),
        ("val_subsampled_class_1_8", "ImageNet"),
        ("imagenetv2-topimages", "ImageNetV2"),
        ("imagenet-a", "natural shifts"),
        ("imagenet-vid-robust_pm10", "natural shifts"),
        ("imagenet-c.fog.3_in-memory", "corruptions, in memory"),
        ("fog_in-memory", "averages"),
        ("avg_pgd", "averages"),
        ("pgd.l2.eps0.5", "attacks"),
        ("digits", "others"),
    ],
)
def test_columns_have_their_groups(column, group):
    assert column_group(column) == group


def test_data_are_a_script_that_nothing_in_a_name_can_end(data):
    name = "</script><script>alert(1)</script>"
    text = script({**data, "models": [{"name": name, "type": None}]}).decode()
    assert "</script>" not in text
    assert json.loads(text.removeprefix("window.TESTBED = ").removesuffix(";\n"))["models"][0]["name"] == name


def test_ones_own_results_are_told_from_imported_ones(tmp_path):
    url = str(tmp_path / "own.db")
    catalog = toy_catalog(toy_model("a", 1), toy_model("b", 2), toy_setting(count=60))
    run(catalog, RunOptions(db_url=url, executor="inline"), ["a", "b"], ["toy-all"])
    assert site_data(url)["own"] == [[0], [0]]
    assert site_data(url)["columns"][0]["n"] == 60


def test_the_command_says_what_it_wrote_and_what_it_cannot(published, tmp_path):
    done = CliRunner().invoke(command, ["--db-url", published, "--out", str(tmp_path / "site")])
    assert done.exit_code == 0
    assert "index.html (" in done.output
    done = CliRunner().invoke(command, ["--db-url", published, "--metric", "top7"])
    assert isinstance(done.exception, TestbedError)
    assert "no results of top7" in str(done.exception)
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(command, ["--db-url", published, "--out", str(tmp_path / "file")])
    assert "cannot be written" in str(done.exception)


def test_the_published_table_is_small(data, tmp_path):
    """338 models × 252 columns are to take less than 6 MB; this is what one number takes."""
    numbers = sum(value is not None for row in data["values"] for value in row)
    assert len(script(data)) / numbers * 338 * 252 < 2e6


# In a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def site(data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for name, content in contents(data).items():
        (folder / name).write_bytes(content)
    return folder / "table.html"


@pytest.fixture
def page(browser, site, tmp_path) -> Iterator[Any]:
    """A page; what it says on the console or asks the network for is a failure."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    opened = context.new_page()
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "request", lambda asked: None if asked.url.startswith(("file:", "blob:", "data:")) else faults.append(asked.url)
    )
    opened.goto(site.as_uri())
    yield opened
    context.close()
    assert faults == []


driven = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")]


def drive(function):
    for mark in driven:
        function = mark(function)
    return function


@drive
def test_the_plot_shows_the_models_and_the_line_that_python_fits(page, data):
    names = [column["name"] for column in data["columns"]]
    x, y = names.index("val"), names.index(V2)
    shown = [row for row in data["values"] if row[x] is not None and row[x] >= 55]
    assert page.locator(".point").count() == len(shown)
    standard = [
        (row[x] / 100, row[y] / 100)
        for model, row in zip(data["models"], data["values"], strict=True)
        if model["type"] == data["standard"] and "aws" not in model["name"] and row[x] >= 55
    ]
    for scale in ("logit", "probit", "linear"):
        page.select_option('[data-key="scale"]', scale)
        fit = linear_fit(*zip(*standard, strict=True), scale)
        said = page.locator("main .note").inner_text()
        assert f"line through {fit.n} of" in said
        assert f"slope {fit.slope:.3f}, intercept {fit.intercept:.3f}, r {fit.r:.3f}" in said


@drive
def test_axes_types_and_links_are_kept_in_the_address(page, browser):
    page.select_option('[data-key="y"]', "imagenet-sketch")
    page.get_by_label("Trained with more data").uncheck()
    assert "y=imagenet-sketch" in page.url
    before = page.locator(".point").count()
    again = browser.new_page()
    again.goto(page.url)
    assert again.locator('[data-key="y"]').input_value() == "imagenet-sketch"
    assert not again.get_by_label("Trained with more data").is_checked()
    assert again.locator(".point").count() == before
    again.close()


@drive
def test_hovering_tells_the_numbers_and_a_click_opens_the_model(page, table):
    page.locator('[data-model="more2"]').hover(force=True)
    said = page.locator("#tip").inner_text()
    assert "more2" in said
    assert f"val: {table['more2']['val']:.2f} %" in said
    low, high = scipy.stats.binomtest(round(500 * table["more2"]["val"]), 50000).proportion_ci(method="wilson")
    assert f"({100 * low:.2f} to {100 * high:.2f})" in said
    page.locator('[data-model="more2"]').click(force=True)
    assert page.locator("h2").inner_text() == "more2"
    assert page.locator("tbody tr", has_text="imagenet-sketch").count() == 1
    page.go_back()
    assert page.locator(".point").count() > 0


@drive
def test_the_keyboard_goes_through_the_models(page, data):
    page.locator(".plot svg").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip strong").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("#tip strong").inner_text()
    val = {model["name"]: row[0] for model, row in zip(data["models"], data["values"], strict=True)}
    assert val[first] < val[second]
    page.keyboard.press("Enter")
    assert page.locator("h2").inner_text() == second


@drive
def test_the_grid_draws_what_is_seen_and_sorts(page, data):
    page.get_by_role("link", name="Grid").click()
    rows = page.locator("a.cell.name")
    assert rows.first.inner_text() == data["models"][0]["name"]
    cells = page.locator(".cell:not(.name):not(.head)").count()
    assert 0 < cells < len(data["models"]) * len(data["columns"])  # not all of them
    page.locator('[data-sort="val-on-imagenet-a-classes"]').click()
    names = [column["name"] for column in data["columns"]]
    column = names.index("val-on-imagenet-a-classes")
    best = max(zip(data["models"], data["values"], strict=True), key=lambda each: each[1][column] or -1)[0]["name"]
    assert page.locator("a.cell.name").first.inner_text() == best
    page.locator('[data-sort="val-on-imagenet-a-classes"]').click()
    assert page.locator("a.cell.name").first.inner_text() != best
    page.evaluate("document.querySelector('.scroll').scrollLeft = 100000")
    page.wait_for_function(
        "document.querySelector('[data-sort=\"' + window.TESTBED.columns.at(-1).name + '\"]') !== null"
    )


@drive
def test_the_grid_is_filtered_and_downloaded(page, table, tmp_path):
    page.goto(page.url.partition("#")[0] + "#/grid?models=robust&columns=imagenet-")
    with page.expect_download() as download:
        page.locator("#csv").click()
    download.value.save_as(tmp_path / "results.csv")
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["model"] for row in rows] == sorted(
        [f"resnet50_robust{number}" for number in range(4)], key=lambda name: -table[name]["val"]
    )
    assert all("imagenet-" in name for name in list(rows[0])[2:])
    assert float(rows[0]["imagenet-r"]) == pytest.approx(table[rows[0]["model"]]["imagenet-r"])


@drive
def test_the_leaderboard_is_sorted_by_effective_robustness(page):
    page.get_by_role("link", name="Effective robustness").click()
    shown = [float(text) for text in page.locator("tbody td:nth-child(6)").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 10


@drive
def test_search_finds_models_settings_and_parts_of_names(page):
    box = page.get_by_placeholder("Find a model or a setting")
    for text, heading in (("vgg19", "vgg19"), ("imagenet-r", "imagenet-r")):
        box.fill(text)
        box.press("Enter")
        assert page.locator("h2").inner_text() == heading
    box.fill("robust")
    box.press("Enter")
    assert page.locator("a.cell.name").count() == 4


@drive
def test_a_narrow_screen_has_no_sideways_scrolling_and_dark_is_dark(page):
    page.set_viewport_size({"width": 360, "height": 740})
    for view in ("plot", "grid", "robustness", "model/vgg19", f"setting/{V2}"):
        page.goto(page.url.partition("#")[0] + f"#/{view}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, view
    page.get_by_label("Switch between light and dark").click()
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(22, 22, 24)"


@drive
def test_unknown_names_in_an_address_are_said(page):
    page.goto(page.url.partition("#")[0] + "#/model/nobody")
    assert page.locator("h2").inner_text() == "There is no model nobody"
    page.goto(page.url.partition("#")[0] + "#/plot?x=nothing&y=nothing&scale=nothing")
    assert page.locator(".point").count() > 0
