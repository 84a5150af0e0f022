"""The networks of the digits family, and how each is trained. Imported only to train or to load one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from testbed.devices import seeded

IMAGE_SIZE = 32
CLIP_CONFIG: dict[str, Any] = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": IMAGE_SIZE, "layers": 3, "width": 96, "head_width": 32, "patch_size": 8},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
}


def to_pixels(images: torch.Tensor) -> torch.Tensor:
    """Maps images [B, 3, 32, 32] to the 64 grey values of the digits' own resolution, [B, 64]."""
    return functional.adaptive_avg_pool2d(images.mean(dim=1, keepdim=True), 8).flatten(1)


class Linear(nn.Module):
    """Logistic regression on 64 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, 32, 32] to logits [B, 10]."""
        logits: torch.Tensor = self.layer(to_pixels(images))
        return logits


class NearestNeighbors(nn.Module):
    """The five nearest training digits vote, each with weight 1 / distance; logits are logarithms of vote shares."""

    K = 5
    FLOOR = 1e-3

    def __init__(self, count: int = 1257) -> None:
        super().__init__()
        self.pixels: torch.Tensor
        self.labels: torch.Tensor
        self.register_buffer("pixels", torch.rand(count, 64))
        self.register_buffer("labels", torch.arange(count) % 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, 32, 32] to logits [B, 10]."""
        # The plain form: through a matrix product, small distances would lose their digits.
        distances = torch.cdist(to_pixels(images), self.pixels, compute_mode="donot_use_mm_for_euclid_dist")
        nearest, index = distances.topk(self.K, largest=False)
        weights = 1 / nearest.clamp(min=1e-6)
        votes = torch.zeros(len(images), 10, device=images.device).scatter_add(1, self.labels[index], weights)
        return torch.log(votes / votes.sum(dim=1, keepdim=True) + self.FLOOR)


class Perceptron(nn.Module):
    """Two hidden layers on 64 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, 32, 32] to logits [B, 10]."""
        logits: torch.Tensor = self.layers(to_pixels(images))
        return logits


class ConvNet(nn.Module):
    """Three convolutions on the images at 32 × 32."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(64 * 4 * 4, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, 32, 32] to logits [B, 10]."""
        logits: torch.Tensor = self.layers(images)
        return logits


def tiny_clip() -> tuple[nn.Module, Any]:
    """Builds open_clip's CLIP in a tiny configuration, and its tokenizer."""
    from open_clip.model import CLIP
    from open_clip.tokenizer import SimpleTokenizer

    network = CLIP(**{key: dict(value) if isinstance(value, dict) else value for key, value in CLIP_CONFIG.items()})
    return network, SimpleTokenizer(context_length=CLIP_CONFIG["text_cfg"]["context_length"])


# Training ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def reproducibly(seed: int) -> Iterator[torch.Generator]:
    """Uses one thread and fixed random numbers, and restores both afterwards."""
    from threadpoolctl import threadpool_limits

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1), seeded(seed):
            yield torch.Generator().manual_seed(seed)
    finally:
        torch.set_num_threads(threads)


def train_linear(images: torch.Tensor, labels: torch.Tensor, seed: int) -> nn.Module:
    """Fits scikit-learn's logistic regression, and puts its coefficients into a linear layer."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=2000).fit(to_pixels(images).numpy(), labels.numpy())
    network = Linear()
    with torch.no_grad():
        network.layer.weight.copy_(torch.from_numpy(fitted.coef_.astype(np.float32)))
        network.layer.bias.copy_(torch.from_numpy(fitted.intercept_.astype(np.float32)))
    return network


def train_neighbors(images: torch.Tensor, labels: torch.Tensor, seed: int) -> nn.Module:
    """Keeps the training digits."""
    network = NearestNeighbors(len(images))
    network.load_state_dict({"pixels": to_pixels(images), "labels": labels})
    return network


def train_network(
    network: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    generator: torch.Generator,
    epochs: int,
    noise: float = 0.0,
    batch_size: int = 64,
) -> nn.Module:
    """Trains by AdamW at 2e-3, with a cosine schedule; images get normal noise of a deviation up to ``noise``."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
    steps = epochs * -(-len(images) // batch_size)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for index in torch.split(torch.randperm(len(images), generator=generator), batch_size):
            batch = images[index]
            if noise:
                scale = noise * torch.rand(len(batch), 1, 1, 1, generator=generator)
                batch = (batch + scale * torch.randn(batch.shape, generator=generator)).clamp(0, 1)
            loss = functional.cross_entropy(network(normalize(batch)), labels[index])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return network.eval()


def normalize(images: torch.Tensor) -> torch.Tensor:
    """Applies the definitions' normalization: (x − 0.5) / 0.5."""
    return (images - 0.5) / 0.5


def train_clip(
    images: torch.Tensor,
    labels: torch.Tensor,
    captions: Sequence[Sequence[str]],
    generator: torch.Generator,
    steps: int,
    batch_size: int = 64,
    warm_up: int = 100,
) -> nn.Module:
    """Trains contrastively (Radford et al. 2021) on images and captions; images that share a caption are all positives.

    Args:
        images: Float [N, 3, 32, 32] in [0, 1].
        labels: Integer [N].
        captions: For each class the captions that its images may have; one is drawn for each image of a batch.
        generator: The random numbers.
        steps: Number of batches.
        batch_size: Pairs in a batch.
        warm_up: Steps in which the learning rate rises. Without it, and without clipping gradients, training collapses.
    """
    network: Any
    network, tokenizer = tiny_clip()
    tokens = tokenizer([caption for of_class in captions for caption in of_class])
    per_class = len(captions[0])
    # A few dozen of the vocabulary's 49,408 tokens occur. Training on those alone, in their order (the end of the text
    # is the highest), saves most of the time; their rows go back into the whole embedding below.
    whole = network.token_embedding
    used, tokens = torch.unique(tokens, return_inverse=True)
    network.token_embedding = nn.Embedding(len(used), whole.embedding_dim, _weight=whole.weight[used].detach().clone())
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warm_up))
    network.train()
    for _ in range(steps):
        index = torch.randint(len(images), (batch_size,), generator=generator)
        drawn = torch.randint(per_class, (batch_size,), generator=generator)
        caption, place = torch.unique(labels[index] * per_class + drawn, return_inverse=True)
        image_features = functional.normalize(network.encode_image(normalize(images[index])), dim=-1)
        text_features = functional.normalize(network.encode_text(tokens[caption]), dim=-1)[place]
        logits = network.logit_scale.exp() * image_features @ text_features.T
        same = (place[:, None] == place[None, :]).float()
        wanted = same / same.sum(dim=1, keepdim=True)
        loss = (functional.cross_entropy(logits, wanted) + functional.cross_entropy(logits.T, wanted)) / 2
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            network.logit_scale.clamp_(0, np.log(100))
    with torch.no_grad():
        whole.weight[used] = network.token_embedding.weight
    network.token_embedding = whole
    trained: nn.Module = network.eval()
    return trained
