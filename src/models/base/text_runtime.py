"""Loaded text embedders: on a device, at a precision, ready to run."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from testbed.calls import takes
from testbed.contracts.borrowed import remember
from testbed.errors import DefinitionError, RunError
from testbed.models.base.batch_invariant import make_batch_invariant
from testbed.models.base.runtime import autocast, prepared
from testbed.process.oom import InPieces, is_out_of_memory

if TYPE_CHECKING:
    from testbed.models.base.definition import LoadOptions
    from testbed.models.base.text_encoder import TextEncoder

log = logging.getLogger("testbed")


ENDS = 4  # the most tokens that a tokenizer puts before and after a text
LEAST = 16  # texts of different lengths are put together on a GPU until they are so many


def alike(lengths: Sequence[int], least: int) -> list[slice]:
    """Cuts texts, which are in the order of their lengths, so that few batches, or none, need padding.

    Args:
        lengths: The lengths in tokens, equal ones side by side.
        least: The smallest number of texts of one length that form a batch of their own.

    Returns:
        Slices of texts of one length, or of several where there are fewer than ``least`` of one.
    """
    starts = [0]
    for index in range(1, len(lengths)):
        if lengths[index] != lengths[index - 1] and index - starts[-1] >= least:
            starts.append(index)
    return [slice(start, stop) for start, stop in zip(starts, [*starts[1:], len(lengths)], strict=True)]


class LoadedTextEncoder:
    """A text embedder on its device.

    Raises:
        DefinitionError: If the encoder has no ``encode``, or nowhere to put the definition's ``max_length``.
    """

    def __init__(self, definition: TextEncoder, encoder: Any, options: LoadOptions) -> None:
        name = definition.name
        if not callable(getattr(encoder, "encode", None)):
            raise DefinitionError(
                f"model {name!r}: encoder_loader returns an object with encode(texts), not {type(encoder).__name__}"
            )
        if definition.max_length is not None:
            if not hasattr(encoder, "max_seq_length"):
                raise DefinitionError(
                    f"model {name!r}: max_length={definition.max_length} needs an encoder with the attribute"
                    f" max_seq_length, which {type(encoder).__name__} does not have"
                )
            if isinstance(encoder, nn.Module):
                remember(encoder, "max_seq_length")
            encoder.max_seq_length = definition.max_length
        self.definition = definition
        self.encoder = prepared(encoder, replace(options, compile=False))
        if isinstance(encoder, nn.Module):
            make_batch_invariant(encoder)
        self.options = options
        self._instructed = takes(encoder.encode, "instruction")
        self._pieces = InPieces(definition.text_batch_size, lambda text: log.warning("%s: %s", name, text))

    def embed_text(self, texts: Sequence[str], language: str | None = None) -> torch.Tensor:
        """Maps texts to embeddings, float32 [B, D] on the device, not normalized unless the encoder does so.

        Batches have texts of similar length, and do not depend on the order of the texts. On a CPU, if the encoder
        reports lengths and multiplies matrices by `torch.nn.Linear` alone, an embedding is the same to the last bit
        whatever other texts it is computed with.

        Args:
            texts: At least one; equal ones are encoded once.
            language: Makes no difference.

        Raises:
            RunError: If there are no texts, or the encoder returns something else than embeddings.
            torch.OutOfMemoryError: If a single text does not fit into memory.
        """
        if not len(texts):
            raise RunError(f"{self.definition.name}: there are no texts to embed")
        different = sorted(set(texts))
        lengths = self._lengths(different)
        # Longest first: what does not fit shows at once.
        order = sorted(range(len(different)), key=lambda place: (-lengths[place], -len(different[place])))
        different, lengths = [different[place] for place in order], [lengths[place] for place in order]
        # Padding changes a text's last bits. Without it the batch makes no difference on a CPU, where linear layers are
        # batch-invariant; elsewhere it does, and small batches cost more.
        least = 1 if self.options.device == "cpu" else LEAST
        parts = [self._group(different[group]) for group in alike(lengths, least)]
        embeddings = parts[0] if len(parts) == 1 else torch.cat(parts)
        place = {text: index for index, text in enumerate(different)}
        return embeddings[torch.tensor([place[text] for text in texts], device=embeddings.device)]

    def _lengths(self, texts: list[str]) -> list[int]:
        """Returns the lengths of texts: in tokens, if the encoder reports them; else equal for all."""
        tell = getattr(self.encoder, "lengths", None)
        if not callable(tell):
            return [0] * len(texts)
        instruction = self.definition.instruction
        if takes(tell, "instruction"):
            told = tell(texts, instruction=instruction)
        else:
            told = tell(texts if self._instructed else [instruction + text for text in texts])
        if not isinstance(told, Iterable) or len(lengths := list(told)) != len(texts):
            raise RunError(f"{self.definition.name}: lengths returned {told!r:.60} for {len(texts)} texts")
        return lengths

    def too_long(self, texts: Sequence[str]) -> tuple[int, int | None]:
        """Counts the texts that have more tokens than the encoder takes, and returns its maximum.

        The latter is None where the encoder does not report it, by ``max_seq_length`` and ``uncut_lengths(texts,
        instruction)`` or by its tokenizer.
        """
        most = getattr(self.encoder, "max_seq_length", None)
        tell = getattr(self.encoder, "uncut_lengths", None)
        tokenizer = getattr(self.encoder, "tokenizer", None)
        instruction = self.definition.instruction
        # A token stands for a letter at least, but for those that begin and end a text.
        room = (most or 0) - len(instruction) - ENDS
        suspects = [text for text in texts if len(text) > room or not text.isascii()]
        if not most:
            return 0, None
        if callable(tell):
            lengths = tell(suspects, instruction)
        elif callable(tokenizer):
            rows = [tokenizer(instruction + text, truncation=False, verbose=False) for text in suspects]
            lengths = [len(row["input_ids"]) for row in rows]
        else:
            return 0, None
        return sum(length > most for length in lengths), int(most)

    def _group(self, texts: list[str]) -> torch.Tensor:
        """Embeds texts of similar length, in batches that fit."""
        return self._pieces(len(texts), lambda part: self._encoded(texts[part]))

    def _encoded(self, texts: list[str]) -> torch.Tensor:
        """Encodes one batch."""
        instruction = self.definition.instruction
        with torch.no_grad(), autocast(self.options):
            if self._instructed:
                given = self.encoder.encode(texts, instruction=instruction)
            else:
                given = self.encoder.encode([instruction + text for text in texts] if instruction else list(texts))
        return self._checked(given, len(texts))

    def _checked(self, given: Any, count: int) -> torch.Tensor:
        """Returns embeddings as a float32 tensor on the device."""
        try:
            if isinstance(given, list | tuple):
                given = torch.stack([torch.as_tensor(value) for value in given])
            embeddings = torch.as_tensor(given)
        except (TypeError, ValueError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            raise RunError(f"{self.definition.name}: encode returned no embeddings but {type(given)}") from error
        if embeddings.ndim != 2 or len(embeddings) != count or not embeddings.is_floating_point():
            raise RunError(
                f"{self.definition.name}: encode returned {embeddings.dtype} of shape {tuple(embeddings.shape)};"
                f" floats of shape ({count}, dimensions) were expected"
            )
        return embeddings.to(self.options.device, torch.float32)
