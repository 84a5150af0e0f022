"""Opening a sample of 50,000 in the explorer, with the five best classes of 200 models: over HTTP and from files.

python benchmarks/explorer_samples.py [--samples 50000] [--models 200] [--classes 100] [--repeats 5] [--folder DIR]
"""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from paired import machine, seconds

from testbed.db.store import Store
from testbed.identity.describe import digest_bytes

NOW = "2026-11-23 10:00:00.000000"
SETTING = "synthetic"
CHUNK = 512  # rows of a stored chunk, as runs have about
BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")


def fill(path: Path, samples: int, models: int, classes: int) -> None:
    """A store with float16 logits of every model for every sample, and their scores."""
    Store.create(str(path)).close()
    random = np.random.default_rng(0)
    targets = random.integers(0, classes, samples)
    names = json.dumps([f"class {number}" for number in range(classes)])
    view = json.dumps({"metric": {"scorer": "classification@2"}})
    with contextlib.closing(sqlite3.connect(path)) as connection:
        run = connection.execute
        run("PRAGMA synchronous=OFF")
        run("INSERT INTO datasets VALUES (1, 'd', 'synthetic', ?, ?, ?)", (samples, names, NOW))
        rows = ((1, at, f"folder/{at:06d}.jpg", f"c{at}", str(label), None, None) for at, label in enumerate(targets))
        connection.executemany("INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        columns = "(id, name, node, task, created_at)"
        run(f"INSERT INTO eval_settings {columns} VALUES (1, ?, '', 'classification', ?)", (SETTING, NOW))
        run("INSERT INTO definitions (digest, kind, content) VALUES ('v', 'view', ?)", (view,))
        run("INSERT INTO definitions (digest, kind, content) VALUES ('f', 'forward', '{}')")
        for number in range(1, models + 1):
            _model(connection, number, samples, classes, targets, random)
        connection.commit()
        run("PRAGMA wal_checkpoint(TRUNCATE)")


def _model(connection: Any, number: int, samples: int, classes: int, targets: Any, random: Any) -> None:
    logits = random.standard_normal((samples, classes), dtype=np.float32).astype(np.float16)
    logits[np.arange(samples), targets] += np.float16(1 + number / 100)
    right = (logits.argmax(axis=1) == targets).astype(np.uint8)
    run = connection.execute
    run("INSERT INTO models (id, name, created_at) VALUES (?, ?, ?)", (number, f"model-{number:03d}", NOW))
    run(
        "INSERT INTO evaluations (id, model_id, eval_setting_id, dataset_id, fingerprint, created_at, updated_at,"
        " completed_at, status, origin, size, random_weights, identity)"
        " VALUES (?, ?, 1, 1, ?, ?, ?, ?, 'complete', 'run', ?, 0, ?)",
        (number, number, f"f{number}", NOW, NOW, NOW, samples, json.dumps({"view": "v", "forward": "f"})),
    )
    for start in range(0, samples, CHUNK):
        data = logits[start : start + CHUNK].tobytes()
        count, shape = len(data) // (2 * classes), json.dumps([classes])
        run(
            "INSERT INTO output_chunks VALUES (?, 'logits', ?, ?, 'float16', ?, ?, ?, NULL, ?)",
            (number, start, count, shape, digest_bytes(data), len(data), data),
        )
    run(
        "INSERT INTO scores (evaluation_id, scorer, name, count, dtype, checksum, payload) VALUES (?,?,?,?,?,?,?)",
        (number, "classification@2", "top1", samples, "uint8", digest_bytes(right.tobytes()), right.tobytes()),
    )
    run(
        "INSERT INTO metrics (evaluation_id, name, unit, value, scorer, slice, n)"
        " VALUES (?, 'top1', 'fraction', ?, 'classification@2', 'overall', ?)",
        (number, float(right.mean()), samples),
    )


@contextlib.contextmanager
def served(path: Path) -> Iterator[str]:
    """The address of a server of the store."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", "--db-url", str(path), "--port", str(port)]
    program = [sys.executable, "-m", "testbed", *words]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(url).read()
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def tell(what: str, work: Callable[[int], object], repeats: int) -> None:
    """Prints the median time of a piece of work, each time of another number."""
    work(0)
    times = [seconds(lambda number=number: work(number)) for number in range(1, repeats + 1)]
    click.echo(f"{what:52} {statistics.median(times):6.3f} s ({min(times):.3f} to {max(times):.3f})")


def drive(address: str, where: str, samples: int, repeats: int) -> None:
    """Times pages in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])

        page = browser.new_page()

        def opened(view: str, seen: str) -> None:
            page.goto("about:blank")
            page.goto(f"{address}#/{view}")
            page.wait_for_selector(seen)

        def sample(number: int) -> None:
            at = number * 97 * samples // 1000 % samples
            opened(f"sample/{SETTING}/folder%2F{at:06d}.jpg?at={at}", "table.answers tbody tr:nth-child(5)")

        tell(f"{where}: the page with a sample", sample, repeats)

        def by_id(number: int) -> None:
            opened(f"sample/{SETTING}/folder%2F{number * samples // 10:06d}.jpg", "table.answers tbody tr:nth-child(5)")

        tell(f"{where}: by its id alone", by_id, repeats)
        page.goto(f"{address}#/sample/{SETTING}/folder%2F000000.jpg?at=0")
        page.wait_for_selector("table.answers")

        def forward(number: int) -> None:
            before = page.locator("h1").first.inner_text()
            page.keyboard.press("ArrowRight")
            page.wait_for_function("before => document.querySelector('main h1').innerText !== before", arg=before)

        tell(f"{where}: the next sample", forward, repeats)

        def elsewhere(number: int) -> None:
            at = (number * 131 + 50) * samples // 1000 % samples
            page.evaluate(f"location.hash = '#/sample/{SETTING}/folder%2F{at:06d}.jpg?at={at}'")
            name = f"folder/{at:06d}.jpg"
            page.wait_for_function("name => document.querySelector('main h1').innerText === name", arg=name)

        tell(f"{where}: another sample in the same tab", elsewhere, repeats)

        def grid(number: int) -> None:
            opened(f"samples/{SETTING}?model=model-{number + 1:03d}&sort=unsure", ".gallery li:nth-child(60)")

        def pair(number: int) -> None:
            opened(f"compare/{number + 1}/{number + 2}", "table.squares")

        tell(f"{where}: the grid, least confident first", grid, repeats)
        tell(f"{where}: two models compared", pair, repeats)
        browser.close()


@click.command()
@click.option("--samples", default=50_000, show_default=True)
@click.option("--models", default=200, show_default=True)
@click.option("--classes", default=100, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--exported", default=2_000, show_default=True, help="Samples in the export.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the store is kept; a temporary one by default.")
def main(samples: int, models: int, classes: int, repeats: int, exported: int, folder: Path | None) -> None:
    """Prints medians."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        path = place / "store.db"
        if not path.is_file():
            took = seconds(lambda: fill(path, samples, models, classes))
            click.echo(f"{path.stat().st_size / 1e9:.1f} GB of store made in {took:.0f} s")
        with served(path) as url:
            drive(url, "server", samples, repeats)
        words = ["--db-url", str(path), "--out", str(place / "site"), "--samples", SETTING]
        export = [sys.executable, "-m", "testbed", "site", *words, "--samples-limit", str(exported)]
        shutil.rmtree(place / "site", ignore_errors=True)
        took = seconds(lambda: subprocess.run(export, check=True, capture_output=True))
        size = sum(entry.stat().st_size for entry in (place / "site").rglob("*") if entry.is_file())
        click.echo(f"{exported:,} samples exported in {took:.0f} s, {size / 1e6:.0f} MB")
        drive((place / "site" / "index.html").as_uri(), "files", samples, repeats)


if __name__ == "__main__":
    main()
