"""All benchmarks that need nothing but testbed, one after the other, as one table of ratios.

    python benchmarks/run.py [--only store --only runner] [--write]

Each line is the median of pairs, taken in turn: testbed's time over the other's. ``--write`` puts the table into
benchmarks/results.md. What needs more (a peer in an environment of its own, a GPU), or is compared with
nothing, is run by itself; see README.md.
"""

from __future__ import annotations

import datetime
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from paired import machine

HERE = Path(__file__).resolve().parent
PAGE = HERE / "results.md"
BEGIN, END = "<!-- the table -->", "<!-- its end -->"
_LINE = re.compile(
    r"^(?P<what>.+?)\s+testbed\s+(?P<ours>[\d.]+) s\s+bare\s+(?P<bare>[\d.]+) s\s+ratio\s+(?P<ratio>[\d.]+)"
    r"\s+\((?P<low>[\d.]+) to (?P<high>[\d.]+), (?P<pairs>\d+) pairs\)"
)


@dataclass(frozen=True)
class Benchmark:
    """A program that prints lines of `paired.compare`.

    Attributes:
        words: Its file and arguments.
        against: The other way.
        goals: What the lines should reach, in their order: the largest ratio.
    """

    words: Sequence[str]
    against: str
    goals: Sequence[float | None] = ()


ALL = {
    "runner": Benchmark(
        ["bench_runner.py", "--images", "200", "--repeats", "3"], "the loop that one would write", (1.05, None, 1.0)
    ),
    "pass": Benchmark(
        ["bench_pass.py", "--images", "24", "--repeats", "2"], "the time in the network and in corruptions", (1.11,)
    ),
    "processes": Benchmark(["bench_processes.py", "--repeats", "2"], "one process; one loop", (0.56,)),
    "derived": Benchmark(["bench_derived.py"], "running it; reading the logits", (0.02, 2.0)),
    "store": Benchmark(["bench_store.py", "--repeats", "5"], "`.npy` files, flushed", (4.0, 2.0)),
    "store-outside": Benchmark(
        ["bench_store.py", "--repeats", "5", "--outside"], "`.npy` files, flushed", (1.25, 1.25)
    ),
    "leases": Benchmark(["bench_leases.py"], "storing without leases"),
    "rank": Benchmark(["bench_rank.py"], "a loop over pairs of models", (1.0, 1.0)),
    "results": Benchmark(["bench_results.py", "--models", "200"], "SQLite asked by the standard library"),
    "webdataset": Benchmark(["bench_webdataset.py", "--count", "1000", "--repeats", "3"], "a folder of the same files"),
    "api": Benchmark(["bench_api.py"], "one question at a time", (0.1,)),
}
POSTGRES = Benchmark(["bench_store.py", "--repeats", "3", "--db-url"], "`.npy` files, flushed", (6.7, 4.0))


@click.command()
@click.option("--only", multiple=True, metavar="NAME", help=f"Only these: {', '.join([*ALL, 'store-postgres'])}.")
@click.option("--postgres", metavar="URL", help="An empty database, for store-postgres.")
@click.option("--write", is_flag=True, help="Put the table into benchmarks/results.md.")
def main(only: tuple[str, ...], postgres: str | None, write: bool) -> None:
    """Prints the table."""
    chosen = dict(ALL)
    if postgres:
        chosen["store-postgres"] = Benchmark([*POSTGRES.words, postgres], POSTGRES.against, POSTGRES.goals)
    if unknown := set(only) - set(chosen):
        raise click.UsageError(f"there is no benchmark {min(unknown)!r}; there are {', '.join(chosen)}")
    lines = [
        f"{datetime.datetime.now(datetime.UTC).date()}, {os.cpu_count()} cores: {machine()}.",
        "",
        "| | against | testbed, s | other, s | ratio | range | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    click.echo("\n".join(lines))
    for name in only or chosen:
        for line in measured(name, chosen[name]):
            click.echo(line)
            lines.append(line)
    if write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


def measured(name: str, benchmark: Benchmark) -> Iterator[str]:
    """The rows of the table for a benchmark."""
    done = subprocess.run(
        [sys.executable, str(HERE / benchmark.words[0]), *benchmark.words[1:]],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    found = [match for line in done.stdout.splitlines() if (match := _LINE.match(line))]
    if done.returncode or not found:
        reason = (done.stderr.strip().splitlines() or ["it printed no ratio"])[-1]
        yield f"| {name} | {benchmark.against} | not run: {reason} |  |  |  |  |"
        return
    for number, finding in enumerate(found):
        goal = benchmark.goals[number] if number < len(benchmark.goals) else None
        told = "" if goal is None else f"≤ {goal:g}" + ("" if float(finding["ratio"]) <= goal else ", missed")
        yield (
            f"| {name}: {finding['what']} | {benchmark.against} | {finding['ours']} | {finding['bare']} |"
            f" {finding['ratio']} | {finding['low']} to {finding['high']} | {told} |"
        )


if __name__ == "__main__":
    main()
