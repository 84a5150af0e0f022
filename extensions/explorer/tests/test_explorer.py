"""The explorer's leaderboard, plots, names and evaluations: its documents, and the pages in a real browser."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from browser import drive
from tables import cases
from toy import toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource
from testbed.extensions.explorer.cells import command
from testbed.extensions.explorer.documents import script
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.extensions.explorer.origins import Origins
from testbed.extensions.explorer.overview import column_group, family_of, pretraining_of
from testbed.formatting import bare_value, difference, fixed, interval, mean_score, p_value
from testbed.graph.options import RunOptions
from testbed.plotting.stats import linear_fit
from testbed.registry import registry
from testbed.runner.run import run
from testbed.stored_results.pictures import Pictures

V2 = "imagenetv2-matched-frequency-format-val"


# Documents --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opened(published) -> Iterator[Any]:
    """The explorer of the published table."""
    with Store.open(published) as store:
        yield make_explorer(store, registry, None, "store.db")


@pytest.fixture(scope="module")
def index(opened) -> dict[str, Any]:
    return json.loads(json.dumps(opened.document("index"), allow_nan=False))


def values_of(explorer, index, name) -> dict[str, float]:
    """Model → value in percent."""
    place = [each["name"] for each in index["columns"]].index(name)
    doc = explorer.document(f"values/{place}")
    return {index["models"]["name"][at]: 100 * value for at, value in zip(doc["models"], doc["values"], strict=True)}


def test_the_columns_have_every_number_of_the_table(opened, index, table):
    expected: dict[str, dict[str, float]] = {}
    for model, row in table.items():
        for name, value in row.items():
            expected.setdefault(name, {})[model] = float(value)
    for name in expected:
        found = values_of(opened, index, name)
        parent = name.removesuffix("_10percent")
        assert {model: found[model] for model in expected[name]} == pytest.approx(expected[name], abs=1e-6)
        if parent != name:  # what a setting lacks is filled from a tenth of it
            assert set(expected[name]) <= set(values_of(opened, index, parent))


def test_averages_are_columns_too(opened, index, table):
    brightness = values_of(opened, index, "brightness_on-disk")
    for model, row in table.items():
        parts = [row.get(f"imagenet-c.brightness.{severity}_on-disk") for severity in range(1, 6)]
        if None not in parts:
            assert brightness[model] == pytest.approx(np.mean([float(each) for each in parts]), abs=1e-6)
    assert {"avg_corruptions", "avg_pgd"} <= {each["name"] for each in index["columns"]}


def test_columns_are_in_groups_and_say_what_they_are(index):
    first = index["columns"][0]
    assert (first["name"], first["group"], first["n"], first["percent"], first["better"]) == (
        *("val", "ImageNet", 50000, True, "higher"),
    )
    groups = [column["group"] for column in index["columns"]]
    assert len(dict.fromkeys(groups)) == sum(a != b for a, b in zip(groups, [None, *groups[:-1]], strict=True))


@cases(
    ("column", "group"),
    [
        ("val-on-imagenet-a-classes", "ImageNet"),
        (V2, "ImageNetV2"),
        ("objectnet-1.0-beta", "natural shifts"),
        ("avg_corruptions", "averages"),
        ("pgd.linf.eps2", "attacks"),
        ("imagenet-c.fog.3_on-disk", "corruptions, on disk"),
        ("imagenet-c-bar.sparkles.3_on-disk", "corruptions, on disk"),
        ("laion-c.mosaic.3", "corruptions, on disk"),
        ("imagenet-9.only_fg", "objects and backgrounds"),
        ("digits-c.contrast.1", "corruptions, in memory"),
        ("vtab/dtd", "CLIP benchmark"),
        ("cifar100.linear_probe.k10", "CLIP benchmark"),
        ("fairness/geode", "DataComp"),
        ("digits", "others"),
        ("something", "others"),
    ],
)
def test_columns_have_their_groups(column, group):
    assert column_group(column) == group


@pytest.mark.parametrize(
    ("model", "family", "pretraining"),
    [
        ("resnet50", "resnet", "ImageNet-1k"),
        ("timm/vit_base_patch16_224.augreg_in21k", "vit", "ImageNet-21k"),
        ("ViT-B-32,laion400m_e32", "vit", "LAION-400M"),
        ("timm/tf_efficientnet_b0.in1k", "efficientnet", "ImageNet-1k"),
        ("timm/mobilenetv3_large_100.ra_in1k", "mobilenetv3", "ImageNet-1k"),
        ("RN50,openai", "rn", "OpenAI's 400M"),
        ("42", "not stated", "not stated"),
    ],
)
def test_facets_come_from_the_names_of_models(model, family, pretraining):
    assert (family_of(model), pretraining_of(model)) == (family, pretraining)


def test_models_that_were_run_have_their_number_of_parameters(own):
    models = own[1].document("index")["models"]
    network = toy_model("one", 1).make_random_network(0)
    assert models["parameters"] == [sum(each.numel() for each in network.parameters())] * 2
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", each) for each in models["since"])


def test_documents_are_scripts_that_nothing_in_a_name_can_end():
    content = script("a/b", {"name": "</script><script>alert(1)</script>"}).decode()
    assert "</script>" not in content
    assert content.startswith('T.give("a/b", {')


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Iterator[Any]:
    """A store with evaluations of toys, one of them computed twice, and its explorer."""
    folder = tmp_path_factory.mktemp("own")
    catalog = toy_catalog(toy_model("one", 1), toy_model("two", 2), toy_setting("toy"))
    url = str(folder / "own.db")
    options = RunOptions(db_url=url, executor="inline")
    run(catalog, options, ["one", "two"], ["toy"])
    run(catalog, RunOptions(db_url=url, executor="inline", override=True), ["one"], ["toy"])
    with Store.open(url) as store:
        yield store, make_explorer(store, catalog, None, "own.db")


def cell_of(explorer, number: int) -> dict[str, Any]:
    return explorer.document(f"cells/{number // 16}")[str(number)]


def test_an_evaluation_says_what_it_was_computed_from(own):
    store, explorer = own
    (evaluation,) = store.evaluations.find(["one"], ["toy"])
    found = cell_of(explorer, evaluation.id)
    assert found["n"] == evaluation.size
    assert found["command"] == "testbed run one --on toy"
    assert {name for name, *_ in found["metrics"]} == {each.name for each in store.results.metrics(evaluation.id)}
    assert found["preprocessing"]["transform"]
    assert found["environment"]["libraries"]["torch"]
    assert [(status, hidden) for _, status, _, hidden in found["history"]] == [("complete", False), ("complete", True)]
    assert found["fingerprint"] == evaluation.fingerprint


def test_values_that_differ_from_published_ones_are_marked(own):
    store, explorer = own
    (evaluation,) = store.evaluations.find(["one"], ["toy"])
    top1 = next(each for each in store.results.of([evaluation.id]) if (each.metric, each.slice) == ("top1", "overall"))
    claims = [Claim("one", "toy", "top1", top1.value + 0.3, "fraction", "0", "row 2", "top1")]
    with Store.open(store.full_url, "write") as written:
        written.claims.add(ClaimSource("blog", "blog.csv", "a" * 64, "a table"), claims)
    explorer = make_explorer(store, registry, None, "own.db")
    column = next(at for at, each in enumerate(explorer.document("index")["columns"]) if each["name"] == "toy")
    found = explorer.document(f"values/{column}")
    place = explorer.document("index")["models"]["name"].index("one")
    assert list(found["published"]) == [str(place)]
    assert found["published"][str(place)]["differs"]
    (line,) = found["published"][str(place)]["lines"]
    assert re.fullmatch(r"published .* \(blog\); measured .*: differs by −30.0 points \(z = \d+\)", line)
    assert cell_of(explorer, evaluation.id)["published"] == [["top1", line]]


def test_its_command_is_safe_to_paste(own):
    store, _ = own
    (evaluation,) = store.evaluations.find(["two"], ["toy"])
    from dataclasses import replace

    changed = replace(evaluation, model="a;rm -rf $HOME", sample_limit=5, dtype="bfloat16", random_weights=True)
    assert command(changed) == ("testbed run 'a;rm -rf $HOME' --on toy --limit 5 --dtype bfloat16 --random-weights")


def test_paths_of_documents_are_checked(own):
    for path in ("values/99", "values/-1", "values/x", "metric/0/99", "cells/99", "cells/x", "confusion/99", "nothing"):
        with pytest.raises(KeyError):
            own[1].document(path)
    for path in own[1].paths():
        json.dumps(own[1].document(path), allow_nan=False)


# Pages ------------------------------------------------------------------------------------------------------------


def export(store: Store, catalog: Any, folder: Path) -> str:
    explorer = make_explorer(store, catalog, None, "store.db")
    write(folder, explorer, samples_part(explorer), Pictures(store, catalog), {})
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="module")
def site(published, tmp_path_factory) -> str:
    with Store.open(published) as store:
        return export(store, registry, tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def own_site(own, tmp_path_factory) -> str:
    return export(own[0], registry, tmp_path_factory.mktemp("own-site"))


@pytest.fixture
def page(browser, site) -> Iterator[Any]:
    """A page; what it says on the console or asks the network for is a failure."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, accept_downloads=True)
    opened = context.new_page()
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "request", lambda asked: None if asked.url.startswith(("file:", "blob:", "data:")) else faults.append(asked.url)
    )
    opened.goto(site)
    opened.wait_for_selector("#board")
    yield opened
    context.close()
    assert faults == []


def go(page, place: str, wait: str = "main h1") -> None:
    """Shows a view."""
    page.evaluate("hash => { location.hash = hash; }", f"#/{place}")
    page.wait_for_function("place => decodeURIComponent(location.hash) === decodeURIComponent(place)", arg=f"#/{place}")
    page.wait_for_selector(wait)
    page.wait_for_timeout(60)


def models_shown(page) -> list[str]:
    return page.locator("#board tbody tr:not(.space) th a").all_inner_texts()


def heading(page) -> str:
    return page.locator("main h1").first.inner_text()


@drive
def test_the_leaderboard_shows_the_numbers_sorts_and_keeps_the_focus(page, table):
    best = max(table, key=lambda name: float(table[name]["val"]))
    assert models_shown(page)[0] == best
    assert (
        page.locator('#board tbody tr td[data-column="val"]').first.inner_text() == f"{float(table[best]['val']):.2f}"
    )
    go(page, "leaderboard?find=on:val*", '[data-sort="val-on-imagenet-a-classes"]')
    page.locator('[data-sort="val-on-imagenet-a-classes"]').focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('th[aria-sort="descending"] [data-sort="val-on-imagenet-a-classes"]')
    assert page.evaluate("document.activeElement.dataset.sort") == "val-on-imagenet-a-classes"
    best = max(table, key=lambda name: float(table[name].get("val-on-imagenet-a-classes") or -1))
    assert models_shown(page)[0] == best
    page.keyboard.press("Enter")
    page.wait_for_selector('th[aria-sort="ascending"]')
    assert models_shown(page)[0] != best
    page.go_back()
    page.wait_for_selector('th[aria-sort="descending"]')
    assert models_shown(page)[0] == best


@drive
def test_words_globs_keys_facets_and_pins_choose_what_is_shown(page):
    box = page.locator("#search")
    for text, heads in (("vgg19", "vgg19"), ("imagenet-r", "imagenet-r")):
        box.fill(text)
        box.press("Enter")
        page.wait_for_function("text => document.querySelector('main h1').innerText === text", arg=heads)
    go(page, "leaderboard?find=resnet50_robust%3F", "#board")
    assert sorted(models_shown(page)) == [f"resnet50_robust{number}" for number in range(4)]
    go(page, "leaderboard?find=type:*more* on:imagenet-r", "#board")
    assert sorted(models_shown(page)) == [f"more{number}" for number in range(4)]
    assert page.locator("#board thead th").count() == 4  # model, rank, and val-on-imagenet-r-classes
    go(page, 'leaderboard?find=type:"Trained with more data"', "#board")
    assert sorted(models_shown(page)) == [f"more{number}" for number in range(4)]
    go(page, "leaderboard?find=type:*more* on:imagenet-r", "#board")
    page.get_by_label("pin more3").click()
    page.wait_for_selector("tr.pinned")
    page.locator("#box-find").first.fill("vgg19")
    page.locator("#box-find").first.press("Enter")
    page.wait_for_function("() => document.querySelectorAll('#board tbody tr').length === 2")
    assert models_shown(page) == ["more3", "vgg19"]
    page.get_by_role("link", name="Plot", exact=True).click()
    page.wait_for_selector("canvas")
    assert "pin=more3" in page.url


@drive
def test_models_are_found_by_their_parameters_and_their_date(browser, own, own_site):
    page = browser.new_page()
    page.goto(own_site)
    count = own[1].document("index")["models"]["parameters"][0]
    for words, shown in (
        (f"params:{count}", 2),
        (f"params:>{count}", 0),
        ("params:<=1M", 2),
        ("date:>=2026", 2),
        ("date:<2026-02", 0),
    ):
        go(page, f"leaderboard?find={words}", "#board")
        assert len(models_shown(page)) == shown, words
    page.close()


@drive
def test_averages_intervals_and_downloads(page, table, tmp_path, index, published):
    go(page, "leaderboard?cols=imagenet-r|imagenet-a&mean=1&ci=1", '[data-sort="average"]')
    row = page.locator("#board tbody tr").first
    name = row.locator("th a").inner_text()
    both = [float(table[name][column]) for column in ("imagenet-r", "imagenet-a")]
    assert row.locator('[data-column="average"]').inner_text() == f"{np.mean(both):.2f}"
    low, high = scipy.stats.binomtest(round(75 * both[1]), 7500).proportion_ci(method="wilson")
    shown = "".join(row.locator("td").all_inner_texts())
    found = re.findall(r"\[([\d.]+), ([\d.]+)\]", shown)
    assert any(
        float(a) == pytest.approx(100 * low, abs=0.01) and float(b) == pytest.approx(100 * high, abs=0.01)
        for a, b in found
    )
    for kind, ending in (("csv", "csv"), ("latex", "tex"), ("bibtex", "bib")):
        with page.expect_download() as download:
            page.locator(f"#{kind}").click()
        download.value.save_as(tmp_path / f"results.{ending}")
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = {each["model"]: each for each in csv.DictReader(file)}
    with Store.open(published) as store:
        stored = {
            (each.model, each.eval_setting): each.value
            for each in store.results.find(None, ["imagenet-r", "imagenet-a"], ["top1"])
        }
    for model, row in rows.items():  # to the last bit
        for column in ("imagenet-r", "imagenet-a"):
            assert (float(row[column]) if row[column] else None) == stored.get((model, column)), (model, column)
            assert row[f"{column} unit"] == ("fraction" if row[column] else "")
    own = rows[name]
    assert float(own["average"]) == pytest.approx(np.mean(both) / 100)
    assert own["imagenet-a n"] == "7500"
    assert [float(own[f"imagenet-a {end}"]) for end in ("low", "high")] == pytest.approx([low, high], abs=1e-4)
    assert name.replace("_", "\\_") in (tmp_path / "results.tex").read_text()
    written = (tmp_path / "results.bib").read_text()
    assert index["sources"]
    for source in index["sources"]:
        assert f"title = {{Published results of {{{source['name']}}}}}" in written
        assert all(file.replace("_", "\\_") in written for file in source["files"])
    assert "evaluated with testbed" not in written  # nothing was
    with Store.open(published) as store:
        (named,) = {source["name"] for source in index["sources"]}
        assert Origins(store, False).of_average("vgg19") == f"average of published values ({named})"


def fit_of(table, scale: str) -> Any:
    rows = [(row, name) for name, row in table.items() if row.get("val") and row.get(V2) and float(row["val"]) >= 55]
    standard = [
        (float(row["val"]) / 100, float(row[V2]) / 100)
        for row, name in rows
        if re.fullmatch(r"resnet50|vgg19|standard\d+", name)
    ]
    return linear_fit(*zip(*standard, strict=True), scale)


@drive
def test_the_plot_has_the_line_that_python_fits_and_is_kept_in_the_address(page, table):
    go(page, f"plot?x=val&y={V2}", "canvas[data-points]")
    shown = [row for row in table.values() if row.get(V2) and float(row["val"]) >= 55]
    assert page.locator("canvas").get_attribute("data-points") == str(len(shown))
    for scale in ("logit", "probit", "linear"):
        page.select_option('[data-key="scale"]', scale)
        fit = fit_of(table, scale)
        slope, intercept, r = (fixed(each, 3) for each in (fit.slope, fit.intercept, fit.r))
        said = f"slope {slope}, intercept {intercept}, r {r}"
        page.wait_for_function("said => document.querySelector('main .note').innerText.includes(said)", arg=said)
    page.get_by_label("Trained with more data").uncheck()
    page.wait_for_function("before => Number(document.querySelector('canvas').dataset.points) < before", arg=len(shown))
    assert "hide=Trained" in page.url
    with page.expect_download() as download:
        page.locator("#svg").click()
    assert "</svg>" in Path(download.value.path()).read_text()


@drive
def test_hovering_tells_the_numbers_and_a_click_opens_the_model(page, table):
    go(page, f"plot?x=val&y={V2}", "canvas[data-points]")
    x, y = page.evaluate("T.shownPlot.where('more2')")
    page.locator("canvas").hover(position={"x": x, "y": y})
    said = page.locator("#tip").inner_text()
    assert f"val: {float(table['more2']['val']):.2f} %" in said
    low, high = scipy.stats.binomtest(round(500 * float(table["more2"]["val"])), 50000).proportion_ci(method="wilson")
    assert f" [{100 * low:.2f}, {100 * high:.2f}]" in said
    page.locator("canvas").click(position={"x": x, "y": y})
    page.wait_for_selector("table#model")
    assert page.locator("#model tbody tr", has_text="imagenet-sketch").count() == 1
    page.go_back()
    page.wait_for_selector("canvas[data-points]")


@drive
def test_the_keyboard_goes_through_the_models(page, table):
    go(page, f"plot?x=val&y={V2}", "canvas[data-points]")
    page.locator("canvas").focus()
    names = []
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        names.append(page.locator("#tip strong").inner_text())
    assert float(table[names[0]]["val"]) < float(table[names[1]]["val"])
    page.keyboard.press("Enter")
    page.wait_for_selector("table#model")
    assert heading(page) == names[1]


@drive
def test_effective_robustness_is_sorted_and_severities_are_averaged(page, table):
    go(page, "robustness", "#robustness")
    shown = [
        float(text.replace("−", "-")) for text in page.locator("#robustness tbody td:nth-child(6)").all_inner_texts()
    ]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 10
    go(page, "severity?of=imagenet-c.brightness_on-disk&models=vgg19", "#severity")
    cells = [float(text) for text in page.locator("#severity tbody tr").first.locator("td").all_inner_texts()]
    expected = [float(table["vgg19"][f"imagenet-c.brightness.{level}_on-disk"]) for level in range(1, 6)]
    clean = float(table["vgg19"]["val"])  # not in the mean
    assert cells == pytest.approx([np.mean(expected), clean, *expected], abs=0.006)


@drive
def test_an_evaluation_opens_beside_the_table_and_the_focus_returns(browser, own, own_site):
    page = browser.new_page()
    page.goto(own_site)
    (evaluation,) = own[0].evaluations.find(["one"], ["toy"])
    page.wait_for_selector("#board")
    link = page.locator(f'#board a[href$="cell/{evaluation.id}"]')
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert "testbed run one --on toy" in page.locator("dialog").inner_text()
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    assert page.evaluate("document.activeElement.getAttribute('href')").endswith(f"cell/{evaluation.id}")
    (other,) = own[0].evaluations.find(["two"], ["toy"])
    go(page, f"difference/{evaluation.id}/{other.id}", "#numbers")
    said = page.locator("main").inner_text()
    assert "model" in page.locator("#identity").inner_text()
    assert page.locator("h1").inner_text() == "one and two"
    assert not re.search("valuation [0-9]", said)
    assert page.locator("#numbers tbody tr").count() == len(
        [each for each in own[0].results.metrics(evaluation.id) if each.slice == "overall"]
    )
    page.close()


@drive
def test_names_have_room_on_a_narrow_screen_and_dark_is_remembered(page):
    page.set_viewport_size({"width": 360, "height": 740})
    go(page, "leaderboard?cols=*", "#board")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("#board tbody th").first.bounding_box()["width"] >= 100
    page.get_by_label("Switch between light and dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 24)"
    page.reload()
    page.wait_for_selector("#board")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@drive
def test_all_columns_are_printed_on_few_pages(page, index):
    go(page, "leaderboard?cols=*", "#board")
    page.wait_for_function(
        "n => document.querySelectorAll('#board thead th').length > n", arg=len(index["columns"]) - 5
    )
    content = page.pdf(prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", content)) < 12


@drive
def test_unknown_names_in_an_address_are_said(page):
    go(page, "model/nobody")
    assert heading(page) == "There is no model nobody"
    go(page, "plot?x=nothing&y=nothing&scale=nothing", "canvas[data-points]")


@drive
def test_a_malformed_address_shows_a_page_and_no_error(page):
    for place in ("model/100%", "model/%zz", "%", "leaderboard?find=%zz"):
        page.evaluate("hash => { location.hash = hash; }", f"#/{place}")
        page.wait_for_timeout(200)
        assert heading(page), place
        go(page, "leaderboard", "#board")


@drive
def test_the_page_formats_numbers_as_the_terminal_does(page):
    go(page, "leaderboard", "#board")
    values = [0.9759259259, 1.0, 0.00125, 4e-5, -4e-5, -0.0074, 1.2e-5, -2e-5, 12345.678, 3e17, 0.0, 2.0, 0.5, 1e-9]
    units = ["fraction", "nats", "", "points", "rank", "percent", "words", "sentences"]
    said = page.evaluate(
        """([values, units]) => units.map((unit) => values.map((value) => [T.numbers.bare(value, unit),
          T.numbers.meanScore(value, unit), T.numbers.difference(value, unit), T.numbers.ends(value, value, unit)]))""",
        [values, units],
    )
    p_values = [1.0, 0.58123, 0.05, 1e-4, 9.9e-5, 1e-30, 0.0]
    assert page.evaluate("(values) => values.map(T.numbers.pValue)", p_values) == [p_value(value) for value in p_values]
    for unit, of in zip(units, said, strict=True):
        for value, texts in zip(values, of, strict=True):
            own = [bare_value(value, unit), mean_score(value, unit), difference(value, unit)]
            assert texts == [*own, interval(value, value, unit)], (value, unit)
