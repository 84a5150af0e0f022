"""Names of models that hold the path of a file or a folder of the user's own."""

from __future__ import annotations

import re
from pathlib import Path

# ``/path/model.onnx``, ``ARCHITECTURE,/path/weights.pth``, ``LIBRARY//path/to/folder``
_OWN = re.compile(r"(?P<before>(?:[^,/]+(?:/[^,/]+)?,|[\w.-]+/)?)(?P<path>/.+)")
_SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt", ".tar", ".onnx", ".pt2")
_UNUSUAL = re.compile(r"[^\w.-]+")


def own_path(name: str) -> tuple[str, Path] | None:
    """Splits a name into the part before the path, and the path; None for a name without one."""
    match = _OWN.fullmatch(name)
    return None if match is None else (match["before"], Path(match["path"]))


def short_names(path: Path) -> list[str]:
    """Yields names for a path from the shortest to the longest: the stem, then with the folders above it."""
    stem = path.name
    while (shorter := next((stem.removesuffix(suffix) for suffix in _SUFFIXES if stem.endswith(suffix)), stem)) != stem:
        stem = shorter
    folders = [_plain(part) for part in path.parent.parts if part != "/"]
    return ["/".join([*folders[len(folders) - count :], _plain(stem)]) for count in range(len(folders) + 1)]


def _plain(text: str) -> str:
    """A part of a path as a part of a name, without what patterns, options and the grammar of names use."""
    return _UNUSUAL.sub("_", text).strip("-_") or "model"
