"""Answering from the store against asking SQLite with the standard library: whole processes.

python benchmarks/bench_print_eval.py STORE MODEL SETTING [--repeats 10]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
from paired import compare, machine

ROOT = Path(__file__).resolve().parent.parent
BARE = """
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT metric, slice, value, stderr, n FROM results WHERE model = ? AND eval_setting = ?", sys.argv[2:])
for row in rows:
    print(*row)
"""


@click.command()
@click.argument("store")
@click.argument("model")
@click.argument("setting")
@click.option("--repeats", default=10, show_default=True)
def main(store: str, model: str, setting: str, repeats: int) -> None:
    """Prints the ratio of the two."""
    click.echo(machine())

    def start(*words: str) -> None:
        subprocess.run([sys.executable, *words], check=True, capture_output=True)

    compare(
        "testbed show",
        lambda: start("-m", "testbed", "show", model, setting, "--db-url", store),
        lambda: start("-c", BARE, store, model, setting),
        repeats,
    )


if __name__ == "__main__":
    main()
