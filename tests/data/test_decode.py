"""Decoding: every mode becomes RGB as torchvision's loader makes it, and every damage becomes a SampleError."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from PIL import Image
from torchvision.datasets.folder import default_loader

from testbed.data.decode import decode_bytes, decode_file
from testbed.errors import DataError, SampleError
from testbed.inputs import Inputs, using

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (11, 7), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (11, 7, 3), dtype=np.uint8)
DEEP = RNG.integers(0, 65536, (11, 7)).astype(np.uint16)

IMAGES = {
    "grey.png": Image.fromarray(GREY),
    "grey.jpg": Image.fromarray(GREY),
    "grey-alpha.png": Image.fromarray(np.dstack([GREY, GREY])),
    "bits.png": Image.fromarray(GREY > 100),
    "colour.png": Image.fromarray(COLOUR),
    "colour.webp": Image.fromarray(COLOUR),
    "colour.bmp": Image.fromarray(COLOUR),
    "colour.jpg": Image.fromarray(COLOUR),
    "alpha.png": Image.fromarray(np.dstack([COLOUR, GREY])),
    "palette.png": Image.fromarray(COLOUR).quantize(16),
    "cmyk.jpg": Image.fromarray(COLOUR).convert("CMYK"),
    "deep.png": Image.fromarray(DEEP),
    "deep.tif": Image.fromarray(DEEP),
    "integers.tif": Image.fromarray(DEEP.astype(np.int32)),
    "floats.tif": Image.fromarray(GREY.astype(np.float32)),
    "ycbcr.tif": Image.fromarray(COLOUR).convert("YCbCr"),
}
MODES = {"grey.png": "L", "grey-alpha.png": "LA", "bits.png": "1", "alpha.png": "RGBA", "palette.png": "P"}
MODES.update({"cmyk.jpg": "CMYK", "deep.png": "I;16", "deep.tif": "I;16", "integers.tif": "I", "floats.tif": "F"})


@pytest.mark.parametrize("name", IMAGES)
def test_every_mode_becomes_rgb_as_in_torchvision(tmp_path, name):
    path = tmp_path / name
    IMAGES[name].save(path)
    if name in MODES:
        with Image.open(path) as opened:
            assert opened.mode == MODES[name]
    decoded = decode_file(path)
    assert decoded.mode == "RGB"
    assert decoded.size == (7, 11)
    np.testing.assert_array_equal(np.asarray(decoded), np.asarray(default_loader(str(path))))


def test_grey_images_get_three_equal_channels(tmp_path):
    Image.fromarray(GREY).save(tmp_path / "g.png")
    np.testing.assert_array_equal(np.asarray(decode_file(tmp_path / "g.png")), np.dstack([GREY] * 3))


def test_transparency_is_dropped_and_colours_stay(tmp_path):
    IMAGES["alpha.png"].save(tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(decode_file(tmp_path / "a.png")), COLOUR)


def test_palette_entries_become_their_colours(tmp_path):
    image = Image.fromarray((GREY % 3).astype(np.uint8), mode="L").convert("P")
    colours = [(10, 20, 30), (200, 100, 0), (255, 255, 254)]
    image.putpalette([value for colour in colours for value in colour])
    image.putdata((GREY % 3).flatten().tolist())
    image.save(tmp_path / "p.png")
    np.testing.assert_array_equal(np.asarray(decode_file(tmp_path / "p.png")), np.array(colours)[GREY % 3])


def test_the_orientation_in_exif_is_not_applied_as_in_torchvision(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    Image.fromarray(COLOUR).save(tmp_path / "turned.jpg", exif=exif)
    decoded = decode_file(tmp_path / "turned.jpg")
    assert decoded.size == (7, 11)
    np.testing.assert_array_equal(np.asarray(decoded), np.asarray(default_loader(str(tmp_path / "turned.jpg"))))


def test_the_extension_does_not_decide(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(COLOUR).save(buffer, format="PNG")
    (tmp_path / "a.jpg").write_bytes(buffer.getvalue())
    np.testing.assert_array_equal(np.asarray(decode_file(tmp_path / "a.jpg")), COLOUR)
    np.testing.assert_array_equal(np.asarray(decode_bytes(buffer.getvalue(), "bytes")), COLOUR)


def damaged(tmp_path, name):
    path = tmp_path / name
    if name in ("truncated.png", "truncated.jpg"):
        big = np.random.default_rng(1).integers(0, 256, (60, 50, 3), dtype=np.uint8)
        Image.fromarray(big).save(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    elif name == "text.jpg":
        path.write_text("this is no image")
    elif name == "empty.png":
        path.write_bytes(b"")
    elif name == "header.png":
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    elif name == "folder.png":
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("truncated.png", "cannot be decoded"),
        ("truncated.jpg", "truncated"),
        ("text.jpg", "cannot be decoded"),
        ("empty.png", "cannot be decoded"),
        ("header.png", "cannot be decoded"),
        ("missing.png", "cannot be read: No such file"),
        ("folder.png", "cannot be read"),
    ],
)
def test_damage_is_a_sample_error_that_names_the_file(tmp_path, name, words):
    path = damaged(tmp_path, name)
    with pytest.raises(SampleError) as caught:
        decode_file(path)
    assert isinstance(caught.value, DataError)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)


def test_the_message_about_a_damaged_file_is_the_same_each_time(tmp_path):
    with pytest.raises(SampleError) as caught:
        decode_file(damaged(tmp_path, "text.jpg"))
    assert not re.search(r"0x[0-9a-f]{6,}", str(caught.value))


def test_bytes_are_named_by_what_they_are_said_to_be():
    with pytest.raises(SampleError, match=r"shard 3, member 7\.png cannot be decoded"):
        decode_bytes(b"nothing", "shard 3, member 7.png")


def test_the_limit_of_megapixels_may_be_above_pillows(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)  # Pillow refuses twice as many
    small = io.BytesIO()
    Image.fromarray(COLOUR).save(small, "png")
    assert decode_bytes(small.getvalue(), "it").size == (7, 11)
    assert Image.MAX_IMAGE_PIXELS == 20
    monkeypatch.undo()
    large = io.BytesIO()
    Image.new("1", (2000, 1000)).save(large, "png")
    with using(Inputs(max_megapixels=2)):
        assert decode_bytes(large.getvalue(), "it").size == (2000, 1000)
    with using(Inputs(max_megapixels=1)), pytest.raises(SampleError, match=r"2,000 × 1,000 pixels .* limit of 1 mega"):
        decode_bytes(large.getvalue(), "it")
