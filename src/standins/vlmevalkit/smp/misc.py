"""VLMEvalKit's small helpers."""

from __future__ import annotations

import ast
import datetime
import json
import operator
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from testbed.answers.columns import as_list
from testbed.answers.published.words import without_punctuation
from testbed.errors import DataError, UnsupportedError
from testbed.standins.vlmevalkit.absent import refusing


def toliststr(cell: str | Sequence[Any]) -> list[str]:
    """The texts of a cell: a list as Python or JSON write it, or a single text. It is never run as code.

    Raises:
        DataError: If it is neither a text nor a list.
    """
    if isinstance(cell, str):
        return as_list(cell)
    if isinstance(cell, list | tuple):
        return [str(item) for item in cell]
    raise DataError(f"a text or a list was expected, got {type(cell).__name__} ({cell!r:.60})")


def istype(text: Any, kind: type) -> bool:
    """Checks whether something is of a type, or is a text that is a literal of that type."""
    if isinstance(text, kind):
        return True
    try:
        return isinstance(ast.literal_eval(text), kind)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return False


def process_punctuation(inText: str) -> str:
    """A text without punctuation, as VQA accuracy has it."""
    return without_punctuation(inText)


def listinstr(words: Sequence[str], text: str) -> bool:
    """Checks whether one of some words is in a text."""
    return any(word in text for word in words)


def cn_string(text: str) -> bool:
    """Checks whether a text has a Chinese character."""
    return re.search("[\u4e00-\u9fff]", text) is not None


def splitlen(text: str, sym: str = "/") -> int:
    """The number of parts of a text."""
    return len(text.split(sym))


def d2df(values: Mapping[str, Any]) -> pd.DataFrame:
    """A table of one row."""
    return pd.DataFrame({name: [value] for name, value in values.items()})


def get_rank_and_world_size() -> tuple[int, int]:
    """Returns one process of one: testbed distributes the work itself."""
    return 0, 1


def extract_json_objects(text: str, decoder: json.JSONDecoder | None = None) -> Iterator[Any]:
    """The JSON objects in a text, one after the other."""
    decoder = decoder or json.JSONDecoder()
    start = text.find("{")
    while start != -1:
        try:
            value, length = decoder.raw_decode(text[start:])
        except ValueError:
            length = 1
        else:
            yield value
        start = text.find("{", start + length)


def modelscope_flag_set() -> bool:
    """Checks whether ModelScope is used instead of Hugging Face: never."""
    return False


def get_gpu_memory() -> list[int]:
    """The free memory of each GPU in MB."""
    import torch

    return [torch.cuda.mem_get_info(number)[0] >> 20 for number in range(torch.cuda.device_count())]


def get_cache_path(repo_id: str, branch: str = "main", repo_type: str = "datasets") -> str | None:
    """The folder of a repository of Hugging Face's that was downloaded before; None for others."""
    from huggingface_hub import snapshot_download

    try:
        kind = repo_type.removesuffix("s")
        return str(snapshot_download(repo_id, repo_type=kind, revision=branch, local_files_only=True))
    except (OSError, ValueError):
        return None


def download_file(url: str, filename: str | None = None) -> str:
    """Refuses downloads, by an UnsupportedError."""
    raise UnsupportedError(f"nothing is downloaded: put {url} into the folder of tables (LMUData) yourself")


def localize_df(data: pd.DataFrame, dname: str, nproc: int = 1) -> pd.DataFrame:
    """The table as it is: pictures stay in their cells, however large it is."""
    return data


def timestr(granularity: str = "second") -> str:
    """The time as digits, ``20260131235959``, cut after the day, the hour, the minute or the second."""
    length = {"second": 14, "minute": 12, "hour": 10, "day": 8}[granularity]
    return datetime.datetime.now().strftime("%Y%m%d%H%M%S")[:length]


def version_cmp(v1: str, v2: str, op: str = "eq") -> bool:
    """Compares two versions: ``eq``, ``ne``, ``lt``, ``le``, ``gt`` or ``ge``."""
    from packaging.version import parse

    holds: bool = getattr(operator, op)(parse(v1), parse(v2))
    return holds


def proxy_set(s: str) -> None:
    """Sets the proxy of this process, for HTTP and HTTPS."""
    for name in ("http_proxy", "https_proxy"):
        os.environ[name] = os.environ[name.upper()] = s


def load_env() -> None:
    """Does nothing: variables are those of the shell; no file comes before them."""


__getattr__ = refusing(__name__)
