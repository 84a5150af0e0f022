"""A far place for outputs whose clients raise errors, as object stores do."""

from __future__ import annotations

import io
import time
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem


class ClientError(Exception):
    """Such as clients of object stores raise: no OSError."""


class CutOff(io.BytesIO):
    """An answer that promises more than comes."""

    def readinto(self, room: Any) -> int:
        return 0


class Unsteady(MemoryFileSystem):
    """A far place whose clients raise an error so many times."""

    protocol = "unsteady"
    error: Any = None
    times = 0
    cut = 0  # so many answers end early, without an error
    seconds = 0.0  # an answer takes so long

    @classmethod
    def fail(cls) -> None:
        if cls.times:
            cls.times -= 1
            raise cls.error

    def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        self.fail()
        time.sleep(self.seconds)
        file = super()._open(path, mode, **more)
        if mode == "rb" and Unsteady.cut:
            Unsteady.cut -= 1
            return CutOff(file.getvalue())
        return file

    def ls(self, *given: Any, **more: Any) -> Any:
        self.fail()
        return super().ls(*given, **more)

    def find(self, *given: Any, **more: Any) -> Any:
        return super().find(*given, **more) if not self.times else {}  # as of object stores: it leaves out errors

    def rm_file(self, path: str) -> None:
        self.fail()
        super().rm_file(path)


def register_unsteady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes URLs of ``unsteady://`` known; nothing fails there yet, and nothing waits before it is tried again."""
    fsspec.register_implementation("unsteady", Unsteady, clobber=True)
    monkeypatch.setattr("testbed.db.payloads.far.PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr("testbed.db.payloads.far.REST", 0.0)
    monkeypatch.setattr("testbed.db.payloads.far._given_up", False)
    for name, value in (("times", 0), ("cut", 0), ("error", ClientError("the payload is not completed"))):
        monkeypatch.setattr(Unsteady, name, value)
