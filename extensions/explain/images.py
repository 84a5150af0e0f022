"""Runs the model on some images under other protocols, and counts the cost."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.calls import first_line
from testbed.errors import SampleError, TestbedError
from testbed.extensions.explain.axis import NotApplicableError
from testbed.extensions.explain.decoders import DECODERS, compressed
from testbed.extensions.explain.pixels import OtherNormalization, Pixels, pixels_of, render
from testbed.extensions.explain.texts import Network, stored_texts
from testbed.models.base.capability import EMBED_IMAGE, LOGITS
from testbed.models.loading.checkpoint_network import with_entry
from testbed.models.model_base import LoadOptions

if TYPE_CHECKING:
    import torch

    from testbed.data.source import ImageSource
    from testbed.extensions.explain.cell import EvaluatedCell
    from testbed.models.model_base import ModelDefinition

Rows = Sequence[int] | Array

_BATCH = 32
QUICK = 1.702  # the factor in x · sigmoid(1.702 x), CLIP's approximation of GELU


class ImageRunner:
    """Outputs of the model on samples of a cell, with each output computed only once.

    Args:
        cell: The cell.
        device: Device of models.

    Attributes:
        read: Number of images read and decoded.
        forwards: Number of images run through a network.
    """

    def __init__(self, cell: EvaluatedCell, device: str = "cpu") -> None:
        self.cell = cell
        self.device = device
        self.read = self.forwards = 0
        self._outputs: dict[Pixels, dict[int, Array]] = {}
        self.failed: dict[Pixels, str] = {}

    # What can be run ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def own(self) -> Pixels:
        """The protocol of the stored outputs.

        Raises:
            NotApplicableError: If the images cannot be run as before.
        """
        self.cell.classes  # noqa: B018 - whether it is a classification
        model, setting = self.cell.model, self.cell.setting
        if not model.capabilities & {LOGITS, EMBED_IMAGE} or model.costs_money:
            raise NotApplicableError("the model gives no logits and no embeddings of images")
        if setting.perturbation.gpu is not None:
            raise NotApplicableError("the setting perturbs images on the device")
        if model.classify is not None:
            raise NotApplicableError("the model has a forward pass of its own")
        if self.cell.zero_shot:
            stored_texts(self.cell)
        self._positions  # noqa: B018 - whether the data are there
        return replace(pixels_of(model), dtype=self.cell.dtype)

    @functools.cached_property
    def _source(self) -> ImageSource:
        from testbed.data.source import with_images

        try:
            return with_images(self.cell.setting.dataset.open())
        except TestbedError as error:
            raise NotApplicableError(f"the images cannot be opened: {error}") from error

    @functools.cached_property
    def _positions(self) -> Sequence[int]:
        try:
            positions = self.cell.setting.samples.positions(self._source, self.cell.evaluation.sample_limit)
        except TestbedError as error:
            raise NotApplicableError(f"the images cannot be opened: {error}") from error
        samples = self.cell.dataset.samples
        if len(positions) != len(samples) or any(
            self._source.ids[position] != sample.id for position, sample in zip(positions, samples, strict=True)
        ):
            raise NotApplicableError("the data set is not the one that was evaluated")
        return positions

    # Running ------------------------------------------------------------------------------------------------------

    def run(self, protocols: Sequence[Pixels], rows: Rows) -> None:
        """Runs missing images. Protocols that the network does not support are recorded in `failed`."""
        for start in range(0, len(rows), _BATCH):
            part = [int(row) for row in rows[start : start + _BATCH]]
            self._run_batch(protocols, part)

    def outputs(self, protocol: Pixels, rows: Rows) -> Array:
        """Embeddings [m, D] of a dual encoder, logits [m, C] of a classifier; rows of unreadable samples are NaN."""
        held = self._outputs[protocol]
        return np.stack([held[int(row)] for row in rows])

    def missing(self, protocol: Pixels, rows: Rows) -> list[int]:
        """The samples whose images have to be run."""
        held = self._outputs.get(protocol, {})
        return [int(row) for row in rows if int(row) not in held]

    def passes(self, protocol: Pixels, rows: Rows) -> int:
        """The number of images to run."""
        missing = self.missing(protocol, rows)
        if not protocol.mirrored:
            return len(missing)
        return len(missing) + sum(self._unmirrored(protocol, row) is None for row in missing)

    def _unmirrored(self, protocol: Pixels, row: int) -> Array | None:
        """The output of an image to be averaged with that of its mirror image, if already available."""
        plain = replace(protocol, mirrored=False)
        stored = self.cell.logits
        if plain == self.own and not self.cell.zero_shot and stored.dtype == np.float32:
            output: Array = stored[row]
            return output
        return self._outputs.get(plain, {}).get(row)

    def _run_batch(self, protocols: Sequence[Pixels], rows: Sequence[int]) -> None:
        waiting = {pixels: self.missing(pixels, rows) for pixels in protocols if pixels not in self.failed}
        wanted = {(each.decoder, row) for each, missing in waiting.items() for row in missing}
        pictures = {key: self._picture(*key) for key in sorted(wanted)}
        self.read += len({row for _, row in pictures})
        for protocol, missing in waiting.items():
            found = {row: pictures[protocol.decoder, row] for row in missing}
            readable = {row: picture for row, picture in found.items() if picture is not None}
            try:
                made = self._forward(protocol, readable) if readable else {}
            except TestbedError as error:
                self.failed[protocol] = str(error)
            except (RuntimeError, ValueError, AssertionError, IndexError, NotImplementedError) as error:
                self.failed[protocol] = f"the network does not support it: {' '.join(first_line(error).split())[:120]}"
            else:
                held = self._outputs.setdefault(protocol, {})
                held.update(made)
                self._note_unreadable(held, [row for row in missing if row not in readable])

    def _note_unreadable(self, held: dict[int, Array], rows: Sequence[int]) -> None:
        like = next(iter(held.values()), self.cell.logits[0])
        held.update({row: np.full(len(like), np.nan, dtype=np.float32) for row in rows})

    def _picture(self, decoder: str, row: int) -> Any:
        """The RGB image of a sample after the setting's own transform; None if it cannot be read."""
        position = self._positions[row]
        try:
            image = DECODERS[decoder](self._source, position)
        except SampleError:
            return None
        transform = self.cell.setting.transform
        return image if transform is None else transform(image)

    def _forward(self, protocol: Pixels, pictures: dict[int, Any]) -> dict[int, Array]:
        import torch

        if protocol.mirrored:
            return self._forward_mirrored(protocol, pictures)
        tensors = [self._tensor(protocol, row, picture) for row, picture in pictures.items()]
        return dict(zip(pictures, self._through(protocol, torch.stack(tensors)), strict=True))

    def _forward_mirrored(self, protocol: Pixels, pictures: dict[int, Any]) -> dict[int, Array]:
        """The means of the outputs of images and their mirror images; runs only missing ones."""
        import torch

        plain = replace(protocol, mirrored=False)
        lacking = {row: value for row, value in pictures.items() if self._unmirrored(protocol, row) is None}
        if lacking:
            self._outputs.setdefault(plain, {}).update(self._forward(plain, lacking))
        tensors = [self._tensor(plain, row, picture) for row, picture in pictures.items()]
        mirrored = self._through(plain, torch.stack(tensors).flip(-1))
        return {row: (self._unmirrored(protocol, row) + each) / 2 for row, each in zip(pictures, mirrored, strict=True)}

    def _through(self, protocol: Pixels, inputs: torch.Tensor) -> Array:
        """Outputs of a network."""
        import torch

        loaded = self._with_normalization(protocol)
        with torch.no_grad():
            run = loaded.logits if LOGITS in self.cell.model.capabilities else loaded.embed_image
            made = run(inputs.to(self.device))
        self.forwards += len(inputs)
        found: Array = made.detach().float().cpu().numpy()
        return found

    def _tensor(self, protocol: Pixels, row: int, picture: Any) -> torch.Tensor:
        from testbed.data.reader import seed_everything

        own = self.own
        picture = compressed(picture, protocol.quality) if protocol.quality else picture
        if protocol.geometry is None or (protocol.geometry == own.geometry and not protocol.weights):
            transform = self._definition(protocol.weights).transform
            assert transform is not None
            tensor = transform(picture)
        else:
            tensor = render(picture, protocol.geometry)
        perturbation = self.cell.setting.perturbation
        if perturbation.cpu is None:
            return tensor
        seed_everything(perturbation.sample_seed(self.cell.dataset.samples[row].id))
        changed: torch.Tensor = perturbation.cpu(tensor)
        return changed

    # Networks -----------------------------------------------------------------------------------------------------

    def loaded(self, network: Network | None = None) -> Any:
        """The model, by default unchanged; loaded once."""
        return self._loaded(*(network or ("", "", self.cell.dtype)))

    def _with_normalization(self, protocol: Pixels) -> Any:
        loaded = self._loaded(protocol.weights, protocol.activation, protocol.dtype or "float32", protocol.entry)
        definition = loaded.definition
        own = pixels_of(definition)  # other weights may have another protocol than the stored cell
        if protocol.input == own.input:
            return loaded
        if own.mean is None and definition.normalization is not None:
            given: Callable[..., Any] = _Before(protocol, definition.normalization)
        else:
            given = OtherNormalization(protocol)
        other = copy.copy(loaded)
        other.definition = definition.under_name(definition.name, normalization=given)
        return other

    def _definition(self, weights: str) -> ModelDefinition:
        return self.cell.catalog.get_model(weights) if weights else self.cell.model

    @functools.lru_cache(maxsize=4)  # noqa: B019 - as long as the search
    def _loaded(self, weights: str, activation: str, dtype: str, entry: str = "") -> Any:
        definition: Any = self._definition(weights)
        definition = with_entry(definition, definition.name, entry) if entry else definition
        loaded: Any = definition.load(LoadOptions(self.device, dtype, self.cell.random_seed))
        if LOGITS in definition.capabilities:
            loaded = loaded.in_order(self.cell.identity.get("forward", {}).get("class_columns"))
        if activation and not change_activation(loaded.network, activation):
            raise NotApplicableError("the network has no such activation")
        return loaded


class _Before:
    """A custom normalization whose inputs are changed first."""

    def __init__(self, pixels: Pixels, own: Callable[..., Any]) -> None:
        self.pixels = pixels
        self.own = own

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Scales and swaps channels, then normalizes: by the protocol's mean and deviation if it has any."""
        changed = OtherNormalization(self.pixels)(images)
        own: torch.Tensor = self.own(changed)
        return changed if self.pixels.mean is not None else own


def change_activation(network: Any, activation: str) -> int:
    """Replaces QuickGELU by GELU in a network, or the reverse; returns the number of replacements."""
    from torch import nn

    changed = 0
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            quick = type(child).__name__ in ("QuickGELU", "QuickGELUActivation")
            if activation == "gelu" and quick:
                setattr(module, name, nn.GELU())
                changed += 1
            elif activation == "quick_gelu" and isinstance(child, nn.GELU):
                setattr(module, name, _quick_gelu())
                changed += 1
    return changed


def _quick_gelu() -> Any:
    import torch
    from torch import nn

    class QuickGELU(nn.Module):
        """x · sigmoid(1.702 x)."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Applies it to a tensor of any shape."""
            return x * torch.sigmoid(QUICK * x)

    return QuickGELU()
