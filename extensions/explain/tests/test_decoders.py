"""Other decoders of image files."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from testbed.data.formats.image_folder import ImageFolder
from testbed.extensions.explain.axis import NotApplicableError
from testbed.extensions.explain.decoders import DECODERS, require_jpeg


@pytest.fixture
def photos(tmp_path):
    (tmp_path / "a").mkdir()
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (700, 600, 3), dtype=np.uint8))
    picture.save(tmp_path / "a" / "0.png")
    picture.save(tmp_path / "a" / "1.jpg")
    return ImageFolder(tmp_path, "photos")


def test_a_png_among_jpegs_is_read_as_it_is(photos):
    require_jpeg(photos)
    for decode in DECODERS.values():
        assert np.array_equal(np.asarray(decode(photos, 0)), np.asarray(photos.image(0)))


def test_a_jpeg_is_made_smaller_by_its_decoder(photos):
    assert DECODERS["pillow, reduced"](photos, 1).size == (300, 350)
    assert DECODERS["torchvision"](photos, 1).size == (600, 700)


def test_images_without_a_jpeg_have_no_other_decoder(photos, tmp_path):
    (tmp_path / "a" / "1.jpg").unlink()
    with pytest.raises(NotApplicableError, match="not JPEG files"):
        require_jpeg(ImageFolder(tmp_path, "photos"))
