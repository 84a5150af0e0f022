"""Faults on purpose: runs that share a store, and processes that are killed at random moments; prints what was counted.

    python benchmarks/soak.py together [--runs 8] [--rounds 3] [--server postgresql://USER@HOST/postgres] [--ray]
    python benchmarks/soak.py kills [--kills 200] [--runs 2] [--server …] [--ray] [--pause 4]

``together`` starts runs of overlapping requests at once and counts the images that go through networks: each must go
once. ``kills`` kills -9 drivers, workers and data workers until each request is complete, and compares all outputs with
those of an undisturbed run, bit by bit. On SQLite, or on databases of their own on a Postgres server; in processes of
this machine, or on a Ray cluster of two nodes on its loopback addresses. Nothing is timed. Ends with 1 if anything is
not as it should be. A run whose workers, or their server, are killed again and again gives up and says so: that is
counted, not an error.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from testbed.db.store import Store

ROOT = Path(__file__).resolve().parent.parent
EVAL = ROOT / "eval.py"
WORLD = Path(__file__).parent / "soak_world.py"
COUNT, MODELS, SETTINGS = 2048, ("soak-a", "soak-b", "soak-c"), ("soak", "soak-dark", "soak-half")
END_SECONDS = 5.0  # after which no process may be left
STARTING = 0.1  # how often a kill does not wait until something was computed since the last; else most hit a start
GAVE_UP = re.compile(r"all workers ended before the work was done|the worker died \d+ times|no worker process can be")
NOISE = re.compile(r"^\s|^Traceback|^KeyError: '/mp-|resource_tracker")  # of a killed tracker of multiprocessing


class Round:
    """One store, and the runs on it.

    Args:
        folder: To make, for logs and counts.
        url: Of the store.
        cluster: The Ray cluster that works for this round alone (`ray_nodes.RayNodes`); None: processes.
    """

    def __init__(self, folder: Path, url: str, cluster: Any = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.url = url
        self.cluster = cluster
        self.name = uuid.uuid4().hex
        self.errors: list[str] = []
        self.gave_up: list[str] = []
        self._logs: dict[int, Path] = {}  # by process

    def start(self, models: list[str], settings: list[str], batch_size: int = 64) -> subprocess.Popen[bytes]:
        """Starts a run, with two workers that have a data worker each."""
        words = [sys.executable, str(EVAL), "--plugin", str(WORLD), "--models", *models, "--eval-settings", *settings]
        words += ["--db-url", self.url, "--workers", "1", "--batch-size", str(batch_size)]
        if self.cluster is None:
            words += ["--cpu-processes", "2"]
        else:
            words += ["--executor", "ray", "--ray-address", self.cluster.address]
        base = os.environ if self.cluster is None else self.cluster.environment
        environment = {**base, **variables(self.folder), "SOAK_ROUND": self.name}
        log = self.folder / f"log-{uuid.uuid4().hex[:8]}"
        with log.open("wb") as file:
            process = subprocess.Popen(words, env=environment, stdout=file, stderr=file, start_new_session=True)
        self._logs[process.pid] = log
        return process

    def note_end(self, process: subprocess.Popen[bytes]) -> None:
        """Notes a run that ended with an error of its own, and its last words."""
        if process.wait() > 0:
            text = self._logs[process.pid].read_text(errors="replace")
            lines = [line for line in text.splitlines() if line and not NOISE.search(line)]
            notes = self.gave_up if GAVE_UP.search(text) else self.errors
            notes.append(f"a run ended with {process.returncode}: {' | '.join(lines[-6:])}")

    def processes(self) -> list[int]:
        """All processes of this round's runs, whoever started them; of a cluster those that work for a run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"SOAK_ROUND={self.name}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found + self.actors()

    def actors(self) -> list[int]:
        """The processes that work for a run on a Ray cluster."""
        if self.cluster is None:
            return []
        from ray_nodes import descendants

        found = []
        for node in self.cluster.nodes.values():
            for actor in descendants(node.pid):
                with contextlib.suppress(OSError):
                    if (Path("/proc") / str(actor) / "cmdline").read_bytes().startswith(b"ray::RemoteWorker"):
                        found += [actor, *descendants(actor)]
        return found

    def images(self) -> int:
        """Counts the images that went through networks, once per model and setting."""
        counted = self.folder / "images"
        return sum(map(int, counted.read_text().split())) if counted.exists() else 0

    def outputs(self) -> dict[tuple[str, str], np.ndarray]:
        """All complete outputs; notes evaluations that are doubled or open."""
        found: dict[tuple[str, str], np.ndarray] = {}
        with Store.open(self.url) as store:
            for evaluation in store.evaluations.find():
                key = (evaluation.model, evaluation.eval_setting)
                if key in found:
                    self.errors.append(f"{key} is there twice")
                if evaluation.status != "complete":
                    self.errors.append(f"{key} is {evaluation.status}: {evaluation.error}")
                else:
                    found[key] = store.outputs.read(evaluation.id, "logits")
            self.errors += store.maintenance.check()
        return found

    def check_ended(self) -> None:
        """Notes processes that are left after the runs."""
        deadline = time.monotonic() + END_SECONDS
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        for process in left:
            self.errors.append(f"process {process} is left")
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)


def variables(folder: Path) -> dict[str, str]:
    """The environment of all processes of a round."""
    return {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "SOAK_FOLDER": str(folder)}


@contextlib.contextmanager
def new_round(folder: Path, server: str | None, ray: bool) -> Iterator[Round]:
    """A round on a new store, and on a Ray cluster of its own if asked for."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(database(server, folder))
        cluster = None
        if ray:
            sys.path.insert(0, str(ROOT / "tests" / "support"))
            from ray_nodes import ray_nodes

            cluster = stack.enter_context(ray_nodes(1, 1, **variables(folder)))
        yield Round(folder, url, cluster)


@contextlib.contextmanager
def database(server: str | None, folder: Path) -> Iterator[str]:
    """The URL of a new store."""
    if server is None:
        yield str(folder / f"{uuid.uuid4().hex[:8]}.db")
        return
    import psycopg

    name = f"testbed_soak_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield f"{server.rpartition('/')[0]}/{name}"
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def differing(found: dict[tuple[str, str], np.ndarray], expected: dict[tuple[str, str], np.ndarray]) -> list[str]:
    """The cells of the first that the second one has not, or has otherwise."""
    return [f"{key} differs" for key, values in found.items() if not np.array_equal(values, expected[key])]


def quiet(folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """The outputs of an undisturbed run."""
    alone = Round(folder / "quiet", str(folder / "quiet.db"))
    if alone.start(list(MODELS), list(SETTINGS)).wait() != 0:
        raise click.ClickException("the undisturbed run failed")
    return alone.outputs()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """See the module."""


@main.command()
@click.option("--runs", default=8, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--server", help="A Postgres server on which databases may be made.")
@click.option("--ray", is_flag=True, help="On a Ray cluster of two nodes.")
@click.option("--seed", default=0, show_default=True)
def together(runs: int, rounds: int, server: str | None, ray: bool, seed: int) -> None:
    """Runs of overlapping requests at once."""
    draw, errors = random.Random(seed), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = quiet(folder)
        for number in range(rounds):
            with new_round(folder / f"round-{number}", server, ray) as one:
                requests = [(draw.sample(MODELS, draw.randint(1, 3)), draw.sample(SETTINGS, 2)) for _ in range(runs)]
                processes = [one.start(*request, draw.choice([64, 96])) for request in requests]
                for process in processes:
                    one.note_end(process)
                one.check_ended()
                found = one.outputs()
                wanted = {(model, setting) for models, settings in requests for model in models for setting in settings}
                whole, images = COUNT * len(wanted), one.images()
                one.errors += differing(found, expected)
                one.errors += [f"{key} is missing" for key in wanted - found.keys()]
                if images != whole:
                    one.errors.append(f"{images:,} images went through networks")
                click.echo(
                    f"round {number + 1}: {runs} runs asked for {sum(len(m) * len(s) for m, s in requests)} cells,"
                    f" {len(wanted)} different ones: {whole:,} images; {images:,} computed; {len(one.errors)} errors"
                )
                errors += one.errors
    _end(errors)


@main.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--runs", default=2, show_default=True, help="Runs of the same request at once.")
@click.option("--server", help="A Postgres server on which databases may be made.")
@click.option("--ray", is_flag=True, help="On a Ray cluster of two nodes.")
@click.option("--pause", default=4.0, show_default=True, help="The longest time between two kills, in seconds.")
@click.option("--seed", default=0, show_default=True)
def kills(kills: int, runs: int, server: str | None, ray: bool, pause: float, seed: int) -> None:
    """Kills processes at random moments."""
    draw, errors = random.Random(seed), []
    killed: Counter[str] = Counter()
    rounds = again = 0
    gave_up: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = quiet(folder)
        while killed.total() < kills:
            rounds += 1
            with new_round(folder / f"round-{rounds}", server, ray) as one:
                drivers: list[subprocess.Popen[bytes]] = []
                computed = 0  # when the last process was killed
                while not any(driver.poll() == 0 for driver in drivers):
                    gone = [driver for driver in drivers if driver.poll() is not None]
                    for run in gone:
                        one.note_end(run)
                    drivers = [driver for driver in drivers if driver not in gone]
                    while len(drivers) < runs:
                        drivers.append(one.start(list(MODELS), list(SETTINGS)))
                    time.sleep(draw.uniform(0.2, pause))
                    if killed.total() == kills or (one.images() <= computed and draw.random() > STARTING):
                        continue
                    if victims := one.processes():
                        computed, victim = one.images(), draw.choice(victims)
                        with contextlib.suppress(OSError):
                            os.kill(victim, signal.SIGKILL)
                            killed["driver" if victim in [driver.pid for driver in drivers] else "worker"] += 1
                for driver in drivers:
                    one.note_end(driver)
                one.check_ended()
                found = one.outputs()
                one.errors += differing(found, expected)
                one.errors += [f"{key} is missing" for key in expected.keys() - found.keys()]
                again += one.images() - COUNT * len(expected)
                errors += one.errors
                gave_up += one.gave_up
                click.echo(f"round {rounds}: {killed.total()} kills so far, {len(one.errors)} errors")
    click.echo(
        f"{killed.total()} kills ({killed['driver']} drivers, {killed['worker']} workers and data workers) in {rounds}"
        f" rounds of {COUNT * len(expected):,} images; {again:,} images computed again; {len(gave_up)} runs gave up"
    )
    for run in gave_up:
        click.echo(f"gave up: {run}")
    _end(errors)


def _end(errors: list[str]) -> None:
    for error in errors:
        click.echo(f"error: {error}")
    click.echo(f"{len(errors)} errors")
    raise SystemExit(bool(errors))


if __name__ == "__main__":
    main()
