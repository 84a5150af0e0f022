"""Seconds by stage: each second counts once, for the innermost stage; nothing is measured until it is asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from testbed.process import profiling


@pytest.fixture
def measuring() -> Iterator[None]:
    profiling.start()
    yield
    profiling.stop()


def test_a_second_counts_for_the_innermost_stage(measuring: None) -> None:
    began = time.perf_counter()
    with profiling.stage("decode"):
        time.sleep(0.02)
        with profiling.stage("read"):
            time.sleep(0.05)
        time.sleep(0.02)
    total = time.perf_counter() - began
    seconds = profiling.take()
    assert set(seconds) == {"decode", "read"}
    assert sum(seconds.values()) == pytest.approx(total, abs=0.005)
    assert seconds["read"] >= 0.05
    assert seconds["decode"] >= 0.04
    assert profiling.take() == {}


def test_a_stage_that_raises_is_ended(measuring: None) -> None:
    with pytest.raises(KeyError), profiling.stage("decode"):
        raise KeyError
    with profiling.stage("read"):
        pass
    assert set(profiling.take()) == {"decode", "read"}


def test_what_others_do_meanwhile_is_told_apart(measuring: None) -> None:
    def write() -> None:
        with profiling.stage("store"):
            time.sleep(0.01)

    writer = threading.Thread(target=write, name=profiling.WRITER)
    with profiling.stage("forward"):
        writer.start()
        writer.join()
    profiling.note({"read": 2.0}, profiling.DATA_WORKERS)
    assert set(profiling.take()) == {"forward", "store in writer", "read in data workers"}


def test_the_device_is_waited_for() -> None:
    waited: list[int] = []
    profiling.start(lambda: waited.append(1))
    try:
        with profiling.stage("forward", on_device=True), profiling.stage("read"):
            pass
    finally:
        profiling.stop()
    assert waited == [1]


def test_nothing_is_measured_before_it_is_asked_for() -> None:
    with profiling.stage("read"):
        pass
    assert profiling.take() == {}
