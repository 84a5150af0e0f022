"""``testbed published list``: who reports what."""

from __future__ import annotations

from collections.abc import Sequence

import click

from testbed.cli.options.stored import limit_option, models_option, settings_option
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, say, table
from testbed.entities import OVERALL
from testbed.errors import TestbedError
from testbed.formatting import metric_value


@store_command
@click.argument("sources", nargs=-1, metavar="[SOURCE...]")
@models_option
@settings_option
@limit_option
def command(
    sources: Sequence[str],
    models: Sequence[str],
    settings: Sequence[str],
    limit: int,
    db_url: str | None,
    as_json: bool,
) -> int:
    """List published values by source: who reports what for which cell.

    With the date of each file, the conditions of the measurement, such as prompts and
    image size, and below the table a link to each file.
    """
    from testbed.claims.compare import about
    from testbed.claims.listing import NOTHING, conditions, link, listed
    from testbed.claims.names import mapped_now
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        known = store.claims.order()
        if unknown := [source for source in sources if source not in known]:
            raise TestbedError(f"nothing from {unknown[0]!r} is stored; stored sources: {', '.join(known) or 'none'}")
        claims = about(mapped_now(store, store.claims.find(sources=sources or None)), models, settings)
    if as_json:
        print_json([listed(claim) for claim in claims])
        return 0
    if not claims:
        of_one = len(models) == len(settings) == 1 and not sources
        say(NOTHING if of_one else "nothing is published for these cells")
        return 0
    shown, rows = claims[:limit], []
    for claim in shown:
        assert claim.source is not None
        metric = claim.metric if claim.slice == OVERALL else f"{claim.metric} ({claim.slice})"
        value = metric_value(claim.value, claim.unit, claim.stderr)
        n = "" if claim.n is None else f"{claim.n:,}"
        where = (claim.source.name, claim.source.date or "–")
        rows.append([*where, claim.model, claim.eval_setting, metric, value, n, conditions(claim) or "–"])
    header = ["source", "date", "model", "setting", "metric", "value", "n", "conditions"]
    click.echo(table(header, rows, right=[5, 6]))
    files = dict.fromkeys(
        f"{claim.source.name}: {link(claim.source) or claim.source.file}" for claim in shown if claim.source
    )
    click.echo("\n".join(files))
    more = f"; {count(len(claims) - len(shown), 'more value')}: --limit" if len(claims) > len(shown) else ""
    footnote(f"{len(shown):,} of {count(len(claims), 'published value')}{more}")
    return 0
