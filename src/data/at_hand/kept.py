"""Data sets that are kept in the cache folder: the data of objects, and images of archives that are not read in place.

Each has a folder of its own: ``index.json``, a `Listing`, and ``images``, the images one after another.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from testbed.calls import catchable, reason_of
from testbed.data.at_hand.labels import targets_of
from testbed.data.at_hand.pictures import rgb_of
from testbed.data.at_hand.placed import WHOLE, Listing, PlacedImages, common_folder
from testbed.data.decode import image_digest
from testbed.data.left_out import LeftOutLog
from testbed.data.picture_files import as_png
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, write_atomically

if TYPE_CHECKING:
    from PIL import Image

PREFIX = "object/"  # the settings of objects
FOLDER = "data"  # of the cache
ROUNDED = "images with values between the 256 levels of a channel, rounded to 8 bits"
IMAGES = "images"  # the file with them, in a folder of the cache
_INDEX = "index.json"


@dataclass(frozen=True)
class Aside:
    """The transforms and remarks of an object besides its pictures and labels.

    Attributes:
        transforms: The transforms that it applies to its pictures, which `Items.read` returns from before them.
        notes: Lines about what is not used of it.
        to_tensors: The transform to its pictures, if they are tensors without a transform that can be found.
    """

    transforms: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()
    to_tensors: tuple[Any, ...] = ()


@dataclass
class Items:
    """The samples of an object, which are read when they are needed.

    Attributes:
        label: A name for people.
        count: Their number.
        read: Maps a position to the image (a `Path`, encoded bytes, or a picture in memory) and its label.
        class_names: The name of each class, if the object has them.
        on_disk: True if every image is a file.
        aside: Returns what else the object has; may read samples.
    """

    label: str
    count: int
    read: Callable[[int], tuple[Any, Any]]
    class_names: Sequence[str] | None = None
    on_disk: bool = False
    aside: Callable[[], Aside] = Aside

    def id_of(self, position: int) -> str:
        """The name of a sample that has none of its own."""
        return str(position).zfill(len(str(self.count - 1)))


def keep(items: Items) -> str:
    """Keeps the samples of an object, unless they are kept already, and returns the name of their setting.

    Images that are files stay where they are; all others are written into the cache folder.

    Raises:
        DataError: If an image or a label cannot be used.
    """
    if items.count == 0:
        raise DataError(f"{items.label} has no samples")
    return PREFIX + (_keep_files(items) if items.on_disk else _keep_images(items))


def kept(name: str) -> PlacedImages:
    """The images of a setting of objects; raises DataError if they are no longer in the cache folder."""
    folder = _folder(name)
    listing = _read(folder)
    if listing is None:
        raise DataError(f"the data {name} are not in {folder.parent}; pass the object to testbed.evaluate again")
    return PlacedImages(name, listing)


def listing_of(key: str, build: Callable[[Writer], Listing]) -> Listing:
    """The listing that is kept under a key; it is built first if there is none."""
    folder = cache_dir(FOLDER) / f"file-{key}"
    listing = _read(folder)
    if listing is None:
        _write(folder, build)
        listing = _read(folder)
        assert listing is not None
    return listing


def keep_in(items: Items, writer: Writer) -> Listing:
    """Writes the samples of a file that was read before, and returns their listing."""
    listing, labels, leaving = Listing(files=[IMAGES]), [], LeftOutLog()
    for position, image, label, rounded in _samples(items):
        if rounded:
            leaving.out(items.id_of(position), ROUNDED, expected=True)
        listing.ids.append(items.id_of(position))
        listing.places.append(writer.add(image if isinstance(image, bytes) else as_png(image)))
        listing.digests.append(_digest(image))
        labels.append(label)
    listing.targets, listing.class_names = targets_of(labels, items.class_names, items.label)
    listing.sorted_texts = items.class_names is None and listing.class_names is not None
    listing.left_out = list(leaving.found())
    return listing


class Writer:
    """Writes images one after another into one file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = 0

    def add(self, data: bytes) -> tuple[int, int, int]:
        """Writes an image, and returns its place in a `Listing` whose first file is this one."""
        self._file.write(data)
        place = (0, self._end, len(data))
        self._end += len(data)
        return place


# Objects ----------------------------------------------------------------------------------------------------------


def _keep_images(items: Items) -> str:
    """Keeps images. New ones are read twice: the first time gives the name, and shows whether they are kept already."""
    hasher, labels, digests, leaving = hashlib.sha256(), [], [], LeftOutLog()
    for position, image, label, rounded in _samples(items):
        if rounded:
            leaving.out(items.id_of(position), ROUNDED, expected=True)
        digests.append(_digest(image))
        labels.append(label)
        hasher.update(f"{digests[-1]}\n".encode())
    targets, names = targets_of(labels, items.class_names, items.label)
    name = _named(items.label, hasher.hexdigest(), targets, names)
    folder = _folder(name)
    if _read(folder) is None:
        ids = [items.id_of(position) for position in range(items.count)]
        texts = items.class_names is None and names is not None
        empty = Listing(ids, targets, names, [IMAGES], [], digests, list(leaving.found()), texts)
        _write(folder, lambda writer: replace(empty, places=list(_written(items, digests, writer))))
    return name


def _written(items: Items, digests: Sequence[str], writer: Writer) -> Iterator[tuple[int, int, int]]:
    for position, image, _, _ in _samples(items):
        if _digest(image) != digests[position]:
            raise DataError(
                f"{items.label}: sample {position} is another image each time that it is read; an evaluation needs a"
                " data set without random transforms"
            )
        yield writer.add(image if isinstance(image, bytes) else as_png(image))


def _samples(items: Items) -> Iterator[tuple[int, bytes | Image.Image, Any, bool]]:
    """Yields position, encoded bytes or RGB image, label, and whether values were rounded."""
    for position in range(items.count):
        where = f"{items.label}: sample {position}"
        try:
            with catchable():
                image, label = items.read(position)
            rounded = False
            if isinstance(image, Path):
                image = image.read_bytes()
            elif not isinstance(image, bytes):
                image, rounded = rgb_of(image, where)
        except DataError:
            raise
        except Exception as error:  # the user's own code may raise anything
            raise DataError(f"{where} cannot be read: {reason_of(error)}") from error
        yield position, image, label, rounded


def _digest(image: bytes | Image.Image) -> str:
    """Hashes pixels, not the file made of them, which depends on the encoder."""
    if isinstance(image, bytes):
        return image_digest(image)
    return digest_bytes(f"{image.width} {image.height}\n".encode(), image.tobytes())


def _keep_files(items: Items) -> str:
    samples = [items.read(position) for position in range(items.count)]
    listing = listing_of_files(
        [path for path, _ in samples], [label for _, label in samples], items.class_names, items.label
    )
    digests = PlacedImages(items.label, listing).digests(range(items.count))
    name = _named(
        items.label, digest_bytes(json.dumps([listing.ids, digests]).encode()), listing.targets, listing.class_names
    )
    folder = _folder(name)
    if _read(folder) != listing:  # the same images may lie elsewhere now
        folder.mkdir(exist_ok=True)
        write_atomically(folder / _INDEX, json.dumps(listing.as_object()).encode())
    return name


def listing_of_files(
    paths: Sequence[Path],
    labels: Sequence[Any],
    class_names: Sequence[str] | None,
    where: str,
    base: Path | None = None,
) -> Listing:
    """Lists files that hold one image each; a sample's id is its path relative to the folder that contains all of them.

    Args:
        paths: The files.
        labels: The label of each.
        class_names: The names of the classes, if they are known.
        where: The data set, for messages.
        base: The folder of relative paths; default the working folder.

    Raises:
        DataError: If no file is there, or a label cannot be used.
    """
    if not paths:
        raise DataError(f"{where} has no images")
    targets, names = targets_of(labels, class_names, where)
    remote = next((str(path) for path in paths if re.search(r"(^|/)\w{2,}:/+\w", str(path))), None)
    if remote is not None:
        raise DataError(f"{where} lists {remote}; nothing is downloaded: list files")
    files = _found_files(paths, base or Path())
    if not any(os.path.exists(file) for file in files):
        raise DataError(
            f"{where}: none of the {len(files):,} images exist; the first would be {files[0]}; relative paths are"
            f" relative to {os.path.abspath(base or Path())}"
        )
    root = common_folder(files)
    ids = [os.path.relpath(file, root) for file in files]
    places = [(number, 0, WHOLE) for number in range(len(files))]
    texts = class_names is None and names is not None
    return Listing(ids, targets, names, files, places, [""] * len(files), sorted_texts=texts)


def _found_files(paths: Sequence[Path], base: Path) -> list[str]:
    """Absolute paths of files; if none is there as written, with the slashes of Windows, or in a folder beside."""
    first = [os.path.abspath(base / path) for path in paths]
    if any(os.path.exists(file) for file in first):
        return first
    if any("\\" in str(path) for path in paths):
        turned = [os.path.abspath(base / str(path).replace("\\", "/")) for path in paths]
        return turned if any(os.path.exists(file) for file in turned) else first
    names = [os.path.relpath(file, os.path.abspath(base)) for file in first]
    folders = [os.path.abspath(entry.path) for entry in os.scandir(base) if entry.is_dir()]
    holding = [folder for folder in folders if os.path.exists(os.path.join(folder, names[0]))]
    return [os.path.join(holding[0], name) for name in names] if len(holding) == 1 else first


def _folder(name: str) -> Path:
    """The folder of the data of an object, whatever it is called."""
    return cache_dir(FOLDER) / re.sub(r"\W", "", name.rpartition("-")[2])


# Folders in the cache ---------------------------------------------------------------------------------------------


def _named(label: str, content: str, targets: Sequence[int], names: Sequence[str] | None) -> str:
    """A name for people, and a digest of images, labels and class names."""
    whole = digest_bytes(json.dumps([content, list(targets), None if names is None else list(names)]).encode())
    plain = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:40]
    return f"{plain or 'data'}-{whole[:12]}"


def _read(folder: Path) -> Listing | None:
    """The listing in a folder, if it is complete."""
    try:
        listing = Listing.from_object(json.loads((folder / _INDEX).read_bytes()))
        listing.files = [str(folder / file) if file == IMAGES else file for file in listing.files]
        end = max(
            (offset + size for number, offset, size in listing.places if size != WHOLE and number == 0), default=0
        )
        whole = listing.files[:1] != [str(folder / IMAGES)] or (folder / IMAGES).stat().st_size == end
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return listing if whole else None


def _write(folder: Path, build: Callable[[Writer], Listing]) -> None:
    """Makes a folder as a whole, or not at all.

    Raises:
        DataError: If the disk is full, or the folder cannot be written.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name[:40]}.", dir=folder.parent))
    try:
        with (temporary / IMAGES).open("wb") as file:
            listing = build(Writer(file))
        if IMAGES not in listing.files:
            (temporary / IMAGES).unlink()
        (temporary / _INDEX).write_bytes(json.dumps(listing.as_object()).encode())
        if _read(folder) is None:  # else another process has made it in the meantime
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(temporary, folder)
    except OSError as error:
        if _read(folder) is None:
            raise DataError(f"the images cannot be written into {folder.parent}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
