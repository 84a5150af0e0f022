"""Draws docs/corruptions.jpg: one photo under the 19 corruptions of ImageNet-C at five severities.

python docs/make_corruptions.py [--data-root DIR]   (frost needs its pictures there, or the package imagecorruptions)
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from skimage import data

from testbed.console.options import use
from testbed.corruptions import IMAGENET_C, SEVERITIES, corrupt
from testbed.errors import UnsupportedError
from testbed.inputs import Inputs

SIZE, SHOWN, MARGIN, LABEL = 224, 96, 2, 130


@click.command()
@click.option("--data-root", metavar="DIR")
@click.option("--out", type=click.Path(path_type=Path), default=Path(__file__).with_name("corruptions.jpg"))
def main(data_root: str | None, out: Path) -> None:
    """Writes the picture."""
    use(Inputs.from_environment().but(data_root=data_root))
    photo = Image.fromarray(data.astronaut()).resize((256, 256)).crop((16, 0, 240, 224))
    image = torch.from_numpy(np.asarray(photo).copy()).permute(2, 0, 1)[None].float() / 255
    step = SHOWN + MARGIN
    sheet = Image.new("RGB", (LABEL + 5 * step, 19 * step), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for row, name in enumerate(IMAGENET_C):
        draw.text((4, row * step + SHOWN // 2 - 8), name, fill="black", font=font)
        for column, severity in enumerate(SEVERITIES):
            place = (LABEL + column * step, row * step)
            try:
                made = corrupt(image, name, severity, [0])[0]
            except UnsupportedError:
                draw.text((place[0] + 8, place[1] + SHOWN // 2 - 8), "pictures needed", fill="grey", font=font)
                continue
            pixels = made.mul(255).round().to(torch.uint8).permute(1, 2, 0).numpy()
            sheet.paste(Image.fromarray(pixels).resize((SHOWN, SHOWN), Image.Resampling.LANCZOS), place)
    sheet.save(out, quality=82)


if __name__ == "__main__":
    main()
