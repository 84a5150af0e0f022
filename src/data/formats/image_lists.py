"""Sources of images from a list of files, an array, or an HDF5 file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.content import ImageDigests
from testbed.data.decode import decode_file
from testbed.data.source import ImageSource
from testbed.data.spelling import on_disk
from testbed.errors import DataError, MissingExtraError, SampleError
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

    Array = np.ndarray[Any, Any]


class FileImages(ImageSource):
    """Image files; a sample's id is its path relative to the root."""

    root: Path

    def path_of(self, position: int) -> str:
        """The path of a sample's file, relative to the root."""
        return self.ids[position]

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return decode_file(self.encoded(position))

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each file's bytes, cached while its size and times stay the same."""
        return ImageDigests(self.root).of_samples(list(map(self.path_of, positions)))

    def encoded(self, position: int) -> Path:
        """The file of an image."""
        return self.root / self.path_of(position)


class ListedImages(FileImages):
    """Image files from a list; a sample's id is its path relative to the root.

    Raises:
        DataError: If a path leaves the root, or is listed twice.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        files: Sequence[str],
        targets: Sequence[int] | Sequence[list[int]],
        class_names: Sequence[str] | None,
    ) -> None:
        self.root = root
        self.name = name
        self.ids = [_inside(root, file, name) for file in files]
        self.targets = [target if isinstance(target, list) else int(target) for target in targets]
        self.class_names = list(class_names) if class_names is not None else None
        if not self.ids:
            raise DataError(f"data set {name!r}: {root} lists no images")
        if len(set(self.ids)) != len(self.ids):
            twice = next(sample_id for index, sample_id in enumerate(self.ids) if sample_id in self.ids[:index])
            raise DataError(f"data set {name!r}: the image {twice} is listed twice")

    def path_of(self, position: int) -> str:
        """The path of a sample's file, as the disk spells it."""
        return on_disk(self.root, self.ids[position])


class ImageArrays(ImageSource):
    """Images in one array; a sample's id is ``SPLIT/INDEX``.

    Args:
        name: The data set's name, for messages.
        split: The split, for the ids.
        pixels: Uint8 [n, H, W, 3] or [n, H, W].
        targets: The n class indices.

    Raises:
        DataError: If the pixels have another type, or the labels another number.
    """

    def __init__(
        self, name: str, split: str, pixels: Array, targets: Sequence[int], class_names: Sequence[str] | None
    ) -> None:
        import numpy as np

        if pixels.dtype != "uint8":
            raise DataError(f"data set {name!r}: its images are arrays of {pixels.dtype}; uint8 is expected")
        self.name = name
        self.pixels: Array = np.ascontiguousarray(pixels)
        self.ids = [f"{split}/{index}" for index in range(len(pixels))]
        self.targets = [int(target) for target in targets]
        self.class_names = list(class_names) if class_names is not None else None
        if len(self.targets) != len(self.ids):
            raise DataError(f"data set {name!r}: {len(self.ids)} images, but {len(self.targets)} labels")

    def image(self, position: int) -> Image.Image:
        """The image at a position, grey ones as RGB."""
        from PIL import Image

        return Image.fromarray(self.pixels[position]).convert("RGB")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's pixels."""
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class HDF5Images(ImageSource):
    """PatchCamelyon's images, read one by one from its HDF5 file; a sample's id is ``SPLIT/INDEX``.

    Args:
        images: The file with ``x``, uint8 [n, H, W, 3].
        labels: The file with ``y``, [n, 1, 1, 1].
        name: The data set's name, for messages.
        split: The split, for the ids.

    Raises:
        MissingExtraError: If h5py is not installed.
        DataError: If a file has another format.
    """

    def __init__(self, images: Path, labels: Path, name: str, split: str) -> None:
        self.path = images
        self.name = name
        self._file: Any = None
        try:
            with _h5py().File(labels, "r") as file:
                labels_there = _own_array(file, "y")
                if labels_there.dtype.kind not in "iu":
                    raise ValueError(f"y is an array of {labels_there.dtype}; integers are expected")
                self.targets = [int(label) for label in labels_there[:].reshape(-1)]
            pixels = self._images()
            if pixels.dtype != "uint8" or pixels.ndim != 4 or pixels.shape[3] != 3:
                raise ValueError(f"x is {pixels.dtype} {list(pixels.shape)}; uint8 [n, height, width, 3] is expected")
            count = len(pixels)
        except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
            raise DataError(f"data set {name!r}: {images} and {labels.name} cannot be read: {error}") from error
        if count != len(self.targets):
            raise DataError(f"data set {name!r}: {count} images, but {len(self.targets)} labels")
        self.ids = [f"{split}/{index}" for index in range(count)]

    def image(self, position: int) -> Image.Image:
        """The image at a position."""
        from PIL import Image

        return Image.fromarray(self._pixels(position)).convert("RGB")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's pixels."""
        return [digest_bytes(self._pixels(position).tobytes()) for position in positions]

    def _pixels(self, position: int) -> Any:
        try:
            return self._images()[position]
        except (OSError, RuntimeError, ValueError) as error:
            raise SampleError(f"{self.path}: image {position} cannot be read: {error}") from error

    def _images(self) -> Any:
        if self._file is None:
            self._file = _h5py().File(self.path, "r")
        return _own_array(self._file, "x")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None}  # an open file cannot be pickled


def _own_array(file: Any, name: str) -> Any:
    """An array of an HDF5 file whose numbers are in the file itself: HDF5 follows links to any other file.

    Raises:
        ValueError: If there is none of that name, or it is elsewhere.
    """
    h5py = _h5py()
    link = file.get(name, getlink=True)
    if link is None:
        raise ValueError(f"there is no array {name}")
    dataset = file[name] if isinstance(link, h5py.HardLink) else None
    if not isinstance(dataset, h5py.Dataset) or dataset.external or dataset.is_virtual:
        raise ValueError(f"{name} is not an array in the file itself")
    return dataset


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("h5py", "h5", "the data set pcam") from error
    return h5py


def _inside(root: Path, file: str, name: str) -> str:
    """A path relative to the root, if it stays below it."""
    parts = Path(file).parts
    if Path(file).is_absolute() or ".." in parts or not parts:
        raise DataError(f"data set {name!r}: the path {file!r} leaves {root}")
    return "/".join(parts)
