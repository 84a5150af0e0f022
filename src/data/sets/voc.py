"""PASCAL VOC 2007 (Everingham et al.): images with all their classes, or single objects cropped from them.

``VOCdevkit/VOC2007`` contains ``JPEGImages/<id>.jpg``, ``Annotations/<id>.xml`` and ``ImageSets/Main/<split>.txt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree
from xml.parsers import expat

from testbed.data.content import ImageDigests
from testbed.data.decode import decode_file
from testbed.data.formats.image_lists import ListedImages
from testbed.data.source import ImageSource
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    from PIL import Image

FOLDER = "VOCdevkit/VOC2007"
SPLITS = ("test", "train", "val", "trainval")
CLASSES = (
    "aeroplane bicycle bird boat bottle bus car cat chair cow diningtable dog horse motorbike person pottedplant sheep"
    " sofa train tvmonitor"
).split()
_LARGEST = 10000  # pixels; the images have up to 500
_ID = re.compile(r"\w+")
Box = tuple[int, int, int, int]


class VOCObject(NamedTuple):
    """An object of an annotation: its class index, and its box: left, top, right, bottom in pixels, counted from 1."""

    label: int
    box: Box


class VOCImages(ListedImages):
    """Whole images; a target is the ascending list of the classes of all objects, including difficult ones.

    Args:
        root: The folder ``VOC2007``.
        name: The data set's name, for messages.
        split: One of `SPLITS`.

    Raises:
        DataError: If a list or an annotation is missing or invalid.
    """

    def __init__(self, root: Path, name: str, split: str) -> None:
        images = read_split(root, name, split)
        labels = [sorted({box.label for box in read_objects(root, name, image)}) for image in images]
        super().__init__(root, name, [_file(image) for image in images], labels, CLASSES)


class VOCObjects(ImageSource):
    """Single objects, cropped to their boxes; a target is the class of the object.

    The boxes' coordinates are used unchanged, although they count from 1, as in CLIP benchmark.

    Args:
        root: The folder ``VOC2007``.
        name: The data set's name, for messages.
        split: One of `SPLITS`.

    Raises:
        DataError: If a list or an annotation is missing or invalid.
    """

    def __init__(self, root: Path, name: str, split: str) -> None:
        self.root = root
        self.name = name
        self.class_names = list(CLASSES)
        self.ids: list[str] = []
        self.targets: list[int] = []
        self.files: list[str] = []
        self.boxes: list[Box] = []
        for image in read_split(root, name, split):
            for number, annotated in enumerate(read_objects(root, name, image)):
                self.ids.append(f"{_file(image)}#{number}")
                self.files.append(_file(image))
                self.targets.append(annotated.label)
                self.boxes.append(annotated.box)

    def encoded(self, position: int) -> Path | bytes | None:
        """The file of an image, or its bytes."""
        return self.root / self.files[position]

    def image(self, position: int) -> Image.Image:
        """The object at a position."""
        return decode_file(self.root / self.files[position]).crop(self.boxes[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each image file's bytes and the box."""
        files = ImageDigests(self.root).digests([self.files[position] for position in positions])
        return [
            digest_bytes(f"{digest} {self.boxes[position]}".encode())
            for digest, position in zip(files, positions, strict=True)
        ]


def _file(image: str) -> str:
    return f"JPEGImages/{image}.jpg"


def read_split(root: Path, name: str, split: str) -> list[str]:
    """The ids of a split's images."""
    path = root / "ImageSets" / "Main" / f"{split}.txt"
    try:
        words = [line.split()[0] for line in path.read_text(encoding="ascii").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"data set {name!r}: {path} cannot be read ({error}); it should be there, with the id of an image on each"
            " line, as VOC 2007's archives unpack (http://host.robots.ox.ac.uk/pascal/VOC/voc2007)"
        ) from error
    odd = next((word for word in words if not _ID.fullmatch(word)), None)
    if odd is not None or not words or len(set(words)) != len(words):
        fault = f"contains {odd!r}, which is not an image id" if odd is not None else "is empty or repeats an image"
        raise DataError(f"data set {name!r}: {path} {fault}")
    return words


def read_objects(root: Path, name: str, image: str) -> list[VOCObject]:
    """The objects of an image, in the order of its annotation."""
    path = root / "Annotations" / f"{image}.xml"
    try:
        return list(_objects(parse_xml(path.read_bytes())))
    except (OSError, ValueError, expat.ExpatError, TypeError, AttributeError) as error:
        raise DataError(
            f"data set {name!r}: {path} cannot be read as an annotation of VOC 2007: {error or type(error).__name__}"
        ) from error


def _objects(annotation: ElementTree.Element) -> Iterator[VOCObject]:
    for element in annotation.findall("object"):
        word = (element.findtext("name") or "").strip()
        if word not in CLASSES:
            raise ValueError(f"an object has the name {word!r}, which is not one of the 20 classes")
        sides = [float(element.findtext(f"bndbox/{side}") or "nan") for side in ("xmin", "ymin", "xmax", "ymax")]
        if not (0 <= sides[0] < sides[2] <= _LARGEST and 0 <= sides[1] < sides[3] <= _LARGEST):
            raise ValueError(f"an object has the box {sides}")
        left, top, right, bottom = (int(side) for side in sides)
        yield VOCObject(CLASSES.index(word), (left, top, right, bottom))


def parse_xml(data: bytes) -> ElementTree.Element:
    """Parses XML without a document type, so that it cannot define or fetch entities.

    Raises:
        ValueError: If it has one.
        xml.parsers.expat.ExpatError: If it is not XML.
    """
    builder = ElementTree.TreeBuilder()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.Parse(data, True)
    return builder.close()


def _refuse(*declaration: object) -> None:
    raise ValueError("it declares a document type, which is not allowed because it can define entities")
