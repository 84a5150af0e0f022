"""TensorFlow Datasets prepared on this machine. Downloads nothing; needs the extra ``tfds``.

Data sets must be prepared as ``array_record`` files, which allow random access.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.calls import reason_of
from testbed.data.decode import as_rgb
from testbed.data.source import ImageSource
from testbed.errors import DataError, MissingExtraError, SampleError
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    from PIL import Image

PREFIX = "tfds/"
SPLITS = ("test", "train", "val")
_NAME = re.compile(r"\w[\w.+-]*(?:/\w[\w.+-]*)?(?::[\d.]+)?")


class TensorFlowImages(ImageSource):
    """A split of a data set with the features ``image`` and ``label``; a sample's id is ``SPLIT/INDEX``.

    Args:
        root: TFDS's folder (its ``data_dir``).
        name: ``<data set>`` or ``<data set>/<configuration>``.
        split: One of `SPLITS`; ``val`` is TFDS's ``validation``.

    Raises:
        MissingExtraError: If tensorflow-datasets is not installed.
        DataError: If the data set is missing or in another format.
    """

    def __init__(self, root: Path, name: str, split: str) -> None:
        self.name = f"{PREFIX}{name}"
        if not _NAME.fullmatch(name) or ".." in name:
            raise DataError(f"{self.name!r} is not a data set; write tfds/<name> or tfds/<name>/<config>")
        try:
            import tensorflow_datasets as tfds
        except ImportError as error:
            raise MissingExtraError("tensorflow-datasets", "tfds", "reading TensorFlow Datasets (tfds/…)") from error
        theirs = "validation" if split == "val" else split
        try:
            builder = tfds.builder(name, data_dir=str(root))
            there = sorted(builder.info.splits)
            if theirs not in there:
                raise DataError(
                    f"{self.name} below {root} has no split {theirs!r}; it has {', '.join(there) or 'none'}"
                )
            feature = builder.info.features["label"]
            self.rows: Any = builder.as_data_source(split=theirs)
            undecoded = builder.as_data_source(split=theirs, decoders={"image": tfds.decode.SkipDecoding()})
            self.targets = [int(row["label"]) for row in undecoded]
        except DataError:
            raise
        except Exception as error:  # TFDS raises almost anything
            raise DataError(
                f"{self.name} cannot be read below {root}: {reason_of(error)};"
                f" prepare it with tfds.builder({name!r}, data_dir={str(root)!r})"
                ".download_and_prepare(file_format='array_record')"
            ) from error
        self.class_names = list(feature.names) if getattr(feature, "names", None) else None
        self.ids = [f"{split}/{index}" for index in range(len(self.rows))]

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        from PIL import Image

        try:
            pixels = self.rows[position]["image"]
            image = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
            return as_rgb(image, self.ids[position])
        except Exception as error:
            raise SampleError(f"{self.name}: {self.ids[position]} cannot be read: {error}") from error

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image's pixels."""
        return [digest_bytes(self.image(position).tobytes()) for position in positions]
