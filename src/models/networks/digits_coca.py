"""open_clip's CoCa in a tiny configuration with a vocabulary of its own, and how it learns to describe digits."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from testbed.models.networks.digits import IMAGE_SIZE, normalize

PAD, START, END = "<pad>", "<start>", "<end>"
WORDS = (
    *(PAD, START, END),
    *("a", "an", "the", "of", "photo", "image", "number", "digit", "handwritten", "with", "and", "is", "."),
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("open", "straight", "curves", "lines", "loop", "loops"),
)
LONGEST = 9  # tokens of a caption, with those of its start and end
_TEXT = {"context_length": LONGEST, "vocab_size": len(WORDS), "width": len(WORDS), "heads": 2, "layers": 1}
CONFIG: dict[str, Any] = {
    "embed_dim": len(WORDS),  # open_clip makes that the number of logits
    "vision_cfg": {
        **{"image_size": IMAGE_SIZE, "layers": 2, "width": 96, "head_width": 32, "patch_size": 8, "patch_dropout": 0.1},
        **{"attentional_pool": True, "attn_pooler_heads": 2, "attn_pooler_queries": 8, "output_tokens": True},
    },
    "text_cfg": {**_TEXT, "embed_cls": True, "output_tokens": True},
    "multimodal_cfg": {**_TEXT, "attn_pooler_heads": 2},
}


class Vocabulary:
    """A tokenizer of whole words, in the form that captioners need of open_clip's."""

    sot_token_id, eot_token_id = WORDS.index(START), WORDS.index(END)

    def encode(self, text: str) -> list[int]:
        """The tokens of a caption, from its start to its end; raises ValueError if a word is not in the vocabulary."""
        words = text.replace(".", " .").split()
        return [self.sot_token_id, *(WORDS.index(word) for word in words), self.eot_token_id]

    def decode(self, tokens: Sequence[int]) -> str:
        """Returns the words of tokens; those that are not words are left out."""
        return " ".join(WORDS[token] for token in tokens if 3 <= token < len(WORDS)).replace(" .", ".")


def tiny_coca() -> tuple[nn.Module, Vocabulary]:
    """The network with random weights, and its tokenizer."""
    from open_clip.coca_model import CoCa

    network = CoCa(**copy.deepcopy(CONFIG), pad_id=WORDS.index(PAD))
    # open_clip leaves what memory holds in this one.
    nn.init.normal_(network.text_decoder.text_projection, std=_TEXT["width"] ** -0.5)
    return network, Vocabulary()


def train_coca(
    images: torch.Tensor,
    labels: torch.Tensor,
    captions: Sequence[str],
    generator: torch.Generator,
    steps: int,
    noise: float,
    batch_size: int = 64,
    warm_up: int = 50,
) -> nn.Module:
    """Learns the next word of captions (Yu et al. 2022, without the contrastive loss): AdamW with a cosine schedule.

    Args:
        images: Float [N, 3, 32, 32] in [0, 1].
        labels: Integer [N].
        captions: For each class one caption, all of the same number of words.
        generator: The random numbers.
        steps: Number of batches.
        noise: The standard deviation of the noise on the images.
        batch_size: Images in a batch.
        warm_up: Steps in which the learning rate rises.
    """
    network: Any
    network, vocabulary = tiny_coca()
    tokens = torch.tensor([vocabulary.encode(caption) for caption in captions])[labels]
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / warm_up) * (1 + math.cos(math.pi * min(1.0, step / steps))) / 2
    )
    network.train()
    for _ in range(steps):
        index = torch.randint(len(images), (batch_size,), generator=generator)
        batch = images[index]
        batch = normalize(batch + noise * torch.randn(batch.shape, generator=generator))
        found = network(batch, tokens[index])
        loss = functional.cross_entropy(found["logits"].flatten(0, 1), found["labels"].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    trained: nn.Module = network.eval()
    return trained
