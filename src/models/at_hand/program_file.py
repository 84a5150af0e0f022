"""Files that hold a program: ONNX graphs, programs of torch.export, TorchScript. The content decides, not the name."""

from __future__ import annotations

import os
import re
import zipfile
from functools import lru_cache
from pathlib import Path

from testbed.errors import WeightsError

ONNX, EXPORTED, SCRIPT = "ONNX graph", "exported program", "TorchScript program"
SUFFIXES = {".onnx": ONNX, ".pt2": EXPORTED}
_HEAD = 64  # bytes
# How an ONNX model begins: the version of its format, then the name of what wrote it, or the next fields.
_ONNX_HEAD = re.compile(rb"\x08[\x01-\x1f](?:[\x12\x1a\x22\x32\x3a]|\x28[\x00-\xff]|$)", re.DOTALL)
# A tensor of an ONNX model whose numbers lie in another file: the key "location" and that file's name.
_LOCATION = re.compile(rb"\n\x08location\x12(.)", re.DOTALL)


def kind_of(path: Path) -> str | None:
    """Returns `ONNX`, `EXPORTED` or `SCRIPT` by the content of a file; None for any other file.

    It imports nothing heavy, and runs nothing.
    """
    try:
        stamp = os.stat(path)
        return _kind_of(path, stamp.st_mtime_ns, stamp.st_size) if path.is_file() else None
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=256)
def _kind_of(path: Path, modified: int, size: int) -> str | None:
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_archive(path)
    return ONNX if path.suffix == ".onnx" or (size > _HEAD and _ONNX_HEAD.match(head)) else None


def _kind_of_archive(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[2] or name for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return None
    if {"archive_format", "serialized_exported_program.json"} & names:
        return EXPORTED
    return SCRIPT if "constants.pkl" in names and any(name.startswith("code/") for name in names) else None


def external_files(path: Path) -> list[Path]:
    """The files beside an ONNX model that hold numbers of it.

    Raises:
        WeightsError: If one is missing, or lies outside the model's folder.
    """
    content = path.read_bytes()
    names = {
        content[match.end() : match.end() + match[1][0]].decode("utf-8", "replace")
        for match in _LOCATION.finditer(content)
    }
    files = [path.parent / name for name in sorted(names)]
    for file in files:
        if path.parent.resolve() not in file.resolve().parents:
            raise WeightsError(f"{path} keeps numbers in {file}, which is not in its own folder; they are not read")
        if not file.is_file():
            raise WeightsError(f"{path} keeps numbers in the file {file}, which does not exist")
    return files


def refuse_objects(path: Path) -> None:
    """Checks that a program of torch.export holds nothing but tensors and its graph.

    Raises:
        WeightsError: If loading it would run code that it brings.
    """
    with zipfile.ZipFile(path) as archive:
        names = [name.partition("/")[2] or name for name in archive.namelist()]
    refused = next(
        (
            name
            for name in names
            if name.startswith("data/aotinductor/")
            or (name.startswith("data/constants/") and not re.search(r"/(?:tensor_\d+|[^/]*\.(?:json|pt))$", name))
        ),
        None,
    )
    if refused is not None:
        raise WeightsError(
            f"{path} holds the object {refused}, which is neither a tensor nor its graph; it is not opened, because"
            " that could run code"
        )
