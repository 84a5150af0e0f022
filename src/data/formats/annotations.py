"""Reads annotation files: text, JSON, JSON lines and paths. Errors name the file and the place in it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar

from testbed.errors import DataError, shortened
from testbed.paths import read_regular

_Kind = TypeVar("_Kind")

_KINDS: dict[type, str] = {str: "a text", int: "an integer", list: "a list", dict: "an object"}

# Alternative codes that people use for a language.
_OTHER_CODES = {"ja": "jp", "jp": "ja", "cn": "zh", "zh": "zho_Hans", "en": "eng_Latn", "iw": "he", "tl": "fil"}


def find_file(root: Path, candidates: Sequence[str], name: str, origin: str) -> Path:
    """The first existing file of some candidates.

    Args:
        root: The folder of the data set.
        candidates: Paths relative to it, the usual one first.
        name: The data set's name, for messages.
        origin: The published place of the file, for messages.

    Raises:
        DataError: If none exists.
    """
    for candidate in candidates:
        if (root / candidate).is_file():
            return root / candidate
    if not root.is_dir():
        raise DataError(
            f"data set {name!r}: the folder {root} does not exist; it should contain {candidates[0]} ({origin})"
        )
    others = f" (nor is there {', '.join(candidates[1:])})" if len(candidates) > 1 else ""
    raise DataError(f"data set {name!r}: {candidates[0]} is missing in {root}{others}; it comes from {origin}")


def read_text(path: Path) -> str:
    """A file of UTF-8 text, with or without a byte order mark.

    Raises:
        DataError: If it cannot be read, or is in another encoding.
    """
    try:
        return read_regular(path).decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start:,}: {error.reason}); convert it to UTF-8"
        ) from error


def text_lines(text: str) -> list[str]:
    """The lines of a text, ended by a line feed, with or without a carriage return.

    Includes blank lines. Other separators (U+2028, form feed), at which ``str.splitlines`` splits, belong to the line.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_json(path: Path) -> Any:
    """The value in a JSON file; raises DataError if it cannot be read or is not JSON."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}; the copy may be incomplete") from error


def read_json_lines(path: Path) -> list[Any]:
    """The values in a file with one JSON value in each line.

    Raises:
        DataError: If it cannot be read, or a line is not JSON.
    """
    values = []
    for number, line in enumerate(text_lines(read_text(path)), start=1):
        if line.strip():
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number:,} is not valid JSON: {error}") from error
    return values


def value_of(entry: Any, key: str, kind: type[_Kind], where: str) -> _Kind:
    """A value of an object in an annotation file.

    Args:
        entry: The object.
        key: The name of the value.
        kind: Its type; a text must be storable (no unpaired surrogate, no NUL).
        where: The file and the place in it, for messages.

    Raises:
        DataError: If there is no such value, or it has another type.
    """
    if not isinstance(entry, dict):
        raise DataError(f"{where} should be an object with {key!r}; it is {_shown(entry)}")
    if key not in entry:
        raise DataError(f"{where} should have {key!r}; it has {_cut(', '.join(map(str, entry))) or 'nothing'}")
    value = entry[key]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise DataError(f"{where}: {key!r} should be {_KINDS.get(kind, kind.__name__)}; it is {_shown(value)}")
    if isinstance(value, str):
        checked_text(value, f"{where}: {key!r}")
    return value


def texts(value: Any, where: str) -> list[str]:
    """A list of texts; raises DataError if it is something else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise DataError(f"{where} should be a list of texts; it is {_shown(value)}")
    return [checked_text(text, where) for text in value]


def checked_text(value: str, where: str) -> str:
    """A text that can be stored and tokenized; raises DataError if it contains an unpaired surrogate or NUL."""
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise DataError(f"{where} holds half of a surrogate pair, which is not text: {shortened(value, 200)}")
    if "\0" in value:
        raise DataError(f"{where} holds the character NUL: {shortened(value, 200)}")
    return value


def checked_path(name: str, where: str) -> str:
    """A path from an annotation file, relative and in POSIX form.

    Raises:
        DataError: If it is absolute, leads upwards or is empty.
    """
    checked_text(name, where)
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts):
        raise DataError(
            f"{where} has the path {shortened(name, 200)}, which leaves the image folder; give a path inside it"
        )
    if not posix.parts:
        raise DataError(f"{where} has an empty path for an image")
    return str(posix)


def unknown_language(name: str, language: str, known: Iterable[str]) -> DataError:
    """The error for a language that a data set does not have."""
    codes = sorted(known)
    lowered = language.lower()
    near = [_OTHER_CODES[lowered]] if _OTHER_CODES.get(lowered) in codes else []
    near += [code for code in codes if code.lower().startswith(lowered) or lowered.startswith(code.lower())]
    near += difflib.get_close_matches(language, codes, n=3, cutoff=0.7)
    unique = list(dict.fromkeys(near))[:3]
    suggestion = f"; did you mean {' or '.join(unique)}?" if unique else ""
    shown = ", ".join(codes) if len(codes) <= 40 else f"{', '.join(codes[:8])}, … ({len(codes)} in all)"
    return DataError(f"data set {name!r} has no captions in {language!r}{suggestion}; it has {shown or 'none'}")


def counts_differ(name: str, path: Path, captions: int, images_from: Path, images: int) -> DataError:
    """The error for a file of captions that does not match its list of images."""
    return DataError(
        f"data set {name!r}: {path} has {captions:,} captions, but {images_from} lists {images:,} images; there should"
        " be one for each image, in the same order"
    )


def merged(entries: Iterable[tuple[str, Sequence[str]]]) -> dict[str, list[str]]:
    """The captions of each image; those of repeated images are merged."""
    captions: dict[str, list[str]] = {}
    for image, own in entries:
        captions.setdefault(image, []).extend(own)
    return captions


def attributes(entry: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """The named values of an entry that are texts or numbers, to slice results by."""
    return {key: entry[key] for key in keys if isinstance(entry.get(key), str | int | float) and entry[key] != ""}


def _cut(text: str) -> str:
    """A text for messages; of a long one its beginning."""
    return text if len(text) <= 300 else f"{text[:300]}…"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "…"
