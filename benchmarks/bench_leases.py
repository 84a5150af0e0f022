"""Measures the cost of sharing: storing outputs shard by shard, with and without leases.

    python benchmarks/bench_leases.py [--samples 50000] [--cells 4] [--classes 1000] [--db-url postgresql://…/EMPTY]

A run leases each shard in the store before it computes it, so that no other run does.
"""

from __future__ import annotations

import tempfile
import time
from itertools import count
from pathlib import Path

import click
import numpy as np
from paired import compare, machine

from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, SampleInfo

SHARD = 2048  # samples


@click.command()
@click.option("--samples", default=50_000, show_default=True)
@click.option("--cells", default=4, show_default=True, help="Evaluations that share a pass.")
@click.option("--classes", default=1000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--db-url", help="An empty database; default: a SQLite file.")
def main(samples: int, cells: int, classes: int, repeats: int, db_url: str | None) -> None:
    """Prints the ratio, and the time of one lease."""
    click.echo(machine())
    logits = np.random.default_rng(0).standard_normal((SHARD, classes)).astype(np.float32)
    infos = [SampleInfo(f"{index:05d}", f"{index:032x}", index % classes) for index in range(samples)]
    numbers, spent = count(), [0.0, 0]
    with tempfile.TemporaryDirectory() as place, Store.create(db_url or str(Path(place) / "store.db"), "") as store:
        dataset = store.datasets.ensure(DatasetInfo("bench", "bench", infos))
        store.leases.begin_run("bench_leases.py")

        def write(leased: bool) -> None:
            record = [CellRecord("net", f"s{cell}", f"bench-{next(numbers)}", size=samples) for cell in range(cells)]
            ids = [store.evaluations.begin(entry, dataset, {}, {}).id for entry in record]
            for start in range(0, samples, SHARD):
                stop = min(start + SHARD, samples)
                if leased:
                    began = time.perf_counter()
                    store.leases.lease(ids, start, stop)
                    spent[:] = [spent[0] + time.perf_counter() - began, spent[1] + 1]
                store.outputs.append(
                    [Chunk(evaluation_id, "logits", start, logits[: stop - start]) for evaluation_id in ids]
                )

        compare(
            f"{cells} × {samples:,} × {classes:,} logits, with leases",
            lambda: write(True),
            lambda: write(False),
            repeats,
        )
        click.echo(f"a lease: {spent[0] / spent[1] * 1000:.1f} ms")


if __name__ == "__main__":
    main()
