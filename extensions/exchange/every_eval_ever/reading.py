"""Reads the samples of Every Eval Ever's records: recorded answers and their scores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.claims.every_eval_ever import (
    FINISH,
    LIBRARY,
    NOT_DEFINED,
    OUTPUT,
    RECORD,
    SAMPLES_SUFFIX,
    SCORE,
    SCORE_OF,
    TEXT,
    THINKING_BEGUN,
)
from testbed.errors import StoreError
from testbed.extensions.exchange.recorded import DIFFERENT, NO_SAMPLES, AnsweredSample, SampledRecord, checked_name
from testbed.paths import open_regular, read_regular

MANY_TURNS = "samples have several turns, or tools"
SEVERAL = "samples have several answers"
_LONGEST_LINE = 1 << 26  # bytes


def records_in(folder: Path) -> list[Path]:
    """Finds the files of records in a folder (``[data/]COLLECTION/DEVELOPER/MODEL/UUID.json``, or a model's).

    Raises:
        StoreError: If there are none.
    """
    patterns = [f"{above}{RECORD}" for above in ("", "*/", "*/*/", "*/*/*/", "data/*/*/*/")]
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if not found:
        raise StoreError(
            f"{folder} has no records of Every Eval Ever; COLLECTION/DEVELOPER/MODEL/UUID.json was expected"
        )
    return found


def read_samples(path: Path) -> SampledRecord:
    """Reads the samples of a record from the file beside it; merges lines of a sample for different metrics.

    Raises:
        StoreError: If the file cannot be read, or a line misses required fields.
    """
    try:
        record = _object(_json(read_regular(path), str(path)), str(path))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    info = record.get("model_info")
    library = record.get("eval_library")
    own = isinstance(library, dict) and library.get("name") == LIBRARY
    model = info.get("name" if own else "id") if isinstance(info, dict) else None
    found = SampledRecord(path, checked_name(model, f"{path}: the id in model_info"))
    file = path.with_name(f"{path.stem}{SAMPLES_SUFFIX}")
    if not file.is_file():
        found.left_out[NO_SAMPLES] += 1
        return found
    for number, line in _lines(file):
        _add(found, line, own, f"{file}, line {number}")
    return found


def _lines(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with open_regular(file) as content:
            for number, line in enumerate(iter(lambda: content.readline(_LONGEST_LINE + 1), b""), start=1):
                where = f"{file}, line {number}"
                if len(line) > _LONGEST_LINE:
                    raise StoreError(f"{where} has more than {_LONGEST_LINE:,} bytes")
                if line.strip():
                    yield number, _object(_json(line, where), where)
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error}") from error


def _json(content: bytes, where: str) -> Any:
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} cannot be read as JSON: {error}") from error


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise StoreError(f"{where} should be a JSON object")
    return value


def _add(found: SampledRecord, line: Mapping[str, Any], own: bool, where: str) -> None:
    setting, sample = (checked_name(line.get(key), f"{where}: {key}") for key in ("evaluation_name", "sample_id"))
    if line.get("interaction_type") != "single_turn":
        found.left_out[MANY_TURNS] += 1
        return
    said = _said(line, own, where)
    if said is None:
        found.left_out[SEVERAL] += 1
        return
    of_setting = found.samples.setdefault(setting, {})
    held = of_setting.setdefault(sample, said)
    if held.text != said.text:
        found.left_out[DIFFERENT] += 1
    elif held is not said:  # from another metric
        held.scores.update({name: value for name, value in said.scores.items() if name not in held.scores})


def _said(line: Mapping[str, Any], own: bool, where: str) -> AnsweredSample | None:
    """Parses a line; None if it has several answers."""
    asked, output = (_object(line.get(key) or {}, f"{where}: {key}") for key in ("input", "output"))
    raw, thoughts, right = (_texts(holder, key, where) for holder, key in (
        (output, "raw"), (output, "reasoning_trace"), (asked, "reference")))  # fmt: skip
    if len(raw) > 1:
        return None
    metadata = _object(line.get("metadata") or {}, f"{where}: metadata")
    evaluated = _object(line.get("evaluation"), f"{where}: evaluation")
    says_nothing = str(metadata.get(NOT_DEFINED, "")).split() if own else []
    score, correct = _number(evaluated.get("score")), evaluated.get("is_correct")
    if score is None or type(correct) is not bool:
        raise StoreError(f"{where}: evaluation should have a score, a number, and is_correct, true or false")
    error = line.get("error")
    return AnsweredSample(
        text=raw[0] if raw else None,
        question=asked["raw"] if isinstance(asked.get("raw"), str) else "",
        right=right,
        thinking="\n".join(thoughts),
        score=None if SCORE in says_nothing else score,
        correct=None if "is_correct" in says_nothing else correct,
        error=error if isinstance(error, str) else "",
        finish_reason=str(metadata.get(FINISH, "")) if own else "",
        kind=str(metadata.get(OUTPUT, TEXT)) if own else TEXT,
        scores=_scores(metadata, where) if own else {str(line.get("evaluation_result_id") or SCORE): score},
        own=own,
        begun=own and THINKING_BEGUN in metadata,
    )


def _scores(metadata: Mapping[str, Any], where: str) -> dict[str, float]:
    found = {}
    for key, value in metadata.items():
        if key.startswith(SCORE_OF):
            if not isinstance(value, str) or not re.fullmatch(r"-?[0-9][0-9.e+-]{0,40}", value):
                raise StoreError(f"{where}: {key} should be the text of a number, not {value!r:.40}")
            try:
                found[key.removeprefix(SCORE_OF)] = float(value)
            except ValueError:
                raise StoreError(f"{where}: {key} should be the text of a number, not {value!r:.40}") from None
    return found


def _number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    try:
        found = float(value) if type(value) in (int, float) else math.nan
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def _texts(holder: Mapping[str, Any], key: str, where: str) -> list[str]:
    value = holder.get(key) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise StoreError(f"{where}: {key} should be a list of texts")
    return value
