"""``db.py --rescore``: today's metrics from stored outputs."""

from __future__ import annotations

from typing import Any

import click

from testbed.console.options import EXIT_ERROR
from testbed.console.output import count, print_json


def rescore_as_asked(given: dict[str, Any]) -> int:
    """Rescores the chosen evaluations and prints the outcome."""
    from testbed.db.store import Store
    from testbed.registry import registry
    from testbed.runner.rescore import Rescored, counts, rescore

    def tell(one: Rescored) -> None:
        if one.status in ("skipped", "failed"):
            click.echo(f"{one.model} on {one.eval_setting} {one.status}: {one.reason}", err=True)

    registry.load(given["plugins"])
    with Store.open(given["db_url"], "write") as store:
        done = rescore(store, registry, given["models"], given["eval_settings"], tell)
    if given["as_json"]:
        print_json([vars(one) for one in done])
    else:
        said = ", ".join(f"{number:,} {status}" for status, number in sorted(counts(done).items()))
        click.echo(f"{count(len(done), 'evaluation')}: {said}" if done else "there are no outputs to score")
    return EXIT_ERROR if any(one.status == "failed" for one in done) else 0
