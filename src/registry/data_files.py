"""Distinguishes data files from lists of names among the words of a command, by their content."""

from __future__ import annotations

import csv
import glob
import itertools
import mimetypes
import os
import re
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import UnknownNameError
from testbed.paths import expanded

PREFIX = "file/"  # the settings of data files
TABLE, LINES, PARQUET, ZIP, TAR, ARRAYS = "table", "lines", "parquet", "zip", "tar", "arrays"
EXPLICIT = "csv:"  # in front of the path of a table
FORMS = (
    "a table (CSV, TSV, JSON Lines, parquet) with a column of images and one of labels, images and labels in a .npz of"
    " numpy or a file of torch.save, a zip or tar archive of class folders, or webdataset shards"
)

_HEAD = 1 << 16  # bytes
_MOST_SHARDS = 100_000
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def form_of(path: Path) -> str | None:
    """Returns the form of a data file, by its first bytes; None for any other file, such as a list of names.

    Raises:
        OSError: If it cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ARRAYS if _begins_as_arrays(head) and _holds_arrays(path) else ZIP
    if head.startswith(b"PAR1"):
        return PARQUET
    if head[257:262] == b"ustar" or (head.startswith(_COMPRESSED) and tarfile.is_tarfile(path)):
        return TAR
    try:
        text = head.decode("utf-8-sig", "strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        return TAR if path.suffix == ".tar" else None  # an archive from before ustar, or a damaged one
    if len(head) == _HEAD:  # a line that is cut off may lack fields: a picture in base64 is longer than what was read
        text = text[: text.rfind("\n") + 1] or text
    if re.match(r"\s*(\[\s*)?\{", text):
        return LINES
    return TABLE if _is_table(text, path.suffix.lower()) else None


def is_of_torch(path: Path) -> bool:
    """Checks whether an archive is one that torch.save wrote."""
    return any(name.partition("/")[2] == "data.pkl" for name in _members(path))


def _begins_as_arrays(head: bytes) -> bool:
    """Checks the name of a zip file's first member: listing a million of them takes seconds."""
    first = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return first.endswith(b".npy") or re.match(rb"[^/]+/(?:data\.pkl|\.|version|byteorder)", first) is not None


def _holds_arrays(path: Path) -> bool:
    names = _members(path)
    return is_of_torch(path) or (bool(names) and all(name.endswith(".npy") for name in names))


def _members(path: Path) -> list[str]:
    """The names in a zip file; none if it is damaged, which is reported where it is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return []


def separator_of(line: str) -> str:
    """Returns the separator of a table's fields, by its first line: a tab, comma or semicolon, else spaces."""
    return next((separator for separator in "\t,;" if separator in line), " ")


def is_picture(field: str) -> bool:
    """Checks whether a field names an image file, by its extension."""
    return (mimetypes.guess_type(field.strip(), strict=False)[0] or "").startswith("image/")


def _is_table(text: str, suffix: str) -> bool:
    """Checks whether the first lines have several fields each, and the name or a field shows that they list images."""
    lines = [line for line in itertools.islice(text.splitlines(), 2) if line.strip()]
    if not lines:
        return False
    separator = separator_of(lines[0])
    rows = [line.split() if separator == " " else next(csv.reader([line], delimiter=separator)) for line in lines]
    several = all(len(row) > 1 for row in rows)
    return several and (suffix in (".csv", ".tsv") or any(is_picture(field) for row in rows for field in row))


# Words ------------------------------------------------------------------------------------------------------------


def data_path(word: str) -> str | None:
    """Returns the path if a word names a data file, a folder of shards, or shards by ``{…}``; else None.

    Raises:
        UnknownNameError: If a word is marked as a table but is not one, or names shards of which some are missing.
    """
    explicit = word.startswith(EXPLICIT)
    path = expanded(word.removeprefix(EXPLICIT))
    try:
        if path.is_file():
            form = form_of(path)
            if explicit and form is None:
                raise UnknownNameError(f"{path} has one field in each line; a table needs an image and a label in each")
            return str(path) if form is not None else None
        if path.is_dir():
            return str(path) if _holds_shards(path) else None
    except OSError:  # for example a name that is too long, or no permission; other code reports these
        return None
    if explicit:
        raise UnknownNameError(f"there is no file {path}")
    return _shards(str(path))


def _holds_shards(folder: Path) -> bool:
    """Checks whether a folder has tar files, and no folders of classes."""
    there = [entry for entry in os.scandir(folder) if not entry.name.startswith(".")]
    return any(_is_shard(entry.name) for entry in there) and not any(entry.is_dir() for entry in there)


def _is_shard(name: str) -> bool:
    return name.endswith((".tar", ".tar.gz", ".tgz"))


def _shards(word: str) -> str | None:
    """Returns the shards that a pattern or braces name, written with braces."""
    if not _is_shard(word) or not re.search(r"[*?\[{]", word):
        return None
    if re.search(r"[*?\[]", word):
        shards = sorted(glob.glob(word))
        if not shards:
            raise UnknownNameError(f"no file matches {os.path.abspath(word)}")
        return in_braces(shards)
    paths = braces_expanded(word)
    missing = [path for path in paths if not os.path.isfile(path)]
    if missing:
        raise UnknownNameError(f"{word} names {len(paths)} files, of which {len(missing)} are missing: {missing[0]}, …")
    return word


def braces_expanded(text: str) -> list[str]:
    """The texts that braces stand for, as in a shell: ``a{0..2}``, ``a{00..10}``, ``a{x,y}``.

    Raises:
        UnknownNameError: If they are too many.
    """
    match = _BRACES.search(text)
    if match is None:
        return [text]
    numbers = _RANGE.fullmatch(match[1])
    options: Sequence[str] = match[1].split(",")
    if numbers is not None:
        first, last = int(numbers[1]), int(numbers[2])
        if not first <= last < first + _MOST_SHARDS:
            raise UnknownNameError(f"{text}: {match[0]} is not a range of at most {_MOST_SHARDS:,} numbers")
        options = [str(number).zfill(len(numbers[1])) for number in range(first, last + 1)]
    texts = [
        name for option in options for name in braces_expanded(text[: match.start()] + option + text[match.end() :])
    ]
    if len(texts) > _MOST_SHARDS:
        raise UnknownNameError(f"{text} stands for more than {_MOST_SHARDS:,} files")
    return texts


def _beginning(texts: Sequence[str]) -> str:
    """The longest text that all of these begin with."""
    same = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in same)


def in_braces(paths: Sequence[str]) -> str:
    """Writes several paths as one text, which `braces_expanded` reads."""
    if len(paths) == 1:
        return paths[0]
    start = _beginning(paths)
    end = _beginning([path[len(start) :][::-1] for path in paths])[::-1]
    while start and start[-1].isdigit():  # numbers of one width stay whole
        start = start[:-1]
    middles = [path[len(start) : len(path) - len(end)] for path in paths]
    numbers = [int(middle) if middle.isascii() and middle.isdigit() else -1 for middle in middles]
    whole = len({len(middle) for middle in middles}) == 1 and numbers == list(
        range(numbers[0], numbers[0] + len(numbers))
    )
    inner = f"{middles[0]}..{middles[-1]}" if whole and numbers[0] >= 0 else ",".join(middles)
    return f"{start}{{{inner}}}{end}"
