"""``testbed rescore``: computes metrics from stored outputs, and runs judges on stored answers."""

from __future__ import annotations

from collections.abc import Sequence

import click

from testbed.cli.options.stored import models_option, settings_option
from testbed.console.options import EXIT_ERROR, ManyWords, data_root_option, plugin_option, store_command, use_own_names
from testbed.console.output import count, print_json, say
from testbed.errors import TestbedError


@store_command
@models_option
@settings_option
@click.option(
    "--judge",
    cls=ManyWords,
    metavar="NAME",
    help="Judge the stored answers to the settings, as testbed run does on X@NAME; several judges form a panel.",
)
@plugin_option
@data_root_option
def command(
    models: Sequence[str],
    settings: Sequence[str],
    judge: Sequence[str],
    plugins: Sequence[str],
    db_url: str | None,
    as_json: bool,
) -> int:
    """Recompute metrics from stored outputs, without the model.

    Earlier metrics are kept as history.
    """
    if judge:
        return _judge(models, settings, judge, plugins, db_url, as_json)
    from testbed.db.store import Store
    from testbed.registry import registry
    from testbed.scoring.rescore import RescoreResult, counts, rescore

    def tell(one: RescoreResult) -> None:
        if one.status in ("skipped", "failed"):
            say(f"{one.model} on {one.eval_setting} {one.status}: {one.reason}", err=True)

    registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url, "write") as store:
        done = rescore(store, registry, models, settings, tell)
    if as_json:
        print_json([vars(one) for one in done])
    else:
        for why in dict.fromkeys(one.reason for one in done if one.status == "added"):
            say(f"{why}: added to the stored metrics of {count(sum(one.reason == why for one in done), 'evaluation')}")
        said = ", ".join(f"{number:,} {status}" for status, number in sorted(counts(done).items()))
        say(f"{count(len(done), 'evaluation')}: {said}" if done else "the store has no outputs to score")
    return EXIT_ERROR if any(one.status == "failed" for one in done) else 0


def _judge(
    models: Sequence[str],
    settings: Sequence[str],
    judges: Sequence[str],
    plugins: Sequence[str],
    db_url: str | None,
    as_json: bool,
) -> int:
    """Runs judges on the stored answers to the settings, like ``testbed run`` on X@JUDGE for the models that answered.

    Raises:
        TestbedError: If no settings are chosen, or no model has answered them.
    """
    from testbed.cli.eval import run
    from testbed.db.store import Store
    from testbed.registry.references import AND, JUDGED

    if not settings:
        raise TestbedError("--judge needs --on: the settings whose stored answers are judged")
    answered: dict[int | None, set[str]] = {}  # limit of the samples → models
    with Store.open(db_url) as store:
        for result in store.results.find(list(models) or None, list(settings)):
            answered.setdefault(result.sample_limit, set()).add(result.model)
    if not answered:
        raise TestbedError(f"no model has answered {', '.join(settings)} yet; testbed run runs them")
    if as_json and len(answered) > 1:
        raise TestbedError("some answers cover only part of the samples (--limit); name models of one kind for --json")
    names = [f"{setting}{JUDGED}{AND.join(judges)}" for setting in settings]
    common = ["--on", *names, *(["--db-url", db_url] if db_url else []), *(["--json"] if as_json else [])]
    common += ["--plugin", *map(str, plugins)] if plugins else []
    codes = []
    for limit, several in answered.items():
        words = [*sorted(several), *common, *(["--limit", str(limit)] if limit else [])]
        codes.append(run.main(words, prog_name="testbed run", standalone_mode=False))
    return max((code for code in codes if isinstance(code, int)), default=0)
