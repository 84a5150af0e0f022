"""torchvision's ImageNet classifiers, under their plain names.

``resnet50`` is the first weights that torchvision published (IMAGENET1K_V1), the ones in published tables; others are
``resnet50.imagenet1k_v2`` and so on. Each is evaluated with the transform that its weights were published with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.data.language.class_vocabulary import IMAGENET_1K, torchvision_names
from testbed.models.base.published import Published
from testbed.models.base.weights import only_weights
from testbed.models.loading.hub import hash_in_name, torch_hub_path, url_file
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.models.networks.imagenet_testbed_table import ROWS
from testbed.models.networks.shift_baselines import shift_baselines
from testbed.registry import registry
from testbed.registry.library_names import library_names
from testbed.registry.remembered_facts import remembered

EVAL_BATCH_SIZE = 128


def weights_of(name: str) -> Any:
    """The member of torchvision's weights enum that a canonical name means."""
    from torchvision import models

    architecture, _, weights = name.partition(".")
    enum = models.get_model_weights(architecture)
    return enum[weights.upper()] if weights else next(iter(enum))


@dataclass(frozen=True)
class TorchvisionWeights:
    """The checkpoint of a name, where torch.hub keeps it."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The checkpoint, downloaded if need be."""
        url = weights_of(self.name).url
        path = url_file(self.name, url, torch_hub_path(url), fetch, hash_in_name(url))
        return [path] if path is not None else None


def load(name: str) -> Any:
    """The network of a canonical name with its weights. Code in a checkpoint, which torch.hub would run, is refused."""
    from torchvision import models

    with only_weights():
        return models.get_model(name.partition(".")[0], weights=weights_of(name))


class TorchvisionFamily:
    """Every image classifier of the installed torchvision."""

    name = "torchvision"

    def names(self) -> Iterable[str]:
        """Lists plain names for the first weights, ``name.weights`` for the others."""
        for architecture, weights in library_names("torchvision").items():
            yield architecture
            yield from (f"{architecture}.{other.lower()}" for other in weights[1:])

    def canonical(self, name: str) -> str | None:
        """The plain name, also for the first weights written out."""
        architecture, dot, weights = name.removeprefix("torchvision/").partition(".")
        known = [each.lower() for each in library_names("torchvision").get(architecture, [])]
        if not known or (dot and weights.lower() not in known):
            return None
        return architecture if not dot or weights.lower() == known[0] else f"{architecture}.{weights.lower()}"

    def build(self, name: str) -> Model:
        """The definition, with the transform of its weights."""
        architecture = name.partition(".")[0]
        facts = remembered("torchvision", [name], ["torchvision"], [__file__], lambda: _facts(name))
        mean, std = (tuple(each) if isinstance(each, list) else each for each in (facts["mean"], facts["std"]))

        def untrained() -> Any:
            from torchvision import models

            return models.get_model(architecture, weights=None)

        model = Model(
            name=name,
            transform=StandardTransform(facts["resize"], facts["crop"], interpolation=facts["interpolation"]),
            normalization=StandardNormalization(mean, std),
            classifier_loader=lambda: load(name),
            random_loader=untrained,
            eval_batch_size=EVAL_BATCH_SIZE,
            arch=architecture,
            num_classes=facts["classes"],
            model_type=ROWS[name].model_type if name in ROWS else None,
            published=[*(Published(*fact) for fact in facts["published"]), *shift_baselines(name)],
            architecture={"library": "torchvision", "architecture": architecture},
            weights=TorchvisionWeights(name),
        )
        if facts["imagenet"]:
            model.class_set = (IMAGENET_1K, "torchvision's categories of the weights")
        return model


def _facts(name: str) -> dict[str, Any]:
    """Returns the fields that a definition takes from torchvision's weights of a name."""
    weights = weights_of(name)
    preset = weights.transforms()
    return {
        "resize": preset.resize_size[0],
        "crop": preset.crop_size[0],
        "interpolation": preset.interpolation.value,
        "mean": preset.mean,
        "std": preset.std,
        "classes": len(weights.meta["categories"]),
        "imagenet": tuple(weights.meta["categories"]) == torchvision_names(),
        "published": _published(weights),
    }


def _published(weights: Any) -> list[tuple[str, str, float, str]]:
    """The accuracies on val that torchvision documents (percent there): the fields of `Published`."""
    documented = weights.meta.get("_metrics", {}).get("ImageNet-1K", {})
    return [
        ("val", metric, documented[name] / 100, f"torchvision's documentation of {weights}")
        for name, metric in (("acc@1", "top1"), ("acc@5", "top5"))
        if name in documented
    ]


registry.add_model_family(TorchvisionFamily())
