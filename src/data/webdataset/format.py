"""The text of CLIP benchmark's webdataset format: reading and writing its metadata files, labels and captions.

A data set is a folder::

    classnames.txt                          one name per line, an empty one too
    zeroshot_classification_templates.txt   one per line, with {c}
    dataset_type.txt                        "retrieval" or "multilabel"; missing: classification
    <split>/nshards.txt                     the number of shards
    <split>/0.tar, <split>/1.tar, …         members KEY.webp and KEY.cls, KEY.npy or KEY.txt
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testbed.errors import DataError

CLASS_NAMES = "classnames.txt"
TEMPLATES = "zeroshot_classification_templates.txt"
DATASET_TYPE = "dataset_type.txt"
NSHARDS = "nshards.txt"
METADATA = (CLASS_NAMES, TEMPLATES, DATASET_TYPE)

IMAGE_EXTENSIONS = ("webp", "png", "jpg", "jpeg")  # the first that a sample has is its image
LABEL_EXTENSION = {"classification": "cls", "multilabel": "npy", "retrieval": "txt"}
KINDS = tuple(LABEL_EXTENSION)
ATTRIBUTES = "attributes"  # a kind of label that no data set declares: integers in KEY.npy, beside a class in KEY.cls

_MOST_SHARDS = 1_000_000
_ESCAPED = re.compile(r"(\\+)n")
_TO_ESCAPE = re.compile(r"(\\*)\n|(\\+)n")


class Metadata(NamedTuple):
    """The content of a data set's metadata files.

    Attributes:
        kind: ``"classification"``, ``"multilabel"`` or ``"retrieval"``.
        class_names: The name of each class, or None if there is no such file.
        templates: Prompts with ``{c}``, or None if there is no such file.
    """

    kind: str
    class_names: list[str] | None
    templates: list[str] | None


def read_metadata(root: Path) -> Metadata:
    """Reads kind, class names and templates of the data set in a folder.

    Raises:
        DataError: If a file cannot be read or has an unknown kind.
    """
    kind = (_read_text(root / DATASET_TYPE) or "").strip().lower() or "classification"
    if kind not in KINDS:
        raise DataError(f"{root / DATASET_TYPE} says {kind!r}; it should say one of {', '.join(KINDS)}")
    if kind == "retrieval":
        return Metadata(kind, None, None)
    return Metadata(kind, read_lines(root / CLASS_NAMES), read_lines(root / TEMPLATES))


def read_lines(path: Path) -> list[str] | None:
    """The lines of a file, including empty ones; None if there is no such file.

    Lines end only with ``\\n`` (or ``\\r\\n``): names may contain other Unicode separators.

    Raises:
        DataError: If the file cannot be read as UTF-8 text.
    """
    text = _read_text(path)
    return None if text is None else [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n") if text]


def write_lines(lines: Sequence[str], what: str) -> bytes:
    """The inverse of `read_lines`; raises DataError if a line contains a line break."""
    for line in lines:
        if "\n" in line or line.endswith("\r"):
            raise DataError(f"the {what} {line!r} contains a line break, but the format has one {what} per line")
    try:
        return "".join(f"{line}\n" for line in lines).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"a {what} cannot be written as UTF-8: {error}") from error


def read_nshards(folder: Path) -> int:
    """The number of shards of the split in a folder.

    Raises:
        DataError: If nshards.txt is missing or has no such number.
    """
    text = _read_text(folder / NSHARDS)
    if text is None:
        raise DataError(_without_nshards(folder))
    if not re.fullmatch(r"\s*[0-9]{1,7}\s*", text, re.ASCII) or not 1 <= int(text) <= _MOST_SHARDS:
        raise DataError(f"{folder / NSHARDS} says {text[:40]!r}; it should be the number of shards, such as 1")
    return int(text)


def shard_files(folder: Path) -> list[int]:
    """The numbers of the shard files in a folder, sorted."""
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return []
    return sorted(int(name[:-4]) for name in names if re.fullmatch(r"(0|[1-9][0-9]{0,6})\.tar", name, re.ASCII))


def splits(root: Path) -> list[str]:
    """The splits below a folder, sorted."""
    try:
        return sorted(
            entry.name for entry in root.iterdir() if not entry.name.startswith(".") and (entry / NSHARDS).is_file()
        )
    except OSError:
        return []


def _without_nshards(folder: Path) -> str:
    form = f"{folder.name}/{NSHARDS} with the number of shards, {folder.name}/0.tar and so on"
    if not folder.parent.is_dir():
        return f"the folder {folder.parent} does not exist; a webdataset contains {form}"
    if not folder.is_dir():
        others = splits(folder.parent)
        known = f"it has the split{'s' * (len(others) > 1)} {', '.join(others)}" if others else "it has no splits"
        return f"the split {folder.name!r} is missing in {folder.parent}: {known}; a webdataset contains {form}"
    count = len(shard_files(folder))
    remedy = f"create it with {count} if these are all of them" if count else "a webdataset holds " + form
    return f"{folder / NSHARDS} is missing (the folder has {count} shards named 0.tar, 1.tar, …); {remedy}"


def _read_text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8-sig")  # read_text would convert a lone \r to a line break
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}") from error


# Labels -----------------------------------------------------------------------------------------------------------


def read_label(kind: str, data: bytes) -> tuple[Any, int | None]:
    """A sample's target, and the number of classes if its label shows it.

    Args:
        kind: One of `KINDS`, or `ATTRIBUTES`.
        data: The content of its label.

    Returns:
        A class index and None; the class indices and the length of the vector; a list of captions and None; or a
        list of integers and None.

    Raises:
        ValueError: If the label is invalid; the message quotes it.
    """
    if kind == "classification":
        if not re.fullmatch(rb"\s*[+-]?[0-9]{1,18}\s*", data):
            raise ValueError(f"its label is {data[:40]!r}; it should be the index of a class, such as 7")
        return int(data), None
    if kind == "multilabel":
        return _read_vector(data)
    if kind == ATTRIBUTES:
        return _load_vector(data, "an integer for each attribute", "iu").tolist(), None
    try:
        return split_captions(data.decode("utf-8")), None
    except UnicodeDecodeError as error:
        raise ValueError(f"its captions are not UTF-8 text: {error}") from error


def _load_vector(data: bytes, content: str, kinds: str) -> Any:
    import numpy as np

    try:
        vector = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # numpy raises almost anything on files of other formats
        raise ValueError(f"its label is not an .npy file of numbers: {error}") from error
    if not isinstance(vector, np.ndarray) or vector.ndim != 1 or vector.dtype.kind not in kinds:
        form = f"{vector.dtype} {list(vector.shape)}" if isinstance(vector, np.ndarray) else "an archive of arrays"
        raise ValueError(f"its label is {form}; it should be a vector with {content}")
    return vector


def _read_vector(data: bytes) -> tuple[list[int], int]:
    import numpy as np

    vector = _load_vector(data, "0 or 1 for each class", "bifu")
    if not np.isin(vector, (0, 1)).all():
        odd = vector[~np.isin(vector, (0, 1))][0]
        raise ValueError(f"its label contains {odd}; it should have 0 or 1 for each class")
    return np.flatnonzero(vector).tolist(), len(vector)


def write_label(kind: str, target: Any, num_classes: int | None) -> bytes:
    """The inverse of `read_label`: the content of a label.

    Args:
        kind: One of `KINDS`.
        target: A class index, indices of classes, or captions.
        num_classes: The number of classes, if known: the length of a label vector.

    Raises:
        ValueError: If the target does not have this kind; the message quotes it.
    """
    if kind == "retrieval":
        if not isinstance(target, list | tuple) or not all(isinstance(text, str) for text in target):
            raise ValueError(f"its target is {target!r}; it should be a list of captions")
        return join_captions(target).encode()
    import operator

    indices = [target] if kind == "classification" else target
    try:
        numbers = [operator.index(index) for index in indices]
    except TypeError as error:
        wanted = "the index of a class" if kind == "classification" else "a list of indices of classes"
        raise ValueError(f"its target is {target!r}; it should be {wanted}") from error
    if any(number < 0 or (num_classes is not None and number >= num_classes) for number in numbers):
        there = f"there are {num_classes} classes" if num_classes is not None else "classes count from 0"
        raise ValueError(f"its target is {target!r}, but {there}")
    if kind == "classification":
        return str(numbers[0]).encode("ascii")
    import numpy as np

    if num_classes is None:
        raise ValueError("it is multi-label, which needs the number of classes; give class names")
    vector = np.zeros(num_classes, np.float32)
    vector[numbers] = 1
    file = io.BytesIO()
    np.save(file, vector, allow_pickle=False)
    return file.getvalue()


def split_captions(text: str) -> list[str]:
    """The captions in a sample's text, one per line; only ``\\n`` ends a line.

    CLIP benchmark writes a line break in a caption as a backslash and an n; this converts it back to a line break. If a
    caption contains a backslash and an n, `join_captions` doubles the backslash.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    return [_ESCAPED.sub(_unescape, line) for line in lines]


def join_captions(captions: Sequence[str]) -> str:
    """The inverse of `split_captions`, for any captions."""
    text = "\n".join(_TO_ESCAPE.sub(_escape, caption) for caption in captions)
    return text + "\n" if captions and not captions[-1] else text  # otherwise an empty last caption would be lost


def _unescape(match: re.Match[str]) -> str:
    count = len(match[1])
    return "\\" * (count // 2) + ("\n" if count % 2 else "n")


def _escape(match: re.Match[str]) -> str:
    return f"{match[1] * 2}\\n" if match[2] is None else f"{match[2] * 2}n"
