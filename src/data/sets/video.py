"""Frames of videos in sets around anchors: ImageNet-Vid-Robust and YTBB-Robust (Shankar et al., "Do image classifiers
generalize across time?", 2019).

A sample is a frame; its target is the set of right classes. Its slices name the anchor's set that it belongs to,
``{"set": …, "anchor": whether it is the anchor itself}``, so that the metrics pm0 and pm10 follow from what is stored.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.calls import reason_of
from testbed.data.formats.annotations import checked_path
from testbed.data.formats.image_lists import FileImages
from testbed.errors import DataError

METADATA_FOLDERS = ("metadata", "misc", "")
REACH = 10  # frames to each side of an anchor


class FrameSets(FileImages):
    """Frames, set by set: the anchor, then the frames around it.

    Args:
        root: The folder with the frames.
        name: The data set's name, for messages.
        sets: The frames of each anchor's set, without itself.
        labels: The true classes of each frame, as indices of ``class_names``.

    Raises:
        DataError: If a frame is missing.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        sets: Mapping[str, Sequence[str]],
        labels: Mapping[str, Sequence[int]],
        class_names: Sequence[str],
    ) -> None:
        self.root = root
        self.name = name
        self.class_names = list(class_names)
        members = [(anchor, frame) for anchor in sorted(sets) for frame in (anchor, *sets[anchor])]
        self.ids = [frame for _, frame in members]
        self.targets = [sorted(labels[frame]) for frame in self.ids]
        self.groups = [anchor for anchor, _ in members]
        self.slices = [{"set": anchor, "anchor": frame == anchor} for anchor, frame in members]
        if len(set(self.ids)) != len(self.ids):
            raise DataError(f"data set {name!r}: its metadata assign a frame to several sets")
        for frame in self.ids:
            checked_path(frame, f"data set {name!r}: its metadata")
        missing = [frame for frame in self.ids if not os.path.isfile(root / frame)]
        if missing:
            raise DataError(
                f"data set {name!r}: {len(missing):,} of the {len(self.ids):,} frames that its metadata name are"
                f" missing in {root}, the first is {missing[0]}"
            )


class ClassMap:
    """The ImageNet classes of each video class that has any, by ``rev_class_idx_map.json`` in its folder."""

    def __init__(self, root: Path) -> None:
        given = read_json(root, "rev_class_idx_map.json")
        try:
            self.groups = [[int(label) for label in given[key]] for key in sorted(given, key=int)]
            self.place = {int(key): index for index, key in enumerate(sorted(given, key=int))}
        except (ValueError, TypeError, AttributeError) as error:
            raise DataError(f"rev_class_idx_map.json in {root} does not map classes to lists of classes") from error

    def places(self, labels: Sequence[int]) -> list[int]:
        """Returns video classes as indices of `groups`, without those missing in ImageNet, which no model predicts."""
        return sorted({self.place[label] for label in labels if label in self.place})


def metadata_file(root: Path, name: str) -> Path:
    """A file of metadata, in the data set's folder or in ``metadata`` or ``misc`` in it.

    Raises:
        DataError: If there is none.
    """
    for folder in METADATA_FOLDERS:
        if (root / folder / name).is_file():
            return root / folder / name
    raise DataError(
        f"{name} is missing: it should be in {root / METADATA_FOLDERS[0]} (or {METADATA_FOLDERS[1]}, or next to the"
        " frames); it comes with the data set, https://modestyachts.github.io/natural-perturbations-website"
    )


def read_json(root: Path, name: str) -> Any:
    """The content of a metadata file; raises DataError if it is missing or not JSON."""
    path = metadata_file(root, name)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}") from error


@contextmanager
def _in_form(root: Path, name: str) -> Iterator[None]:
    """Names the data set in errors about metadata of another form than expected."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, csv.Error) as error:
        raise DataError(
            f"data set {name!r}: its metadata in {root} have another form than published"
            f" ({reason_of(error)}); get them again"
        ) from error


# ImageNet-Vid-Robust ----------------------------------------------------------------------------------------------


def vid_robust(root: Path, name: str) -> FrameSets:
    """The frames of ImageNet-Vid-Robust: ``val/<video>/<frame>.JPEG``, ``pmsets.json``, ``labels.json``.

    Raises:
        DataError: If a file is missing or has another form.
    """
    with _in_form(root, name):
        return _vid_robust(root, name)


def _vid_robust(root: Path, name: str) -> FrameSets:
    classes = ClassMap(root)
    prefix = "val/"
    frames = root / "val" if (root / "val").is_dir() else root
    sets = {
        anchor.removeprefix(prefix): [frame.removeprefix(prefix) for frame in around]
        for anchor, around in read_json(root, "pmsets.json").items()
    }
    labels = {
        frame.removeprefix(prefix): classes.places(right) for frame, right in read_json(root, "labels.json").items()
    }
    unlabelled = next((member for anchor in sets for member in (anchor, *sets[anchor]) if member not in labels), None)
    if unlabelled is not None:
        raise DataError(f"data set {name!r}: labels.json lacks the frame {unlabelled}")
    return FrameSets(frames, name, sets, labels, [str(label) for label in sorted(classes.place)])


# YTBB-Robust ------------------------------------------------------------------------------------------------------

BAD_ANCHOR = "bad-anchor"
DISSIMILAR = {
    *("dissimilar", "problematic", "incorrect", "dont know", "deformation", "background-change"),
    *("occlusion-increased", "blur-increase", BAD_ANCHOR),
}
SWAPPED = {22: 23, 23: 22}  # the list of anchors swaps these two classes


def ytbb_robust(root: Path, name: str) -> FrameSets:
    """The frames of YTBB-Robust that reviewers accepted: ``<video>_<ms>/frame-<number>.jpg``.

    Anchors must be rated good, not unsure or bad. Frames within ten of an anchor must be rated similar to it and
    without faults. The true classes of a set are those of its anchor.

    Raises:
        DataError: If a file is missing or has another form.
    """
    with _in_form(root, name):
        return _ytbb_robust(root, name)


def _ytbb_robust(root: Path, name: str) -> FrameSets:
    classes = ClassMap(root)
    names: dict[str, str] = read_json(root, "ytbb_class_index.json")
    number_of = {label: int(number) for number, label in names.items()}
    anchors = _annotations(read_json(root, "anchor_labels.json"))
    similar = _annotations(read_json(root, "pmk_labels.json"))
    given = _given_labels(metadata_file(root, "ytbb_robustness_test_anchors_full.csv"))
    bad = {pair.partition(",")[0] for pair, words in similar.items() if BAD_ANCHOR in words}
    good = {pair for pair, words in similar.items() if "similar" in words and not words & DISSIMILAR}
    sets: dict[str, list[str]] = {}
    labels: dict[str, list[int]] = {}
    for anchor, words in anchors.items():
        if "good" not in words or words & {"bad", "unsure"} or anchor in bad:
            continue
        folder = anchor.partition("/")[0]
        if folder not in given:
            raise DataError(f"data set {name!r}: the list of anchors has no class for {anchor}")
        right = classes.places([given[folder], *(number_of[word] for word in words if word in number_of)])
        sets[anchor] = [frame for frame in _around(anchor) if f"{anchor},{frame}" in good]
        labels.update(dict.fromkeys((anchor, *sets[anchor]), right))
    frames = next((root / sub for sub in ("val", "test") if (root / sub).is_dir()), root)
    return FrameSets(frames, name, sets, labels, [names.get(str(label), str(label)) for label in sorted(classes.place)])


def _annotations(given: Any) -> dict[str, set[str]]:
    """Maps frames, or anchors and frames, to their rating; the last of several reviews counts."""
    words = given["labels"]
    return {
        ",".join("/".join(Path(part).parts[-2:]) for part in annotation["key"].split(",")): {
            words[number] for number in annotation["labels"]
        }
        for annotation in given["annotations"]
    }


def _given_labels(path: Path) -> dict[str, int]:
    """Maps the folder of an anchor to the class it was chosen for."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = {f"{row['ytid']}_{row['time_ms']}": int(row["label"]) for row in rows}
    return {folder: SWAPPED.get(label, label) for folder, label in labels.items()}


def _around(anchor: str) -> list[str]:
    """The names of the frames around an anchor, ten to each side."""
    folder, _, file = anchor.partition("/")
    number = int(file.removeprefix("frame-").partition(".")[0])
    return [f"{folder}/frame-{number + offset}.jpg" for offset in range(-REACH, REACH + 1) if offset]
