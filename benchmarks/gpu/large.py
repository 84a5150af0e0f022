"""Retrieval of the size of Flickr30k and COCO, and zero-shot heads of ImageNet's size: a part of the proof."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from findings import Findings, part

from testbed.contracts.surroundings import configured
from testbed.data.sets.imagenet import class_names, templates
from testbed.metrics.scorers.retrieval import RECALL_K, score_retrieval
from testbed.models.base.runtime import LoadedDualEncoder, ZeroShotClassifier
from testbed.models.model_base import DualEncoder, LoadOptions, StandardTransform
from testbed.models.networks.open_clip_texts import shorten
from testbed.tasks.parts.zero_shot import make_head

SEED = 0
HEAD = 1e-4  # how much components of a head, or relative to 100, of logits, may differ between devices
ON_CPU = 2000  # embeddings whose logits are computed on both
CPU_HEAD_SECONDS = 15.0  # a head of all compared classes is made on the CPU only with so much time left

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of the part.

    Attributes:
        texts: Captions.
        images: Images that they are about.
        width: The dimension of embeddings.
        classes: Classes of the head.
        prompts: Prompts of each.
        compared: Classes whose head is made on both devices.
        layers: Layers of the text tower.
        embeddings: Image embeddings that are classified.
    """

    texts: int
    images: int
    width: int
    classes: int
    prompts: int
    compared: int
    layers: int
    embeddings: int


FULL = Sizes(25_010, 5_000, 512, 1000, 80, 50, 12, 50_000)
TINY = Sizes(510, 100, 64, 20, 3, 5, 2, 3_000)


def work(findings: Findings) -> None:
    """Retrieval of 25,010 texts × 5,000 images, zero-shot heads of 1,000 × 80 prompts, and logits of 50,000 embeddings.

    testbed computes recall on the CPU, with exact similarities; beside it stands a plain float32 computation by torch
    on the device, and at most one query of each direction may be ranked otherwise. Heads are made by testbed's own code
    from a text tower of ViT-B/32's size with random weights; components on the device and on the CPU may differ by
    1e-4, logits by 1e-4 of their scale of 100.
    """
    with configured(findings.device, torch.get_num_threads()):
        sizes = TINY if findings.tiny else FULL
        retrieval(findings, sizes)
        head = heads(findings, sizes)
        if head is None:
            head = torch.nn.functional.normalize(_normal(sizes.width, sizes.classes), dim=0)
        logits(findings, sizes, head)


def timed(findings: Findings, compute: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds of a computation until the device is done, and what it returns."""
    began = time.perf_counter()
    found = compute()
    if findings.on_gpu:
        torch.cuda.synchronize(findings.device)
    return time.perf_counter() - began, found


# Retrieval --------------------------------------------------------------------------------------------------------


def captioned(sizes: Sizes) -> tuple[Array, Array, Array]:
    """Embeddings of images [N, D], of captions [M, D] that are near their image, and the image of each caption [M]."""
    rng = np.random.default_rng(SEED)
    extra = rng.choice(sizes.images, sizes.texts - 5 * sizes.images, replace=False)
    owners = np.sort(np.concatenate([np.repeat(np.arange(sizes.images), 5), extra]))
    images = rng.standard_normal((sizes.images, sizes.width), dtype=np.float32)
    texts = images[owners] + 5 * rng.standard_normal((sizes.texts, sizes.width), dtype=np.float32)
    images, texts = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in (images, texts))
    return images, texts, owners


def retrieval(findings: Findings, sizes: Sizes) -> None:
    """Recall by testbed, which has no way to take a device, and by torch."""
    images, texts, owners = captioned(sizes)
    ours: dict[str, float | None] = {}
    with findings.trying("large: retrieval by testbed on the CPU") as figures:
        seconds, (_, metrics) = timed(findings, lambda: score_retrieval(images, texts, owners))
        ours = {metric.name: metric.value for metric in metrics if "recall@" in metric.name}
        figures.update(cpu_seconds=seconds, texts=sizes.texts, images=sizes.images, width=sizes.width, **ours)
    with findings.trying("large: retrieval against plain torch on the device") as figures:
        given = [torch.from_numpy(array).to(findings.device) for array in (images, texts, owners)]
        timed(findings, lambda: recalls(*given))  # the first time, libraries are loaded
        device_seconds, theirs = timed(findings, lambda: recalls(*given))
        if ours.keys() != theirs.keys():
            raise ValueError(f"metrics {sorted(ours)} here, {sorted(theirs)} there")
        differences = {name: abs((ours[name] or 0) - value) for name, value in theirs.items()}
        queries = {name: sizes.texts if name.startswith("image") else sizes.images for name in theirs}
        figures.update(device=findings.device, device_seconds=device_seconds, **theirs)
        figures["cpu_seconds_over_device"] = seconds / device_seconds
        figures["queries_that_differ"] = {name: round(differences[name] * queries[name]) for name in theirs}
        figures["equal"] = not any(figures["queries_that_differ"].values())
        figures["ok"] = max(figures["queries_that_differ"].values()) <= 1


def recalls(images: torch.Tensor, texts: torch.Tensor, owners: torch.Tensor) -> dict[str, float]:
    """Recall in both directions in plain float32, by testbed's names of the metrics."""
    similarity = texts @ images.T
    own = similarity.gather(1, owners[:, None])
    image_ranks = (similarity > own).sum(1)
    best = torch.full((len(images),), -torch.inf, device=images.device).scatter_reduce(0, owners, own[:, 0], "amax")
    text_ranks = (similarity > best).sum(0)
    found = {f"image_retrieval_recall@{k}": (image_ranks < k).double().mean().item() for k in RECALL_K}
    return found | {f"text_retrieval_recall@{k}": (text_ranks < k).double().mean().item() for k in RECALL_K}


# Zero-shot classification -----------------------------------------------------------------------------------------


def encoder(sizes: Sizes, device: str) -> LoadedDualEncoder:
    """An open_clip CLIP with random weights, always the same ones, whose text tower is as large as that of ViT-B/32."""
    from open_clip import get_tokenizer
    from open_clip.model import CLIP

    def load() -> tuple[Any, Any]:
        text = {"context_length": 77, "vocab_size": 49408, "width": sizes.width, "heads": sizes.width // 64}
        vision = {"image_size": 32, "layers": 1, "width": 64, "head_width": 64, "patch_size": 16}
        network = CLIP(sizes.width, vision, {**text, "layers": sizes.layers})
        return shorten(network), get_tokenizer("ViT-B-32")

    definition = DualEncoder("random-clip", StandardTransform(32, 32), load, 64)
    return definition.load(LoadOptions(device))


def heads(findings: Findings, sizes: Sizes) -> torch.Tensor | None:
    """The head of all classes on the device, and of some on both; returns the first one."""
    head = None
    names, prompts = class_names()[: sizes.classes], templates()[: sizes.prompts]
    texts = [[prompt.replace("{c}", name) for prompt in prompts] for name in names]
    with findings.trying("large: zero-shot head on the device") as figures:
        ours = encoder(sizes, findings.device)
        timed(findings, lambda: make_head(ours, texts[:2]))  # the first time, libraries are loaded
        distinct = list(dict.fromkeys(text for captions in texts for text in captions))
        seconds, head = timed(findings, lambda: make_head(ours, texts))
        tokenizing, _ = timed(findings, lambda: ours.tokens(distinct))
        figures.update(classes=len(names), prompts=len(prompts), texts=len(distinct), head_seconds=seconds)
        figures["texts_a_second"] = len(distinct) / seconds
        figures["tokenizer_seconds_alone"] = tokenizing
        figures["ok"] = bool(torch.isfinite(head).all())
    if head is None:
        findings.not_run("large: zero-shot head against the CPU", "it was not made on the device")
        return None
    with findings.trying("large: zero-shot head against the CPU") as figures:
        compared = sizes.compared if findings.left > CPU_HEAD_SECONDS else max(2, sizes.compared // 10)
        theirs = encoder(sizes, "cpu")
        seconds, reference = timed(findings, lambda: make_head(theirs, texts[:compared]))
        alone = make_head(ours, texts[:compared])
        differences = {
            "largest_difference": float((head[:, :compared] - reference).abs().max()),
            "largest_difference_by_batch": float((head[:, :compared] - alone).abs().max()),
        }
        figures.update(classes=compared, cpu_texts_a_second=compared * len(prompts) / seconds, **differences)
        figures["ok"] = max(differences.values()) <= HEAD
    return head


def logits(findings: Findings, sizes: Sizes, head: torch.Tensor) -> None:
    """The zero-shot logits of many embeddings on the device, of the first ones on both."""
    with findings.trying("large: zero-shot logits against the CPU") as figures:
        embeddings = _normal(sizes.embeddings, len(head))
        definition = DualEncoder("no-network", StandardTransform(32, 32), lambda: (None, None), 64)
        device, cpu = (
            LoadedDualEncoder(definition, None, None, LoadOptions(entry)) for entry in (findings.device, "cpu")
        )
        ours, theirs = ZeroShotClassifier(device, head.to(findings.device)), ZeroShotClassifier(cpu, head)
        there = embeddings.to(findings.device)
        timed(findings, lambda: ours.from_embeddings(there[:ON_CPU]))
        seconds, computed = timed(findings, lambda: ours.from_embeddings(there))
        cpu_seconds, reference = timed(findings, lambda: theirs.from_embeddings(embeddings[:ON_CPU]))
        difference = float((computed[:ON_CPU].cpu() - reference).abs().max())
        figures.update(embeddings=len(embeddings), classes=head.shape[1], device_seconds=seconds)
        figures["cpu_seconds_of_as_many"] = cpu_seconds * len(embeddings) / len(reference)
        figures["largest_difference"] = difference
        figures["largest_logit"] = float(reference.abs().max())
        figures["ok"] = difference <= HEAD * ZeroShotClassifier.LOGIT_SCALE


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(SEED))


if __name__ == "__main__":
    part(work)()
