"""Linear probes on stored embeddings: fitting, the search for the best weight decay, and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from testbed.errors import DataError, DefinitionError
from testbed.tasks.probe.adamw import accuracies, train_adamw
from testbed.tasks.probe.lbfgs import fit_lbfgs
from testbed.tasks.probe.spec import (
    ProbeSpec,
    check_targets,
    default_weight_decay,
    few_shot,
    find_peak,
    split_validation,
    weight_decays,
)

_BLOCK = 2**14  # rows converted at a time


@dataclass
class Probe:
    """A linear classifier of embeddings.

    Args:
        weight: Float32 [D, C], on the CPU.
        bias: Float32 [C], on the CPU.
        weight_decay: What it was fitted with: AdamW's weight decay, or the L2 penalty of L-BFGS; None for a probe that
            was kept, whose description has it.
        info: How it was found, in plain values: ``searched``, pairs of weight decay and validation accuracy in
            ascending order; ``train``, ``validation`` and ``fitted_on``, numbers of samples; ``dropped_train`` and
            ``dropped_validation``, those left out because a feature was not finite; for L-BFGS ``iterations`` and
            ``converged`` of the last fit.
        normalize: Whether features are scaled to length 1 before.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    weight_decay: float | None
    info: dict[str, Any] = field(default_factory=dict)
    normalize: bool = True


def fit_probe(
    features: torch.Tensor,
    targets: Sequence[int] | torch.Tensor,
    num_classes: int,
    spec: ProbeSpec,
    validation: tuple[torch.Tensor, Sequence[int] | torch.Tensor] | None = None,
    device: str = "cpu",
) -> Probe:
    """Fits a linear probe.

    With validation samples (a validation split or a share of the training samples), the weight decay is chosen on them.
    The probe is then fitted on both together, or only on the training samples if these are few-shot. Otherwise the
    weight decay is that of `default_weight_decay`.

    The validation share is split off first. Shots are drawn from the rest, including samples with non-finite features.

    Args:
        features: Float [n, D], of any precision; rows with a NaN or infinite value are dropped.
        targets: Class indices [n].
        num_classes: C; a class need not occur, unless the spec asks for shots.
        spec: How to fit it.
        validation: Features [m, D] and targets [m] of a validation split, to choose the weight decay.
        device: The device. Random numbers do not depend on it.

    Raises:
        DataError: If shapes or targets do not fit, a class has too few samples for the shots, or no row is left.
        DefinitionError: If both ``validation`` and the spec's ``val_proportion`` are given, or the training diverges.
    """
    with torch.no_grad(), torch.autocast(torch.device(device).type, enabled=False):
        data = _Data.select(features, targets, num_classes, spec, validation, device)
        classifier = _LBFGS if spec.method == "lbfgs" else _AdamW
        return _search(classifier(data, num_classes, spec), data, spec)


def probe_logits(features: torch.Tensor, probe: Probe) -> torch.Tensor:
    """Maps features [m, D] of any precision to float32 logits [m, C], on the device of the features.

    Computed in float64 if the device supports it, so that the batch size has no effect. Non-finite rows give non-finite
    logits.

    Raises:
        DataError: If D differs from the probe's.
    """
    _check_shape("the features to be classified", features)
    if features.shape[1] != len(probe.weight):
        raise DataError(
            f"the linear probe was fitted on {len(probe.weight)} features, got {features.shape[1]}; both must come from"
            " the same model"
        )
    device = features.device
    exact = torch.float32 if device.type == "mps" else torch.float64
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        given = features.to(exact)
        if probe.normalize:
            given = torch.nn.functional.normalize(given, dim=-1)
        return torch.addmm(probe.bias.to(device, exact), given, probe.weight.to(device, exact)).float()


@dataclass
class _Data:
    """The used samples, on the device: the training samples, then the validation samples.

    Args:
        features: Float32 [n + m, D].
        targets: Int64 [n + m].
        train: n.
        dropped: The number of dropped rows of each.
    """

    features: torch.Tensor
    targets: torch.Tensor
    train: int
    dropped: tuple[int, int]

    @classmethod
    def select(
        cls,
        features: torch.Tensor,
        targets: Sequence[int] | torch.Tensor,
        num_classes: int,
        spec: ProbeSpec,
        validation: tuple[torch.Tensor, Sequence[int] | torch.Tensor] | None,
        device: str,
    ) -> _Data:
        """Splits, draws the shots, drops non-finite rows, converts and normalizes."""
        if validation is not None and spec.val_proportion is not None:
            raise DefinitionError(
                "a linear probe was given a validation split and val_proportion; give only one of them"
            )
        labels = _checked("training", features, targets, num_classes)
        train = torch.arange(len(labels))
        held_features, held_labels, held = features[:0], labels, train[:0]
        if spec.val_proportion is not None:
            kept, taken = split_validation(len(labels), spec.val_proportion, spec.seed)
            train, held, held_features = torch.tensor(kept), torch.tensor(taken), features
        elif validation is not None:
            held_features = validation[0]
            held_labels = _checked("validation", held_features, validation[1], num_classes)
            held = torch.arange(len(held_labels))
            _check_same_width(features, held_features)
        if spec.fewshot_k is not None:
            train = train[few_shot(labels[train].tolist(), spec.fewshot_k, spec.seed, num_classes)]
        return cls._gather(
            [("training", features, labels, train), ("validation", held_features, held_labels, held)], spec, device
        )

    @classmethod
    def _gather(
        cls, parts: list[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]], spec: ProbeSpec, device: str
    ) -> _Data:
        """Gathers rows of two tables."""
        usable = [rows[_finite(table, rows)] for _, table, _, rows in parts]
        for (name, _, _, rows), kept in zip(parts, usable, strict=True):
            if len(rows) and not len(kept):
                raise DataError(
                    f"none of the {len(rows)} {name} samples of the linear probe has features that are all finite; see"
                    " whether its images can be read, and what the model makes of them"
                )
        train, held = map(len, usable)
        gathered = torch.empty(train + held, parts[0][1].shape[1], dtype=torch.float32, device=device)
        for (_, table, _, _), kept, start in zip(parts, usable, (0, train), strict=True):
            for block in range(0, len(kept), _BLOCK):
                rows = kept[block : block + _BLOCK]
                gathered[start + block : start + block + len(rows)] = _converted(table, rows, spec.normalize)
        labels = torch.cat([targets[kept] for (_, _, targets, _), kept in zip(parts, usable, strict=True)])
        dropped = (len(parts[0][3]) - train, len(parts[1][3]) - held)
        return cls(gathered, labels.to(device), train, dropped)


class _AdamW:
    """The protocol of CLIP benchmark."""

    def __init__(self, data: _Data, num_classes: int, spec: ProbeSpec) -> None:
        self.data, self.num_classes, self.spec = data, num_classes, spec

    def accuracies(self, decays: list[float]) -> list[float]:
        """Validation accuracies of some weight decays, trained in parallel."""
        data, count = self.data, self.data.train
        trained = train_adamw(data.features[:count], data.targets[:count], self.num_classes, decays, self.spec)
        return accuracies(data.features[count:], data.targets[count:], *trained)

    def fit(self, decay: float, count: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Fits the first samples: weights [C, D], bias [C], information about the fit."""
        data = self.data
        weights, biases = train_adamw(data.features[:count], data.targets[:count], self.num_classes, [decay], self.spec)
        return weights[0].cpu(), biases[0].cpu(), {}


class _LBFGS:
    """The logistic regression of CLIP."""

    def __init__(self, data: _Data, num_classes: int, spec: ProbeSpec) -> None:
        self.data, self.num_classes = data, num_classes

    def accuracies(self, decays: list[float]) -> list[float]:
        """Validation accuracies of some penalties, one after another."""
        data, device = self.data, self.data.features.device
        found = []
        for decay in decays:
            weight, bias, _ = self.fit(decay, data.train)
            held = data.features[data.train :], data.targets[data.train :]
            found += accuracies(*held, weight[None].to(device), bias[None].to(device))
        return found

    def fit(self, decay: float, count: int) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:
        """Fits the first samples: weights [C, D], bias [C], information about the fit."""
        data = self.data
        weight, bias, iterations, converged = fit_lbfgs(
            data.features[:count], data.targets[:count], self.num_classes, decay
        )
        return weight, bias, {"iterations": iterations, "converged": converged}


def _search(classifier: _AdamW | _LBFGS, data: _Data, spec: ProbeSpec) -> Probe:
    """The probe with the best weight decay."""
    held = len(data.targets) - data.train
    decay, count = default_weight_decay(spec.method, spec.normalize), data.train
    searched: list[list[float]] = []
    if held:
        grid = weight_decays(spec.method)
        peak, known = find_peak(len(grid), lambda indices: classifier.accuracies([grid[index] for index in indices]))
        decay, searched = grid[peak], [[grid[index], known[index]] for index in sorted(known)]
        count = data.train if spec.fewshot_k is not None else len(data.targets)
    weight, bias, how = classifier.fit(decay, count)
    if not (weight.isfinite().all() and bias.isfinite().all()):
        raise DefinitionError(
            f"the linear probe diverged (lr {spec.lr:g}, weight decay {decay:g}); choose a smaller learning rate"
        )
    info = {
        "method": spec.method,
        "train": data.train,
        "validation": held,
        "fitted_on": count,
        "dropped_train": data.dropped[0],
        "dropped_validation": data.dropped[1],
        "searched": searched,
        **how,
    }
    return Probe(weight.T.contiguous(), bias, decay, info, bool(spec.normalize))


def _checked(
    name: str, features: torch.Tensor, targets: Sequence[int] | torch.Tensor, num_classes: int
) -> torch.Tensor:
    """The targets as int64 [n] on the CPU, after checking that they match the features [n, D]."""
    _check_shape(f"the {name} features of a linear probe", features)
    labels = check_targets(targets, num_classes)  # type: ignore[arg-type]
    if len(labels) != len(features):
        raise DataError(f"a linear probe was given {len(features)} {name} features and {len(labels)} targets")
    if not labels:
        raise DataError(f"a linear probe needs {name} samples; there are none")
    return torch.tensor(labels, dtype=torch.int64)


def _check_shape(what: str, features: torch.Tensor) -> None:
    if features.ndim != 2 or not features.shape[1] or not features.is_floating_point():
        raise DataError(
            f"{what} must be floating-point numbers [samples, width], got {str(features.dtype).removeprefix('torch.')}"
            f" {list(features.shape)}"
        )


def _check_same_width(features: torch.Tensor, held: torch.Tensor) -> None:
    if features.shape[1] != held.shape[1]:
        raise DataError(
            f"training features are {features.shape[1]} wide, validation features {held.shape[1]}; both must come from"
            " the same model"
        )


def _finite(table: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Returns which rows are finite in float32: bool [rows] on the CPU."""
    found = [
        table[rows[start : start + _BLOCK].to(table.device)].float().isfinite().all(1).cpu()
        for start in range(0, len(rows), _BLOCK)
    ]
    return torch.cat(found) if found else torch.zeros(0, dtype=torch.bool)


def _converted(table: torch.Tensor, rows: torch.Tensor, normalize: bool) -> torch.Tensor:
    """Some rows as float32, optionally normalized to length 1, except rows of zeros."""
    values = table[rows.to(table.device)].float()
    if not normalize:
        return values
    exact = torch.float32 if values.device.type == "mps" else torch.float64
    lengths = torch.linalg.vector_norm(values, dim=1, keepdim=True, dtype=exact)
    normalized: torch.Tensor = (values / lengths.clamp_min(1e-12)).float()
    return normalized
