"""Writes verdicts of judges as a file of labels, and files of answers for people to label."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from testbed.answers.judges.label_files import ANNOTATOR, ANSWER, ID, LABEL, MODEL
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, Evaluation
from testbed.errors import StoreError
from testbed.graph.stored import EvaluationValues
from testbed.paths import write_atomically
from testbed.registry.catalog import Catalog
from testbed.registry.references import is_part
from testbed.spreadsheet import as_csv
from testbed.stored_results.side_by_side import matching_models, matching_settings
from testbed.tasks.judged_answers import task as judged
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import columns_of

COLUMNS = (MODEL, ID, LABEL, ANNOTATOR, ANSWER)
VERDICT_COLUMNS = [*COLUMNS, "served_model", "finish_reason", "question_sha256", "question", "reply", "second_reply"]
VERDICT_COLUMNS += ["no_verdict"]
LABEL_COLUMNS = [*COLUMNS, "score", "question", "right_answer"]
QUESTIONS = ("question_answering@", "judged_answers@")


def export_verdicts(
    store: Store, catalog: Catalog, path: Path, models: Sequence[str] | None, eval_settings: Sequence[str] | None
) -> int:
    """Writes the verdicts of judges: a row for each judge and judged answer.

    The file is one of labels, with the judges as annotators: ``X@labels:FILE`` scores by it without running the judges.
    The column ``label`` is empty where the reply cannot be read; ``no_verdict`` then has the reason.

    Args:
        store: The results store.
        catalog: Catalog with the settings.
        path: The file, which is replaced.
        models: The models; None for all.
        eval_settings: The settings; None for all with judges.

    Returns:
        The number of rows.

    Raises:
        StoreError: If there are no such verdicts, or they are of several settings.
    """
    rows: list[list[Any]] = []
    for evaluation in _evaluations(store, models, eval_settings, QUESTIONS[1:]):
        setting = catalog.get_eval_setting(evaluation.eval_setting)
        values = EvaluationValues(store, evaluation)
        ids = [sample.id for sample in values.samples]
        for each in judged.asked_judges(values, setting, evaluation.model):
            score = np.nan if each.verdict is None else each.verdict.score
            key = hashlib.sha256(each.question.encode("utf-8", "surrogatepass")).hexdigest()
            said, second = each.reply or {}, each.second or {}
            label = "" if np.isnan(score) else f"{score:.6g}"
            served = [said.get("extra", {}).get("model", ""), said.get("finish_reason", "")]
            texts = [key, each.question, said.get("text") or "", second.get("text") or "", each.silence]
            rows.append([evaluation.model, ids[each.place], label, each.judge, each.answer, *served, *texts])
    if not rows:
        raise StoreError("the store has no verdicts of judges on these settings; --on takes names X@JUDGE")
    _write(path, VERDICT_COLUMNS, rows)
    return len(rows)


def suggest_labels(
    store: Store, path: Path, number: int, models: Sequence[str] | None, eval_settings: Sequence[str] | None, seed: int
) -> int:
    """Writes answers for people to label, drawn at random.

    Args:
        store: The results store.
        path: The file, which must not exist yet.
        number: The number of answers of each model.
        models: The models; None for all.
        eval_settings: The settings; None for all that ask questions.
        seed: Of the draw.

    Returns:
        The number of rows.

    Raises:
        StoreError: If there are no such answers, they are of several settings, or the file exists, since it may have
            labels.
    """
    if path.exists():
        raise StoreError(f"{path} already exists, and may have labels; give another name")
    rows: list[list[Any]] = []
    for evaluation in _evaluations(store, models, eval_settings, QUESTIONS):
        assert evaluation.dataset_id is not None
        samples = store.datasets.get(evaluation.dataset_id).samples
        replies = replies_of(store.outputs.read(evaluation.id, "text"))
        texts, refusals = replies.texts, replies.refusals
        scores = next((found for (_, name), found in store.scores.read(evaluation.id).items() if name == "score"), None)
        there = np.array([place for place, text in enumerate(texts) if text is not None and not refusals[place]])
        drawn = np.random.default_rng(seed).permutation(there)[:number]
        for place in sorted(drawn):
            row = columns_of(samples[place].target, evaluation.eval_setting)
            score = "" if scores is None or np.isnan(scores[place]) else f"{scores[place]:.6g}"
            shown = [texts[place], score, row.get("question", ""), row.get("answer", row.get("answers", ""))]
            rows.append([evaluation.model, samples[place].id, "", "", *shown])
    if not rows:
        raise StoreError(
            "the store has no such answers to questions; testbed list settings --stored lists all settings"
        )
    _write(path, LABEL_COLUMNS, rows)
    return len(rows)


def _evaluations(
    store: Store, models: Sequence[str] | None, eval_settings: Sequence[str] | None, scorers: Sequence[str]
) -> list[Evaluation]:
    """The reported evaluations, of one setting: a file of labels identifies samples only by their ids."""
    models = models and matching_models(store, models)
    eval_settings = eval_settings and matching_settings(store, eval_settings)
    ids = {
        result.evaluation_id
        for result in store.results.find(models, eval_settings)
        if result.scorer.startswith(tuple(scorers))
        and result.origin not in ELSEWHERE
        and (eval_settings or not is_part(result.eval_setting))
    }
    found = [store.evaluations.get(one_id) for one_id in sorted(ids)]
    several = sorted({evaluation.eval_setting for evaluation in found})
    if len(several) > 1:
        raise StoreError(f"a file has one setting; got {', '.join(several)}; select one with --on")
    return found


def _write(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = as_csv([header, *rows], lineterminator="\r\n")
    write_atomically(path, text.encode("utf-8", "replace"))
