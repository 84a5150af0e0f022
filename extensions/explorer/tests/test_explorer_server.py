"""The explorer over HTTP, as files, and its pages of samples in a real browser."""

from __future__ import annotations

import functools
import http.client
import http.server
import itertools
import json
import shutil
import socket
import sqlite3
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import pytest
from browser import drive
from click.testing import CliRunner
from explorer_pages import running
from places import ASSETS
from sample_world import COUNT
from tables import cases
from toy import toy_catalog, toy_setting

from testbed.db.store import Store
from testbed.db.upkeep.merge import merge
from testbed.entities import FRACTION
from testbed.errors import MissingExtraError, TestbedError
from testbed.extensions.explorer.app import LiveExplorer, make_app
from testbed.extensions.explorer.commands.serve import Page
from testbed.extensions.explorer.commands.site import command
from testbed.extensions.explorer.explorer import make_explorer, samples_part
from testbed.extensions.explorer.export import choose_samples, write
from testbed.formatting import difference, interval, mean_score, p_value
from testbed.metrics.inference.paired import compare
from testbed.registry import Catalog
from testbed.stored_results.paired import compare_pairs
from testbed.stored_results.pictures import Pictures

CHOSEN = 20  # samples of a setting in the export


@pytest.fixture(scope="module")
def server(world: tuple[str, Catalog]) -> Iterator[str]:
    with running(Page(world[0], "127.0.0.1", 0, None, "samples.db", world[1])) as url:
        yield url


def get(url: str, **headers: str) -> tuple[int, bytes, Any]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def document(server: str, path: str) -> Any:
    status, content, _ = get(f"{server}/data/{path}.json")
    assert status == 200
    return json.loads(content)


# Over HTTP --------------------------------------------------------------------------------------------------------


def test_the_server_gives_the_page_its_documents_and_pictures_and_nothing_else(server):
    status, content, headers = get(f"{server}/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'<script src="sample.js">' in content
    assert headers["X-Content-Type-Options"] == "nosniff"
    settings = [each["name"] for each in document(server, "index")["settings"]]
    place = settings.index("noisy")
    assert document(server, f"samples/{place}")["setting"] == "noisy"
    own, clean = (get(f"{server}/pictures/{place}/3{kind}.jpg") for kind in ("", "-clean"))
    assert own[2]["Content-Type"] == clean[2]["Content-Type"] == "image/jpeg"
    assert own[1] != clean[1]
    assert get(f"{server}/pictures/{place}/7.jpg")[:2] == (404, b"toy/0007 is broken")
    paths = (
        "/app.py",
        "/../setup.cfg",
        "/%2e%2e/setup.cfg",
        "/data/../index.html",
        "/data/nothing.json",
        "/data/index.js",  # a script, which any page could run
        "/pictures/99/0.jpg",
    )
    for path in (
        *paths,
        f"/pictures/{place}/..%2f..%2fsetup.cfg",
        f"/pictures/{place}/-1.jpg",
        f"/pictures/{place}/999.jpg",
    ):
        assert get(server + path)[0] == 404, path


def test_another_sites_page_cannot_read_what_is_served_here(server):
    for path in ("/data/index.json", "/pictures/0/0.jpg", "/"):
        assert get(f"{server}{path}", Host="evil.example")[0] == 403
        assert get(f"{server}{path}", Host="evil.example:8765")[0] == 403
        assert get(f"{server}{path}", Host="localhost:8765")[0] in (200, 404)


# What a browser sends for a page: of another site, of another port of this machine, in a frame.
FOREIGN = [
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "anything"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
]


def test_a_foreign_page_in_the_same_browser_gets_nothing(server):
    for headers, path in itertools.product(
        FOREIGN, ("/", "/core.js", "/data/index.json", "/data/samples/0.json", "/pictures/0/0.jpg", "/nothing")
    ):
        assert get(f"{server}{path}", **headers)[0] == 403, (headers, path)


def test_a_link_opens_the_page_and_nothing_else(server):
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert get(f"{server}/", **link)[0] == 200
    assert {get(f"{server}{path}", **link)[0] for path in ("/data/index.json", "/pictures/0/0.jpg", "/core.js")} == {
        403
    }
    for own in ("same-origin", "none"):
        assert get(f"{server}/data/index.json", **{"Sec-Fetch-Site": own})[0] == 200


@cases("path", ["/", "/core.js", "/data/index.json", "/pictures/0/0.jpg", "/pictures/0/99.jpg", "/no/no"])
@cases("headers", [{}, {"Host": "evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_every_answer_is_for_pages_of_this_server_only(server, path, headers):
    _, _, told = get(f"{server}{path}", **headers)
    assert told["Cross-Origin-Resource-Policy"] == "same-origin"
    assert told["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in told["Content-Security-Policy"]
    assert told["Access-Control-Allow-Origin"] is None
    assert not told["Content-Type"].startswith("text/javascript") or path == "/core.js"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_only_reading_is_possible(server, method):
    for path in ("/", "/data/index.json", "/pictures/0/0.jpg"):
        connection = http.client.HTTPConnection(server.removeprefix("http://"))
        connection.request(method, path, body=b"{}")
        answer = connection.getresponse()
        assert answer.status == 405
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        connection.close()


def test_head_tells_what_get_would(server):
    for path in ("/", "/data/index.json", "/pictures/0/0.jpg"):
        asked = urllib.request.Request(f"{server}{path}", method="HEAD")
        with urllib.request.urlopen(asked) as answer:
            assert (answer.status, answer.read()) == (200, b"")
            assert int(answer.headers["Content-Length"]) == len(get(f"{server}{path}")[1])


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["Host: evil.example", "Host: 127.0.0.1"],
        ["Host: 127.0.0.1", "Host: evil.example"],
        ["Host: 127.0.0.1.evil.example"],
        ["Host: evil.example:127.0.0.1"],
        ["Host: user@127.0.0.1"],
        ["Host: evil.example#127.0.0.1"],
        ["Host: [::1].evil.example"],
        ["Host: "],
    ],
)
def test_a_host_that_is_none_or_several_or_another_is_refused(server, lines):
    with socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2])), timeout=10) as raw:
        text = "\r\n".join(["GET /data/index.json HTTP/1.1", *lines, "Connection: close", "", ""])
        raw.sendall(text.encode())
        said = b"".join(iter(lambda: raw.recv(65536), b""))
    assert said.split()[1] in (b"403", b"400")
    assert b"samples.db" not in said


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:80", "[::1]", "[::1]:8765"])
def test_this_machine_has_several_names(server, host):
    assert get(f"{server}/data/index.json", Host=host)[0] == 200


def test_a_server_for_others_answers_to_its_addresses_and_names_only(world):
    with running(Page(world[0], "0.0.0.0", 0, None, "samples.db", world[1])) as url:
        for host in (
            "127.0.0.1",
            "192.0.2.7:8765",
            "[2001:db8::1]:80",
            "localhost",
            "box12:8765",
            socket.gethostname(),
        ):
            assert get(f"{url}/data/index.json", Host=host)[0] == 200, host
        for host in ("evil.example", f"{socket.gethostname()}.evil.example", "127.0.0.1.evil.example"):
            assert get(f"{url}/data/index.json", Host=host)[0] == 403, host


LARGE = [10**6, 2**31, 2**63, 10**25]


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_numbers_that_nothing_has_are_not_found(world, backend, request):
    url = world[0]
    if backend == "postgres":
        url = request.getfixturevalue("postgres_copy")
    with running(Page(url, "127.0.0.1", 0, None, "samples.db", world[1])) as server:
        document(server, "index")
        for large in (*LARGE, "9" * 5000, "-1", "1e3", "٣", ""):
            asked = urllib.parse.quote(str(large))
            for path in (
                f"pictures/0/{asked}.jpg", f"pictures/0/{asked}-clean.jpg", f"pictures/{asked}/0.jpg",
                f"data/cells/{asked}.json", f"data/confusion/{asked}.json", f"data/packed/{asked}.json",
                f"data/samples/{asked}.json", f"data/samples/0/chunk/{asked}.json", f"data/samples/0/ids/{asked}.json",
                f"data/details/{asked}/0.json", f"data/details/1/{asked}.json", f"data/values/{asked}.json",
                f"data/metric/0/{asked}.json", f"data/samples/{asked}/filters.json",
            ):  # fmt: skip
                assert get(f"{server}/{path}")[0] == 404, path


@pytest.fixture(scope="module")
def postgres_copy(world, postgres_url: str) -> Iterator[str]:
    """The same store on Postgres."""
    with postgres_server.database(postgres_url) as url:
        with Store.open(world[0]) as source, Store.create(url) as target:
            merge(source, target)
        yield url


def test_a_store_that_cannot_be_read_is_said_in_the_answer(world, tmp_path):
    with running(Page(str(tmp_path / "gone–.db"), "127.0.0.1", 0, None, "gone.db", world[1])) as url:
        status, content, _ = get(f"{url}/data/index.json")
        assert status == 503
        assert "no results store at" in content.decode()


def test_a_port_that_is_taken_is_said(server, world):
    port = int(server.rpartition(":")[2])
    with pytest.raises(TestbedError, match=rf"cannot listen on 127\.0\.0\.1:{port}.*try another --port"):
        Page(world[0], "127.0.0.1", port, None, "store.db", world[1])


def test_what_is_served_follows_the_store(world, tmp_path):
    copy = shutil.copy(Path(world[0]), tmp_path / "copy.db")
    served = LiveExplorer(str(copy), world[1], None, "copy.db")
    assert b'"one"' in served.document("samples/5")
    with Store.open(str(copy), "write") as store:
        store.removal.hide("one", "plain")
    served._asked = 0.0
    index = json.loads(served.document("index"))
    place = [each["name"] for each in index["settings"]].index("plain")
    assert b'"one"' not in served.document(f"samples/{place}")
    served.close()


def test_without_the_extra_the_hint_says_what_to_install(monkeypatch, world):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(MissingExtraError, match=r"needs the package starlette: pip install -e '\.\[serve\]'"):
        make_app(LiveExplorer(world[0], world[1], None, "store.db"), "127.0.0.1")


# As files ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(world: tuple[str, Catalog], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export with some samples of all settings."""
    out = tmp_path_factory.mktemp("site")
    with Store.open(world[0]) as store:
        chosen = choose_samples(store, ["*"], CHOSEN)
        explorer = make_explorer(store, world[1], None, "samples.db", chosen)
        write(out, explorer, samples_part(explorer), Pictures(store, world[1]), chosen)
    return out


def test_samples_are_of_settings_and_not_of_the_nodes_of_a_probe(tmp_path):
    """The store has embeddings of training images, which nothing else was evaluated on."""
    copy = shutil.copy(ASSETS / "golden_store.db", tmp_path / "probe.db")
    with sqlite3.connect(copy) as raw:
        changed = raw.execute("UPDATE eval_settings SET name = 'only-train' WHERE name = 'train' AND node <> ''")
        assert changed.rowcount == 1
    with Store.open(str(copy)) as store:
        chosen = choose_samples(store, ["*"], 4)
        assert {"probe", "plain"} <= set(chosen)
        assert "only-train" not in chosen
        assert set(choose_samples(store, ["probe"], 4)) == {"probe"}


def test_an_export_has_the_pictures_of_its_samples_and_says_its_size(site, world, tmp_path):
    index = json.loads((site / "data" / "index.js").read_text().partition(", ")[2].rstrip(";\n").removesuffix(")"))
    place = [each["name"] for each in index["settings"]].index("noisy")
    pictures = {each.name for each in (site / "pictures" / str(place)).iterdir()}
    assert len([name for name in pictures if name.endswith("-clean.jpg")]) in (CHOSEN - 1, CHOSEN)
    assert len(pictures) % 2 == 0
    done = CliRunner().invoke(command, ["--db-url", world[0], "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    files = [each for each in (tmp_path / "out").rglob("*") if each.is_file()]
    size = sum(each.stat().st_size for each in files)
    assert f"index.html ({len(files)} files, of which 0 pictures; {size / 1e6:.1f} MB)" in done.output
    assert not (tmp_path / "out" / "pictures").exists()
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(command, ["--db-url", world[0], "--out", str(tmp_path / "file")])
    assert "cannot be written" in str(done.exception)
    done = CliRunner().invoke(command, ["--db-url", world[0], "--samples", "plane", "--out", str(tmp_path / "out")])
    assert "plane" in str(done.exception)


# In a browser -----------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Any, site: Path) -> Iterator[Callable[..., Any]]:
    """Opens a view of the exported page; errors, and requests that leave the machine, are failures."""
    faults: list[str] = []
    contexts = []

    def open_view(view: str, width: int = 1200, height: int = 800, address: str = "", **options: Any) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        opened = contexts[-1].new_page()
        opened.on("pageerror", lambda error: faults.append(str(error)))
        local = ("file:", "data:", "blob:", "http://127.0.0.1")
        opened.on("request", lambda asked: None if asked.url.startswith(local) else faults.append(asked.url))
        opened.goto(f"{address or (site / 'index.html').as_uri()}#/{view}")
        opened.wait_for_selector("main h1")
        return opened

    yield open_view
    for context in contexts:
        context.close()
    assert faults == []


def tab_to(opened: Any, wanted: str) -> None:
    """Presses Tab until an element has the focus."""
    for _ in range(150):
        if opened.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            return
        opened.keyboard.press("Tab")
    pytest.fail(f"Tab does not reach {wanted}")


@drive
def test_the_keyboard_goes_from_the_leaderboard_to_samples_to_a_comparison_and_filters_it(page, world):
    with Store.open(world[0]) as store:
        ids = {each.model: each.id for each in store.evaluations.find(["one", "two"], ["noisy"])}
    opened = page("leaderboard?find=on:noisy")
    opened.wait_for_selector(f'#board a[href*="cell/{ids["one"]}"]')
    for wanted, shown in (
        (f'#board a[href*="cell/{ids["one"]}"]', "dialog[open] #metrics"),
        ('dialog a[href*="samples/noisy"]', ".gallery"),
        ('.gallery a[href*="0000"]', ".steps"),
    ):
        tab_to(opened, wanted)
        opened.keyboard.press("Enter")
        opened.wait_for_selector(shown)
    assert opened.locator("h1").first.inner_text() == "toy/0000"
    assert opened.locator("figcaption").all_inner_texts() == ["clean", "perturbed as in noisy"]
    opened.wait_for_function(
        "() => [...document.querySelectorAll('.pictures img')].every((each) => each.naturalWidth > 0)"
    )
    rows = opened.locator("table.answers tbody tr")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["one", "two"]
    opened.keyboard.press("ArrowRight")
    opened.wait_for_function("() => document.querySelector('main h1').innerText !== 'toy/0000'")
    second = opened.locator("h1").first.inner_text()
    assert "toy%2F" in opened.url
    opened.keyboard.press("ArrowLeft")
    opened.wait_for_function("() => document.querySelector('main h1').innerText === 'toy/0000'")
    opened.go_back()
    opened.wait_for_function("name => document.querySelector('main h1').innerText === name", arg=second)
    tab_to(opened, ".comparing button")
    opened.keyboard.press("Enter")
    opened.wait_for_selector("table.squares")
    with Store.open(world[0]) as store:
        scores = [next(iter(store.scores.read(ids[model], "top1").values())).astype(bool) for model in ("one", "two")]
        targets = np.array(
            [each.target for each in store.datasets.get(store.evaluations.get(ids["one"]).dataset_id).samples]
        )
    expected = {"both": scores[0] & scores[1], "a": scores[0] & ~scores[1], "b": ~scores[0] & scores[1]}
    expected["none"] = ~scores[0] & ~scores[1]
    for key, found in expected.items():
        assert opened.locator(f"#cell-{key}").inner_text() == str(found.sum()), key
    opened.locator("#cell-b").focus()
    opened.keyboard.press("Enter")
    opened.wait_for_selector("#cell-b[aria-pressed=true]")
    assert opened.evaluate("document.activeElement.id") == "cell-b"
    label = int(np.bincount(targets[expected["b"]]).argmax())
    opened.locator("#filter-class").focus()
    for step in range(label + 1):
        opened.keyboard.press("ArrowDown")
        opened.wait_for_function("name => document.getElementById('filter-class').value === name", arg=f"class {step}")
    of_class = targets == label
    opened.wait_for_function(
        "count => document.getElementById('cell-b').innerText === count", arg=str((expected["b"] & of_class).sum())
    )
    assert f"samples\n{of_class.sum()}\n" in opened.locator("#statistics").inner_text() + "\n"


@drive
def test_a_page_of_another_port_can_neither_run_nor_show_nor_read_what_is_served(browser, server, tmp_path):
    (tmp_path / "index.html").write_text(
        "<script>given = []; T = {give: (...all) => given.push(all)};</script>"
        f"<script src='{server}/data/index.js'></script><script src='{server}/data/index.json'></script>"
        f"<img src='{server}/pictures/0/0.jpg'><iframe src='{server}/'></iframe>"
    )
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
        opened = browser.new_page()
        opened.goto(f"http://localhost:{other.server_port}/")
        opened.wait_for_load_state("networkidle")
        assert opened.evaluate("given") == []
        assert opened.evaluate("document.querySelector('img').naturalWidth") == 0
        read = "url => fetch(url).then((answer) => answer.text()).catch(() => null)"
        for path in ("/", "/data/index.json", "/pictures/0/0.jpg"):
            assert opened.evaluate(read, server + path) is None
        assert "samples.db" not in "".join(frame.content() for frame in opened.frames)
        opened.close()
        other.shutdown()


@drive
def test_a_comparison_that_the_command_calls_tied_is_tied_on_the_page(page, world):
    with Store.open(world[0]) as store:
        for setting, (first, second) in itertools.product(("plain", "noisy"), itertools.permutations(("one", "two"))):
            ids = {each.model: each.id for each in store.evaluations.find([first, second], [setting])}
            (pair,) = compare_pairs(store, [first, second], [setting], "top1").rows
            assert (pair.verdict, pair.comparison.difference != 0) == ("tied", True)
            opened = page(f"compare/{ids[first]}/{ids[second]}")
            opened.wait_for_selector("#statistics")
            said, of = opened.locator("#statistics").inner_text(), pair.comparison
            assert f"top1 of A\n{mean_score(of.first, FRACTION)}\n" in said
            assert f"A − B\n{difference(of.difference, FRACTION)}\nverdict\ntied\n" in said
            assert said.endswith(f"{interval(of.low, of.high, signed=True)}\np\n{p_value(of.p)}")
        with opened.expect_download() as download:
            opened.locator("#latex").click()
        text = Path(download.value.path()).read_text()
        numbers = [f"{100 * value:.2f}" for value in (of.difference, of.low, of.high)]
        assert f"same samples: tied, p = {p_value(of.p)}." in text
        assert "A $-$ B & {} & $\\,[{}, {}]$".format(*numbers) in text


# Samples that only A, or only B, gets right → verdicts where more is better, where less is, and where it is unknown.
VERDICTS = {
    (16, 4): ["A is better", "B is better", "A is higher"],
    (4, 16): ["B is better", "A is better", "B is higher"],
    (11, 9): ["tied"] * 3,
    (0, 0): ["–"] * 3,
}


@drive
def test_a_verdict_is_given_where_the_test_finds_a_difference(page):
    """By hand: McNemar's p of 16 against 4 is 0.012, that of 11 against 9 is 0.82."""
    verdicts = "([a, b]) => [true, false, null].map((larger) => T.verdict(T.paired(a, b, null), larger))"
    opened = page("leaderboard")
    for (right, other), expected in VERDICTS.items():
        first, second = ([each] * right + [1 - each] * other for each in (1, 0))
        assert opened.evaluate(verdicts, [first, second]) == expected, (right, other)


@drive
def test_a_server_that_has_stopped_is_said(page, world):
    with running(Page(world[0], "127.0.0.1", 0, None, "samples.db", world[1])) as url:
        opened = page("leaderboard?find=on:noisy", address=f"{url}/")
        link = opened.wait_for_selector('#board tbody a[href*="cell/"]')
    link.click()
    opened.wait_for_selector("dialog[open] .problem")
    assert "The server does not respond" in opened.locator("dialog .problem").inner_text()


@drive
@pytest.mark.parametrize("view", ["samples/plain", "nothing"])
def test_a_page_that_is_opened_directly_has_the_tabs_and_the_footer_of_the_store(page, view):
    opened = page(view)
    opened.wait_for_function("() => document.getElementById('about').innerText.includes('models')")
    shown = [each.inner_text() for each in opened.locator("#views a").all() if each.is_visible()]
    assert not {"Training", "Disagreements"} & set(shown)


@drive
def test_the_grid_is_filtered_by_what_models_say_and_leads_to_samples_in_its_order(page, world, server):
    opened = page("samples/plain?wrong=disagree&sort=hardest", address=f"{server}/")
    with Store.open(world[0]) as store:
        ids = [each.id for each in store.evaluations.find(["one", "two"], ["plain"])]
        right = np.sum([next(iter(store.scores.read(each, "top1").values())) for each in ids], axis=0)
    opened.wait_for_selector("#count")
    assert opened.locator("#count").inner_text() == f"{(right == 1).sum()} of {COUNT} samples."
    first = [f"toy/{place:04d}" for place in np.flatnonzero(right == 1)]
    assert [text.split("\n")[0] for text in opened.locator(".gallery li a").all_inner_texts()] == first
    opened.locator(".gallery a").first.click()
    opened.wait_for_selector(".steps")
    assert f"1 of {len(first)} filtered" in opened.locator(".steps").inner_text()
    opened.keyboard.press("ArrowRight")
    opened.wait_for_function("name => document.querySelector('main h1').innerText === name", arg=first[1])
    opened.goto(f"{server}/#/samples/plain?model=one&result=error")
    opened.wait_for_function("() => document.getElementById('count')?.innerText.startsWith('1 of')")
    assert "toy/0007" in opened.locator(".gallery").inner_text()
    opened.locator(".gallery a").first.click()
    opened.wait_for_selector("td.error")
    assert "toy/0007 is broken" in opened.locator("td.error").first.inner_text()


def test_results_of_settings_that_cannot_be_built_any_more_are_shown(world: tuple[str, Catalog]) -> None:
    today = toy_catalog(toy_setting("questions", COUNT))  # so that a judge has nothing to judge in "questions@judge"
    with Store.open(world[0]) as store:
        explorer = make_explorer(store, today, None, "samples.db")
        shown = {path: explorer.document(path) for path in explorer.paths()}
    assert "questions@judge" in [each["name"] for each in shown["index"]["settings"]]


@drive
def test_confidence_and_slices_filter_and_a_model_is_compared_on_two_settings(page, world, server):
    with Store.open(world[0]) as store:
        ids = {name: store.evaluations.find(["one"], [name])[-1].id for name in ("plain", "noisy")}
        logits = store.outputs.read(ids["plain"], "logits")
        right = [next(iter(store.scores.read(ids[name], "top1").values())).astype(bool) for name in ("plain", "noisy")]
        samples = store.datasets.get(store.evaluations.find(["varied"], ["questions"])[-1].dataset_id).samples
    sure = (np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)).max(axis=1)
    middle = float(np.nanmedian(100 * sure)) + 0.001
    even = sum(each.slices == {"category": "even"} for each in samples)
    shown = {
        f"samples/plain?model=one&least={middle}": f"{np.nansum(100 * sure >= middle):.0f} of {COUNT} samples.",
        f"samples/plain?model=one&most={middle}": f"{np.nansum(100 * sure <= middle):.0f} of {COUNT} samples.",
        "samples/questions?slice=category%3Deven": f"{even} of {len(samples)} samples.",
    }
    for view, told in shown.items():
        assert page(view, address=f"{server}/").locator("#count").inner_text() == told, view
    opened = page(f"compare/{ids['plain']}/{ids['noisy']}")
    assert opened.locator("h1").inner_text() == "one on plain and one on noisy"
    assert opened.locator("#cell-a").inner_text() == str((right[0] & ~right[1]).sum())
    assert opened.locator("#cell-none").inner_text() == str((~right[0] & ~right[1]).sum())


@drive
def test_the_page_tests_differences_as_python_does(page):
    opened = page("samples/plain")
    random = np.random.default_rng(3)
    for n, rates in ((40, (0.8, 0.6)), (700, (0.7, 0.69)), (20_000, (0.81, 0.8))):
        pair = [(random.random(n) < rate).astype(float) for rate in rates]
        close(opened, *pair)
    for n in (60, 3000):
        first = random.normal(size=n)
        close(opened, first, first + random.normal(0.05, 0.3, n))
    for n in (40, 1500):
        clusters = np.repeat(np.arange(n), random.integers(1, 6, n))
        videos = [(random.random(n) < rate).astype(float)[clusters] for rate in (0.8, 0.7)]
        close(opened, *videos, clusters)
    for n in (1, 20):
        for first, second in ((0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0)):
            close(opened, np.full(n, first), np.full(n, second))
    for n in (2, 3, 4, 12):
        close(opened, random.normal(size=n), random.normal(size=n))
    together = np.repeat(np.arange(5), 4)
    close(opened, np.ones(20), np.ones(20), together)
    close(opened, np.ones(20), np.zeros(20), together)


def close(
    opened: Any,
    first: np.ndarray[Any, Any],
    second: np.ndarray[Any, Any],
    clusters: np.ndarray[Any, Any] | None = None,
) -> None:
    """Checks a comparison of the page against Python's."""
    ours = compare(first, second, clusters=clusters)
    given = [first.tolist(), second.tolist(), None if clusters is None else clusters.tolist()]
    found = opened.evaluate("([a, b, together]) => T.paired(a, b, together)", given)
    for name in ("n", "binary", "only_first", "only_second", "clusters"):
        assert found[name] == getattr(ours, name)
    for name in ("first", "second", "difference"):
        assert found[name] == pytest.approx(getattr(ours, name), abs=1e-9)
    assert found["low"] == pytest.approx(ours.low, abs=1e-7)
    assert found["high"] == pytest.approx(ours.high, abs=1e-7)
    if ours.binary and clusters is None:
        assert found["p"] == pytest.approx(ours.p, rel=1e-6)
    else:
        assert found["p"] == pytest.approx(ours.p, rel=0.2, abs=0.02)


@drive
def test_unknown_names_are_said(page):
    assert "There is no setting nothing" in page("sample/nothing/1").locator("main").inner_text()
    assert "plain has no sample nothing" in page("sample/plain/nothing").locator("main").inner_text()
    assert "There is no such evaluation here" in page("compare/9999/9998").locator("main").inner_text()
