"""VLMEvalKit's files: tables and JSON are read and written; pickles are not."""

from __future__ import annotations

import csv
import json
import mimetypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from testbed.data.picture_files import is_picture_file
from testbed.errors import DataError
from testbed.paths import lmu_data_root
from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.smp.kept import read_kept, write_kept
from testbed.standins.vlmevalkit.smp.workbooks import read_workbook, write_workbook

INFER_FAIL_MSG = "Failed to obtain answer"
RUN_STATUS_NAME = "status.json"
_PICKLES = ("pkl", "pickle")

# How tables are read: each cell is its text, only an empty one is absent.
_TEXTS: dict[str, Any] = {"keep_default_na": False, "na_values": [""], "dtype": str}
_PREDICTION = "prediction"


def LMUDataRoot() -> str:
    """Returns VLMEvalKit's folder of tables: the run's (``--lmu-data``), else ``$LMUData``, else ``~/LMUData``."""
    return str(lmu_data_root())


def load(f: str | os.PathLike[str], fmt: str | None = None) -> Any:
    """The content of a file: a table of pandas (xlsx, tsv, csv), what a JSON file has (json, jsonl), or what `dump` has
    written into a ``.pkl`` file. Real pickles are not read.

    ``None`` and ``NA`` are texts, and only columns of numbers that are written as Python writes them become numbers:
    ``007`` and ``1.50`` are texts, and whole numbers stay so where a cell is empty. A prediction is a text in any case.

    Raises:
        DataError: If the file is of another kind.
    """
    path = Path(f)
    kind = fmt or path.suffix.lstrip(".").lower()
    if kind == "json":
        return json.loads(path.read_text(encoding="utf-8"))
    if kind == "jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if kind == "xlsx":
        return _whole(read_workbook(path))
    if kind in _PICKLES:
        return read_kept(path)
    if kind in ("tsv", "csv"):
        sep = "\t" if kind == "tsv" else ","
        return _whole(typed(pd.read_csv(path, sep=sep, **_TEXTS)))
    raise DataError(f"{path}: {_refusal(kind)}")


def dump(data: Any, f: str | os.PathLike[str], **kwargs: Any) -> None:
    """Writes a table (xlsx, tsv, csv), JSON (json, jsonl), or data of other kinds (pkl: also JSON, not a pickle).

    Raises:
        DataError: If the file is of another kind.
    """
    path = Path(f)
    kind = path.suffix.lstrip(".").lower()
    if kind in ("json", "jsonl"):
        content = data.to_dict("records") if isinstance(data, pd.DataFrame) else data
        if kind == "json":
            text = json.dumps(content, indent=4, ensure_ascii=False, default=_plain)
        else:
            text = "\n".join(json.dumps(item, ensure_ascii=False, default=_plain) for item in content)
        path.write_text(text, encoding="utf-8")
    elif kind == "xlsx":
        write_workbook(data, path)
    elif kind in _PICKLES:
        write_kept(data, path)
    elif kind in ("tsv", "csv"):
        options = {"quoting": csv.QUOTE_ALL, **kwargs}
        data.to_csv(path, sep="\t" if kind == "tsv" else ",", index=False, encoding="utf-8", **options)
    else:
        raise DataError(f"{path}: {_refusal(kind)}")


def md5(s: str) -> str:
    """The MD5 digest of a file, or of a text."""
    import hashlib

    if os.path.isfile(s):
        with open(s, "rb") as file:
            return hashlib.file_digest(file, "md5").hexdigest()
    return hashlib.md5(s.encode(), usedforsecurity=False).hexdigest()


def file_size(f: str, unit: str = "GB") -> float:
    """The size of a file, in GB, MB or KB of 1024."""
    return os.stat(f).st_size / 1024.0 ** {"GB": 3, "MB": 2, "KB": 1}[unit]


def parse_file(s: str) -> tuple[str | None, str]:
    """The media type of a picture's path, and the path; (None, the text) for anything else. Nothing is downloaded."""
    return (mimetypes.guess_type(s)[0] or "image/png", s) if is_picture_file(s) else (None, s)


def get_file_extension(file_path: str) -> str:
    """Returns the part after the last dot."""
    return str(file_path).rsplit(".", 1)[-1]


def get_pred_file_format() -> str:
    """The format of tables of answers: ``$PRED_FORMAT``, else ``xlsx``."""
    return os.environ.get("PRED_FORMAT", "").lower() or "xlsx"


def get_eval_file_format() -> str:
    """The format of tables of metrics: ``$EVAL_FORMAT``, else ``csv``."""
    return os.environ.get("EVAL_FORMAT", "").lower() or "csv"


def get_intermediate_file_path(eval_file: str, suffix: str, target_format: str | None = None) -> str:
    """The path of a file beside the table of answers: its name with a suffix, and the ending that goes with that."""
    path, ending = os.path.splitext(eval_file)
    if target_format is None:
        if suffix.endswith(("_tmp", "_response", "_processed")):
            target_format = "pkl"
        elif suffix.endswith(("_rating", "_config", "_meta")):
            target_format = "json"
        elif suffix.endswith(("_acc", "_fine", "_metrics")):
            target_format = get_eval_file_format()
        else:
            target_format = ending.lstrip(".")
    return f"{path}{suffix}.{target_format}"


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """A table of texts with numbers in the columns of numbers."""
    for column in table.columns:
        filled = table[column].dropna()
        numbers = _numbers(filled, int) or _numbers(filled, float)
        if column == _PREDICTION or numbers is None:
            continue
        # An integer beside an empty cell would become 5.0.
        kind = None if len(filled) == len(table) else object
        table[column] = pd.Series(numbers, index=filled.index, dtype=kind).reindex(table.index)
    return table


def _whole(table: pd.DataFrame) -> pd.DataFrame:
    """A table in which each prediction is a text."""
    if _PREDICTION in table:
        table[_PREDICTION] = ["" if pd.isna(cell) else str(cell) for cell in table[_PREDICTION]]
    return table


def _numbers(cells: pd.Series, kind: type) -> list[Any] | None:
    """The cells as numbers; None if there are none, or one of them is written otherwise."""
    try:
        numbers = [kind(cell) for cell in cells]
    except ValueError:
        return None
    return numbers if numbers and all(str(n) == cell for n, cell in zip(numbers, cells, strict=True)) else None


def _refusal(kind: str) -> str:
    return f"files of the kind {kind!r} are not known; known are xlsx, tsv, csv, json, jsonl and pkl"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


__getattr__ = refusing(__name__)
