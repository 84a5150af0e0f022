"""Your own checkpoint: any architecture of torchvision or timm and a state-dict file.

On the command line ``resnet50,/path/to.pth`` or ``timm/vit_base_patch16_224,/path/to.safetensors``; the preprocessing
is that of `Inputs.preprocessing`, else the one saved with the weights (see ``base/saved.py``), else that of the
architecture's published weights. In a definition file `checkpoint_model` takes a name and other preprocessing.
(open_clip's architectures take checkpoints in the same way, see ``open_clip_models.py``.)
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from testbed.errors import DefinitionError, WeightsError
from testbed.inputs import Preprocessing, active
from testbed.models.base import fitting
from testbed.models.base.class_order import LISTED, ClassOrder, asked, listed
from testbed.models.base.definition import ModelDefinition
from testbed.models.base.transform import Transform
from testbed.models.base.weights import SUFFIXES
from testbed.models.checkpoints import entries
from testbed.models.checkpoints.architectures import named_architectures
from testbed.models.checkpoints.entries import said_of
from testbed.models.loading import checkpoint_network
from testbed.models.loading.checkpoint_network import (
    PREFIX,
    Asked,
    Plan,
    load_checkpoint,
    plan,
    plan_from,
    published_settings,
)
from testbed.models.loading.saved import (
    SavedPreprocessing,
    contents,
    saved_class_order,
    saved_preprocessing,
    trained_from_scratch,
)
from testbed.models.model_base import ImageEncoder, Model, StandardNormalization, StandardTransform
from testbed.paths import expanded
from testbed.registry import registry
from testbed.registry.remembered_facts import remembered


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
    weights_entry: str = "",
    match_by_order: bool = False,
    **options: Any,
) -> Checkpoint:
    """A classifier of a known architecture with the weights in a file.

    Args:
        name: The model's name.
        arch: A name of the torchvision or timm family, such as ``resnet50`` or ``timm/vit_base_patch16_224``.
        path: A state dict, as torch.save or safetensors write it. A head of another number of classes is recognised.
        transform: Default: that of the architecture's published weights.
        normalization: Default: that of the architecture's published weights.
        eval_batch_size: Default: the family's.
        settings: Arguments of the library's builder besides the number of classes, such as ``{"transform_input":
            False}``. Default: torchvision's for the published weights.
        class_order: The classes of the outputs: a list of names, ``"natural"``, ``"sorted"`` or ``"setting"``. Default:
            the setting's order.
        weights_entry: The entry of the file that has the weights, such as ``"ema.module"``. Default: averaged weights,
            else the one that fits the architecture.
        match_by_order: True to match tensors by their order where names do not match and shapes agree.
        **options: Further arguments of `Model`, such as ``model_type``.
    """
    base = registry.get_model(arch)
    library = (base.architecture or {}).get("library")
    if not isinstance(base, Model | ImageEncoder) or library not in ("torchvision", "timm"):
        raise DefinitionError(f"{name}: {arch!r} is not an architecture of torchvision or timm")
    architecture = f"timm/{base.arch}" if library == "timm" else str(base.arch)
    file = expanded(path).absolute()
    given = dict(builder_settings(base) if settings is None else settings)
    asked: dict[str, Any] = {"entry": weights_entry} if weights_entry else {}
    asked.update({"by_order": True} if match_by_order else {})
    chosen: Any = transform or base.transform
    model = Checkpoint(
        name=name,
        transform=chosen,
        normalization=normalization or base.normalization,
        classifier_loader=partial(load_checkpoint, architecture, file, given, **asked),
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


def builder_settings(base: ModelDefinition) -> dict[str, Any]:
    """Returns the arguments of torchvision's builder for a definition of its family; nothing for timm's."""
    from testbed.models.torchvision_models import weights_of

    if (base.architecture or {}).get("library") != "torchvision":
        return {}
    find = partial(published_settings, str(base.arch))
    key, code = [base.name, base.arch], [checkpoint_network.__file__]
    found: dict[str, Any] = remembered("builder", key, ["torchvision"], code, lambda: find(weights_of(base.name)))
    return found


class Checkpoint(Model):
    """A model of a known architecture with the weights in a file.

    What the file decides is read when it is first asked for: defining a model reads no file.
    """

    def planned(self) -> Plan | None:
        """Plans how to build the network; None if the file does not fit, which loading reports."""
        loader = self.classifier_loader
        if not isinstance(loader, partial) or loader.func is not load_checkpoint:
            return None  # it was given another one
        architecture, path, settings = loader.args
        try:
            stamp = os.stat(path)
        except OSError:
            return None
        asked = Asked(**loader.keywords)
        return _planned(architecture, path, stamp.st_mtime_ns, stamp.st_size, _hashable(settings), asked)

    def spec(self) -> dict[str, Any]:
        """Returns what determines the logits besides the weights, with options or earlier versions that differ."""
        made = self.planned()
        network = dict(self.architecture or {})
        if made is not None and not made.found.usual:
            network["entry"] = made.found.entry
        if made is not None and made.by_option:
            network["matched"] = "by order"
        return {**super().spec(), "network": network}


def _hashable(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, json.dumps(value, default=repr)) for key, value in settings.items()))


@lru_cache(maxsize=64)
def _planned(
    architecture: str, path: Path, modified: int, size: int, settings: tuple[tuple[str, str], ...], asked: Asked
) -> Plan | None:
    """The plan, without tensors; remembered, since making it imports the library and builds its network."""
    given = {key: json.loads(value) for key, value in settings}

    def make() -> dict[str, Any] | None:
        try:
            made = plan(architecture, contents(path), given, f"the checkpoint {path}", asked)
        except WeightsError:
            return None
        return asdict(replace(made, state={}, found=replace(made.found, state={})))

    key = [architecture, str(path), modified, size, settings, asdict(asked)]
    code: tuple[str | Path, ...] = (
        *sorted(Path(str(entries.__file__)).parent.glob("*.py")),
        *(str(each.__file__) for each in (checkpoint_network, fitting)),
    )
    fact = remembered("plan", key, ["torch", "torchvision", "timm"], code, make)
    return None if fact is None else plan_from(fact)


def remarks(made: Plan | None, settings: Mapping[str, Any], saved: SavedPreprocessing | None = None) -> tuple[str, ...]:
    """Returns a run's remarks on the network of a checkpoint, and on the rest of its file."""
    used = saved.tensors if saved is not None else ()
    said = [f"{name} {value}" for name, value in settings.items()]
    if made is not None:
        said += filter(None, [said_of(made.found), *made.said])
        beside = [name for name in made.beside if name not in used]
        if beside:
            more = f" and {len(beside) - 1} more" if len(beside) > 1 else ""
            said.append(f"not used: {beside[0]}{more}")
    return tuple(said)


class CheckpointFamily:
    """Names of the form ``ARCHITECTURE,/path/to/state_dict``."""

    name = "checkpoint"
    reads_files = True  # so that a definition is built anew each time

    def names(self) -> Iterable[str]:
        """Lists none: there are as many as there are files."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The architecture and the absolute path, when a family of classifiers has the architecture."""
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
        inputs = active()
        asked = inputs.preprocessing
        given = asked.or_else(saved.preprocessing) if saved else asked
        settings: dict[str, Any] | None = {} if trained_from_scratch(path) else None
        model = checkpoint_model(
            name,
            arch,
            path,
            settings=settings,
            weights_entry=inputs.weights_entry,
            match_by_order=inputs.match_by_order,
        )
        if given.crop is not None and given.resize is None:
            given = replace(given, resize=_resized(base, given.crop))
        made, shown = _sized(model, given, asked)
        if shown is not None:
            given = replace(given, resize=_resized(base, shown), crop=shown)
        model.transform = _transform(base, given) or model.transform
        model.normalization = _normalization(base, given)
        origins = [f"the published weights of {arch}"]
        if shown is not None:
            origins.insert(0, f"the shapes of the tensors in {path.name}")
        if saved is not None:
            origins.insert(0, saved.where)
        if asked.options:
            origins.insert(0, " and ".join(asked.options))
        model.preprocessing_from = ", the rest from ".join(origins)
        model.size_is_assumed = given.crop is None
        model.num_classes = made.classes if made is not None else None
        settings = (model.architecture or {}).get("settings", {})
        model.remarks = remarks(made, settings, saved)
        if saved is not None and saved.unused and asked.crop is None:
            model.remarks += (saved.unused,)
        model.class_order = _order(path, str(base.arch).removeprefix(PREFIX), model.num_classes)
        return model

    def explain(self, name: str) -> str | None:
        """Explains what to write for a checkpoint without an architecture."""
        if "," in name or Path(name).suffix not in SUFFIXES:
            return None
        written = _named_in(expanded(name)) or (
            f"resnet50,{name} (torchvision), timm/vit_base_patch16_224,{name} (timm) or ViT-B-32,{name} (open_clip),"
            " with the architecture that was trained"
        )
        return (
            f"this names a checkpoint but not its architecture; write {written}; pass a network of your own class to"
            " testbed.evaluate, or define it in a file (docs/adding-a-model.md)"
        )


def _named_in(path: Path) -> str:
    """The architectures that the training script wrote into a file, with it; empty if there are none."""
    if not path.is_file():
        return ""
    with contextlib.suppress(WeightsError):
        found = named_architectures(contents(path))
        return " or ".join(f"{name},{path}" for name in found) + (", which the file names" if found else "")
    return ""


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


def _sized(model: Checkpoint, given: Preprocessing, asked: Preprocessing) -> tuple[Plan | None, int | None]:
    """Plans the network for the size of its images, and returns their side (pixels) if only the file shows it."""
    loader: Any = model.classifier_loader
    if given.crop is not None:
        model.classifier_loader = partial(loader, side=given.crop)
    made = model.planned()
    if asked.crop is not None:
        return made, None
    if made is None and given.crop is not None:  # what was saved may be of the weights that it was fine-tuned from
        model.classifier_loader = loader
        made = model.planned()
    usual = given.crop or (made.usual_side if made is not None else None)
    return made, made.side if made is not None and made.side != usual else None


def _resized(base: ModelDefinition, crop: int) -> int:
    """The shorter side after resizing for a crop of another side: the architecture crops this share of it."""
    own: Any = base.transform
    if (share := getattr(own, "crop_pct", None)) is not None:
        return math.floor(crop / float(share))
    sides: list[int] = [
        max(size) if isinstance(size, list | tuple) else size for size in (own.img_resize_size, own.img_crop_size)
    ]
    return round(crop * sides[0] / sides[1])


def _normalization(base: ModelDefinition, given: Preprocessing) -> StandardNormalization | None:
    """The architecture's normalization, changed as given."""
    own = base.normalization or StandardNormalization((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    if given.mean is None and given.std is None:
        return base.normalization
    return StandardNormalization(given.mean or own.mean, given.std or own.std, own.input_space)


registry.add_model_family(CheckpointFamily())
