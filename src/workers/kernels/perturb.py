"""Perturbs single images, for models that take untransformed images: those that generate text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from testbed.contracts import returned
from testbed.data.perturbation import gpu_call
from testbed.data.reader import seed_everything
from testbed.errors import RunError

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting


def perturbed(image: object, setting: EvalSetting, sample: str, device: str | torch.device, seed: int) -> Image.Image:
    """An image perturbed by a setting, at its original size, rounded to 8 bits.

    The result depends on the image, the setting, the sample and ``--seed``, but not on other samples. Seeds the global
    random generators.

    Args:
        image: A PIL image.
        setting: A setting that perturbs images without a model.
        device: The device for ``perturbation_fn_gpu``.
        seed: The run's ``--seed``.

    Raises:
        RunError: If the input is not an image, or the perturbation returns invalid images.
    """
    if not isinstance(image, Image.Image):
        found = type(image).__name__
        raise RunError(f"the transform of {setting.name} must return a PIL image to be perturbed, not {found}")
    pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).float() / 255
    own = setting.perturbation.sample_seed(sample, seed)
    with torch.no_grad():
        if setting.perturbation_fn_cpu is not None:
            seed_everything(own)
            pixels = _checked("perturbation_fn_cpu", setting.perturbation_fn_cpu(pixels.clone()), pixels)
        if setting.perturbation_fn_gpu is not None:
            seed_everything(own)
            images, function = pixels.unsqueeze(0).to(device), setting.perturbation_fn_gpu
            made = gpu_call(function).make(function, {"images": images.clone(), "seeds": [own]})
            pixels = _checked("perturbation_fn_gpu", made, images)[0]
    levels = (pixels.clamp(0, 1) * 255).round().to("cpu", torch.uint8)
    return Image.fromarray(levels.permute(1, 2, 0).numpy())


def _checked(function: str, found: Any, given: torch.Tensor) -> torch.Tensor:
    """The output of a perturbation, checked to be floats of the input's shape in [0, 1], or nearly.

    Raises:
        RunError: If it is not.
    """
    try:
        images = returned.perturbed(function, found, given)
    except ValueError as error:
        raise RunError(str(error)) from None
    if why := returned.far_outside(function, returned.range_of(images)):
        raise RunError(why)
    return images
