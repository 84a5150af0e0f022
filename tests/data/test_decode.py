"""Decoding: every mode becomes RGB as torchvision's loader makes it, and every damage becomes a SampleError."""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageFile
from torchvision.datasets.folder import default_loader

from testbed.data.content import ImageDigests
from testbed.data.decode import decode_bytes, decode_file, image_digest
from testbed.data.rows import Picture
from testbed.errors import DataError, SampleError
from testbed.inputs import Inputs, using

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (11, 7), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (11, 7, 3), dtype=np.uint8)

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
    "ycbcr.tif": Image.fromarray(COLOUR).convert("YCbCr"),
}
MODES = {"grey.png": "L", "grey-alpha.png": "LA", "bits.png": "1", "alpha.png": "RGBA", "palette.png": "P"}
MODES["cmyk.jpg"] = "CMYK"


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


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_16(values: np.ndarray, colour_type: int) -> bytes:
    """A PNG file of 16 bits per channel, written by hand; uint16 [height, width, channels]."""
    height, width, _ = values.shape
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in values)
    head = struct.pack(">IIBBBBB", width, height, 16, colour_type, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def tiff(values: np.ndarray, bits: int, photometric: int = 1, order: str = "<", sample_format: int = 1) -> bytes:
    """A TIFF file of one channel, written by hand: as many bits per pixel as it says, uncompressed."""
    height, width = values.shape
    if bits == 12:
        flat = values.astype(np.uint16).reshape(height, -1, 2)
        first, second = flat[..., 0], flat[..., 1]
        data = np.stack([first >> 4, (first & 15) << 4 | second >> 8, second & 255], -1).astype(np.uint8).tobytes()
    else:
        data = values.astype(values.dtype.newbyteorder(order)).tobytes()
    tags = [(256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, 1), (262, 3, photometric), (273, 4, 8)]
    tags += [(277, 3, 1), (278, 4, height), (279, 4, len(data)), (339, 3, sample_format)]
    entries = b"".join(
        struct.pack(f"{order}HHI", tag, kind, 1) + struct.pack(f"{order}{'H2x' if kind == 3 else 'I'}", value)
        for tag, kind, value in tags
    )
    start = {"<": b"II", ">": b"MM"}[order] + struct.pack(f"{order}HI", 42, 8 + len(data))
    return start + data + struct.pack(f"{order}H", len(tags)) + entries + b"\0" * 4


WIDE = RNG.integers(0, 65536, (10, 8)).astype(np.uint16)
UPPER = (WIDE // 256).astype(np.uint8)
SCALED = {
    "png": encoded(Image.fromarray(WIDE), "PNG"),
    "png by hand": png_16(WIDE[..., None], 0),
    "little-endian tiff": tiff(WIDE, 16),
    "big-endian tiff": tiff(WIDE, 16, order=">"),
    "compressed tiff": encoded(Image.fromarray(WIDE), "TIFF", compression="tiff_lzw"),
    "pgm": b"P5 8 10 65535\n" + WIDE.astype(">u2").tobytes(),
    "jpeg 2000": encoded(Image.fromarray(WIDE), "JPEG2000"),
    "tiff of which white is zero": tiff(65535 - WIDE, 16, photometric=0),
    "12 bits": tiff(WIDE >> 4, 12),
}


@pytest.mark.parametrize("name", SCALED)
def test_deep_grey_is_scaled_by_its_depth_to_the_upper_8_bits(name):
    np.testing.assert_array_equal(np.asarray(decode_bytes(SCALED[name], name)), np.dstack([UPPER] * 3))


def test_deep_grey_is_scaled_as_pillow_scales_deep_colour():
    ours = decode_bytes(png_16(WIDE[..., None], 0), "grey")
    with Image.open(io.BytesIO(png_16(np.dstack([WIDE] * 3), 2))) as colour:
        assert colour.mode == "RGB"
        np.testing.assert_array_equal(np.asarray(ours), np.asarray(colour))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (encoded(Image.fromarray(GREY.astype(np.float32)), "TIFF"), "floats"),
        (encoded(Image.fromarray(GREY.astype(np.float32) / 255), "TIFF"), "floats"),
        (tiff(GREY[:10, :6].astype(np.float64), 64, sample_format=3), "64"),
        (encoded(Image.fromarray(GREY.astype(np.int32)), "TIFF"), "signed or 32-bit integers"),
        (tiff(WIDE.astype(np.uint32), 32), "signed or 32-bit integers"),
        (tiff(WIDE.astype(np.int16), 16, sample_format=2), "signed or 32-bit integers"),
    ],
)
def test_pixels_without_a_known_white_are_unreadable_and_named(data, kind):
    with pytest.raises(SampleError, match=r"x/fog\.tif (is not decoded: its pixels are|cannot be decoded)") as caught:
        decode_bytes(data, "x/fog.tif")
    if kind != "64":  # which Pillow does not open
        assert kind in str(caught.value)
        assert "save it with 8 or 16 bits" in str(caught.value)


def test_digests_change_only_for_deep_images(tmp_path):
    plain = [encoded(IMAGES["grey.png"], "PNG"), encoded(IMAGES["colour.jpg"], "JPEG"), b"no image", b""]
    deep = [*SCALED.values(), encoded(Image.fromarray(GREY.astype(np.float32)), "TIFF")]
    for number, data in enumerate((*plain, *deep)):
        of_bytes = hashlib.sha256(data).hexdigest()[:32]
        (tmp_path / str(number)).write_bytes(data)
        assert image_digest(data) == ImageDigests(tmp_path).digests([str(number)])[0] == Picture(data).digest
        assert (image_digest(data) == of_bytes) is (data in plain)


def test_other_programs_get_deep_pictures_with_8_bits():
    png = Picture(SCALED["png"], "fog.png").eight_bits()
    with Image.open(io.BytesIO(png.data)) as image:
        np.testing.assert_array_equal(np.asarray(image), np.dstack([UPPER] * 3))
    plain = Picture(encoded(IMAGES["grey.png"], "PNG"))
    assert plain.eight_bits() == plain
    with pytest.raises(SampleError, match="floats"):
        Picture(encoded(Image.fromarray(GREY.astype(np.float32)), "TIFF"), "f.tif").eight_bits()


def test_of_frames_and_pages_the_first_is_read_transparency_is_dropped_and_nothing_is_turned():
    first, second = (Image.fromarray(np.full((4, 6, 3), level, np.uint8)) for level in (40, 200))
    for form in ("GIF", "TIFF", "WEBP", "PNG"):
        options = {"lossless": True} if form == "WEBP" else {}
        pages = encoded(first, form, save_all=True, append_images=[second], **options)
        assert np.asarray(decode_bytes(pages, form)).tolist() == np.asarray(first).tolist(), form
    clear = Image.fromarray(np.dstack([COLOUR, np.zeros_like(GREY)]))
    assert np.asarray(decode_bytes(encoded(clear, "PNG"), "clear")).tolist() == COLOUR.tolist()
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    assert decode_bytes(encoded(Image.fromarray(COLOUR), "JPEG", exif=exif), "turned").size == (7, 11)


def test_the_extension_does_not_decide(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(COLOUR).save(buffer, format="PNG")
    (tmp_path / "a.jpg").write_bytes(buffer.getvalue())
    np.testing.assert_array_equal(np.asarray(decode_file(tmp_path / "a.jpg")), COLOUR)
    np.testing.assert_array_equal(np.asarray(decode_bytes(buffer.getvalue(), "bytes")), COLOUR)


BIG = np.random.default_rng(1).integers(0, 256, (60, 50, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (encoded(Image.fromarray(BIG), "PNG")[:4000], "cannot be decoded"),
        (encoded(Image.fromarray(BIG), "JPEG")[:1500], "truncated"),
        (b"this is no image", "cannot be decoded"),
        (b"", "cannot be decoded"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "cannot be decoded"),
        (None, "cannot be read: No such file"),
        ("a folder", "cannot be read"),
    ],
    ids=["truncated PNG", "truncated JPEG", "text", "empty", "header", "missing", "folder"],
)
def test_damage_is_a_sample_error_that_names_the_file(tmp_path, content, words):
    path = tmp_path / "x.png"
    if content == "a folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(SampleError) as caught:
        decode_file(path)
    assert isinstance(caught.value, DataError)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert not re.search(r"0x[0-9a-f]{6,}", str(caught.value))  # the same each time


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_truncated_files_are_refused_whatever_pillow_is_told(monkeypatch, kind):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    whole = encoded(Image.fromarray(BIG), kind)
    half = whole[: len(whole) // 2]
    assert Image.open(io.BytesIO(half)).convert("RGB").size == (50, 60)

    def refused(data):
        with pytest.raises(SampleError, match="LOAD_TRUNCATED_IMAGES does not change that"):
            decode_bytes(data, "it")
        decode_bytes(whole, "it")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(refused, [half] * 20))
    assert ImageFile.LOAD_TRUNCATED_IMAGES


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
