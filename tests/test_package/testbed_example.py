"""A model that classifies digits by their mean brightness, and the digits seen upside down.

Importing this file registers both. Torch is imported only when the model is loaded.
"""

from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry


def load_brightness_classifier():
    """A network whose logits depend on nothing but how bright an image is."""
    import torch

    class Brightness(torch.nn.Module):
        def forward(self, images):
            brightness = images.mean(dim=(1, 2, 3)).unsqueeze(1)
            return -(brightness - torch.linspace(0.1, 0.4, 10, device=images.device)).abs()

    return Brightness()


registry.add_model(
    Model(
        name="example-brightness",
        transform=StandardTransform(img_resize_size=32, img_crop_size=32),
        classifier_loader=load_brightness_classifier,
        eval_batch_size=256,
        num_classes=10,
    ),
    collections=["examples"],
)

registry.add_eval_setting(
    EvalSetting(
        name="example-digits-upside-down",
        dataset=DigitsDataset("test"),
        size=540,
        perturbation_fn_gpu=lambda images: images.flip(2),
        description="the held-out digits, upside down",
    ),
    collections=["examples"],
)
