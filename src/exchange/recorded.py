"""Answers of models that another tool recorded, as files: answers to run again, and tables of values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.data.tables.answers import INDEX, PREDICTION
from testbed.jsontext import to_json
from testbed.models.base.capability import FAILED
from testbed.paths import safe_name, write_atomically
from testbed.spreadsheet import as_csv

FAILURE = "Failed to obtain answer via API."  # as VLMEvalKit writes it
_OF_NAMES = re.compile(r"[^\w.+,=-]+")


@dataclass
class AnsweredSample:
    """What is recorded of a sample.

    Attributes:
        text: What the model said; of a classifier, the predicted class; None if there is no answer.
        question: What it was asked.
        right: The right answers.
        thinking: What it thought before.
        score: The score; None if there is none.
        correct: Whether it is right; None if that is not told.
        error: Why there is no answer.
        finish_reason: How the answer ended, if that is told.
        kind: ``"text"``, ``"class"`` or ``"none"``.
        scores: All scores by name.
        own: Whether testbed recorded it, so that the question is that of the data set.
    """

    text: str | None
    question: str = ""
    right: list[str] = field(default_factory=list)
    thinking: str = ""
    score: float | None = None
    correct: bool | None = None
    error: str = ""
    finish_reason: str = ""
    kind: str = "text"
    scores: dict[str, float] = field(default_factory=dict)
    own: bool = False


def write_answers(folder: Path, model: str, setting: str, samples: Mapping[str, AnsweredSample]) -> Path:
    """Writes answers in text as a file that ``replay:FILE`` answers with; see `testbed.data.tables.answers`.

    A sample without an answer is not in it; one whose model failed has VLMEvalKit's text for that.
    """
    rows: list[dict[str, Any]] = []
    for sample, each in samples.items():
        failed = each.text is None and each.finish_reason.startswith(FAILED)
        if each.text is None and not failed:
            continue
        row = {INDEX: sample, PREDICTION: FAILURE if failed else each.text}
        row |= {"thinking": each.thinking} if each.thinking else {}
        if each.own and each.question != sample:  # who reads the file sees whether the questions are the same
            row |= {"question": each.question, **({"answer": each.right[0]} if each.right else {})}
        rows.append(row)
    name = _OF_NAMES.sub("_", model).strip("._") or "model"
    of_setting = PurePosixPath(setting.removeprefix("tsv:")).stem if setting.startswith("tsv:") else setting
    path = folder / f"{name}_{_OF_NAMES.sub('_', of_setting)}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, to_json(rows).encode("utf-8", "replace"))
    return path


def write_values(folder: Path, model: str, setting: str, samples: Mapping[str, AnsweredSample]) -> Path:
    """Writes a table of the samples: what was right, what the model said, and the scores."""
    names = list(dict.fromkeys(name for each in samples.values() for name in each.scores))
    rows: list[list[Any]] = [["sample", "right", "said", "score", "correct", "error", *(f"score {n}" for n in names)]]
    for sample, each in samples.items():
        told = [sample, " | ".join(each.right), each.text, each.score, each.correct, each.error]
        rows.append([*told, *(each.scores.get(name) for name in names)])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{safe_name(setting)}__{safe_name(model)}.csv"
    write_atomically(path, as_csv(rows).encode("utf-8", "replace"))
    return path
