"""Files of class names and templates: their names beside the data, and their contents."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from testbed.data.language.template_places import with_places
from testbed.errors import DataError

CLASS_NAMES_FILE = "classnames.txt"
TEMPLATE_FILES = ("zeroshot_classification_templates.txt", "templates.txt")

Templates = list[str] | dict[str, list[str]]


def is_prompt_file(name: str) -> bool:
    """Checks whether a file of this name has class names or templates, in some language (``classnames.zh.txt``)."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem.partition('.')[0]}.{suffix}" in (CLASS_NAMES_FILE, *TEMPLATE_FILES)


def read_lines(path: Path) -> list[str]:
    """The entries of a text file, one per line; empty ones count (a class may have an empty name).

    Only a newline ends a line: other separators of Unicode may be part of a name.

    Raises:
        DataError: If the file cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    lines = text.split("\n")
    if lines[-1].strip() == "":
        lines.pop()  # what follows the last newline is not an entry
    return [line.strip() for line in lines]


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON object, parsed again when the file has changed."""
    try:
        with path.open("rb") as file:  # opened each time, so that every evaluation's record names it
            stat = os.fstat(file.fileno())
    except OSError as error:
        raise DataError(f"the file {path} cannot be read: {error.strerror}") from error
    return _parse(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=16)
def _parse(path: Path, size: int, changed: int) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} should be a JSON file; it cannot be read: {error}") from error
    if not isinstance(content, dict) or not content:
        raise DataError(f"{path} should hold a JSON object with data sets' names as keys, not {_kind(content)}")
    return content


def template_lines(path: Path) -> list[str]:
    """Returns the templates of a text file, one per line; blank lines are skipped.

    Raises:
        DataError: If the file cannot be read, has none, or a line has no place for the class name.
    """
    lines = {number: line for number, line in enumerate(read_lines(path), start=1) if line}
    if not lines:
        raise DataError(f"{path} has no prompt templates; it should have one per line, such as: a photo of a {{c}}.")
    numbers = list(lines)
    return with_places(list(lines.values()), lambda index: f"{path}: line {numbers[index]}")


def templates_of(path: Path, key: str, value: Any) -> Templates:
    """Reads templates, each with a place for the class name; or a dictionary of prompts."""
    texts = texts_of(path, key, value)
    if isinstance(texts, list):
        return with_places(texts, lambda index: f"{path}: template {index + 1} of {key!r}")
    return texts


def texts_of(path: Path, key: str, value: Any) -> Templates:
    """A list of texts, or a dictionary of them."""
    if isinstance(value, dict):
        return {name: strings_of(path, f"{key}: {name}", prompts) for name, prompts in value.items()}
    return strings_of(path, key, value)


def strings_of(path: Path, key: str, value: Any) -> list[str]:
    """Checks a list of texts; raises DataError if the value is something else."""
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise DataError(f"{path}: {key!r} should have a list of texts, not {_kind(value)}")
    return list(value)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an empty list", str: "a text", type(None): "null"}
    if isinstance(value, list) and value:
        return "a list with other things in it"
    return names.get(type(value), f"the {type(value).__name__} {value!r}")
