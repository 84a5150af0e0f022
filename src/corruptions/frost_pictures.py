"""The photographs of frost that ImageNet-C was made with: where they are found, and how they are read.

They are the six files of Hendrycks & Dietterich's repository (https://github.com/hendrycks/robustness, folder
ImageNet-C/imagenet_c/imagenet_c/frost), of which the published program uses the first five. The package
imagecorruptions carries them too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import UnsupportedError
from testbed.paths import data_root

if TYPE_CHECKING:
    import torch

NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
FOLDER = "frost"  # below the data root
PACKAGES = ("imagecorruptions", "imagenet_c")
MARGIN = 1.1  # by how much a picture is enlarged before a part of it is taken


def folder() -> Path:
    """The folder with the pictures: ``frost`` below the data root, else that of an installed package.

    Raises:
        UnsupportedError: If there is none.
    """
    for place in _places():
        if all((place / name).is_file() for name in NAMES):
            return place
    root = data_root()
    raise UnsupportedError(
        f"frost needs the photographs of ImageNet-C ({NAMES[0]} … {NAMES[-1]}) in the folder"
        f" {root / FOLDER if root else f'{FOLDER} below the data root (--data-root)'}, or pip install imagecorruptions,"
        " which carries them; they come from https://github.com/hendrycks/robustness"
    )


def _places() -> list[Path]:
    """Returns the possible folders of the pictures; the packages are looked up, not imported."""
    root = data_root()
    places = [root / FOLDER] if root else []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin:
            places.append(Path(spec.origin).parent / "frost")
    return places


def fingerprint() -> str:
    """A digest of the pictures' content."""
    place = folder()
    return hashlib.sha256(b"".join(hashlib.sha256((place / name).read_bytes()).digest() for name in NAMES)).hexdigest()


def pictures(height: int, width: int) -> tuple[torch.Tensor, ...]:
    """The five pictures, enlarged so that an image of that size can be cut out of each: uint8 tensors [3, h, w]."""
    return _pictures(folder(), height, width)


@lru_cache(maxsize=4)
def _pictures(place: Path, height: int, width: int) -> tuple[torch.Tensor, ...]:
    import numpy as np
    import torch
    from PIL import Image
    from torch.nn import functional

    read = []
    for name in NAMES:
        with Image.open(place / name) as file:
            picture = torch.from_numpy(np.array(file.convert("RGB"))).permute(2, 0, 1)
        factor = MARGIN * max(1, height / picture.shape[1], width / picture.shape[2])
        size = [math.ceil(size * factor) for size in picture.shape[1:]]
        enlarged = functional.interpolate(picture[None].float(), size=size, mode="bicubic", align_corners=False)[0]
        read.append(enlarged.round_().clamp_(0, 255).to(torch.uint8))
    return tuple(read)
