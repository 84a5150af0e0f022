"""Writes imagecorruptions.npz: what the published package makes of a small photo.

Run once, in an environment of its own:

python -m venv ENV && ENV/bin/pip install 'setuptools<80' 'numpy<2' 'scikit-image==0.20.*' imagecorruptions pooch
ENV/bin/python tests/corruptions/assets/make_reference.py

The package (1.1.2, the last one) draws from numpy's global generator. ``NAME.SEVERITY`` is its output after
``np.random.seed(SEVERITY)``; the test draws the same numbers. ``NAME.SEVERITY.summary`` are means and standard errors
over many draws, for what cannot be drawn again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import imagecorruptions.corruptions as published
import numpy as np
from imagecorruptions import corrupt, get_corruption_names
from PIL import Image
from skimage import data
from skimage.filters import gaussian
from summary import summary

DRAWS = 60
RANDOM = (
    "gaussian_noise shot_noise impulse_noise speckle_noise glass_blur motion_blur snow fog elastic_transform spatter"
).split()


def gaussian_of_now(image: Any, *given: Any, multichannel: bool = False, **options: Any) -> Any:
    """scikit-image's function under the argument that it has today."""
    return gaussian(image, *given, channel_axis=-1 if multichannel else None, **options)


def main() -> None:
    """Writes the file beside this one."""
    published.gaussian = gaussian_of_now
    photo = np.asarray(Image.fromarray(data.astronaut()).resize((72, 72)).crop((12, 0, 60, 40)))
    made = {"photo": photo}
    for name in get_corruption_names("all"):
        if name == "frost":
            continue  # its pictures are not ours to carry
        for severity in range(1, 6):
            np.random.seed(severity)
            made[f"{name}.{severity}"] = corrupt(photo, corruption_name=name, severity=severity)
            if name in RANDOM:
                draws = [corrupt(photo, corruption_name=name, severity=severity) for _ in range(DRAWS)]
                values = summary(np.stack(draws).astype(float))
                moments = [values.mean(axis=0), values.std(axis=0, ddof=1) / DRAWS**0.5]
                made[f"{name}.{severity}.summary"] = np.stack(moments)
    for name in ("impulse_noise", "shot_noise", "glass_blur"):  # drawn in ways that cannot be repeated from outside
        for severity in range(1, 6):
            del made[f"{name}.{severity}"]
    np.savez_compressed(Path(__file__).with_name("imagecorruptions.npz"), **made)


if __name__ == "__main__":
    main()
