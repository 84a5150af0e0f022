"""Writes imagenet_c_bar.npz: what the authors' program for ImageNet-C-bar makes of a small photo.

Run once, with scikit-image and scipy, beside a checkout of https://github.com/facebookresearch/augmentation-corruption
(commit ba4d5a5):

python tests/corruptions/assets/make_c_bar_reference.py CHECKOUT

``NAME.SEVERITY.SIDE`` is an output, ``NAME.SEVERITY.SIDE.PARAMETER`` what was drawn for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

SEVERITIES = (2, 5)
SIDES = (40, 33)


def main() -> None:
    """Writes the file beside this one."""
    program = Path(sys.argv[1]) / "imagenet_c_bar"
    sys.path.insert(0, str(program))
    import corrupt

    published = {kind.name: kind for kind in vars(corrupt).values() if hasattr(kind, "tags")}
    made = {}
    for side in SIDES:
        photo = np.asarray(Image.fromarray(data.astronaut()).resize((64, 64)).crop((12, 0, 12 + side, side)))
        made[f"photo.{side}"] = photo
        for line in (program / "imagenet_c_bar.csv").read_text().split():
            name, *levels = line.split(",")
            for severity in SEVERITIES:
                np.random.seed(severity)
                kind = published[name](float(levels[severity - 1]), side)
                drawn = kind.sample_parameters()
                key = f"{name}.{severity}.{side}"
                made |= {f"{key}.{parameter}": np.asarray(value) for parameter, value in drawn.items()}
                made[key] = kind.transform(photo.copy(), **drawn)
    np.savez_compressed(Path(__file__).with_name("imagenet_c_bar.npz"), **made)


if __name__ == "__main__":
    main()
