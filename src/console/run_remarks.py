"""Remarks on the results of a run besides the numbers: causes for doubt, missing samples, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from testbed.console.model_lines import lines_of_chance
from testbed.console.output import count
from testbed.console.unread_samples import refusal_lines, silence_in_words, silences, unreadable_in_words
from testbed.entities import NOT_FINITE, OVERALL
from testbed.graph.cells import left_out_lines

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.execution.report import Report
    from testbed.stored_results.unread import UnreadSample

SHOWN = 10
SHOWN_MODELS = 3
SHOWN_NAMES = 5
SHOWN_UNREAD = 3  # samples of a cell that are named
ANSWERED = ("question_answering@", "judged_answers@", "vlmeval_benchmark@")  # scorers of answers to questions


class Remarks(NamedTuple):
    """Lines of one kind.

    Attributes:
        lines: All of them.
        more: The line for those beyond the first `SHOWN`, with their number in the place of ``{}``.
    """

    lines: Sequence[str]
    more: str

    def shown(self) -> list[str]:
        """Returns the first lines, and one with the number of the others."""
        more = len(self.lines) - SHOWN
        return [*self.lines[:SHOWN], *([self.more.format(more)] if more > 0 else [])]


def remarks_of(
    report: Report,
    results: Sequence[Any],
    unreadable: Mapping[int, int],
    unread: Mapping[int, Sequence[UnreadSample]],
) -> list[Remarks]:
    """Returns the remarks on a run, by kind.

    Args:
        report: How the run ended.
        results: The metrics of its evaluations.
        unreadable: Evaluation id → how many of its samples could not be read.
        unread: Evaluation id → the first samples that could not be read; see `first_unread`.
    """
    silent = [f"No verdict: {silence_in_words(record)}" for record in silences(results)]
    return [
        Remarks(lines_of_prompts(report), "Prompts: {} more such lines"),
        Remarks(lines_of_chance(report, results), "At chance level: {} more"),
        Remarks(left_out_lines(report.left_out), "Data: {} more such lines; testbed show lists them"),
        Remarks(_unreadable(report, results, unreadable, unread), "Unreadable: {} more lines; testbed show has them"),
        Remarks(
            [f"Refused: {line}" for line in refusal_lines(results)],
            "Refused: samples of {} more cells; testbed show shows them",
        ),
        Remarks(silent, "No verdict: {} more reasons; testbed show --slices shows them"),
        Remarks(_not_finite(results), "Not finite: outputs of {} more cells; testbed show shows them"),
        Remarks(_uncovered(results), "{} more models have missing captions or answers: see the metric coverage"),
    ]


def first_unread(store: Store, unreadable: Iterable[int]) -> dict[int, list[UnreadSample]]:
    """Evaluation id → the first samples that could not be read, for as many evaluations as are reported."""
    from testbed.stored_results.unread import unread_samples

    return {
        number: unread_samples(store, store.evaluations.get(number), SHOWN_UNREAD)[1]
        for number in list(unreadable)[:SHOWN]
    }


def _unreadable(
    report: Report,
    results: Sequence[Any],
    unreadable: Mapping[int, int],
    unread: Mapping[int, Sequence[UnreadSample]],
) -> list[str]:
    """Lines about cells with unreadable samples, and which these are; they change the numbers, not by the model."""
    lines = []
    for cell in report.outcomes:
        number = cell.evaluation_id
        if number is None or number not in unreadable:
            continue
        scorers = [result.scorer for result in results if result.evaluation_id == number]
        named = [f"{sample.id}: {sample.reason}" for sample in unread.get(number, ())]
        more = unreadable[number] - len(named)
        named += [f"{more:,} more; testbed show lists them"] if named and more else []
        told = unreadable_in_words(unreadable[number], scorers)
        lines.append("\n  not read: ".join([f"Unreadable: {cell.model} on {cell.setting}: {told}", *named]))
    return lines


def not_finite(results: Sequence[Any]) -> list[Any]:
    """The results that count non-finite outputs."""
    return [result for result in results if result.metric == NOT_FINITE]


def describe_not_finite(found: Any) -> str:
    """Describes such a result or metric."""
    what = "sample" if found.slice == OVERALL else "text"
    return f"{round(found.value * found.n):,} of {count(found.n, what)} have outputs that are NaN or infinite"


def _not_finite(results: Sequence[Any]) -> list[str]:
    """Lines about cells with non-finite outputs: the model is broken, or overflows its precision."""
    return [
        f"Not finite: {each.model} on {each.eval_setting}: {describe_not_finite(each)}" for each in not_finite(results)
    ]


def _uncovered(results: Sequence[Any]) -> list[str]:
    """Lines about models without texts for some samples, so that means cover fewer samples; one for all judges."""
    short: dict[tuple[int, int, str], dict[str, None]] = {}
    for result in results:
        if (result.metric, result.slice) == ("coverage", OVERALL) and result.n and (result.value or 0) < 1:
            what = "answer" if (result.scorer or "").startswith(ANSWERED) else "caption"
            short.setdefault((round(result.n * (1 - (result.value or 0))), result.n, what), {})[result.model] = None
    lines = []
    for (number, samples, what), models in sorted(short.items(), reverse=True):
        names = ", ".join([*models][:SHOWN_MODELS])
        more = f" and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else ""
        lines.append(f"{names}{more}: no {what} for {number:,} of {count(samples, 'sample')}")
    return lines


def lines_of_prompts(report: Report) -> list[str]:
    """A line for each setting whose prompts follow from its folders, and for each list of equal class names."""
    told: dict[str, None] = {}
    equal: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in report.plan.cells:
        spec = (cell.identity.get("forward") or {}).get("prompts") or {}
        if cell.opened_setting is None or "class_names" not in spec:
            continue
        about = cell.opened_setting.setting.prompts.about
        told.update(dict.fromkeys(about() if about is not None else ()))
        if names := _equal_names(spec["class_names"], cell.opened_setting.dataset.class_names):
            equal.setdefault(names, {})[cell.setting] = None
    return [*told, *(_in_words(names, list(settings)) for names, settings in equal.items())]


def _equal_names(class_names: list[str], folders: Sequence[str] | None) -> tuple[str, ...]:
    """The names that several classes share, with the folders of these classes if known."""
    shared = [name for name, number in Counter(class_names).items() if number > 1]
    own = folders or class_names
    said = []
    for name in shared:
        which = [str(own[index]) for index, each in enumerate(class_names) if each == name and index < len(own)]
        said.append(repr(name) if set(which) == {name} else f"{name!r} ({', '.join(which[:SHOWN_NAMES])})")
    return tuple(said)


def _in_words(names: tuple[str, ...], settings: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    where = settings[0] if len(settings) == 1 else count(len(settings), "setting")
    several = "is the name" if len(names) == 1 else "are the names"
    return (
        f"Equal class names: in {where}, {shown} {several} of more than one class each; their prompts are the same, so"
        " zero-shot classification cannot distinguish these classes"
    )
