"""A store with a cell of each kind that other tools' forms take: classes, answers to questions, captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stored_cells import NAMES, put, samples_of, saying

from testbed.answers.scorings import RULES
from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Evaluation, Metric, SampleInfo, Score
from testbed.identity.describe import digest
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.metrics.scorers.classification import NLL, top
from testbed.tasks.question_answering import SCORE, SCORER

QUESTION = "digits-vqa.choice"
ROWS = [
    {"question": "Which digit?", "A": "zero", "B": "one", "answer": letter, "category": kind}
    for letter, kind in (("A", "even"), ("B", "odd"), ("A", "even"), ("B", "odd"), ("A", "even"), ("B", "odd"))
]
SAID: list[dict[str, Any] | None] = [
    {"text": "A", "finish_reason": "stop", "extra": {"prompt_tokens": 30, "output_tokens": 1}},
    {"text": "The answer is\u2028B \U0001f600", "finish_reason": "stop", "extra": {"thinking": "Hm: one."}},
    {"text": "B", "finish_reason": "length"},
    {"text": "", "finish_reason": "missing"},
    {"text": None, "finish_reason": "error: the service said 500"},
    None,
]
SCORES = [1.0, 1.0, 0.0, np.nan, np.nan, np.nan]
CIDER = MetricSpec("CIDEr", "", HIGHER, 0, None, 10)


def made_store(path: Path) -> Store:
    """The store: a classifier with a sample that could not be read, a model that answers, and one that captions."""
    store = Store.create(str(path))
    put(
        *(store, "lab/net", "val", samples_of([0, 1, 2, 3, 0]), saying([0, 1, 1, 3, -1])),
        forward={"task": "classification", "route": "logits"},
        metric=top(1).metric(0.75, 4, 0.25, scorer="classification@2"),
    )
    put_texts(store, "talker", QUESTION, samples_of(ROWS, ids=[str(n) for n in range(6)]), SAID, answered(SCORES))
    captions = [{"text": f"A {name}.", "finish_reason": "stop"} for name in NAMES]
    put_texts(
        *(store, "talker", "own-captions", samples_of([[f"the {name}", "a thing"] for name in NAMES]), captions),
        ([CIDER.score(np.array([0.1, 0.2, 0.30000000000000004, 2.5]), "overlap@1")], [CIDER.metric(0.775, 4, 0.5)]),
        view={"scorer": "captioning@1"},
    )
    return store


def answered(scores: Sequence[float]) -> tuple[list[Score], list[Metric]]:
    """The scores and metrics of answers, one of them without a value."""
    known = [each for each in scores if not np.isnan(each)]
    accuracy = MetricSpec("accuracy", "fraction", HIGHER, 0, 1, 10)
    metrics = [
        accuracy.metric(float(np.mean(known)), len(known), 1 / 3, scorer=SCORER),
        accuracy.metric(1.0, 1, None, "category/odd", SCORER),
        accuracy.metric(None, 0, None, "category/none", SCORER),
        NLL.metric(0.1 + 0.2, 3, None, scorer="x@1"),
        MetricSpec("unread", "fraction", LOWER, 0, 1, -1).metric(0.0, 6, 0.0, scorer=SCORER),
    ]
    return [SCORE.score(np.array(scores, dtype=np.float64), SCORER)], metrics


def put_texts(
    store: Store,
    model: str,
    setting: str,
    samples: Sequence[SampleInfo],
    said: Sequence[dict[str, Any] | None],
    results: tuple[list[Score], list[Metric]],
    view: dict[str, Any] | None = None,
) -> Evaluation:
    """A complete evaluation of a model that answers in text; None for a sample that could not be read."""
    info = DatasetInfo(setting, digest([[each.id for each in samples], setting]), samples, None)
    rules = {"scorer": SCORER, "scoring": ["multiple_choice", *RULES.values()], "report": ["accuracy", 1]}
    generation = {"max_new_tokens": 32, "temperature": 0.5, "stop": {"!tuple": []}}
    identity = {
        "model": {"spec": {"arch": model}, "weights": "sha256:1234"},
        "forward": {"task": "question_answering", "generation": generation, "data_set": setting},
        "view": view or rules,
    }
    record = CellRecord(model, setting, digest([model, setting]), size=len(samples), dtype="float32", identity=identity)
    evaluation = store.evaluations.begin(record, store.datasets.ensure(info), {}, {})
    unread = {place: "/home/me/pictures/1.png cannot be read" for place, each in enumerate(said) if each is None}
    store.outputs.append([Chunk(evaluation.id, "text", 0, list(said))], {evaluation.id: unread} if unread else None)
    store.evaluations.complete(evaluation.id, *results)
    return store.evaluations.get(evaluation.id)
