"""Published accuracies of torchvision's first weights on shifts of ImageNet, in percent."""

from __future__ import annotations

from testbed.models.base.published import Published

# The table of its README ("Test Accuracy Results on ImageNet-9"); the authors took the weights from torchvision.
BACKGROUNDS = "github.com/MadryLab/backgrounds_challenge, README"
IN_9 = {
    "vgg16_bn": {"original": 94.3, "mixed_same": 83.6, "mixed_rand": 73.4},
    "resnet50": {"original": 95.6, "mixed_same": 86.2, "mixed_rand": 78.9},
    "resnet152": {"original": 96.7, "mixed_same": 89.3, "mixed_rand": 83.5},
}
# The table of its README; Benchmark_ImageNet_Hard.ipynb takes the weights by torchvision's ``pretrained=True``.
HARD = "github.com/taesiri/ZoomIsAllYouNeed, README"
IN_HARD = {
    **{"alexnet": 7.34, "vgg16": 12.00, "resnet18": 10.86, "resnet50": 14.74},
    **{"vit_b_32": 18.52, "efficientnet_b0": 16.57},
}


def shift_baselines(model: str) -> list[Published]:
    """Returns what is published about a model of torchvision, by its plain name."""
    on_backgrounds = [
        Published(f"imagenet-9.{variant}", "top1", value / 100, BACKGROUNDS)
        for variant, value in IN_9.get(model, {}).items()
    ]
    hard = [Published("imagenet-hard", "top1", IN_HARD[model] / 100, HARD)] if model in IN_HARD else []
    return [*on_backgrounds, *hard]
