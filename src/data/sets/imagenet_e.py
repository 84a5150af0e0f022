"""ImageNet-E: edited validation images of ImageNet, a folder for each edit, and the labels of the images."""

from __future__ import annotations

from pathlib import Path

from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_lists import ListedImages
from testbed.data.left_out import NO_SAMPLE, LeftOutLog
from testbed.errors import DataError, shortened

ARCHIVE = "the archive that https://github.com/alibaba/easyrobust links in benchmarks/imagenet-e"
LABELS = "labels.txt"
_CLASSES = 1000
_OTHERS = ("__MACOSX",)


def edits_in(root: Path) -> list[str]:
    """The folders with edits that are there."""
    if not root.is_dir():
        return []
    folders = (path.name for path in root.iterdir() if path.is_dir())
    return sorted(name for name in folders if name[0] != "." and name not in _OTHERS)


def imagenet_e(root: Path, edit: str, name: str) -> ListedImages:
    """The images of an edit; the target is one of ImageNet's 1,000 classes.

    Args:
        root: The folder of the unpacked archive. Its ``labels.txt`` has a line for each image of ImageNet: its name, a
            tab, and the number of its class from 0; ``EDIT/`` has images of the same names, also with another ending.
        edit: The edit.
        name: The data set's name, for messages.

    Raises:
        DataError: If a folder or the labels are missing, or an image has no label or a label no image.
    """
    folder = root / edit
    if not folder.is_dir() or not (root / LABELS).is_file():
        missing_path = root / LABELS if folder.is_dir() else folder
        there = f"; there are: {', '.join(edits)}" if (edits := edits_in(root)) else ""
        raise DataError(
            f"data set {name!r}: {missing_path} does not exist; {root} should hold {LABELS} and a folder for each edit"
            f" (ori, full, …) of {ARCHIVE}{there}"
        )
    labels, leaving = _labels(root / LABELS, name), LeftOutLog()
    files = {Path(file).stem: file for file in sorted(image_files(folder, leaving))}
    missing = [stem for stem in labels if stem not in files]
    if missing:
        raise DataError(
            f"data set {name!r}: {folder} lacks {len(missing):,} of the {len(labels):,} images that {LABELS} lists; the"
            f" first is {missing[0]}; unpack {ARCHIVE} again"
        )
    for stem in sorted(set(files) - set(labels)):
        leaving.out(files[stem], NO_SAMPLE)
    source = ListedImages(folder, name, [files[stem] for stem in labels], list(labels.values()), None)
    source.left_out = leaving.found()
    return source


def _labels(path: Path, name: str) -> dict[str, int]:
    """The class of each image, by its name without its ending."""
    found: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise DataError(f"data set {name!r}: {path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        file, _, label = line.rpartition("\t")
        if not file or not label.strip().isdecimal() or int(label) >= _CLASSES:
            raise DataError(
                f"data set {name!r}: {path}, line {number}: {shortened(line)}; expected the name of an image, a tab and"
                f" its class from 0 to {_CLASSES - 1}"
            )
        found[Path(file).stem] = int(label)
    if not found:
        raise DataError(f"data set {name!r}: {path} lists no images")
    return found
