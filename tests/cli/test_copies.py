"""`db.py --copy-to` and `--merge`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stored_cells import put, samples_of, saying

from testbed.db.store import Store

SAMPLES = samples_of([0, 1, 2, 3])


def test_the_commands(tmp_path: Path, ask: Callable[..., Any]) -> None:
    with Store.create(str(tmp_path / "testbed.db")) as store:
        put(store, "net", "shown", SAMPLES, saying([0, 1, 2, 3]))
    target = tmp_path / "copy.db"
    assert ask("--copy-to", target).stdout == f"1 evaluation copied to sqlite:///{target}\n"
    with Store.open(str(target), "write") as store:
        put(store, "other", "shown", SAMPLES, saying([0, 1, 2, 3]))
    told = ask("--merge", target).stdout
    assert told == f"1 evaluation copied to sqlite:///{tmp_path}/testbed.db; 1 were there already\n"
    assert '"copied": 0' in ask("--merge", target, "--no-outputs", "--json").stdout
    assert "both stores are" in ask("--merge", tmp_path / "testbed.db", code=2).stderr
    assert "no results store" in ask("--merge", tmp_path / "none.db", code=1).stderr
