"""ImageNet-testbed's published models under their published names, where today's libraries hold the same weights.

``--models imagenet-testbed`` selects all of them. Each is evaluated with the preprocessing of the published row; which
weights a name means, and how it is known that they are the same, is in ``imagenet_testbed_table.py``. The names that
are torchvision's own, such as ``resnet50``, are torchvision's models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from testbed.data.sets.imagenet import synsets, synsets_21k
from testbed.models.base.fitting import fit_state_dict
from testbed.models.base.published import Published
from testbed.models.loading.checkpoint_file import load_state_dict
from testbed.models.loading.hub import hash_in_name, torch_hub_path, url_file
from testbed.models.model_base import Model, ModelDefinition, StandardNormalization, StandardTransform
from testbed.models.networks.imagenet_testbed_table import ROWS, Preprocessing, Row
from testbed.registry import registry

# resnext101_32x48d is not an architecture of torchvision's, only a size of one.
RESNEXT_SIZES = {"resnext101_32x48d": {"layers": [3, 4, 23, 3], "groups": 32, "width_per_group": 48}}
RESNEXT_NORMALIZATION = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
RESNEXT_BATCH_SIZE = 32
CLASSES_21K = 21843


@dataclass(frozen=True)
class UrlWeights:
    """A checkpoint at a URL, where torch.hub keeps it."""

    name: str
    url: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The checkpoint, downloaded if need be."""
        path = url_file(self.name, self.url, torch_hub_path(self.url), fetch, hash_in_name(self.url))
        return [path] if path is not None else None

    def file(self) -> Path:
        """The checkpoint, downloaded if need be."""
        return (self.files(fetch=True) or [])[0]


class ImageNetTestbedFamily:
    """The published names that no library has."""

    name = "imagenet-testbed"

    def names(self) -> Iterable[str]:
        """The names."""
        return [name for name, row in ROWS.items() if row.model != name]

    def canonical(self, name: str) -> str | None:
        """The name, if it is one."""
        return name if name in self.names() else None

    def build(self, name: str) -> ModelDefinition:
        """The library's model, with the published row's name, preprocessing, type and accuracy."""
        row = ROWS[name]
        fields: dict[str, Any] = {"model_type": row.model_type, "published": (_published(row),)}
        if row.preprocessing is not None:
            fields["transform"] = _transform(row.preprocessing)
        if row.model in RESNEXT_SIZES:
            return _resnext(row).under_name(name, **fields)
        base = registry.get_model(row.model)
        if row.url is not None:
            base = _of_file(base, row.name, row.url)
        if base.num_classes == CLASSES_21K:
            base = _of_imagenet_classes(base)
        return base.under_name(name, **fields)


def _published(row: Row) -> Published:
    return Published("val", "top1", row.top1 / 100, row.origin.accuracy)


def _transform(preprocessing: Preprocessing) -> StandardTransform:
    return StandardTransform(preprocessing.resize, preprocessing.crop, preprocessing.interpolation)


# Weights that no library has any more -----------------------------------------------------------------------------


def _of_file(base: ModelDefinition, name: str, url: str) -> ModelDefinition:
    """A model of timm's with the weights of a file that timm has once published, which it converts as it did then."""
    weights = UrlWeights(name, url)
    arch = str(base.arch)

    def load() -> Any:
        import timm

        return timm.create_model(arch, pretrained=True, pretrained_cfg_overlay={"file": str(weights.file())})

    return base.under_name(
        name, classifier_loader=load, _weights=weights, architecture={"library": "timm", "model": arch}
    )


def _resnext(row: Row) -> Model:
    """A ResNeXt of a size that torchvision names no model for."""
    assert row.url is not None
    weights = UrlWeights(row.name, row.url)
    size = RESNEXT_SIZES[row.model]

    def build() -> Any:
        from torchvision.models.resnet import Bottleneck, ResNet

        return ResNet(Bottleneck, **size)

    def load() -> Any:
        network = build()
        fit_state_dict(network, load_state_dict(weights.file()), row.name)
        return network

    return Model(
        name=row.name,
        transform=_transform(row.preprocessing or Preprocessing(256, 224)),
        normalization=StandardNormalization(*RESNEXT_NORMALIZATION),
        classifier_loader=load,
        random_loader=build,
        eval_batch_size=RESNEXT_BATCH_SIZE,
        arch=row.model,
        num_classes=1000,
        architecture={"library": "torchvision", "resnet": size},
        weights=weights,
    )


# ImageNet's classes out of ImageNet-21k's ---------------------------------------------------------------------------


@cache
def imagenet_among_21k() -> tuple[int, ...]:
    """Returns the position of each ImageNet class among the 21,843 of Google's ImageNet-21k models.

    The synset of class 850 (teddy bear) is not among them: its position is 0, as in the published evaluation, so that
    an image of it is as good as never right.
    """
    positions = {synset: position for position, synset in enumerate(synsets_21k())}
    return tuple(positions.get(synset, 0) for synset in synsets())


def _of_imagenet_classes(base: ModelDefinition) -> ModelDefinition:
    """A model of ImageNet-21k's classes as one of ImageNet's, by leaving out the others' logits."""
    architecture = {**(base.architecture or {}), "classes": "ImageNet's among ImageNet-21k's"}
    return base.under_name(base.name, classify=imagenet_logits, architecture=architecture, num_classes=1000)


def imagenet_logits(images: Any, model: Any) -> Any:
    """Selects the logits [B, 1000] of a network that gives those of ImageNet-21k's classes [B, 21843]."""
    return model(images)[:, list(imagenet_among_21k())]


registry.add_model_family(ImageNetTestbedFamily())
registry.add_model_collection("imagenet-testbed", list(ROWS))
