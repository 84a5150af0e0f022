"""``db.py --rescore``: today's metrics from stored outputs."""

from __future__ import annotations

from typing import Any

import click

from testbed.console.options import EXIT_ERROR
from testbed.console.output import count, print_json
from testbed.errors import TestbedError


def run_judge(given: dict[str, Any]) -> int:
    """Runs judges on the stored answers to the chosen settings: ``eval.py`` on X@JUDGE for the models that answered.

    Raises:
        TestbedError: If no settings are chosen, or nobody has answered them.
    """
    from testbed.cli.eval import command as evaluate
    from testbed.db.store import Store
    from testbed.registry.references import AND, JUDGED

    settings, models = list(given["eval_settings"]), list(given["models"])
    if not settings:
        raise TestbedError("--judge needs --eval-settings: the settings whose stored answers are judged")
    answered: dict[int | None, set[str]] = {}  # limit of the samples → models
    with Store.open(given["db_url"]) as store:
        for each in store.results(models or None, settings):
            answered.setdefault(each.sample_limit, set()).add(each.model)
    if not answered:
        raise TestbedError(f"no model has answered {', '.join(settings)} yet; eval.py runs them")
    if given["as_json"] and len(answered) > 1:
        raise TestbedError("some answers are of a part of the samples (--limit); name models of one kind for --json")
    names = [f"{setting}{JUDGED}{AND.join(given['judge'])}" for setting in settings]
    common = ["--eval-settings", *names, *(["--db-url", str(given["db_url"])] if given["db_url"] else [])]
    common += ["--plugin", *map(str, given["plugins"])] if given["plugins"] else []
    common += ["--json"] if given["as_json"] else []
    codes = []
    for limit, several in answered.items():
        words = ["--models", *sorted(several), *common, *(["--limit", str(limit)] if limit else [])]
        codes.append(evaluate.main(words, prog_name="eval.py", standalone_mode=False))
    return max((code for code in codes if isinstance(code, int)), default=0)


def run_rescore(given: dict[str, Any]) -> int:
    """Rescores the chosen evaluations and prints the outcome."""
    if given["judge"]:
        return run_judge(given)
    from testbed.db.store import Store
    from testbed.registry import registry
    from testbed.scoring.rescore import Rescored, counts, rescore

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
