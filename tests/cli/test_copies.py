"""``testbed store copy`` and ``merge``."""

from __future__ import annotations

import os
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
    assert ask("store", "copy", target).stdout == f"1 evaluation copied to sqlite:///{target}\n"
    with Store.open(str(target), "write") as store:
        put(store, "other", "shown", SAMPLES, saying([0, 1, 2, 3]))
    told = ask("store", "merge", target).stdout
    assert told == f"1 evaluation copied to sqlite:///{tmp_path}/testbed.db; 1 were already there\n"
    assert '"copied": 0' in ask("store", "merge", target, "--no-outputs", "--json").stdout
    assert "both stores are" in ask("store", "merge", tmp_path / "testbed.db", code=2).stderr
    place = tmp_path / "outputs"
    told = ask("store", "copy", tmp_path / "outside.db", "--payload-url", place).stdout
    assert told.startswith("2 evaluations copied")
    copied = sorted(place.rglob("*.bin"))
    orphan = copied[0].with_name(f"logits-9-{'a' * 32}.bin")
    orphan.write_bytes(b"123")
    os.utime(orphan, (0, 0))
    told = ask("store", "gc", "--payload-url", place).stdout
    assert told.startswith(
        "0 files deleted, 0 bytes\n1 file (3 bytes) left in folders that this store has no record of"
    )
    assert "2 files left: less than an hour old" in told
    assert ask("store", "gc", "--payload-url", place, "--override").stdout.startswith("1 file deleted, 3 bytes\n")
    assert sorted(place.rglob("*.bin")) == copied
    assert "no results store" in ask("store", "merge", tmp_path / "none.db", code=1).stderr
