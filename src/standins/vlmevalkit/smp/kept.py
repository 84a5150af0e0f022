"""The ``.pkl`` files of VLMEvalKit's classes: written as JSON, since pickles can run code when they are read.

A file that was written here is read back unchanged: dictionaries with keys of any kind, tuples, sets, arrays and
tables of pandas included. A real pickle is refused.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from testbed.errors import DataError

_KIND, _VALUE = "testbed.kind", "value"


def write_kept(data: Any, path: Path) -> None:
    """Writes data.

    Raises:
        DataError: If they hold something else than numbers, texts, bytes, arrays, tables, and lists, dictionaries and
            sets of these.
    """
    path.write_text(json.dumps(_plain(data, path), ensure_ascii=False), encoding="utf-8")


def read_kept(path: Path) -> Any:
    """The data in a file; raises DataError if it was not written by `write_kept`."""
    try:
        return _read(json.loads(path.read_bytes().decode("utf-8")))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} was not written here; pickles can run code, so they are not read: use json, tsv or xlsx"
        ) from error


def _plain(value: Any, path: Path) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value

    def inner(item: Any) -> Any:
        return _plain(item, path)

    if isinstance(value, list):
        return [inner(item) for item in value]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) and key != _KIND for key in value):
            return {key: inner(item) for key, item in value.items()}
        return {_KIND: "dict", _VALUE: [[inner(key), inner(item)] for key, item in value.items()]}
    if isinstance(value, tuple | set | frozenset):
        return {_KIND: type(value).__name__, _VALUE: [inner(item) for item in value]}
    if isinstance(value, bytes):
        return {_KIND: "bytes", _VALUE: base64.b64encode(value).decode()}
    if isinstance(value, pd.Series):
        return {_KIND: "series", _VALUE: [[inner(key) for key in value.index], [inner(item) for item in value]]}
    if isinstance(value, pd.DataFrame):
        columns = [[inner(name), [inner(item) for item in value[name]]] for name in value.columns]
        return {_KIND: "frame", _VALUE: [[inner(key) for key in value.index], columns]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {_KIND: "array", _VALUE: base64.b64encode(file.getvalue()).decode()}
    raise DataError(
        f"{path.name}: a {type(value).__name__} cannot be kept in a .pkl file here, which is written as JSON"
    )


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "dict": lambda items: {_key(_read(key)): _read(item) for key, item in items},
    "tuple": lambda items: tuple(map(_read, items)),
    "set": lambda items: {_key(_read(item)) for item in items},
    "frozenset": lambda items: frozenset(_key(_read(item)) for item in items),
    "bytes": base64.b64decode,
    "series": lambda parts: pd.Series(_read(parts[1]), index=_read(parts[0])),
    "frame": lambda parts: pd.DataFrame({_read(name): _read(cells) for name, cells in parts[1]}, index=_read(parts[0])),
    "array": lambda text: np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False),
}


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _read(value: Any) -> Any:
    if isinstance(value, list):
        return [_read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _KIND in value:
        return _READERS[value[_KIND]](value[_VALUE])
    return {key: _read(item) for key, item in value.items()}
