"""Definition files in ImageNet-testbed's own words."""

from __future__ import annotations

# The two examples of ImageNet-testbed's README as they stand there, their "# your logic here" filled in.
ORIGINAL_MODEL = """
from torchvision.models import resnet50
from registry import registry
from models.model_base import Model, StandardTransform, StandardNormalization

registry.add_model(
    Model(
        name = 'resnet50',
        transform = StandardTransform(img_resize_size=256, img_crop_size=224),
        normalization = StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        classifier_loader = lambda: resnet50(pretrained=True),
        eval_batch_size = 256,

        # OPTIONAL
        arch = 'resnet50',
        classify = lambda images, model, class_sublist, adversarial_attack: model(images)[:, class_sublist],
    )
)
"""
ORIGINAL_SETTING = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk

registry.add_eval_setting(
    EvalSetting(
        name = 'val',
        dataset = StandardDataset(name='val'),
        size = 50000,

        # OPTIONAL
        perturbation_fn_cpu = lambda image: image.flip(2),
        perturbation_fn_gpu = lambda images, model: images.flip(3),
        metrics_fn = lambda logits, targets, image_paths: {**accuracy_topk(logits, targets), 'paths': len(image_paths)},
        class_sublist = list(range(0, 1000, 2)),
        adversarial_attack = {'eps': 0},
    )
)
"""
