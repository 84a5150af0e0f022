"""ImageNet's 1,000 classes, folders of their images, and parts of other data sets."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.formats.folder_level import check_level
from testbed.data.formats.image_folder import ImageFolder
from testbed.data.left_out import NO_IMAGES, LeftOutLog, merged
from testbed.data.source import ImageSource
from testbed.errors import DataError

if TYPE_CHECKING:
    from PIL import Image


@lru_cache(maxsize=1)
def information() -> Path:
    """Returns timm's folder with information about ImageNet; found without importing timm."""
    spec = importlib.util.find_spec("timm")
    if spec is None or spec.origin is None:
        raise DataError("timm is not installed; its lists of ImageNet's classes are needed: pip install timm")
    return Path(spec.origin).parent / "data" / "_info"


@lru_cache(maxsize=1)
def synsets() -> tuple[str, ...]:
    """The WordNet ids of the 1,000 classes, sorted, which is the order of the logits."""
    return tuple((information() / "imagenet_synsets.txt").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1)
def synsets_21k() -> tuple[str, ...]:
    """The WordNet ids of the 21,843 classes of Google's ImageNet-21k models, in the order of their logits."""
    return tuple((information() / "imagenet21k_goog_synsets.txt").read_text(encoding="utf-8").split())


@lru_cache(maxsize=4)
def listed_classes(which: str) -> tuple[int, ...]:
    """The classes of ImageNet-A (``"a"``) or ImageNet-R (``"r"``), 200 each, ascending."""
    text = (information() / f"imagenet_{which}_indices.txt").read_text(encoding="utf-8")
    return tuple(sorted(int(word) for word in text.split()))


@lru_cache(maxsize=1)
def real_labels() -> list[list[int]]:
    """The true classes of each of the 50,000 validation images (Beyer et al., "Are we done with ImageNet?").

    The n-th list is that of ILSVRC2012_val_{n + 1:08d}; 3,163 are empty.
    """
    labels: list[list[int]] = json.loads((information() / "imagenet_real_labels.json").read_text(encoding="utf-8"))
    return labels


class ImageNetFolder(ImageFolder):
    """Images of some of ImageNet's classes, with a folder for each, named by its WordNet id or by its number.

    A target is the index of the class among the given ones, independent of the order of the folders. (ImageNetV2's
    folders are named 0 … 999, which sort differently as text.)

    Args:
        root: The folder with the class folders.
        name: The data set's name, for messages.
        classes: The required classes; None means all 1,000.
        part: True if some of them may be missing.

    Raises:
        DataError: If it has other folders.
    """

    def __init__(self, root: Path, name: str, classes: Sequence[int] | None = None, part: bool = False) -> None:
        check_level(root, f"data set {name!r}")
        super().__init__(root, name)
        wanted = list(range(len(synsets()))) if classes is None else list(classes)
        by_name = {synsets()[label]: index for index, label in enumerate(wanted)}
        by_number = {str(index): index for index in range(len(wanted))}
        names = list(self.class_names or ())
        fits = set.issubset if part else set.__eq__
        places = next((labels for labels in (by_name, by_number) if fits(set(names), set(labels))), None)
        if places is None:
            raise DataError(self._difference(names, by_name))
        missing = [name for name in places if name not in set(names)]
        if missing:
            leaving = LeftOutLog()
            for absent in missing:
                leaving.out(absent, NO_IMAGES, expected=True)
            self.left_out = merged([*self.left_out, *leaving.found()])
        self.targets = [places[names[target]] for target in self.targets]
        self.class_names = list(by_name)

    def _difference(self, names: Sequence[str], wanted: dict[str, int]) -> str:
        unknown = [name for name in names if name not in wanted]
        missing = [name for name in wanted if name not in set(names)]
        details = [f"{len(names):,} folders were found"]
        if missing:
            details.append(f"{len(missing):,} of those are missing, the first is {missing[0]}")
        if unknown:
            details.append(f"{len(unknown):,} are others, the first is {unknown[0]}")
        return (
            f"data set {self.name!r}: {self.root} should hold {len(wanted):,} folders, one for each class, named by"
            f" their WordNet ids ({next(iter(wanted))} …) or by their numbers from 0; {'; '.join(details)}"
        )


class SelectedSamples(ImageSource):
    """Some samples of another source, with new targets."""

    def __init__(
        self,
        source: ImageSource,
        positions: Sequence[int],
        targets: Sequence[Any],
        class_names: Sequence[str] | None,
    ) -> None:
        self.source = source
        self.positions = list(positions)
        self.name = source.name
        self.left_out = source.left_out
        self.ids = [source.ids[position] for position in positions]
        self.targets = list(targets)
        self.class_names = list(class_names) if class_names is not None else None
        self.slices = [source.slices[position] for position in positions] if source.slices is not None else None
        self.groups = [source.groups[position] for position in positions] if source.groups is not None else None

    def encoded(self, position: int) -> Path | bytes | None:
        """The file of an image, or its bytes."""
        return self.source.encoded(self.positions[position])

    def image(self, position: int) -> Image.Image:
        """The decoded RGB image at a position."""
        return self.source.image(self.positions[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of the content of each of these samples."""
        return self.source.digests([self.positions[position] for position in positions])


def of_classes(source: ImageSource, groups: Sequence[Sequence[int]]) -> SelectedSamples:
    """The samples whose target is in a group of classes; the new target is the index of the group."""
    group_of = {label: index for index, group in enumerate(groups) for label in group}
    positions = [position for position, target in enumerate(source.targets) if target in group_of]
    names = None
    if source.class_names is not None:
        names = [", ".join(source.class_names[label] for label in group) for group in groups]
    return SelectedSamples(source, positions, [group_of[source.targets[position]] for position in positions], names)


def share_of_each_class(source: ImageSource, one_of: int) -> SelectedSamples:
    """A fixed share of the samples of each class, at least one: those with the lowest SHA-256 of their file name.

    This rule needs no random generator; data sets of the same files (such as ImageNet-C) get the same samples.
    """
    members: dict[Any, list[int]] = defaultdict(list)
    for position, target in enumerate(source.targets):
        members[target].append(position)
    kept: list[int] = []
    for positions in members.values():
        ranked = sorted(positions, key=lambda position: _rank(source.ids[position]))
        kept += ranked[: max(1, len(positions) // one_of)]
    kept.sort()
    return SelectedSamples(source, kept, [source.targets[position] for position in kept], source.class_names)


def _rank(sample_id: str) -> bytes:
    return hashlib.sha256(Path(sample_id).stem.encode()).digest()


def with_real_labels(source: ImageSource) -> SelectedSamples:
    """Returns ImageNet's validation images with all their true classes instead of that of their folder.

    Raises:
        DataError: If a file's name does not identify the validation image.
    """
    labels = real_labels()
    targets = []
    for sample_id in source.ids:
        number = Path(sample_id).stem.rpartition("_")[2]
        digits = number.isascii() and number.isdigit() and len(number) == len("00000001")
        if not (digits and 1 <= int(number) <= len(labels)):
            raise DataError(
                f"data set {source.name!r}: ReaL labels require files named ILSVRC2012_val_00000001 to"
                f" ILSVRC2012_val_00050000, unlike {sample_id}"
            )
        targets.append(labels[int(number) - 1])
    return SelectedSamples(source, range(len(source)), targets, source.class_names)


def class_names() -> list[str]:
    """Returns OpenAI's names of the 1,000 classes, in the order of the sorted WordNet ids (from open_clip)."""
    from open_clip import IMAGENET_CLASSNAMES

    return list(IMAGENET_CLASSNAMES)


def templates() -> list[str]:
    """Returns OpenAI's 80 prompt templates (they come with open_clip)."""
    from open_clip import OPENAI_IMAGENET_TEMPLATES

    return [template("{c}") for template in OPENAI_IMAGENET_TEMPLATES]
