"""Processes that are forked from a server."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
from scipy._lib._util import check_random_state  # gives numpy's generator; importing it is quick

from testbed.process.processes import begin, process_context


def in_a_process(what: Any, *arguments: Any) -> Any:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, process_context([]), begin, (dict(os.environ),)) as pool:
        return pool.submit(what, *arguments).result()


def test_each_has_the_variables_of_the_time_when_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook changes them between runs, and the server stays."""
    monkeypatch.setenv("OF_THE_USER", "old")
    found = [in_a_process(os.getenv, "OF_THE_USER"), in_a_process(os.getppid)]
    monkeypatch.setenv("OF_THE_USER", "new")
    assert [in_a_process(os.getenv, "OF_THE_USER"), in_a_process(os.getppid)] == ["new", found[1]]
    assert found[0] == "old"
    monkeypatch.delenv("OF_THE_USER")
    assert in_a_process(os.getenv, "OF_THE_USER") is None


def test_they_do_not_draw_the_same_numbers() -> None:
    """What is forked would have the generator of the server; here it is sent back from each."""
    assert in_a_process(check_random_state, None).random() != in_a_process(check_random_state, None).random()
