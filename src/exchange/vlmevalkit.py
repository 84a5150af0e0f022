"""Writes answers and scores as VLMEvalKit does: for each model a folder with a table of predictions and its scores.

``<model>/<model>_<set>.tsv`` has the rows of the set without pictures, with the column ``prediction``. Beside it lie
the scores as VLMEvalKit names them: ``_acc.csv`` (multiple choice, VQA), ``_score.csv`` (yes or no) or ``_score.json``;
and ``status.json`` says what they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.answers.reports.report import PUBLISHED_ABILITIES, REPORTS
from testbed.db.store import Store
from testbed.entities import OVERALL, Evaluation, Metric
from testbed.errors import StoreError
from testbed.jsontext import to_json
from testbed.models.base.capability import FAILED, NO_ANSWER
from testbed.paths import write_atomically

TASKS = ("question_answering", "judged_answers")
FAILURE = "Failed to obtain answer via API."  # what stands for an answer that there is not
EXACT_MATCHING = "exact_matching"  # the judge's name where there is none
_SCORERS = tuple(f"{task}@" for task in TASKS)
_YES_NO = ("mme", "pope", "hallusion")
_PERCENT = ("vqa", "anls")  # reports whose table is in percent
_AS_JSON = (
    *("ocrbench", "captions", "mme_realworld", "video_mme", "mtvqa", "we_math", "math_vista", "math_vision"),
    *("math_verse", "dyna_math", "logic_vista", "charxiv", "mmvet", "simple_vqa", "erqa"),
)
_CATEGORY, _ABILITY, _SPLIT = "category/", "l2-category/", "split/"


@dataclass(frozen=True)
class Exported:
    """The files of an evaluation.

    Attributes:
        evaluation: Which one.
        set_name: VLMEvalKit's name of the set.
        report: What is reported.
        judge: The judge; `EXACT_MATCHING` for rules alone.
        metrics: The metrics by name and slice.
    """

    evaluation: Evaluation
    set_name: str
    report: str
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
        The files that were written.

    Raises:
        StoreError: If there are no answers to questions among them, or two models would have the same file.
    """
    found = list(_exported(store, models, eval_settings))
    if not found:
        raise StoreError("the store has no such answers to questions; db.py --list-eval-settings-db lists all settings")
    places: dict[tuple[str, str], str] = {}
    files: list[Path] = []
    by_model: dict[str, list[Exported]] = {}
    for each in found:
        model = _file_name(each.evaluation.model)
        place = (model.lower(), each.set_name.lower())
        if places.setdefault(place, each.evaluation.model) != each.evaluation.model:
            raise StoreError(
                f"{each.evaluation.model} and {places[place]} would have the same files; export them into two folders"
            )
        stem = folder / model / f"{model}_{each.set_name}"
        stem.parent.mkdir(parents=True, exist_ok=True)
        files += [_predictions(store, each, stem), *_scores(each, stem)]
        by_model.setdefault(model, []).append(each)
    for model, several in by_model.items():
        path = folder / model / "status.json"
        write_atomically(path, to_json(_status(several)).encode())
        files.append(path)
    return files


def _exported(store: Store, models: Sequence[str] | None, eval_settings: Sequence[str] | None) -> Iterable[Exported]:
    ids = {
        each.evaluation_id
        for each in store.results(models, eval_settings, slices=[OVERALL])
        if each.scorer.startswith(_SCORERS) and each.origin != "imported"
    }
    for evaluation in (store.evaluation(each) for each in sorted(ids)):
        identity = store.identity(evaluation)
        view = identity.get("view", {})
        name, _, judge = evaluation.eval_setting.partition("@")
        yield Exported(
            evaluation=evaluation,
            set_name=_file_name(Path(name.removeprefix("tsv:")).stem if name.startswith("tsv:") else name),
            report=str(view.get("report", ["accuracy"])[0]),
            judge=judge or EXACT_MATCHING,
            metrics={(each.name, each.slice): each for each in store.metrics(evaluation.id)},
        )


def _file_name(name: str) -> str:
    """A name as a part of a file's."""
    return re.sub(r"[^\w.+,=-]+", "_", name).strip("._") or "name"


# Predictions ----------------------------------------------------------------------------------------------------------


def _predictions(store: Store, each: Exported, stem: Path) -> Path:
    """The table of predictions."""
    assert each.evaluation.dataset_id is not None
    samples = store.dataset(each.evaluation.dataset_id).samples
    outputs = store.read_outputs(each.evaluation.id, "text")
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
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    write_atomically(path, file.getvalue().encode("utf-8", "replace"))
    return path


# Scores ---------------------------------------------------------------------------------------------------------------


def _scores(each: Exported, stem: Path) -> list[Path]:
    """The scores, in the form that VLMEvalKit has for the report."""
    if each.report in _AS_JSON:
        path = stem.with_name(f"{stem.name}_score.json")
        write_atomically(path, to_json(_as_json(each)).encode())
        return [path]
    if each.report in _YES_NO:
        table = _mme(each) if each.report == "mme" else _yes_no(each)
        return [_write(stem.with_name(f"{stem.name}_score.csv"), table)]
    table = _percent(each) if each.report in _PERCENT else _accuracy(each)
    return [_write(stem.with_name(f"{stem.name}_acc.csv"), table)]


def _value(each: Exported, name: str, part: str = OVERALL, scale: float = 1.0) -> Any:
    metric = each.metrics.get((name, part))
    return "" if metric is None or metric.value is None else metric.value * scale


def _parts(each: Exported, name: str, before: str) -> list[str]:
    """The labels of the slices of a metric that begin so and go no deeper."""
    given = [part.removeprefix(before) for metric, part in each.metrics if metric == name and part.startswith(before)]
    return sorted(part for part in given if "/category/" not in part and "/l2-category/" not in part)


def _accuracy(each: Exported) -> list[list[Any]]:
    """Rows for splits; columns Overall, l2-categories, categories; fractions."""
    name = REPORTS[each.report].primary
    abilities, categories = _parts(each, name, _ABILITY), _parts(each, name, _CATEGORY)
    header = ["split", "Overall", *(PUBLISHED_ABILITIES.get(part, part) for part in abilities)]
    header += [PUBLISHED_ABILITIES.get(part, part) for part in categories]
    splits = _parts(each, name, _SPLIT)
    rows = []
    for split in splits or ["none"]:
        within = f"{_SPLIT}{split}/" if len(splits) > 1 else ""
        overall = _value(each, name, f"{_SPLIT}{split}") if splits else _value(each, name)
        row = [split, overall]
        row += [_value(each, name, f"{within}{_ABILITY}{part}") for part in abilities]
        rows.append([*row, *(_value(each, name, f"{within}{_CATEGORY}{part}") for part in categories)])
    return [header, *rows]


def _percent(each: Exported) -> list[list[Any]]:
    """One row: splits and Overall, or Overall and categories; in percent."""
    name = REPORTS[each.report].primary
    splits, overall = _parts(each, name, _SPLIT), _value(each, name, scale=100)
    if splits:
        return [[*splits, "Overall"], [*(_value(each, name, _SPLIT + part, 100) for part in splits), overall]]
    categories = _parts(each, name, _CATEGORY)
    return [["Overall", *categories], [overall, *(_value(each, name, _CATEGORY + part, 100) for part in categories)]]


def _mme(each: Exported) -> list[list[Any]]:
    """One row: perception, reasoning, and the points of each category."""
    categories = _parts(each, "score", _CATEGORY)
    header = ["perception", "reasoning", *categories]
    sums = [_value(each, "perception"), _value(each, "reasoning")]
    return [header, [*sums, *(_value(each, "score", _CATEGORY + part) for part in categories)]]


def _yes_no(each: Exported) -> list[list[Any]]:
    """Rows for all and for categories; columns as VLMEvalKit names the metrics; in percent."""
    published = dict(REPORTS[each.report].published)
    if each.report == "pope":
        published = {"f1": "Overall", "accuracy": "acc", "precision": "precision", "recall": "recall"}
    primary = next(iter(published))
    rows: list[list[Any]] = [["split", *published.values()]]
    for label, part in [("Overall", OVERALL), *((part, _CATEGORY + part) for part in _parts(each, primary, _CATEGORY))]:
        rows.append([label, *(_value(each, name, part, 100) for name in published)])
    return rows


def _as_json(each: Exported) -> dict[str, Any]:
    """All metrics by their names; of slices, by ``name|slice``."""
    published = REPORTS[each.report].published if each.report in REPORTS else {}
    return {
        published.get(name, name) if part == OVERALL else f"{published.get(name, name)}|{part}": metric.value
        for (name, part), metric in each.metrics.items()
    }


def _status(several: Sequence[Exported]) -> dict[str, Any]:
    """What VLMEvalKit's ``status.json`` says of a run."""
    first = several[0].evaluation
    done = [each.evaluation.completed_at for each in several if each.evaluation.completed_at is not None]
    return {
        "schema_version": "1.0",
        "eval_id": f"testbed-{first.id}",
        "created_at": min(done).isoformat() if done else None,
        "updated_at": max(done).isoformat() if done else None,
        "pred_format": "tsv",
        "eval_format": "csv",
        "mode": "all",
        "model_name": first.model,
        "datasets": {each.set_name: _dataset_status(each) for each in several},
    }


def _dataset_status(each: Exported) -> dict[str, Any]:
    name = REPORTS[each.report].primary if each.report in REPORTS else ""
    primary = each.metrics.get((name, OVERALL))
    return {
        "status": "done",
        "prediction_file": f"{_file_name(each.evaluation.model)}_{each.set_name}.tsv",
        "judge_model": each.judge,
        "primary_metric": None if primary is None else {name: primary.value},
        "metrics": {f"{metric}|{part}": found.value for (metric, part), found in each.metrics.items()},
    }
