"""What a run prints about its progress where there is no terminal."""

from __future__ import annotations

import io

import pytest

from testbed.execution import progress
from testbed.execution.progress import LineProgress
from testbed.graph.passes import Pass, PassCell


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def one_pass(number: int, model: str) -> Pass:
    cells = (PassCell(number, model, "val", ""),)
    return Pass(number, cells, source=None, positions=range(100), targets=[], batch_size=10, chunk=10)  # type: ignore[arg-type]


def test_the_rate_of_a_pass_is_its_own(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out)
    for number, model in enumerate(["first", "second"]):
        lines.begin(one_pass(number, model), 100, 100)
    for number in (0, 1):
        for _ in range(10):  # ten images in a second; the second pass waits for the first one
            clock.now += 1
            lines.advance(number, 10)
    said = out.getvalue().splitlines()
    assert said[-1] == "second × val: 100 of 100 images, 10 images/s, 0:00 left"
    assert next(line for line in said if line.startswith("second")) == "second × val: 10 of 100 images"


def test_lines_come_every_ten_seconds_and_say_how_long_it_takes(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out)
    lines.begin(one_pass(0, "first"), 1000, 1000)
    for _ in range(25):
        clock.now += 1
        lines.advance(0, 10)
    assert out.getvalue().splitlines() == [
        "first × val: 100 of 1,000 images, 10 images/s, 1:30 left",
        "first × val: 200 of 1,000 images, 10 images/s, 1:20 left",
    ]


def test_an_interval_counts_samples(clock: Clock) -> None:
    out = io.StringIO()
    lines = LineProgress(out, interval=50)
    lines.begin(one_pass(0, "first"), 100, 100)
    for _ in range(10):
        clock.now += 2
        lines.advance(0, 10)
    assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == [
        "first × val: 50 of 100 images",
        "first × val: 100 of 100 images",
    ]
