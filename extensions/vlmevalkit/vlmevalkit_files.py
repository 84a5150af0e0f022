"""Writes answers and scores like VLMEvalKit: for each model a folder with a table of predictions and its scores.

``<model>/<model>_<set>.tsv`` has the rows of the set without pictures, with the column ``prediction``. Beside it are
the scores under VLMEvalKit's names: ``_acc.csv`` (multiple choice, VQA), ``_score.csv`` (yes or no) or ``_score.json``;
and ``status.json`` describes them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.answers.reports.report import REPORTS
from testbed.db.store import Store
from testbed.entities import OVERALL, Evaluation, Metric
from testbed.errors import StoreError
from testbed.extensions.vlmevalkit.vlmevalkit_scores import Metrics, ScaledMetric, filled, forms, primary_of
from testbed.jsontext import to_json
from testbed.models.base.capability import FAILED, NO_ANSWER
from testbed.paths import write_atomically
from testbed.registry.references import SettingReference, is_part
from testbed.spreadsheet import as_csv
from testbed.stored_results.side_by_side import matching_models, matching_settings

TASKS = ("question_answering", "judged_answers")
FAILURE = "Failed to obtain answer via API."  # placeholder for a missing answer
EXACT_MATCHING = "exact_matching"  # the judge's name without a judge
_OF_ANSWERS = ("coverage", "empty")  # metrics of a set with hidden right answers
_SCORERS = tuple(f"{task}@" for task in TASKS)


@dataclass(frozen=True)
class EvaluationFiles:
    """The files of an evaluation.

    Attributes:
        evaluation: The evaluation.
        set_name: VLMEvalKit's name of the set.
        report: The kind of report.
        scoring: The scoring of answers.
        judge: The judge; `EXACT_MATCHING` for rules alone.
        metrics: The metrics by name and slice.
    """

    evaluation: Evaluation
    set_name: str
    report: str
    scoring: str
    judge: str
    metrics: dict[tuple[str, str], Metric]


def export_vlmevalkit(
    store: Store, folder: Path, models: Sequence[str] | None = None, eval_settings: Sequence[str] | None = None
) -> list[Path]:
    """Writes the answers and scores of models to questions.

    Args:
        store: The results store.
        folder: The output folder; created if missing.
        models: The models; None for all.
        eval_settings: The settings; None for all that ask questions.

    Returns:
        The written files.

    Raises:
        StoreError: If there are no answers to questions among them, or two models would have the same file.
    """
    found = list(_exported(store, models, eval_settings))
    if not found:
        raise StoreError(
            "the store has no such answers to questions; testbed list settings --stored lists all settings"
        )
    places: dict[tuple[str, str], str] = {}
    files: list[Path] = []
    by_model: dict[str, list[EvaluationFiles]] = {}
    for item in found:
        model = _file_name(item.evaluation.model)
        place = (model.lower(), item.set_name.lower())
        if places.setdefault(place, item.evaluation.model) != item.evaluation.model:
            raise StoreError(
                f"{item.evaluation.model} and {places[place]} would have the same files; export them into two folders"
            )
        stem = folder / model / f"{model}_{item.set_name}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        files += [_predictions(store, item, stem), *_scores(item, stem)]
        by_model.setdefault(model, []).append(item)
    for model, several in by_model.items():
        path = folder / model / "status.json"
        write_atomically(path, to_json(_status(several)).encode())
        files.append(path)
    return files


def _exported(
    store: Store, models: Sequence[str] | None, eval_settings: Sequence[str] | None
) -> Iterable[EvaluationFiles]:
    models = models and matching_models(store, models)
    eval_settings = eval_settings and matching_settings(store, eval_settings)
    ids = {
        result.evaluation_id
        for result in store.results.find(models, eval_settings, slices=[OVERALL])
        if result.scorer.startswith(_SCORERS)
        and result.origin != "imported"
        and (eval_settings or not is_part(result.eval_setting))
    }
    for evaluation in (store.evaluations.get(one_id) for one_id in sorted(ids)):
        identity = store.evaluations.identity(evaluation)
        view = identity.get("view", {})
        reference = SettingReference.parse(evaluation.eval_setting)
        yield EvaluationFiles(
            evaluation=evaluation,
            set_name=_file_name(set_name_of(evaluation.eval_setting)),
            report=str(view.get("report", ["accuracy"])[0]),
            scoring=str(view.get("scoring", ["multiple_choice"])[0]),
            judge=reference.judge or EXACT_MATCHING,
            metrics={(metric.name, metric.slice): metric for metric in store.results.metrics(evaluation.id)},
        )


def set_name_of(eval_setting: str) -> str:
    """Returns VLMEvalKit's name of a setting's set, with its suffixes, but without the judge."""
    name = SettingReference.parse(eval_setting).question
    return Path(name.removeprefix("tsv:")).stem if name.startswith("tsv:") else name


def _file_name(name: str) -> str:
    """A name as a part of a file's."""
    return re.sub(r"[^\w.+,=-]+", "_", name).strip("._") or "name"


# Predictions ----------------------------------------------------------------------------------------------------------


def _predictions(store: Store, each: EvaluationFiles, stem: Path) -> Path:
    """The table of predictions."""
    assert each.evaluation.dataset_id is not None
    samples = store.datasets.get(each.evaluation.dataset_id).samples
    outputs = store.outputs.read(each.evaluation.id, "text")
    columns = list(dict.fromkeys(name for sample in samples for name in sample.target))
    thinking = any(value and "thinking" in value.get("extra", {}) for value in outputs)
    header = ["index", *columns, "prediction", *(["thinking"] if thinking else [])]
    rows = []
    for sample, value in zip(samples, outputs, strict=True):
        row = [sample.id, *(sample.target.get(name, "") for name in columns), _prediction(value)]
        rows.append([*row, (value or {}).get("extra", {}).get("thinking", "")] if thinking else row)
    path = stem.with_name(f"{stem.name}.tsv")
    return _write(path, [header, *rows], "\t")


def _prediction(value: dict[str, Any] | None) -> str:
    if value is None or str(value["finish_reason"]).startswith((NO_ANSWER, FAILED)):
        return FAILURE
    return str(value["text"])


def _write(path: Path, rows: Iterable[Sequence[Any]], delimiter: str = ",") -> Path:
    if delimiter == ",":
        text = as_csv(rows)
    else:  # VLMEvalKit reads these answers unchanged
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
        text = file.getvalue()
    write_atomically(path, text.encode("utf-8", "replace"))
    return path


# Scores ---------------------------------------------------------------------------------------------------------------


def _scores(each: EvaluationFiles, stem: Path) -> list[Path]:
    """Writes the scores in VLMEvalKit's format for the report, else in JSON with testbed's names."""
    paths: list[Path] = []
    if not any(name not in _OF_ANSWERS for name, _ in each.metrics):
        return paths  # right answers are hidden: there are only predictions
    for form in forms(each.report, each.scoring, each.metrics, each.set_name):
        path = stem.with_name(f"{stem.name}{form.suffix}")
        if form.fields is None:
            rows = [[_shown(cell, each.metrics) for cell in row] for row in form.rows]
            _write(path, rows, "\t" if path.suffix == ".tsv" else ",")
        else:
            write_atomically(path, to_json(filled(form.fields, each.metrics)).encode())
        paths.append(path)
    if not paths:
        paths = [stem.with_name(f"{stem.name}_score.json")]
        write_atomically(paths[0], to_json(_as_json(each)).encode())
    return paths


def _shown(cell: str | ScaledMetric, metrics: Metrics) -> Any:
    value = cell.value(metrics) if isinstance(cell, ScaledMetric) else cell
    return "" if value is None else value


def _as_json(each: EvaluationFiles) -> dict[str, Any]:
    """All metrics by name; for slices, by ``name|slice``."""
    published = REPORTS[each.report].published if each.report in REPORTS else {}
    return {
        published.get(name, name) if part == OVERALL else f"{published.get(name, name)}|{part}": metric.value
        for (name, part), metric in each.metrics.items()
    }


def _status(several: Sequence[EvaluationFiles]) -> dict[str, Any]:
    """The contents of VLMEvalKit's ``status.json``."""
    first = several[0].evaluation
    done = [files.evaluation.completed_at for files in several if files.evaluation.completed_at is not None]
    return {
        "schema_version": "1.0",
        "eval_id": f"testbed-{first.id}",
        "created_at": min(done).isoformat() if done else None,
        "updated_at": max(done).isoformat() if done else None,
        "pred_format": "tsv",
        "eval_format": "csv",
        "mode": "all",
        "model_name": first.model,
        "datasets": {files.set_name: _dataset_status(files) for files in several},
    }


def _dataset_status(each: EvaluationFiles) -> dict[str, Any]:
    name = primary_of(each.report, each.metrics) if each.report in REPORTS else ""
    primary = each.metrics.get((name, OVERALL))
    return {
        "status": "done",
        "prediction_file": f"{_file_name(each.evaluation.model)}_{each.set_name}.tsv",
        "judge_model": each.judge,
        "primary_metric": None if primary is None else {name: primary.value},
        "metrics": {f"{metric}|{part}": found.value for (metric, part), found in each.metrics.items()},
    }
