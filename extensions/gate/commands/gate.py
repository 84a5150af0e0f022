"""``testbed gate``: decides by a policy whether a new model may replace another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import STORED_MODEL, note
from testbed.console.columns import prose
from testbed.console.options import Argument, Option, fail, store_command
from testbed.console.output import CLUSTERED, footnote, print_json, sample_count, table
from testbed.entities import FRACTION
from testbed.errors import TestbedError
from testbed.formatting import bare_value

if TYPE_CHECKING:
    from testbed.extensions.gate.decision import Decision, RuleVerdict

EXITS = {"passes": 0, "fails": 1, "open": 2}
_ERROR = 2
_HEADER = ("tier", "setting", "n", "baseline", "gain", "interval", "margin", "", "would show", "if equal")
_NAMED = 5
SMALL = 0.05  # a margin up to this may have been meant as a fraction


@store_command
@click.argument("policy", cls=Argument, type=click.Path(path_type=Path), metavar="POLICY")
@click.option("--candidate", cls=Option, required=True, help="The new model.", **STORED_MODEL)
@click.option("--baseline", cls=Option, required=True, help="The current model.", **STORED_MODEL)
@click.option("--markdown", is_flag=True, help="Print Markdown, for a pull request.")
def command(policy: Path, candidate: str, baseline: str, markdown: bool, db_url: str | None, as_json: bool) -> int:
    """Check whether a model loses more than a policy accepts.

    POLICY is a YAML file with settings and the accepted loss on each. Exits with 0 if all required margins are shown
    to hold, with 1 if a larger loss is shown, and with 2 if neither is shown, or if something is missing.

    \b
    Example:
      testbed gate policy.yaml --candidate digits-cnn-noise --baseline digits-cnn
    """
    from testbed.db.store import Store
    from testbed.extensions.gate.decision import decide
    from testbed.extensions.gate.policy import read_policy

    try:
        with Store.open(db_url) as store:
            found = decide(store, read_policy(policy), candidate, baseline, note)
    except TestbedError as error:
        fail(str(error), _ERROR)
    if as_json:
        print_json(_as_object(found))
    elif markdown:
        click.echo(_markdown(found))
    else:
        click.echo(f"{prose(sentence(found))}\n\n{table(_HEADER, map(_cells, found.rows), right=(2, 3, 4, 6, 8, 9))}")
        for text in _notes(found):
            note(text)
        footnote(_explained(found))
    return EXITS[found.verdict]


def sentence(found: Decision) -> str:
    """The verdict and its reasons."""
    from testbed.extensions.gate.decision import LOSES, OPEN, PASSES
    from testbed.extensions.gate.policy import MUST

    against = f"{found.candidate} against {found.baseline}"
    must = [row for row in found.rows if row.rule.tier == MUST]
    if found.verdict == PASSES and not must:
        return f"{against} passes: no rule must hold."
    if found.verdict == PASSES:
        return f"{against} passes: it holds {'the margin' if len(must) == 1 else f'all {len(must)} margins'}."
    lost = [f"{_where(row)} ({_amount(row, row.change.gain)})" for row in must if row.verdict == LOSES and row.change]
    lost += ["its number of parameters"] if found.cost == LOSES else []
    if lost:
        return f"{against} fails: it loses more than accepted on {_listed(lost)}."
    left = [_where(row) for row in must if row.verdict not in ("holds", LOSES)]
    left += ["the number of parameters"] if found.cost == OPEN else []
    return f"{against} is not decided: open on {_listed(left)}."


def _where(row: RuleVerdict) -> str:
    group = None if row.group is None else f"{row.rule.by} {row.group}"
    return ", ".join(part for part in (row.eval_setting, row.rule.score, group) if part)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return "; ".join(names[:_NAMED]) + more


def _amount(row: RuleVerdict, value: float, sign: bool = True) -> str:
    return bare_value(value if sign else abs(value), FRACTION if row.points else "", signed=sign)


def _cells(row: RuleVerdict) -> list[str]:
    margin = f"{row.rule.margin:g}"
    if row.change is None:
        return [row.rule.tier, _where(row), "–", "–", "–", "–", margin, row.verdict, "–", "–"]
    each = row.change
    n = sample_count(each.n, each.clusters)
    return [
        *(row.rule.tier, _where(row), n, bare_value(each.baseline, FRACTION if row.points else "")),
        *(_amount(row, each.gain), f"[{_amount(row, each.low)}, {_amount(row, each.high)}]", margin, row.verdict),
        "nothing" if each.detectable is None else _amount(row, each.detectable, sign=False),
        f"{100 * each.chance_to_hold:.0f} %",
    ]


def _notes(found: Decision) -> list[str]:
    from testbed.extensions.gate.policy import MUST

    notes = [f"{_where(row)}: {row.why}" for row in found.rows if row.why]
    small = sorted({row.rule.margin for row in found.rows if row.points and 0 < row.rule.margin <= SMALL})
    notes += [
        f"margin {number:g}: points? It accepts a loss of {number:g} % of the samples; for {100 * number:g} % write"
        f" {100 * number:g}"
        for number in small
    ]
    judged = defaultdict(list)
    for row in found.rows:
        if row.change is not None:
            judged[row.rule.tier, row.score, row.eval_setting, row.rule.by, row.group].append(_where(row))
    repeated = [names[0] for names in judged.values() if len(names) > 1]
    if repeated:
        notes.append(f"several rules judge {_listed(repeated)}: none of them replaces another, each has to hold")
    if (blind := [_where(row) for row in found.rows if row.cannot_fail]) != []:
        notes.append(f"these cannot fail, since no loss would be shown with so few samples: {_listed(blind)}")
    if not any(row.rule.tier == MUST for row in found.rows) and found.cost is None:
        notes.append("no rule of the policy must hold, so this gate cannot fail")
    own, other = found.parameters
    if found.cost is not None:
        told = " and ".join("an unknown number" if number is None else f"{number:,}" for number in (own, other))
        notes.append(
            f"parameters of the candidate and of the baseline: {told}; accepted: at most"
            f" {found.policy.parameters:g} times as many; {found.cost}"
        )
    return notes


def _explained(found: Decision) -> str:
    level = 100 * (1 - 2 * found.policy.alpha)
    clustered = any(row.change is not None and row.change.clusters for row in found.rows)
    return (
        f"scores in percent, gains and margins in points, other scores as they are; {level:g} % intervals: paired, of"
        f" Tango for scores of 0 and 1, else Student's; holds or loses: shown with α = {found.policy.alpha:g}, losses"
        " after Holm's correction over the tier; would show: the loss that these samples would show with a power of"
        " 80 %; if equal: how likely an equally good model is shown to hold the margin"
        + (f"; {CLUSTERED}" if clustered else "")
    )


def _markdown(found: Decision) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    rows = [line(_HEADER), line(["---"] * len(_HEADER)), *(line(_cells(row)) for row in found.rows)]
    notes = [f"- {note}" for note in _notes(found)]
    shown = [f"**{sentence(found)}**", "\n".join(rows), *(["\n".join(notes)] if notes else [])]
    return "\n\n".join([*shown, f"<sub>{_explained(found)}</sub>"])


def _as_object(found: Decision) -> dict[str, Any]:
    own, other = found.parameters
    return {
        "candidate": found.candidate,
        "baseline": found.baseline,
        "verdict": found.verdict,
        "alpha": found.policy.alpha,
        "parameters": {"candidate": own, "baseline": other, "verdict": found.cost},
        "rules": [
            {
                **{"tier": row.rule.tier, "eval_setting": row.eval_setting, "by": row.rule.by, "group": row.group},
                **{"score": row.score, "margin": row.rule.margin, "points": row.points, "verdict": row.verdict},
                **{"p_loses_holm": row.p_loses, "missing": row.why or None},
                "change": None if row.change is None else asdict(row.change),
            }
            for row in found.rows
        ],
    }
