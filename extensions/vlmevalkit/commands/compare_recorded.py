"""``testbed compare-recorded``: compares VLMEvalKit's recorded scores with testbed's for the same answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import limit_option, model_argument, setting_argument
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, say, table

if TYPE_CHECKING:
    from testbed.extensions.vlmevalkit.recorded_scores import AnswerComparison, Number, RecordedComparison, RuleResult

_WIDEST = 40  # characters of an answer


@store_command
@model_argument
@setting_argument
@limit_option
def command(model: str, setting: str, limit: int, db_url: str | None, as_json: bool) -> int:
    """Compare VLMEvalKit's recorded scores with testbed's.

    MODEL is replay:FILE. Prints each number of VLMEvalKit's reports, and each answer with a different score.
    """
    from testbed.db.store import Store
    from testbed.extensions.vlmevalkit.recorded_scores import compare_recorded

    with Store.open(db_url) as store:
        found = compare_recorded(store, model, setting)
    if as_json:
        print_json(_as_object(found, model, setting))
        return 0
    say(f"{found.predictions} on {setting}\n")
    if found.numbers:
        click.echo(_numbers(found))
    for file in dict.fromkeys(row.file for row in found.rows):
        click.echo("")
        _tell_rows(file, [row for row in found.rows if row.file == file], limit)
    for file, number in found.unasked.items():
        footnote(f"{file} has scores of {count(number, 'row')} without stored answers")
    return 0


def _numbers(found: RecordedComparison) -> str:
    header = ["file", "row", "column", "recorded", "vlmevalkit", "difference", "default", "difference", "our metric"]
    return table(header, [_number(number) for number in found.numbers], right=[3, 4, 5, 6, 7])


def _number(each: Number) -> list[str]:
    from testbed.extensions.vlmevalkit.recorded_scores import DEFAULT, PUBLISHED

    where = [each.file, each.row, each.column, f"{each.recorded:.6g}"]
    if each.metric is None:
        return [*where, "", "", "", "", "no known counterpart"]
    pairs = [_signed(each, rules) for rules in (PUBLISHED, DEFAULT)]
    part = "" if each.slice in (None, "overall") else f", {each.slice}"
    return [*where, *(text for pair in pairs for text in pair), f"{each.metric}{part}"]


def _signed(each: Number, rules: str) -> tuple[str, str]:
    value, difference = each.ours.get(rules), each.difference(rules)
    if value is None or difference is None:
        return "not defined", ""
    return f"{value:.6g}", f"{difference:+.3g}" if abs(difference) > 1e-9 else "0"


def _tell_rows(file: str, rows: list[AnswerComparison], limit: int) -> None:
    """Prints how many answers are scored as recorded, and those that are not."""
    from testbed.extensions.vlmevalkit.recorded_scores import DEFAULT, PUBLISHED

    same = [sum(not row.differs(rules) for row in rows) for rules in (PUBLISHED, DEFAULT)]
    say(
        f"{file}: of {len(rows):,} recorded scores of answers, {same[0]:,} are the same under the rules vlmevalkit,"
        f" {same[1]:,} under the rules default"
    )
    others = [row for row in rows if row.differs(PUBLISHED) or row.differs(DEFAULT)]
    if not others:
        return
    header = ["index", "answer", "prediction", "recorded", "vlmevalkit", "read as", "default", "read as"]
    lines = [
        [
            *(
                comparison.index,
                _short(comparison.answer),
                "(none)" if comparison.prediction is None else _short(comparison.prediction),
            ),
            *(f"{comparison.recorded:.4g}", *_ours(comparison.ours[PUBLISHED]), *_ours(comparison.ours[DEFAULT])),
        ]
        for comparison in others[:limit]
    ]
    click.echo(table(header, lines, right=[3, 4, 6]))
    if len(others) > limit:
        footnote(f"{len(others) - limit:,} more; --limit shows more, --json all of them")


def _ours(said: RuleResult) -> tuple[str, str]:
    if said.score is None:
        return "–", ""
    return f"{said.score:.4g}", "nothing" if said.extracted is None else _short(said.extracted)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


def _as_object(found: RecordedComparison, model: str, setting: str) -> dict[str, Any]:
    """All numbers, and the rows that differ."""
    from testbed.extensions.vlmevalkit.recorded_scores import DEFAULT, PUBLISHED

    rules = (PUBLISHED, DEFAULT)
    return {
        "model": model,
        "eval_setting": setting,
        "predictions": str(found.predictions),
        "numbers": [
            asdict(number) | {"difference": {own: number.difference(own) for own in rules}} for number in found.numbers
        ],
        "rows": {
            file: {
                "recorded": len(own),
                "same": {name: sum(not comparison.differs(name) for comparison in own) for name in rules},
                "different": [
                    asdict(comparison) for comparison in own if any(comparison.differs(name) for name in rules)
                ],
            }
            for file in dict.fromkeys(row.file for row in found.rows)
            if (own := [row for row in found.rows if row.file == file])
        },
        "unasked": dict(found.unasked),
    }
