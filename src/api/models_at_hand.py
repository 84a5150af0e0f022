"""Models for `testbed.evaluate`: names, definitions, and networks, estimators, functions and files."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from testbed.api.definitions import registered
from testbed.errors import DefinitionError
from testbed.inputs import Preprocessing
from testbed.models.at_hand.estimator import EstimatorNetwork, estimator_name, is_estimator
from testbed.models.at_hand.image_classifier import class_order_in, folder_preparation
from testbed.models.at_hand.memory import ModelAtHand
from testbed.models.at_hand.preprocessing import Preparation, of_options, of_timm, prepared_by
from testbed.models.model_base import ModelDefinition
from testbed.registry import registry
from testbed.registry.table import DefinitionSource, check_name

NOTHING = Preprocessing()
INSTEAD = ", instead of "  # a preparation that the model has
FORMS = (
    "a model is a name, a definition, a network (an nn.Module with transform=…), torchvision's weights, a fitted"
    " classifier of scikit-learn, a function from images to logits, or the path of an ONNX, .pt2 or TorchScript file"
)
HERE = DefinitionSource("testbed.evaluate", 0, main=True)  # other processes cannot reach this one's objects


@dataclass(frozen=True)
class Beside:
    """Arguments of `evaluate` for models in memory.

    Attributes:
        transform: Function from a PIL image to a tensor; None for the model's own.
        name: Name of the only model; None derives one from its architecture and content.
        preprocessing: The values of ``image_size``, ``mean``, ``std`` and ``interpolation``.
        of_data: Returns the different transforms of the data sets at hand, and those to tensors without one.
    """

    transform: Any = None
    name: str | None = None
    preprocessing: Preprocessing = NOTHING
    of_data: Callable[[], tuple[Sequence[Any], Sequence[Any]]] = lambda: ((), ())


def model_names(models: Any, beside: Beside | None = None) -> tuple[list[str], str | None]:
    """Returns the names of models, after registering definitions and models in memory.

    Returns:
        The words, and the given name unless a model in memory has it, in which case it belongs to a file.

    Raises:
        DefinitionError: If something is not a model; the message lists what is.
    """
    beside = beside or Beside()
    if isinstance(models, dict):
        return _named_models(models, beside), None
    given = [_torchvision_name(thing) or thing for thing in _several(models)]
    if not given:
        raise DefinitionError(f"no models were given; {FORMS}")
    unnamed = [thing for thing in given if not (_is_word(thing) or isinstance(thing, ModelDefinition))]
    at_hand = [thing for thing in given if any(thing is other for other in unnamed) or _is_own_file(thing, beside)]
    if beside.name is not None and at_hand and len(at_hand) != 1:
        raise DefinitionError(f"name={beside.name!r} names one network or file; got {len(at_hand)}")
    if beside.transform is not None and not at_hand:
        raise DefinitionError("transform=… applies only to a network or a file; named models have their own")
    names = [_name_of(thing, beside, any(thing is other for other in at_hand)) for thing in given]
    return names, None if at_hand else beside.name


def _named_models(models: dict[Any, Any], beside: Beside) -> list[str]:
    """Returns the names of models in memory, given as a mapping from their names."""
    if beside.name is not None:
        raise DefinitionError("name=… is for one model; a dict of models has their names")
    if not models:
        raise DefinitionError(f"no models were given; {FORMS}")
    if all(_is_weights(thing) for thing in models.values()):
        raise DefinitionError(
            "a state dict has no code: load it into one, network.load_state_dict(…), or name the architecture and its"
            " file, as resnet50,FILE"
        )
    for name, thing in models.items():
        if isinstance(thing, ModelDefinition) or (_is_word(thing) and not _is_program(str(thing))):
            raise DefinitionError(
                f"a dict of models has names for networks in memory and program files; {name!r} is"
                f" {str(thing) if _is_word(thing) else thing.name!r}, which has a name: give a list of such models"
            )
    return [_register(_model(thing, replace(beside, name=str(name)))) for name, thing in models.items()]


def _is_weights(thing: Any) -> bool:
    """Returns whether a thing is a tensor, which no model is."""
    return hasattr(thing, "shape") and hasattr(thing, "dtype")


def _several(models: Any) -> list[Any]:
    """Returns the given models as a list."""
    if isinstance(models, list | tuple | set | frozenset | types.GeneratorType):
        return list(models)
    one = (str, Path, ModelDefinition)
    if isinstance(models, one) or callable(models) or is_estimator(models) or not isinstance(models, Iterable):
        return [models]
    return list(models) if not hasattr(models, "__array__") else [models]


def _is_word(thing: Any) -> bool:
    return isinstance(thing, str | Path)


def _is_own_file(thing: Any, beside: Beside) -> bool:
    """Returns whether a word is the path of a program that the transform is for."""
    return _is_word(thing) and beside.transform is not None and _is_program(str(thing))


def _is_program(word: str) -> bool:
    return word in registry.models and registry.models.source(word) == "family program"


def _name_of(thing: Any, beside: Beside, at_hand: bool) -> str:
    if _is_word(thing) and not at_hand:
        return str(thing)
    if isinstance(thing, ModelDefinition):
        return registered(thing, registry.models, registry.add_model)
    return _register(_model(thing, beside))


def _register(model: ModelDefinition) -> str:
    """Registers a model in memory, replacing an earlier one of this name."""
    check_name("model", model.name, "testbed.evaluate")
    if model.name in registry.models and not registry.models.source(model.name).startswith(HERE.file):
        raise DefinitionError(
            f"the name {model.name!r} belongs to another model (testbed list models); choose a different one"
        )
    registry.models.add_made(model.name, lambda: model, HERE, instead_of=HERE.file)
    return model.name


def _model(thing: Any, beside: Beside) -> ModelDefinition:
    """Returns the definition of a model in memory; raises DefinitionError if the thing is not a model."""
    if _is_word(thing):
        return _program(thing, beside)
    if thing is None or isinstance(thing, int | float | complex | bytes | dict | list | tuple | set):
        raise DefinitionError(f"got {type(thing).__name__ if thing is not None else None} for a model; {FORMS}")
    if isinstance(thing, type) and issubclass(thing, Enum):
        raise DefinitionError(f"{thing.__name__} is a class; give one of its members, as {thing.__name__}.DEFAULT")
    if isinstance(thing, type):
        raise DefinitionError(f"{thing.__name__} is a class; give an instance, as {thing.__name__}(…)")
    import torch  # noqa: F401 -- a function or an estimator is given tensors, also where the user has none

    if type(thing).__name__ == "ExportedProgram" and type(thing).__module__.startswith("torch.export"):
        return _exported(thing, beside)
    if type(thing).__module__.startswith("transformers.pipelines") and hasattr(thing, "image_processor"):
        return _of_transformers(thing.model, beside, thing.image_processor)
    if is_estimator(thing):
        return _estimator(thing, beside)
    if isinstance(thing, sys.modules["torch"].nn.Module):
        kind = type(thing)
        return (
            _of_transformers(thing, beside) if kind.__module__.startswith("transformers.") else _network(thing, beside)
        )
    if callable(thing):
        base = getattr(thing, "__name__", type(thing).__name__)
        return _at_hand(_name(beside, base), thing, _prepared(thing, beside))
    is_onnx = type(thing).__module__.startswith(("onnx.", "onnxruntime."))
    hint = "give its file, as testbed.evaluate('model.onnx', …); " if is_onnx else ""
    raise DefinitionError(f"got {type(thing).__name__} for a model; {hint}{FORMS}")


def _name(beside: Beside, base: str) -> str:
    """Returns the given name, else a base that the content completes."""
    plain = "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in base).strip("_") or "function"
    return beside.name if beside.name is not None else f"{plain}-"


def _prepared(thing: Any, beside: Beside, own: Preparation | None = None, size: int | None = None) -> Preparation:
    """Returns how images are prepared: as given, else by the model's own configuration.

    Raises:
        DefinitionError: If neither says how.
    """
    owner = getattr(thing, "__name__", None) or type(thing).__name__
    if beside.transform is not None:
        if beside.preprocessing != Preprocessing():
            raise DefinitionError(
                f"{owner}: give transform=… or {' and '.join(_words(beside.preprocessing))}, not both"
            )
        return prepared_by(beside.transform, owner)
    given = of_options(beside.preprocessing, owner, size)
    if given is not None:
        return given
    transforms, to_tensors = beside.of_data()
    if len(transforms) > 1:
        raise DefinitionError(f"{owner}: the data sets have {len(transforms)} different transforms; give transform=…")
    if transforms:
        of_data = prepared_by(transforms[0], owner, "the transform of the data set")
        return of_data if own is None else replace(of_data, where=f"{of_data.where}{INSTEAD}{own.where}")
    if own is not None:
        return own
    if to_tensors:
        return prepared_by(to_tensors[0], owner, "the data set's tensors as they are")
    raise DefinitionError(
        f"{owner} does not say how to prepare images for it; give transform=…, a function from a PIL image to a"
        " tensor, as in testbed.evaluate(net, …, transform=weights.transforms())"
    )


def _words(preprocessing: Preprocessing) -> list[str]:
    return [option.removeprefix("--").replace("-", "_") for option in preprocessing.options]


def _at_hand(name: str, network: Any, prepared: Preparation, **options: Any) -> ModelAtHand:
    """Returns the definition; if the transform does not make images, corruptions come before the network's input."""
    if prepared.after is None:
        return ModelAtHand(name, network, prepared, **options)
    from testbed.models.at_hand.pictures import OfPictures

    described = {"at hand": type(network).__qualname__, "transform after corruptions": prepared.after}
    options |= {"differentiable": False, "architecture": described, "one_by_one": True}
    return ModelAtHand(name, OfPictures(network, prepared.after), prepared, **options)


# Kinds ------------------------------------------------------------------------------------------------------------


def _torchvision_name(thing: Any) -> str | None:
    """The name of the model with these torchvision weights; None for anything else.

    Raises:
        DefinitionError: If they are not weights of an image classifier.
    """
    if not (isinstance(thing, Enum) and type(thing).__module__.startswith("torchvision.models")):
        return None
    from torchvision import models

    for architecture in models.list_models(module=models):
        if models.get_model_weights(architecture) is type(thing):
            return f"{architecture}.{thing.name.lower()}"
    raise DefinitionError(f"{type(thing).__name__} are not weights of a torchvision image classifier")


def _network(net: Any, beside: Beside) -> ModelDefinition:
    """Handles a torch module; timm's own ones describe how images are prepared for them."""
    if callable(getattr(net, "encode_image", None)) and callable(getattr(net, "encode_text", None)):
        raise DefinitionError(
            f"{type(net).__name__} has encode_image and encode_text: it is a dual encoder such as CLIP, and needs its"
            " tokenizer; give its architecture and file, as ViT-B-32,FILE, or define a DualEncoder"
            " (docs/adding-a-model.md)"
        )
    config = getattr(net, "pretrained_cfg", None)
    is_timm = isinstance(config, dict) and "input_size" in config
    base = str(config.get("architecture") or type(net).__name__) if is_timm and config else type(net).__name__
    own = (
        of_timm(config, "the network's pretrained_cfg (timm)")
        if is_timm and config and beside.transform is None
        else None
    )
    classes = getattr(net, "num_classes", None)
    return _at_hand(
        _name(beside, base),
        net,
        _prepared(net, beside, own),
        num_classes=classes if is_timm and isinstance(classes, int) and classes > 0 else None,
    )


def _of_transformers(net: Any, beside: Beside, processor: Any = None) -> ModelDefinition:
    """Handles an image classifier of transformers; its folder, or the pipeline, has the image processor."""
    kind = type(net).__name__
    if "ForImageClassification" not in kind:
        raise DefinitionError(f"{kind} is not an image classifier of transformers (…ForImageClassification)")
    own, source = None, str(getattr(net.config, "_name_or_path", "") or "")
    if beside.transform is None and beside.preprocessing == Preprocessing():
        if processor is not None:
            own = prepared_by(processor, kind)
        elif source:
            own = folder_preparation(kind, source)
    model = _at_hand(_name(beside, kind), net, _prepared(net, beside, own), num_classes=net.config.num_labels)
    model.class_order = class_order_in(net.config.id2label, "id2label of its configuration")
    return model


def _estimator(estimator: Any, beside: Beside) -> ModelDefinition:
    network = EstimatorNetwork(estimator)
    base = estimator_name(estimator)
    if beside.transform is None and beside.preprocessing == Preprocessing():
        raise DefinitionError(
            f"{base} takes {network.features or 'some'} numbers for each image; give transform=…, a function from a PIL"
            " image to them (or to an image [3, H, W] in [0, 1], whose numbers it takes in that order)"
        )
    from PIL import Image

    from testbed.models.at_hand.pictures import as_tensor

    prepared = _prepared(estimator, beside)
    network.check(as_tensor((prepared.after or prepared.transform)(Image.new("RGB", (96, 64)))))
    model = _at_hand(_name(beside, base), network, prepared, num_classes=len(network.classes), differentiable=False)
    model.class_order = network.order
    return model


def _exported(program: Any, beside: Beside) -> ModelDefinition:
    """Handles a program of torch.export in memory."""
    from testbed.models.at_hand.programs import exported_network

    network, facts = exported_network(program, "the exported program")
    prepared = _prepared(program, beside, size=facts.side)
    return _at_hand(_name(beside, "ExportedProgram"), network, prepared, num_classes=facts.classes)


def _program(path: Any, beside: Beside) -> ModelDefinition:
    """Handles a program file and its transform."""
    from testbed.identity.describe import describe_fields, digest
    from testbed.models.program_files import ProgramModel
    from testbed.paths import expanded

    file = expanded(path).absolute()
    prepared = None if beside.transform is None else prepared_by(beside.transform, str(file))
    model = ProgramModel(str(file), file, prepared)
    if beside.name is None:
        model.name = f"{_name(beside, file.stem)}{digest([str(model.weights()), describe_fields(model.spec())])[:6]}"
        return model
    return model.under_name(beside.name)
