"""The leaderboard and the plot of 20,000 models × 60 settings in Chromium: load, sort, search, change of an axis.

python benchmarks/explorer_table.py [--models 20000] [--settings 60] [--repeats 5] [--folder DIR]
"""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from explorer_samples import BROWSER, NOW, served
from paired import machine, seconds

from testbed.db.store import Store


def fill(path: Path, models: int, settings: int) -> None:
    """A store with top-1 of every model on every setting."""
    Store.create(str(path)).close()
    random = np.random.default_rng(0)
    skill = random.normal(1.0, 0.7, models)
    ease = random.normal(0.0, 1.0, settings)
    chances = 1 / (1 + np.exp(-(skill[:, None] + ease + random.normal(0, 0.15, (models, settings)))))
    values = np.round(chances * 50_000) / 50_000  # what 50,000 samples can give
    families = ("resnet", "vit", "convnext", "efficientnet", "swin")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        run, many = connection.execute, connection.executemany
        run("PRAGMA synchronous=OFF")
        named = ((at + 1, f"{families[at % 5]}-{at:05d}", NOW) for at in range(models))
        many("INSERT INTO models (id, name, created_at) VALUES (?, ?, ?)", named)
        on = ((at + 1, f"setting-{at:02d}", NOW) for at in range(settings))
        many("INSERT INTO eval_settings (id, name, node, task, created_at) VALUES (?, ?, '', 'classification', ?)", on)
        rows = (
            (at * settings + on + 1, at + 1, on + 1, f"f{at}-{on}", NOW, NOW, NOW)
            for at in range(models)
            for on in range(settings)
        )
        many(
            "INSERT INTO evaluations (id, model_id, eval_setting_id, fingerprint, created_at, updated_at, completed_at,"
            " status, origin, size, random_weights, identity)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'complete', 'run', 50000, 0, '{}')",
            rows,
        )
        metrics = ((at * settings + on + 1, float(values[at, on])) for at in range(models) for on in range(settings))
        many(
            "INSERT INTO metrics (evaluation_id, name, unit, value, scorer, slice, n, better)"
            " VALUES (?, 'top1', 'fraction', ?, 'classification@2', 'overall', 50000, 'higher')",
            metrics,
        )
        connection.commit()
        run("PRAGMA wal_checkpoint(TRUNCATE)")


def tell(what: str, work: Callable[[int], object], repeats: int) -> None:
    """Prints the median time of a piece of work."""
    times = [seconds(lambda number=number: work(number)) for number in range(repeats)]
    click.echo(f"{what:52} {statistics.median(times):6.3f} s ({min(times):.3f} to {max(times):.3f})")


def drive(address: str, where: str, models: int, repeats: int) -> None:
    """Times the pages in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 850})

        def load(_: int) -> None:
            page.goto("about:blank")
            page.goto(f"{address}#/leaderboard")
            page.wait_for_selector("#board tbody tr:not(.space) td", timeout=120_000)

        def sort(number: int) -> None:
            name = f"setting-{number + 1:02d}"
            page.click(f'[data-sort="{name}"]')
            page.wait_for_selector(f'th[aria-sort="descending"] [data-sort="{name}"]')

        def find(number: int) -> None:
            number %= 10
            page.fill("#box-find", f"resnet-*{number}")
            page.press("#box-find", "Enter")
            page.wait_for_function("said => location.hash.includes(said)", arg=f"{number}")
            page.wait_for_function(
                "n => document.querySelector('main .note').innerText.startsWith(n)",
                arg=f"{models // 10:,}" if number % 5 == 0 else "",
            )

        def axis(number: int) -> None:
            name = f"setting-{number + 3:02d}"
            page.select_option('[data-key="y"]', name)
            page.wait_for_function("name => document.querySelector('main h1').innerText.startsWith(name)", arg=name)

        tell(f"{where}: the first time", load, 1)
        tell(f"{where}: load again", load, repeats)
        tell(f"{where}: sort by another column", sort, repeats)
        tell(f"{where}: search", find, repeats)
        page.goto(f"{address}#/plot")
        page.wait_for_selector("canvas[data-points]")
        tell(f"{where}: another axis of the plot", axis, repeats)
        browser.close()


@click.command()
@click.option("--models", default=20_000, show_default=True)
@click.option("--settings", default=60, show_default=True)
@click.option("--repeats", default=5, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Where the store is; kept.")
def main(models: int, settings: int, repeats: int, folder: Path | None) -> None:
    """Makes the store and prints the times."""
    click.echo(f"{machine()}; {models:,} models × {settings} settings")
    place: Any = contextlib.nullcontext(folder) if folder else tempfile.TemporaryDirectory()
    with place as name:
        path = Path(name) / "table.db"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            click.echo(f"making the store: {seconds(lambda: fill(path, models, settings)):.0f} s")
        with served(path) as address:
            drive(address, "served", models, repeats)


if __name__ == "__main__":
    main()
