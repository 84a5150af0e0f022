"""The known sources: files at fixed commits, with digests; ``sources.tsv`` lists them."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from testbed.data.remote_folder import download_file
from testbed.errors import DataError
from testbed.extensions.published.forms.mteb import as_table
from testbed.paths import cache_dir, read_regular, write_atomically

MANIFEST = Path(__file__).parent / "sources.tsv"
HOST = "https://raw.githubusercontent.com"
_NAMED = 3


@dataclass(frozen=True)
class SourceFile:
    """A published file.

    Attributes:
        source: The source's name, such as ``timm``.
        repository: ``owner/name`` on GitHub.
        commit: Commit of the file's version.
        path: Path in the repository. With a ``*``, it was collected from several files and cannot be downloaded
            directly.
        file: Path in a folder with the files of all sources.
        bytes: Its size.
        sha256: Its digest.
        licence: SPDX identifier.
        date: Date of the commit, such as ``2026-06-27``; empty if unknown.
        form: Format of the file.
        what: Description of its contents.
    """

    source: str
    repository: str
    commit: str
    path: str
    file: str
    bytes: int
    sha256: str
    licence: str
    date: str
    form: str
    what: str

    @property
    def collected(self) -> bool:
        """True if it was collected from several files of the repository."""
        return "*" in self.path

    @property
    def url(self) -> str:
        """The URL for downloading it."""
        return f"{HOST}/{self.repository}/{self.commit}/{self.path}"


@cache
def known_files() -> tuple[SourceFile, ...]:
    """Returns all files of the manifest."""
    with MANIFEST.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file, delimiter="\t"))
    return tuple(SourceFile(**{**row, "bytes": int(row["bytes"])}) for row in rows)


def usual_place(name: str) -> int:
    """The sort key of a source by default preference: in the manifest's order, then all others."""
    known = list(dict.fromkeys(file.source for file in known_files()))
    return known.index(name) if name in known else len(known)


def files_of(names: Sequence[str]) -> list[SourceFile]:
    """Returns the files of sources; without names, of all.

    Raises:
        DataError: If a source is unknown.
    """
    known = list(dict.fromkeys(file.source for file in known_files()))
    if unknown := [name for name in names if name not in known]:
        raise DataError(f"unknown source {unknown[0]!r}; the sources are {', '.join(known)}")
    return [file for file in known_files() if not names or file.source in names]


def in_folder(folder: Path, wanted: Sequence[SourceFile]) -> tuple[dict[SourceFile, Path], list[SourceFile]]:
    """Finds the files of sources in a folder: by source (``timm/results-imagenet.csv``), or as in a clone.

    Returns:
        The files that were found, and those that are missing.

    Raises:
        DataError: If a file has another content, or none are found.
    """
    found: dict[SourceFile, Path] = {}
    for wanted_item in wanted:
        places = [folder / wanted_item.file, *([] if wanted_item.collected else [folder / wanted_item.path])]
        path = next((place for place in places if place.is_file()), None)
        if path is not None:
            _check(path, wanted_item)
        elif wanted_item.collected:
            path = _collect(folder, wanted_item)
        if path is not None:
            found[wanted_item] = path
    if not found:
        raise DataError(
            f"{folder} holds no file of {', '.join(dict.fromkeys(wanted_item.source for wanted_item in wanted))}:"
            f" neither {wanted[0].file} nor {wanted[0].path}, as in a clone of {wanted[0].repository}, for example"
        )
    return found, [wanted_item for wanted_item in wanted if wanted_item not in found]


def downloaded(
    wanted: Sequence[SourceFile], say: Callable[[str], None]
) -> tuple[dict[SourceFile, Path], list[SourceFile]]:
    """Returns the files of sources in the cache folder, after downloading missing ones.

    Args:
        wanted: The files.
        say: Called with messages about downloads and their sizes.

    Returns:
        The files, and those that cannot be downloaded because they were collected from several files.

    Raises:
        DataError: If a file cannot be downloaded, or has another digest.
    """
    places = {file: _cached(file) for file in wanted}
    lacking = [each for each, place in places.items() if not place.is_file() and not each.collected]
    for source in dict.fromkeys(file.source for file in lacking):
        files = [file for file in lacking if file.source == source]
        size = sum(file.bytes for file in files) / 1e6
        number = "1 file" if len(files) == 1 else f"{len(files)} files"
        say(f"downloading {number} of {source} from {files[0].repository} ({size:,.1f} MB)")
        for file in files:
            places[file].parent.mkdir(parents=True, exist_ok=True)
            remedy = f"run the same command again to resume, or use a clone of {file.repository} with --from"
            if not download_file(file.url, places[file], remedy, file.sha256):
                raise DataError(f"{file.url} does not exist (404)")
    there = {source_file: place for source_file, place in places.items() if place.is_file()}
    return there, [file for file in wanted if file not in there]


def _cached(file: SourceFile) -> Path:
    return cache_dir("published") / file.commit / file.file


def _collect(folder: Path, wanted: SourceFile) -> Path | None:
    """Collects a table from several files of a clone; None if it has none of them.

    Raises:
        DataError: If the clone is at another commit.
    """
    if next(folder.glob(wanted.path), None) is None:
        return None
    content = as_table(folder, wanted.path).encode()
    if hashlib.sha256(content).hexdigest() != wanted.sha256:
        raise DataError(
            f"{wanted.path} in {folder} differs from {wanted.repository} at {wanted.commit[:7]};"
            " check"
            " out that commit, or add the results of a model with testbed published add"
            f" {folder}/results/MODEL --source {wanted.source}"
        )
    place = _cached(wanted)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(place, content)
    return place


def _check(path: Path, wanted: SourceFile) -> None:
    try:
        found = hashlib.sha256(read_regular(path)).hexdigest()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if found != wanted.sha256:
        raise DataError(
            f"{path} is not {wanted.path} of {wanted.repository} at {wanted.commit[:7]}: its SHA-256 is {found[:12]}…,"
            f" not {wanted.sha256[:12]}…; check out that commit, or add this version with testbed published add {path}"
            f" --source {wanted.source}"
        )
