"""Your own checkpoint for open_clip: the network and activation that its tensors imply, and loading it.

Its sizes may have been set in training by ``--force-image-size`` and ``--force-context-length``; open_clip would
interpolate them to its configuration. ``--siglip`` adds a bias.
"""

from __future__ import annotations

import contextlib
import copy
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError, message_of
from testbed.models.base.weights import WeightsSource
from testbed.models.checkpoints.file_kinds import is_safetensors
from testbed.models.loading.checkpoint_file import plain_values, why_not_read
from testbed.models.loading.saved import shapes

QUICK = "-quickgelu"  # ends the names of architectures with QuickGELU
RESNET_STRIDE = 32  # pixels for each place of the last layer of CLIP's ResNets
CONTEXT_LENGTH = 77
# The positional embedding of an image tower, and the tensor whose last side is that of a patch.
TOWERS = (
    ("visual.positional_embedding", "visual.conv1.weight"),
    ("visual.trunk.pos_embed", "visual.trunk.patch_embed.proj.weight"),
    ("visual.attnpool.positional_embedding", None),
)
TEXTS = ("positional_embedding", "text.positional_embedding")


def as_trained(config: Mapping[str, Any], state: Mapping[str, Any], what: str) -> tuple[dict[str, Any], list[str]]:
    """Compares the network that a state dict was saved from with its configuration.

    Args:
        config: The architecture's.
        state: The state dict, with or without content.
        what: The file, for messages.

    Returns:
        Some of ``image_size`` (pixels), ``context_length`` (tokens) and ``init_logit_bias``; and the same for people.

    Raises:
        WeightsError: If the positional embedding does not fit a square image.
    """
    differences: dict[str, Any] = {}
    said = []
    usual = config["vision_cfg"].get("image_size", 224)
    side = _side(state, usual, what)
    if side is not None:
        differences["image_size"] = side
        said.append(f"images of {side} pixels, not {_size(usual)}, as its positional embedding has")
    text = config.get("text_cfg") or {}
    known = text.get("context_length", CONTEXT_LENGTH)
    length = next((int(state[name].shape[0]) for name in TEXTS if name in state), None)
    if length is not None and (length := length - bool(text.get("embed_cls"))) != known:
        differences["context_length"] = length
        said.append(f"texts of {length} tokens, not {known}, as its positional embedding has")
    if "logit_bias" in state and config.get("init_logit_bias") is None:
        differences["init_logit_bias"] = 0.0  # which the file's replaces
        said.append("with SigLIP's bias")
    return differences, said


def configured(config: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with what `as_trained` found."""
    made = copy.deepcopy(config)
    if "image_size" in found:
        made["vision_cfg"]["image_size"] = found["image_size"]
    if "context_length" in found:
        made["text_cfg"]["context_length"] = found["context_length"]
    return {**made, **{key: found[key] for key in ("init_logit_bias",) if key in found}}


def _side(state: Mapping[str, Any], usual: Any, what: str) -> int | None:
    """The side of the images, where the positional embedding is not of the usual size; None where it is."""
    for name, patches in TOWERS:
        if name not in state or (patches is not None and patches not in state):
            continue
        patch = RESNET_STRIDE if patches is None else int(state[patches].shape[-1])
        height, width = usual if isinstance(usual, list | tuple) else (usual, usual)
        places = int(state[name].shape[-2])
        expected = (height // patch) * (width // patch)
        extra = 1 if name != "visual.trunk.pos_embed" else places - math.isqrt(places) ** 2
        if places in (expected, expected + 1, expected + extra):
            return None
        grid = math.isqrt(places - extra)
        if grid * grid != places - extra:
            raise WeightsError(
                f"{what}: the positional embedding {name} has {places} places, which do not form a square of patches of"
                f" {patch} pixels; the architecture has images of {_size(usual)}"
            )
        return grid * patch
    return None


def _size(size: Any) -> str:
    return " × ".join(map(str, size)) if isinstance(size, list | tuple) else str(size)


def in_file(config: Mapping[str, Any], weights: WeightsSource) -> tuple[dict[str, Any], list[str]]:
    """Returns `as_trained` for a file; nothing if it is missing or cannot be read, which loading reports."""
    try:
        path = Path((weights.files(fetch=False) or ())[0])
    except (WeightsError, IndexError):
        return {}, []
    entry = shapes(path)
    if entry is None:
        return {}, []
    state = {name.removeprefix("module."): value for name, value in entry.state.items()}
    return as_trained(config, state, f"the checkpoint {path}")


def activation(architecture: str, quick: bool, own: bool) -> str:
    """The activation, for people; of your own checkpoint, which files want the other one."""
    said = f"activation {'QuickGELU' if quick else 'GELU'}"
    if not own:
        return said
    if quick:
        return f"{said}, as {architecture} has; a checkpoint that was trained with GELU loses accuracy"
    import open_clip

    tags = open_clip.list_pretrained_tags_by_model(architecture)
    trained = [tag for tag in tags if (open_clip.get_pretrained_cfg(architecture, tag) or {}).get("quick_gelu")]
    if not trained:
        return f"{said}, as open_clip builds {architecture}"
    return (
        f"{said}, as open_clip builds {architecture}; for weights that are or come from {', '.join(trained[:3])} write"
        f" {architecture}{QUICK},FILE"
    )


@contextlib.contextmanager
def _named_rightly(path: Path) -> Iterator[Path]:
    """The file under a name that ends as its format does: open_clip goes by that and not by the content."""
    if not path.is_file() or (path.suffix == ".safetensors") == is_safetensors(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="testbed-") as folder:
        link = Path(folder) / ("weights.safetensors" if is_safetensors(path) else "weights.pt")
        link.symlink_to(path.absolute())
        yield link


def load_into(network: Any, path: Path, name: str) -> None:
    """Loads a checkpoint into a network as open_clip does.

    Raises:
        WeightsError: If it cannot be read or does not fit; the message describes its content.
    """
    import open_clip

    try:
        with plain_values(), _named_rightly(path) as file:
            open_clip.load_checkpoint(network, str(file), strict=True, weights_only=True)
    except Exception as error:
        lines = [line.strip() for line in message_of(error).splitlines() if line.strip()]
        if "Error(s) in loading state_dict" in message_of(error):
            raise WeightsError(
                f"{name}: the checkpoint {path} cannot be loaded, since it does not fit the architecture:"
                f" {' '.join(lines[1:2])[:160]}"
            ) from error
        raise why_not_read(path, error) from error
