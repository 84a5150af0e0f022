"""A checkpoint with a name and its own preprocessing.

testbed run my-digits --on mine/photos --plugin examples/own_model.py

`examples/make_images_and_models.py mine` makes such a checkpoint. The file is read only when the model runs.
"""

from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.registry import registry

CHECKPOINT = "mine/finetuned.pth"


def load():
    """The network. Heavy libraries are imported here, so that listing models stays fast."""
    import torch
    from torchvision.models import shufflenet_v2_x0_5

    network = shufflenet_v2_x0_5(num_classes=4)
    network.load_state_dict(torch.load(CHECKPOINT, weights_only=True))
    return network


registry.add_model(
    Model(
        name="my-digits",
        transform=StandardTransform(img_resize_size=64, img_crop_size=64),
        normalization=StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        classifier_loader=load,
        eval_batch_size=128,
        num_classes=4,
    )
)
