"""The specification of linear probes: hyperparameters, shots, validation split, search."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import DataError, DefinitionError

REVISION = 1  # of how probes are fitted; raised if the same features, targets and spec give a different probe
BINARY_REVISION = 2  # likewise, of L-BFGS for two classes: their penalty is scikit-learn's since
METHODS = ("adamw", "lbfgs")
_COARSE_STEP = 16
_SPANS = (8, 4, 2, 1)
_MOST_NAMED = 10  # classes that a message lists
_SHOTS, _VALIDATION = 0, 1  # independent streams of random numbers


@dataclass(frozen=True)
class ProbeSpec:
    """Specification of how a linear probe is fitted.

    Args:
        method: ``"adamw"``, the protocol of CLIP benchmark, or ``"lbfgs"``, the logistic regression of CLIP.
        fewshot_k: Training samples per class; None: all.
        seed: The seed of the shots, the validation split, the initial weights and the order of the samples.
        lr: The highest learning rate of AdamW; it falls to zero along a cosine.
        epochs: The epochs of AdamW.
        batch_size: The batch size of AdamW.
        normalize: Whether features are scaled to length 1.
        val_proportion: The share of the training samples, between 0 and 1, to choose the weight decay on. None: use the
            validation split if there is one, else do not search.

    Raises:
        DefinitionError: If a value is out of range.
    """

    method: str = "adamw"
    fewshot_k: int | None = None
    seed: int = 0
    lr: float = 0.1
    epochs: int = 10
    batch_size: int = 64
    normalize: bool = True
    val_proportion: float | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise DefinitionError(f"a linear probe is fitted by {' or '.join(METHODS)}, not by {self.method!r}")
        _check_seed(self.seed)
        if self.fewshot_k is not None:
            _check_shots(self.fewshot_k)
        for name in ("epochs", "batch_size"):
            _check_positive_integer(f"{name} of a linear probe", getattr(self, name))
        if not _is_number(self.lr) or not 0 < self.lr < math.inf:
            raise DefinitionError(f"the learning rate of a linear probe is a positive number, not {self.lr!r}")
        if self.val_proportion is not None:
            _check_proportion(self.val_proportion)

    def spec(self, classes: int | None = None) -> dict[str, Any]:
        """The values that determine the probe: the parameters of its method, and the revision of the code.

        Args:
            classes: The number of classes; None if it is not known, in which case there may be two.
        """
        binary = self.method == "lbfgs" and classes in (2, None)
        found: dict[str, Any] = {
            "probe": self.method,
            "revision": BINARY_REVISION if binary else REVISION,
            "fewshot_k": self.fewshot_k,
            "seed": self.seed,
            "normalize": bool(self.normalize),
            "val_proportion": self.val_proportion,
        }
        if self.method == "adamw":
            found |= {"lr": float(self.lr), "epochs": self.epochs, "batch_size": self.batch_size}
        return found


def few_shot(targets: Sequence[int], k: int, seed: int, num_classes: int) -> list[int]:
    """Positions of k samples of each class, in ascending order.

    They are the first k of each class in a random permutation that depends only on the number of targets and the seed,
    so the shots of a smaller k are a subset of those of a larger k.

    Args:
        targets: Class indices.
        k: The number of samples per class.
        seed: From 0 to 2³² - 1.
        num_classes: The number of classes; each must have k samples.

    Raises:
        DefinitionError: If k or the seed is out of range.
        DataError: If a class has fewer than k samples (names such classes and their counts), or a target is out of
            range.
    """
    import numpy as np

    _check_shots(k)
    labels = np.asarray(check_targets(targets, num_classes), dtype=np.int64)
    counts = np.bincount(labels, minlength=num_classes)
    short = np.flatnonzero(counts < k)
    if len(short):
        named = ", ".join(f"class {index} has {counts[index]}" for index in short[:_MOST_NAMED])
        rest = f" and {len(short) - _MOST_NAMED} more classes have fewer" if len(short) > _MOST_NAMED else ""
        raise DataError(
            f"{k} training samples of each of {num_classes} classes are needed, but {named}{rest}; choose a smaller"
            " fewshot_k, or a training split that has more"
        )
    order = _permutation(len(labels), seed, _SHOTS)
    by_class = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    taken = by_class[(starts[:, None] + np.arange(k)).ravel()]
    return [int(position) for position in np.sort(taken)]


def split_validation(count: int, proportion: float, seed: int) -> tuple[list[int], list[int]]:
    """Positions to train on and positions to choose the weight decay on, each in ascending order.

    Args:
        count: The number of samples.
        proportion: The share of validation samples, between 0 and 1; rounded so that each part has at least one.
        seed: From 0 to 2³² - 1.

    Raises:
        DefinitionError: If the proportion or the seed is out of range.
        DataError: If there are fewer than two samples.
    """
    _check_proportion(proportion)
    if count < 2:
        raise DataError(
            f"{count} training samples cannot be split into training and validation; at least 2 are needed, or no"
            " val_proportion"
        )
    held = min(max(round(count * proportion), 1), count - 1)
    order = _permutation(count, seed, _VALIDATION).tolist()
    return sorted(order[held:]), sorted(order[:held])


def check_targets(targets: Sequence[int], num_classes: int) -> list[int]:
    """The targets as integers.

    Args:
        targets: A sequence, an array or a tensor of class indices.
        num_classes: The number of classes; targets must be less.

    Raises:
        DataError: If a target is not an integer from 0 to ``num_classes`` - 1; names its position.
    """
    if num_classes < 1:
        raise DataError(f"a linear probe needs at least 1 class, not {num_classes}")
    values = targets.tolist() if hasattr(targets, "tolist") else list(targets)
    for position, value in enumerate(values):
        whole = hasattr(value, "__index__") and not isinstance(value, bool)
        if not whole or not 0 <= value < num_classes:
            raise DataError(
                f"a target of a linear probe is a class index from 0 to {num_classes - 1}, but that of sample"
                f" {position} is {value!r}"
            )
    return [int(value) for value in values]


def weight_decays(method: str) -> list[float]:
    """The 97 log-spaced values to search, ascending.

    Those of AdamW are CLIP benchmark's, from 1e-6 to 1e2. Those of L-BFGS are CLIP's λ (the inverse of scikit-learn's
    C), from 1e-6 to 1e6, eight in a decade.
    """
    import numpy as np

    highest = 2 if method == "adamw" else 6
    return [float(value) for value in np.logspace(-6, highest, num=97)]


def default_weight_decay(method: str, normalize: bool) -> float:
    """The weight decay without validation samples: none for AdamW, as in CLIP benchmark.

    For L-BFGS the λ of CLIP's example, LogisticRegression(C=0.316) on unnormalized embeddings. These are about 10
    long; at length 1 the same weight costs a hundredth.
    """
    if method == "adamw":
        return 0.0
    return 1 / 31.6 if normalize else 1 / 0.316


def find_peak(count: int, accuracies: Callable[[list[int]], Sequence[float]]) -> tuple[int, dict[int, float]]:
    """The index of the best weight decay: every 16th, then both neighbours of the best at distances 8, 4, 2 and 1.

    Ties go to the first: lower indices before higher ones, the left neighbour before the peak.

    Args:
        count: The number of weight decays.
        accuracies: Returns validation accuracies of some indices; called once per round, with new indices only.

    Returns:
        The index, and the accuracy of every index that was tried.
    """
    known: dict[int, float] = {}

    def best(indices: list[int]) -> int:
        new = [index for index in dict.fromkeys(indices) if index not in known]
        if new:
            known.update(zip(new, accuracies(new), strict=True))
        # As in CLIP benchmark: an accuracy of 0 is never better than the first weight decay.
        found, highest = 0, 0.0
        for index in indices:
            if known[index] > highest:
                found, highest = index, known[index]
        return found

    peak = best(list(range(0, count, _COARSE_STEP)))
    for span in _SPANS:
        peak = best([max(peak - span, 0), peak, min(peak + span, count - 1)])
    return peak, known


def _permutation(count: int, seed: int, stream: int) -> Any:
    """A permutation of ``range(count)``, int64 [count]."""
    import numpy as np

    _check_seed(seed)
    # not a Generator: numpy guarantees that the numbers of RandomState do not change
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, stream]))).permutation(count)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_positive_integer(what: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise DefinitionError(f"{what} is an integer of at least 1, not {value!r}")


def _check_shots(k: object) -> None:
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 1):
        raise DefinitionError(
            f"fewshot_k, the training samples of each class, is an integer of at least 1, not {k!r}; None takes all"
        )


def _check_seed(seed: object) -> None:
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise DefinitionError(f"the seed of a linear probe is an integer from 0 to 2**32 - 1, not {seed!r}")


def _check_proportion(proportion: object) -> None:
    if not _is_number(proportion) or not 0 < proportion < 1:  # type: ignore[operator]
        raise DefinitionError(f"val_proportion must be greater than 0 and less than 1, got {proportion!r}")
