"""Vision-language models of transformers that continue a chat: prompts, batches, answers."""

from __future__ import annotations

import importlib.metadata
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from testbed.data.rows import Picture
from testbed.errors import UnsupportedError, WeightsError
from testbed.models.base.batch_invariant import make_batch_invariant
from testbed.models.base.capability import CUT_OFF, Generation, GenerationConfig, Message
from testbed.models.base.generator import ended
from testbed.models.base.thoughts import begun_by, decoded
from testbed.models.base.weights import plain

Inputs = dict[str, torch.Tensor]


class Chat:
    """A loaded model.

    Raises:
        UnsupportedError: If it is not a model that continues its prompt.
    """

    def __init__(self, name: str, network: Any, processor: Any) -> None:
        if getattr(processor, "chat_template", None) is None:
            raise UnsupportedError(
                f"{name}: its processor has no chat template; save one with it (chat_template.jinja), or give the model"
                " chat_template=… in a definition of your own"
            )
        if network.config.is_encoder_decoder or not network.can_generate():
            raise UnsupportedError(f"{name}: a {type(network).__name__} does not continue a chat")
        make_batch_invariant(network)
        self.name = name
        self.network = network
        self.processor = processor
        self.tokenizer = processor.tokenizer
        # In transformers 4.56 Qwen2-VL gives other answers to prompts that are padded.
        self.pads = int(importlib.metadata.version("transformers").partition(".")[0]) >= 5
        # Some tokenizers give what only networks such as PaliGemma's take.
        self.unwanted = {"token_type_ids"} - set(inspect.signature(network.forward).parameters)
        own = network.generation_config
        eos = own.eos_token_id if own.eos_token_id is not None else self.tokenizer.eos_token_id
        self.ends: list[int] = [] if eos is None else list(eos) if isinstance(eos, Sequence) else [int(eos)]
        self.padding = next((each for each in (self.tokenizer.pad_token_id, *self.ends) if each is not None), 0)

    def eval(self) -> Chat:
        """Switches to evaluation mode."""
        self.network.eval()
        return self

    def to(self, device: str) -> Chat:
        """Moves the network to a device."""
        self.network.to(device)
        return self

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The network's weights."""
        state: dict[str, torch.Tensor] = self.network.state_dict()
        return state

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """The answer to each message, or why there is none.

        Messages whose pictures have the same shape share a batch; shorter prompts are padded on the left, with
        transformers 4 only prompts of equal length share one.

        Raises:
            UnsupportedError: If the configuration is out of range.
        """
        self._check(config)
        found: dict[int, Generation | Exception] = {}
        batches: dict[Any, dict[int, Inputs]] = {}
        for index, message in enumerate(messages):
            try:
                inputs = self.inputs(message, config.system)
            except Exception as error:  # of the picture, the template or the processor: the message's own
                found[index] = error
                continue
            batches.setdefault(_shapes(inputs, self.pads), {})[index] = inputs
        for batch in batches.values():
            found.update(zip(batch, self._answers(list(batch.values()), config), strict=True))
        return [found[index] for index in range(len(messages))]

    def _check(self, config: GenerationConfig) -> None:
        bounds = {"max_new_tokens": 1, "num_beams": 1, "temperature": 0, "top_k": 0, "top_p": 0}
        for name, least in bounds.items():
            if (given := getattr(config, name)) < least:
                raise UnsupportedError(f"{self.name} takes {name} from {least} up; got {given}")
        if config.repetition_penalty <= 0:
            raise UnsupportedError(f"{self.name} takes a repetition_penalty above 0; got {config.repetition_penalty}")

    # Prompts ------------------------------------------------------------------------------------------------------

    def inputs(self, message: Message, system: str = "") -> Inputs:
        """Returns the processor's inputs for a conversation, as a batch of one.

        Raises:
            UnsupportedError: If a part is neither a text nor a picture.
            SampleError: If a picture cannot be decoded.
        """
        turns, pictures = self._conversation(message, system)
        prompt = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        begins = self.tokenizer.bos_token is not None and prompt.startswith(self.tokenizer.bos_token)
        found = self.processor(
            text=[prompt],
            return_tensors="pt",
            **({"images": [pictures]} if pictures else {}),
            **({"add_special_tokens": False} if begins else {}),  # the template has written them
        )
        return {
            key: value for key, value in found.items() if isinstance(value, torch.Tensor) and key not in self.unwanted
        }

    def _conversation(self, message: Message, system: str) -> tuple[list[dict[str, Any]], list[Any]]:
        """The turns as chat templates take them, and the pictures in order."""
        from PIL import Image

        turns, pictures = [], []
        if system:
            turns.append({"role": "system", "content": [{"type": "text", "text": system}]})
        for turn in message.turns:
            content: list[dict[str, str]] = []
            for part in turn.parts:
                if isinstance(part, str):
                    content.append({"type": "text", "text": part})
                    continue
                if not isinstance(part, Picture | Image.Image):
                    raise UnsupportedError(
                        f"{self.name}: the parts of a message are texts and pictures; got {type(part).__name__}"
                    )
                pictures.append((part.image() if isinstance(part, Picture) else part).convert("RGB"))
                content.append({"type": "image"})
            turns.append({"role": turn.role, "content": content})
        return turns, pictures

    # Answers ------------------------------------------------------------------------------------------------------

    def _answers(self, batch: list[Inputs], config: GenerationConfig) -> list[Generation]:
        inputs = {key: value.to(self.network.device) for key, value in self._joined(batch).items()}
        inputs = {
            key: value.to(self.network.dtype) if value.is_floating_point() else value for key, value in inputs.items()
        }
        length = inputs["input_ids"].shape[1]
        # transformers takes what a configuration leaves at its default from the network's own, which may draw.
        self.network.generation_config = settings = self._settings(config)
        rows = self.network.generate(
            **inputs, generation_config=settings, logits_processor=_penalties(length, config.presence_penalty)
        )
        prompts = [each["input_ids"][0].tolist() for each in batch]
        return [self._answer(*pair, config) for pair in zip(rows[:, length:].tolist(), prompts, strict=True)]

    def _settings(self, config: GenerationConfig) -> Any:
        import transformers

        library: Any = transformers
        drawn = {"temperature": config.temperature, "top_p": max(config.top_p, 1e-9), "top_k": config.top_k}
        return library.GenerationConfig(
            max_new_tokens=config.max_new_tokens,
            do_sample=config.temperature > 0,
            num_beams=config.num_beams,
            repetition_penalty=config.repetition_penalty,
            eos_token_id=self.ends or None,
            pad_token_id=self.padding,
            **(drawn if config.temperature > 0 else {}),
        )

    def _joined(self, batch: list[Inputs]) -> Inputs:
        """Batches of one as one batch: prompts padded on the left, pictures one after the other."""
        longest = max(each["input_ids"].shape[1] for each in batch)
        joined = {}
        for key in batch[0]:
            values = [each[key] for each in batch]
            if _is_sequence(key, batch[0]):
                fill = self.padding if key == "input_ids" else 0
                values = [torch.nn.functional.pad(value, (longest - value.shape[1], 0), value=fill) for value in values]
            joined[key] = torch.cat(values)
        return joined

    def _answer(self, tokens: list[int], prompt: list[int], config: GenerationConfig) -> Generation:
        end = next((index for index, token in enumerate(tokens) if token in self.ends), None)
        said = tokens if end is None else tokens[:end]
        text, stopped = ended(decoded(self.tokenizer, said), config.stop)
        reason = CUT_OFF if end is None and not stopped else "stop"
        counts = {"prompt_tokens": len(prompt), "output_tokens": len(said) + (end is not None)}
        return Generation(text.strip(), reason, counts | begun_by(self.tokenizer, prompt))


def _is_sequence(key: str, inputs: Inputs) -> bool:
    """Checks whether an input has a value for each token of the prompt."""
    return inputs[key].shape == inputs["input_ids"].shape and (key.endswith(("_ids", "_mask")) or key == "input_ids")


def _shapes(inputs: Inputs, pads: bool) -> tuple[Any, ...]:
    """Returns what is equal for a message's inputs that can share a batch; ``pads`` allows other lengths."""
    return tuple(
        sorted(
            (key, () if pads and _is_sequence(key, inputs) else tuple(value.shape[1:])) for key, value in inputs.items()
        )
    )


def _penalties(prompt: int, presence: float) -> list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]:
    """Subtracts ``presence`` from the scores of tokens that the answer, after the prompt, already has."""

    def penalize(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        said = torch.zeros_like(scores).scatter_(1, tokens[:, prompt:], presence)
        return scores - said

    return [penalize] if presence else []


# Loading ----------------------------------------------------------------------------------------------------------


def processor_of(name: str, folder: Path, template: str | None, pixels: dict[str, int]) -> Any:
    """The folder's processor.

    Args:
        name: The model, for messages.
        folder: As ``save_pretrained`` writes it.
        template: A chat template (Jinja) in place of the folder's.
        pixels: ``min_pixels`` and ``max_pixels`` of a picture.

    Raises:
        WeightsError: If it cannot be read.
        UnsupportedError: If it has no limits of pixels.
    """
    import transformers

    library: Any = transformers
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        processor = library.AutoProcessor.from_pretrained(folder, **options)
    except Exception as error:
        raise WeightsError(f"{name}: the processor in {folder} cannot be read: {plain(error)}") from error
    if not hasattr(processor, "tokenizer") or not hasattr(processor, "image_processor"):
        raise WeightsError(f"{name}: {folder} has no processor of pictures and texts, but a {type(processor).__name__}")
    if pixels:
        _limit(name, processor.image_processor, pixels)
    if template is not None:
        processor.chat_template = template
    return processor


def _limit(name: str, images: Any, pixels: dict[str, int]) -> None:
    """Sets the limits of a picture's pixels, which transformers keeps as sides of a size as well."""
    declared = getattr(getattr(images, "valid_kwargs", None), "__annotations__", {})
    if not pixels.keys() <= {*inspect.signature(type(images).__init__).parameters, *declared}:
        raise UnsupportedError(
            f"{name}: min_pixels and max_pixels are for processors that have such limits, as Qwen's; this one is a"
            f" {type(images).__name__}"
        )
    sides = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}
    images.size = type(images.size)(**dict(images.size) | {sides[key]: value for key, value in pixels.items()})
    for key, side in sides.items():
        if getattr(images, key, None) is not None:
            setattr(images, key, images.size[side])


def load(name: str, folder: Path, processor: Any, dtype: torch.dtype) -> Chat:
    """The model with its weights, on the CPU; raises WeightsError if weights are missing."""
    import transformers

    library: Any = transformers
    network, report = library.AutoModelForImageTextToText.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, output_loading_info=True
    )
    missing = [*sorted(report["missing_keys"]), *sorted(report.get("mismatched_keys") or ())]
    if missing:
        raise WeightsError(
            f"{name}: the weights do not fit its architecture: {missing[0]} is missing or of another shape"
        )
    return Chat(name, network.to(dtype), processor)


def untrained(name: str, folder: Path, processor: Any, dtype: torch.dtype) -> Chat:
    """The model with random weights, on the CPU."""
    import transformers

    library: Any = transformers
    config = library.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    network = library.AutoModelForImageTextToText.from_config(config, trust_remote_code=False)
    return Chat(name, network.to(dtype), processor)
