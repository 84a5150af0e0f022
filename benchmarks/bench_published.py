"""A whole published table in the store: importing it, asking it, exporting it; each against pandas on the CSV itself.

python benchmarks/bench_published.py TABLE.csv [--repeats 5]

TABLE.csv has ImageNet-testbed's form: a column ``model``, then a column of percentages for each setting.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import click
from paired import compare, machine, seconds

ROOT = Path(__file__).resolve().parent.parent
READ = "import sys, pandas; frame = pandas.read_csv(sys.argv[1], index_col='model'); "


@click.command()
@click.argument("table", type=click.Path(exists=True, dir_okay=False, resolve_path=True))
@click.option("--repeats", default=5, show_default=True)
def main(table: str, repeats: int) -> None:
    """Prints seconds and ratios of whole processes, and of the frame within one."""
    click.echo(machine())

    def run(*words: str) -> None:
        subprocess.run([sys.executable, *words], check=True, capture_output=True)

    with tempfile.TemporaryDirectory() as folder:
        store, out = str(Path(folder) / "store.db"), str(Path(folder) / "out.csv")
        program, database = ["-m", "testbed"], ["--db-url", store]
        took = seconds(lambda: run(*program, "import", table, *database))
        click.echo(f"{'testbed import, a new store':58}  testbed {took:7.3f} s")
        import pandas as pd

        first = pd.read_csv(table, index_col="model")
        model, setting = str(first.index[0]), str(first.iloc[0].dropna().index[0])
        click.echo(f"{first.notna().sum().sum():,} values")
        value, names = f"print(frame.loc[{model!r}, {setting!r}])", "print(*frame.index, sep='\\n')"
        for what, words, bare in (
            ("testbed show", ["show", model, setting], value),
            ("testbed list models --stored", ["list", "models", "--stored"], names),
            ("testbed export csv", ["export", "csv", out], "frame.to_csv(sys.argv[2])"),
        ):
            ours = [*program, *words, *database]
            compare(what, lambda o=ours: run(*o), lambda b=bare: run("-c", READ + b, table, out), repeats)
        from testbed.plotting.frame import load_grid, results_frame

        compare("results_frame", lambda: results_frame(store), lambda: pd.read_csv(table, index_col="model"), repeats)
        compare("load_grid", lambda: load_grid(store), lambda: pd.read_csv(table, index_col="model"), repeats)


if __name__ == "__main__":
    main()
