"""The 19 corruptions of ImageNet-C against what the published package imagecorruptions made of a photo.

assets/make_reference.py wrote its outputs, in an environment of its own. Where numbers are drawn, the same numbers are
given to ours; what draws in a way that cannot be repeated is compared by its mean, variance and spectrum over many
draws.
"""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from PIL import Image
from tables import cases

from testbed.corruptions import IMAGENET_C, SEVERITIES, blur, corrupt, digital, random
from testbed.corruptions.frost_pictures import NAMES

ASSETS = Path(__file__).with_name("assets")
REPEATED = sorted(set(IMAGENET_C) - {"frost", "glass_blur", "impulse_noise", "shot_noise"})


@pytest.fixture(scope="module")
def reference():
    with np.load(ASSETS / "imagecorruptions.npz") as saved:
        return dict(saved)


@pytest.fixture(scope="module")
def summary():
    """The function that summed up the published images."""
    spec = importlib.util.spec_from_file_location("summary", ASSETS / "summary.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.summary


@pytest.fixture
def images(reference):
    return torch.from_numpy(reference["photo"]).permute(2, 0, 1)[None].float() / 255


def to_8_bits(images):
    """As the package hands out its images: rounded down (ours, which are float32, with a little help)."""
    return np.floor(images.permute(0, 2, 3, 1).double().numpy() * 255 + 1e-3)


class Replay:
    """Gives our functions the numbers that the package drew, in the order in which it drew them."""

    def __init__(self, seed, height, width):
        self.drawn = np.random.RandomState(seed)
        self.size = (height, width)

    def uniform(self, seeds, shape, device, stream=0):
        return torch.from_numpy(np.asarray(self.drawn.random_sample(tuple(shape)))).float()[None]

    def host_uniform(self, seeds, count, stream=0):
        return self.drawn.random_sample((1, count)).astype(np.float32)

    def normal(self, seeds, shape, device, stream=0):
        channels, *size = shape
        if channels == 3:
            numbers = self.drawn.normal(size=(*self.size, 3)).transpose(2, 0, 1)
        else:  # of the snow only the middle is seen, and drawn by ours
            whole = self.drawn.normal(size=self.size)
            (top, left) = ((all_of - part) // 2 for all_of, part in zip(self.size, size, strict=True))
            numbers = whole[None, top : top + size[0], left : left + size[1]]
        return torch.from_numpy(np.ascontiguousarray(numbers)).float()[None]


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", REPEATED)
def test_photos_come_out_as_published(name, severity, reference, images, monkeypatch):
    replay = Replay(severity, *images.shape[-2:])
    monkeypatch.setattr(random, "uniform", replay.uniform)
    monkeypatch.setattr(random, "host_uniform", replay.host_uniform)
    monkeypatch.setattr(random, "normal", replay.normal)
    got = to_8_bits(corrupt(images, name, severity, [0]))[0]
    difference = np.abs(got - reference[f"{name}.{severity}"].astype(float))
    assert difference.max() <= 1
    # One step of rounding, at few places; where the package rounds at each of several steps, at more.
    allowed = {"pixelate": 1.0, "defocus_blur": 0.1, "saturate": 0.2, "brightness": 0.1}.get(name, 0.01)
    assert (difference > 0).mean() <= allowed


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(
    "name",
    sorted({"impulse_noise", "shot_noise", "glass_blur", "motion_blur", "snow", "fog", "elastic_transform", "spatter"}),
)
def test_what_is_random_is_distributed_as_published(name, severity, reference, images, summary):
    count = 120
    drawn = to_8_bits(corrupt(images.expand(count, -1, -1, -1), name, severity))
    values = summary(drawn)
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / count**0.5
    published_mean, published_error = reference[f"{name}.{severity}.summary"]
    # Rounding to 8 bits may move a mean by a few hundredths.
    distance = np.abs(mean - published_mean) / np.sqrt(error**2 + published_error**2 + 1e-3**2)
    assert distance.max() < 4.5, dict(enumerate(distance.round(1)))


# Glass ------------------------------------------------------------------------------------------------------------


def published_shuffle(picture, reach, rounds, displacement):
    """The loops of the published program; its "swap" of two rows of a numpy array is a copy."""
    picture = picture.copy()
    height, width = picture.shape[:2]
    for turn in range(rounds):
        for h in range(height - reach, reach, -1):
            for w in range(width - reach, reach, -1):
                dx, dy = displacement[turn][h, w]
                picture[h, w], picture[h + dy, w + dx] = picture[h + dy, w + dx], picture[h, w]
    return picture


@cases(("reach", "rounds"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 2)])
@cases("size", [(24, 31), (40, 20), (9, 9), (10, 30)])
def test_pixels_behind_glass_move_as_in_the_published_loops(reach, rounds, size):
    height, width = size
    seeds = [3, 2**62]
    places = blur._displaced(seeds, height, width, reach, rounds, torch.device("cpu"))
    picture = np.arange(height * width * 3).reshape(height, width, 3)
    for seed, found in zip(seeds, places.numpy(), strict=True):
        displacement = []
        for turn in range(rounds):
            words = random.words([seed], height * width, "cpu", turn).numpy().view(np.uint32)[0].astype(np.int64)
            pairs = [((words & 0xFFFF) * 2 * reach >> 16) - reach, ((words >> 16) * 2 * reach >> 16) - reach]
            displacement.append(np.stack(pairs, axis=-1).reshape(height, width, 2))
        assert min(each.min() for each in displacement) == -reach
        assert max(each.max() for each in displacement) == reach - 1
        expected = published_shuffle(picture, reach, rounds, displacement)
        np.testing.assert_array_equal(picture.reshape(-1, 3)[found].reshape(height, width, 3), expected)


def test_glass_moves_nothing_in_an_image_that_is_too_small():
    image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(corrupt(image, "glass_blur", 5, [1]), corrupt(image, "glass_blur", 5, [2]))


# Pillow -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("severity", SEVERITIES)
def test_jpeg_is_what_pillow_writes_and_reads(severity, photos):
    for photo in photos:
        file = io.BytesIO()
        Image.fromarray(photo).save(file, "JPEG", quality=[25, 18, 15, 10, 7][severity - 1])
        expected = torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1).float() / 255
        given = torch.from_numpy(photo.copy()).permute(2, 0, 1)[None].float() / 255
        assert torch.equal(corrupt(given, "jpeg_compression", severity)[0], expected)


@cases("severity", SEVERITIES)
@cases("size", [(224, 224), (33, 17), (1, 5)])
def test_pixels_are_the_same_with_and_without_numpy(severity, size):
    images = torch.rand(3, 3, *size, generator=torch.Generator().manual_seed(severity))
    boxes = images
    for dim in (-2, -1):
        boxes = digital._boxes(boxes, dim, digital.PIXELS[severity - 1])
    assert isinstance(boxes, torch.Tensor)  # as on a GPU
    assert torch.equal(corrupt(images, "pixelate", severity), digital._enlarge(boxes, images.shape))


# Photons ----------------------------------------------------------------------------------------------------------


@cases("rate", [0.01, 0.3, 1.0, 2.9, 5.0, 7.99, 8.0, 12.0, 25.0, 60.0])
def test_poisson_numbers_are_the_quantiles_of_their_ranks(rate):
    ranks = torch.linspace(0.0005, 0.9995, 4001, dtype=torch.float64)
    normals = torch.special.ndtri(ranks).float()
    drawn = random.poisson(torch.full_like(normals, rate), normals)
    exact = scipy.stats.poisson.ppf(ranks.numpy(), rate)
    differ = drawn.numpy() != exact
    assert np.abs(drawn.numpy() - exact).max() <= 1
    assert differ.mean() <= (0.0005 if rate < 4 else 0.0025 if rate < 12 else 0.001)


def test_there_is_no_photon_without_light():
    assert not random.poisson(torch.zeros(100), torch.linspace(-4, 5, 100)).any()


@pytest.mark.parametrize("severity", SEVERITIES)
def test_shot_noise_is_a_number_of_photons(severity):
    photons = [60, 25, 12, 5, 3][severity - 1]
    level = 0.4
    noisy = corrupt(torch.full((4, 3, 64, 64), level), "shot_noise", severity).double().numpy()
    counts = noisy * photons
    np.testing.assert_allclose(counts, counts.round(), atol=1e-4)
    counts = counts.round().astype(int)
    law = scipy.stats.poisson(level * photons)
    edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 12)).astype(int))
    edges = edges[edges < photons]  # more light than white is clipped
    expected = np.diff([0, *law.cdf(edges), 1])
    observed = np.bincount(np.searchsorted(edges, counts.ravel()), minlength=len(edges) + 1)
    assert scipy.stats.chisquare(observed, expected * counts.size).pvalue > 1e-3


# Frost ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def frost_root(tmp_path, photos, monkeypatch):
    """A data root with five pictures of one colour each, larger than the images, in place of the published ones."""
    (tmp_path / "frost").mkdir()
    for number, name in enumerate(NAMES):
        path = tmp_path / "frost" / name
        Image.new("RGB", (90 + number, 70), (40 * number, 10, 200)).save(path, quality=100)
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("severity", SEVERITIES)
def test_frost_is_a_weighted_sum_with_one_of_five_pictures(severity, images, frost_root):
    share, ice = [(1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)][severity - 1]
    many = images.expand(60, -1, -1, -1)
    frosted = corrupt(many, "frost", severity)
    seen = set()
    for image in frosted:
        fits = [
            number
            for number in range(5)
            if torch.allclose(
                image,
                (share * images[0] + ice * torch.tensor([40.0 * number, 10, 200]).view(3, 1, 1) / 255).clamp(0, 1),
                atol=2.5 * ice / 255,
            )
        ]
        assert len(fits) == 1
        seen.update(fits)
    assert seen == set(range(5))


def test_frost_takes_a_random_part_of_a_picture(frost_root):
    ramp = np.zeros((70, 90, 3), np.uint8)
    ramp[..., 0], ramp[..., 1] = np.arange(90), np.arange(70)[:, None]
    for name in NAMES:
        Image.fromarray(ramp).save(frost_root / "frost" / name, "PNG")  # whatever they are called
    dark = torch.zeros(40, 3, 32, 48)
    parts = (corrupt(dark, "frost", 1) / 0.4 * 255).round()
    starts = parts[:, :2, 0, 0]
    assert len(torch.unique(starts, dim=0)) > 30
    assert starts.min() >= 0
    assert starts[:, 0].max() <= 90 - 48 / 1.1 + 1
    assert starts[:, 1].max() <= 70 - 32 / 1.1 + 1
    # The pictures are enlarged by 1.1.
    assert (parts[:, 0, 0, -1] - parts[:, 0, 0, 0]).mean() == pytest.approx(47 / 1.1, abs=1)


def test_frost_enlarges_pictures_that_are_too_small(frost_root):
    assert corrupt(torch.rand(2, 3, 224, 300), "frost", 3).shape == (2, 3, 224, 300)


# The affine distortion of the published ImageNet-C -----------------------------------------------------------------


def test_the_affine_distortion_moves_three_points_as_drawn():
    shift = digital._affine_shift([7], 60, 60, 12.0)[0]
    corners = np.array([[30 + 20, 30 + 20], [30 + 20, 30 - 20], [30 - 20, 30 - 20]], dtype=float)  # (x, y)
    draws = 2 * random.uniform([7], (3, 2), "cpu", stream=1)[0].double().numpy() - 1
    for (x, y), draw in zip(corners, draws, strict=True):
        to_x, to_y = x + 12 * draw[0], y + 12 * draw[1]
        # What comes to stand there came from the point: the shift, which is linear, leads back to it.
        origin = shift[:, 0, 0].numpy()
        slope = np.stack([shift[:, 0, 1].numpy() - origin, shift[:, 1, 0].numpy() - origin], axis=1)
        back = np.array([to_x, to_y]) + origin + slope @ [to_x, to_y]
        np.testing.assert_allclose(back, [x, y], atol=1e-6)


def test_the_affine_distortion_is_stronger_at_its_second_severity(images):
    many = images.expand(20, -1, -1, -1)
    distance = [(corrupt(many, "elastic_transform_affine", severity) - many).abs().mean() for severity in SEVERITIES]
    assert distance[1] > distance[0] > distance[2]
    assert distance[4] > distance[3] > distance[2] > 0


# What all have in common ------------------------------------------------------------------------------------------

ALL = [name for name in IMAGENET_C if name != "frost"] + ["elastic_transform_affine"]


@cases("name", ALL)
def test_an_image_comes_out_the_same_in_any_company(name, photos):
    images = torch.stack([torch.from_numpy(p[60:130, 40:124].copy()).permute(2, 0, 1).float() / 255 for p in photos])
    seeds = [5, 0, 2**63 - 1, 77]
    whole = corrupt(images, name, 3, seeds)
    for index in range(4):
        alone = corrupt(images[[index]], name, 3, [seeds[index]])
        torch.testing.assert_close(alone[0], whole[index], rtol=0, atol=1e-5)
    order = [2, 0, 3, 1]
    mixed = corrupt(images[order], name, 3, [seeds[index] for index in order])
    torch.testing.assert_close(mixed, whole[order], rtol=0, atol=1e-5)


@cases("name", ALL)
@cases("size", [(1, 1), (2, 3), (33, 17)])
def test_any_size_keeps_shape_range_and_input(name, size):
    images = torch.rand(2, 3, *size, generator=torch.Generator().manual_seed(1))
    before = images.clone()
    for severity in SEVERITIES:
        got = corrupt(images, name, severity)
        assert got.shape == images.shape
        assert got.dtype == torch.float32
        assert not got.isnan().any()
        assert 0 <= got.min() <= got.max() <= 1
        assert torch.equal(images, before)


@cases("name", ALL)
@cases("value", [0.0, 0.5, 1.0])
def test_even_images_are_no_exception(name, value):
    for severity in (1, 3, 5):
        got = corrupt(torch.full((1, 3, 24, 24), value), name, severity)
        assert not got.isnan().any()
        assert 0 <= got.min() <= got.max() <= 1


@cases("name", ALL)
def test_the_layout_of_the_memory_does_not_matter(name, photos):
    images = torch.from_numpy(photos[1][50:98, 60:120].copy()).permute(2, 0, 1)[None].float() / 255
    assert not images.is_contiguous()
    torch.testing.assert_close(
        corrupt(images, name, 2, [3]), corrupt(images.contiguous(), name, 2, [3]), rtol=0, atol=1e-6
    )
