"""ImageNet-testbed's published models in today's libraries: names, weights, types, published accuracies.

A row is claimed only where the weights are the same parameters; the row's `Origin` gives the evidence. Published
accuracies are top-1 on val from ImageNet-testbed's own table, except where `Origin.accuracy` names another source.

Not claimed, although the names look alike: ``mnasnet0_5`` (torchvision has replaced its file), the RandAugment
EfficientNets (timm's score 0.2 to 0.3 points more on the same images), ``resnext101_32x4d``, ``resnext101_64x4d`` and
``dpn``'s and ``vit_small``'s later retrainings (trained anew by others), and all whose weights no library distributes.
"""

from __future__ import annotations

from dataclasses import dataclass

STANDARD = "Standard training"
MORE_DATA = "Trained with more data"
INTERVENTION = "Other robustness intervention"


@dataclass(frozen=True)
class Origin:
    """The origin of a group of weights.

    Attributes:
        source: Their publisher, and the evidence that today's are the same.
        accuracy: The publisher of the row's accuracy.
    """

    source: str
    accuracy: str = "ImageNet-testbed's table"


TORCHVISION = Origin("torchvision's first weights; the accuracy that torchvision documents is the published row's")
SSL = Origin("github.com/facebookresearch/semi-supervised-ImageNet1K-models; timm's copy scores the same within 0.04 %")
WSL = Origin("github.com/facebookresearch/WSL-Images; timm's copy scores the same within 0.04 %")
WSL_FILE = Origin("github.com/facebookresearch/WSL-Images; its publishers' file")
TENSORFLOW = Origin("the TensorFlow checkpoints of EfficientNet; timm's conversion scores the same within 0.1 %")
# The published rows were made with efficientnet_pytorch, which before 0.7.0 pads as if every layer had the size of the
# image. Given the same parameters its outputs for B1, B2 and B4 differ from timm's; since 0.7.0 they are equal.
PADDED = Origin(
    "the TensorFlow checkpoints of EfficientNet, as timm converted them; the published row is 0.1 to 0.8 points lower,"
    " likely since the implementation of its time padded otherwise",
    accuracy="timm's results-imagenet.csv",
)
CADENE = Origin("the weights of the package pretrainedmodels, as timm distributes them")
# The files of these two are others than pretrainedmodels', converted from the same publications. timm's numbers,
# bicubic, are 0.4 to 0.6 and 0.1 to 0.2 points above the published ones, which are bilinear.
MXNET = Origin("the MXNet weights of Dual Path Networks, as timm converted them")
SLIM = Origin("TensorFlow's slim checkpoints, as timm converted them")
BIT = Origin("github.com/google-research/big_transfer, BiT-M; the .npz files that timm converts")
VIT = Origin("github.com/google-research/vision_transformer, as timm converted them in 2020 (jx_vit_*)")
CLIP = Origin("github.com/openai/CLIP, as open_clip distributes them; the prompts are testbed's, 80 for each class")


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing other than that of the library: sizes in pixels, interpolation."""

    resize: int | tuple[int, int]
    crop: int | tuple[int, int]
    interpolation: str = "bilinear"


STANDARD_224 = Preprocessing(256, 224)
STANDARD_299 = Preprocessing(341, 299)
STANDARD_331 = Preprocessing(378, 331)
SQUARE_480 = Preprocessing((480, 480), (480, 480))
VIT_224 = Preprocessing(248, 224, "bicubic")
VIT_384 = Preprocessing(384, 384, "bicubic")
# Published EfficientNets are resized to 32 pixels more than they crop. timm's share of the crop has three digits, which
# gives that for all sizes but two (331 and 833 pixels instead).
EFFICIENTNET_B3 = Preprocessing(300 + 32, 300, "bicubic")
EFFICIENTNET_L2 = Preprocessing(800 + 32, 800, "bicubic")


@dataclass(frozen=True)
class Row:
    """A published model.

    Attributes:
        name: Its name in the published table.
        model: testbed's name of the weights, or for those that have a ``url`` the architecture.
        model_type: As in the published table of types.
        top1: Accuracy on val (percent).
        preprocessing: The preprocessing, where it is not the library's.
        url: The file of weights, where today's libraries do not have it.
    """

    name: str
    model: str
    model_type: str
    top1: float
    origin: Origin
    preprocessing: Preprocessing | None = None
    url: str | None = None


def _torchvision() -> list[Row]:
    accuracies = {
        "alexnet": 56.522,
        "densenet121": 74.434,
        "densenet161": 77.138,
        "densenet169": 75.6,
        "densenet201": 76.896,
        "mnasnet1_0": 73.456,
        "mobilenet_v2": 71.878,
        "resnet101": 77.374,
        "resnet152": 78.312,
        "resnet18": 69.758,
        "resnet34": 73.314,
        "resnet50": 76.13,
        "resnext101_32x8d": 79.312,
        "resnext50_32x4d": 77.618,
        "shufflenet_v2_x0_5": 60.552,
        "shufflenet_v2_x1_0": 69.362,
        "squeezenet1_0": 58.092,
        "squeezenet1_1": 58.178,
        "vgg11": 69.02,
        "vgg11_bn": 70.37,
        "vgg13": 69.928,
        "vgg13_bn": 71.586,
        "vgg16": 71.592,
        "vgg16_bn": 73.36,
        "vgg19": 72.376,
        "vgg19_bn": 74.218,
        "wide_resnet101_2": 78.846,
        "wide_resnet50_2": 78.468,
    }
    rows = [Row(name, name, STANDARD, top1, TORCHVISION) for name, top1 in accuracies.items()]
    return [*rows, Row("googlenet/inceptionv1", "googlenet", STANDARD, 69.778, TORCHVISION)]


def _efficientnets() -> list[Row]:
    families = {
        "": ("in1k", STANDARD, (76.528, 78.546, 79.612, 80.878, 82.598, 83.114)),
        "-autoaug": ("aa_in1k", STANDARD, (76.84, 78.84, 80.074, 81.648, 83.04, 83.63, 84.128, 84.334)),
        "-advprop-autoaug": (
            "ap_in1k",
            INTERVENTION,
            (77.084, 79.288, 80.3, 81.842, 83.246, 84.302, 84.76, 85.092, 85.368),
        ),
    }
    rows = [
        Row(
            f"efficientnet-b{size}{suffix}",
            f"timm/tf_efficientnet_b{size}.{tag}",
            model_type,
            top1,
            PADDED if 1 <= size <= 4 else TENSORFLOW,
            EFFICIENTNET_B3 if size == 3 else None,
        )
        for suffix, (tag, model_type, accuracies) in families.items()
        for size, top1 in enumerate(accuracies)
    ]
    name = "timm/tf_efficientnet_l2.ns_jft_in1k"
    return [*rows, Row("efficientnet-l2-noisystudent", name, MORE_DATA, 88.322, TENSORFLOW, EFFICIENTNET_L2)]


def _pretrainedmodels() -> list[Row]:
    """The models of Cadène's package pretrainedmodels that timm holds."""
    cadene = {
        "senet154": ("legacy_senet154.in1k", 81.304, STANDARD_224),
        "se_resnet50": ("legacy_seresnet50.in1k", 77.636, STANDARD_224),
        "se_resnet101": ("legacy_seresnet101.in1k", 78.396, STANDARD_224),
        "se_resnet152": ("legacy_seresnet152.in1k", 78.658, STANDARD_224),
        "se_resnext50_32x4d": ("legacy_seresnext50_32x4d.in1k", 79.076, STANDARD_224),
        "se_resnext101_32x4d": ("legacy_seresnext101_32x4d.in1k", 80.236, STANDARD_224),
        "inceptionv3": ("inception_v3.tv_in1k", 77.32, STANDARD_299),
        "inceptionv4": ("inception_v4.tf_in1k", 80.082, STANDARD_299),
        "xception": ("legacy_xception.tf_in1k", 78.82, STANDARD_299),
        "pnasnet5large": ("pnasnet5large.tf_in1k", 82.736, STANDARD_331),
    }
    slim = {
        "inceptionresnetv2": ("inception_resnet_v2.tf_in1k", 80.27, STANDARD_299),
        "nasnetalarge": ("nasnetalarge.tf_in1k", 82.506, STANDARD_331),
    }
    mxnet = {
        "dpn68": (STANDARD, 75.868),
        "dpn68b": (MORE_DATA, 77.034),
        "dpn92": (MORE_DATA, 79.4),
        "dpn98": (STANDARD, 79.224),
        "dpn107": (MORE_DATA, 79.746),
        "dpn131": (STANDARD, 79.432),
    }
    rows = [
        Row(name, f"timm/{model}", STANDARD, top1, origin, preprocessing)
        for group, origin in ((cadene, CADENE), (slim, SLIM))
        for name, (model, top1, preprocessing) in group.items()
    ]
    return rows + [
        Row(name, f"timm/{name}.mx_in1k", model_type, top1, MXNET, STANDARD_224)
        for name, (model_type, top1) in mxnet.items()
    ]


def _facebook() -> list[Row]:
    supervised = {"resnet18": 72.6, "resnet50": 79.228, "resnext50_32x4d": 80.328}
    supervised |= {"resnext101_32x4d": 80.928, "resnext101_32x8d": 81.626, "resnext101_32x16d": 81.836}
    weakly = {"resnet18": 73.286, "resnet50": 81.18, "resnext50_32x4d": 82.18}
    weakly |= {"resnext101_32x4d": 83.234, "resnext101_32x8d": 84.294}
    instagram = {"resnext101_32x8d": 82.688, "resnext101_32x16d": 84.176, "resnext101_32x32d": 85.092}
    kinds = (
        ("{}_ssl", "fb_ssl_yfcc100m_ft_in1k", supervised, SSL),
        ("{}_swsl", "fb_swsl_ig1b_ft_in1k", weakly, SSL),
        ("instagram-{}", "fb_wsl_ig1b_ft_in1k", instagram, WSL),
    )
    rows = [
        Row(pattern.format(arch), f"timm/{arch}.{tag}", MORE_DATA, top1, origin, STANDARD_224)
        for pattern, tag, group, origin in kinds
        for arch, top1 in group.items()
    ]
    url = "https://download.pytorch.org/models/ig_resnext101_32x48-3e41cc8a.pth"
    arch = "resnext101_32x48d"
    return [*rows, Row(f"instagram-{arch}", arch, MORE_DATA, 85.442, WSL_FILE, STANDARD_224, url)]


def _google() -> list[Row]:
    bit = {
        "50x1": (80.402, 74.128),
        "50x3": (84.15, 78.95),
        "101x1": (82.522, 76.246),
        "101x3": (84.782, 79.974),
        "152x4": (85.178, 80.488),
    }
    rows = []
    for size, (tuned, untuned) in bit.items():
        model = f"timm/resnetv2_{size}_bit.goog_in21k"
        rows.append(Row(f"BiT-M-R{size}-ILSVRC2012", f"{model}_ft_in1k", MORE_DATA, tuned, BIT, SQUARE_480))
        rows.append(Row(f"BiT-M-R{size}-nonfinetuned", model, MORE_DATA, untuned, BIT, SQUARE_480))
    for name, top1, preprocessing in (
        ("vit_base_patch16_224", 81.79, VIT_224),
        ("vit_base_patch16_384", 84.2, VIT_384),
        ("vit_large_patch32_384", 81.512, VIT_384),
    ):
        rows.append(Row(name, f"timm/{name}.orig_in21k_ft_in1k", MORE_DATA, top1, VIT, preprocessing))
    files = "https://github.com/rwightman/pytorch-image-models/releases/download/v0.1-vitjx"
    for name, top1, preprocessing, file in (
        ("vit_base_patch32_384", 81.658, VIT_384, "jx_vit_base_p32_384-830016f5.pth"),
        ("vit_large_patch16_224", 83.056, VIT_224, "jx_vit_large_p16_224-4ee7a4dc.pth"),
        ("vit_large_patch16_384", 85.154, VIT_384, "jx_vit_large_p16_384-b3be5167.pth"),
    ):
        rows.append(Row(name, f"timm/{name}", MORE_DATA, top1, VIT, preprocessing, f"{files}/{file}"))
    return rows


def _openai() -> list[Row]:
    return [
        Row("resnet50_clip_zeroshot", "RN50,openai", MORE_DATA, 59.808, CLIP),
        Row("vit_b_32_clip_zeroshot", "ViT-B-32,openai", MORE_DATA, 63.302, CLIP),
    ]


ROWS = {
    row.name: row
    for rows in (_torchvision(), _efficientnets(), _pretrainedmodels(), _facebook(), _google(), _openai())
    for row in rows
}
