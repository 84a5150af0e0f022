"""Sources of samples and images: opened data sets."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from testbed.data.content import MISSING, losses_of
from testbed.data.decode import LOSSES
from testbed.data.left_out import SAME_CONTENT, LeftOut, LeftOutLog
from testbed.entities import DatasetInfo, SampleColumns, SampleInfo
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes
from testbed.inputs import TURN, active

if TYPE_CHECKING:
    from PIL import Image

T = TypeVar("T")
_PART = 1000  # samples


class Source(ABC):
    """Samples in a fixed order, each with an id, a target and a digest of its content.

    Sources are pickled for worker processes, so they contain plain data (paths, arrays), no open files and no lambdas.

    Attributes:
        name: The data set's name.
        ids: A unique name for each sample, such as its path relative to the root.
        targets: The ground truth of each sample: the class index for classification, a list of captions for captioning.
        class_names: The name of each class, if the data set has names.
        groups: The group of samples drawn together (the video of a frame, the image of a question), or None: intervals
            and tests take the samples of a group as one. Attributes by which samples are compared are slices.
        slices: Attributes of each sample (country, camera, …), or None.
        left_out: Entries left out while the samples were listed, by reason.
    """

    name: str
    ids: Sequence[str]
    targets: Sequence[Any]
    class_names: Sequence[str] | None = None
    groups: Sequence[str] | None = None
    slices: Sequence[dict[str, Any]] | None = None
    left_out: Sequence[LeftOut] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of the content of each of these samples."""

    def describe_samples(self, positions: Sequence[int]) -> DatasetInfo:
        """The samples at these positions, in order, with a fingerprint of ids, content and targets."""
        everything = positions == range(len(self))

        def chosen(column: Sequence[T]) -> Sequence[T]:
            return column if everything else [column[position] for position in positions]

        samples = SampleColumns(
            chosen(self.ids),
            self.digests(positions),
            chosen(self.targets),
            chosen(self.groups) if self.groups is not None else None,
            chosen(self.slices) if self.slices is not None else None,
        )
        return dataset_of(self.name, samples, self.class_names)


class ImageSource(Source):
    """Samples that are images."""

    def encoded(self, position: int) -> Path | bytes | None:
        """Returns the file that holds an image alone, or its bytes; None if the images come as pixels.

        Raises:
            SampleError: If this image cannot be read.
        """
        return None

    def remarks(self, positions: Sequence[int], dataset: DatasetInfo) -> tuple[LeftOut, ...]:
        """Returns remarks on what is lost of the images at these positions, and on duplicates, counted."""
        noted, first = LeftOutLog(), {"": "", MISSING: ""}
        digests = {place: sample.digest for place, sample in zip(positions, dataset.samples, strict=True)}
        places = list(digests)
        losses = losses_of(self.name, list(digests.values()), lambda index: self.encoded(places[index]))
        for position, lost in zip(places, losses, strict=True):
            for kind in lost:
                if kind == "orientation" and active().exif == TURN:
                    continue
                noted.out(str(self.ids[position]), LOSSES[kind], expected=True)
        for sample in dataset.samples:
            if first.setdefault(sample.digest, sample.id) not in ("", sample.id):
                noted.out(sample.id, SAME_CONTENT, expected=True)
        return noted.found()

    @abstractmethod
    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position; raises SampleError if this image cannot be read."""


def with_images(source: Source) -> ImageSource:
    """The source, checked to have images; raises DataError if it has none."""
    if not isinstance(source, ImageSource):
        raise DataError(f"the samples of the data set {source.name} have no images")
    return source


def dataset_of(name: str, samples: Sequence[SampleInfo], class_names: Sequence[str] | None = None) -> DatasetInfo:
    """Returns samples as a data set, with a fingerprint of ids, content, targets and the names of the classes."""
    columns = samples if isinstance(samples, SampleColumns) else SampleColumns.of(samples)
    names = () if class_names is None else (json.dumps(list(class_names)).encode(),)
    return DatasetInfo(name, digest_bytes(*_as_json(columns), *names), columns, class_names)


def _as_json(samples: Sequence[SampleInfo]) -> Iterator[bytes]:
    """Yields a list of all samples, in parts: as one text it would take more memory than the samples."""
    yield b"["
    for start in range(0, len(samples), _PART):
        part = [
            [sample.id, sample.digest, sample.target, sample.group, sample.slices]
            for sample in samples[start : start + _PART]
        ]
        text = json.dumps(part, separators=(",", ":"))[1:-1]
        yield f"{',' if start else ''}{text}".encode()
    yield b"]"
