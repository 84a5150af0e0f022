"""Vision-language models that vLLM runs in this process, many messages at once.

``vllm/owner/name`` is a repository of the Hugging Face hub, ``vllm//path/to/folder`` (or ``vllm/./folder``) a folder as
``save_pretrained`` writes it. Weights are read from safetensors alone, and code that a repository brings is never run.
vLLM: Kwon et al., Efficient memory management for large language model serving with PagedAttention, SOSP 2023.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.errors import DefinitionError, MissingExtraError, UnreachedError, UnsupportedError, WeightsError
from testbed.identity.describe import digest_bytes
from testbed.models.base.capability import CUT_OFF, Generation, GenerationConfig, Message
from testbed.models.base.chat import request_of
from testbed.models.base.definition import LoadOptions
from testbed.models.base.generator import Generator, drawn_by
from testbed.models.base.thoughts import begun_by, hidden_tokens
from testbed.models.base.weights import Weights, loading, plain, with_variable
from testbed.models.loading.hub_folder import HubFolder
from testbed.models.transformers_clip import HubFamily
from testbed.models.transformers_vlm import described
from testbed.registry import registry

PREFIX = "vllm/"
EXTRA = "vllm"
EVAL_BATCH_SIZE = 512
REVISION = 1  # of what vLLM is given; raised when the same message gets another answer
INVARIANT = "VLLM_BATCH_INVARIANT"  # vLLM's variable: an answer then does not depend on the others in its batch
DEVICES = "CUDA_VISIBLE_DEVICES"
LEAST_TOP_P = 1e-9  # vLLM takes no 0
OWN = frozenset(
    "model load_format trust_remote_code dtype max_model_len quantization tensor_parallel_size limit_mm_per_prompt"
    " chat_template gpu_memory_utilization disable_log_stats".split()
)  # arguments that have options of their own, or are not for users to change


class VllmModel(Generator):
    """A vision-language model that vLLM runs.

    Args:
        name: Unique in the registry.
        source: The absolute path of a folder, or ``owner/name`` on the Hugging Face hub.
        dtype: The precision of weights and activations, where the run's ``--dtype`` is float32, its default;
            ``"auto"`` is the one that the model was saved in.
        max_model_len: The maximum number of tokens of a prompt and its answer together; None for the model's own limit.
        quantization: vLLM's name of a method, such as ``"fp8"``; None for the model's own.
        tensor_parallel: The number of GPUs that share the model.
        limit_mm_per_prompt: The maximum number of pictures in a message, as ``{"image": 64}``; None for vLLM's default.
        chat_template: A Jinja template in place of the model's own.
        gpu_memory: The share of a GPU's memory that vLLM takes; not part of the identity.
        engine: More arguments of ``vllm.LLM``.
        eval_batch_size: The messages of one call.
        **options: See `ModelDefinition`.

    Raises:
        DefinitionError: If an option is out of range, or ``engine`` has an argument that is another option.
    """

    whole_ranges = True

    def __init__(
        self,
        name: str,
        source: str,
        *,
        dtype: str = "auto",
        max_model_len: int | None = None,
        quantization: str | None = None,
        tensor_parallel: int = 1,
        limit_mm_per_prompt: Mapping[str, int] | None = None,
        chat_template: str | None = None,
        gpu_memory: float = 0.9,
        engine: Mapping[str, Any] | None = None,
        eval_batch_size: int = EVAL_BATCH_SIZE,
        **options: Any,
    ) -> None:
        for what, value in (("max_model_len", max_model_len), ("tensor_parallel", tensor_parallel)):
            if value is not None and (type(value) is not int or value < 1):
                raise DefinitionError(f"model {name!r}: {what} is a positive number; got {value!r}")
        if not 0 < gpu_memory <= 1:
            raise DefinitionError(f"model {name!r}: gpu_memory is above 0 and at most 1; got {gpu_memory!r}")
        if taken := sorted(OWN & set(engine or {})):
            raise DefinitionError(f"model {name!r}: {taken[0]} cannot be given in engine; see the options of VllmModel")
        self.dtype = dtype
        self.chat_template = chat_template
        self.gpu_memory = gpu_memory
        self.arguments: dict[str, Any] = {
            "max_model_len": max_model_len,
            "quantization": quantization,
            "tensor_parallel_size": tensor_parallel,
            "limit_mm_per_prompt": None if limit_mm_per_prompt is None else dict(limit_mm_per_prompt),
            **(engine or {}),
        }
        self.folder = HubFolder(name, source)
        super().__init__(name, self.make_network, eval_batch_size, **{"weights": self.folder, **options})

    def spec(self) -> dict[str, Any]:
        """Returns what determines the answers besides the weights: files, vLLM's version and arguments, invariance."""
        own = {"prompt": self.prompt, "chat_template": self.chat_template, **self.arguments}
        return {
            "arch": self.arch,
            "generator": {
                "library": "vllm",
                "version": require_vllm(self.name),
                "files": described(self.folder),
                "dtype": self.dtype,
                "batch_invariant": batch_invariant(),
                "revision": REVISION,
            }
            | {key: value for key, value in own.items() if value is not None},
        }

    def weights(self, random_seed: int | None = None, fetch: bool = True) -> Weights | None:
        """The weights, identified by content; see `ModelDefinition.weights`.

        Raises:
            MissingExtraError: If vLLM is not installed; raised before large downloads.
        """
        require_vllm(self.name)
        return super().weights(random_seed, fetch)

    def make_network(self) -> Any:
        """The engine on the first GPU."""
        return self._network(LoadOptions())

    def make_random_network(self, seed: int) -> Any:
        """Raises WeightsError: vLLM needs trained models."""
        raise WeightsError(f"{self.name}: vLLM runs trained weights only; leave out --random-weights")

    def _network(self, options: LoadOptions) -> Any:
        if options.random_seed is not None:
            return self.make_random_network(options.random_seed)
        require_vllm(self.name)
        with loading(self.name):
            self.folder.files(fetch=True)
            folder = self.folder.folder()
            import vllm

            given = {key: value for key, value in self.arguments.items() if value is not None}
            with _visible(self.name, options.device, self.arguments["tensor_parallel_size"]):
                engine = vllm.LLM(
                    model=str(folder),
                    load_format="safetensors",
                    trust_remote_code=False,
                    dtype=self.dtype if options.weights_dtype == "float32" else options.dtype,
                    gpu_memory_utilization=self.gpu_memory,
                    **given,
                )
        return Engine(self.name, engine, self.chat_template)


class Engine:
    """A running engine."""

    def __init__(self, name: str, engine: Any, chat_template: str | None = None) -> None:
        self.name = name
        self.engine = engine
        self.chat_template = chat_template

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """Returns the answer to each message, or the reason why there is none, from one call of vLLM.

        Messages with the same pictures follow each other, so that vLLM encodes these once. If vLLM refuses one, such as
        a prompt that is too long, it refuses the call; halves of it then reveal the refused message.

        Raises:
            UnsupportedError: If vLLM does not take the configuration.
        """
        if config.num_beams != 1:
            raise UnsupportedError(
                f"{self.name}: vLLM's chats have no beam search, but num_beams is {config.num_beams}; leave it out"
            )
        found: dict[int, Generation | Exception] = {}
        chats: dict[int, list[dict[str, Any]]] = {}
        for place, message in enumerate(messages):
            try:
                chats[place] = request_of(message, config)["messages"]
            except Exception as error:  # of the picture: the message's own
                found[place] = error
        drawn = {place: self._sampling(messages[place], config) for place in chats}
        pictures = {place: _pictures(chat) for place, chat in chats.items()}
        order = sorted(chats, key=lambda place: (pictures[place], place))
        answers = self._answers([chats[place] for place in order], [drawn[place] for place in order])
        found.update(zip(order, answers, strict=True))
        return [found[place] for place in range(len(messages))]

    def _sampling(self, message: Message, config: GenerationConfig) -> Any:
        """Returns vLLM's parameters for a message; the model's defaults in ``generation_config.json`` are not used."""
        import vllm

        try:
            return vllm.SamplingParams(**sampling(message, config), **self._marks())
        except (ValueError, TypeError) as error:
            raise UnsupportedError(f"{self.name}: vLLM does not take this generation: {plain(error)}") from error

    def _marks(self) -> dict[str, bool]:
        """Makes vLLM write special tokens where thoughts are marked by such."""
        return {} if hidden_tokens(self.engine.get_tokenizer()) is None else {"skip_special_tokens": False}

    def _answers(self, chats: list[list[dict[str, Any]]], drawn: list[Any]) -> list[Generation | Exception]:
        if not chats:
            return []
        template = {} if self.chat_template is None else {"chat_template": self.chat_template}
        try:
            outputs = self.engine.chat(chats, drawn, use_tqdm=False, **template)
        except ValueError as error:  # vLLM's refusals; nothing of the call was computed
            if len(chats) == 1:
                return [error]
            middle = len(chats) // 2
            return [
                *self._answers(chats[:middle], drawn[:middle]),
                *self._answers(chats[middle:], drawn[middle:]),
            ]
        return [self._answer(output) for output in outputs]

    def _answer(self, output: Any) -> Generation | Exception:
        """Returns vLLM's answer; an answer that it broke off is requested again."""
        said = output.outputs[0]
        if said.finish_reason not in ("stop", CUT_OFF):
            return UnreachedError(f"vLLM ended the answer with {said.finish_reason!r}")
        prompt = list(output.prompt_token_ids or ())
        counts = {"prompt_tokens": len(prompt), "output_tokens": len(said.token_ids)}
        return Generation(said.text.strip(), said.finish_reason, counts | begun_by(self.engine.get_tokenizer(), prompt))


def sampling(message: Message, config: GenerationConfig) -> dict[str, Any]:
    """The arguments of ``vllm.SamplingParams`` for a message."""
    drawn = {
        "temperature": config.temperature,
        "top_p": max(config.top_p, LEAST_TOP_P),
        "top_k": config.top_k,
        "seed": drawn_by(message, config.seed or 0),
    }
    return {
        "n": 1,
        "max_tokens": config.max_new_tokens,
        "stop": [each for each in config.stop if each],
        "repetition_penalty": config.repetition_penalty,
        "presence_penalty": config.presence_penalty,
        **(drawn if config.temperature > 0 else {"temperature": 0.0}),
    }


def _pictures(chat: list[dict[str, Any]]) -> list[str]:
    """Digests of the pictures of a chat, in order."""
    parts = [part for turn in chat if not isinstance(turn["content"], str) for part in turn["content"]]
    return [digest_bytes(part["image_url"]["url"].encode()) for part in parts if part["type"] == "image_url"]


def batch_invariant() -> bool:
    """Checks whether vLLM computes the same answer in every batch."""
    return os.environ.get(INVARIANT, "").strip() not in ("", "0")


@contextlib.contextmanager
def _visible(name: str, device: str, count: int) -> Iterator[None]:
    """Shows vLLM, which takes the first GPUs that it sees, the device of the run.

    Raises:
        UnsupportedError: If several GPUs share the model, but the run has given it another than the first.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda" or not number:
        yield
        return
    if count > 1:
        if int(number):
            raise UnsupportedError(
                f"{name}: {count} GPUs share the model, so run it with --gpus 0; this one is {device}"
            )
        yield
        return
    seen = [each for each in os.environ.get(DEVICES, "").split(",") if each]
    with with_variable(DEVICES, seen[int(number)] if int(number) < len(seen) else number):
        yield


def require_vllm(name: str) -> str:
    """The version of vLLM; raises MissingExtraError if it is not installed."""
    try:
        return importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        raise MissingExtraError("vllm", EXTRA, name) from None


class VllmFamily(HubFamily):
    """Models that vLLM runs."""

    name = "vllm"

    def build(self, name: str) -> VllmModel:
        """The definition; its files are read when they are needed."""
        require_vllm(name)
        return VllmModel(name, name.removeprefix(PREFIX))


registry.add_model_family(VllmFamily())
