"""The explorer of a store of published values: boards by task, lines through a baseline, marks, disagreements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from browser import drive

from testbed.db.store import Store
from testbed.entities import CellRecord, Claim, ClaimSource, Metric
from testbed.extensions.explorer.boards import board_of
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import write
from testbed.registry import registry
from testbed.stored_results.pictures import Pictures

V2 = "imagenetv2-matched-frequency-format-val"
CLIP = "ViT-B-32,laion2b_s34b_b79k"
OURS = "ours"
CLIP_SETS = ("cars", "imagenet1k", "food101")


def accuracies() -> dict[str, tuple[float, float]]:
    """timm's names: val and V2; those of ImageNet-1k alone near a line, others above it."""
    generator = np.random.default_rng(0)
    found = {}
    for number in range(24):
        x = generator.uniform(0.6, 0.88)
        z = 0.9 * np.log(x / (1 - x)) - 0.6 + generator.normal(0, 0.1) + (0.5 if number >= 16 else 0)
        tag = "in1k" if number < 16 else "laion2b_ft_in1k"
        found[f"timm/net{number}.{tag}@224"] = (round(x, 4), round(1 / (1 + np.exp(-z)), 4))
    return found


def claim(model: str, setting: str, value: float, metric: str = "top1") -> Claim:
    declared = {"better": "higher", "lowest": 0, "highest": 1, "headline": 10, "zero_one": metric == "top1"}
    return Claim(model, setting, metric, value, "fraction", f"{100 * value:.2f}", "row 2", metric, **declared)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of published values, with one model that was measured here."""
    made = Store.create(str(tmp_path_factory.mktemp("atlas") / "atlas.db"))
    rows = accuracies()
    theirs = [
        claim(model, on, value) for model, pair in rows.items() for on, value in zip(("val", V2), pair, strict=True)
    ]
    of_clip = [claim(CLIP, setting, 0.6) for setting in CLIP_SETS]
    recalls = [claim(CLIP, setting, 0.5, "image_retrieval_recall@5") for setting in ("flickr30k", "mscoco_captions")]
    few = [claim("timm/net0.in1k@224", "imagenet-c.fog.3_on-disk", 0.4)]
    other = [claim(CLIP, "cars", 0.57), claim(OURS, "val", 0.9)]
    for name, claims in (("timm", [*theirs, *few]), ("open_clip", [*of_clip, *recalls]), ("mteb", other)):
        made.claims.add(ClaimSource(name, f"{name}.csv", "a" * 64, "a table"), claims)
    for setting, value in (("val", 0.7), (V2, 0.6)):
        begun = made.evaluations.begin(CellRecord(OURS, setting, setting, identity={"model": {}}), None, {}, {})
        spec = {"better": "higher", "lowest": 0, "highest": 1, "headline": 10, "zero_one": True}
        made.evaluations.complete(begun.id, [], [Metric("top1", value, 10_000, **spec)])
    yield made
    made.close()


@pytest.fixture(scope="module")
def explorer(store: Store) -> Any:
    registry.load()
    return make_explorer(store, registry, None, "atlas.db")


def column_of(explorer: Any, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    columns = explorer.document("index")["columns"]
    place = next(at for at, each in enumerate(columns) if each["name"] == name)
    return columns[place], explorer.document(f"values/{place}")


@pytest.mark.parametrize(
    ("setting", "task", "metric", "board"),
    [
        ("val", None, "top1", "classification"),
        ("imagenet-c.fog.3_on-disk", None, "top1", "classification"),
        ("digits", "classification", "top1", "classification"),
        ("cars", None, "top1", "classification (CLIP benchmark)"),
        ("vtab/dtd", None, "top1", "classification (CLIP benchmark)"),
        ("cifar10.linear_probe", None, "top1", "linear probe"),
        ("mscoco_captions", None, "image_retrieval_recall@5", "retrieval"),
        ("crossmodal3600.zeroshot.sw", None, "image_retrieval_recall@5", "retrieval (other languages)"),
        ("of nobody", None, "top1", "classification"),
        ("of nobody", None, "wer", "others"),
        ("of nobody", "question_answering", "acc", "question answering"),
    ],
)
def test_settings_are_on_the_board_of_their_task(setting, task, metric, board):
    registry.load()
    assert board_of(setting, task, metric, registry) == board


def test_columns_say_how_many_models_have_them_and_how_many_were_measured_here(explorer):
    told = {name: column_of(explorer, name)[0] for name in ("val", "cars", "imagenet-c.fog.3_on-disk")}
    assert {name: (each["models"], each["own"]) for name, each in told.items()} == {
        "val": (25, 1),
        "cars": (1, 0),
        "imagenet-c.fog.3_on-disk": (1, 0),
    }


def test_a_published_value_says_whose_it_is(explorer):
    assert sorted(column_of(explorer, V2)[1]["origins"]) == [*["published (timm)"] * 24, "run"]
    cars = column_of(explorer, "cars")[1]
    assert (cars["values"], cars["origins"]) == ([0.57], "published (mteb)")  # the first of two sources, by name


def test_disagreements_are_those_of_sources_and_of_what_was_measured(explorer):
    found = explorer.document("disagreements")
    (sources,) = found["sources"]
    assert sources["names"] == ["mteb", "open_clip"]
    assert sources["summary"].startswith("1 pair of values (1 model × 1 set) from mteb and open_clip; 1 differ by more")
    (pair,) = sources["pairs"]
    assert (pair["points"], pair["setting"], pair["metric"]) == (-3.0, "cars", "top1")
    assert [(each["model"], each["value"]) for each in pair["values"]] == [(CLIP, 0.57), (CLIP, 0.6)]
    (measured,) = found["measured"]
    assert (measured["model"], measured["setting"]) == (OURS, "val")
    assert "published 90.00 (mteb); measured 70.00 ± 0.46: differs by −20.0 points" in measured["line"]


def test_a_store_without_published_values_has_none(tmp_path):
    with Store.create(str(tmp_path / "empty.db")) as empty:
        made = make_explorer(empty, registry, None, "empty.db")
        assert not made.document("index")["disagreements"]
        assert "disagreements" not in set(made.paths())


# Pages ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(browser, store, explorer, tmp_path_factory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("atlas-site")
    write(folder, explorer, samples_part(explorer), Pictures(store, registry), {})
    context = browser.new_context(viewport={"width": 1200, "height": 800})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto((folder / "index.html").as_uri())
    opened.wait_for_selector("#board")
    yield opened
    context.close()
    assert faults == []


def go(page, place: str, wait: str) -> None:
    page.evaluate("hash => { location.hash = hash; }", f"#/{place}")
    page.wait_for_function("place => decodeURIComponent(location.hash) === decodeURIComponent(place)", arg=f"#/{place}")
    page.wait_for_selector(wait)
    page.wait_for_timeout(60)


def heads(page) -> list[str]:
    return page.locator("#board thead th").evaluate_all(
        "all => all.map((each) => each.innerText.replace(/[▼▲⋯\\s]+$/, ''))"
    )


def models(page) -> list[str]:
    return page.locator("#board tbody tr:not(.space) th a").all_inner_texts()


@drive
def test_each_task_has_its_models_and_settings(page):
    go(page, "leaderboard", "#board")
    assert page.locator(".tabs [aria-current]").inner_text() == "classification"
    assert heads(page) == ["model", "rank", "val", V2, "training data"]  # and not the corruption that one model has
    assert set(models(page)) == {*accuracies(), OURS}
    page.locator(".tabs").get_by_text("classification (CLIP benchmark)").click()
    page.wait_for_function("() => document.querySelectorAll('#board tbody tr').length === 1")
    assert heads(page) == ["model", "rank", "imagenet1k", "cars", "food101"]
    assert models(page) == [CLIP]
    page.locator(".tabs").get_by_text("all tasks").click()
    page.wait_for_selector('.tabs [aria-current]:has-text("all tasks")')
    page.locator("#columns-summary").click()
    page.get_by_role("button", name="All 8 columns").click()
    page.wait_for_selector('[data-sort="mscoco_captions"]')
    assert "imagenet-c.fog.3_on-disk" in heads(page)
    assert len(models(page)) == 26


@drive
def test_published_values_are_marked_and_measured_ones_are_not(page):
    go(page, "leaderboard", "#board")
    marks = {}
    for row in page.locator("#board tbody tr").all():
        first = row.locator('[data-column="val"]')
        mark = first.evaluate("cell => getComputedStyle(cell, '::after').content")
        marks[row.locator("th a").inner_text()] = [mark, first.get_attribute("title")]
    assert marks["timm/net0.in1k@224"] == ['"†"', "published (timm)"]
    assert marks[OURS][0] == "none"
    assert marks[OURS][1].startswith("published 90.00 (mteb); measured 70.00")
    assert "† published, not measured here" in page.locator("main .note").first.inner_text()


@drive
def test_training_data_is_a_column_and_a_filter_against_contamination(page):
    for words, count in (("pretraining:laion*", 8), ("-pretraining:laion*", 17), ("-pretraining:laion* -ours", 16)):
        go(page, f"leaderboard?find={words}&pin=|", "#board")  # without the model that is pinned by default
        assert len(models(page)) == count, words
    go(page, "leaderboard?find=net20", "#board")
    go(page, "leaderboard", "#board")
    row = page.locator("#board tbody tr", has_text="net20.")
    assert row.locator("td").last.inner_text() == "LAION-2B, ImageNet-1k"


@drive
def test_of_published_values_the_answer_is_their_order_and_claims_no_test(page):
    go(page, f"setting/{V2}", "#answer strong")
    said = page.locator("#answer").inner_text().replace("\u00a0", " ")
    best = max(accuracies(), key=lambda name: accuracies()[name][1])
    assert said.startswith(f"{V2}: highest top1: {best} {100 * accuracies()[best][1]:.2f} %, ")
    assert "the differences are not tested" in said


def least_squares(rows: list[tuple[float, float]]) -> tuple[float, float]:
    """Slope and r² of logits, by numpy's polyfit and corrcoef."""
    x, y = (np.log(np.array(each) / (1 - np.array(each))) for each in zip(*rows, strict=True))
    return float(np.polyfit(x, y, 1)[0]), float(np.corrcoef(x, y)[0, 1] ** 2)


@drive
@pytest.mark.parametrize(
    ("baseline", "told", "chosen"),
    [
        ("", "16 models with only ImageNet-1k in their names", lambda name: "laion" not in name and name != OURS),
        ("all", "25 models", lambda name: True),
    ],
)
def test_the_line_says_its_baseline_its_models_slope_and_r2(page, baseline, told, chosen):
    go(page, f"plot?x=val&y={V2}&baseline={baseline}" if baseline else f"plot?x=val&y={V2}", "canvas[data-points]")
    rows = {**accuracies(), OURS: (0.7, 0.6)}
    slope, r2 = least_squares([row for name, row in rows.items() if chosen(name)])
    said = page.locator("main .note").first.inner_text()
    assert f"the line through {told}: slope {slope:.3f}" in said
    assert f"r² {r2:.3f}" in said
    assert "of which 1 measured here (outlined)" in said


@drive
def test_measured_models_stand_out_and_lines_to_other_settings_are_listed(page):
    go(page, f"plot?x=val&y={V2}", "canvas[data-points]")
    drawn = page.evaluate("T.shownPlot.svg()")
    assert re.findall(r'<path [^>]*stroke="[^>]*><title>([^<]*)', drawn) == [OURS]
    go(page, f"robustness?x=val&y={V2}", "#lines")
    slope, r2 = least_squares([row for name, row in accuracies().items() if "laion" not in name])
    cells = page.locator("#lines tbody tr").first.locator("th, td").all_inner_texts()
    assert cells == [V2, "16", "models with only ImageNet-1k in their names", f"{slope:.3f}", f"{r2:.3f}"]


@drive
def test_who_says_what_of_a_model_and_of_a_cell(page):
    go(page, "published", "#sources")
    sources = page.locator("#sources tbody tr").all_inner_texts()
    assert [row.split()[0] for row in sources] == ["mteb", "open_clip", "timm"]
    page.select_option('[data-key="source"]', "open_clip")
    page.wait_for_selector("#models")
    ((model, number),) = (row.split() for row in page.locator("#models tbody tr").all_inner_texts())
    assert model == CLIP
    assert page.locator("#files tbody tr").all_inner_texts() == ["open_clip.csv\t–\t0"]
    page.locator("#models tbody a").click()
    page.wait_for_selector("#claims")
    claims = [row.locator("th, td").all_inner_texts() for row in page.locator("#claims tbody tr").all()]
    assert [of[4] for of in claims] == ["open_clip"] * int(number)
    go(page, f"model/{quote(CLIP, safe='')}", "#published-about")
    page.locator("#published-about").click()
    page.wait_for_selector("#claims")
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator("#claims tbody tr").all()]
    of_cars = [[row[2], row[4], row[7]] for row in rows if row[0] == "cars"]
    assert of_cars == [["57.00 %", "mteb", "mteb.csv, row 2"], ["60.00 %", "open_clip", "open_clip.csv, row 2"]]
    go(page, f"published/{quote(CLIP, safe='')}?on=val", "#nothing")
    assert page.locator("#nothing").inner_text() == "Nothing is published for this cell."


@drive
def test_disagreements_are_listed(page):
    go(page, "disagreements", "#disagree-0")
    assert page.locator("#disagree-0 tbody tr").count() == 1
    assert CLIP in page.locator("#disagree-0 tbody tr").inner_text()
    assert "differs by −20.0 points" in page.locator("#measured tbody tr").inner_text()
