"""Running the toy world in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy

from testbed.db.store import Store
from testbed.execution.progress import SilentProgress
from testbed.execution.report import Report
from testbed.graph.options import RunOptions
from testbed.registry import Catalog
from testbed.runner.run import run


class Lab:
    """A store of its own, and runs on it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.progress = SilentProgress()

    def run(
        self, catalog: Catalog, models: Sequence[str] | None = None, settings: Sequence[str] | None = None, **given: Any
    ) -> Report:
        options = RunOptions(db_url=self.url, executor="inline", **given)
        models = catalog.models.names() if models is None else models
        settings = catalog.eval_settings.names() if settings is None else settings
        return run(catalog, options, models, settings, self.progress)

    def open(self) -> Store:
        return Store.open(self.url)

    def outputs(self, model: str, setting: str, kind: str) -> np.ndarray:
        with self.open() as store:
            (evaluation,) = [each for each in store.evaluations.find([model], [setting]) if each.status == "complete"]
            return np.array(store.outputs.read(evaluation.id, kind))

    def logits(self, model: str, setting: str) -> np.ndarray:
        return self.outputs(model, setting, "logits")

    def logits_of_all(self, model: str, setting: str) -> np.ndarray:
        """The logits of the evaluation with the most samples."""
        with self.open() as store:
            found = [each for each in store.evaluations.find([model], [setting]) if each.status == "complete"]
            return np.array(store.outputs.read(max(found, key=lambda each: each.size or 0).id, "logits"))

    def metrics(self, model: str, setting: str) -> dict[str, Any]:
        with self.open() as store:
            results = store.results.find([model], [setting])
            return {each.metric: each for each in results if not each.slice.startswith(("class/", "reason/"))}


@pytest.fixture
def new_lab(tmp_path: Path, sqlite_template: Path) -> Callable[[str], Lab]:
    return lambda name: Lab(str(shutil.copy(sqlite_template, tmp_path / f"{name}.db")))


@pytest.fixture
def lab(new_lab: Callable[[str], Lab]) -> Lab:
    return new_lab("lab")


@pytest.fixture(autouse=True)
def work() -> Iterator[Any]:
    toy.WORK.clear()
    yield toy.WORK
    toy.WORK.clear()
