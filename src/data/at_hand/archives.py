"""Archives of images: class folders in a zip or tar file, and shards as the package webdataset writes them.

Nothing is unpacked under the names in an archive. Images in a plain tar file are read in place; those in all other
archives are written into the cache folder once.
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from testbed.calls import first_line, reason_of
from testbed.data.at_hand.kept import IMAGES, Writer, listing_of
from testbed.data.at_hand.labels import targets_of
from testbed.data.at_hand.placed import Listing
from testbed.data.content import remembered_digest
from testbed.data.decode import IMAGE_EXTENSIONS, image_digest
from testbed.data.left_out import HIDDEN, NO_SAMPLE, OTHER_EXTENSION, OUTSIDE, LeftOutLog, is_hidden
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes

_REVISION = 1  # of what is kept in the cache
_SPLITS = frozenset({"test", "train", "val", "valid", "validation", "dev", "trainval"})
_LABELS = ("cls", "json", "label", "index")  # the last part of a label's extension in a shard
_IN_JSON = ("label", "cls", "class", "target", "class_id", "label_id")
_LARGEST_IMAGE, _LARGEST_LABEL = 1 << 30, 1 << 20  # bytes


class _Member(NamedTuple):
    """A plain file in an archive: its name, its content, and the place of this in the archive if it is not packed."""

    name: str
    data: bytes
    offset: int | None


@dataclass
class _Members:
    """The members of archives.

    Attributes:
        images: Name → place and digest.
        labels: Name → content.
        archive: Name → the archive that it is in.
    """

    images: dict[str, tuple[tuple[int, int, int], str]] = field(default_factory=dict)
    labels: dict[str, bytes] = field(default_factory=dict)
    archive: dict[str, Path] = field(default_factory=dict)


def open_archives(paths: Sequence[Path], name: str) -> Listing:
    """The samples of one data set in archives; raises DataError if one is damaged, or has no folders or labels."""
    key = digest_bytes(json.dumps([_REVISION, *map(remembered_digest, paths)]).encode())
    listing = listing_of(key, lambda writer: _listing(paths, name, writer))
    listing.files = listing.files or [str(path.resolve()) for path in paths]
    return listing


def _listing(paths: Sequence[Path], name: str, writer: Writer) -> Listing:
    members, leaving = _Members(), LeftOutLog()
    in_place = all(_is_plain_tar(path) for path in paths)
    for number, path in enumerate(paths):
        for member in _members(path, leaving):
            _take(member, path, number if in_place else None, writer, members, leaving)
    if not members.images:
        raise DataError(
            f"{name} has no images{_instead(leaving)}; it should have class folders with images in them, or images and"
            " labels"
        )
    listing = _samples_of_shards(name, members, leaving) if members.labels else _class_folders(name, members, leaving)
    listing.files = [] if in_place else [IMAGES]
    listing.left_out = list(leaving.found())
    return listing


def _instead(leaving: LeftOutLog) -> str:
    """Describes the other files in an archive without images; an Excel workbook is such an archive."""
    names = [name for entry in leaving.found() for name in entry.names]
    if any(name.startswith("xl/") for name in names):
        return ": it is an Excel workbook (save the sheet as CSV)"
    return f", but other files, such as {names[0]}" if names else ""


def _take(
    member: _Member, path: Path, number: int | None, writer: Writer, members: _Members, leaving: LeftOutLog
) -> None:
    name = member.name
    if name in members.archive:
        raise DataError(f"two images or labels are named {name}, in {members.archive[name]} and {path}")
    extension = name.rpartition("/")[2].lower().rpartition(".")[2]
    if f".{extension}" in IMAGE_EXTENSIONS:
        place = writer.add(member.data) if number is None else (number, member.offset or 0, len(member.data))
        members.images[name] = (place, image_digest(member.data))
    elif extension in _LABELS and len(member.data) <= _LARGEST_LABEL:
        members.labels[name] = member.data
    else:
        leaving.out(name, OTHER_EXTENSION)
        return
    members.archive[name] = path


# Class folders ----------------------------------------------------------------------------------------------------


def _class_folders(name: str, members: _Members, leaving: LeftOutLog) -> Listing:
    """Finds images below one folder for each class, in torchvision's order; their parent may be anywhere."""
    folders = [PurePosixPath(image).parent.parts for image in members.images]
    root = 0
    while len({parts[root] if len(parts) > root else None for parts in folders}) == 1 and len(folders[0]) > root:
        root += 1
    if all(len(parts) == root for parts in folders):  # one folder has all images
        root -= 1
    if root < 0:
        raise DataError(
            f"{name} has images, but neither class folders (CLASS/IMAGE.jpg) nor labels (KEY.cls beside KEY.jpg)"
        )
    rows = []
    for (member, (place, digest)), parts in zip(members.images.items(), folders, strict=True):
        if len(parts) == root:
            leaving.out(member, OUTSIDE)
        else:
            rows.append((parts[root], member.split("/", root)[-1] if root else member, place, digest))
    classes = sorted({row[0] for row in rows})
    if set(classes) <= _SPLITS and len(classes) > 1:
        raise DataError(
            f"{name} has a folder for each split ({', '.join(classes)}); unpack it, and give the folder of one of them"
        )
    rows.sort(key=lambda row: (row[0], row[1].rpartition("/")))
    targets = [classes.index(row[0]) for row in rows]
    return Listing([row[1] for row in rows], targets, classes, [], [row[2] for row in rows], [row[3] for row in rows])


# Shards -----------------------------------------------------------------------------------------------------------


def _samples_of_shards(name: str, members: _Members, leaving: LeftOutLog) -> Listing:
    """Yields images and labels of one key: the name up to the first dot after the last slash."""
    images: dict[str, str] = {}
    labels: dict[str, Any] = {}
    for member in members.images:
        key = _key(member)
        if key in images:
            raise DataError(f"{name}: the sample {key} has two images, {images[key]} and {member}")
        images[key] = member
    for member, data in members.labels.items():
        label = _label(member, data, name)
        key = _key(member)
        if label is not None and labels.setdefault(key, label) != label:
            raise DataError(f"{name}: the sample {key} has two labels, {labels[key]!r} and {label!r}")
    for key in [key for key in labels if key not in images]:
        leaving.out(key, NO_SAMPLE)
    without = next((key for key in images if key not in labels), None)
    if without is not None:
        raise DataError(
            f"{name}: the sample {without} has no label; expected {without}.cls with the index of its class"
        )
    targets, names = targets_of([labels[key] for key in images], None, name)
    rows = [members.images[member] for member in images.values()]
    return Listing(list(images), targets, names, [], [place for place, _ in rows], [digest for _, digest in rows])


def _key(member: str) -> str:
    folder, slash, base = member.rpartition("/")
    return f"{folder}{slash}{base.partition('.')[0]}"


def _label(member: str, data: bytes, name: str) -> str | int | None:
    """The label in a member; None for a JSON object without one."""
    try:
        text = data.decode("utf-8-sig").strip()
        if not member.endswith(".json"):
            return text
        content = json.loads(text)
        if isinstance(content, dict):
            content = next((content[key] for key in _IN_JSON if key in content), None)
        return content if isinstance(content, str | int) else None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: the label {member} cannot be read: {error}") from error


# Members ----------------------------------------------------------------------------------------------------------


def _is_plain_tar(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(262)[257:262] == b"ustar"


def _members(path: Path, leaving: LeftOutLog) -> Iterator[_Member]:
    """The plain files in an archive, in its order.

    Raises:
        DataError: If it is damaged, has a name that leaves it, or is encrypted.
    """
    try:
        yield from (_zipped if zipfile.is_zipfile(path) else _tarred)(path, leaving)
    except DataError:
        raise
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError) as error:
        raise DataError(f"the archive {path} is damaged or cannot be read: {first_line(str(error))}") from error
    except Exception as error:  # damaged headers raise almost anything
        raise DataError(f"the archive {path} is damaged: {reason_of(error)}") from error


def _zipped(path: Path, leaving: LeftOutLog) -> Iterator[_Member]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                raise DataError(f"the archive {path} is encrypted; unpack it, and give the folder")
            name = _checked(member.filename, member.file_size, path)
            if _is_read(name, leaving):
                yield _Member(name, archive.read(member), None)


def _tarred(path: Path, leaving: LeftOutLog) -> Iterator[_Member]:
    with tarfile.open(path, "r:*", encoding="utf-8") as archive:
        for member in archive:
            if member.isdir():
                continue
            name = _checked(member.name, member.size, path)
            if not member.isfile() or member.issparse():
                leaving.out(name, "links and other members that are not plain files left out")
                continue
            file = archive.extractfile(member) if _is_read(name, leaving) else None
            if file is not None:
                data = file.read()
                if len(data) != member.size:
                    raise DataError(f"the archive {path} is truncated in {name}; download it again")
                yield _Member(name, data, member.offset_data)


def _checked(name: str, size: int, path: Path) -> str:
    """The name of a member without a leading ``./``."""
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or ".." in parts or re.match(r"[A-Za-z]:[/\\]", name):
        raise DataError(f"the archive {path} is refused: its member {name!r} points outside it")
    if not 0 <= size <= _LARGEST_IMAGE:
        raise DataError(f"the archive {path} is refused: its member {name!r} has {size:,} bytes")
    return name.removeprefix("./")


def _is_read(name: str, leaving: LeftOutLog) -> bool:
    hidden = any(is_hidden(part) for part in name.split("/"))
    if hidden:
        leaving.out(name, HIDDEN)
    return not hidden
