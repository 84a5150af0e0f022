"""Reading and exporting the results of many evaluations against asking SQLite with the standard library.

python benchmarks/bench_results.py [--models 1000] [--settings 100] [--repeats 3]
"""

from __future__ import annotations

import contextlib
import csv
import sqlite3
import tempfile
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path

import click
from paired import compare, machine

from testbed.db.store import Store
from testbed.extensions.clip_benchmark.clip_benchmark_files import records_by_cell, write_csv

NOW = "2026-11-22 10:00:00.000000"
METRICS = (("top1", "fraction"), ("top5", "fraction"), ("mean_per_class_recall", "fraction"), ("nll", "nats"))
BARE = "SELECT model, eval_setting, metric, value FROM results WHERE slice = 'overall' ORDER BY eval_setting, model"


def fill(path: Path, models: int, settings: int) -> None:
    """A store with an evaluation of each model on each setting, of four metrics."""
    Store.create(str(path)).close()
    cells = enumerate(product(range(1, models + 1), range(1, settings + 1)), start=1)
    evaluations = [(number, *cell, f"f{number}", NOW, NOW, NOW) for number, cell in cells]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        for table, count in (("models", models), ("eval_settings", settings)):
            rows = [(number, f"{table}-{number}", NOW) for number in range(1, count + 1)]
            connection.executemany(f"INSERT INTO {table} (id, name, created_at) VALUES (?, ?, ?)", rows)
        connection.executemany(
            "INSERT INTO evaluations (id, model_id, eval_setting_id, fingerprint, created_at, updated_at, completed_at,"
            " status, origin, size, random_weights) VALUES (?, ?, ?, ?, ?, ?, ?, 'complete', 'run', 100, 0)",
            evaluations,
        )
        connection.executemany(
            "INSERT INTO metrics (evaluation_id, name, unit, value, scorer, slice, n)"
            " VALUES (?, ?, ?, ?, 's', 'overall', 9)",
            [
                (evaluation[0], name, unit, evaluation[0] % 97 / 97)
                for evaluation in evaluations
                for name, unit in METRICS
            ],
        )


def bare_rows(path: Path) -> Iterator[tuple[object, ...]]:
    """The same numbers, as SQLite gives them."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        yield from connection.execute(BARE)


def bare_table(path: Path, out: Path) -> None:
    """A row for each cell."""
    rows: dict[tuple[object, ...], dict[object, object]] = {}
    for model, setting, metric, value in bare_rows(path):
        rows.setdefault((setting, model), {})[metric] = value
    with out.open("w", newline="") as file:
        csv.writer(file).writerows([*cell, *values.values()] for cell, values in rows.items())


@click.command()
@click.option("--models", default=1000, show_default=True)
@click.option("--settings", default=100, show_default=True)
@click.option("--repeats", default=3, show_default=True)
def main(models: int, settings: int, repeats: int) -> None:
    """Prints the ratios."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "results.db", Path(folder) / "out.csv"
        fill(path, models, settings)

        def export() -> None:
            cells = records_by_cell(store.results.stream(slices=["overall"]))
            write_csv([record for _, record in sorted(cells, key=itemgetter(0))], out)

        with Store.open(str(path)) as store:
            what = f"{models * settings:,} evaluations"
            compare(
                f"{what}: stream_results",
                lambda: sum(1 for _ in store.results.stream()),
                lambda: sum(1 for _ in bare_rows(path)),
                repeats,
            )
            compare(f"{what}: results", store.results.find, lambda: list(bare_rows(path)), repeats)
            compare(f"{what}: CLIP benchmark's table", export, lambda: bare_table(path, out), repeats)


if __name__ == "__main__":
    main()
