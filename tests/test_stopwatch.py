"""Seconds by stage: each second counts once, for the innermost stage; nothing is measured until it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from testbed import stopwatch


@pytest.fixture
def measuring() -> Iterator[None]:
    stopwatch.start()
    yield
    stopwatch.stop()


def test_a_second_counts_for_the_innermost_stage(measuring: None) -> None:
    began = time.perf_counter()
    with stopwatch.stage("decode"):
        time.sleep(0.02)
        with stopwatch.stage("read"):
            time.sleep(0.05)
        time.sleep(0.02)
    total = time.perf_counter() - began
    seconds = stopwatch.take()
    assert set(seconds) == {"decode", "read"}
    assert sum(seconds.values()) == pytest.approx(total, abs=0.005)
    assert seconds["read"] >= 0.05
    assert seconds["decode"] >= 0.04
    assert stopwatch.take() == {}


def test_a_stage_that_raises_is_ended(measuring: None) -> None:
    with pytest.raises(KeyError), stopwatch.stage("decode"):
        raise KeyError
    with stopwatch.stage("read"):
        pass
    assert set(stopwatch.take()) == {"decode", "read"}


def test_what_others_do_meanwhile_is_told_apart(measuring: None) -> None:
    def write() -> None:
        with stopwatch.stage("store"):
            time.sleep(0.01)

    writer = threading.Thread(target=write, name=stopwatch.WRITER)
    with stopwatch.stage("forward"):
        writer.start()
        writer.join()
    stopwatch.note({"read": 2.0}, stopwatch.DATA_WORKERS)
    assert set(stopwatch.take()) == {"forward", "store in writer", "read in data workers"}


def test_the_device_is_waited_for() -> None:
    waited: list[int] = []
    stopwatch.start(lambda: waited.append(1))
    try:
        with stopwatch.stage("forward", on_device=True), stopwatch.stage("read"):
            pass
    finally:
        stopwatch.stop()
    assert waited == [1]


def test_nothing_is_measured_before_it_is_asked_for() -> None:
    with stopwatch.stage("read"):
        pass
    assert stopwatch.take() == {}
