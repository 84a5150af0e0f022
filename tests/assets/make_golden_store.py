"""Made ``golden_store.db``: the tiny cells of `golden_definitions`, run by a testbed of before the first release.

    python tests/assets/make_golden_store.py

A file that was made is never made again: later versions must compute the same numbers from the outputs in it.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from golden import SCORED, golden_catalog

from testbed.graph.options import RunOptions
from testbed.runner.run import run


def main() -> None:
    """Writes the file."""
    path = Path(__file__).resolve().parent / "golden_store.db"
    if path.exists():
        raise SystemExit(f"{path} exists; a file is made once")
    with sqlite3.connect(path) as connection:  # small pages, since most tables hold a few rows
        connection.execute("PRAGMA page_size=1024")
        connection.execute("VACUUM")
    connection.close()
    catalog = golden_catalog()
    options = RunOptions(db_url=str(path), executor="inline", data_workers=0)
    report = run(catalog, options, catalog.model_names(), [*catalog.eval_setting_names(), *SCORED])
    assert report.ok, report.outcomes
    with sqlite3.connect(path) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


if __name__ == "__main__":
    main()
