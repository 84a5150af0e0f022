"""Image classifiers of transformers, from a folder as ``save_pretrained`` writes it: network, processor, labels."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError
from testbed.models.at_hand.preprocessing import Preparation, of_processor
from testbed.models.base.class_order import LISTED, ClassOrder
from testbed.models.base.classifier import Model
from testbed.models.base.weights import WeightsSource, plain

EVAL_BATCH_SIZE = 64
HEAD = "ForImageClassification"
_OTHER_HEAD = re.compile(r"For[A-Z]")
_UNNAMED = re.compile(r"LABEL_\d+")  # what transformers writes where nobody named the classes


def architecture_in(config: Mapping[str, Any]) -> str:
    """The class of network that a configuration names; empty if it names none."""
    named = config.get("architectures")
    return str(named[0]) if isinstance(named, list) and named else ""


def is_classifier(config: Mapping[str, Any]) -> bool:
    """Checks whether a configuration is that of an image classifier."""
    return HEAD in architecture_in(config)


def refuse_other_heads(name: str, config: Mapping[str, Any]) -> None:
    """Checks that a configuration is not that of a network for another task; raises WeightsError if it is."""
    architecture = architecture_in(config)
    if _OTHER_HEAD.search(architecture) and HEAD not in architecture:
        raise WeightsError(
            f"{name}: it is a {architecture}, by its config.json; image classifiers (…{HEAD}) and dual encoders such as"
            " CLIP are read here"
        )


def holds_classifier(folder: Path) -> bool:
    """Checks whether a folder has the configuration of an image classifier of transformers."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and is_classifier(config)


def class_order_in(labels: Any, where: str) -> ClassOrder:
    """The classes of the outputs by ``id2label``; in the setting's order if nobody named them."""
    if not isinstance(labels, Mapping) or not labels:
        return ClassOrder()
    try:
        names = tuple(str(name) for _, name in sorted((int(index), name) for index, name in labels.items()))
    except (TypeError, ValueError):
        return ClassOrder()
    if all(map(_UNNAMED.fullmatch, names)):
        return ClassOrder()
    return ClassOrder(LISTED, where, names)


def image_classifier(
    name: str,
    config: Mapping[str, Any],
    find: Callable[[], Path],
    weights: WeightsSource,
    described: Mapping[str, Any],
) -> Model:
    """The definition of an image classifier.

    Args:
        config: Its configuration.
        find: Finds the folder with its files.
        weights: Identifies its weights.
        described: The parts of the configuration that determine the outputs.

    Raises:
        WeightsError: If its folder has no image processor that makes batches.
    """
    folder = find()
    prepared = folder_preparation(name, folder)
    labels = config.get("id2label")
    model = Model(
        name=name,
        transform=prepared.transform,
        normalization=prepared.normalization,
        classifier_loader=lambda: _load(name, find(), weights),
        random_loader=lambda: _untrained(find()),
        eval_batch_size=EVAL_BATCH_SIZE,
        arch=str(config["model_type"]),
        num_classes=len(labels) if isinstance(labels, Mapping) else None,
        architecture={"library": "transformers", "head": architecture_in(config), "config": dict(described)},
        weights=weights,
    )
    model.preprocessing_from = prepared.where
    model.class_order = class_order_in(labels, f"id2label in {folder.name}/config.json")
    model.remarks = (architecture_in(config),)
    return model


def folder_preparation(name: str, folder: Path | str) -> Preparation:
    """Returns the preparation of an image processor in a folder (or in the cache of the hub).

    Raises:
        WeightsError: If there is none.
    """
    import transformers

    library: Any = transformers
    try:
        processor = library.AutoImageProcessor.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise WeightsError(
            f"{name}: the image processor in {folder} cannot be read ({plain(error)}); in transformers,"
            " processor.save_pretrained(FOLDER) writes it"
        ) from error
    return of_processor(processor, name, f"{type(processor).__name__} in {Path(folder).name}/preprocessor_config.json")


def _load(name: str, folder: Path, weights: WeightsSource) -> Any:
    """Loads the network with exactly the weights of its identity."""
    import transformers

    library: Any = transformers
    weights.files(fetch=True)
    network, report = library.AutoModelForImageClassification.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
    )
    missing = sorted(report["missing_keys"])
    if missing or report.get("mismatched_keys"):
        what = missing[0] if missing else report["mismatched_keys"][0]
        raise WeightsError(f"{name}: the weights do not fit its architecture: {what} is missing or of another shape")
    return network.float()


def _untrained(folder: Path) -> Any:
    import transformers

    library: Any = transformers  # which is typed in part
    config = library.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return library.AutoModelForImageClassification.from_config(config, trust_remote_code=False).float()
