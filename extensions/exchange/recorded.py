"""Writes answers recorded by another tool: files of answers for replay, and tables of values."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.data.formats.annotations import checked_text
from testbed.data.tables.answers import INDEX, PREDICTION
from testbed.errors import DataError, StoreError, shortened
from testbed.models.base.capability import CUT_OFF, FAILED
from testbed.paths import safe_name, write_atomically
from testbed.spreadsheet import as_csv

FAILURE = "Failed to obtain answer via API."  # VLMEvalKit's text
NO_SAMPLES = "records have no samples"
CUT = "answers were cut off; recorded answers do not mark this"
WITHIN = "answers begin within thoughts; recorded answers do not mark this"
DIFFERENT = "samples occur twice with different answers"
UNKNOWN = "samples are of eval settings that testbed does not have; only their values are written"
_LONGEST_NAME = 200  # bytes of a file name
_OF_NAMES = re.compile(r"[^\w.+,=-]+")


@dataclass
class AnsweredSample:
    """The recorded data of a sample.

    Attributes:
        text: The model's answer; for a classifier, the predicted class; None without an answer.
        question: The question.
        right: The right answers.
        thinking: The thoughts before the answer.
        score: The score; None if missing.
        correct: Whether it is right; None if unknown.
        error: The reason for a missing answer.
        finish_reason: How the answer ended, if known.
        kind: ``"text"``, ``"class"`` or ``"none"``.
        scores: All scores by name.
        own: Whether testbed recorded it, so that the question matches the data set.
        begun: Whether the text begins within thoughts.
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
    begun: bool = False


@dataclass
class SampledRecord:
    """The samples of a file, from one model on one or more eval settings.

    Attributes:
        path: Its file.
        model: The model's name.
        samples: Eval setting → sample → recorded data.
        left_out: Reasons why samples or parts of them were left out → count.
    """

    path: Path
    model: str
    samples: dict[str, dict[str, AnsweredSample]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def answers_file(folder: Path, model: str, setting: str) -> Path:
    """The path for the answers of a model on a setting: ``MODEL_SETTING.json``, as in VLMEvalKit."""
    name = _OF_NAMES.sub("_", model).strip("._") or "model"
    of_setting = PurePosixPath(setting.removeprefix("tsv:")).stem if setting.startswith("tsv:") else setting
    stem = f"{name}_{_OF_NAMES.sub('_', of_setting)}"
    return folder / f"{stem if len(stem.encode()) <= _LONGEST_NAME else safe_name(stem)}.json"


def write_answers(path: Path, samples: Mapping[str, AnsweredSample]) -> None:
    """Writes answers in text as a file for ``replay:FILE``; see `testbed.data.tables.answers`.

    Leaves out samples without an answer; failures get VLMEvalKit's text for them.
    """
    rows: list[dict[str, Any]] = []
    for sample, value in samples.items():
        failed = value.text is None and value.finish_reason.startswith(FAILED)
        if value.text is None and not failed:
            continue
        row = {INDEX: sample, PREDICTION: FAILURE if failed else value.text}
        row |= {"thinking": value.thinking} if value.thinking else {}
        if value.own and value.question != sample:  # the reader compares the questions
            row |= {"question": value.question, **({"answer": value.right[0]} if value.right else {})}
        rows.append(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(rows, indent=1).encode())  # ASCII can hold any recorded text


def write_values(folder: Path, model: str, setting: str, samples: Mapping[str, AnsweredSample]) -> Path:
    """Writes a table of the samples: right answers, the model's answers, and scores."""
    names = list(dict.fromkeys(name for answered_sample in samples.values() for name in answered_sample.scores))
    rows: list[list[Any]] = [["sample", "right", "said", "score", "correct", "error", *(f"score {n}" for n in names)]]
    for sample, value in samples.items():
        told = [sample, " | ".join(value.right), value.text, value.score, value.correct, value.error]
        rows.append([*told, *(value.scores.get(name) for name in names)])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{safe_name(setting)}__{safe_name(model)}.csv"
    write_atomically(path, as_csv(rows).encode("utf-8", "replace"))
    return path


@dataclass
class SampleFiles:
    """The outcome of writing samples.

    Attributes:
        samples: The number of samples in the files read.
        files: The files.
        answers: Files of recorded answers → their eval setting.
        left_out: Reasons why samples or parts of them were left out → count.
    """

    samples: int = 0
    files: list[str] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def checked_name(value: Any, where: str) -> str:
    """Checks the name of a model, an eval setting or a sample in a file.

    Raises:
        StoreError: If it is not a text, is blank, or cannot be stored.
    """
    if not isinstance(value, str) or not value.strip():
        raise StoreError(f"{where} should be a text, not {shortened(repr(value))}")
    try:
        return checked_text(value, where)
    except DataError as error:
        raise StoreError(str(error)) from None


def write_samples(
    records: Iterable[SampledRecord], folder: Path | None, is_known: Callable[[str], bool]
) -> SampleFiles:
    """Writes the samples of files.

    Writes answers in text to known eval settings as recorded answers, and all samples as tables of values.

    Args:
        records: The contents of each file.
        folder: The output folder, created if missing; None writes nothing.
        is_known: Whether a name is that of an eval setting.

    Raises:
        StoreError: If two files have the same cell.
    """
    done = SampleFiles()
    held: dict[tuple[str, str], Path] = {}
    for record in records:
        done.left_out.update(record.left_out)
        for setting, samples in record.samples.items():
            other = held.setdefault((record.model, setting), record.path)
            if other != record.path:
                raise StoreError(
                    f"{other} and {record.path} both have samples of {record.model} on {setting}; import them"
                    " separately"
                )
            done.samples += len(samples)
            texts = {name: value for name, value in samples.items() if value.kind == "text"}
            if texts and not is_known(setting):
                done.left_out[UNKNOWN] += len(texts)
            if folder is None:
                continue
            if texts and is_known(setting):
                answers = answers_file(folder, record.model, setting)
                if str(answers) in done.files:
                    both = f"{record.model} and another model would both have {answers.name}"
                    raise StoreError(f"{both}; import them separately")
                write_answers(answers, texts)
                done.left_out[CUT] += sum(text.finish_reason == CUT_OFF for text in texts.values())
                done.left_out[WITHIN] += sum(text.begun for text in texts.values())
                done.answers[str(answers)] = setting
                done.files.append(str(answers))
            done.files.append(str(write_values(folder, record.model, setting, samples)))
    done.left_out = +done.left_out
    return done
