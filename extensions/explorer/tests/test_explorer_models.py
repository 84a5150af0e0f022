"""One state through all views, and your model in sight: pins, short names, columns, chosen rows, first columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from browser import drive
from click.testing import CliRunner

from testbed.db.store import Store
from testbed.entities import CellRecord, Claim, ClaimSource, Metric
from testbed.extensions.explorer.commands.site import command as site_command
from testbed.extensions.explorer.defaults import FirstColumns
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.registry import registry
from testbed.stored_results.pictures import Pictures

V2 = "imagenetv2-matched-frequency-format-val"
SHIFTS = (V2, "imagenet-sketch", "imagenet-a", "imagenet-r", "objectnet-1.0-beta")
OLDER, OURS = "our-net-epoch-1", "our-net-epoch-2"
ALIKE = [f"timm/net_large_patch14_{size}.mim_in22k_ft_in22k_in1k@{size}" for size in (224, 336, 448)]
DECLARED = {"better": "higher", "lowest": 0, "highest": 1, "headline": 10, "zero_one": True}
SEVERITIES = tuple(f"imagenet-c.fog.{severity}_on-disk" for severity in (1, 3))


def values(number: int) -> dict[str, float]:
    """The larger the number, the better: val, then each shift below the one before."""
    val = 0.6 + 0.01 * number
    return {name: val - 0.05 * place for place, name in enumerate(("val", *SHIFTS, *SEVERITIES))}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with published values of twenty models, and values of two of its own, which are worse."""
    path = str(tmp_path_factory.mktemp("mine") / "mine.db")
    names = [*(f"net{number:02d}" for number in range(3, 20)), *ALIKE]
    claims = [
        Claim(name, on, "top1", value, "fraction", str(value), "row 2", "top1", **DECLARED)
        for number, name in enumerate(names, 3)
        for on, value in values(number).items()
    ]
    claims.append(Claim(OLDER, "val", "top1", 0.9, "fraction", "0.9", "row 2", "top1", **DECLARED))
    claims += [
        Claim(name, "val-on-imagenet-a-classes", "top1", 0.9, "fraction", "0.9", "row 2", "top1", **DECLARED)
        for name in names
    ]
    with Store.create(path) as made:
        made.claims.add(ClaimSource("paper", "paper.csv", "a" * 64, "a table"), claims)
        for number, name in enumerate((OLDER, OURS), 1):
            for on, value in values(number).items():
                if (name, on) == (OURS, SHIFTS[-1]):
                    continue  # the largest shift: views open on the largest that the pinned model has
                key = f"{number}{on}"[:60]
                begun = made.evaluations.begin(CellRecord(name, on, key, identity={"model": {}}), None, {}, {})
                made.evaluations.complete(begun.id, [], [Metric("top1", value, 10_000, **DECLARED)])
    return path


@pytest.fixture(scope="module")
def site(url, tmp_path_factory) -> str:
    registry.load()
    folder = tmp_path_factory.mktemp("mine-site")
    with Store.open(url) as store:
        explorer = make_explorer(store, registry, None, "mine.db")
        write(folder, explorer, samples_part(explorer), Pictures(store, registry), {})
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(browser) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(8000)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    opened.close()
    assert faults == []


def go(page, site: str, place: str, wait: str) -> None:
    page.goto("about:blank")
    page.goto(f"{site}#/{place}")
    page.wait_for_selector(wait)


def query(page) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(page.url).fragment.partition("?")[2]))


def column(page, table: str) -> list[str]:
    """The models of a table, by their whole names, from top to bottom."""
    links = page.locator(f"#{table} tbody th a")
    return links.evaluate_all("all => all.map((each) => each.dataset.name || each.textContent)")


def heads(page) -> list[str]:
    return page.locator("#board thead button[data-sort]").evaluate_all("all => all.map((each) => each.dataset.sort)")


VIEWS = {
    "Plot": "canvas",
    "Effective robustness": "#robustness",
    "Severity": "#severity",
    "Disagreements": "h1:has-text('Disagreements')",
    "Leaderboard": "#board",
}


@drive
def test_one_state_goes_through_all_views_and_back(page, site):
    go(page, site, "leaderboard?find=net1*&metric=top1", "#board")
    page.get_by_label("pin net12").click()
    page.wait_for_selector('[aria-label="pin net12"][aria-pressed="true"]')
    page.locator("#menu-imagenet-a").click()
    page.get_by_role("menuitem", name="Hide").click()
    page.wait_for_selector("#menu-imagenet-a", state="detached")
    page.get_by_role("link", name="Plot", exact=True).click()
    page.wait_for_selector("canvas")
    page.select_option("#choose-y", "imagenet-sketch")
    page.wait_for_function("() => document.querySelector('h1').innerText === 'imagenet-sketch against val'")
    kept = {"find": "net1*", "metric": "top1", "x": "val", "y": "imagenet-sketch", "pin": f"{OURS}|net12"}
    for name, there in VIEWS.items():
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_selector(there)
        assert kept.items() <= query(page).items(), name
        assert "imagenet-a" not in query(page)["cols"].split("|"), name
    assert column(page, "board")[:2] == ["net12", OURS]
    page.locator("#board tbody th a").first.click()
    page.wait_for_selector("#model")
    assert kept.items() <= query(page).items()
    for there in ("#board", VIEWS["Disagreements"], "#severity", "#robustness"):
        page.go_back()
        page.wait_for_selector(there)
        assert kept.items() <= query(page).items(), there
    assert column(page, "robustness")[:2] == ["net12", OURS]
    page.reload()
    page.wait_for_selector("#robustness")
    assert column(page, "robustness")[:2] == ["net12", OURS]


@drive
def test_the_newest_own_model_is_pinned_and_can_be_unpinned(page, site):
    for view, table in (("leaderboard", "board"), ("robustness", "robustness"), ("severity", "severity")):
        go(page, site, view, f"#{table} tr.pinned")
        assert column(page, table)[0] == OURS, view
        assert page.locator(f"#{table} tr.pinned").count() == 1
    go(page, site, "setting/val?find=net05", "#setting tr.pinned")
    assert column(page, "setting") == [OURS, "net05"]  # in sight, although the search leaves it out
    go(page, site, f"disagreements?pin={OLDER}", "#measured tr.pinned")
    assert column(page, "measured") == [OLDER]
    go(page, site, "disagreements?find=nobody", "h1")
    assert page.locator("#measured").count() == 0
    go(page, site, "plot?family=net&find=-net05", "canvas")
    assert page.locator("canvas").get_attribute("data-points") == "20"  # 16 nets, the three of timm, and the pinned one
    page.get_by_label("remove the filter family: net").click()
    page.wait_for_function("() => !document.querySelector('#without-family')")
    assert "family" not in query(page)
    go(page, site, "leaderboard", "#board tr.pinned")
    page.get_by_label(f"pin {OURS}").click()
    page.wait_for_selector("tr.pinned", state="detached")
    page.get_by_role("link", name="Plot", exact=True).click()
    page.wait_for_selector("canvas")
    assert query(page)["pin"] == "|"


def test_pin_names_models_of_the_store(url, tmp_path):
    run = lambda *words: CliRunner().invoke(site_command, [*words, "--db-url", url, "--out", str(tmp_path / "out")])  # noqa: E731
    done = run("--pin", "net07", OLDER)
    assert done.exit_code == 0, done.output
    assert f'"pinned":["net07","{OLDER}"]' in (tmp_path / "out" / "data" / "index.js").read_text()
    unknown = run("--pin", "net7")
    assert "unknown model 'net7' in the store; did you mean" in str(unknown.exception or unknown.output)


@drive
def test_a_pinned_model_has_a_halo_and_a_label_that_covers_nothing(page, site):
    go(page, site, "plot?x=val&y=imagenet-sketch&pin=net10", "canvas")
    svg = page.evaluate("T.shownPlot.svg()")
    marks = re.findall(r"<title>((?:net\d|our-|timm/)[^<]*)</title>", svg)
    assert marks[-1] == "net10"  # it is drawn over all others
    (halo,) = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    label = re.search(r'<text [^>]*paint-order="stroke"[^>]*font-weight="700"[^>]*translate\(([\d.]+) ([\d.]+)\)', svg)
    points = [tuple(map(float, each)) for each in re.findall(r"<path [^>]*translate\(([\d.]+) ([\d.]+)\)", svg)]
    boxes = page.evaluate(
        """() => {
        const holder = document.body.appendChild(document.createElement("div"));
        holder.innerHTML = T.shownPlot.svg();
        const found = [...holder.querySelectorAll("text")].find((each) => each.textContent === "net10");
        const { x, y, width, height } = found.getBBox();
        const [, a, b] = found.getAttribute("transform").match(/translate\\(([\\d.]+) ([\\d.]+)\\)/);
        return [x + Number(a), y + Number(b), width, height];
        }"""
    )
    assert label
    x, y, width, height = boxes
    assert tuple(map(float, halo)) in points
    assert not [(a, b) for a, b in points if x <= a <= x + width and y <= b <= y + height]


@drive
def test_lines_are_drawn_on_the_range_of_their_models(page, site):
    go(page, site, "plot?x=val&y=imagenet-sketch&find=net03", "canvas")  # the search does not change the line
    found = page.evaluate(
        """() => { const holder = document.createElement("div"); holder.innerHTML = T.shownPlot.svg();
        return [...holder.querySelectorAll("text")].map((each) => each.textContent); }"""
    )
    assert "n = 22" in " ".join(found)
    assert "y = x" not in found  # no part of it is on the picture
    assert "y = x" not in page.locator(".legend").inner_text()


@drive
@pytest.mark.parametrize("width", [1440, 390])
def test_names_are_short_and_different_and_rows_are_low(page, site, width):
    page.set_viewport_size({"width": width, "height": 850})
    for view, table in (("leaderboard", "board"), ("robustness", "robustness"), ("setting/val", "setting")):
        go(page, site, view, f"#{table} tbody th a")
        names = page.locator(f"#{table} tbody th a").all_inner_texts()
        assert len(set(names)) == len(names) == 22
        assert max(map(len, names)) <= (42 if width == 1440 else 19)
        assert set(ALIKE) <= set(column(page, table))
        rows = page.locator(f"#{table} tbody tr").evaluate_all("all => all.map((each) => each.offsetHeight)")
        assert max(rows) <= 32


@drive
def test_checkpoints_are_called_by_the_ends_of_their_paths(page, site):
    go(page, site, "leaderboard", "#board")
    files = [
        f"timm/test_resnet,/home/someone/experiments/{end}" for end in ("a/1.pt", "a/2.pt", "b/c/3.pt", "d/c/3.pt")
    ]
    names = [
        *files,
        "mine",
        "resnet50,/home/someone/experiments/a/2.pt",
        "facebook/convnext-base-384-22k-1k-and-more-letters",
    ]
    said = page.evaluate("(names) => { const short = T.models.shortened(names); return names.map(short.get); }", names)
    assert said[:5] == ["…/a/1.pt", said[1], "…/b/c/3.pt", "…/d/c/3.pt", "mine"]
    assert len(set(said)) == len(said)
    assert max(map(len, said)) <= 42
    assert all("a/2.pt" in said[at] for at in (1, 5))  # two architectures with one file
    assert said[6].startswith("facebook/")


@drive
def test_columns_are_ordered_by_menu_and_numbers_stand_under_their_heads(page, site):
    go(page, site, "leaderboard", "#board")
    assert heads(page)[:7] == ["model", "val", *SHIFTS]
    page.locator("#menu-imagenet-r").press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")  # to the front
    page.wait_for_selector("#board thead th:nth-child(3) #menu-imagenet-r")
    assert query(page)["cols"].split("|")[:2] == ["imagenet-r", "val"]
    assert page.locator('th[aria-sort="descending"]').inner_text().startswith("val")  # the order of the rows stays
    edges = """place => {
      const content = (each) => { const range = document.createRange(); range.selectNodeContents(each); return range; };
      const row = document.querySelectorAll("#board tbody tr")[1];
      const head = document.querySelectorAll("#board thead th")[place].querySelector("button[data-sort]");
      return [head, row.cells[place]].map((each) => content(each).getBoundingClientRect().right);
    }"""
    for place in (2, 3, 4):
        head, cell = page.evaluate(edges, place)
        assert head == pytest.approx(cell, abs=2)
    head = page.locator("#board thead th").nth(2)
    box = head.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] + 77, box["y"] + 12, steps=4)
    page.mouse.up()
    page.wait_for_function("() => location.hash.includes('widths=')")
    page.reload()
    page.wait_for_selector("#board")
    assert heads(page)[1] == "imagenet-r"
    assert head.bounding_box()["width"] == pytest.approx(box["width"] + 80, abs=2)
    page.locator("#menu-imagenet-r").click()
    page.get_by_role("menuitem", name="Usual width").click()
    page.wait_for_function("() => !location.hash.includes('widths=')")
    page.locator("#menu-val").click()
    page.keyboard.press("Escape")
    assert page.locator("#menu").count() == 0
    assert page.evaluate("document.activeElement.id") == "menu-val"


@drive
def test_chosen_rows_are_compared_and_tables_are_filtered_where_they_stand(page, site):
    go(page, site, "leaderboard?find=val>65 -val>70", "#board")
    assert sorted(column(page, "board")) == ["net06", "net07", "net08", "net09", "net10", OURS]
    for name in ("net07", OURS):
        page.get_by_label(f"choose {name}", exact=True).check()
    page.get_by_role("button", name=f"Compare net07 and {OURS}").click()
    page.wait_for_selector("#models")
    assert page.locator("#models thead th").all_inner_texts() == ["setting", "metric", "net07", OURS, "difference"]
    row = page.locator("#models tbody tr", has_text=V2)
    assert row.locator("td").all_inner_texts()[1:] == ["62.00", "57.00", "+5.00"]
    page.locator("#models-rows").fill("imagenet-c net07>35")
    page.wait_for_function("() => document.querySelectorAll('#models tbody tr').length === 1")
    assert page.locator("#models tbody th").all_inner_texts() == [SEVERITIES[0]]
    page.go_back()
    page.wait_for_selector("#board")
    page.get_by_label("choose net08", exact=True).check()
    page.wait_for_function("() => location.hash.includes('chosen=')")
    assert query(page)["chosen"] == f"net07|{OURS}|net08"
    there = page.url
    page.get_by_role("link", name="Plot", exact=True).click()
    page.wait_for_function("() => location.hash.startsWith('#/plot') && location.hash.includes('chosen=')")
    page.goto("about:blank")
    page.goto(there)
    page.wait_for_selector("#chosen")
    assert page.locator("#chosen span").inner_text() == "3 models are chosen"
    assert page.get_by_label("choose net08", exact=True).is_checked()
    page.get_by_role("button", name="Compare 3 models").click()
    page.wait_for_function("() => document.querySelectorAll('#models thead th').length === 5")
    assert "difference" not in page.locator("#models thead").inner_text()


def test_the_first_columns_are_those_of_a_study_of_robustness_whatever_their_names():
    registry.load()
    firsts = FirstColumns(registry)
    order = [("val", "val"), *((name, name) for name in SHIFTS), ("avg_corruptions", None)]
    assert [firsts.rank(*each) for each in order] == list(range(7))
    assert [firsts.rank(name, name) for name in ("imagenet1k", "imagenetv2", "imagenet_sketch")] == [0, 1, 2]
    for other in ("val-on-imagenet-a-classes", "greyscale", "imagenet-real", "val.random-500", "digits", "of nobody"):
        assert firsts.rank(other, other) is None, other
