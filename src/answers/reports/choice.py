"""Reports of multiple-choice benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from testbed.answers.columns import has_answer, options, truth
from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.scored import (
    ScoredRows,
    by_columns,
    mean,
    mean_of_means,
    means_by,
    slice_name,
    sliced,
    values_of,
)
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import OVERALL, Metric
from testbed.errors import DataError
from testbed.metric_specs import MAIN, PREFERRED, MetricSpec, rate

ACCURACY = rate("accuracy", headline=MAIN)
CIRCULAR = rate("circular", headline=PREFERRED)
VANILLA_BASE, VANILLA_ALL = rate("vanilla_base"), rate("vanilla_all")
BOTH_RIGHT = rate("both_right", headline=PREFERRED)
MEAN_OVER_SOURCES = rate("mean_over_sources", headline=PREFERRED)
MEAN_OVER_CYCLES = rate("mean_over_cycles", headline=PREFERRED)
MEAN_OVER_TASKS = rate("mean_over_tasks")
AVERAGE = rate("average", headline=PREFERRED)
MEAN_OF_GROUP = rate("mean_over_sources")
PARTIAL_MATCH = rate("partial_match")
SPLIT, CATEGORY, ABILITY = "split", "category", "l2-category"

_SETTING, _MM_SCI = "setting", ("Fig2Cap", "SubFig2Cap", "SubCap2Fig")  # MMSci's kinds of questions
_GMAI = ("clinical vqa task", "department", "perceptual granularity")
_VMC = {
    "General": ("SEEDBench", "MMStar", "A-OKVQA", "VizWiz", "MMVet", "VQAv2", "OKVQA"),
    "Reasoning": ("MMMU", "MathVista", "ScienceQA", "RealWorldQA", "GQA", "MathVision"),
    "OCR": ("TextVQA", "OCRVQA"),
    "Doc & Chart": ("AI2D", "ChartQA", "DocVQA", "InfoVQA", "TableVQABench"),
}
_ROTATION = 1_000_000  # a rotated question has the index of its base row and a multiple of this


def accuracy(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """The share of right answers: over all, by split, l2-category and category, and by these within each split.

    Rows that share a picture are a cluster of the standard error.
    """
    return by_parts(ScoredRows.of(answered), ACCURACY, scorer)


@add_report("accuracy", "accuracy", {"accuracy": "Overall"})
def choices(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Reports `circular` where the rows are rotations of questions, whatever the set's name is; else `accuracy`."""
    rotated = are_rotations(answered.ids, answered.columns)
    return circular(answered, scorer) if rotated else accuracy(answered, scorer)


def by_parts(rows: ScoredRows, spec: MetricSpec, scorer: str) -> list[Metric]:
    """Returns the mean over all, by split, l2-category and category, and by these within each split."""
    metrics = [mean(rows, spec, scorer), *by_columns(rows, spec, scorer, (SPLIT, ABILITY, CATEGORY))]
    splits = values_of(rows.labels(SPLIT))
    return metrics + (_within_splits(rows, spec, scorer, splits) if len(splits) > 1 else [])


def _within_splits(rows: ScoredRows, spec: MetricSpec, scorer: str, splits: Iterable[str]) -> list[Metric]:
    metrics: list[Metric] = []
    for split in splits:
        own = rows.where(rows.labels(SPLIT), split)
        metrics += by_columns(own, spec, scorer, (ABILITY, CATEGORY), SPLIT, split)
    return metrics


@add_report("mmmu", "accuracy", {"accuracy": "Overall"})
def mmmu(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MMMU (arXiv 2311.16502): accuracy on the validation split, by subject (category) and group (l2-category).

    In a table without that split, all rows count. VLMEvalKit's table also has the development split, which is given
    as a slice, with its own subjects and groups.
    """
    rows = ScoredRows.of(answered)
    splits = rows.labels(SPLIT)
    reported = rows.where(splits, "validation") if "validation" in splits else rows
    return [
        mean(reported, ACCURACY, scorer),
        *by_columns(rows, ACCURACY, scorer, (SPLIT,)),
        *by_columns(reported, ACCURACY, scorer, (ABILITY, CATEGORY)),
        *_within_splits(rows, ACCURACY, scorer, [split for split in values_of(splits) if split != "validation"]),
    ]


@add_report("circular", "circular", {"circular": "Overall"})
def circular(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Questions that are asked again with their options rotated (MMBench, arXiv 2307.06281): three scores.

    - ``circular``: a question is right if all its rotations are. One with a rotation without an answer does not count.
    - ``vanilla_base``: the questions as they are, without rotations.
    - ``vanilla_all``: every rotation as a separate question.

    The base row of a rotation is ``g_index``, else the index modulo 1,000,000; rows whose base row is missing count in
    ``vanilla_all`` alone. A part of a set may lack rotations: compare the numbers of samples.

    Raises:
        DataError: If an index is not a whole number.
    """
    rows = ScoredRows.of(answered)
    bases = [base_index(row_id, columns.get("g_index")) for row_id, columns in zip(rows.ids, rows.columns, strict=True)]
    own = [whole(row_id) for row_id in rows.ids]
    first = {number: index for index, number in enumerate(own) if number == bases[index]}
    together = [index for index, base in enumerate(bases) if base in first]
    together.sort(key=lambda index: own[index] != bases[index])  # base rows first: groups have their columns
    rows = rows.clustered(bases)
    groups = rows.take(together).all_right([bases[index] for index in together])
    base_rows = rows.take(first.values())
    metrics = []
    for spec, part in ((CIRCULAR, groups), (VANILLA_BASE, base_rows), (VANILLA_ALL, rows)):
        metrics += by_parts(part, spec, scorer)
    return metrics


def are_rotations(ids: Sequence[str], columns: Sequence[Mapping[str, str]]) -> bool:
    """Checks whether rows repeat questions with their options in another order.

    Such rows have the same base row (see `base_index`), the same question and the same options. Neither ``g_index`` nor
    numbers above 1,000,000 are evidence by themselves: where most rows of one base are not rotations of each other,
    they mean something else.
    """
    groups: dict[int, list[Mapping[str, str]]] = {}
    for row_id, row in zip(ids, columns, strict=True):
        try:
            groups.setdefault(base_index(row_id, row.get("g_index")), []).append(row)
        except DataError:
            return False
    rotated = [_rotated(group[0], other) for group in groups.values() for other in group[1:]]
    return 2 * sum(rotated) > len(rotated)


def _rotated(row: Mapping[str, str], other: Mapping[str, str]) -> bool:
    first, second = (list(options(question).values()) for question in (row, other))
    return row.get("question") == other.get("question") and first != second and sorted(first) == sorted(second)


def base_index(row_id: str, given: str | None) -> int:
    """The index of the base row of a rotated question.

    Args:
        row_id: The row's index.
        given: Its ``g_index``, if it has one.

    Raises:
        DataError: If it is not a whole number.
    """
    return whole(row_id) % _ROTATION if given is None else whole(given)


def whole(text: str) -> int:
    """Returns an index as a whole number.

    Raises:
        DataError: If it is not one.
    """
    try:
        return int(text)
    except ValueError:
        raise DataError(
            f"a table of rotated questions has the index {text!r}; expected a whole number (the base row's, and a"
            " multiple of 1,000,000)"
        ) from None


@add_report("mmvp", "both_right", {"both_right": "Overall", "accuracy": "Average"})
def mmvp(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MMVP (arXiv 2401.06209): ``both_right``, the share of pairs of rows with both right, and ``accuracy`` of rows.

    A pair is two rows with the same question, one after the other; a row without its other half is in no pair.
    VLMEvalKit calls these Overall and Average.
    """
    rows = ScoredRows.of(answered)
    questions = rows.labels("question")
    keys: list[int | None] = [None] * len(rows)
    place = 0
    while place + 1 < len(rows):
        if questions[place] is not None and questions[place] == questions[place + 1]:
            keys[place] = keys[place + 1] = place
            place += 1
        place += 1
    return [mean(rows.all_right(keys), BOTH_RIGHT, scorer), mean(rows, ACCURACY, scorer)]


@add_report("cv_bench_2d", "mean_over_sources", {"mean_over_sources": "Overall"})
def cv_bench_2d(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """CV-Bench's 2D half (arXiv 2406.16860): ``mean_over_sources`` of the accuracies of COCO and ADE20K.

    Also the accuracy of all rows, by source and category.
    """
    rows = ScoredRows.of(answered)
    return [
        mean_of_means(rows, MEAN_OVER_SOURCES, scorer, rows.labels("source")),
        mean(rows, ACCURACY, scorer),
        *by_columns(rows, ACCURACY, scorer, ("source", CATEGORY)),
    ]


@add_report("hr_bench", "mean_over_cycles", {"mean_over_cycles": "Average"})
def hr_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """HR-Bench (arXiv 2408.15556): ``mean_over_cycles`` of the options' order, over all and by category.

    A cycle without rows of a category is left out of that category's mean; VLMEvalKit counts it as 0. The cycles ask
    the same questions: where no pictures are known, rows with the same question are a cluster of the standard error.
    """
    rows = ScoredRows.of(answered)
    rows = rows.clustered(rows.labels("question"))
    cycle = "cycle_category"
    metrics = [mean_of_means(rows, MEAN_OVER_CYCLES, scorer, rows.labels(cycle)), mean(rows, ACCURACY, scorer)]
    metrics += means_by(rows, MEAN_OVER_CYCLES, scorer, CATEGORY, rows.labels(CATEGORY), rows.labels(cycle))
    metrics += by_columns(rows, ACCURACY, scorer, (cycle,))
    for label in values_of(rows.labels(cycle)):
        own = rows.where(rows.labels(cycle), label)
        metrics += by_columns(own, ACCURACY, scorer, (CATEGORY,), cycle, label)
    return metrics


@add_report("mmt", "accuracy", {"accuracy": "Overall"})
def mmt(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MMT-Bench (arXiv 2404.16006): `accuracy`, and ``mean_over_tasks`` of each ability, which is ``l2-category``.

    A task is a ``category``. VLMEvalKit's number of an ability is this mean; each of its tasks weighs the same.
    """
    rows = ScoredRows.of(answered)
    metrics = by_parts(rows, ACCURACY, scorer)
    splits = values_of(rows.labels(SPLIT))
    for within in ((), *((SPLIT, split) for split in (splits if len(splits) > 1 else ()))):
        own = rows.where(rows.labels(SPLIT), within[1]) if within else rows
        abilities, tasks = own.labels(ABILITY), own.labels(CATEGORY)
        metrics += means_by(own, MEAN_OVER_TASKS, scorer, ABILITY, abilities, tasks, *within)
    return metrics


@add_report("mm_sci", "average", {"average": "Avg"})
def mm_sci(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MMSci's multiple choice (arXiv 2407.04903): ``average`` of the accuracies of its three kinds of questions.

    The kind is the column ``setting``; rows of other kinds do not count. Also the accuracy of each kind, by subject and
    category, and their averages.
    """
    rows = ScoredRows.of(answered)
    rows = rows.take(index for index, label in enumerate(rows.labels(_SETTING)) if label in _MM_SCI)
    metrics = _mm_sci(rows, scorer)
    for column in ("subject", CATEGORY):
        for label in values_of(rows.labels(column)):
            metrics += _mm_sci(rows.where(rows.labels(column), label), scorer, column, label)
    return metrics


def _mm_sci(rows: ScoredRows, scorer: str, *within: str) -> list[Metric]:
    kinds = sliced(rows, ACCURACY, scorer, _SETTING, rows.labels(_SETTING), *within)
    part = slice_name(*within) if within else OVERALL
    average = mean_of_means(rows, AVERAGE, scorer, rows.labels(_SETTING), part)
    return [average, mean(rows, ACCURACY, scorer, part), *kinds]


@add_report("gmai", "accuracy", {"accuracy": "Overall"})
def gmai(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """GMAI-MMBench (arXiv 2408.03361): `accuracy`, also by clinical task, department and perceptual granularity."""
    rows = ScoredRows.of(answered)
    return by_parts(rows, ACCURACY, scorer) + by_columns(rows, ACCURACY, scorer, _GMAI)


@add_report("top_view_rs", "accuracy", {"accuracy": "Overall", "partial_match": "Overall_PM"})
def top_view_rs(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """TopViewRS (arXiv 2406.02537): `accuracy`, and ``partial_match`` of the chosen and the right option.

    It is the number of words that both have, over the larger number of different words; 0 if no option was read.
    VLMEvalKit takes the answer's last word, or what is in its square brackets, for the chosen option's letter.
    """
    rows = ScoredRows.of(answered)
    pairs = zip(rows.columns, rows.extracted, rows.scores, strict=True)
    partly = rows.scored([np.nan if np.isnan(score) else _overlap(row, chosen) for row, chosen, score in pairs])
    return by_parts(rows, ACCURACY, scorer) + by_parts(partly, PARTIAL_MATCH, scorer)


def _overlap(row: Mapping[str, str], chosen: str | None) -> float:
    texts = options(row)
    letters = (chosen or "", truth(row).strip() if has_answer(row) else "")
    first, second = (set(texts.get(letter, "").lower().split()) for letter in letters)
    return len(first & second) / max(len(first), len(second)) if first and second else 0.0


@add_report("vmc_bench", "accuracy", {"accuracy": "Overall"})
def vmc_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """VMCBench (arXiv 2501.03225): accuracy over all and by source, and the mean over the sources of each group."""
    rows = ScoredRows.of(answered)
    sources = rows.labels(CATEGORY)
    metrics = [mean(rows, ACCURACY, scorer), *by_columns(rows, ACCURACY, scorer, (CATEGORY,))]
    for group, members in _VMC.items():
        labels = [label if label in members else None for label in sources]
        if any(labels):
            metrics.append(mean_of_means(rows, MEAN_OF_GROUP, scorer, labels, slice_name("group", group)))
    return metrics


@add_report("mme_realworld", "accuracy", {"accuracy": "Overall"})
def mme_realworld(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """MME-RealWorld (arXiv 2408.13257): accuracy over all, by task, sub-task and kind of question.

    ``category`` is ``TASK/SUB-TASK``. The kind is ``l2-category`` in lower case, of attributes without its last part.
    """
    rows = ScoredRows.of(answered)
    tasks = [label and label.split("/")[0] for label in rows.labels(CATEGORY)]
    kinds = [
        category and kind and f"{category}/{_kind(kind)}"
        for category, kind in zip(rows.labels(CATEGORY), rows.labels(ABILITY), strict=True)
    ]
    return [
        mean(rows, ACCURACY, scorer),
        *sliced(rows, ACCURACY, scorer, "task", tasks),
        *sliced(rows, ACCURACY, scorer, "sub-task", rows.labels(CATEGORY)),
        *sliced(rows, ACCURACY, scorer, "kind", kinds),
    ]


def _kind(ability: str) -> str:
    lower = ability.lower()
    return f"{lower.split('/')[0]}/attribute" if "attribute" in lower else lower


@add_report("video_mme", "accuracy", {"accuracy": "overall"})
def video_mme(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Video-MME (arXiv 2405.21075): accuracy over all, by duration, domain, sub-category and kind of task.

    The last three also within each duration. Questions of one video are a cluster of the standard error. A question
    without an answer does not count; an answer in which nothing can be read is wrong, as in VLMEvalKit, whose score −1
    for it is never given.
    """
    rows = ScoredRows.of(answered)
    parts = ("domain", "sub_category", "task_type")
    metrics = [mean(rows, ACCURACY, scorer), *by_columns(rows, ACCURACY, scorer, ("duration", *parts))]
    for duration in values_of(rows.labels("duration")):
        own = rows.where(rows.labels("duration"), duration)
        metrics += by_columns(own, ACCURACY, scorer, parts, "duration", duration)
    return metrics
