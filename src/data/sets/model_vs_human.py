"""model-vs-human's images (Geirhos et al. 2021): 16 classes, and people's answers to each.

The archives of https://github.com/bethgelab/model-vs-human/releases hold a folder for each set: with a folder for each
class, or with ``dnn/session-1`` and files named ``NUMBER_SET_SUBJECT_CONDITION_CLASS_…``.
"""

from __future__ import annotations

import re
from pathlib import Path

from testbed.data.formats.image_folder import image_files
from testbed.data.formats.image_lists import ListedImages
from testbed.data.left_out import LeftOutLog
from testbed.errors import DataError

CLASSES = tuple(
    "airplane bear bicycle bird boat bottle car cat chair clock dog elephant keyboard knife oven truck".split()
)
_TEXTURE = re.compile(r"(?:.*_)?([a-z]+)\d+-([a-z]+)\d+\.[A-Za-z]+")


class ModelVsHuman(ListedImages):
    """The images of a set; their slices have the condition, or the class of the texture, where the set has such.

    Args:
        root: The set's folder.
        name: The data set's name, for messages.
        textures: True if the names of the files have the class of the texture (``cat1-dog2.png``).

    Raises:
        DataError: If the folder is missing, or an image belongs to none of the classes.
    """

    def __init__(self, root: Path, name: str, textures: bool) -> None:
        sessions = (root / "dnn").is_dir()
        base = root / "dnn" if sessions else root
        files = sorted(image_files(base, LeftOutLog())) if base.is_dir() else []
        if not files:
            raise DataError(
                f"data set {name!r}: {root} should hold a folder for each of 16 classes, or dnn/session-1/ with images,"
                " as in the archives of https://github.com/bethgelab/model-vs-human/releases; there are no images"
            )
        labelled = [_of_session(file, name) if sessions else _of_folder(file, name) for file in files]
        targets = [CLASSES.index(label) for label, _ in labelled]
        super().__init__(base, name, files, targets, CLASSES)
        if textures:
            self.slices = [{"texture": _texture(file, name)} for file in self.ids]
        elif sessions:
            self.slices = [{"condition": condition} for _, condition in labelled]


def short_name(file: str) -> str:
    """Returns the name of an image in people's responses, without the number of a trial."""
    parts = file.rpartition("/")[2].split("_")
    return "_".join(parts[-2:]) if len(parts) > 1 and parts[-2].startswith("n0") else parts[-1]


def _of_folder(file: str, name: str) -> tuple[str, None]:
    return _class(file.split("/")[0], file, name), None


def _of_session(file: str, name: str) -> tuple[str, str]:
    parts = file.rpartition("/")[2].split("_")
    if len(parts) < 6:
        raise DataError(f"data set {name!r}: the file {file} should be named NUMBER_SET_SUBJECT_CONDITION_CLASS_…")
    return _class(parts[4], file, name), parts[3]


def _class(label: str, file: str, name: str) -> str:
    if label not in CLASSES:
        raise DataError(f"data set {name!r}: {file} is of {label!r}, which is not one of {', '.join(CLASSES)}")
    return label


def _texture(file: str, name: str) -> str:
    match = _TEXTURE.fullmatch(file.rpartition("/")[2])
    if match is None:
        raise DataError(
            f"data set {name!r}: the file {file} should be named SHAPE1-TEXTURE2.png, such as cat1-dog2.png"
        )
    return _class(match[2], file, name)
