"""Corruptions by name and severity: the field of a setting."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from tables import cases

from testbed.corruptions import (
    IMAGENET_C,
    IMAGENET_C_BAR,
    Corruption,
    blur,
    corrupt,
    corruptions,
    frost_pictures,
    noise,
    photometric,
)
from testbed.errors import DefinitionError, UnsupportedError
from testbed.identity.describe import describe, digest

NAMES = {
    "gaussian_noise": noise.gaussian_noise,
    "impulse_noise": noise.impulse_noise,
    "gaussian_blur": blur.gaussian_blur,
    "contrast": photometric.contrast,
    "brightness": photometric.brightness,
}


@cases("severity", [1, 5])
@cases("name", NAMES)
def test_a_corruption_is_its_function_at_its_severity(name, severity):
    images = torch.rand(2, 3, 16, 12, generator=torch.Generator().manual_seed(0))
    expected = NAMES[name](images, severity, [4, 5])
    torch.testing.assert_close(Corruption(name, severity)(images, [4, 5]), expected, rtol=0, atol=0)
    torch.testing.assert_close(Corruption(name, severity)(images=images, seeds=[4, 5]), expected, rtol=0, atol=0)
    assert Corruption(name, severity).spec() == {"name": name, "severity": severity}


UNKNOWN = ["noise.gaussian_noise", "smoke", "", "noise.", "words"]
UNKNOWN += ["_displaced", "GAUSSIAN_STD", "__doc__", "rotate", "uniform"]


@cases("name", UNKNOWN)
def test_an_unknown_name_is_refused(name):
    with pytest.raises(DefinitionError, match=f"no corruption '{name}'.*There are: blue_noise_sample, "):
        Corruption(name, 1)


@pytest.mark.parametrize("severity", [0, 6, -1, 1.5, "3", None])
def test_an_unknown_severity_is_refused(severity):
    with pytest.raises(DefinitionError) as caught:
        Corruption("gaussian_noise", severity)
    for word in ("severity", "gaussian_noise", "(1, 2, 3, 4, 5)", repr(severity)):
        assert word in str(caught.value)


def test_the_revision_of_the_function_counts(monkeypatch):
    corruption = Corruption("contrast", 1)
    before = digest(corruption)
    assert corruption.revision == 1
    monkeypatch.setattr(photometric.contrast, "revision", 2, raising=False)
    assert corruption.revision == 2
    assert digest(corruption) != before


def test_identity_is_that_of_name_and_severity():
    same = digest(Corruption("contrast", 2))
    assert digest(Corruption("contrast", 2)) == same
    assert digest(Corruption("contrast", 3)) != same
    assert digest(Corruption("brightness", 2)) != same
    json.dumps(describe(Corruption("contrast", 2)))


def test_a_corruption_travels():
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    copy = pickle.loads(pickle.dumps(Corruption("impulse_noise", 2)))
    torch.testing.assert_close(copy(images, [3]), Corruption("impulse_noise", 2)(images, [3]), rtol=0, atol=0)


def test_defining_a_corruption_imports_no_torch():
    script = (
        "import sys; from testbed.corruptions import Corruption; from testbed.corruptions.adversarial import PGD;"
        "Corruption('gaussian_noise', 1); Corruption('contrast', 1); PGD('linf', 1, 1, 1);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# The library call ---------------------------------------------------------------------------------------------------


def test_there_are_those_of_imagenet_c_and_imagenet_c_bar_and_one_more():
    assert (len(set(IMAGENET_C)), len(set(IMAGENET_C_BAR))) == (19, 10)
    assert set(corruptions()) == {*IMAGENET_C, *IMAGENET_C_BAR, "elastic_transform_affine"}


def test_images_get_the_seeds_0_1_2_where_none_are_given():
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(corrupt(images, "gaussian_noise", 2), corrupt(images, "gaussian_noise", 2, [0, 1, 2]))


@pytest.mark.parametrize("seed", [-1, 2**63, 0.5, "1", True, None])
def test_seeds_that_are_none_are_refused(seed):
    """On every device alike, also by corruptions that draw nothing."""
    for name in ("gaussian_noise", "contrast"):
        with pytest.raises(ValueError, match="expected seeds from 0 to") as refused:
            corrupt(torch.zeros(2, 3, 8, 8), name, 1, [3, seed])
        assert str(refused.value).endswith(f"got {seed!r} for image 1")
    images = torch.zeros(1, 3, 8, 8)
    assert corrupt(images, "gaussian_noise", 1, np.array([2**63 - 1])).shape == images.shape


def test_lower_precision_goes_in_and_comes_out():
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        got = corrupt(images.to(dtype), "fog", 3)
        assert got.dtype == dtype
        torch.testing.assert_close(got.float(), corrupt(images.to(dtype).float(), "fog", 3), rtol=0, atol=0.005)


def test_no_images_are_no_mistake():
    for name in corruptions():
        assert corrupt(torch.empty(0, 3, 8, 8), name, 1).shape == (0, 3, 8, 8)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (torch.zeros(3, 8, 8), r"\(3, 8, 8\)"),
        (torch.zeros(1, 1, 8, 8), r"\(1, 1, 8, 8\)"),
        (torch.zeros(1, 8, 8, 3), r"\(1, 8, 8, 3\)"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.uint8), "uint8"),
        (torch.full((1, 3, 8, 8), 255.0), r"255 to 255"),
        (torch.full((1, 3, 8, 8), -0.1), r"-0.1 to -0.1"),
        (torch.full((1, 3, 8, 8), torch.nan), "nan"),
    ],
)
def test_what_is_no_batch_of_images_is_refused(images, words):
    with pytest.raises(ValueError, match=words):
        corrupt(images, "contrast", 1)


def test_each_image_needs_a_seed():
    with pytest.raises(ValueError, match="one seed for each of 2 images, got 1"):
        corrupt(torch.zeros(2, 3, 8, 8), "fog", 1, [4])


def test_frost_without_its_pictures_says_where_they_belong(monkeypatch, tmp_path):
    monkeypatch.setattr(frost_pictures, "PACKAGES", ())  # whatever is installed where the tests run
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    frost = Corruption("frost", 1)
    with pytest.raises(UnsupportedError) as caught:
        frost.require()
    for words in ("frost1.png", str(tmp_path / "frost"), "imagecorruptions", "github.com/hendrycks"):
        assert words in str(caught.value)
    for name in set(IMAGENET_C) - {"frost"}:
        Corruption(name, 1).require()


def test_frosts_pictures_are_part_of_its_identity(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    (tmp_path / "frost").mkdir()
    for name in frost_pictures.NAMES:
        (tmp_path / "frost" / name).write_text(name)
    before = Corruption("frost", 1).spec()
    assert Corruption("frost", 1).spec() == before
    (tmp_path / "frost" / "frost5.jpg").write_text("another")
    assert Corruption("frost", 1).spec() != before
