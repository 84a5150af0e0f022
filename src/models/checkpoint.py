"""Your own checkpoint: any architecture of torchvision or timm and a state-dict file.

On the command line ``resnet50,/path/to.pth`` or ``timm/vit_base_patch16_224,/path/to.safetensors``; the preprocessing
is what `Inputs.preprocessing` says, else what was saved with the weights (see ``base/saved.py``), else that of the
architecture's published weights. In a definition file `checkpoint_model` takes a name and other preprocessing.
(open_clip's architectures take checkpoints in the same way, see ``open_clip_models.py``.)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, WeightsError
from testbed.inputs import Preprocessing, active
from testbed.models.base.definition import ModelDefinition
from testbed.models.base.saved import saved_preprocessing, shapes
from testbed.models.base.transform import Transform
from testbed.models.base.weights import fit_state_dict, load_state_dict
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.paths import expanded
from testbed.registry import registry

SUFFIXES = (".pth", ".pt", ".safetensors", ".bin", ".ckpt")
PREFIX = "timm/"
PUBLISHED_CLASSES = 1000  # of torchvision's classifiers


def checkpoint_model(
    name: str,
    arch: str,
    path: str | Path,
    transform: Transform | None = None,
    normalization: StandardNormalization | None = None,
    eval_batch_size: int | None = None,
    **options: Any,
) -> Model:
    """A classifier of a known architecture with the weights in a file.

    Args:
        name: The model's name.
        arch: A name of the torchvision or timm family, such as ``resnet50`` or ``timm/vit_base_patch16_224``.
        path: A state dict, as torch.save or safetensors write it. A head of another number of classes is recognised.
        transform: Default: that of the architecture's published weights.
        normalization: Default: that of the architecture's published weights.
        eval_batch_size: Default: the family's.
        **options: Further arguments of `Model`, such as ``model_type``.
    """
    base = registry.get_model(arch)
    library = (base.architecture or {}).get("library")
    if not isinstance(base, Model) or library not in ("torchvision", "timm"):
        raise DefinitionError(f"{name}: {arch!r} is not an architecture of torchvision or timm")
    architecture = f"timm/{base.arch}" if library == "timm" else str(base.arch)
    file = expanded(path).absolute()
    return Model(
        name=name,
        transform=transform or base.transform,
        normalization=normalization or base.normalization,
        classifier_loader=lambda: load_checkpoint(architecture, file),
        eval_batch_size=eval_batch_size or base.eval_batch_size,
        arch=architecture,
        architecture={"checkpoint": architecture},
        weights=file,
        **options,
    )


def load_checkpoint(architecture: str, path: Path) -> Any:
    """The network of an architecture with the weights in a file.

    Raises:
        WeightsError: If they do not fit.
    """
    state = load_state_dict(path)
    network = build(architecture)
    classes = head_size(network, state)
    if classes is not None:
        network = build(architecture, classes)
    fit_state_dict(network, state, f"the checkpoint {path}")
    return network


def build(architecture: str, classes: int | None = None) -> Any:
    """An untrained network; with ``classes``, its head has as many outputs."""
    arguments: dict[str, Any] = {} if classes is None else {"num_classes": classes}
    if architecture.startswith(PREFIX):
        import timm

        return timm.create_model(architecture.removeprefix(PREFIX), pretrained=False, **arguments)
    from torchvision import models

    return models.get_model(architecture, weights=None, **arguments)


def head_size(network: Any, state: dict[str, Any]) -> int | None:
    """The number of classes of a checkpoint whose head alone differs from the network's; None when nothing differs.

    Raises:
        WeightsError: If more than a head differs.
    """
    own = network.state_dict()
    classes = getattr(network, "num_classes", PUBLISHED_CLASSES)
    sizes: dict[str, int] = {}
    for name in own:
        if name not in state or state[name].shape == own[name].shape:
            continue
        if own[name].ndim == 0 or own[name].shape[0] != classes or state[name].shape[1:] != own[name].shape[1:]:
            raise WeightsError(
                f"the checkpoint does not fit the architecture: {name} is {tuple(state[name].shape)},"
                f" not {tuple(own[name].shape)}"
            )
        sizes[name] = int(state[name].shape[0])
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} of {size}" for name, size in sizes.items())
        raise WeightsError(f"the checkpoint does not fit the architecture: it has heads for different classes: {found}")
    return next(iter(sizes.values()), None)


def saved_classes(architecture: str, path: Path) -> int | None:
    """The number of classes of a checkpoint; None if it is missing or does not fit, which loading it will say."""
    state = shapes(path)
    if not state:
        return None
    import torch

    with torch.device("meta"):
        network = build(architecture)
    try:
        return head_size(network, state) or getattr(network, "num_classes", PUBLISHED_CLASSES)
    except WeightsError:
        return None


class CheckpointFamily:
    """Names of the form ``ARCHITECTURE,/path/to/state_dict``."""

    name = "checkpoint"
    reads_files = True  # so that a definition is built anew each time

    def names(self) -> Iterable[str]:
        """None: there are as many as there are files."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The architecture and the absolute path, when a family of classifiers knows the architecture."""
        arch, comma, path = name.partition(",")
        if not comma or not ("/" in path or Path(path).suffix) or "," in arch:
            return None
        from testbed.models.open_clip_models import tags_of
        from testbed.models.timm_models import TimmFamily
        from testbed.models.torchvision_models import TorchvisionFamily

        family = TimmFamily() if arch.startswith(PREFIX) else TorchvisionFamily()
        known = family.canonical(arch)
        if known is None:
            return None
        # A tag of timm's decides the preprocessing; torchvision's plain name means its first weights anyway.
        written = arch if arch.startswith(PREFIX) else known
        if tags_of(known) is not None:  # open_clip has an architecture of that name, and takes checkpoints too
            written = f"torchvision/{known}"
        return f"{written},{expanded(path).absolute()}"

    def build(self, name: str) -> Model:
        """The definition: preprocessing as asked for, else as saved with the checkpoint, else the architecture's."""
        arch, _, written = name.partition(",")
        path, base = Path(written), registry.get_model(arch)
        saved = saved_preprocessing(path, str(base.arch).removeprefix(PREFIX))
        asked = active().preprocessing
        given = asked.or_else(saved.preprocessing) if saved else asked
        model = checkpoint_model(name, arch, path, _transform(base, given), _normalization(base, given))
        origins = [f"the published weights of {arch}"]
        if saved is not None:
            origins.insert(0, saved.where)
        if asked.options:
            origins.insert(0, " and ".join(asked.options))
        model.preprocessing_from = ", the rest from ".join(origins)
        model.size_is_assumed = given.crop is None
        model.num_classes = saved_classes(str(model.arch), path)
        return model

    def explain(self, name: str) -> str | None:
        """What to write for a checkpoint without an architecture."""
        if "," in name or Path(name).suffix not in SUFFIXES:
            return None
        return (
            f"this names a checkpoint but not its architecture; write resnet50,{name} (torchvision),"
            f" timm/vit_base_patch16_224,{name} (timm) or ViT-B-32,{name} (open_clip), with the architecture that was"
            " trained"
        )


def _transform(base: ModelDefinition, given: Preprocessing) -> Transform | None:
    """The architecture's transform, changed as given."""
    own: Any = base.transform
    if given.resize is not None and given.crop is not None:
        return StandardTransform(given.resize, given.crop, given.interpolation or own.interpolation)
    if given.interpolation is None:
        return base.transform
    changed: Transform = own.with_interpolation(given.interpolation)
    return changed


def _normalization(base: ModelDefinition, given: Preprocessing) -> StandardNormalization | None:
    """The architecture's normalization, changed as given."""
    own = base.normalization or StandardNormalization((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    if given.mean is None and given.std is None:
        return base.normalization
    return StandardNormalization(given.mean or own.mean, given.std or own.std, own.input_space)


registry.add_model_family(CheckpointFamily())
