"""In place of ``mldb.s3_utils``: nothing is on a server here."""

from __future__ import annotations

from typing import Any

from testbed.paths import data_root

_INSTEAD = "testbed reads checkpoints from a folder (--checkpoints DIR) and data sets from another (--data-root DIR)"


def __getattr__(name: str) -> Any:
    if name == "default_cache_root_path":
        return str(data_root() or "")
    if name.startswith("__"):
        raise AttributeError(name)
    raise ImportError(f"testbed has no mldb.s3_utils.{name}: {_INSTEAD}")
