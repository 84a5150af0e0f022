"""Dual encoders of transformers: CLIP, SigLIP, SigLIP 2, ALIGN and others with ``get_image_features``; classifiers.

``transformers/owner/name`` (or ``hf/owner/name``) is a repository of the Hugging Face hub,
``transformers//path/to/folder`` (or ``transformers/./folder``) a folder as ``save_pretrained`` writes it; that of an
image classifier needs no prefix. Its ``config.json`` has its type. Weights are read from safetensors alone, and no
code that a repository brings is ever run.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import MissingExtraError, WeightsError
from testbed.models.at_hand.image_classifier import (
    holds_classifier,
    image_classifier,
    is_classifier,
    refuse_other_heads,
)
from testbed.models.at_hand.preprocessing import processor_normalization
from testbed.models.base.transform import LazyTransform, Transform
from testbed.models.base.weights import cannot_fetch, plain, require_host
from testbed.models.model_base import DualEncoder, Model, StandardNormalization
from testbed.paths import expanded
from testbed.registry import registry

if TYPE_CHECKING:
    from PIL import Image

PREFIX = "transformers/"
HUB = "hf/"  # the same, as many write it
EVAL_BATCH_SIZE = 128
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
WEIGHT_PATTERNS = ("model.safetensors", "model-*.safetensors")
TOKENIZER_FILES = (
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "added_tokens.json",  # of slow tokenizers, which transformers still reads
)
WANTED = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "model.safetensors.index.json",
    *WEIGHT_PATTERNS,
    *TOKENIZER_FILES,
)
SIGLIP = ("siglip", "siglip2")
SIGLIP_TEXTS = 2  # raised when the same text becomes other tokens
VOLATILE = ("_name_or_path", "transformers_version", "torch_dtype", "dtype")
LENGTHS = {"align": 64}  # tokens that its processor takes; its text tower has more positions
NAFLEX = "Siglip2ImageProcessor"


class PillowTransform(LazyTransform):
    """The resizing and cropping of transformers' image processors, by Pillow, before they rescale a picture.

    Args:
        size: Length of the shorter side (pixels), or (height, width); None leaves it.
        crop: (height, width) of the middle that is kept, black where there is nothing; None keeps all.
        resample: Pillow's number of the filter.
    """

    def __init__(self, size: int | Sequence[int] | None, crop: Sequence[int] | None, resample: int) -> None:
        self.size = size if size is None or isinstance(size, int) else list(size)
        self.crop = None if crop is None else list(crop)
        self.resample = int(resample)

    def make(self) -> Transform:
        """Builds Pillow's parts, then a float tensor [3, height, width] in [0, 1]."""
        from torchvision.transforms.functional import to_tensor

        return lambda image: to_tensor(self._cropped(self._resized(image.convert("RGB"))))

    def _resized(self, image: Image.Image) -> Image.Image:
        from PIL import Image as Pillow

        if self.size is None:
            return image
        if isinstance(self.size, int):
            short, long = sorted(image.size)
            longer = int(self.size * long / short)
            width, height = (self.size, longer) if image.width <= image.height else (longer, self.size)
        else:
            height, width = self.size
        return image.resize((width, height), resample=Pillow.Resampling(self.resample))

    def _cropped(self, image: Image.Image) -> Image.Image:
        if self.crop is None:
            return image
        height, width = self.crop
        left, top = (image.width - width) // 2, (image.height - height) // 2
        return image.crop((left, top, left + width, top + height))


@dataclass(frozen=True)
class TransformersFiles:
    """The files of a name: in its folder, or in the cache of the Hugging Face hub."""

    name: str

    def folder(self, fetch: bool = True) -> Path | None:
        """The folder that holds them, fetched if necessary; None if they are missing and ``fetch`` is False.

        Raises:
            WeightsError: If they are missing.
        """
        source = self.name.removeprefix(PREFIX)
        if source.startswith("/"):
            return Path(source)
        from huggingface_hub import constants, snapshot_download

        options: dict[str, Any] = {"allow_patterns": list(WANTED), "ignore_patterns": ["*/*"]}
        try:
            found = Path(snapshot_download(source, local_files_only=True, **options))
            if _weight_files(found):
                return found
        except Exception:
            found = None
        if not fetch:
            return None
        url = f"{constants.ENDPOINT}/{source}"
        place = f"the Hugging Face cache, {constants.HF_HUB_CACHE} ('hf download {source}' does both)"
        try:
            require_host(self.name, url, place)
            return Path(snapshot_download(source, **options))
        except WeightsError:
            if found is not None:
                return found  # its configuration is here, which is enough for random weights
            raise
        except Exception as error:
            raise cannot_fetch(self.name, url, place, plain(error)) from error

    def files(self, fetch: bool) -> Sequence[Path] | None:
        """The files of the weights and of the tokenizer."""
        folder = self.folder(fetch)
        if folder is None:
            return None
        weights = _weight_files(folder)
        if not weights:
            raise WeightsError(
                f"{self.name}: {folder} has no model.safetensors; other forms of weights are not read (in transformers,"
                " model.save_pretrained(FOLDER) writes it)"
            )
        return [*weights, *(path for name in TOKENIZER_FILES if (path := folder / name).is_file())]


def _weight_files(folder: Path) -> list[Path]:
    return [path for pattern in WEIGHT_PATTERNS for path in sorted(folder.glob(pattern))]


class HubFamily:
    """Models that a library reads from the Hugging Face hub, ``NAME/owner/name``, or from a folder, ``NAME/PATH``."""

    name: str

    def names(self) -> Iterable[str]:
        """Returns an empty list: the hub has too many to list."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name; a folder's path is made absolute."""
        source = name.removeprefix(f"{self.name}/")
        if source == name or not source:
            return None
        if REPOSITORY.fullmatch(source) and not Path(source).is_dir():
            return name
        return f"{self.name}/{expanded(source).absolute()}"


class TransformersFamily(HubFamily):
    """Dual encoders and image classifiers of transformers."""

    name = "transformers"

    def canonical(self, name: str) -> str | None:
        """The name; the path of a classifier's folder may stand alone."""
        if name.startswith(HUB):
            name = PREFIX + name.removeprefix(HUB)
        if name.startswith(PREFIX):
            return super().canonical(name)
        return f"{PREFIX}{expanded(name).absolute()}" if holds_classifier(expanded(name)) else None

    def build(self, name: str) -> DualEncoder | Model:
        """The definition, with the preprocessing of the processor's configuration."""
        if importlib.util.find_spec("transformers") is None:
            raise MissingExtraError("transformers", "transformers", name)
        files = TransformersFiles(name)
        folder = _folder(files)
        config = _configuration(name, folder)
        described = {key: value for key, value in config.items() if key not in VOLATILE}
        if is_classifier(config):
            return image_classifier(name, config, lambda: _folder(files), files, described)
        refuse_other_heads(name, config)
        transform, normalization = preprocessing(name, folder)
        return DualEncoder(
            name=name,
            transform=transform,
            normalization=normalization,
            encoder_loader=lambda: _load(files),
            random_loader=lambda: _untrained(files),
            eval_batch_size=EVAL_BATCH_SIZE,
            arch=config["model_type"],
            architecture={
                "library": "transformers",
                "config": described,
                "text_revision": SIGLIP_TEXTS if config["model_type"] in SIGLIP else 1,
            },
            weights=files,
        )


def _folder(files: TransformersFiles) -> Path:
    folder = files.folder()
    assert folder is not None
    return folder


def _configuration(name: str, folder: Path) -> dict[str, Any]:
    expected = f"{name}: {folder / 'config.json'} should be transformers' configuration of a model"
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{expected}: {error}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise WeightsError(f"{expected}, a JSON object with 'model_type'")
    from transformers import CONFIG_MAPPING

    if config["model_type"] not in CONFIG_MAPPING:
        raise WeightsError(
            f"{name}: transformers does not know the model type {config['model_type']!r}; code that a repository brings"
            " is not run"
        )
    return config


def preprocessing(name: str, folder: Path) -> tuple[PillowTransform, StandardNormalization]:
    """Converts a folder's image processor to a transform to [0, 1] and a normalization.

    SigLIP 2's NaFlex processor keeps a picture's proportions; here it is resized to the square of as many patches, so
    that the pictures of a batch have one size. A square picture is the same.

    Raises:
        WeightsError: If there is no processor, or it does something else.
    """
    import transformers

    library: Any = transformers
    try:
        processor = library.AutoImageProcessor.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_fast=False
        )
    except Exception as error:
        raise WeightsError(f"{name}: the image processor in {folder} cannot be read: {plain(error)}") from error
    given = processor.to_dict()
    if given.get("image_processor_type") == NAFLEX:
        side = given["patch_size"] * int(given["max_num_patches"] ** 0.5)
        return PillowTransform((side, side), None, given["resample"]), processor_normalization(given)
    size = _sides(name, given.get("size")) if given.get("do_resize") else None
    crop = _sides(name, given.get("crop_size")) if given.get("do_center_crop") else None
    if isinstance(crop, int):
        crop = (crop, crop)
    if crop is None and not isinstance(size, tuple):
        raise WeightsError(f"{name}: its image processor makes pictures of different sizes, which make no batch")
    return PillowTransform(size, crop, given.get("resample", 2)), processor_normalization(given)


def _sides(name: str, size: Any) -> int | tuple[int, int]:
    if isinstance(size, int):
        return size
    if isinstance(size, dict) and {"height", "width"} <= set(size):
        return int(size["height"]), int(size["width"])
    if isinstance(size, dict) and set(size) == {"shortest_edge"}:
        return int(size["shortest_edge"])
    raise WeightsError(f"{name}: its image processor has a size that is not known here: {size!r}")


# Loading ----------------------------------------------------------------------------------------------------------


def _load(files: TransformersFiles) -> tuple[Any, Any]:
    """Loads the network with exactly the weights of its identity, and its tokenizer."""
    import transformers

    library: Any = transformers
    folder = files.folder()
    files.files(fetch=True)
    network, report = library.AutoModel.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
    )
    missing = sorted(each for each in report["missing_keys"] if not each.endswith("position_ids"))
    if missing or report.get("mismatched_keys"):
        what = missing[0] if missing else report["mismatched_keys"][0]
        raise WeightsError(
            f"{files.name}: the weights do not fit its architecture: {what} is missing or of another shape"
        )
    return _encoders(files.name, folder, network.float())


def _untrained(files: TransformersFiles) -> tuple[Any, Any]:
    import transformers

    library: Any = transformers  # which is typed in part
    folder = files.folder()
    config = library.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return _encoders(files.name, folder, library.AutoModel.from_config(config, trust_remote_code=False).float())


def _encoders(name: str, folder: Any, network: Any) -> tuple[Any, Any]:
    import transformers

    from testbed.models.networks.transformers import Texts, Towers

    library: Any = transformers

    if not all(hasattr(network, method) for method in ("get_image_features", "get_text_features")):
        raise WeightsError(
            f"{name}: {type(network).__name__} is not a dual encoder: it does not embed images and texts"
        )
    tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    config = network.config
    positions = getattr(config.text_config, "max_position_embeddings", None) or tokenizer.model_max_length
    length = LENGTHS.get(config.model_type, int(positions))
    return Towers(network), Texts(tokenizer, length, siglip=config.model_type in SIGLIP)


registry.add_model_family(TransformersFamily())
