"""Computes the cells of a pass on a batch: each perturbation once, each model's features once."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from testbed.calls import catchable, first_line, reason_of
from testbed.contracts import returned
from testbed.data.perturbation import gpu_call, sample_seed
from testbed.data.reader import Batch, seed_everything
from testbed.data.source import ImageSource
from testbed.devices import Upload, sent
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.nodes import Steps
from testbed.graph.passes import PassCell
from testbed.models.model_base import ModelDefinition
from testbed.process.oom import DeviceError, InPieces, is_device_error, is_out_of_memory
from testbed.process.profiling import stage
from testbed.tracing import access_log

log = logging.getLogger("testbed")


@dataclass
class ReadyCell:
    """A cell whose model is loaded.

    Attributes:
        kind: The kind of its outputs.
        steps: How they are computed.
    """

    cell: PassCell
    model: ModelDefinition
    setting: EvalSetting
    kind: str
    steps: Steps
    pieces: InPieces

    @property
    def perturbation(self) -> Callable[..., Any] | None:
        """The setting's perturbation on the device, unless the model's ``classify`` replaces it."""
        if self.setting.adversarial_attack is not None and self.model.handles_attack:
            return None
        return self.setting.perturbation_fn_gpu

    @property
    def own_perturbation(self) -> bool:
        """Returns whether the perturbation is specific to this cell because it depends on the model."""
        return self.perturbation is not None and "model" in gpu_call(self.perturbation).arguments

    @property
    def perturbs(self) -> bool:
        """Returns whether the setting perturbs images at all."""
        setting = self.setting
        functions = setting.perturbation_fn_cpu, setting.perturbation_fn_gpu, setting.adversarial_attack
        return any(function is not None for function in functions)

    @property
    def variant(self) -> str:
        """Equal for cells that see the same pixels."""
        perturbed = self.setting.perturbation_fn_cpu is not None or self.perturbation is not None
        return self.setting.name if perturbed else ""


def in_whole_batches(steps: Steps, pieces: InPieces) -> Steps:
    """Steps whose network gets batches of one size: torch.compile would compile it anew for the last, smaller one.

    What is missing is filled up with the last image, and dropped from the features.
    """
    features = steps.features
    assert features is not None

    def filled(images: torch.Tensor) -> torch.Tensor:
        missing = pieces.size - len(images)
        if missing <= 0:
            return features(images)
        return features(torch.cat([images, images[-1:].expand(missing, -1, -1, -1)]))[: len(images)]

    return replace(steps, features=filled)


@dataclass(frozen=True)
class Receiver:
    """Takes what becomes of cells on a batch.

    Attributes:
        deliver: Called with a cell and its outputs [len(batch.good), …], which may still be computed on a GPU.
        fail: Called with a cell and why it failed.
        look: Called with a cell and images that its setting has perturbed on the device.
        exact: Whether ``deliver`` waits for the outputs, so that an error of the device belongs to the cell at hand.
    """

    deliver: Callable[[ReadyCell, torch.Tensor], None]
    fail: Callable[[ReadyCell, str], None]
    look: Callable[[ReadyCell, torch.Tensor], None]
    exact: bool = True


class Variants:
    """Computes the cells of a pass, sharing perturbed images and features."""

    def __init__(
        self, source: ImageSource, positions: Sequence[int], targets: Sequence[Any], device: str, seed: int
    ) -> None:
        self.source = source
        self.positions = positions
        self.targets = targets
        self.device = device
        self.seed = seed
        self._upload = Upload(device)

    def compute(self, cells: Sequence[ReadyCell], batch: Batch, receiver: Receiver) -> Iterator[int]:
        """Computes the outputs of cells on a batch; yields of how many cells, as it goes on.

        Args:
            batch: The samples.
            receiver: Receives the outputs, or the reason why there are none.

        Raises:
            DeviceError: If this process can no longer use its device.
        """
        by_variant: dict[str, list[ReadyCell]] = defaultdict(list)
        for cell in cells:
            by_variant[cell.variant].append(cell)
        plain: torch.Tensor | None = None
        for members in by_variant.values():
            setting = members[0].setting
            if setting.perturbation_fn_cpu is not None:
                if setting.name in batch.faults:
                    self._fail_all(members, batch.faults[setting.name], receiver)
                    yield len(members)
                    continue
                images = self._to_device(batch.perturbed[setting.name])
            else:
                if plain is None:
                    assert batch.images is not None
                    plain = self._to_device(batch.images)
                images = plain
            yield from self._variant(members, images, batch, receiver)

    def _variant(
        self, members: Sequence[ReadyCell], images: torch.Tensor, batch: Batch, receiver: Receiver
    ) -> Iterator[int]:
        shared = [cell for cell in members if not cell.own_perturbation]
        for cell in members:
            if cell.own_perturbation:
                self._guard([cell], receiver, partial(self._attack, cell, images, batch, receiver))
                yield 1
        if not shared:
            return
        perturbation = shared[0].perturbation
        if perturbation is not None:
            perturbed = self._guard(shared, receiver, lambda: self._perturb_all(shared[0], images, batch))
            if perturbed is None:
                yield len(shared)
                return
            images = perturbed
            receiver.look(shared[0], images)
        by_features: dict[tuple[str, str], list[ReadyCell]] = defaultdict(list)
        for cell in shared:
            by_features[cell.cell.model, cell.steps.key].append(cell)
        for group in by_features.values():
            self._guard(group, receiver, partial(self._features, group, images, batch, receiver))
            yield len(group)

    def _to_device(self, images: torch.Tensor) -> torch.Tensor:
        """Moves a batch to the device; if it does not fit, it stays on the CPU and is copied piece by piece."""
        try:
            return self._upload(images)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        torch.cuda.empty_cache()
        return images

    def _piece(self, images: torch.Tensor, piece: slice) -> torch.Tensor:
        return sent(images[piece], self.device)

    def _features(self, group: Sequence[ReadyCell], images: torch.Tensor, batch: Batch, receiver: Receiver) -> None:
        """Computes the features of one model once, and from them the outputs of its cells."""
        first = group[0]
        handles = first.setting.adversarial_attack is not None and first.perturbation is None
        features_of = first.steps.features
        assert features_of is not None

        def piece_features(piece: slice) -> torch.Tensor:
            if first.model.classify is not None:
                # It may use random numbers; the same batch then gets the same ones in every setting.
                sample = self.source.ids[self.positions[batch.good[piece][0]]]
                seed_everything(sample_seed("classify", sample, self.seed))
            return features_of(self._piece(images, piece)).detach()

        # a classify function that handles attacks needs gradients
        watched = access_log.watch(access_log.model(first.cell.model))
        with torch.set_grad_enabled(handles), watched, stage("forward", on_device=True):
            features = first.pieces(len(images), piece_features)
        with stage("forward", on_device=True):
            for cell in group:
                self._guard([cell], receiver, partial(_deliver_outputs, cell, features, receiver))

    def _attack(self, cell: ReadyCell, images: torch.Tensor, batch: Batch, receiver: Receiver) -> None:
        """Computes a perturbation that takes the model, and the outputs on the perturbed images."""
        assert cell.steps.attacked is not None
        model, features_of = cell.steps.attacked(), cell.steps.features
        assert features_of is not None

        def piece_outputs(piece: slice) -> torch.Tensor:
            perturbed = self._perturb(cell, self._piece(images, piece), batch.good[piece], model)
            with torch.no_grad(), stage("forward", on_device=True):
                return cell.steps.outputs(features_of(perturbed))

        receiver.deliver(cell, cell.pieces(len(images), piece_outputs))

    def _perturb_all(self, cell: ReadyCell, images: torch.Tensor, batch: Batch) -> torch.Tensor:
        return cell.pieces(
            len(images), lambda piece: self._perturb(cell, self._piece(images, piece), batch.good[piece], None)
        )

    def _perturb(self, cell: ReadyCell, images: torch.Tensor, indices: Sequence[int], model: Any) -> torch.Tensor:
        """Calls the setting's perturbation with the arguments that it takes."""
        setting, function = cell.setting, cell.perturbation
        assert function is not None
        call = gpu_call(function)
        samples = [self.source.ids[self.positions[index]] for index in indices]
        seeds = [setting.perturbation.sample_seed(sample, self.seed) for sample in samples]
        if "seeds" not in call.arguments and seeds:
            # It may use torch's global generator; the same batch then gets the same numbers.
            seed_everything(seeds[0])
        offered = {
            "images": images.clone(),  # it may modify them in place, and other cells share them
            "model": model,
            "seeds": seeds,
            "targets": sent(torch.tensor([self.targets[index] for index in indices]), images.device)
            if "targets" in call.arguments
            else None,
        }
        gradients = torch.set_grad_enabled(setting.adversarial_attack is not None)
        with gradients, access_log.watch(access_log.setting(setting.name)), stage("perturb", on_device=True):
            found = call.make(function, offered)
        return returned.perturbed("perturbation_fn_gpu", found, images)

    def _guard(self, cells: Sequence[ReadyCell], receiver: Receiver, compute: Callable[[], Any]) -> Any:
        """Calls a function; if it raises, only these cells fail.

        An error of the device may come from what it was given before. Where that is still under way, no cell fails:
        another worker computes them one at a time (`Shard.careful`).
        """
        try:
            with torch.no_grad(), catchable():
                return compute()
        except DeviceError:
            raise
        except Exception as error:  # models and settings are users' code: their errors fail their cells, not the run
            log.debug("%s on %s failed", cells[0].cell.model, cells[0].cell.setting, exc_info=True)
            if receiver.exact or not is_device_error(error):
                self._fail_all(cells, reason_of(error), receiver)
            if is_device_error(error):
                raise DeviceError(first_line(error)) from error
            return None

    @staticmethod
    def _fail_all(cells: Sequence[ReadyCell], reason: str, receiver: Receiver) -> None:
        for cell in cells:
            receiver.fail(cell, reason)


def _deliver_outputs(cell: ReadyCell, features: torch.Tensor, receiver: Receiver) -> None:
    receiver.deliver(cell, cell.steps.outputs(features))
