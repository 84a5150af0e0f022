"""open_clip's CoCa as a captioner: ``captioner/coca_ViT-L-14,mscoco_finetuned_laion2b_s13b_b90k``.

After ``captioner/`` comes whatever names a CoCa to open_clip's own family (see ``open_clip_models.py``): an
architecture with a published tag or a checkpoint, ``hf-hub:owner/name``, ``local-dir:/path``. Without ``captioner/``
the same weights are a dual encoder. Captions are made as in CLIP benchmark: by open_clip's beam search with its
defaults, of at most 29 tokens.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Sequence
from typing import Any

from testbed.errors import DefinitionError, MissingExtraError, UnsupportedError
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.models.base.weights import Weights
from testbed.models.model_base import DualEncoder
from testbed.models.open_clip_models import OpenClipFamily
from testbed.registry import registry

PREFIX = "captioner/"
ARCHITECTURES = "coca_"  # how open_clip's names of them begin
EVAL_BATCH_SIZE = 16
REVISION = 1  # of how captions are made; raised when the same image gets another one
BEAMS = 6
BEAM_SEARCH = {"generation_type": "beam_search", "num_beams": BEAMS, "num_beam_groups": 3, "repetition_penalty": 1.0}
SHORTEST, LONGEST = 5, 30  # tokens of a caption with that of its start: open_clip's defaults


class CocaCaptioner(Generator):
    """A CoCa that describes images.

    Args:
        name: Unique in the registry.
        encoder: The same model as a dual encoder, whose network, weights and preprocessing these are.
        longest: The most tokens of a caption, with those of its start and end; a setting may ask for fewer.
    """

    def __init__(self, name: str, encoder: DualEncoder, longest: int = LONGEST) -> None:
        super().__init__(
            name,
            self._captioner,
            EVAL_BATCH_SIZE,
            transform=encoder.transform,
            normalization=encoder.normalization,
            arch=encoder.arch,
            architecture={
                "encoder": encoder.architecture,
                "search": BEAM_SEARCH,
                "tokens": [SHORTEST, longest],
                "revision": REVISION,
            },
        )
        if type(longest) is not int or longest <= SHORTEST:
            raise DefinitionError(f"model {name!r}: longest is a number of tokens larger than {SHORTEST}")
        self.encoder = encoder
        self.longest = longest

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """Those of the dual encoder."""
        return self.encoder.weights(random_seed, fetch)

    def make_network(self) -> Any:
        """The captioner."""
        return self._captioner()

    def make_random_network(self, seed: int) -> Any:
        """The captioner with random weights."""
        return self._with(self.encoder.make_random_network(seed))

    def _captioner(self) -> Captioner:
        return self._with(self.encoder.encoder_loader())

    def _with(self, pair: tuple[Any, Any]) -> Captioner:
        require_generation(self.name)
        network, tokenizer = pair
        if not hasattr(tokenizer, "sot_token_id"):
            raise UnsupportedError(
                f"{self.name}: captions are made with open_clip's own tokenizer; this model has a"
                f" {type(tokenizer).__name__}"
            )
        return Captioner(self, network, tokenizer)


class Captioner:
    """A loaded CoCa.

    Args:
        definition: Its preprocessing, and the length of captions.
        network: open_clip's.
        tokenizer: open_clip's.
    """

    def __init__(self, definition: CocaCaptioner, network: Any, tokenizer: Any) -> None:
        self.definition = definition
        self.network = encode_once(network)
        self.tokenizer = tokenizer
        self.device = "cpu"

    def eval(self) -> Captioner:
        """In evaluation mode."""
        self.network.eval()
        return self

    def to(self, device: str) -> Captioner:
        """On a device."""
        self.network.to(device)
        self.device = device
        return self

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
        """A caption of the image in each message.

        Args:
            messages: Each with one PIL image (RGB) and nothing else: CoCa takes no instructions.
            config: ``max_new_tokens`` shortens captions; ``stop`` ends them. Nothing is drawn by chance, so that the
                temperature is 0.

        Raises:
            UnsupportedError: If messages or configuration are others.
        """
        import torch

        if config.temperature != 0 or config.max_new_tokens < 1:
            raise UnsupportedError(
                f"{self.definition.name}: captions come from beam search, with temperature 0 and max_new_tokens from 1"
                f" up; got {config.temperature} and {config.max_new_tokens}"
            )
        transform, normalization = self.definition.transform, self.definition.normalization
        assert transform is not None
        assert normalization is not None
        images = torch.stack([transform(self._image(message)) for message in messages]).to(self.device)
        length = min(self.definition.longest, self.network.context_length, config.max_new_tokens + 1)
        tokens = self.network.generate(
            normalization(images),
            seq_len=length,
            min_seq_len=min(SHORTEST, length - 1),
            sot_token_id=self.tokenizer.sot_token_id,
            eos_token_id=self.tokenizer.eot_token_id,
            **BEAM_SEARCH,
        )
        return [self._generation(row, config) for row in tokens.tolist()]

    def _image(self, message: Message) -> Any:
        from PIL import Image

        if len(message.parts) != 1 or not isinstance(message.parts[0], Image.Image):
            found = ", ".join(type(part).__name__ for part in message.parts) or "nothing"
            raise UnsupportedError(
                f"{self.definition.name} describes an image and takes no instruction: one image is expected in a"
                f" message, got {found}"
            )
        return message.parts[0]

    def _generation(self, tokens: list[int], config: GenerationConfig) -> Generation:
        """A caption from its tokens, which begin with that of the start."""
        end = self.tokenizer.eot_token_id
        reason = "stop" if end in tokens else "length"
        said = tokens[1 : tokens.index(end)] if end in tokens else tokens[1:]
        text = self.tokenizer.decode(said)
        places = [place for stop in config.stop if stop and (place := text.find(stop)) >= 0]
        if places:
            text, reason = text[: min(places)], "stop"
        return Generation(text.strip(), reason)


def encode_once(network: Any) -> Any:
    """Makes beam search, which repeats each image for each of its beams, encode it once.

    Args:
        network: open_clip's CoCa.

    Returns:
        The network, its ``_encode_image`` replaced.
    """
    encode = network._encode_image

    def repeated(images: Any, normalize: bool = True) -> tuple[Any, Any]:
        embedding, tokens = encode(images[::BEAMS], normalize=normalize)
        return embedding.repeat_interleave(BEAMS, dim=0), tokens.repeat_interleave(BEAMS, dim=0)

    network._encode_image = repeated
    return network


def require_generation(name: str) -> None:
    """Checks that open_clip can generate text.

    Raises:
        MissingExtraError: If transformers is not installed.
        UnsupportedError: If it is one that open_clip cannot use.
    """
    try:
        found = importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("transformers", "transformers", name) from None
    from open_clip import coca_model

    if not coca_model._has_transformers:
        raise UnsupportedError(
            f"{name}: open_clip {importlib.metadata.version('open_clip_torch')} does not generate text with"
            f" transformers {found}; pip install 'transformers<4.57'"
        )


class CaptionerFamily:
    """Every CoCa that open_clip can load."""

    name = "open_clip captioners"

    def names(self) -> Iterable[str]:
        """One name for each published pair."""
        return (f"{PREFIX}{each}" for each in OpenClipFamily().names() if each.startswith(ARCHITECTURES))

    def canonical(self, name: str) -> str | None:
        """The name as open_clip's own family spells it, after ``captioner/``."""
        if not name.startswith(PREFIX):
            return None
        known = OpenClipFamily().canonical(name.removeprefix(PREFIX))
        return None if known is None else PREFIX + known

    def build(self, name: str) -> CocaCaptioner:
        """The definition.

        Raises:
            UnsupportedError: If this model describes nothing.
        """
        encoder = OpenClipFamily().build(name.removeprefix(PREFIX))
        config = (encoder.architecture or {}).get("config", {})
        if "multimodal_cfg" not in config:
            raise UnsupportedError(
                f"{name}: {encoder.name} has no text decoder, which captions need; open_clip's CoCa models have one:"
                f" 'python db.py --list-models-registry | grep {PREFIX}' lists them"
            )
        require_generation(name)
        return CocaCaptioner(name, encoder)


registry.add_model_family(CaptionerFamily())
