"""Descriptions of unreadable or refused samples, and of answers without a judge's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from testbed.console.output import count
from testbed.entities import JUDGE_SLICE, OVERALL, REASON_SLICE, REFUSED

UNREAD = "unread"


def unreadable_in_words(number: int, scorers: Iterable[str | None]) -> str:
    """Describes how many samples could not be read, and the effect on these scorers' metrics."""
    from testbed.tasks.task_base import task_with

    task = next((found for text in dict.fromkeys(scorers) if (found := task_with(text or "")) is not None), None)
    told = f"{count(number, 'sample')} could not be read"
    if task is None:
        return told
    left_out = f"{'is' if number == 1 else 'are'} not scored"
    return f"{told} and {left_out if task.leaves_out_unreadable else 'counted as wrong'}"


def silences(results: Iterable[Any]) -> list[dict[str, Any]]:
    """Finds answers without a judge's verdict, with reasons, from the slices of the metric `unread`."""
    return [
        {
            "model": result.model,
            "eval_setting": result.eval_setting,
            "answers": result.n,
            "without_verdict": round(result.value * result.n),
            "reason": result.slice.removeprefix(f"{JUDGE_SLICE}/"),
        }
        for result in results
        if result.metric == UNREAD and result.slice.startswith(f"{JUDGE_SLICE}/")
    ]


def silence_in_words(found: dict[str, Any]) -> str:
    """Such an entry as a line: the judge and its reason are last."""
    where = f"{found['model']} on {found['eval_setting']}"
    return f"{where}: {found['without_verdict']:,} of {count(found['answers'], 'answer')}; {found['reason']}"


def refusals_in_words(metrics: Sequence[Any]) -> str:
    """Describes how many samples a model refused, by an evaluation's metrics, and why; empty if none."""
    found = [entry for entry in metrics if (entry.name if hasattr(entry, "name") else entry.metric) == REFUSED]
    total = next((entry for entry in found if entry.slice == OVERALL), None)
    if total is None:
        return ""
    reasons = [entry for entry in found if entry.slice != OVERALL]
    reasons.sort(key=lambda each: -each.value)
    told = [
        (f"{round(reason.value * reason.n):,} × " if len(reasons) > 1 else "")
        + reason.slice.removeprefix(f"{REASON_SLICE}/")
        for reason in reasons
    ]
    return f"{round(total.value * total.n):,} of {total.n:,} refused: {'; '.join(told)} (a refusal counts as wrong)"


def refusal_lines(results: Iterable[Any]) -> list[str]:
    """Lines about refused samples with reasons; one for all settings that score the same answers."""
    cells: dict[tuple[str, str], list[Any]] = {}
    for result in results:
        if result.metric == REFUSED:
            cells.setdefault((result.model, result.eval_setting), []).append(result)
    settings: dict[tuple[str, str], list[str]] = {}
    for (model, setting), found in cells.items():
        settings.setdefault((model, refusals_in_words(found)), []).append(setting)
    return [
        f"{model} on {names[0] if len(names) == 1 else count(len(names), 'setting')}: {told}"
        for (model, told), names in settings.items()
    ]
