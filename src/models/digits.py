"""The digits family: small models of scikit-learn's handwritten digits, trained on first use, within seconds.

They make the whole testbed run on real data without a download. Each is trained on the train split from a fixed seed,
and kept in the cache folder under a digest of its recipe and its data. `digits-cnn-noise` is `digits-cnn` trained with
noise: a robustness intervention. `digits-clip` is a tiny CLIP, trained on images and captions, evaluated zero-shot.
`digits-coca` (see `testbed.models.digits_coca`) describes digits; it is not in the collection ``demo``, whose settings
are not for models that answer in text.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.identity.describe import digest
from testbed.models.model_base import DualEncoder, Model, StandardNormalization, StandardTransform
from testbed.paths import cache_dir, write_atomically
from testbed.registry import registry

if TYPE_CHECKING:
    import torch

log = logging.getLogger("testbed")

SEED = 0
IMAGE_SIZE = 32
EVAL_BATCH_SIZE = 256
COLLECTIONS = ("demo",)
TEMPLATES = ("a photo of the digit {c}", "a handwritten {c}", "the number {c}", "an image of a {c}")

# What each model is trained with; a change makes another model, trained anew under another identity.
RECIPES: dict[str, dict[str, Any]] = {
    "digits-logreg": {"network": "Linear"},
    "digits-knn": {"network": "NearestNeighbors"},
    "digits-mlp": {"network": "Perceptron", "epochs": 40},
    "digits-cnn": {"network": "ConvNet", "epochs": 12},
    "digits-cnn-noise": {"network": "ConvNet", "epochs": 12, "noise": 0.3},
    "digits-clip": {"network": "tiny_clip", "steps": 450, "templates": TEMPLATES},
    "digits-coca": {"network": "tiny_coca", "steps": 250, "noise": 0.05, "captions": "lines"},
}


def train_data() -> tuple[torch.Tensor, torch.Tensor, str]:
    """The train split as models see it: images [1257, 3, 32, 32] in [0, 1], labels [1257], a digest of both."""
    import torch

    from testbed.data.sets.digits import Digits

    source = Digits("train")
    transform = StandardTransform(IMAGE_SIZE, IMAGE_SIZE)
    images = torch.stack([transform(source.image(position)) for position in range(len(source))])
    return images, torch.tensor(source.targets), source.describe_samples(range(len(source))).fingerprint


def train(name: str) -> dict[str, torch.Tensor]:
    """Trains a model of the family and returns its state dict."""
    from testbed.data.sets.digit_tasks import description
    from testbed.data.sets.digits import CLASS_NAMES
    from testbed.models.networks import digits as networks
    from testbed.models.networks.digits_coca import train_coca

    recipe = RECIPES[name]
    images, labels, _ = train_data()
    with networks.reproducibly(SEED) as generator:
        if recipe["network"] == "tiny_clip":
            captions = [[template.replace("{c}", each) for template in TEMPLATES] for each in CLASS_NAMES]
            trained = networks.train_clip(images, labels, captions, generator, recipe["steps"])
        elif recipe["network"] == "tiny_coca":
            described = [description(each) for each in CLASS_NAMES]
            trained = train_coca(images, labels, described, generator, recipe["steps"], recipe["noise"])
        elif recipe["network"] == "Linear":
            trained = networks.train_linear(images, labels, SEED)
        elif recipe["network"] == "NearestNeighbors":
            trained = networks.train_neighbors(images, labels, SEED)
        else:
            network = getattr(networks, recipe["network"])()
            trained = networks.train_network(
                network, images, labels, generator, recipe["epochs"], recipe.get("noise", 0.0)
            )
    return {key: value.contiguous() for key, value in trained.state_dict().items()}


@dataclass(frozen=True)
class DigitsWeights:
    """The trained weights of a name, in the cache folder."""

    name: str

    def path(self) -> Path:
        """Returns the folder of the weights, named by recipe, seed and data."""
        from testbed.data.sets.digits import Digits

        source = Digits("train")
        data = source.describe_samples(range(len(source))).fingerprint
        key = digest({"recipe": RECIPES[self.name], "seed": SEED, "size": IMAGE_SIZE, "data": data})
        return cache_dir("digits", key) / f"{self.name}.safetensors"

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The weights, trained now if they are not there."""
        path = self.path()
        if not path.is_file():
            if not fetch:
                return None
            from safetensors.torch import save

            log.info("training %s on 1,257 digits (once; kept in %s)", self.name, path.parent)
            write_atomically(path, save(train(self.name)))
        return [path]


def load(name: str) -> Any:
    """The trained network of a name (with its tokenizer, for the CLIP and the CoCa)."""
    from testbed.models.base.fitting import fit_state_dict
    from testbed.models.loading.checkpoint_file import load_state_dict

    files = DigitsWeights(name).files(fetch=True) or ()
    made = untrained(name)
    network = made[0] if isinstance(made, tuple) else made
    fit_state_dict(network, load_state_dict(files[0]), name)
    return made


def untrained(name: str) -> Any:
    """The network of a name with random weights (with its tokenizer, for the CLIP and the CoCa)."""
    from testbed.models.networks import digits as networks
    from testbed.models.networks import digits_coca

    made = RECIPES[name]["network"]
    return getattr(digits_coca if made == "tiny_coca" else networks, made)()


def shared(name: str) -> dict[str, Any]:
    """Returns the common arguments of the family's definitions."""
    return {
        "name": name,
        "transform": StandardTransform(img_resize_size=IMAGE_SIZE, img_crop_size=IMAGE_SIZE),
        "eval_batch_size": EVAL_BATCH_SIZE,
        "arch": name,
        "architecture": {"digits": RECIPES[name]["network"]},
        "weights": DigitsWeights(name),
        "random_loader": lambda: untrained(name),
    }


def _classifier(name: str, normalized: bool, model_type: str, differentiable: bool = True) -> Model:
    return Model(
        classifier_loader=lambda: load(name),
        normalization=StandardNormalization([0.5] * 3, [0.5] * 3) if normalized else None,
        num_classes=10,
        model_type=model_type,
        differentiable=differentiable,
        **shared(name),
    )


def _register() -> None:
    definitions = [
        _classifier("digits-logreg", False, "Linear Classifier on Pixels"),
        _classifier("digits-knn", False, "Nearest Neighbors", differentiable=False),
        _classifier("digits-mlp", True, "Standard training"),
        _classifier("digits-cnn", True, "Standard training"),
        _classifier("digits-cnn-noise", True, "Other robustness intervention"),
        DualEncoder(
            encoder_loader=lambda: load("digits-clip"),
            normalization=StandardNormalization([0.5] * 3, [0.5] * 3),
            model_type="Standard training",
            **shared("digits-clip"),
        ),
    ]
    for definition in definitions:
        registry.add_model(definition, collections=COLLECTIONS)


_register()
