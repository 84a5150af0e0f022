"""From a number to its cause, and the answer first: the leaderboard and the drawer, by mouse and by keyboard."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from browser import drive
from click.testing import CliRunner
from explorer_pages import plain_server, running
from sample_world import BROKEN, COUNT
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.entities import Claim, ClaimSource, Metric
from testbed.extensions.analyses.commands.grid import command as grid
from testbed.extensions.analyses.commands.rank import command
from testbed.extensions.explorer.commands.serve import Page
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import choose_samples, write
from testbed.registry import registry
from testbed.stored_results.pictures import Pictures
from testbed.stored_results.ranking import ranking
from testbed.stored_results.slices import grouped


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


# What is behind a number -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "by"), [("plain", "class"), ("questions", "category")])
def test_worst_groups_and_calibration_are_those_of_the_commands(setting, by, store, world):
    model = {"plain": "one", "questions": "lettered"}[setting]
    (evaluation,) = store.evaluations.find([model], [setting])
    found = make_explorer(store, world[1], None, "samples.db").document(f"breakdown/{evaluation.id}")
    shown = next(each for each in found["groups"] if each["by"] == by)
    expected = grouped(store, setting, [model], shown["score"], by).rows[0][1]
    assert shown["worst"][0] == list(astuple(expected.worst))
    assert (shown["gap"], shown["n"], shown["count"]) == (expected.gap, expected.n, len(expected.groups))
    assert [row[2] for row in shown["worst"]] == sorted(each.value for each in expected.groups)
    metrics = {each.metric: each.value for each in store.results.of([evaluation.id]) if each.slice == "overall"}
    if setting == "plain":
        assert found["reliability"]["error"] == pytest.approx(metrics["ece"])
        assert sum(each["n"] for each in found["reliability"]["bins"]) == COUNT - 1  # one could not be read
    else:
        assert found["reliability"] is None


@drive
def test_a_field_of_the_confusions_leads_to_its_samples_and_has_the_accuracy_of_its_class(page, store):
    (one,) = store.evaluations.find(["one"], ["plain"])
    opened = page(f"confusion/{one.id}")
    groups = grouped(store, "plain", ["one"], "top1", "class").rows[0][1].groups
    read = {row.name: row for row in groups}
    shown = opened.locator("#confusions tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].slice(0, 3).map((each) => each.innerText))"
    )
    broken = {name for name, n, _ in shown if int(n) != read[name].n}  # the class of the sample without an output
    assert len(broken) <= 1
    assert {name: float(value) for name, _, value in shown if name not in broken} == {
        name: pytest.approx(100 * row.value, abs=0.006) for name, row in read.items() if name not in broken
    }
    field = opened.locator("#confusions td.wrong a").first
    number = int(field.inner_text())
    field.click()
    opened.wait_for_selector(".gallery")
    assert opened.locator(".gallery li").count() == number
    opened.locator("#filter-predicted").select_option("")
    opened.wait_for_function("number => document.querySelectorAll('.gallery li').length > number", arg=number)


@drive
def test_a_page_without_samples_says_what_adds_them(page, store):
    (one,) = store.evaluations.find(["one"], ["noisy"])
    said = "These pages have no samples of noisy; testbed site --samples noisy adds them."
    assert page(f"cell/{one.id}").locator("#no-samples").inner_text() == said
    assert said in page(f"compare/{one.id}/{one.id}").locator("main").inner_text()


# The drawer -------------------------------------------------------------------------------------------------------


def number_of(opened: Any, model: str, column: str) -> Any:
    """The link of a number."""
    return opened.locator("#board tbody tr", has_text=model).locator(f'[data-column="{column}"] a')


@drive
@pytest.mark.parametrize(
    "kind", ["files", pytest.param("server", marks=pytest.mark.long), pytest.param("serve", marks=pytest.mark.long)]
)
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


# The answer first -------------------------------------------------------------------------------------------------


@drive
@pytest.mark.parametrize("view", ["leaderboard?find=on:plain", "setting/plain"])
def test_the_first_line_is_the_answer_that_testbed_rank_gives(view, page, store, rank_says):
    opened = page(view)
    said, _, *lines = rank_says("plain").splitlines()
    opened.wait_for_selector("#answer strong")
    assert opened.locator("#answer").inner_text().replace("\u00a0", " ") == f"plain: {said}."
    rows = opened.locator("main tbody tr").all()
    for row, line in zip(rows, lines[2:], strict=True):
        rank, interval, model = line.split()[:3]
        assert model in row.inner_text()
        shown = rank if "–" not in interval else f"{rank} ({interval})"
        assert shown in row.locator('[data-column="rank"], [data-column="place"]').inner_text()


@pytest.fixture
def rank_says(world) -> Callable[..., str]:
    def run(*words: str) -> str:
        done = CliRunner().invoke(command, [*words, "--db-url", world[0]])
        assert done.exit_code == 0, done.output
        return done.stdout

    return run


@drive
def test_mean_ranks_are_over_the_chosen_columns(page, store):
    opened = page("leaderboard?cols=plain|noisy")
    opened.get_by_label("average and mean rank").check()
    opened.wait_for_selector('[data-column="mean rank"]')
    found = ranking(store, ["plain", "noisy"], [], "top1")
    for row in found.rows:
        shown = opened.locator("#board tbody tr", has_text=row.model).locator('[data-column="mean rank"]')
        assert shown.inner_text() == f"{row.mean_rank:.2f}"


# Ties -------------------------------------------------------------------------------------------------------------

WRONG = {"a": range(20), "b": range(32), "c": range(100, 134)}  # of 200 samples


def measured(store: Store, model: str, setting: str) -> None:
    """An evaluation of a model with these mistakes."""
    right = [place not in WRONG[model] for place in range(200)]
    metric = Metric("top1", sum(right) / 200, 200)
    put(store, model, setting, samples_of([0] * 200), saying([int(not each) for each in right]), metric=metric)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> tuple[str, str]:
    """A store, and its page, in which paired tests and intervals of independent results say different things.

    b errs where a does and on twelve more samples, c elsewhere: as if they had seen different samples, b would be tied
    with a, and c would not. On another setting a stands beside published values.
    """
    folder: Path = tmp_path_factory.mktemp("pairs")
    declared = {"better": "higher", "lowest": 0, "highest": 1, "headline": 10, "zero_one": True}
    claims = [
        Claim(f"p{value}", "other", "top1", value / 100, "fraction", str(value), "row 2", "top1", **declared)
        for value in (93, 83)
    ]
    with Store.create(str(folder / "pairs.db")) as made:
        for model in WRONG:
            measured(made, model, "photos")
        measured(made, "a", "other")
        made.claims.add(ClaimSource("blog", "blog.csv", "a" * 64, "a table"), claims)
        explorer = make_explorer(made, registry, None, "pairs.db")
        write(folder / "site", explorer, samples_part(explorer), Pictures(made, registry), {})
    return str(folder / "pairs.db"), (folder / "site" / "index.html").as_uri()


def latex_of(opened: Any) -> dict[str, str]:
    """Model → its row in what the button LaTeX gives."""
    with opened.expect_download() as download:
        opened.locator("#latex").click()
    return by_model(Path(download.value.path()).read_text())


def by_model(text: str) -> dict[str, str]:
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    return {line.split(" & ")[0]: line for line in body}


@drive
def test_the_line_and_the_ranks_are_of_the_models_on_the_screen(page, pairs):
    _, address = pairs
    opened = page("leaderboard?cols=photos&find=b&pin=c", address=address)
    opened.wait_for_selector("#answer strong")
    said = opened.locator("#answer").inner_text().replace("\u00a0", " ")
    values = {name: number_of(opened, name, "photos").inner_text() for name in ("b", "c")}
    assert opened.locator("main tbody th a").all_inner_texts() == ["c", "b"]
    assert said == f"photos: b {values['b']} % leads the models shown; tied with c (Holm, over all 3 models)."
    ranks = opened.locator('td[data-column="rank"]').all_inner_texts()
    assert ranks == ["2", "1"]  # the pinned one stays on top
    alone = page("leaderboard?cols=photos&find=b", address=address)
    alone.wait_for_selector("#answer strong")
    assert (
        alone.locator("#answer").inner_text().replace("\u00a0", " ")
        == f"photos: b {values['b']} % (top1), the only model shown."
    )
    assert "1 model × 1 column" in alone.locator("#about-table").inner_text()


@drive
@pytest.mark.parametrize(("view", "column"), [("leaderboard?cols=photos", "photos"), ("setting/photos", "value")])
def test_shading_ranks_latex_and_the_sentence_are_of_the_same_paired_tests(view, column, page, pairs):
    url, address = pairs
    opened = page(view, address=address)
    opened.wait_for_selector("td.tied")
    said = opened.locator("#answer").inner_text().replace("\u00a0", " ")
    assert said == "photos: a 90.00 % leads; tied with c (Holm); +6.00 points over b."
    assert opened.locator("main tbody th a").all_inner_texts() == ["a", "b", "c"]
    assert opened.locator(f'tr:has(td.tied[data-column="{column}"]) th a').all_inner_texts() == ["a", "c"]
    ranks = opened.locator('td[data-column="rank"], td[data-column="place"]').all_inner_texts()
    assert [rank.split()[0] for rank in ranks] == ["1", "2", "3"]
    assert "from the best of its column (paired tests, Holm)" in opened.locator("main").inner_text()
    rows = latex_of(opened)
    assert [name for name in rows if r"\bfseries" in rows[name]] == ["a"]
    assert [name for name in rows if "^{=}" in rows[name]] == ["c"]
    done = CliRunner().invoke(grid, ["photos", "--format", "latex", "--db-url", url], standalone_mode=False)
    assert by_model(done.stdout) == rows


@drive
def test_views_of_two_settings_say_so_where_there_is_one(page, tmp_path):
    with Store.create(str(tmp_path / "one.db")) as made:
        measured(made, "a", "photos")
        explorer = make_explorer(made, registry, None, "one.db")
        write(tmp_path / "site", explorer, samples_part(explorer), Pictures(made, registry), {})
    for view, what in (("plot", "A plot"), ("robustness", "Effective robustness")):
        opened = page(view, address=(tmp_path / "site" / "index.html").as_uri())
        assert f"{what} needs accuracies on two settings" in opened.locator("main").inner_text()


@drive
def test_where_the_best_is_left_out_ties_are_with_the_best_of_the_others(page, pairs):
    opened = page("leaderboard?cols=photos&find=-a", address=pairs[1])
    opened.wait_for_selector("td.tied")
    assert opened.locator("tr:has(td.tied) th a").all_inner_texts() == ["b", "c"]  # 32 and 34 wrong


@drive
def test_values_without_paired_tests_are_shaded_as_independent_ones_and_the_note_says_which(page, pairs):
    opened = page("leaderboard?cols=photos|other", address=pairs[1])
    opened.wait_for_selector('td.tied[data-column="photos"]')
    assert opened.locator('tr:has(td.tied[data-column="other"]) th a').all_inner_texts() == ["a", "p93"]
    said = opened.locator("#about-table").inner_text()
    independent = "95 %, as if the models had seen different samples"
    assert f"(paired tests, Holm; values of other that have none: {independent})" in said
    opened = page("setting/other", address=pairs[1])
    assert f"({independent}: these values have no paired tests)" in opened.locator("#shading").inner_text()


# State in the address ---------------------------------------------------------------------------------------------


@drive
@pytest.mark.parametrize(
    "view",
    [
        "samples/plain",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("sample/plain/toy%2F0003", "setting/plain")),
    ],
)
def test_the_models_to_compare_are_in_the_address(view, page):
    def values(of: Any) -> list[str]:
        return [of.locator(f"#compare-{key}").input_value() for key in "ab"]

    opened = page(view)
    first, second = values(opened)
    opened.locator("#compare-a").select_option(second)
    opened.wait_for_function("id => location.hash.includes(`a=${id}`)", arg=second)
    opened.wait_for_function("id => document.getElementById('compare-b').value === id", arg=first)
    opened.locator("#compare-b").focus()
    last = opened.evaluate("document.activeElement.selectedIndex") == 1
    opened.keyboard.press("ArrowUp" if last else "ArrowDown")
    opened.wait_for_function("id => location.hash.includes(`b=${id}`)", arg=second)
    opened.wait_for_function("() => document.activeElement.id === 'compare-b'")
    assert values(opened) == values(page(opened.url.partition("#/")[2])) == [second, second]
    opened.go_back()
    opened.wait_for_function("id => document.getElementById('compare-b').value === id", arg=first)
    assert values(opened) == [second, first]
    opened.locator("#compare-go").press("Enter")
    opened.wait_for_selector("table.squares")
    assert opened.url.endswith(f"compare/{second}/{first}")


@drive
def test_the_order_of_models_is_kept_from_sample_to_sample(page):
    opened = page("sample/plain/toy%2F0003?at=3")
    opened.locator("#order").select_option("wrong")
    opened.wait_for_function("() => location.hash.includes('order=wrong')")
    opened.locator("h1").click()
    opened.keyboard.press("ArrowRight")
    opened.wait_for_function("() => document.querySelector('main h1').innerText === 'toy/0004'")
    assert opened.locator("#order").input_value() == "wrong"
    opened.locator("#next").click()
    opened.wait_for_function("() => document.querySelector('main h1').innerText === 'toy/0005'")
    assert opened.locator("#order").input_value() == "wrong"


@drive
def test_an_evaluation_to_find_the_difference_to_is_in_the_address(page, store):
    ids = {each.model: str(each.id) for each in store.evaluations.find(None, ["plain"])}
    opened = page(f"cell/{ids['one']}")
    opened.locator("#other-evaluation").select_option(label="two")
    opened.locator("#difference-go").click()
    opened.wait_for_selector("#numbers")
    opened.go_back()
    opened.wait_for_selector("#other-evaluation")
    assert opened.locator("#other-evaluation").input_value() == ids["two"]


@drive
def test_the_plot_that_a_settings_page_offers_has_another_setting_or_there_is_none(page, pairs):
    for view in ("setting/noisy", "setting/plain"):
        opened = page(view)
        if view.endswith("noisy"):
            opened.locator("#plot-with").click()
        else:
            opened.locator("#plot-with").press("Enter")
        opened.wait_for_selector("canvas[data-points]")
        assert opened.locator("h1").inner_text() == "plain against noisy"
    opened = page("setting/photos", address=pairs[1])  # of its models one is on another setting
    opened.wait_for_selector("#setting")
    assert opened.locator("#plot-with").count() == 0


# Columns and search -----------------------------------------------------------------------------------------------


def heads(opened: Any) -> list[str]:
    """The columns that can be sorted by, but for the model's."""
    return opened.locator("#board [data-sort]").evaluate_all("all => all.slice(1).map((each) => each.dataset.sort)")


@drive
def test_columns_are_named_between_blanks_commas_or_bars_and_a_typo_is_said(page):
    opened = page("leaderboard?cols=" + quote(" plain , noisy |palin"))
    opened.wait_for_selector("#board")
    assert sorted(heads(opened)) == ["noisy", "plain"]
    assert "no column is named “palin”" in opened.get_by_role("alert").inner_text()


def test_outputs_that_only_serve_other_settings_are_no_columns(store, world):
    assert "captions.image_embeddings" in {each.eval_setting for each in store.evaluations.find()}
    columns = make_explorer(store, world[1], None, "samples.db").document("index")["columns"]
    assert [each["name"] for each in columns if "embeddings" in each["name"]] == []


@drive
def test_columns_are_picked_by_mouse_and_by_keyboard(page):
    opened = page("leaderboard?cols=plain", 1440, 900)
    opened.locator("#columns-summary").press("Enter")
    noisy = opened.locator("#columns").get_by_label("noisy")
    noisy.press("Space")
    opened.wait_for_selector('#board [data-sort="noisy"]')
    assert noisy.is_checked()
    assert opened.evaluate("document.activeElement.parentElement.innerText").startswith("noisy")  # and may go on
    assert "2 models" in opened.locator("#columns label", has_text="noisy").inner_text()
    opened.locator("#columns").get_by_label("plain").uncheck()
    opened.wait_for_selector('#board:not(:has([data-sort="plain"]))')
    opened.go_back()
    opened.wait_for_selector('#board [data-sort="plain"]')


@drive
def test_a_word_that_only_columns_have_chooses_columns_and_one_that_nothing_has_is_said(page):
    opened = page("leaderboard")
    box = opened.locator("#search")
    box.fill("pla")
    box.press("Enter")
    opened.wait_for_selector('#board [data-sort="plain"]')
    assert heads(opened) == ["plain"]
    opened.locator("#box-find").fill("nobody")
    opened.locator("#box-find").press("Enter")
    assert "“nobody”" in opened.get_by_role("alert").inner_text()


@drive
def test_names_are_sorted_upwards_first_and_a_single_result_is_not_the_best(page):
    opened = page("leaderboard?cols=plain|captions&task=all")
    assert opened.locator('td.tied[data-column="plain"]').count() > 0
    assert opened.locator('td.tied[data-column="captions"]').count() == 0
    opened.locator('[data-sort="model"]').click()
    opened.wait_for_selector('th[aria-sort="ascending"] [data-sort="model"]')
    assert opened.locator("#board tbody th a").all_inner_texts() == ["one", "tower", "two"]
    opened.locator('[data-sort="model"]').press("Enter")
    opened.wait_for_selector('th[aria-sort="descending"] [data-sort="model"]')
    assert opened.locator("#board tbody th a").all_inner_texts() == ["two", "tower", "one"]


@drive
def test_the_first_number_is_a_few_keys_away(page):
    opened = page("leaderboard")
    opened.wait_for_selector("#board td a")
    opened.keyboard.press("Tab")
    opened.keyboard.press("Tab")
    opened.keyboard.press("Enter")
    assert opened.evaluate("document.activeElement.closest('td') === document.querySelector('#board td:has(a)')")
    opened.keyboard.press("Enter")
    opened.wait_for_selector("dialog[open] #headline")


@drive
def test_on_a_phone_the_table_comes_before_the_controls(page):
    opened = page("leaderboard", 360, 740, has_touch=True)
    opened.wait_for_selector("#answer strong")
    assert opened.locator("#board tbody td a").first.bounding_box()["y"] < 500
    assert not opened.locator("#box-find").is_visible()
    opened.locator("#fold").tap()
    assert opened.locator("#box-find").is_visible()
    opened.locator("#board tbody td a").first.tap()
    opened.wait_for_selector("dialog[open] #headline")


@drive
def test_samples_of_an_attack_ask_for_no_picture_that_is_not_stored(page):
    opened = page("leaderboard")
    source = "S => S.picture({ number: 0, perturbed: 'attack' }, 3, '').getAttribute('src')"
    assert opened.evaluate(f"({source})(T.samples)") == "pictures/0/3-clean.jpg"
