"""Whether a process of this machine has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.db.connection.process_info import ProcessInfo, has_ended, this_process


@pytest.fixture
def another() -> Iterator[tuple[Any, ProcessInfo]]:
    """A process that runs, and what it says of itself."""
    told = "x = this_process(); print(x.process, x.process_start, flush=True); input()"
    code = f"from testbed.db.connection.process_info import this_process; {told}"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    number, start = process.stdout.readline().split()
    yield process, replace(this_process(), process=int(number), process_start=start)
    process.kill()
    process.communicate()


def test_a_process_has_ended_when_it_was_killed_even_if_nobody_asked_for_its_end(another: Any) -> None:
    process, of = another
    assert not has_ended(this_process())
    assert not has_ended(of)
    process.kill()
    for _ in range(100):
        if has_ended(of):  # it is a zombie until `wait`
            break
    else:
        process.wait(1)
    assert has_ended(of)


def test_a_later_process_of_the_same_number_is_another_one(another: Any) -> None:
    assert has_ended(replace(another[1], process_start="1"))


def test_of_another_machine_nothing_is_known(another: Any) -> None:
    process, of = another
    process.kill()
    process.wait()
    assert has_ended(of)
    assert not has_ended(replace(of, place="elsewhere"))


def test_a_process_that_is_hidden_has_not_ended(another: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    process, of = another
    read = Path.read_text

    def hiding(self: Path, *arguments: Any, **named: Any) -> str:
        if str(self).endswith("/stat"):
            raise FileNotFoundError
        return read(self, *arguments, **named)

    monkeypatch.setattr(Path, "read_text", hiding)
    assert not has_ended(of)
    process.kill()
    process.wait()
    assert has_ended(of)
