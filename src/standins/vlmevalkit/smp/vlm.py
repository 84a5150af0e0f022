"""VLMEvalKit's helpers for pictures."""

from __future__ import annotations

import base64
import binascii
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from testbed.errors import SampleError
from testbed.standins.vlmevalkit.absent import refusing


def encode_image_to_base64(img: Image.Image, target_size: int = -1, fmt: str = "JPEG", **_: Any) -> str:
    """An image as the base64 text of a file; no larger than ``target_size``, if that is given."""
    if img.mode in ("RGBA", "P", "LA"):
        img = img.convert("RGB")
    if target_size > 0:
        img = img.copy()
        img.thumbnail((target_size, target_size))
    file = io.BytesIO()
    img.save(file, format=fmt)
    return base64.b64encode(file.getvalue()).decode()


def encode_image_file_to_base64(image_path: str, target_size: int = -1, fmt: str = "JPEG", **_: Any) -> str:
    """Returns `encode_image_to_base64` of a file."""
    with Image.open(image_path) as image:
        return encode_image_to_base64(image, target_size, fmt)


def decode_base64_to_image(base64_string: str, target_size: int = -1) -> Image.Image:
    """The image in a base64 text."""
    image: Image.Image = Image.open(io.BytesIO(decoded(base64_string)))
    if image.mode in ("RGBA", "P", "LA"):
        image = image.convert("RGB")
    if target_size > 0:
        image.thumbnail((target_size, target_size))
    return image


def decode_base64_to_image_file(base64_string: str, image_path: str, target_size: int = -1) -> None:
    """Writes the picture in a base64 text into a file: its very bytes, unless it is made smaller."""
    Path(image_path).parent.mkdir(parents=True, exist_ok=True)
    if target_size > 0:
        decode_base64_to_image(base64_string, target_size).save(image_path)
    else:
        Path(image_path).write_bytes(decoded(base64_string))


def read_ok(img_path: str) -> bool:
    """Checks whether a file is an image."""
    try:
        with Image.open(img_path) as image:
            return min(image.size) > 0
    except (OSError, ValueError, SyntaxError):
        return False


def concat_images_vlmeval(
    images: Sequence[str], target_size: int = -1, mode: str = "h", return_image: bool = False
) -> Any:
    """Concatenates pictures side by side (``"h"``) or below each other (``"v"``), each scaled to ``target_size``.

    Returns:
        The image, or the path of a PNG file with it.
    """
    opened = [Image.open(path).convert("RGB") for path in images]
    across = mode == "h"
    if target_size != -1:
        opened = [
            image.resize(
                (round(image.width * target_size / image.height), target_size)
                if across
                else (target_size, round(image.height * target_size / image.width))
            )
            for image in opened
        ]
    widths, heights = [image.width for image in opened], [image.height for image in opened]
    whole = Image.new("RGB", (sum(widths), max(heights)) if across else (max(widths), sum(heights)))
    for number, image in enumerate(opened):
        whole.paste(image, (sum(widths[:number]), 0) if across else (0, sum(heights[:number])))
    if return_image:
        return whole
    with tempfile.NamedTemporaryFile(suffix=".png", dir=Path(images[0]).parent, delete=False) as file:
        whole.save(file, "PNG")
    return file.name


def decoded(text: str) -> bytes:
    """Decodes a base64 text; raises SampleError if it is not one."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError) as error:
        raise SampleError(f"{text[:20]!r}… is not the base64 text of a picture: {error}") from error


def build_option_str(option_dict: Mapping[str, Any]) -> str:
    """Returns the options in lines, in VLMEvalKit's form for judges."""
    lines = [f"{letter}. {text}\n" for letter, text in option_dict.items() if text is not None and text == text]
    return "".join(["There are several options: \n", *lines])


def isimg(s: str) -> bool:
    """Checks whether a text is the path of a file, or a URL."""
    return os.path.exists(s) or s.startswith("http")


def gpt_key_set() -> bool:
    """Checks whether there is a key for OpenAI's models."""
    return os.environ.get("OPENAI_API_KEY", "").startswith("sk-") or "AZURE_OPENAI_API_KEY" in os.environ


def mmqa_display(question: Mapping[str, Any], target_size: int = -1) -> None:
    """Prints a row without its pictures."""
    print("\n".join(f"{name.upper()}. {cell}" for name, cell in question.items() if name.lower() != "image"))


__getattr__ = refusing(__name__)
