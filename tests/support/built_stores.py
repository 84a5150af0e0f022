"""What the tests of the store share: filling one with little evaluations, looking past it, other processes."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import postgres_server
import psycopg
import pytest
import sqlalchemy as sa
from warm_python import StartedProgram, WarmPython

from testbed.data.source import dataset_of
from testbed.db import tables
from testbed.db.connection.urls import resolve_url
from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, Claim, ClaimSource, Evaluation, Metric, SampleInfo, Score


@pytest.fixture(scope="session")
def postgres_store_url(postgres_url: str, postgres_template: str) -> Iterator[str]:
    """A Postgres store that the tests use one after the other: emptying it is much faster than making another."""
    with postgres_server.database(postgres_url, postgres_template) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> str:
    """The database; a file whose tests do not depend on it overrides this."""
    return str(request.param)


@pytest.fixture
def store_url(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, on each backend (as the fixture for all tests, but faster)."""
    if backend == "sqlite":
        return f"sqlite:///{shutil.copy(request.getfixturevalue('sqlite_template'), tmp_path / 'store.db')}"
    url: str = request.getfixturevalue("postgres_store_url")
    with psycopg.connect(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        for table in reversed(tables.Base.metadata.sorted_tables):
            connection.execute(f"DELETE FROM {table.name}")
    return url


@pytest.fixture(scope="session")
def whole(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of small cells of all kinds, with embeddings, heads, answers and records, which nobody has damaged."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    shutil.copy(root / "tests" / "assets" / "golden_store.db", path)
    with Store.open(str(path), "write") as store:  # two of seven models are enough, and soon checked
        for each in store.evaluations.find():
            if each.status == "unsupported" and each.eval_setting != "plain":
                store.removal.hide_evaluation(each.id)
        for name in ("digested", "letters", "net", "normal", "own"):
            store.names.hide("model", name)
        store.removal.purge()
        source = ClaimSource("theirs", "table.csv", "0" * 64, "a table", rows=1, left_out={"parameters": 1})
        where = {"row": "row 2", "column": "top1", "protocol": {"crop": "0.875"}}
        store.claims.add(source, [Claim("net", "val", "top1", 0.7, "fraction", "70.0", **where)])
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "PRAGMA foreign_keys = ON;"
            "DELETE FROM eval_settings WHERE id NOT IN (SELECT eval_setting_id FROM evaluations)"
            " AND name NOT IN (SELECT eval_setting FROM claims);"
            "DELETE FROM datasets WHERE id NOT IN (SELECT dataset_id FROM evaluations WHERE dataset_id > 0); VACUUM"
        )
    return path


class Builder:
    """Fills a store with evaluations of few samples and classes, whose outputs can be told apart."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._numbers = itertools.count(1)

    def dataset(
        self,
        size: int = 4,
        name: str = "photos",
        targets: Sequence[Any] | None = None,
        order: Sequence[int] | None = None,
        class_names: Sequence[str] | None = ("cat", "dog", "owl"),
        fingerprint: str | None = None,
    ) -> int:
        """A data set of the samples 0 … size - 1, or of those in ``order``; sample i has the target i modulo 3."""
        places = list(range(size)) if order is None else list(order)
        wanted = [place % 3 for place in places] if targets is None else list(targets)
        samples = [
            SampleInfo(f"{name}/{place:04d}.png", f"digest-{name}-{place}", target)
            for place, target in zip(places, wanted, strict=True)
        ]
        dataset = dataset_of(name, samples, class_names)
        return self.store.datasets.ensure(replace(dataset, fingerprint=fingerprint) if fingerprint else dataset)

    def begin(
        self,
        model: str = "net",
        setting: str = "val",
        fingerprint: str | None = None,
        size: int = 4,
        dataset: int | None = None,
        model_row: dict[str, Any] | None = None,
        setting_row: dict[str, Any] | None = None,
        **record: Any,
    ) -> Evaluation:
        """An evaluation that is running, without outputs."""
        dataset_id = self.dataset(size) if dataset is None else dataset
        fingerprint = fingerprint or f"fingerprint-{next(self._numbers)}"
        cell = CellRecord(model, setting, fingerprint, size=size, **{"dtype": "float32", **record})
        return self.store.evaluations.begin(cell, dataset_id, model_row or {}, setting_row or {})

    def logits(self, size: int = 4, classes: int = 3, seed: int = 0) -> np.ndarray[Any, Any]:
        """Random logits [size, classes], float32."""
        return np.random.default_rng(seed).standard_normal((size, classes)).astype(np.float32)

    def complete(
        self,
        model: str = "net",
        setting: str = "val",
        top1: float = 0.5,
        logits: Any = None,
        metrics: Sequence[Metric] | None = None,
        scores: Sequence[Score] = (),
        size: int = 4,
        **record: Any,
    ) -> Evaluation:
        """A complete evaluation with logits (none if it is derived) and the metric top1."""
        evaluation = self.begin(model, setting, size=size, **record)
        if evaluation.origin == "run":
            values = self.logits(size, seed=evaluation.id) if logits is None else logits
            self.store.outputs.append([Chunk(evaluation.id, "logits", 0, values)])
        self.store.evaluations.complete(
            evaluation.id, scores, metrics or [Metric("top1", top1, size, 0.1, scorer="test@1")]
        )
        return self.store.evaluations.get(evaluation.id)


@pytest.fixture
def builder() -> type[Builder]:
    """The class that fills a store."""
    return Builder


@pytest.fixture
def build(store: Store) -> Builder:
    """What fills the store of this test, on each backend."""
    return Builder(store)


@pytest.fixture
def raw() -> Callable[[Any], AbstractContextManager[sa.Connection]]:
    """A connection that knows nothing of testbed, to a store's database or to a URL; what it does is committed."""

    @contextmanager
    def connect(to: Store | str) -> Iterator[sa.Connection]:
        engine = sa.create_engine(to.database.url if isinstance(to, Store) else resolve_url(to))
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    return connect


@pytest.fixture
def start_python(warm_python: WarmPython, tmp_path: Path) -> Iterator[Callable[..., StartedProgram]]:
    """A function that starts a Python program, given as text, with its arguments; those left over are killed."""
    started = []

    def start(program: str, *arguments: object) -> StartedProgram:
        started.append(warm_python.start(program, [str(each) for each in arguments], tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.close()
