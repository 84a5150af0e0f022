"""Writes a data set in CLIP benchmark's webdataset format. The same data give the same bytes."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.source import ImageSource
from testbed.data.webdataset.format import (
    CLASS_NAMES,
    DATASET_TYPE,
    KINDS,
    LABEL_EXTENSION,
    NSHARDS,
    TEMPLATES,
    read_metadata,
    splits,
    write_label,
    write_lines,
)
from testbed.data.webdataset.source import check_split
from testbed.errors import DataError
from testbed.paths import write_atomically

if TYPE_CHECKING:
    from PIL import Image

# The options of Pillow's encoders; webp and png are lossless.
IMAGE_FORMATS: dict[str, dict[str, Any]] = {
    "webp": {"format": "WEBP", "lossless": True},
    "png": {"format": "PNG"},
    "jpg": {"format": "JPEG", "quality": 95},
}
MAX_COUNT = 10_000
MAX_SIZE = 1_000_000_000
_MOST_SAMPLES = 10_000_000  # keys have seven digits


def export(
    source: ImageSource,
    out: Path,
    split: str,
    kind: str,
    class_names: Sequence[str] | None = None,
    templates: Sequence[str] | None = None,
    image_format: str = "webp",
    max_count: int = MAX_COUNT,
    max_size: int = MAX_SIZE,
    overwrite: bool = False,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Writes a split, so that `WebDataset` reads the same samples in the same order; returns the number of shards.

    The split is written into a temporary folder, which is renamed when it is complete.

    Args:
        source: The samples.
        out: The folder of the data set; it may contain other splits of the same classes.
        split: The split's folder.
        kind: ``"classification"``, ``"multilabel"`` or ``"retrieval"``; targets are as in `WebDataset`.
        class_names: The names of the classes; None: those of the source.
        templates: Prompts with ``{c}``, or None to write none.
        image_format: ``"webp"`` or ``"png"`` (both lossless), or ``"jpg"`` (quality 95).
        max_count: The maximum number of samples in a shard.
        max_size: A shard is full when its samples have this many bytes.
        overwrite: Replaces an existing split.
        progress: Called with the number of samples written so far.

    Raises:
        DataError: If the split exists, the other splits have different classes, or a sample does not fit the format;
            the message names it.
    """
    check_split(split)
    _check(source, kind, image_format, templates, max_count, max_size)
    names = class_names if class_names is not None else source.class_names
    files = _metadata(kind, names, templates)
    target = out / split
    if target.exists() and not overwrite:
        raise DataError(f"{target} already exists; give another folder or split, or --overwrite to replace it")
    others = [other for other in splits(out) if other != split]
    if others:
        _check_agreement(out, others, kind, names, templates)
    temporary = out / f".{split}.{os.getpid()}.part"
    try:
        temporary.mkdir(parents=True)
        count = len(names) if names is not None and kind != "retrieval" else None
        with closing(_Shards(temporary, max_count, max_size)) as shards:
            for number, (image, label) in enumerate(_encoded(source, kind, image_format, count)):
                shards.write(f"s{number:07d}", {image_format: image, LABEL_EXTENSION[kind]: label})
                if progress is not None:
                    progress(number + 1)
        (temporary / NSHARDS).write_text(f"{shards.number}\n", encoding="utf-8")
        for name, content in files.items():
            _put(out / name, content)
        _replace(temporary, target)
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return shards.number


def _check(
    source: ImageSource,
    kind: str,
    image_format: str,
    templates: Sequence[str] | Mapping[str, Any] | None,
    max_count: int,
    max_size: int,
) -> None:
    if kind not in KINDS:
        raise DataError(f"data set {source.name!r} has the kind {kind!r}; the format supports {', '.join(KINDS)}")
    if image_format not in IMAGE_FORMATS:
        raise DataError(f"the format has images as {', '.join(IMAGE_FORMATS)}, not {image_format!r}")
    if isinstance(templates, Mapping):
        raise DataError("the format has one list of templates for all classes, not prompts for each class")
    if max_count < 1 or max_size < 1:
        raise DataError(f"a shard needs at least one sample and one byte; got {max_count} and {max_size}")
    if not 0 < len(source) <= _MOST_SAMPLES:
        raise DataError(f"data set {source.name!r} has {len(source):,} samples; the format has 1 to {_MOST_SAMPLES:,}")


def _metadata(kind: str, names: Sequence[str] | None, templates: Sequence[str] | None) -> dict[str, bytes | None]:
    """The content of each metadata file; None for missing ones."""
    if kind == "retrieval":
        return {CLASS_NAMES: None, TEMPLATES: None, DATASET_TYPE: b"retrieval\n"}
    return {
        CLASS_NAMES: write_lines(names, "class name") if names is not None else None,
        TEMPLATES: write_lines(templates, "template") if templates is not None else None,
        DATASET_TYPE: b"multilabel\n" if kind == "multilabel" else None,
    }


def _check_agreement(
    out: Path, others: Sequence[str], kind: str, names: Sequence[str] | None, templates: Sequence[str] | None
) -> None:
    """Checks that the splits of a folder share its metadata files."""
    there = read_metadata(out)
    given = (kind, None, None) if kind == "retrieval" else (kind, names, templates)
    for what, old, new in zip(("kind", "class names", "templates"), there, given, strict=True):
        if old != (new if new is None or isinstance(new, str) else list(new)):
            raise DataError(
                f"{out} holds the split{'s' * (len(others) > 1)} {', '.join(others)} with other {what}"
                f" ({_shown(old)}; here {_shown(new)}); all splits of a folder share them, so give another folder"
            )


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return str(value or "none")
    return f"{len(value)}: {', '.join(map(str, value[:3]))}{', …' if len(value) > 3 else ''}"


# Samples ----------------------------------------------------------------------------------------------------------


def _encoded(source: ImageSource, kind: str, form: str, classes: int | None) -> Iterator[tuple[bytes, bytes]]:
    """The content of each sample's image and label, in order; images are encoded in parallel."""
    waiting: deque[tuple[int, Future[bytes]]] = deque()
    workers = os.cpu_count() or 1

    def first() -> tuple[bytes, bytes]:
        position, image = waiting.popleft()
        try:
            return image.result(), write_label(kind, source.targets[position], classes)
        except ValueError as error:
            raise DataError(f"sample {source.ids[position]!r} does not fit the format: {error}") from error

    with ThreadPoolExecutor(workers) as threads:  # encoding releases the GIL; only one thread reads the source
        try:
            for position in range(len(source)):
                waiting.append((position, threads.submit(encode, source.image(position), form)))
                if len(waiting) > 2 * workers:
                    yield first()
            while waiting:
                yield first()
        finally:
            for _, image in waiting:
                image.cancel()


def encode(image: Image.Image, image_format: str) -> bytes:
    """The bytes of an RGB image in one of `IMAGE_FORMATS`.

    Raises:
        ValueError: If the format cannot store it.
    """
    file = io.BytesIO()
    options = IMAGE_FORMATS[image_format]
    try:
        # A copy without the metadata that some formats would include.
        plain = image.convert("RGB") if image.mode != "RGB" else image.copy()
        plain.info = {}
        plain.save(file, **options)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"its image of {image.width} × {image.height} pixels cannot be written as {image_format} ({error}); png has"
            " no such limits"
        ) from error
    return file.getvalue()


# Shards -----------------------------------------------------------------------------------------------------------


class _Shards:
    """Writes samples into as many shards as needed."""

    def __init__(self, folder: Path, max_count: int, max_size: int) -> None:
        self.number = 0
        self._folder, self._max_count, self._max_size = folder, max_count, max_size
        self._archive: tarfile.TarFile | None = None
        self._count = self._size = 0

    def write(self, key: str, members: Mapping[str, bytes]) -> None:
        """Adds a sample; its members are in the order of their extensions."""
        if self._archive is None or self._count >= self._max_count or self._size >= self._max_size:
            self.close()
            path = self._folder / f"{self.number}.tar"
            self._archive = tarfile.open(path, "w", format=tarfile.USTAR_FORMAT)  # noqa: SIM115
            self.number += 1
            self._count = self._size = 0
        for extension in sorted(members):
            information = tarfile.TarInfo(f"{key}.{extension}")
            information.size = len(members[extension])
            information.mode, information.mtime = 0o444, 0
            information.uid = information.gid = 0
            information.uname = information.gname = "testbed"
            self._archive.addfile(information, io.BytesIO(members[extension]))
            self._size += len(members[extension])
        self._count += 1

    def close(self) -> None:
        """Finishes the current shard."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None


def _put(path: Path, content: bytes | None) -> None:
    """Writes a file unless it has this content already."""
    if content is None:
        path.unlink(missing_ok=True)
    elif not (path.is_file() and path.read_bytes() == content):
        write_atomically(path, content)


def _replace(new: Path, target: Path) -> None:
    """Replaces a folder by another."""
    old = new.with_suffix(".old")
    if target.exists():
        os.replace(target, old)
    os.replace(new, target)
    shutil.rmtree(old, ignore_errors=True)
