"""Kinds of files by content, whatever their names: for reading them, and for describing unexpected ones."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from pathlib import Path

_HEAD = 512  # bytes
_LONGEST_HEADER = 100_000_000  # bytes, of safetensors' own reader
_LEGACY = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save before its archives: the pickle of a magic number
_STATE = "save the state dict of the network by itself: torch.save({}, OTHER)"
_ALONE = "evaluate it by its path alone, without an architecture"
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.")
AGAIN = "get it again"

# The first bytes → what the file is, and what to do.
_SIGNATURES = (
    (b"version https://git-lfs", "a Git LFS pointer: the file itself was not downloaded ('git lfs pull' does that)"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes them; convert its weights to a state dict of torch"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"BZh", "a bzip2 archive; unpack it"),
    (b"\xfd7zXZ\x00", "an xz archive; unpack it"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive; unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it"),
    (b"GGUF", "a GGUF file, which holds quantized weights of language models"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
)


def is_safetensors(path: Path) -> bool:
    """Checks whether a file begins as safetensors do: a length of eight bytes, then a JSON object."""
    with open(path, "rb") as file:
        head = file.read(9)
    return head[8:] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= _LONGEST_HEADER


def described(path: Path) -> str:
    """Describes a file, and what to do about it, as a part of a sentence that begins with the file.

    For a file in one of the formats of weights, it explains why it could not be read.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if not head:
        return "the file is empty; get it again"
    for tell in (_safetensors, _archive, _tar, _text, _program, _flat):
        said = tell(path, head)
        if said is not None:
            return said
    known = next((what for signature, what in _SIGNATURES if head.startswith(signature)), None)
    if known is not None:
        return f"it is {known}"
    return f"it is neither a file of torch.save nor of safetensors; it begins with the bytes {head[:8].hex(' ')}"


def part_of(path: Path) -> str:
    """Describes a file that is one of several parts of a checkpoint, by its name; empty if it is not one."""
    part = _PART.search(path.name)
    if part is None or int(part[2]) < 2:
        return ""
    return f"it is part {int(part[1])} of {int(part[2])} of a sharded checkpoint; {_JOIN}"


_JOIN = (
    "join the parts in one file: torch.save({name: tensor for part in PARTS for name, tensor in"
    " safetensors.torch.load_file(part).items()}, OTHER), or torch.load(part, weights_only=True) for parts of torch"
)


def _safetensors(path: Path, head: bytes) -> str | None:
    if not is_safetensors(path):
        return None
    length, size = int.from_bytes(head[:8], "little"), path.stat().st_size
    if size < 8 + length:
        return f"it is a safetensors file that is damaged or cut off: {size:,} bytes are less than its header; {AGAIN}"
    try:
        with open(path, "rb") as file:
            file.seek(8)
            header = json.loads(file.read(length))
        whole = (
            8
            + length
            + max((entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"), default=0)
        )
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return f"it is a safetensors file whose header is damaged; {AGAIN}"
    if size < whole:
        return f"it is a safetensors file that is damaged or cut off: it has {size:,} of {whole:,} bytes; {AGAIN}"
    return "it is a safetensors file that is damaged"


def _archive(path: Path, head: bytes) -> str | None:
    """Describes a ZIP, which several formats are."""
    if not head.startswith(b"PK\x03\x04"):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        cut = f"damaged, or was not written to its end; {AGAIN}"
        return f"it is {cut}" if _is_torch_archive(head) else f"it is a ZIP archive that is {cut}"
    if (program := _program_of(names)) is not None:
        return program
    if "data.pkl" in {name.partition("/")[2] for name in names}:
        return "it is an archive of torch.save that is damaged, or was not written to its end"
    if names and all(name.endswith(".npy") for name in names):
        return "it is an archive of NumPy arrays (.npz); convert them to a state dict of torch"
    if {"config.json", "model.weights.h5"} <= set(names):
        return "it is a model that Keras saved (.keras); convert its weights to a state dict of torch"
    return f"it is a ZIP archive that torch.save did not write, of {_some(names)}; unpack it"


def program_in(path: Path) -> str | None:
    """Describes a program that torch saved, which has weights in it but is not read as such; None for other files."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _program_of(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None


def _program_of(names: list[str]) -> str | None:
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner:
        return (
            f"it is a TorchScript archive, a program; {_ALONE}, or {_STATE.format('torch.jit.load(FILE).state_dict()')}"
        )
    if {"archive_format", "serialized_exported_program.json"} & {*names, *inner}:
        return (
            f"it is a program that torch.export saved (.pt2), not weights; {_ALONE}, or"
            f" {_STATE.format('torch.export.load(FILE).state_dict')}"
        )
    return None


def _is_torch_archive(head: bytes) -> bool:
    """Checks whether a file begins as torch.save begins its archives."""
    return re.match(rb"[^/]+/(?:data\.pkl|\.|version|byteorder)", head[30:]) is not None


def _tar(path: Path, head: bytes) -> str | None:
    if head[257:262] != b"ustar":
        return None
    try:
        with tarfile.open(path, "r:") as archive:
            names = [member.name for member in archive]
    except (tarfile.TarError, OSError, ValueError):
        return f"it is a TAR archive that is damaged or cut off; {AGAIN}"
    if {"pickle", "storages", "tensors"} <= {name.rpartition("/")[2] for name in names}:
        return (
            "it is a checkpoint in the TAR format that torch.save had before version 0.1.10, which can run code when it"
            " is read; if you trust it, save it anew: torch.save(torch.load(FILE, weights_only=False), OTHER)"
        )
    return f"it is a TAR archive of {_some(names)}; unpack it"


def _some(names: list[str]) -> str:
    files = [name for name in names if not name.endswith("/")]
    return f"{files[0]}{f' and {len(files) - 1} more' if len(files) > 1 else ''}" if files else "no files"


def _text(path: Path, head: bytes) -> str | None:
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8-sig") if error.start >= _HEAD - 4 else ""  # cut within a character
    start = text.lstrip()
    if not start or not all(char.isprintable() or char.isspace() for char in text):
        return None
    if any(head.startswith(signature) for signature, _ in _SIGNATURES):
        return None
    first = f"begins with {start.splitlines()[0][:40]!r}"
    if start.startswith("{"):
        return _json(path, first)
    if re.match(r"<!doctype html|<html|<head|<!--", start, re.IGNORECASE):
        return f"it is an HTML page instead of the file ({first}): an answer of the server, such as an error; {AGAIN}"
    if start.startswith("<?xml"):
        return f"it is an XML document instead of the file ({first}), such as a server's error; {AGAIN}"
    return f"it is a text that {first}"


def _json(path: Path, first: str) -> str:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError, RecursionError):
        return f"it is a text that {first}"
    parts = content.get("weight_map") if isinstance(content, dict) else None
    if isinstance(parts, dict) and parts:
        files = sorted({str(part) for part in parts.values()})
        return f"it is the index of a sharded checkpoint of {len(files)} files ({_some(files)}), not weights; {_JOIN}"
    keys = ", ".join(map(repr, list(content)[:4])) if isinstance(content, dict) else ""
    return f"it is a JSON file, not weights{f'; it has the entries {keys}' if keys else ''}"


def _program(path: Path, head: bytes) -> str | None:
    """Programs and weights of other libraries in binary formats without a signature."""
    if head[4:8] == b"TFL3":
        return "it is a TensorFlow Lite program, not weights of torch"
    if head[0] == 8 and len(head) > 3 and head[1] < 32 and head[2] in (0x12, 0x1A, 0x22, 0x2A, 0x32, 0x3A, 0x42):
        if head[1] == 1:
            return "it is a graph that TensorFlow saved (SavedModel), not weights of torch"
        return f"it is an ONNX program, not weights; {_ALONE}"
    is_map = 0x81 <= head[0] <= 0x8F or head[0] in (0xDE, 0xDF)
    after = head[{0xDE: 3, 0xDF: 5}.get(head[0], 1) :][:1]
    if is_map and after and (0xA0 <= after[0] <= 0xBF or after[0] in (0xD9, 0xDA)):
        return "it is a MessagePack file, as Flax writes them; convert its weights to a state dict of torch"
    with open(path, "rb") as file:
        file.seek(max(path.stat().st_size - 8, 0))
        if file.read() == b"\x57\xfb\x80\x8b\x24\x75\x47\xdb":
            return "it is the index of a TensorFlow checkpoint; convert its weights to a state dict of torch"
    return None


def _flat(path: Path, head: bytes) -> str | None:
    """Flattens a pickle."""
    if head.startswith(_LEGACY):
        return f"it is a file of torch.save (in its format before version 1.6) that is damaged or cut off; {AGAIN}"
    if head[:1] == b"\x80" and head[1:2] <= b"\x05":
        return "it is a pickle that torch.load does not understand, or is damaged"
    return None
