"""What corruptions do otherwise on a GPU, done here on the CPU: the same images come out."""

from __future__ import annotations

from io import BytesIO

import pytest
import torch
from tables import cases

from testbed.corruptions import digital
from testbed.corruptions.blur import MOTION
from testbed.corruptions.filters import move_all, move_at_once

ANGLES = [-135.0, -45.0, -10.0, 0.0, 30.0, 45.0]


@cases("shape", [(3, 64, 48), (1, 33, 40), (3, 8, 12)])  # the last is smaller than the movement
@cases("motion", MOTION)
def test_images_move_at_once_as_one_by_one(motion, shape):
    images = torch.rand(len(ANGLES), *shape, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(move_at_once(images, *motion, ANGLES), move_all(images, *motion, ANGLES))


@pytest.mark.parametrize("in_memory", [False, True], ids=["a file of the system", "where the system has none"])
@pytest.mark.parametrize("severity", [1, 5])
def test_jpegs_that_threads_make_are_the_same(severity, in_memory, monkeypatch):
    if in_memory:
        monkeypatch.setattr(digital, "_memory_file", BytesIO)
    images = torch.rand(7, 3, 50, 41, generator=torch.Generator().manual_seed(1))
    found = digital.jpeg_on_all_cores(images, digital.QUALITY[severity - 1])
    torch.testing.assert_close(found, digital.jpeg_compression(images, severity), rtol=0, atol=0)
