"""One image, perturbed as a setting says, for models that are shown images as they are: those that answer in text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from testbed.data.reader import seed_everything
from testbed.errors import RunError
from testbed.eval_settings.perturbation_base import gpu_call

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting


def perturbed(image: object, setting: EvalSetting, sample: str, device: str | torch.device, seed: int) -> Image.Image:
    """An image as a perturbed setting shows it: at its own size, rounded to 8 bits.

    It depends on the image, the setting, the sample and ``--seed``, but on no other sample. The global generators of
    random numbers are seeded.

    Args:
        image: PIL's.
        setting: Which perturbs images, without asking for a model.
        sample: The sample's id.
        device: Where ``perturbation_fn_gpu`` is computed.
        seed: The run's.

    Raises:
        RunError: If it is no image, or the perturbation does not give such images.
    """
    if not isinstance(image, Image.Image):
        found = type(image).__name__
        raise RunError(f"the transform of {setting.name} must give a PIL image to be perturbed, not {found}")
    pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).float() / 255
    own = setting.sample_seed(sample, seed)
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
    """What a perturbation made, as finite numbers of the shape that it was given.

    Raises:
        RunError: If they are not.
    """
    if not isinstance(found, torch.Tensor | np.ndarray):
        raise RunError(f"{function} made {type(found).__name__} out of images; a tensor was expected")
    images = torch.as_tensor(found)
    if images.shape != given.shape:
        raise RunError(f"{function} made {tuple(images.shape)} out of images {tuple(given.shape)}")
    if not images.is_floating_point():
        raise RunError(f"{function} made {images.dtype} out of images; floats in [0, 1] were expected")
    if not images.isfinite().all():
        raise RunError(f"{function} made values that are not finite")
    return images.to(given.dtype)
