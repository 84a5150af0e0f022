"""The images of an annotated data set, in a folder or in a zip archive, which is not unpacked."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from testbed.data.content import MISSING, ImageDigests
from testbed.data.decode import decode_bytes, decode_file, image_digest
from testbed.data.left_out import composed
from testbed.data.spelling import on_disk
from testbed.data.threads import Stop
from testbed.errors import DataError, SampleError

if TYPE_CHECKING:
    from PIL import Image

_LARGEST_MEMBER = 1 << 28  # bytes of an image; larger ones are errors or attacks


@dataclass(frozen=True)
class ImagesInFolder:
    """The images below a folder."""

    path: Path

    def missing(self, names: Sequence[str]) -> list[str]:
        """The missing files among these."""
        return [name for name in dict.fromkeys(names) if not os.path.isfile(self.encoded(name))]

    def encoded(self, name: str) -> Path:
        """The file of an image."""
        return self.path / on_disk(self.path, name)

    def image(self, name: str) -> Image.Image:
        """The decoded RGB image; raises SampleError if it cannot be read."""
        return decode_file(self.encoded(name))

    def digests(self, names: Sequence[str]) -> list[str]:
        """A digest of each file's content, cached while its size, inode and times stay the same."""
        return ImageDigests(self.path).digests([on_disk(self.path, name) for name in names])


@dataclass(frozen=True)
class ImagesInZip:
    """The images in a zip archive; if an archive ``X.zip`` has all of them in ``X/``, this prefix may be omitted."""

    path: Path

    def missing(self, names: Sequence[str]) -> list[str]:
        """The missing members among these; raises DataError if this is not a zip archive."""
        members = _members(_archive(self.path))
        asked = {name: {composed(name), composed(self._inner(name))} for name in names}
        return [name for name, forms in asked.items() if not forms & members.keys()]

    def image(self, name: str) -> Image.Image:
        """The decoded RGB image; raises SampleError if it cannot be read."""
        return decode_bytes(self.encoded(name), f"{self.path}:{name}")

    def digests(self, names: Sequence[str]) -> list[str]:
        """A digest of each member's bytes, equal to that of the unpacked file."""
        return _MemberDigests(self).digests(names)

    def encoded(self, name: str) -> bytes:
        """The bytes of a member.

        Raises:
            SampleError: If it is missing, encrypted, a link, damaged, or too large for an image.
        """
        archive = _archive(self.path)
        try:
            info = self.find(name)
            unix_mode = info.external_attr >> 16
            if stat.S_ISLNK(unix_mode) or info.is_dir():
                raise SampleError(f"{self.path}: {name} is a link or a folder; expected an image")
            if info.flag_bits & 1:
                raise SampleError(f"{self.path}: {name} is encrypted; unpack the archive")
            if info.file_size > _LARGEST_MEMBER:
                raise SampleError(f"{self.path}: {name} would be {info.file_size:,} bytes, too large for an image")
            return archive.read(info)
        except KeyError:
            raise SampleError(f"{self.path} has no member {name}") from None
        except (OSError, EOFError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise SampleError(f"{self.path}: {name} cannot be read: {error}") from error
        except Exception as error:
            if type(error).__module__ in ("zlib", "_lzma"):  # their errors derive directly from Exception
                raise SampleError(f"{self.path}: {name} is damaged: {error}") from error
            raise

    def find(self, name: str) -> zipfile.ZipInfo:
        """The archive's entry of a member; raises KeyError if there is none."""
        archive = _archive(self.path)
        for spelling in (name, self._inner(name)):
            if (
                own := spelling if spelling in archive.NameToInfo else _members(archive).get(composed(spelling))
            ) is not None:
                return archive.getinfo(own)
        raise KeyError(name)

    def _inner(self, name: str) -> str:
        return str(PurePosixPath(self.path.stem) / name)


Images = ImagesInFolder | ImagesInZip


class _MemberDigests(ImageDigests):
    """Caches the digests of an archive's members while the archive's inode and times stay the same."""

    def __init__(self, images: ImagesInZip) -> None:
        super().__init__(images.path)
        self.images = images

    def _stat(self, name: str) -> list[int] | None:
        try:
            archive = self.images.path.stat()
            return [self.images.find(name).CRC, archive.st_mtime_ns, archive.st_ino, archive.st_ctime_ns]
        except (KeyError, OSError):
            return None

    def _digest(self, name: str, stop: Stop) -> str:
        try:
            return image_digest(self.images.encoded(name))
        except SampleError:
            return MISSING


def _archive(path: Path) -> zipfile.ZipFile:
    """The opened archive; one per process, because child processes share the position in an open file."""
    try:
        return _opened(os.getpid(), path, path.stat().st_mtime_ns)
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as a zip archive: {error}") from error


@lru_cache(maxsize=4)
def _members(archive: zipfile.ZipFile) -> dict[str, str]:
    """Returns composed Unicode form → name, for the members of an archive."""
    return {composed(name): name for name in archive.namelist()}


@lru_cache(maxsize=4)
def _opened(process: int, path: Path, changed: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def find_images(root: Path, candidates: Sequence[str], name: str, origin: str) -> Images:
    """The first existing folder or zip archive of some candidates.

    Args:
        root: The folder of the data set.
        candidates: Paths relative to it, the usual one first; one that ends with ``.zip`` is an archive.
        name: The data set's name, for messages.
        origin: The published place of the images, for messages.

    Raises:
        DataError: If none exists.
    """
    for candidate in candidates:
        path = root / candidate
        if candidate.endswith(".zip") and path.is_file():
            return ImagesInZip(path)
        if path.is_dir():
            return ImagesInFolder(path)
    looked = ", ".join(str(root / candidate) for candidate in candidates)
    raise DataError(f"data set {name!r}: the images are missing; looked for {looked}; they come from {origin}")


def require_images(images: Images, names: Sequence[str], name: str, origin: str) -> None:
    """Checks that images exist; raises DataError if some are missing."""
    missing = images.missing(names)
    if missing:
        raise DataError(
            f"data set {name!r}: {len(missing):,} of {len(set(names)):,} images are missing in {images.path}, the first"
            f" is {missing[0]}; they come from {origin}"
        )
