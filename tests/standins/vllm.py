"""Stands in for vLLM where there is no GPU: its signatures (of 0.33), with answers that follow from what is said.

A text with "REFUSE" is refused as a prompt that is too long is, with a ValueError before anything is computed; an
answer to "BREAK" is broken off. Each engine and each call is a line in the file $VLLM_LOG.
"""

import hashlib
import json
import os
import re
import signal
from dataclasses import asdict, dataclass, field

WATCHED = ("CUDA_VISIBLE_DEVICES", "VLLM_BATCH_INVARIANT")


def note(**what):
    if path := os.environ.get("VLLM_LOG"):
        with open(path, "a") as file:
            file.write(json.dumps(what) + "\n")


@dataclass
class SamplingParams:
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    skip_special_tokens: bool = True

    def __post_init__(self):
        if not -2 <= self.presence_penalty <= 2:
            raise ValueError(f"presence_penalty must be in [-2, 2], got {self.presence_penalty}.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p}.")


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    outputs: list[CompletionOutput] = field(default_factory=list)
    finished: bool = True


class Tokenizer:
    """Tokens are characters; $VLLM_SPECIAL are special tokens, and $VLLM_PROMPT is how each prompt ends."""

    @property
    def added_tokens_decoder(self):
        words = os.environ.get("VLLM_SPECIAL", "").split()
        return {1000 + place: SpecialToken(word) for place, word in enumerate(words)}

    def decode(self, tokens, skip_special_tokens=False):
        return os.environ.get("VLLM_PROMPT", "assistant: ") if tokens else ""


class SpecialToken(str):
    special = True


class LLM:
    def __init__(
        self,
        model,
        *,
        tokenizer=None,
        trust_remote_code=False,
        tensor_parallel_size=1,
        dtype="auto",
        quantization=None,
        chat_template=None,
        seed=0,
        gpu_memory_utilization=0.92,
        enforce_eager=False,
        mm_processor_kwargs=None,
        **kwargs,
    ):
        note(
            engine={
                "model": model, "trust_remote_code": trust_remote_code, "dtype": dtype, "quantization": quantization,
                "tensor_parallel_size": tensor_parallel_size, "mm_processor_kwargs": mm_processor_kwargs, **kwargs,
            },
            environment={name: os.environ.get(name) for name in WATCHED},
        )  # fmt: skip

    def get_tokenizer(self):
        return Tokenizer()

    def chat(
        self,
        messages,
        sampling_params=None,
        use_tqdm=True,
        lora_request=None,
        priority=None,
        chat_template=None,
        chat_template_content_format="auto",
        add_generation_prompt=True,
    ):
        assert len(sampling_params) == len(messages)
        note(
            chats=messages,
            count=len(messages),
            sampling=[asdict(each) for each in sampling_params],
            template=chat_template,
        )
        if os.environ.get("VLLM_DIES_AT") == str(len(messages)):
            os.kill(os.getpid(), signal.SIGKILL)
        if "REFUSE" in json.dumps(messages):
            raise ValueError("The decoder prompt (length 9) is longer than the maximum model length of 8.")
        return [answer(*each) for each in zip(messages, sampling_params, strict=True)]


def answer(chat, drawn):
    """A letter that follows from the conversation, and from the seed if it is drawn."""
    said = json.dumps(chat)
    key = said + (str(drawn.seed) if drawn.temperature else "")
    text = f" {'ABCD'[hashlib.sha256(key.encode()).digest()[0] % 4]} it is"
    words = re.findall(r"\S+", text)
    cut = len(words) > drawn.max_tokens
    reason = "abort" if "BREAK" in said else "length" if cut else "stop"
    text = " ".join(words[: drawn.max_tokens]) if cut else text
    output = CompletionOutput(0, text, list(range(len(words[: drawn.max_tokens]))), finish_reason=reason)
    return RequestOutput("0", said, list(range(len(said))), [output])
