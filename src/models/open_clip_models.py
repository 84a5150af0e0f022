"""open_clip's dual encoders, in CLIP benchmark's spelling.

``ViT-B-32,laion400m_e32`` is an architecture and a published tag, ``ViT-B-32,/path/to.pt`` an architecture and
your own checkpoint, ``hf-hub:owner/name`` and ``local-dir:/path`` are open_clip's own schemes; ``ViT-B-32,`` names
no weights and runs with ``--random-weights``.

A published tag gets the activation that its weights were trained with. Your own checkpoint gets the one that open_clip
builds for the name: GELU for ``ViT-B-32``, QuickGELU for ``ViT-B-32-quickgelu``, and likewise for every architecture.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError
from testbed.models.base.transform import LazyTransform, Transform
from testbed.models.base.weights import LocalFiles, WeightsSource
from testbed.models.loading.flores import flores_code, nllb_tokenizer
from testbed.models.loading.hub import hash_in_name, hub_file, url_file
from testbed.models.loading.open_clip_checkpoint import QUICK, activation, configured, in_file, load_into
from testbed.models.model_base import DualEncoder, StandardNormalization
from testbed.paths import expanded
from testbed.registry import registry
from testbed.registry.library_names import library_names

EVAL_BATCH_SIZE = 128
_SHOWN = 5  # tags in a message
TEXT_REVISION = 2  # of how text towers are run; raised when the same text gets another embedding
PREFIX = "open_clip/"
HUB = "hf-hub:"
FOLDER = "local-dir:"
CONFIG_FILE = "open_clip_config.json"
WEIGHT_FILES = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "open_clip_pytorch_model.bin")
WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")
DEFAULT_PREPROCESSING: dict[str, Any] = {
    "mean": (0.48145466, 0.4578275, 0.40821073),
    "std": (0.26862954, 0.26130258, 0.27577711),
    "interpolation": "bicubic",
    "resize_mode": "shortest",
}


class OpenClipTransform(LazyTransform):
    """The evaluation transform that open_clip makes from a model's configuration, without its normalization.

    Args:
        size: Side (pixels), or (height, width).
        interpolation: ``"bicubic"`` or ``"bilinear"``.
        resize_mode: ``"shortest"``, ``"longest"`` or ``"squash"``.
    """

    def __init__(
        self, size: int | Sequence[int], interpolation: str = "bicubic", resize_mode: str = "shortest"
    ) -> None:
        self.size = size if isinstance(size, int) else list(size)
        self.interpolation = interpolation
        self.resize_mode = resize_mode

    def make(self) -> Transform:
        """Builds open_clip's resizing and cropping, then a float tensor in [0, 1]."""
        from open_clip.transform import image_transform
        from torchvision import transforms

        size = self.size if isinstance(self.size, int) else tuple(self.size)
        whole = image_transform(size, is_train=False, interpolation=self.interpolation, resize_mode=self.resize_mode)
        kept = [step for step in whole.transforms if not isinstance(step, transforms.Normalize)]
        made: Transform = transforms.Compose(kept)
        return made


@dataclass(frozen=True)
class TagWeights:
    """The checkpoint of a published tag."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The checkpoint, downloaded if need be."""
        import open_clip

        architecture, _, tag = self.name.partition(",")
        config = open_clip.get_pretrained_cfg(architecture, tag)
        if config.get("hf_hub"):
            repository, _, file = config["hf_hub"].rpartition("/")
            named = [f"{file.rpartition('.')[0]}.safetensors", file] if file else WEIGHT_FILES
            path = hub_file(self.name, repository, named, fetch=fetch)
        elif config.get("url"):
            place = expanded("~/.cache/clip") / config["url"].rpartition("/")[2]
            path = url_file(self.name, config["url"], place, fetch, hash_in_url(config["url"]))
        else:
            raise WeightsError(f"{self.name}: open_clip does not say where the weights of this tag are")
        return [path] if path is not None else None


@dataclass(frozen=True)
class HubWeights:
    """The checkpoint of a repository on the Hugging Face hub."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The checkpoint, downloaded if need be."""
        path = hub_file(self.name, self.name.removeprefix(HUB), WEIGHT_FILES, fetch=fetch)
        return [path] if path is not None else None


@dataclass(frozen=True)
class FolderWeights:
    """The checkpoint in a folder: under one of open_clip's names, else the only one there is."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path]:
        """The checkpoint."""
        folder = Path(self.name.removeprefix(FOLDER))
        named = [folder / file for file in WEIGHT_FILES if (folder / file).is_file()]
        found = named[:1] or [path for path in sorted(folder.glob("*")) if path.suffix in WEIGHT_SUFFIXES]
        if len(found) != 1:
            files = ", ".join(path.name for path in found) or "none"
            raise WeightsError(
                f"{self.name}: one checkpoint is expected in the folder ({WEIGHT_FILES[0]}, or a single file ending in"
                f" {' '.join(WEIGHT_SUFFIXES)}); found {files}"
            )
        return found


@dataclass(frozen=True)
class NoWeights:
    """Definitions of a name without weights."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """Refuses: the name has no weights."""
        raise WeightsError(
            f"{self.name!r} names an architecture but no weights; write {self.name}TAG or"
            f" {self.name}/path/to/checkpoint, or add --random-weights to run it untrained"
        )


def tags_of(architecture: str) -> list[str] | None:
    """The published tags of an architecture; None for an unknown one. One that a plug-in has added is known too."""
    known = library_names("open_clip_torch").get(architecture)
    return [] if known is None and is_known(_base(architecture)) else known


def is_known(architecture: str) -> bool:
    """Checks whether open_clip has an architecture of this name, or a plug-in has added it."""
    library = sys.modules.get("open_clip")
    added = library is not None and architecture in library.list_models()
    return added or architecture in library_names("open_clip_torch")


def hash_in_url(url: str) -> str | None:
    """The beginning of a checkpoint's SHA-256 digest: OpenAI has it in the folder's name, others in the file's."""
    return url.split("/")[-2] if "openaipublic" in url else hash_in_name(url)


class OpenClipFamily:
    """Every architecture of the installed open_clip, with any of its tags or your own checkpoint."""

    name = "open_clip"
    reads_files = True  # so that a definition is built anew each time

    def names(self) -> Iterable[str]:
        """Lists one name for each published pair."""
        for architecture, tags in library_names("open_clip_torch").items():
            yield from (f"{architecture},{tag}" for tag in tags)

    def canonical(self, name: str) -> str | None:
        """The pair; a checkpoint's path is made absolute."""
        if name.startswith(HUB):
            return name
        if name.startswith(FOLDER):
            return FOLDER + str(expanded(name.removeprefix(FOLDER)).absolute())
        architecture, comma, tag = name.removeprefix(PREFIX).partition(",")
        tags = tags_of(architecture) if comma else None
        if tags is None:
            return None
        if (not tag and is_known(architecture)) or tag in tags:
            return f"{architecture},{tag}"
        if not ("/" in tag or Path(tag).suffix):
            return None
        from testbed.models.torchvision_models import TorchvisionFamily

        shared = TorchvisionFamily().canonical(architecture) is not None  # which takes checkpoints too
        return f"{PREFIX if shared else ''}{architecture},{expanded(tag).absolute()}"

    def explain(self, name: str) -> str | None:
        """Explains what to write for an architecture without weights."""
        tags = tags_of(name.removeprefix(PREFIX)) if "," not in name else None
        if tags is None:
            return None
        known = f"{name},{tags[0]} for published weights" + (f" ({', '.join(tags[:_SHOWN])})" if tags[1:] else "")
        ways = [*([known] if tags else []), f"{name},/path/to/checkpoint for your own"]
        return (
            f"this is an architecture of open_clip; write {', '.join(ways)}, or '{name},' with --random-weights to"
            " run it untrained"
        )

    def build(self, name: str) -> DualEncoder:
        """The definition, with the preprocessing that its weights were trained with."""
        source = name.removeprefix(PREFIX)
        config, pretrained = _configuration(source)
        weights = _weights(source)
        own = isinstance(weights, LocalFiles)
        trained, said = in_file(config, weights) if isinstance(weights, LocalFiles | FolderWeights) else ({}, [])
        config = configured(config, trained)
        quick_gelu = bool((config if own else pretrained).get("quick_gelu")) or _forced(source)
        given = {key: pretrained[key] for key in DEFAULT_PREPROCESSING if pretrained.get(key) is not None}
        preprocessing = {**DEFAULT_PREPROCESSING, **given}
        multilingual = _speaks_nllb(config)
        model = DualEncoder(
            name=name,
            # The network's own size, whatever the preprocessing configuration is: open_clip does the same.
            transform=OpenClipTransform(
                config["vision_cfg"].get("image_size", 224),
                preprocessing["interpolation"],
                preprocessing["resize_mode"],
            ),
            normalization=StandardNormalization(preprocessing["mean"], preprocessing["std"]),
            encoder_loader=lambda: _load(source, quick_gelu, trained),
            random_loader=lambda: _untrained(source, quick_gelu),
            eval_batch_size=EVAL_BATCH_SIZE,
            arch=source.partition(",")[0],
            architecture={"library": "open_clip", "config": config, "quick_gelu": quick_gelu, "texts": TEXT_REVISION},
            weights=weights,
            tokenizer_for=nllb_tokenizer if multilingual else None,
            language_code=flores_code if multilingual else None,
        )
        if own:
            model.preprocessing_from = f"what the published weights of {model.arch} agree on, else OpenAI's CLIP"
        model.remarks = (activation(model.arch or "", quick_gelu or bool(config.get("quick_gelu")), own), *said)
        return model


def _forced(source: str) -> bool:
    """Checks whether a name asks for QuickGELU in an architecture that open_clip has only without it."""
    architecture = source.partition(",")[0]
    return architecture.endswith(QUICK) and _base(architecture) != architecture


def _base(architecture: str) -> str:
    """The name by which open_clip has an architecture: without ``-quickgelu`` where it has none of that name."""
    bare = architecture.removesuffix(QUICK)
    return bare if not is_known(architecture) and is_known(bare) else architecture


def _speaks_nllb(config: dict[str, Any]) -> bool:
    """Checks whether a model's tokenizer is NLLB's, which needs the language of the texts."""
    tokenizer = str((config.get("text_cfg") or {}).get("hf_tokenizer_name", ""))
    return "nllb" in tokenizer.lower()


def _configuration(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The architecture's configuration, and that of the weights (preprocessing, quick_gelu)."""
    import open_clip

    if name.startswith((HUB, FOLDER)):
        path = (
            hub_file(name, name.removeprefix(HUB), [CONFIG_FILE])
            if name.startswith(HUB)
            else Path(name.removeprefix(FOLDER)) / CONFIG_FILE
        )
        return _read_configuration(name, Path(path or ""))
    architecture, _, tag = name.partition(",")
    architecture = _base(architecture)
    config = open_clip.get_model_config(architecture)
    pretrained = open_clip.get_pretrained_cfg(architecture, tag) if tag else {}
    return config, pretrained or _agreed(architecture)


def _read_configuration(name: str, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    expected = f"{name}: {path} should be open_clip's configuration, a JSON object with 'model_cfg'"
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{expected}: {error}") from error
    config = whole.get("model_cfg") if isinstance(whole, dict) else None
    if not isinstance(config, dict) or not isinstance(config.get("vision_cfg"), dict):
        raise WeightsError(f"{expected} that describes a vision tower")
    return config, whole.get("preprocess_cfg") or {}


def _agreed(architecture: str) -> dict[str, Any]:
    """Returns what all published weights of an architecture agree on: the best guess for your own checkpoint.

    A SigLIP checkpoint is not normalized as OpenAI's CLIP is. The activation is not guessed: see `activation`.
    """
    import open_clip

    tags = open_clip.list_pretrained_tags_by_model(architecture)
    configs = [open_clip.get_pretrained_cfg(architecture, tag) for tag in tags]
    agreed = {}
    for key in DEFAULT_PREPROCESSING:
        values = [config.get(key) for config in configs]
        if values and values[0] is not None and all(value == values[0] for value in values):
            agreed[key] = values[0]
    return agreed


def _weights(name: str) -> WeightsSource:
    if name.startswith(HUB):
        return HubWeights(name)
    if name.startswith(FOLDER):
        return FolderWeights(name)
    tag = name.partition(",")[2]
    if not tag:
        return NoWeights(name)
    return LocalFiles((Path(tag),)) if Path(tag).is_absolute() else TagWeights(name)


def _load(name: str, quick_gelu: bool, trained: Mapping[str, Any]) -> tuple[Any, Any]:
    """Loads the network with exactly the weights of its identity, and its tokenizer."""
    import open_clip

    from testbed.models.loading.uninitialized import Uninitialized
    from testbed.models.networks.open_clip_texts import shorten

    path = (_weights(name).files(fetch=True) or ())[0]
    with Uninitialized() as mode:
        network = _build(name, quick_gelu, trained)
    load_into(network, path, name)
    if mode.has_left(network):  # open_clip does not check that a file of NumPy's has all
        network = _build(name, quick_gelu, trained)
        load_into(network, path, name)
    length = {"context_length": trained["context_length"]} if "context_length" in trained else {}
    return shorten(network), open_clip.get_tokenizer(_source(name), **length)


def _untrained(name: str, quick_gelu: bool) -> tuple[Any, Any]:
    import open_clip
    from torch import nn

    from testbed.models.networks.open_clip_texts import shorten

    network = _build(name, quick_gelu)
    projection = getattr(getattr(network, "text_decoder", None), "text_projection", None)
    if projection is not None:  # open_clip leaves CoCa's uninitialised
        nn.init.normal_(projection, std=projection.shape[0] ** -0.5)
    return shorten(network), open_clip.get_tokenizer(_source(name))


def _source(name: str) -> str:
    """Returns open_clip's name of the architecture."""
    return name if name.startswith((HUB, FOLDER)) else _base(name.partition(",")[0])


def _build(name: str, quick_gelu: bool, trained: Mapping[str, Any] | None = None) -> Any:
    import open_clip

    forced = {f"force_{key}": value for key, value in (trained or {}).items() if not key.startswith("init_")}
    given = {key: value for key, value in (trained or {}).items() if key.startswith("init_")}

    with _without_its_warning():
        return open_clip.create_model(
            _source(name),
            load_weights=False,
            pretrained_image=False,
            pretrained_text=False,
            force_quick_gelu=quick_gelu,
            **forced,
            **given,
        )


@contextlib.contextmanager
def _without_its_warning() -> Iterator[None]:
    """Keeps back open_clip's warning that it loads no weights: they are loaded here, after it has built the network."""

    def kept(record: logging.LogRecord) -> bool:
        return "No pretrained weights loaded" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(kept)
    try:
        yield
    finally:
        root.removeFilter(kept)


registry.add_model_family(OpenClipFamily())
