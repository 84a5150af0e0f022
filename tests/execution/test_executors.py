"""Executors by name: built in, or of an installed package."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest
from toy import toy_catalog, toy_model, toy_setting

from testbed import extending
from testbed.errors import RunError
from testbed.execution import executors
from testbed.execution.inline import InlineExecutor
from testbed.graph.options import RunOptions
from testbed.runner.run import run

RAN: list[str] = []


class Mine(InlineExecutor):
    """Notes that it ran."""

    def run(self, *arguments: Any) -> None:
        RAN.append(self.device)
        super().run(*arguments)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with an executor, as if it were installed."""
    entry = importlib.metadata.EntryPoint("executor.mine", f"{__name__}:Mine", extending.GROUP)
    known = importlib.metadata.entry_points(group=extending.GROUP)
    monkeypatch.setattr(extending, "installed_points", lambda group: (*known, entry))
    extending._installed.cache_clear()
    RAN.clear()
    yield
    monkeypatch.undo()
    extending._installed.cache_clear()


def test_an_executor_of_an_installed_package_runs_cells(lab: Any, installed: None) -> None:
    options = RunOptions(db_url=lab.url, executor="mine")
    report = run(toy_catalog(toy_model(), toy_setting()), options, ["toy"], ["toy-all"])
    assert report.ok
    assert RAN == ["cpu"]
    assert executors.executor_names() == ["processes", "inline", "mine", "ray"]


def test_an_unknown_executor_is_refused_before_anything_is_done(lab: Any, work: Any) -> None:
    options = RunOptions(db_url=lab.url, executor="clouds")
    with pytest.raises(RunError, match="there is no executor 'clouds'; there are processes, inline, ray"):
        run(toy_catalog(toy_model(), toy_setting()), options, ["toy"], ["toy-all"])
    assert not work
