"""Indexes of the samples in shards: each shard is read once, and its index is cached.

Members of a tar archive are not compressed, so an offset and a size are enough to read an image. Nothing is unpacked to
disk.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from testbed.data.decode import image_digest
from testbed.data.file_index import FileIndex
from testbed.data.left_out import HIDDEN, NO_SAMPLE, LeftOutLog, is_hidden
from testbed.data.threads import Stop, StoppedError, reading_threads
from testbed.data.webdataset.format import ATTRIBUTES, IMAGE_EXTENSIONS, LABEL_EXTENSION, read_label
from testbed.errors import DataError

_BLOCK = 512  # bytes; of tar
_LARGEST_LABEL = 1 << 26
# Kind → extension of a label that is read → its kind; the first one is required.
_LABELS: dict[str, dict[str, str]] = {
    **{kind: {extension: kind} for kind, extension in LABEL_EXTENSION.items()},
    ATTRIBUTES: {"npy": ATTRIBUTES, LABEL_EXTENSION["classification"]: "classification"},
}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstandard"}
_LFS = b"version https://git-lfs"


@dataclass
class ShardIndex(FileIndex):
    """The samples of one shard, in their order.

    Attributes:
        keys: The name of each sample: the common prefix of its members.
        offsets: The offset of each image.
        sizes: The number of bytes of each image.
        labels: The targets, from `read_label`; of the kind `ATTRIBUTES` a pair: the class, or None, and the attributes.
        widths: The number of classes of each label, or None.
        digests: A digest of each image's content.
        left_out: Members that do not belong to a sample, as `LeftOut.as_object` has them; not a column.
    """

    WHAT, FOLDER, REVISION = "shard", "webdataset", 3
    COLUMNS = ("keys", "offsets", "sizes", "labels", "widths", "digests")

    keys: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    labels: list[Any] = field(default_factory=list)
    widths: list[int | None] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)


def index_shards(paths: Sequence[Path], kind: str) -> list[ShardIndex]:
    """The index of each shard; unchanged shards are not read again.

    Raises:
        DataError: If a shard cannot be read or is not in the format.
    """
    with reading_threads(len(paths)) as (threads, stop):  # both release the GIL

        def read(index: ShardIndex) -> ShardIndex:
            stop.raise_if_interrupted()
            return read_shard(Path(index.path), kind, stop)

        return list(threads.map(lambda path: ShardIndex.of(path, read, b"/", kind.encode()), paths))


# Reading ----------------------------------------------------------------------------------------------------------


@dataclass
class _Sample:
    """The members of one sample.

    Attributes:
        places: Extension → the place of an image or a label.
        content: Extension → a digest of an image, or a label.
        others: The extensions of the other members.
    """

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    content: dict[str, Any] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def read_shard(path: Path, kind: str, stop: Stop | None = None) -> ShardIndex:
    """Reads a shard from its beginning to its end.

    Raises:
        DataError: If it is not a plain tar archive, is truncated, has invalid members, or a sample is incomplete.
        StoppedError: If it is stopped.
    """
    samples: dict[str, _Sample] = {}
    leaving = LeftOutLog()
    try:
        with path.open("rb") as file:
            now = os.fstat(file.fileno())
            _check_beginning(path, file)
            for member in _members(path, file):
                if stop is not None:
                    stop.raise_if_interrupted()
                _take(path, file, member, kind, samples, leaving)
    except (DataError, StoppedError):
        raise
    except OSError as error:
        raise DataError(f"the shard {path} cannot be read: {error.strerror or error}") from error
    except Exception as error:  # tarfile raises almost anything on damaged headers
        raise DataError(f"the shard {path} is damaged or not a tar archive: {error}") from error
    index = ShardIndex(str(path), now.st_size, now.st_mtime_ns, now.st_ino, now.st_ctime_ns)
    for key, sample in samples.items():
        _check_dots(path, key, sample, kind)
        if sample.places:
            _add(index, key, sample, kind)
        else:
            leaving.out(f"{key}.{sample.others[0]}".removesuffix("."), NO_SAMPLE)
    index.left_out = [entry.as_object() for entry in leaving.found()]
    return index


def _check_dots(path: Path, key: str, sample: _Sample, kind: str) -> None:
    """Refuses names with dots in front of their extension, which would be samples if a key could have a dot."""
    images = [other for other in sample.others if other.rpartition(".")[2] in IMAGE_EXTENSIONS]
    labels = [other for other in sample.others if other.rpartition(".")[2] in _LABELS[kind]]
    whole = any(extension in sample.places for extension in IMAGE_EXTENSIONS)
    if images and (labels or not whole):
        raise DataError(
            f"the shard {path} has a member {key}.{images[0]}: a key ends at the first dot of the file's name, so this"
            f" is the part {images[0]!r} of the sample {key!r}, not an image of its own; write the names without dots"
        )


def _check_beginning(path: Path, file: BinaryIO) -> None:
    head = file.read(64)
    file.seek(0)
    for magic, name in _COMPRESSED.items():
        if head.startswith(magic):
            raise DataError(
                f"the shard {path} is compressed ({name}), but random access needs a plain tar archive;"
                " decompress it (images are compressed themselves)"
            )
    if head.startswith(_LFS):
        raise DataError(f"the shard {path} is a git-lfs pointer, not the file itself; run git lfs pull")


def _members(path: Path, file: BinaryIO) -> Iterator[tarfile.TarInfo]:
    """The regular files in a shard, each checked before it is used."""
    size = os.fstat(file.fileno()).st_size
    end = 0
    with tarfile.open(fileobj=file, mode="r:", encoding="utf-8") as archive:
        while (member := archive.next()) is not None:
            _check_member(path, member)
            blocks = -(-member.size // _BLOCK) if member.isreg() else 0
            end = member.offset_data + blocks * _BLOCK
            if end > size:
                raise DataError(f"the shard {path} is truncated: {member.name!r} extends past its end; get it again")
            if member.isreg():
                yield member
    _check_end(path, file, end)


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    name = member.name
    if member.size < 0 or member.offset_data <= member.offset:  # otherwise tarfile would loop forever
        raise DataError(f"the shard {path} is damaged: its member {name!r} has {member.size} bytes")
    if not (member.isfile() or member.isdir()) or member.issparse():
        kind = "a link" if member.issym() or member.islnk() else "not a plain file"
        raise DataError(f"the shard {path} is refused: its member {name!r} is {kind}; shards contain only plain files")
    if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name):
        raise DataError(f"the shard {path} is refused: its member {name!r} points outside it")
    if not name.isprintable() and any("\ud800" <= character <= "\udfff" for character in name):
        raise DataError(f"the shard {path}: the name of its member {name!r} is not UTF-8")


def _check_end(path: Path, file: BinaryIO, end: int) -> None:
    """Checks for zeros after the last member: tarfile takes damage for the end, and would silently lose samples."""
    file.seek(end)
    mark = file.read(_BLOCK)
    if len(mark) < _BLOCK:
        raise DataError(f"the shard {path} is truncated: its end mark is missing; get it again")
    while mark:
        if mark.strip(b"\0"):
            raise DataError(
                f"the shard {path} is damaged: after its last readable member, at byte {end:,}, there are"
                " trailing bytes that are not a member (two archives put together are not an archive); get it again"
            )
        mark = file.read(1 << 20)


def _take(
    path: Path, file: BinaryIO, member: tarfile.TarInfo, kind: str, samples: dict[str, _Sample], leaving: LeftOutLog
) -> None:
    """Records a member of a sample: the place of an image or a label, the extension of another one."""
    name = member.name.removeprefix("./")
    folder, slash, base = name.rpartition("/")
    if any(is_hidden(part) for part in name.split("/")):
        leaving.out(name, HIDDEN)
        return
    stem, _, extension = base.partition(".")
    extension = extension.lower()
    is_image = extension in IMAGE_EXTENSIONS
    key = f"{folder}{slash}{stem}"
    sample = samples.setdefault(key, _Sample())
    if not (is_image or extension in LABEL_EXTENSION.values()):
        sample.others.append(extension)
        return
    if extension in sample.places:
        raise DataError(f"the shard {path} has two members {key}.{extension}; each sample needs a different key")
    sample.places[extension] = (member.offset_data, member.size)
    if not (is_image or extension in _LABELS[kind]):
        return
    if not is_image and member.size > _LARGEST_LABEL:
        raise DataError(f"the shard {path}: {member.name!r} has {member.size:,} bytes, too many for a label")
    file.seek(member.offset_data)
    data = file.read(member.size)
    if is_image:
        sample.content[extension] = image_digest(data)
        return
    try:
        sample.content[extension] = read_label(_LABELS[kind][extension], data)
    except ValueError as error:
        raise DataError(f"the shard {path}: sample {key!r}: {error}") from error


def _add(index: ShardIndex, key: str, sample: _Sample, kind: str) -> None:
    wanted = next(iter(_LABELS[kind]))
    image = next((extension for extension in IMAGE_EXTENSIONS if extension in sample.places), None)
    if image is None or wanted not in sample.places:
        lacking = f"image ({', '.join(IMAGE_EXTENSIONS)})" if image is None else f"label .{wanted}"
        fitting = [kind for kind, extension in LABEL_EXTENSION.items() if extension in sample.places]
        known = image is not None and fitting and kind != ATTRIBUTES
        hint = f"; dataset_type.txt should say {fitting[0]}?" if known else ""
        needing = "a data set with attributes" if kind == ATTRIBUTES else f"a {kind} data set"
        raise DataError(
            f"the shard {index.path}: sample {key!r} has no {lacking}, which {needing} needs; it has"
            f" {', '.join(f'.{place}' for place in sample.places)}{hint}"
        )
    offset, size = sample.places[image]
    target, width = sample.content[wanted]
    if kind == ATTRIBUTES:
        target = [sample.content.get(LABEL_EXTENSION["classification"], (None, None))[0], target]
    row = (key, offset, size, target, width, sample.content[image])
    for column, value in zip(ShardIndex.COLUMNS, row, strict=True):
        getattr(index, column).append(value)
