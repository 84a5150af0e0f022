"""Samples of data sets without their content, as a store and a run keep them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload


@dataclass(frozen=True, slots=True)
class SampleInfo:
    """A sample without its content.

    Attributes:
        id: Its name within the data set, such as a path relative to the root.
        digest: A digest of its content.
        target: The ground truth: a class index for classification.
    """

    id: str
    digest: str
    target: Any = None
    group: str | None = None
    slices: dict[str, Any] | None = None


class SampleColumns(Sequence[SampleInfo]):
    """Samples held as columns; a sample is an object only while it is looked at.

    A run may hold millions of samples at once: those of ImageNet-C are 95 data sets of 50,000.

    Args:
        ids: See `SampleInfo`; kept as they are.
        digests: One for each sample.
        targets: Kept as they are.
        groups: None if no sample has one.
        slices: None if no sample has any.
    """

    __slots__ = ("_digests", "_groups", "_ids", "_slices", "_width", "targets")

    def __init__(
        self,
        ids: Sequence[str],
        digests: Sequence[str],
        targets: Sequence[Any],
        groups: Sequence[str | None] | None = None,
        slices: Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        self._ids = ids
        self.targets = targets
        self._groups = groups
        self._slices = slices
        self._width = len(digests[0]) if digests else 0
        even = all(len(digest) == self._width and digest.isascii() for digest in digests)
        self._digests: str | Sequence[str] = "".join(digests) if even else digests

    @classmethod
    def of(cls, samples: Iterable[SampleInfo]) -> SampleColumns:
        """Stores samples as columns."""
        ids: list[str] = []
        digests: list[str] = []
        targets: list[Any] = []
        groups: list[str | None] = []
        slices: list[dict[str, Any] | None] = []
        for sample in samples:  # of millions, one at a time
            ids.append(sample.id)
            digests.append(sample.digest)
            targets.append(sample.target)
            groups.append(sample.group)
            slices.append(sample.slices)
        return cls(
            ids,
            digests,
            targets,
            None if groups.count(None) == len(groups) else groups,
            None if slices.count(None) == len(slices) else slices,
        )

    def __len__(self) -> int:
        return len(self._ids)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @overload
    def __getitem__(self, place: int) -> SampleInfo: ...

    @overload
    def __getitem__(self, place: slice) -> list[SampleInfo]: ...

    def __getitem__(self, place: int | slice) -> SampleInfo | list[SampleInfo]:
        if isinstance(place, slice):
            return [self[index] for index in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        start = place * self._width
        joined = isinstance(self._digests, str)
        return SampleInfo(
            self._ids[place],
            str(self._digests[start : start + self._width] if joined else self._digests[place]),
            self.targets[place],
            self._groups[place] if self._groups is not None else None,
            self._slices[place] if self._slices is not None else None,
        )


def targets_of(samples: Sequence[SampleInfo]) -> Sequence[Any]:
    """The target of each sample."""
    return samples.targets if isinstance(samples, SampleColumns) else [sample.target for sample in samples]


def groups_of(samples: Sequence[SampleInfo]) -> Sequence[str | None] | None:
    """The group of each sample; None if no sample has one."""
    groups = samples._groups if isinstance(samples, SampleColumns) else [sample.group for sample in samples]
    return None if groups is None or all(group is None for group in groups) else groups


@dataclass(frozen=True)
class DatasetInfo:
    """An ordered list of samples and its digest."""

    name: str
    fingerprint: str
    samples: Sequence[SampleInfo]
    class_names: Sequence[str] | None = None

    @property
    def targets(self) -> Sequence[Any]:
        """The target of each sample."""
        return targets_of(self.samples)
