"""Zero-shot heads in files: saved for others, and loaded in place of a head made from prompts (their mean, if several).

A file is a ``.npy`` array, or a tensor that torch has saved as CLIP benchmark's ``--save_clf`` does: [D, C].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.content import remembered_digest
from testbed.entities import Evaluation
from testbed.errors import DataError
from testbed.eval_settings.base.parts import prompts_of
from testbed.graph.nodes import Artifact, Given
from testbed.identity.fingerprints import model_identity
from testbed.inputs import active
from testbed.models.base.weights import plain
from testbed.tasks.parts.zero_shot import head_fingerprint

if TYPE_CHECKING:
    import torch

    from testbed.db.store import Store
    from testbed.models.model_base import ModelDefinition


def head_files() -> list[Path]:
    """The files that are in use, as the active `Inputs` say; none means heads are made from prompts."""
    return [Path(file) for file in active().heads]


def head_digests() -> list[str]:
    """The digests of the heads in use; raises DataError if a file cannot be read."""
    return [remembered_digest(file) for file in head_files()]


@dataclass(frozen=True)
class SavedHead(Artifact):
    """The mean of the heads in use, float32 [D, C], not normalized again. It is in files, and not stored again."""

    kind = "zero-shot-head"

    def fingerprint(self, given: Given, definition: ModelDefinition) -> str:
        """Empty: it is not stored."""
        return ""

    def make(self, loaded: Any, given: Given) -> tuple[torch.Tensor, dict[str, Any]]:
        """Reads the files.

        Raises:
            DataError: If they are not heads, or have different shapes, or not one column for each class.
        """
        names = given.setting.prompts.names(given.class_names)
        return loaded_head(len(names) or None), {}


def loaded_head(classes: int | None) -> torch.Tensor:
    """The mean of the heads in use, float32 [D, C], not normalized again.

    Args:
        classes: How many classes it must have; None takes any number.

    Raises:
        DataError: If they are not heads, or have different shapes.
    """
    import torch

    heads = [_read(file) for file in head_files()]
    shapes = {tuple(head.shape) for head in heads}
    if len(shapes) > 1:
        raise DataError(f"the zero-shot heads have different shapes, {sorted(shapes)}; their mean is not defined")
    (shape,) = shapes
    if classes is not None and shape[1] != classes:
        raise DataError(f"the zero-shot head has {shape[1]} classes, the setting has {classes}")
    return torch.stack(heads).mean(dim=0)


def _read(file: Path) -> torch.Tensor:
    import numpy as np
    import torch

    try:
        if file.suffix == ".npy":
            head = torch.from_numpy(np.load(file, allow_pickle=False))
        else:
            head = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # numpy and torch raise almost anything for files that are not theirs
        raise DataError(f"the zero-shot head {file} cannot be read: {plain(error)}") from error
    if not isinstance(head, torch.Tensor) or head.ndim != 2 or not head.is_floating_point():
        found = f"{head.dtype} {tuple(head.shape)}" if isinstance(head, torch.Tensor) else type(head).__name__
        raise DataError(f"the zero-shot head {file} is not a float array [D, C], but {found}")
    return head.float()


def save_heads(store: Store, evaluations: Sequence[Evaluation], folder: Path) -> list[Path]:
    """Writes the heads of those evaluations that are zero-shot as ``<model>_<setting>.npy``; returns the files."""
    import numpy as np

    written = []
    for evaluation in evaluations:
        head = _stored_head(store, evaluation, store.evaluations.identity(evaluation))
        if head is not None:
            folder.mkdir(parents=True, exist_ok=True)
            name = "".join(
                c if c.isalnum() or c in "-_.," else "-" for c in f"{evaluation.model}_{evaluation.eval_setting}"
            )
            np.save(folder / f"{name}.npy", head.astype(np.float32))
            written.append(folder / f"{name}.npy")
    return written


def _stored_head(store: Store, evaluation: Evaluation, identity: Mapping[str, Any]) -> Any:
    forward = identity.get("forward", {})
    if forward.get("route") != "zero-shot" or "class_names" not in forward.get("prompts", {}):
        return None
    prompts = prompts_of(forward["prompts"], evaluation.eval_setting)
    return store.artifacts.get(head_fingerprint(model_identity(identity), prompts, forward.get("language")))
