"""The commands that people wait for, on a store of 100,000 evaluations with a million metrics: whole processes.

    python benchmarks/bench_big_store.py [--db-url postgresql://…/EMPTY] [--samples 1000] [--repeats 5] [--only rank]

One setting has per-sample scores of all models, for ``--rank``. A store that has evaluations is used as it is, so that
a second run need not make it again.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
import numpy as np
import sqlalchemy as sa
from paired import machine

from testbed.data.source import dataset_of
from testbed.db.rows import metric_row, score_row
from testbed.db.store import Store
from testbed.db.tables import EvalSettingRow, EvaluationRow, MetricRow, ModelRow, ScoreRow, now
from testbed.entities import Metric, SampleInfo, Score

ROOT = Path(__file__).resolve().parent.parent
AT_ONCE = 20_000  # rows inserted by a statement
METRICS = (
    *(("top1", "fraction"), ("top5", "fraction"), ("mean_per_class_recall", "fraction"), ("nll", "nats")),
    *(("ece", "fraction"), ("brier", "fraction"), ("f1", "fraction"), ("precision", "fraction")),
    *(("recall", "fraction"), ("mean_confidence", "fraction")),
)
RANKED, CELL = "setting-000", ("model-0500", "setting-050")
IDENTITY = dict.fromkeys(("model", "forward", "view", "samples"), 32 * "0") | {"dtype": "float32", "scheme": 2}
ENVIRONMENT = {  # as long as that of a run
    "testbed": "0.1.0",
    "python": "3.11.7",
    "system": "Linux x86_64",
    "libraries": dict.fromkeys(("torch", "torchvision", "timm", "open_clip_torch", "numpy", "pillow"), "1.2.3"),
    "devices": ["cuda:0"],
    "device_names": ["NVIDIA H100 80GB HBM3"],
    "batch_size": 256,
    "data_workers": 8,
    "threads": 16,
    "host": "node-17.cluster.example",
    "times": [{"seconds": 12.3, "samples": 10_000, "waiting": 1.2, "computing": 9.8, "storing": 0.7, "scoring": 0.6}],
}


@dataclass(frozen=True)
class CommandTime:
    """A command and its goal.

    Attributes:
        words: What follows ``testbed``, before ``--db-url URL``.
        goal: The longest time, in seconds; None if there is none.
    """

    words: Sequence[str]
    goal: float | None


COMMANDS = {
    "print-eval": CommandTime(["show", *CELL], 0.3),
    "print-eval --json": CommandTime(["show", *CELL, "--json"], 0.3),
    "list-models-db": CommandTime(["list", "models", "--stored"], 1.0),
    "list-models-db --json": CommandTime(["--list-models-db", "--json"], 1.0),
    "list-eval-settings-db": CommandTime(["list", "settings", "--stored"], 1.0),
    "list-eval-settings-db --json": CommandTime(["--list-eval-settings-db", "--json"], 1.0),
    "status": CommandTime(["store", "status"], 1.0),
    "grid of ten models, three settings": CommandTime(["grid", "setting-01[0-2]", "--models", "model-000*"], None),
    "rank, scores of 0 and 1": CommandTime(["rank", RANKED, "--score", "top1"], 10.0),
    "rank, other scores": CommandTime(["rank", RANKED, "--score", "nll"], 10.0),
    "export-csv": CommandTime(["export", "csv", "{folder}/table.csv"], None),
}


# The store --------------------------------------------------------------------------------------------------------


def fill(store: Store, models: int, settings: int, samples: int) -> None:
    """Puts an evaluation of each model on each setting into a new store, and the scores on one of them."""
    moment = now()
    infos = [SampleInfo(f"{number:06d}.png", f"{number:032x}", number % 10) for number in range(samples)]
    dataset_id = store.datasets.ensure(dataset_of("photos", infos))
    names = {ModelRow: [f"model-{number:04d}" for number in range(models)]}
    names[EvalSettingRow] = [f"setting-{number:03d}" for number in range(settings)]
    for table, listed in names.items():
        rows = ({"id": number, "name": name, "created_at": moment} for number, name in enumerate(listed, start=1))
        insert(store, table, rows)
    common = {"dataset_id": dataset_id, "status": "complete", "origin": "run", "size": samples, "dtype": "float32"}
    common |= {"random_weights": False, "identity": IDENTITY, "environment": ENVIRONMENT}
    common |= {"created_at": moment, "updated_at": moment, "completed_at": moment}
    cells = models * settings  # setting by setting, as most are run: evaluations of a model lie far apart
    insert(store, EvaluationRow, ({**common, **cell(number, models)} for number in range(cells)))
    insert(store, MetricRow, (row for number in range(cells) for row in metrics(number + 1, samples)))
    insert(store, ScoreRow, scores(models, samples))


def cell(number: int, models: int) -> dict[str, Any]:
    """The columns in which evaluations differ."""
    place = {"id": number + 1, "model_id": number % models + 1, "eval_setting_id": number // models + 1}
    return {**place, "fingerprint": f"{number:032x}", "forward_fingerprint": f"{number:032x}"}


def metrics(evaluation_id: int, samples: int) -> Iterator[dict[str, Any]]:
    """The metrics of one evaluation."""
    for place, (name, unit) in enumerate(METRICS):
        value = (evaluation_id * 31 + place * 17) % 9973 / 9973
        yield metric_row(evaluation_id, Metric(name, value, samples, 0.01, unit=unit, scorer="classification@1"))


def scores(models: int, samples: int) -> Iterator[dict[str, Any]]:
    """A score of 0 and 1 and another one, of each model on the first setting."""
    rng = np.random.default_rng(0)
    hard = rng.random(samples)  # models mostly fail on the same samples
    for model in range(models):
        margin = 0.3 + 0.6 * model / models - hard + rng.normal(0, 0.2, samples)
        for name, values in (("top1", margin > 0), ("nll", np.logaddexp(0, -4 * margin).astype(np.float32))):
            yield score_row(model + 1, Score(name, values, "classification@1"))


def insert(store: Store, table: type[Any], rows: Iterator[dict[str, Any]]) -> None:
    """Inserts rows, some thousands at a time."""
    with store.database.writing() as session:
        while part := list(islice(rows, AT_ONCE)):
            session.execute(sa.insert(table), part)


def make(url: str, models: int, settings: int, samples: int) -> None:
    """A store at an empty place; one with evaluations stays as it is."""
    with Store.create(url) as store:
        if store.results.count_complete():
            click.echo(f"{store.display_url} has {store.results.count_complete():,} evaluations, and stays as it is")
            return
        start = time.perf_counter()
        fill(store, models, settings, samples)
        if store.database.engine.dialect.name == "postgresql":  # as the server does by itself, a minute later
            with store.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execution_options(testbed_mode="write").execute(sa.text("VACUUM ANALYZE"))
        click.echo(f"{models * settings:,} evaluations made in {time.perf_counter() - start:.0f} s")


# The commands -----------------------------------------------------------------------------------------------------


def with_bytecode(folder: str) -> dict[str, str]:
    """The environment, with bytecode kept in a folder: an installed testbed has it, whatever holds here."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}


def timed(words: Sequence[str], environment: Mapping[str, str]) -> tuple[float, float]:
    """The wall time of a command, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise click.ClickException(done.stderr.strip().splitlines()[-1])
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def line(name: str, command: CommandTime, url: str, folder: str, repeats: int) -> str:
    """Times a command; a row of the table."""
    words = [sys.executable, "-m", "testbed", *(word.format(folder=folder) for word in command.words), "--db-url", url]
    environment = with_bytecode(folder)
    times = [timed(words, environment) for _ in range(repeats + 1)][1:]  # the first one fills the caches
    walls, processors = zip(*times, strict=True)
    wall = statistics.median(walls)
    goal = "" if command.goal is None else f"{command.goal:g}{', missed' if wall > command.goal else ''}"
    span = f"{min(walls):.2f} to {max(walls):.2f}"
    return f"| `{name}` | {wall:.2f} | {span} | {statistics.median(processors):.2f} | {goal} |"


@click.command()
@click.option("--db-url", help="A store to make and keep.  [default: a temporary SQLite file]")
@click.option("--models", default=1000, show_default=True)
@click.option("--settings", default=100, show_default=True)
@click.option("--samples", default=1000, show_default=True, help="Of the setting that models are ranked on.")
@click.option("--repeats", default=5, show_default=True, help="Counted runs of each command; one more goes before.")
@click.option("--only", multiple=True, metavar="TEXT", help="Only commands whose names have this.")
def main(db_url: str | None, models: int, settings: int, samples: int, repeats: int, only: tuple[str, ...]) -> None:
    """Prints the table."""
    click.echo(machine())
    with tempfile.TemporaryDirectory() as folder:
        url = db_url or f"{folder}/results.db"
        make(url, models, settings, samples)
        click.echo("\n| command | s | range | processor, s | goal |\n|---|---|---|---|---|")
        for name, command in COMMANDS.items():
            if not only or any(text in name for text in only):
                click.echo(line(name, command, url, folder, repeats))


if __name__ == "__main__":
    main()
