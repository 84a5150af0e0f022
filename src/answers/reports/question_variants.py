"""Reports of benchmarks with variants of a question or a picture: a group of rows is right if all of them are."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.choice import ACCURACY, CIRCULAR, by_parts, whole
from testbed.answers.reports.scored import ScoredRows, mean
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import PREFERRED, MetricSpec, rate

FLIP = rate("flip")
FLIP_CIRCULAR = rate("flip_circular", headline=PREFERRED + 1)  # its `circular` is another one
QUESTION_ACCURACY, IMAGE_ACCURACY = rate("question_accuracy"), rate("image_accuracy")
GROUP_ACCURACY = rate("group_accuracy", headline=PREFERRED)

_QID, _FLIP = 8, "-flip"  # 3DSRBench: characters of a question's id, and the mark of its mirrored picture
_GROUP = 4  # rows of a group of NaturalBench


@add_report("three_d_sr", "flip_circular", {"accuracy": "vanilla", "flip_circular": "flip_circ_eval"})
def three_d_sr(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """3DSRBench (arXiv 2412.07825): a question counts as right if its variants are, by the column ``qid``.

    - ``accuracy``: every row as a separate question.
    - ``flip``: with the mirrored picture (``…-flip``).
    - ``circular``: with its options in another order; pictures and their mirror images are separate.
    - ``flip_circular``: both, as the paper reports. The first 8 characters of ``qid`` name the question.
    """
    rows = ScoredRows.of(answered)
    ids = [label or row_id for label, row_id in zip(rows.labels("qid"), rows.ids, strict=True)]
    rows = rows.clustered([text[:_QID] for text in ids])
    metrics = by_parts(rows, ACCURACY, scorer)
    for spec, keys in (
        (FLIP, [text.replace(_FLIP, "") for text in ids]),
        (CIRCULAR, [text[: _QID + len(_FLIP)] if _FLIP in text else text[:_QID] for text in ids]),
        (FLIP_CIRCULAR, [text[:_QID] for text in ids]),
    ):
        first = sorted(range(len(rows)), key=lambda place: ids[place] != keys[place])  # its row gives the parts
        named = {key for key in keys if key in set(ids)}
        groups = [keys[place] if keys[place] in named else None for place in first]
        metrics += by_parts(rows.take(first).all_right(groups), spec, scorer)
    return metrics


@add_report(
    "natural_bench",
    "group_accuracy",
    {"accuracy": "Acc", "question_accuracy": "Q_Acc", "image_accuracy": "I_Acc", "group_accuracy": "G_Acc"},
)
def natural_bench(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """NaturalBench (arXiv 2410.14669): four consecutive rows, by index, are two questions about two pictures.

    They are: first question and picture, first question and second picture, second question and first picture, both
    second. ``question_accuracy`` is the share of questions that are right on both pictures, ``image_accuracy`` that of
    pictures on which both questions are right, ``group_accuracy`` that of groups with all four right.

    Raises:
        DataError: If an index is not a whole number.
    """
    rows = ScoredRows.of(answered)
    numbers = [whole(row_id) for row_id in rows.ids]
    rows = rows.take(np.argsort(numbers, kind="stable"))
    first = min(numbers, default=0)
    places = [number - first for number in sorted(numbers)]
    groups = [place // _GROUP for place in places]
    rows = rows.clustered(groups)
    keys: dict[MetricSpec, list[Hashable]] = {
        QUESTION_ACCURACY: [(place // _GROUP, place % _GROUP // 2) for place in places],
        IMAGE_ACCURACY: [(place // _GROUP, place % 2) for place in places],
        GROUP_ACCURACY: list(groups),
    }
    return [mean(rows, ACCURACY, scorer), *(mean(rows.all_right(each), spec, scorer) for spec, each in keys.items())]
