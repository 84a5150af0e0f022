"""Shards written by hand with the standard library, and a source of small pictures of any kind of target."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from testbed.data.source import ImageSource
from testbed.identity.describe import digest_bytes


def pixels(number: int, width: int = 12, height: int = 9) -> np.ndarray:
    """A picture that differs from those of other numbers, uint8 [height, width, 3]."""
    return np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)


def picture(number: int, form: str = "png") -> bytes:
    """The same as the content of a file."""
    file = io.BytesIO()
    Image.fromarray(pixels(number)).save(file, {"jpg": "JPEG"}.get(form, form.upper()), lossless=True)
    return file.getvalue()


def vector(values: Sequence[float], dtype: Any = np.float32) -> bytes:
    """The content of a .npy file."""
    file = io.BytesIO()
    np.save(file, np.array(values, dtype))
    return file.getvalue()


def member(name: str, content: bytes, **attributes: Any) -> tuple[tarfile.TarInfo, bytes]:
    """A member of an archive."""
    information = tarfile.TarInfo(name)
    information.size = len(content)
    for attribute, value in attributes.items():
        setattr(information, attribute, value)
    return information, content


def write_tar(path: Path, members: Any, form: int = tarfile.PAX_FORMAT, mode: str = "w") -> Path:
    """Writes an archive of (TarInfo or name, content)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode, format=form) as archive:
        for information, content in members:
            given = information if isinstance(information, tarfile.TarInfo) else member(information, content)[0]
            archive.addfile(given, io.BytesIO(content))
    return path


def samples(labels: Mapping[str, bytes], label: str = "cls", form: str = "png") -> list[tuple[str, bytes]]:
    """The members of samples with these keys and labels; the n-th has the n-th picture."""
    members = []
    for number, (key, content) in enumerate(labels.items()):
        members += [(f"{key}.{label}", content), (f"{key}.{form}", picture(number, form))]
    return members


def write_split(root: Path, shards: Sequence[Any], split: str = "test", **files: str) -> Path:
    """Writes a data set: its shards, nshards.txt and the small files, such as ``classnames="cat\\ndog\\n"``."""
    for number, members in enumerate(shards):
        write_tar(root / split / f"{number}.tar", members)
    (root / split).mkdir(parents=True, exist_ok=True)
    (root / split / "nshards.txt").write_text(f"{len(shards)}\n")
    for name, text in files.items():
        name = {"templates": "zeroshot_classification_templates"}.get(name, name)
        (root / f"{name}.txt").write_bytes(text.encode())
    return root


class Pictures(ImageSource):
    """Random pictures with given targets."""

    def __init__(self, targets: Sequence[Any], class_names: Sequence[str] | None = None) -> None:
        self.name = "pictures"
        self.ids = [f"picture/{number}" for number in range(len(targets))]
        self.targets = list(targets)
        self.class_names = list(class_names) if class_names is not None else None

    def image(self, position: int) -> Image.Image:
        """The picture."""
        return Image.fromarray(pixels(position))

    def digests(self, positions: Sequence[int]) -> list[str]:
        """Of the pixels."""
        return [digest_bytes(pixels(position).tobytes()) for position in positions]


class Arrays:
    """The pixels of a source's images, for torch's DataLoader."""

    def __init__(self, source: ImageSource) -> None:
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, position: int) -> np.ndarray:
        return np.asarray(self.source.image(position))
