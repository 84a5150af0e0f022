"""open_clip's CoCa as a captioner: ``captioner/coca_ViT-L-14,mscoco_finetuned_laion2b_s13b_b90k``.

After ``captioner/`` comes whatever names a CoCa to open_clip's own family (see ``open_clip_models.py``): an
architecture with a published tag or a checkpoint, ``hf-hub:owner/name``, ``local-dir:/path``. Without ``captioner/``
the same weights are a dual encoder. Captions are made as in CLIP benchmark: by open_clip's beam search with its
defaults, of at most 29 tokens. A `GenerationConfig` may ask for another search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from testbed.data.rows import Picture
from testbed.errors import DefinitionError, UnsupportedError
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator, ended
from testbed.models.base.weights import Weights
from testbed.models.model_base import DualEncoder
from testbed.models.open_clip_models import OpenClipFamily
from testbed.registry import registry

PREFIX = "captioner/"
ARCHITECTURES = "coca_"  # how open_clip's names of them begin
EVAL_BATCH_SIZE = 16
REVISION = 1  # of how captions are made; raised when the same image gets another one
BEAMS, GROUPS = 6, 3
# The default search as identities hold it, in the words of open_clip's own generate.
BEAM_SEARCH = {
    "generation_type": "beam_search",
    "num_beams": BEAMS,
    "num_beam_groups": GROUPS,
    "repetition_penalty": 1.0,
}
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
        """Returns those of the dual encoder."""
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
        network, tokenizer = pair
        if not hasattr(tokenizer, "sot_token_id"):
            raise UnsupportedError(
                f"{self.name}: captions are made with open_clip's own tokenizer; this model has a"
                f" {type(tokenizer).__name__}"
            )
        return Captioner(self, network, tokenizer)


class Captioner:
    """A loaded CoCa."""

    def __init__(self, definition: CocaCaptioner, network: Any, tokenizer: Any) -> None:
        self.definition = definition
        self.network = network
        self.tokenizer = tokenizer
        self.device = "cpu"

    def eval(self) -> Captioner:
        """Switches to evaluation mode."""
        self.network.eval()
        return self

    def to(self, device: str) -> Captioner:
        """Moves the network to a device."""
        self.network.to(device)
        self.device = device
        return self

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
        """A caption of the image in each message.

        Args:
            messages: Each with one image (RGB) and nothing else: CoCa takes no instructions.
            config: ``max_new_tokens`` shortens captions; ``stop`` ends them. By default they come from open_clip's
                beam search, with ``num_beams`` above 1 from one of so many beams in one group, with ``top_k`` 1 from
                the most likely token each time. With a temperature they are drawn, within ``top_k`` and ``top_p``.

        Raises:
            UnsupportedError: If messages or configuration are others.
        """
        import torch

        self._check(config)
        transform, normalization = self.definition.transform, self.definition.normalization
        assert transform is not None
        assert normalization is not None
        images = torch.stack([transform(self._image(message)) for message in messages]).to(self.device)
        return [self._generation(said, config) for said in self._captions(normalization(images), config)]

    def _check(self, config: GenerationConfig) -> None:
        """Refuses what no search here does."""
        bounds = {"max_new_tokens": 1, "num_beams": 1, "temperature": 0, "top_k": 0, "top_p": 0}
        faults = [
            f"takes {name} from {least} up; got {found}"
            for name, least in bounds.items()
            if (found := getattr(config, name)) < least
        ]
        if config.system or config.repetition_penalty != 1 or config.presence_penalty != 0:
            faults.append("takes no system prompt and no penalties")
        if config.num_beams > 1 and (config.temperature > 0 or config.top_k > 0):
            faults.append("draws nothing in a beam search: num_beams goes without temperature and top_k")
        if config.temperature == 0 and (config.top_k > 1 or config.top_p < 1):
            faults.append("draws nothing at temperature 0: top_k (other than 1) and top_p need a higher one")
        if faults:
            raise UnsupportedError(f"{self.definition.name} {faults[0]}")

    def _captions(self, images: Any, config: GenerationConfig) -> list[list[int]]:
        """The tokens of captions of normalized images."""
        from testbed.models.networks import coca_decoding as decoding

        length = min(self.definition.longest, self.network.context_length, config.max_new_tokens + 1)
        start, end = self.tokenizer.sot_token_id, self.tokenizer.eot_token_id
        limits = decoding.Limits(start, end, length, min(SHORTEST, length - 1))
        if config.top_k == 1:
            return decoding.greedy(self.network, images, limits)
        if config.temperature > 0:
            return decoding.sample(self.network, images, limits, config.temperature, config.top_k, config.top_p)
        beams, groups = (BEAMS, GROUPS) if config.num_beams == 1 else (config.num_beams, 1)
        return decoding.beam_search(self.network, images, limits, beams, groups)

    def _image(self, message: Message) -> Any:
        from PIL import Image

        if message.history or len(message.parts) != 1 or not isinstance(message.parts[0], Image.Image | Picture):
            found = ", ".join(type(part).__name__ for turn in message.turns for part in turn.parts) or "nothing"
            raise UnsupportedError(
                f"{self.definition.name} describes an image and takes no instruction: one image is expected in a"
                f" message, got {found}"
            )
        image = message.parts[0]
        return image.image() if isinstance(image, Picture) else image

    def _generation(self, tokens: list[int], config: GenerationConfig) -> Generation:
        """A caption from its tokens, which begin with that of the start."""
        end = self.tokenizer.eot_token_id
        reason = "stop" if end in tokens else "length"
        said = tokens[1 : tokens.index(end)] if end in tokens else tokens[1:]
        text, stopped = ended(self.tokenizer.decode(said), config.stop)
        if stopped:
            reason = "stop"
        return Generation(text.strip(), reason)


class CaptionerFamily:
    """Every CoCa that open_clip can load."""

    name = "open_clip captioners"

    def names(self) -> Iterable[str]:
        """Lists one name for each published pair."""
        return (f"{PREFIX}{name}" for name in OpenClipFamily().names() if name.startswith(ARCHITECTURES))

    def canonical(self, name: str) -> str | None:
        """The name as open_clip's own family spells it, after ``captioner/``."""
        if not name.startswith(PREFIX):
            return None
        known = OpenClipFamily().canonical(name.removeprefix(PREFIX))
        return None if known is None else PREFIX + known

    def build(self, name: str) -> CocaCaptioner:
        """The definition; raises UnsupportedError if this model describes nothing."""
        encoder = OpenClipFamily().build(name.removeprefix(PREFIX))
        config = (encoder.architecture or {}).get("config", {})
        if "multimodal_cfg" not in config:
            raise UnsupportedError(
                f"{name}: {encoder.name} has no text decoder, which captions need; open_clip's CoCa models have one:"
                f" 'testbed list models | grep {PREFIX}' lists them"
            )
        return CocaCaptioner(name, encoder)


registry.add_model_family(CaptionerFamily())
