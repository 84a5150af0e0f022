"""The models of CLIPScore: a name, a definition, a loaded model, or a model of transformers with its processor."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import torch

from testbed.errors import DefinitionError, MissingExtraError, UnknownNameError, UnsupportedError
from testbed.metrics.clip.inputs import in_colour, to_picture
from testbed.metrics.clip.tokens import Ruler, Truncation, cut

# As torchmetrics names them, and where open_clip has the same weights.
OPENAI = {
    "openai/clip-vit-base-patch16": "ViT-B-16,openai",
    "openai/clip-vit-base-patch32": "ViT-B-32,openai",
    "openai/clip-vit-large-patch14-336": "ViT-L-14-336,openai",
    "openai/clip-vit-large-patch14": "ViT-L-14,openai",
}
LONG_CLIP = ("zer0int/LongCLIP-L-Diffusers", "zer0int/LongCLIP-GmP-ViT-L-14")
NEEDS_TRANSFORMERS = "`clip_score` metric requires `transformers` package be installed for {}: it"
REMOTE_CODE = ("jinaai/jina-clip-v2",)


class UnknownClipError(UnknownNameError, ValueError):
    """A name does not name a model. A `ValueError`, as torchmetrics raises."""


class NoTransformersError(MissingExtraError, ModuleNotFoundError):
    """transformers is not installed. A `ModuleNotFoundError`, as torchmetrics raises."""


class Encoder(Protocol):
    """A model's encoders, as CLIPScore needs them.

    Attributes:
        processor: Prepares its input: a processor of transformers, or a tokenizer.
        stays: True to leave it on its device.
    """

    processor: Any
    stays: bool

    @property
    def network(self) -> Any:
        """The network itself."""
        ...

    def to(self, device: torch.device) -> None:
        """Moves the network."""
        ...

    def images(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Maps images [C, H, W] with values from 0 to 255, in the machine's memory, to embeddings [B, D]."""
        ...

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Maps texts to embeddings [B, D]."""
        ...


def encoder_of(model: Any, truncation: Truncation, device: torch.device | None) -> Encoder:
    """The encoder behind what a user hands over as a model.

    Args:
        model: A name, a definition, a loaded model with ``embed_text``, or a function without arguments that returns
            (model, processor) of transformers.
        truncation: The treatment of texts that are too long.
        device: The device to load it on.

    Raises:
        UnknownClipError: If nothing has that name.
        WeightsError: If its weights are missing.
        MissingExtraError: If it needs a package that is not installed.
        UnsupportedError: If the model embeds no texts, or cannot cut texts in that way.
        DefinitionError: If it is something else.
    """
    from testbed.models.base.capability import EMBED_IMAGE, EMBED_TEXT
    from testbed.models.base.definition import LoadOptions, ModelDefinition

    if isinstance(model, str):
        model = definition_of(model)
    if isinstance(model, ModelDefinition):
        if EMBED_TEXT not in model.capabilities:
            raise UnsupportedError(f"{model.name} embeds no texts; CLIPScore needs a dual encoder")
        of_texts = EMBED_IMAGE not in model.capabilities  # which no image's device moves
        place = device or (idle_device() if of_texts else "cpu")
        return LoadedEncoder(model.load(LoadOptions(str(place))), truncation, stays=of_texts)
    if hasattr(model, "embed_text"):
        return LoadedEncoder(model, truncation, stays=True)
    if callable(model):
        return ProcessorEncoder(*_pair(model), truncation)
    raise DefinitionError(
        "model_name_or_path is a name, a definition, a loaded dual encoder or a function that returns (model,"
        f" processor), not {type(model).__name__}"
    )


def idle_device() -> torch.device:
    """Returns the device for encoding with a model that is not on any device yet."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _pair(make: Callable[[], Any]) -> tuple[Any, Any]:
    made = make()
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise DefinitionError(
            "the function handed over as model_name_or_path returns a pair (model, processor), not"
            f" {type(made).__name__}"
        )
    missing = [name for name in ("get_image_features", "get_text_features") if not hasattr(made[0], name)]
    if missing or not callable(made[1]):
        what = f"a {type(made[0]).__name__} without {missing[0]}" if missing else "a processor that cannot be called"
        raise DefinitionError(f"the function handed over as model_name_or_path returned {what}")
    return made[0], made[1]


# Names ------------------------------------------------------------------------------------------------------------


def definition_of(name: str) -> Any:
    """The definition of a name of testbed's, or of those that torchmetrics lists.

    Raises:
        UnknownClipError: If nothing has that name.
    """
    from testbed.registry import registry

    if registry.contains_model(name):
        return registry.get_model(name)
    here = importlib.util.find_spec("transformers") is not None
    if name in OPENAI:
        return registry.get_model(f"transformers/{name}" if here else OPENAI[name])
    if name in (*LONG_CLIP, *REMOTE_CODE) and not here:
        raise NoTransformersError("transformers", "transformers", NEEDS_TRANSFORMERS.format(name))
    if name in LONG_CLIP:
        return long_clip(f"transformers/{name}")
    if name in REMOTE_CODE:
        raise UnsupportedError(
            f"{name} runs code that its repository brings, which a name alone does not allow; hand over a function that"
            " returns (model, processor) as model_name_or_path, made with trust_remote_code=True"
        )
    try:
        return registry.get_model(name)
    except UnknownNameError as error:
        hint = f"; transformers/{name} is the repository of that name on the Hugging Face hub" if "/" in name else ""
        raise UnknownClipError(
            f"Invalid model_name_or_path {name}. Not supported by `clip_score` metric. U{str(error)[1:]}{hint}"
        ) from None


def long_clip(name: str) -> Any:
    """Loads a CLIP whose weights have more positions for texts than its configuration, as LongCLIP's."""
    from testbed.models.transformers_clip import TransformersFamily, TransformersFiles

    files = TransformersFiles(name)
    definition = TransformersFamily().build(name)
    return definition.under_name(name, encoder_loader=lambda: _load_long_clip(files))


def _load_long_clip(files: Any) -> tuple[Any, Any]:
    import transformers
    from safetensors import safe_open

    from testbed.models.networks.transformers import Texts, Towers

    library: Any = transformers
    folder = files.folder()
    positions = "text_model.embeddings.position_embedding.weight"
    config = library.CLIPConfig.from_pretrained(folder, local_files_only=True)
    for path in files.files(fetch=True):
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as weights:
                if positions in list(weights.keys()):
                    config.text_config.max_position_embeddings = weights.get_slice(positions).get_shape()[0]
    network = library.CLIPModel.from_pretrained(folder, config=config, local_files_only=True, use_safetensors=True)
    tokenizer = library.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return Towers(network.float()), Texts(tokenizer, config.text_config.max_position_embeddings, siglip=False)


# Encoders ---------------------------------------------------------------------------------------------------------


class ProcessorEncoder:
    """A model of transformers with its own processor, called as torchmetrics calls them.

    Args:
        network: Has ``get_image_features`` and ``get_text_features``.
        processor: Maps ``images=`` and ``text=`` to tensors.
        truncation: The treatment of texts that are too long.
    """

    stays = False

    def __init__(self, network: Any, processor: Any, truncation: Truncation) -> None:
        self.network = network
        self.processor = processor
        self.truncation = truncation
        self.device = torch.device("cpu")

    def to(self, device: torch.device) -> None:
        """Moves the network."""
        self.device = device
        self.network = self.network.to(device)

    def images(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Maps images [C, H, W] as the processor makes them, resized and normalized, to embeddings [n, D]."""
        given = [in_colour(image) for image in images]
        pixels = self.processor(images=given, return_tensors="pt", padding=True)["pixel_values"]
        with _evaluating(self.network):
            return _tensor(self.network.get_image_features(pixels.to(self.device)))

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Maps texts as the processor makes them, cut to the network's limit, to embeddings [n, D]."""
        tokens = dict(self.processor(text=list(texts), return_tensors="pt", padding=True))
        tokens.setdefault("attention_mask", torch.ones_like(tokens["input_ids"]))
        config = getattr(getattr(self.network, "config", None), "text_config", None)
        length = getattr(config, "max_position_embeddings", None)
        if length is not None and tokens["input_ids"].shape[1] > length:
            _warn_long(int((tokens["attention_mask"].sum(dim=1) > length).sum()), length, self.truncation)
            tokens = cut(tokens, length, self.truncation)
        ids, mask = tokens["input_ids"].to(self.device), tokens["attention_mask"].to(self.device)
        with _evaluating(self.network):
            return _tensor(self.network.get_text_features(ids, mask))


class LoadedEncoder:
    """A loaded model of testbed: a dual encoder, or for pairs of texts one that embeds texts alone.

    Args:
        loaded: Has ``embed_text``, and for images ``embed_image`` and a ``definition`` with a transform.
        truncation: The treatment of texts that are too long.
        stays: True to leave it on its device.
    """

    def __init__(self, loaded: Any, truncation: Truncation, stays: bool) -> None:
        self.loaded = loaded
        self.stays = stays
        self.truncation = truncation
        self.processor = getattr(loaded, "tokenizer", None)
        self._ruler = Ruler(self.processor)
        self._name = getattr(getattr(loaded, "definition", None), "name", type(loaded).__name__)
        if truncation == "upstream" and self._ruler.length is None:
            raise UnsupportedError(
                f"{self._name}: truncation='upstream' needs the tokens of a whole text, which its tokenizer does not"
                " give; leave it at 'keep_end'"
            )

    @property
    def network(self) -> Any:
        """The network on its device."""
        return getattr(self.loaded, "network", self.loaded)

    def to(self, device: torch.device) -> None:
        """Moves the network."""
        if hasattr(self.loaded, "network") and torch.device(self.loaded.options.device) != device:
            self.loaded.network.to(device)
            self.loaded.options = replace(self.loaded.options, device=str(device))

    def images(self, images: Sequence[torch.Tensor]) -> torch.Tensor:
        """Maps images [C, H, W] to embeddings [n, D], by the definition's transform and normalization."""
        transform = getattr(getattr(self.loaded, "definition", None), "transform", None)
        if transform is None or not hasattr(self.loaded, "embed_image"):
            raise UnsupportedError(f"{self._name} embeds no images, only texts")
        batch = torch.stack([transform(to_picture(image)) for image in images])
        embedded: torch.Tensor = self.loaded.embed_image(batch.to(self.loaded.options.device))
        return embedded

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Maps texts to embeddings [n, D], by the definition's tokenizer."""
        embedded: torch.Tensor = self.loaded.embed_text(texts)
        long = self._ruler.too_long(texts)
        if long:
            _warn_long(len(long), self._ruler.length, self.truncation)
        if long and self.truncation == "upstream":
            for row, text in enumerate(texts):
                if text in long:
                    tokens = self._ruler.beginning(long[text]).to(self.loaded.options.device)
                    embedded[row] = self.loaded.network.encode_text(tokens)[0]
        return embedded


@contextmanager
def _evaluating(network: Any) -> Iterator[None]:
    """The network without dropout. It may be one that is being trained: afterwards it is as before."""
    training = [part for part in network.modules() if part.training] if hasattr(network, "modules") else []
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _tensor(features: Any) -> torch.Tensor:
    """The embeddings; later versions of transformers put them into an object."""
    tensor: torch.Tensor = features if isinstance(features, torch.Tensor) else features.pooler_output
    return tensor


def _warn_long(count: int, length: int | None, truncation: str) -> None:
    how = "keeping their end token" if truncation == "keep_end" else "losing their end token"
    warnings.warn(
        # The first words are torchmetrics', which filters of warnings match.
        f"Encountered caption longer than max_position_embeddings={length}. Will truncate captions to this length:"
        f" {count} of the texts are longer than the {length} tokens that the model takes; they are cut to it, {how}. If"
        " longer captions are needed, initialize argument `model_name_or_path` with a model that supports longer"
        " sequences.",
        UserWarning,
        stacklevel=2,
    )
