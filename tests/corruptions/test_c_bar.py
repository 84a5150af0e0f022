"""The ten corruptions of ImageNet-C-bar against what the authors' program made of a photo with the same random numbers.

assets/make_c_bar_reference.py wrote its outputs and what it drew.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tables import cases

from testbed.corruptions import IMAGENET_C_BAR, SEVERITIES, corrupt
from testbed.corruptions import c_bar_effects as effects
from testbed.corruptions import c_bar_patterns as patterns
from testbed.corruptions import random as own_random

ASSETS = Path(__file__).with_name("assets")
DRAWN_BEFORE = 256  # of the program's generator of Perlin noise


@pytest.fixture(scope="module")
def reference():
    with np.load(ASSETS / "imagenet_c_bar.npz") as saved:
        return dict(saved)


def patched(monkeypatch, name, drawn, side):
    """Gives our function what the program drew, in place of its own numbers; returns nothing."""
    state = np.random.RandomState(int(drawn["seed"])) if "seed" in drawn else None

    def column(value):
        return torch.tensor(float(value), dtype=torch.float64).view(1, 1, 1)

    if "noise" in name:  # blue, brownish, plasma, Perlin
        if state is not None and name != "perlin_noise":
            channels = 1 if name.startswith("blue") else 3
            phases, middle = [], []
            for _ in range(channels):
                phases.append(state.uniform(0, 2 * np.pi, (side, side // 2)))
                middle.append(state.uniform(0, 2 * np.pi, (side // 2, 1)) if side % 2 else np.zeros((side // 2, 1)))
            given = tuple(torch.from_numpy(np.stack(each))[None] for each in (phases, middle))
            monkeypatch.setattr(patterns, "_phases", lambda images, seeds, channels: given)
        elif name == "plasma_noise":
            given = [column(drawn[key]) for key in ("time", "iterations", "sharpness", "scale")]
            monkeypatch.setattr(patterns, "on_device", lambda images, *numbers: given)
        else:
            order, directions = perlin_tables(state)
            whole = patterns.turbulence
            monkeypatch.setattr(patterns, "turbulence", lambda side, *own: whole(side, order, directions))
    elif name == "single_frequency_greyscale":
        given = [column(value) for value in (*drawn["freq"], drawn["phase"])]
        monkeypatch.setattr(patterns, "on_device", lambda images, *numbers: given)
    elif name == "cocentric_sine_waves":
        numbers = (*drawn["offset"], drawn["freq"], drawn["amplitude"], drawn["ring_width"])
        given = [column(value) for value in numbers]
        monkeypatch.setattr(patterns, "on_device", lambda images, *numbers: given)
    elif name == "caustic_refraction":
        given = [column(drawn["time"]), column(drawn["size"])]
        monkeypatch.setattr(effects, "on_device", lambda images, *numbers: given)
    elif name == "checkerboard_cutout":
        count = int(4 * side // drawn["scales"][0])
        board = np.zeros((1, 40, 40))
        board[0, :count, :count] = state.uniform(size=(count, count))
        numbers = np.array([drawn["angle"] / (2 * np.pi), (drawn["scales"][0] / side - 0.1) / 0.15, *board.flatten()])
        monkeypatch.setattr(effects, "_drawn", lambda seeds, count: numbers[None])
    else:  # sparkles: the rays of each are drawn one after another
        stars = np.atleast_1d(drawn["nrays"] if name == "sparkles" else drawn["rays"])
        centres = np.atleast_2d(drawn["centers"] if name == "sparkles" else drawn["center"]) / side
        lengths = np.zeros((1, len(stars), 200))
        for star, rays in enumerate(stars):
            lengths[0, star, :rays] = [state.randn() for _ in range(rays)]
        if name == "inverse_sparkles":
            centres = (centres - 0.25) / 0.5
        numbers = np.concatenate([centres, (stars[:, None] - 50 + 0.5) / 150], axis=1).reshape(1, -1)
        monkeypatch.setattr(effects, "_drawn", lambda seeds, count: numbers)
        monkeypatch.setattr(own_random, "normal", lambda seeds, shape, device, stream=0: torch.from_numpy(lengths))


def perlin_tables(state):
    """The permutation and the directions that the program's generator makes of its random numbers."""
    directions = np.array(
        [(state.randint(low=0, high=2**31, size=2) % 512 - DRAWN_BEFORE) / DRAWN_BEFORE for _ in range(514)]
    )
    order = np.arange(256)
    for index in range(255, -1, -1):
        other = state.randint(low=0, high=2**31) % 256
        order[index], order[other] = order[other], order[index]
    directions = directions[:256] / np.linalg.norm(directions[:256], axis=1, keepdims=True)
    return torch.from_numpy(order)[None], torch.from_numpy(directions)[None]


@pytest.mark.parametrize("side", [40, 33])
@pytest.mark.parametrize("name", IMAGENET_C_BAR)
def test_photos_come_out_as_the_authors_made_them(name, side, reference, monkeypatch):
    photo = torch.from_numpy(reference[f"photo.{side}"]).permute(2, 0, 1)[None].float() / 255
    for severity in (2, 5):
        key = f"{name}.{severity}.{side}"
        drawn = {full.removeprefix(f"{key}."): reference[full] for full in reference if full.startswith(f"{key}.")}
        with monkeypatch.context() as patch:
            patched(patch, name, drawn, side)
            found = corrupt(photo, name, severity, [0])[0].permute(1, 2, 0).double().numpy() * 255
        rounded_off = found - reference[key]  # the program rounds down to 8 bits
        assert rounded_off.min() > -1e-3
        assert rounded_off.max() < 1 + 1e-3


@cases("name", IMAGENET_C_BAR)
def test_an_image_depends_on_its_seed_alone(name):
    """Not on the batch, and in an oblong image not on what is beside it."""
    images = torch.rand(3, 3, 24, 31, generator=torch.Generator().manual_seed(0))
    for severity in SEVERITIES:
        whole = corrupt(images, name, severity, [5, 2**62, 5])
        assert whole.shape == images.shape
        assert 0 <= whole.min() <= whole.max() <= 1
        alone = torch.cat([corrupt(images[[at]], name, severity, [seed]) for at, seed in enumerate([5, 2**62, 5])])
        torch.testing.assert_close(whole, alone, rtol=0, atol=1e-6)
    same = corrupt(images[[0, 0]], name, 3, [1, 2])
    assert not torch.equal(same[0], same[1])


def test_draws_have_the_authors_ranges(monkeypatch):
    """What is drawn for a pattern, at the ends of its range."""
    named = ("plasma_noise", "cocentric_sine_waves", "single_frequency_greyscale", "caustic_refraction")
    images = torch.zeros(1, 3, 40, 40)

    def drawn(at):
        found = []

        def kept(images, *numbers):
            found.append(sorted(float(value[0]) for value in numbers))
            raise InterruptedError  # before the pattern is made

        for module in (patterns, effects):
            monkeypatch.setattr(module, "_drawn", lambda seeds, count: np.full((1, count), at))
            monkeypatch.setattr(module, "on_device", kept)
        for name in named:
            with pytest.raises(InterruptedError):
                corrupt(images, name, 1)
        return dict(zip(named, found, strict=True))

    assert drawn(0.0) == {
        "plasma_noise": [0, 0.5, 3, 4],
        "cocentric_sine_waves": [0] * 5,
        "single_frequency_greyscale": [-math.pi, -math.pi, 0],
        "caustic_refraction": [0.5, 30],
    }
    expected = {
        "plasma_noise": [1, 6, 8, 6 * math.pi],
        "cocentric_sine_waves": [4, 4, 10, 40, 40],
        "single_frequency_greyscale": [math.pi, math.pi, 2 * math.pi],
        "caustic_refraction": [2, 50],
    }
    highest = drawn(1 - 2**-24)
    assert {name: pytest.approx(values, abs=1e-4) for name, values in expected.items()} == highest
