"""Data files by their form: tables of images and labels, archives, shards."""

from __future__ import annotations

from pathlib import Path

from testbed.data.at_hand.archives import open_archives
from testbed.data.at_hand.array_files import read_arrays
from testbed.data.at_hand.kept import Writer, keep_in, listing_of, listing_of_files
from testbed.data.at_hand.placed import Listing, PlacedImages
from testbed.data.at_hand.tables import read_table
from testbed.data.content import remembered_digest
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes
from testbed.registry.data_files import ARRAYS, FORMS, TAR, ZIP, braces_expanded, form_of

_REVISION = 1  # of what is kept in the cache


def open_file(place: str, name: str) -> PlacedImages:
    """The images of a data file.

    Args:
        place: The path of a file, of a folder of tar files, or of several tar files by ``{…}``.
        name: The data set's name, for messages.

    Raises:
        DataError: If it is missing or damaged, or has no images and labels.
    """
    return PlacedImages(name, _listing(place))


def _listing(place: str) -> Listing:
    path = Path(place)
    if path.is_dir():
        shards = sorted(entry for entry in path.iterdir() if entry.name.endswith((".tar", ".tar.gz", ".tgz")))
        if not shards:
            raise DataError(f"the folder {path} has no tar files")
        return open_archives(shards, place)
    paths = [Path(name) for name in braces_expanded(place)]
    missing = next((path for path in paths if not path.is_file()), None)
    if missing is not None:
        raise DataError(f"there is no file {missing}")
    form = form_of(path) if len(paths) == 1 else TAR
    if form in (ZIP, TAR):
        return open_archives(paths, place)
    if form is None:
        raise DataError(f"{path} is not data in a known form; expected {FORMS}")
    items = read_arrays(path) if form == ARRAYS else read_table(path, form).items(path.stem, path.parent)
    if items.on_disk:
        rows = [items.read(position) for position in range(items.count)]
        return listing_of_files(
            [file for file, _ in rows], [label for _, label in rows], items.class_names, place, path.parent
        )
    key = digest_bytes(f"{_REVISION} {remembered_digest(path)}".encode())

    def build(writer: Writer) -> Listing:
        return keep_in(items, writer)

    return listing_of(key, build)
