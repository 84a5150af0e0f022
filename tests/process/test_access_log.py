"""The log of reads while several threads of a run read files and ask what was read."""

import json
import os
import threading

import pytest

from testbed.tracing import access_log, versions
from testbed.tracing.access_log import FILE, SHARED


def names() -> set[str]:
    return {name for _, _, name, _ in access_log.noted()}


def test_reads_of_other_threads_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, seen = versions.counts, []

    def and_another_read(path: str) -> bool:
        seen.append(path)
        access_log.add(SHARED, FILE, f"/read/meanwhile/{len(seen)}")
        return counts(path)

    for number in range(100):
        access_log.add(SHARED, FILE, f"/read/before/{number}")
    monkeypatch.setattr(versions, "counts", and_another_read)
    assert {f"/read/before/{number}" for number in range(100)} <= names()
    monkeypatch.undo()
    assert seen
    assert {f"/read/meanwhile/{number + 1}" for number in range(len(seen))} <= names()


def test_reads_of_children_while_two_threads_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of the children is read once: a line that is counted twice hides the next one."""
    monkeypatch.setattr(access_log, "_forked", None)  # that of the process from which this one was forked
    monkeypatch.setattr(access_log, "_taken", 0)
    access_log.before_children()
    together, pread = threading.Barrier(2), os.pread

    def read_together(*arguments: int) -> bytes:
        try:
            together.wait(0.5)
        except threading.BrokenBarrierError:
            pass  # the other thread waits until this one has read
        return pread(*arguments)

    def child_reads(name: str) -> None:
        os.write(access_log._forked[0].fileno(), f"{json.dumps((SHARED, FILE, name, ''))}\n".encode())

    child_reads("/read/by/a/child")
    monkeypatch.setattr(os, "pread", read_together)
    threads = [threading.Thread(target=names) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monkeypatch.setattr(os, "pread", pread)
    child_reads("/read/by/the/next")
    assert {"/read/by/a/child", "/read/by/the/next"} <= names()
