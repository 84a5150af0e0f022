"""OpenOOD's lists of images: a path and a class in each line, −1 for an image of no class."""

from __future__ import annotations

from pathlib import Path

from testbed.data.formats.image_lists import ListedImages
from testbed.errors import DataError

LISTS = "benchmark_imglist/imagenet"


class ListedByOpenOOD(ListedImages):
    """The images of a list below OpenOOD's folder of data.

    Args:
        root: The folder with ``benchmark_imglist``, ``images_largescale`` and ``images_classic``.
        name: The data set's name, for messages.
        file: The list, such as ``test_ninco.txt``.
        images: The folder that its paths are relative to.

    Raises:
        DataError: If the list or the folder is missing, or a line does not fit such a list.
    """

    def __init__(self, root: Path, name: str, file: str, images: str) -> None:
        path = root / LISTS / file
        if not path.is_file() or not (root / images).is_dir():
            raise DataError(
                f"data set {name!r}: {root} should hold {LISTS}/{file} and {images}/, as OpenOOD's script for downloads"
                f" makes them; {file if not path.is_file() else images} is missing"
            )
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"data set {name!r}: {path} is not a list in UTF-8: {error}") from error
        pairs = [_pair(line, path, number) for number, line in enumerate(lines, start=1) if line.strip()]
        super().__init__(root / images, name, [file for file, _ in pairs], [label for _, label in pairs], None)


def _pair(line: str, path: Path, number: int) -> tuple[str, int]:
    file, _, label = line.strip().rpartition(" ")
    try:
        return file.strip() or _no_pair(), int(label)
    except ValueError:
        raise DataError(f"{path}, line {number}: expected a path and a class, got {line.strip()!r:.80}") from None


def _no_pair() -> str:
    raise ValueError
