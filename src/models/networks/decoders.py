"""Language models of transformers as text embedders: tokens, attention, pooling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from testbed.errors import RunError, WeightsError
from testbed.models.base.batch_invariant import make_batch_invariant
from testbed.models.base.weights import plain
from testbed.models.networks.decoder_kinds import DecoderKind


class Decoder:
    """A language model that embeds texts according to its kind.

    Args:
        name: The model, for messages.
        kind: Its treatment of a text.
        tokenizer: transformers'.
        network: Gives ``last_hidden_state``. It is on its device already, or on several.

    Raises:
        WeightsError: If the tokenizer does not have the kind's last token.
    """

    def __init__(self, name: str, kind: DecoderKind, tokenizer: Any, network: Any) -> None:
        self.name = name
        self.kind = kind
        self.tokenizer = tokenizer
        self.network = network.eval()
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        self.max_seq_length = kind.max_length
        make_batch_invariant(network)
        self.end = None if kind.end is None else tokenizer.convert_tokens_to_ids(kind.end)
        if kind.end is not None and (self.end is None or self.end == tokenizer.unk_token_id):
            raise WeightsError(f"{name}: its tokenizer has no token {kind.end!r}, which should end each text")

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The network's weights."""
        state: dict[str, torch.Tensor] = self.network.state_dict()
        return state

    def encode(self, texts: list[str], instruction: str) -> torch.Tensor:
        """Maps texts to embeddings of length 1, float32 [B, D].

        Args:
            texts: One batch.
            instruction: The text in front of each text.

        Raises:
            RunError: If the instruction leaves no room for a text.
        """
        self._require_room(instruction)
        ids, seen, pooled = self.tokens(texts, instruction)
        device = self.network.device
        ids, seen, pooled = ids.to(device), seen.to(device), pooled.to(device)
        states = self.network(
            input_ids=ids,
            attention_mask=seen if self.kind.causal else both_ways(seen, self.network.dtype),
            position_ids=(seen.cumsum(1) - 1).clamp(min=0),
            use_cache=False,
        ).last_hidden_state
        if self.kind.pooling == "last":
            found = states[:, -1] if self.kind.padding == "left" else states[_rows(seen), seen.sum(1) - 1]
        else:
            found = mean(states, pooled.to(states.device))
        return nn.functional.normalize(found.float(), dim=-1)

    def lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text that reach the network, including the instruction's."""
        return [len(self._row(text, instruction)[0]) for text in texts]

    def uncut_lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text before it is cut, including the instruction's and the last one."""
        rows = [self.tokenizer(instruction + text, truncation=False, verbose=False)["input_ids"] for text in texts]
        return [len(ids) + (self.end is not None and list(ids[-1:]) != [self.end]) for ids in rows]

    def tokens(self, texts: list[str], instruction: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Returns the network's inputs.

        Returns:
            Three integer tensors [B, T]: the tokens; 1 where there is one, 0 for padding; 1 where a token counts in a
            mean.
        """
        rows = [self._row(text, instruction) for text in texts]
        length = max(len(ids) for ids, _ in rows)
        padding = self.tokenizer.pad_token_id
        blank = padding if padding is not None else (self.tokenizer.eos_token_id or 0)
        given = torch.full((len(rows), length), blank)
        seen, pooled = torch.zeros_like(given), torch.zeros_like(given)
        for row, (ids, own) in enumerate(rows):
            part = slice(length - len(ids), length) if self.kind.padding == "left" else slice(0, len(ids))
            given[row, part], seen[row, part] = torch.tensor(ids), 1
            pooled[row, part] = torch.tensor(own)
        return given, seen, pooled

    def _require_room(self, instruction: str) -> None:
        taken = len(self.tokenizer(instruction)["input_ids"]) if instruction else 0
        if taken >= self.max_seq_length:
            raise RunError(
                f"{self.name}: the instruction takes {taken} tokens of {self.max_seq_length}, which leaves none for a"
                " text; raise max_length or shorten it"
            )

    def _row(self, text: str, instruction: str) -> tuple[list[int], list[int]]:
        """The tokens of a text, and which of them count in a mean."""
        most = self.max_seq_length
        ids: list[int] = list(self.tokenizer(instruction + text, truncation=True, max_length=most)["input_ids"])
        apart = self._left_out(instruction)
        own = [int(index >= apart) for index in range(len(ids))]
        if self.end is not None and ids[-1:] != [self.end]:
            ids, own = [*ids[: most - 1], self.end], [*own[: most - 1], 1]
        if not ids:  # a tokenizer that makes nothing of an empty text
            ids, own = [self.tokenizer.eos_token_id or 0], [1]
        if not any(own):
            own[-1] = 1
        return ids, own

    def _left_out(self, instruction: str) -> int:
        """Returns the number of tokens at the beginning that do not count in a mean.

        NV-Embed's authors leave out as many as the instruction has, cut by itself. Its last one is the space at its
        end, which a word that follows takes in; the token that begins the text makes up for that.
        """
        if self.kind.pooling != "latent" or not instruction:
            return 0
        return len(self.tokenizer(instruction, add_special_tokens=False)["input_ids"])


def both_ways(seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns the mask added to attention so that each token sees all that are not padding, [B, 1, 1, T].

    transformers passes a mask of four dimensions on as it is, where it would make one of two causal.
    """
    return torch.where(seen[:, None, None, :] == 1, 0.0, torch.finfo(dtype).min).to(dtype)


def mean(states: torch.Tensor, counted: torch.Tensor) -> torch.Tensor:
    """The mean [B, D] of the states [B, T, D] that count, in float32."""
    weights = counted.unsqueeze(-1).float()
    return (states.float() * weights).sum(1) / weights.sum(1)


def _rows(tokens: torch.Tensor) -> torch.Tensor:
    return torch.arange(len(tokens), device=tokens.device)


# NV-Embed ---------------------------------------------------------------------------------------------------------


class Attention(nn.Module):
    """Attention of hidden states to learned vectors, both normalized first."""

    def __init__(self, width: int, heads: int, head_width: int, context: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.norm_context = nn.LayerNorm(context)
        self.fn = nn.ModuleDict(
            {
                "to_q": nn.Linear(width, heads * head_width, bias=False),
                "to_kv": nn.Linear(context, 2 * heads * head_width, bias=False),
                "to_out": nn.Linear(heads * head_width, width, bias=False),
            }
        )
        self.heads = heads

    def forward(self, states: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Maps states [B, T, D] and vectors [N, D] to [B, T, D]."""
        query = self._split(self.fn["to_q"](self.norm(states)))
        keys, values = self.fn["to_kv"](self.norm_context(vectors)).expand(len(states), -1, -1).chunk(2, dim=-1)
        found = nn.functional.scaled_dot_product_attention(query, self._split(keys), self._split(values))
        return self.fn["to_out"](found.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _split(self, states: torch.Tensor) -> torch.Tensor:
        """Reshapes [B, T, heads · D] to [B, heads, T, D]."""
        return states.reshape(*states.shape[:2], self.heads, -1).transpose(1, 2)


class Gate(nn.Module):
    """Half of the features, times the activation of the other half."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Maps […, 2 · D] to […, D]."""
        features, gates = states.chunk(2, dim=-1)
        return features * nn.functional.gelu(gates)


class FeedForward(nn.Module):
    """The two linear layers after attention, normalized first."""

    WIDER = 4

    def __init__(self, width: int) -> None:
        super().__init__()
        wide = self.WIDER * width
        self.norm = nn.LayerNorm(width)
        self.fn = nn.ModuleDict({"net": nn.Sequential(nn.Linear(width, 2 * wide), Gate(), nn.Linear(wide, width))})

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Maps [B, T, D] to [B, T, D]."""
        return self.fn["net"](self.norm(states))  # type: ignore[no-any-return]


class LatentAttention(nn.Module):
    """NV-Embed's layers between the last hidden states and their mean (Lee et al. 2024).

    Its parts are called as in the published weights.

    Args:
        config: The published configuration's section about it.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, hidden = config["latent_dim"], config["hidden_dim"]
        attention = Attention(width, config["num_cross_heads"], config["cross_dim_head"], hidden)
        self.cross_attend_blocks = nn.ModuleList([attention, FeedForward(width)])
        self.latents = nn.Parameter(torch.randn(config["num_latents_value"], width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Maps hidden states [B, T, D] to [B, T, D]."""
        attention, feed_forward = self.cross_attend_blocks
        states = attention(states, self.latents.unsqueeze(0)) + states
        return feed_forward(states) + states  # type: ignore[no-any-return]


def nv_embed() -> Any:
    """Returns NV-Embed's architecture as a class of transformers, so that it is loaded as others are."""
    from transformers import MistralModel, MistralPreTrainedModel

    class NVEmbed(MistralPreTrainedModel):  # type: ignore[misc]
        _no_split_modules = ("MistralDecoderLayer", "LatentAttention")

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.embedding_model = MistralModel(config)
            self.latent_attention_model = LatentAttention(config.latent_attention_config)
            self.post_init()

        def forward(self, **inputs: Any) -> Any:
            found = self.embedding_model(**inputs)
            found.last_hidden_state = self.latent_attention_model(found.last_hidden_state)
            return found

    return NVEmbed


# Loading ----------------------------------------------------------------------------------------------------------


ATTENTION = "sdpa"  # the default implementation of attention


def load(
    name: str,
    kind: DecoderKind,
    folder: Path,
    given: dict[str, Any],
    dtype: str,
    place: str | None,
    attention: str = ATTENTION,
) -> Decoder:
    """Loads the decoder with its real weights.

    Args:
        name: The model, for messages.
        kind: Its treatment of a text.
        folder: Its files.
        given: The content of its ``config.json``.
        dtype: The precision of the weights, such as ``"float32"``.
        place: A device; or how to share the network among all GPUs, as accelerate calls it.
        attention: The implementation of attention, as transformers calls it.

    Raises:
        WeightsError: If the weights do not fit, or are of another kind.
    """
    made, config = _architecture(name, kind, folder, given, attention)
    shared = place is not None and ":" not in place and place not in ("cpu", "cuda", "mps")
    network, report = made.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        use_safetensors=True,
        output_loading_info=True,
        **{_dtype_argument(): getattr(torch, dtype)},
        **({"device_map": place} if shared else {}),
    )
    wrong = [*sorted(report["missing_keys"]), *(str(each) for each in report.get("mismatched_keys", ()))]
    if wrong:
        raise WeightsError(
            f"{name}: the weights do not fit its architecture: {wrong[0]} is missing or of another shape"
        )
    return Decoder(name, kind, tokenizer_of(name, folder), network if shared else network.to(place or "cpu"))


def _dtype_argument() -> str:
    """Returns transformers' name of the argument for the precision of weights; later versions warn of the old name."""
    import transformers

    return "dtype" if tuple(int(part) for part in transformers.__version__.split(".")[:2]) >= (4, 56) else "torch_dtype"


def untrained(
    name: str, kind: DecoderKind, folder: Path, given: dict[str, Any], place: str, attention: str = ATTENTION
) -> Decoder:
    """The decoder with random weights, on a device."""
    made, config = _architecture(name, kind, folder, given, attention)
    return Decoder(name, kind, tokenizer_of(name, folder), made(config).float().to(place))


def tokenizer_of(name: str, folder: Path) -> Any:
    """The folder's tokenizer, as transformers makes it without the folder's code.

    For some kinds of model transformers 5 takes only the words from tokenizer.json and cuts texts by a rule of its own;
    here the file counts as a whole, as in transformers 4.
    """
    import transformers

    library: Any = transformers
    whole = int(library.__version__.partition(".")[0]) >= 5 and (folder / "tokenizer.json").is_file()
    made = library.PreTrainedTokenizerFast if whole else library.AutoTokenizer
    try:
        return made.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise WeightsError(f"{name}: the tokenizer in {folder} cannot be read: {plain(error)}") from error


def _architecture(name: str, kind: DecoderKind, folder: Path, given: dict[str, Any], attention: str) -> tuple[Any, Any]:
    """The class of the network, and its configuration."""
    import transformers

    found = given.get("model_type")
    if found not in kind.model_types:
        raise WeightsError(
            f"{name}: {folder} has a model of type {found!r}; {' or '.join(kind.model_types)} was expected, as"
            f" {kind.hub} has"
        )
    library: Any = transformers
    described = given.get("text_config", {}) if kind.pooling == "latent" else given
    known = {key: value for key, value in described.items() if key not in ("model_type", "auto_map", "architectures")}
    config = getattr(library, f"{kind.network}Config")(**known)
    config._attn_implementation = attention
    if not kind.causal:
        config.sliding_window = None
    if kind.pooling == "latent":
        config.latent_attention_config = given.get("latent_attention_config", {})
        return nv_embed(), config
    return getattr(library, f"{kind.network}Model"), config
