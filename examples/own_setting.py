"""A setting with its own perturbation and metric: images whose left half is in shadow, and the share of sure mistakes.

testbed run my-digits --on photos-in-shadow \
    --plugin examples/own_setting.py examples/own_model.py --data-root mine
"""

from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from testbed.registry import registry

SURE = 0.9


def shadow(images):
    """Darkens the left half of float images [B, 3, H, W] in [0, 1]."""
    images = images.clone()
    images[..., : images.shape[-1] // 2] *= 0.4
    return images


def metrics(logits, targets):
    """Top-1 accuracy, and the share of the samples on which the model is sure and wrong (fractions)."""
    probabilities = logits.softmax(1)
    sure, predicted = probabilities.max(1)
    wrong = (sure > SURE) & (predicted != targets)
    return {**accuracy_topk(logits, targets), "sure_and_wrong": float(wrong.float().mean())}


registry.add_eval_setting(
    EvalSetting(
        name="photos-in-shadow",
        dataset=StandardDataset(name="photos"),  # <data root>/photos/<class>/
        size=None,
        perturbation_fn_gpu=shadow,
        metrics_fn=metrics,
    )
)
