"""Reads batches: each image is decoded and transformed once, then perturbed by every CPU perturbation of its pass.

Readers are pickled for data workers. What cannot be pickled (a lambda in a definition) is looked up there by name.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from torch.utils.data import default_collate

from testbed.calls import catchable, reason_of
from testbed.contracts.returned import Range, far_outside, perturbed, range_of, transformed, widest
from testbed.data.decoded import DecodedImages
from testbed.data.perturbation import sample_seed
from testbed.data.source import ImageSource
from testbed.devices import seed_all
from testbed.errors import RunError, SampleError
from testbed.process import profiling
from testbed.tracing import access_log


@dataclass(frozen=True)
class ByName:
    """An attribute of a registered definition, looked up in the process that needs it."""

    kind: str  # "model" or "setting"
    name: str
    attribute: str
    plugins: tuple[str, ...]

    def resolve(self) -> Any:
        """The attribute."""
        from testbed.registry import registry

        registry.load(self.plugins)
        owner: Any = registry.get_model(self.name) if self.kind == "model" else registry.get_eval_setting(self.name)
        return getattr(owner, self.attribute)


def portable(value: Any, name: ByName, travels: bool = True) -> Any:
    """Returns the value itself if it stays in this process or can be pickled, else a reference to look it up."""
    if value is None or not travels:
        return value
    try:
        ForkingPickler.dumps(value)
    except Exception:
        return name
    return value


@dataclass(frozen=True)
class CpuPerturbation:
    """A setting's ``perturbation_fn_cpu``: the function (or its name), and the key of its random numbers."""

    setting: str
    function: Any
    noise_key: str


@dataclass
class Item:
    """One sample, read: its image, its perturbed images by setting, or the reason why it could not be read."""

    shard: int
    index: int
    image: torch.Tensor | None = None
    range: Range | None = None
    perturbed: dict[str, torch.Tensor] = field(default_factory=dict)
    error: str | None = None
    faults: dict[str, str] = field(default_factory=dict)
    reads: set[access_log.Read] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class Batch:
    """Samples of one shard, read.

    Attributes:
        shard: Their shard.
        indices: Their places among the samples of the evaluation, including unreadable ones.
        good: The places of the readable ones, in the order of the images.
        images: Float tensor [len(good), 3, H, W] in [0, 1], or None if no cell needs it.
        perturbed: Setting → the same images after its ``perturbation_fn_cpu``.
        errors: Place → the reason why that sample could not be read.
        faults: Setting → the reason why its ``perturbation_fn_cpu`` failed.
        reads: Files and variables that the code read for the first time.
        seconds: The time of a data worker, by stage, if that is measured.
        range: The smallest and the largest number of the transformed images.
    """

    shard: int
    indices: list[int]
    good: list[int]
    images: torch.Tensor | None
    perturbed: dict[str, torch.Tensor]
    errors: dict[int, str]
    faults: dict[str, str]
    reads: set[access_log.Read] = field(default_factory=set)
    seconds: dict[str, float] = field(default_factory=dict)
    range: Range | None = None

    def pin_memory(self) -> Batch:
        """Moves the images to pinned memory; called by torch's DataLoader."""
        if self.images is not None:
            self.images = self.images.pin_memory()
        self.perturbed = {name: images.pin_memory() for name, images in self.perturbed.items()}
        return self


@dataclass(eq=False)
class BatchReader:
    """A map-style data set for torch's DataLoader, indexed by (shard, place).

    Args:
        positions: The position in the source of each sample of the evaluation.
        transform: The model's transform.
        setting_transform: The setting's transform of the PIL image, applied first.
        perturbations: The CPU perturbations of the pass.
        plain: True if any cell needs the image without CPU perturbation.
        seed: The run's ``--seed``.
        decoded: A cache of the transformed images, by their content.
        digests: The content of each sample of the evaluation, for the cache.
    """

    source: ImageSource
    positions: Sequence[int]
    transform: Any
    setting_transform: Any
    perturbations: list[CpuPerturbation]
    plain: bool
    seed: int
    decoded: DecodedImages | None = None
    digests: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, key: tuple[int, int]) -> Item:
        item = Item(*key)
        with catchable(), access_log.watch(access_log.SHARED):
            self._read(item)
        if torch.utils.data.get_worker_info() is not None:  # in another process: return its reads with the batch
            item.reads = access_log.fresh()
            item.seconds = profiling.take()
        return item

    def _read(self, item: Item) -> None:
        position = self.positions[item.index]
        image = None
        if self.decoded is not None:
            with profiling.stage("read"):
                image = self.decoded.get(self.digests[item.index])
        if image is None:
            try:
                image = self._transformed(position)
            except SampleError as error:
                item.error = str(error)
                return
            if self.decoded is not None:
                self.decoded.put(self.digests[item.index], image)
        item.image, item.range = image if self.plain else None, range_of(image)
        for index, perturbation in enumerate(self.perturbations):
            with access_log.watch(access_log.setting(perturbation.setting)), profiling.stage("perturb"):
                self._perturb(item, index, perturbation, image, self.source.ids[position])

    def _transformed(self, position: int) -> torch.Tensor:
        """Decodes and transforms an image of the source."""
        # The content of samples is already part of the identity.
        with access_log.watch(None), profiling.stage("decode"):
            picture = self.source.image(position)
        with profiling.stage("transform"):
            if self.setting_transform is not None:
                picture = self._resolved("setting_transform")(picture)
            image = self._resolved("transform")(picture)
        return transformed(image)

    def _perturb(
        self, item: Item, place: int, perturbation: CpuPerturbation, image: torch.Tensor, sample_id: str
    ) -> None:
        if isinstance(perturbation.function, ByName):
            perturbation = CpuPerturbation(
                perturbation.setting, perturbation.function.resolve(), perturbation.noise_key
            )
            self.perturbations[place] = perturbation
        seed_everything(sample_seed(perturbation.noise_key, sample_id, self.seed))
        try:
            with catchable():
                result = perturbed("perturbation_fn_cpu", perturbation.function(image.clone()), image)
            if why := far_outside("perturbation_fn_cpu", range_of(result)):
                raise ValueError(why)
            item.perturbed[perturbation.setting] = result
        except Exception as error:  # a user's function: its errors fail only its setting
            item.faults[perturbation.setting] = f"perturbation_fn_cpu failed: {reason_of(error)}"

    def _resolved(self, attribute: str) -> Any:
        value = getattr(self, attribute)
        if isinstance(value, ByName):
            value = value.resolve()
            setattr(self, attribute, value)
        return value


def seed_everything(seed: int) -> None:
    """Seeds the global generators of random, numpy and torch, which users' functions may use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    seed_all(seed)


def collate(items: Sequence[Item]) -> Batch:
    """Stacks the readable samples of one shard."""
    good = [item for item in items if item.error is None]
    shapes = {tuple(item.image.shape) for item in good if item.image is not None}
    shapes |= {tuple(image.shape) for item in good for image in item.perturbed.values()}
    if len(shapes) > 1:
        raise RunError(
            f"the transform returns images of different sizes ({', '.join(map(str, sorted(shapes)))}), which cannot be"
            " batched; crop or resize them to one"
        )
    faults: dict[str, str] = {}
    for item in good:
        faults.update(item.faults)
    names = [name for name in (good[0].perturbed if good else {}) if name not in faults]
    return Batch(
        shard=items[0].shard,
        indices=[item.index for item in items],
        good=[item.index for item in good],
        images=_stack([item.image for item in good if item.image is not None]),
        perturbed={name: default_collate([item.perturbed[name] for item in good]) for name in names},
        errors={item.index: item.error for item in items if item.error is not None},
        faults=faults,
        reads={read for item in items for read in item.reads},
        seconds=dict(sum((Counter(item.seconds) for item in items), Counter())),
        range=widest([item.range for item in good if item.range is not None]),
    )


def _stack(images: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Stacks the images in one tensor; in a data worker, in the memory through which it goes to its process."""
    return default_collate(list(images)) if images else None


__all__ = ["Batch", "BatchReader", "ByName", "CpuPerturbation", "Item", "collate", "portable"]
