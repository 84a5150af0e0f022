"""Your own checkpoint: any architecture of torchvision or timm and a state-dict file.

On the command line ``resnet50,/path/to.pth`` or ``timm/vit_base_patch16_224,/path/to.safetensors``; the preprocessing
is what `Inputs.preprocessing` says, else what was saved with the weights (see ``base/saved.py``), else that of the
architecture's published weights. In a definition file `checkpoint_model` takes a name and other preprocessing.
(open_clip's architectures take checkpoints in the same way, see ``open_clip_models.py``.)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, WeightsError
from testbed.inputs import Preprocessing, active
from testbed.models.base.definition import ModelDefinition
from testbed.models.base.transform import Transform
from testbed.models.loading.checkpoint_file import AVERAGED, FoundState
from testbed.models.loading.checkpoint_network import PREFIX, Plan, load_checkpoint, plan, published_settings
from testbed.models.loading.class_order import LISTED, ClassOrder, asked, listed
from testbed.models.loading.saved import saved_class_order, saved_preprocessing, shapes, trained_from_scratch
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.paths import expanded
from testbed.registry import registry

SUFFIXES = (".pth", ".pt", ".safetensors", ".bin", ".ckpt")


def checkpoint_model(
    name: str,
    arch: str,
    path: str | Path,
    transform: Transform | None = None,
    normalization: StandardNormalization | None = None,
    eval_batch_size: int | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    class_order: ClassOrder | Sequence[str] | str | None = None,
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
        settings: What the library's builder is given besides the number of classes, such as ``{"transform_input":
            False}``. Default: what torchvision gives it for the published weights.
        class_order: The classes of the outputs: a list of names, ``"natural"``, ``"sorted"`` or ``"setting"``. Default:
            the setting's order.
        **options: Further arguments of `Model`, such as ``model_type``.
    """
    base = registry.get_model(arch)
    library = (base.architecture or {}).get("library")
    if not isinstance(base, Model) or library not in ("torchvision", "timm"):
        raise DefinitionError(f"{name}: {arch!r} is not an architecture of torchvision or timm")
    architecture = f"timm/{base.arch}" if library == "timm" else str(base.arch)
    file = expanded(path).absolute()
    given = dict(builder_settings(base) if settings is None else settings)
    model = Model(
        name=name,
        transform=transform or base.transform,
        normalization=normalization or base.normalization,
        classifier_loader=partial(load_checkpoint, architecture, file, given),
        eval_batch_size=eval_batch_size or base.eval_batch_size,
        arch=architecture,
        architecture={"checkpoint": architecture, **({"settings": given} if given else {})},
        weights=file,
        **options,
    )
    if class_order is not None:
        model.class_order = _class_order(class_order)
    return model


def _class_order(given: ClassOrder | Sequence[str] | str) -> ClassOrder:
    if isinstance(given, ClassOrder):
        return given
    return asked(given) if isinstance(given, str) else listed(list(given), "class_order", None)


def builder_settings(base: Model) -> dict[str, Any]:
    """What torchvision's builder gives the network of a definition of its family; nothing for timm's."""
    from testbed.models.torchvision_models import weights_of

    if (base.architecture or {}).get("library") != "torchvision":
        return {}
    return published_settings(str(base.arch), weights_of(base.name))


@lru_cache(maxsize=64)
def _planned(
    architecture: str, path: Path, modified: int, size: int, settings: tuple[tuple[str, Any], ...]
) -> tuple[Plan | None, FoundState | None]:
    """How the network of a file is built, and what the file has; None if it does not fit, which loading it will say."""
    found = shapes(path)
    try:
        return plan(architecture, found.state, dict(settings), str(path)) if found else None, found
    except WeightsError:
        return None, found


def planned(model: Model, path: Path) -> tuple[Plan | None, FoundState | None]:
    """How the network of a checkpoint is built, and what its file has; None for either if that cannot be told."""
    architecture = dict(model.architecture or {})
    try:
        stamp = os.stat(path)
    except OSError:
        return None, None
    settings = tuple(sorted(architecture.get("settings", {}).items()))
    return _planned(str(architecture["checkpoint"]), path, stamp.st_mtime_ns, stamp.st_size, settings)


def remarks(made: Plan | None, found: FoundState | None, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """What a run says of the network of a checkpoint, and of what its file has besides."""
    said = [f"{name} {value}" for name, value in settings.items()]
    if found is not None and found.entry in AVERAGED:
        instead = f", not {' or '.join(found.others)}" if found.others else ""
        said.append(f"averaged weights (EMA) from {found.entry}{instead}")
    elif found is not None and found.others:
        said.append(f"weights from {found.entry}, not {' or '.join(found.others)}")
    if made is not None and made.beside:
        more = f" and {len(made.beside) - 1} more" if len(made.beside) > 1 else ""
        said.append(f"not used: {made.beside[0]}{more}")
    return tuple(said)


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
        settings: dict[str, Any] | None = {} if trained_from_scratch(path) else None
        model = checkpoint_model(
            name, arch, path, _transform(base, given), _normalization(base, given), settings=settings
        )
        origins = [f"the published weights of {arch}"]
        if saved is not None:
            origins.insert(0, saved.where)
        if asked.options:
            origins.insert(0, " and ".join(asked.options))
        model.preprocessing_from = ", the rest from ".join(origins)
        model.size_is_assumed = given.crop is None
        made, found = planned(model, path)
        model.num_classes = made.classes if made is not None else None
        model.remarks = remarks(made, found, (model.architecture or {}).get("settings", {}))
        model.class_order = _order(path, str(base.arch).removeprefix(PREFIX), model.num_classes)
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


def _order(path: Path, architecture: str, classes: int | None) -> ClassOrder:
    """The classes of the outputs: as asked for, else as saved with the weights, else in the setting's order."""
    option = active().class_order
    if option is not None:
        order = asked(option)
        return order if order.rule != LISTED else listed(order.names, order.where, classes)
    return saved_class_order(path, architecture, classes) or ClassOrder()


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
