"""The store against plain files: logits of a whole ImageNet validation run, written in chunks and read back.

    python benchmarks/bench_store.py [--samples 50000] [--classes 1000] [--db-url postgresql://…] [--outside]

The bare way is a `.npy` file for each chunk, flushed to the disk as a commit is, and no checksums. Both write new files
each time, and the memory for them is used once before: a virtual machine has to fetch what it never used.
"""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path

import click
import numpy as np
from paired import compare, machine

from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Metric, SampleInfo

CHUNK = 2048


def use_memory(folder: Path, size: int) -> None:
    """Has the page cache use so many bytes of memory, and gives them back."""
    part = os.urandom(2**20)
    with (folder / "filler").open("wb") as file:
        for _ in range(size // len(part)):
            file.write(part)
    (folder / "filler").unlink()


@click.command()
@click.option("--samples", default=50_000, show_default=True)
@click.option("--classes", default=1000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--db-url", help="An empty database; default: a SQLite file.")
@click.option("--outside", is_flag=True, help="Outputs in files outside of the database (--payload-url).")
def main(samples: int, classes: int, repeats: int, db_url: str | None, outside: bool) -> None:
    """Prints the ratios of writing and of reading."""
    click.echo(machine())
    logits = np.random.default_rng(0).standard_normal((samples, classes)).astype(np.float32)
    click.echo(f"{samples:,} × {classes:,} float32: {logits.nbytes / 1e6:.0f} MB in chunks of {CHUNK:,}")
    infos = [SampleInfo(f"{index:05d}", f"{index:032x}", index % classes) for index in range(samples)]
    numbers = count()
    last: list[int] = []
    folders: list[Path] = []
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        use_memory(root, 3 * (repeats + 1) * logits.nbytes)
        url = db_url or str(root / "store.db")
        with (
            Store.create(url, str(root / "outputs") if outside else "") as store,
            Store.open(url) as reading,
        ):
            dataset = store.datasets.ensure(DatasetInfo("bench", "bench", infos))

            def write() -> None:
                record = CellRecord("net", "val", f"bench-{os.getpid()}-{next(numbers)}", size=samples)
                evaluation = store.evaluations.begin(record, dataset, {}, {})
                for start in range(0, samples, CHUNK):
                    store.outputs.append([Chunk(evaluation.id, "logits", start, logits[start : start + CHUNK])])
                store.evaluations.complete(evaluation.id, [], [Metric("top1", 0.5, samples)])
                last[:] = [evaluation.id]

            def write_files() -> None:
                folder = root / f"files-{next(numbers)}"
                folder.mkdir()
                for start in range(0, samples, CHUNK):
                    with (folder / f"{start}.npy").open("wb") as file:
                        np.save(file, logits[start : start + CHUNK])
                        file.flush()
                        os.fsync(file.fileno())
                folders.append(folder)

            def read() -> None:
                assert (reading.outputs.read(last[0], "logits")[-1] == logits[-1]).all()

            def read_files() -> None:
                whole = np.concatenate([np.load(folders[-1] / f"{start}.npy") for start in range(0, samples, CHUNK)])
                assert (whole[-1] == logits[-1]).all()

            compare("writing", write, write_files, repeats)
            compare("reading, checksums compared", read, read_files, repeats)


if __name__ == "__main__":
    main()
