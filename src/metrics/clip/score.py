"""CLIPScore as a metric that is updated batch by batch, and as a function; they take what torchmetrics' take.

Where torchmetrics is installed `CLIPScore` is a `torchmetrics.Metric`: it works in collections, trackers and Lightning,
and reduces over processes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal
from weakref import WeakSet

import numpy as np
import torch

from testbed.arrays import Array
from testbed.metrics.clip._plain_metric import PlainMetric
from testbed.metrics.clip.encoders import Encoder, encoder_of, idle_device
from testbed.metrics.clip.inputs import RANGES, ClipInputError, Given, Side, read_side
from testbed.metrics.clip.pairs import pair_cosines
from testbed.metrics.clip.tokens import TRUNCATIONS, Truncation

DEFAULT_MODEL = "openai/clip-vit-large-patch14"
CLAMPS = ("mean", "pair")
_SUMS = ("total", "pairwise_total", "n_samples", "zero_norms", "not_finite")
_SETUP = "setup"
_ONE = 2**32  # of a cosine; sums of whole numbers are the same in any order and over any number of processes


def _base() -> Any:
    try:
        return import_module("torchmetrics").Metric
    except ImportError:
        return PlainMetric


_Base: Any = _base()


@dataclass(frozen=True)
class _Pairs:
    """Cosines float64 [n] of the pairs of one update, and how many of them have an embedding that is zero."""

    cosines: Array
    zero_norms: int


class CLIPScore(_Base):  # type: ignore[misc]
    """The mean of 100 · cosine of embeddings of images and texts, of two images, or of two texts.

    A pair of which an embedding is zero has the cosine 0, and `zero_norms` counts it. Where an embedding is not finite
    the score is NaN, with a warning.

    Args:
        model_name_or_path: One of OpenAI's four names (from transformers, else from open_clip), one of LongCLIP's two,
            the name of a dual encoder of testbed, a definition, a loaded dual encoder, or a function without arguments
            that returns (model, processor) of transformers, which is then called as torchmetrics calls it.
        clamp: ``"mean"``: the mean is clamped at 0, as in torchmetrics. ``"pair"``: each pair is.
        truncation: The treatment of a text that is longer than the model takes. ``"keep_end"``: it is cut before its
            end token. ``"upstream"``: it loses the end token, as in torchmetrics.
        data_range: 255 or 1: the upper end of float images. Those of integers go from 0 to 255.
        batch_size: The number of images or texts per batch.
        device: The device for encoding. Default: that of the first image; for pairs of texts a GPU if there is one. A
            loaded dual encoder that is handed over stays where it is.
        keep_cosines: True to keep the cosine of each pair, see `cosines`.
        **kwargs: Those of `torchmetrics.Metric`.

    Raises:
        UnknownClipError: A `ValueError`: if nothing has that name.
        MissingExtraError: If the model needs a package that is not installed.
        WeightsError: If its weights are missing.

    Example:
        >>> metric = CLIPScore("openai/clip-vit-base-patch16")  # doctest: +SKIP
        >>> metric.update(torch.randint(255, (3, 224, 224)), "a photo of a cat")  # doctest: +SKIP
        >>> metric.compute()  # doctest: +SKIP
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 100.0
    feature_network = "model"  # what torchmetrics' FeatureShare shares

    total: torch.Tensor
    pairwise_total: torch.Tensor
    n_samples: torch.Tensor
    zero_norms: torch.Tensor
    not_finite: torch.Tensor
    kept: Any

    def __init__(
        self,
        model_name_or_path: str | Callable[[], tuple[Any, Any]] | Any = DEFAULT_MODEL,
        *,
        clamp: Literal["mean", "pair"] = "mean",
        truncation: Truncation = "keep_end",
        data_range: float = 255.0,
        batch_size: int = 64,
        device: str | torch.device | None = None,
        keep_cosines: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if clamp not in CLAMPS:
            raise ValueError(f"clamp is one of {', '.join(CLAMPS)}, not {clamp!r}")
        self.clamp = clamp
        self.keep_cosines = keep_cosines
        self._scorer = _Scorer(model_name_or_path, truncation, data_range, batch_size, device)
        for name in _SUMS:
            self.add_state(name, torch.tensor(0, dtype=torch.int64), dist_reduce_fx="sum")
        if not isinstance(self, PlainMetric):
            # A collection has metrics whose states are equal after the first update share them from then on.
            self.add_state(_SETUP, torch.tensor(self._scorer.setup(), dtype=torch.int64), dist_reduce_fx="max")
        if keep_cosines:
            self.add_state("kept", [], dist_reduce_fx="cat")

    @property
    def model(self) -> Any:
        """The network. It is not a submodule: a checkpoint of a model that has this metric does not contain CLIP.

        Set to that of another `CLIPScore`, as `torchmetrics.wrappers.FeatureShare` does, the metric uses the same.
        """
        return self._scorer.encoder.network

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets attributes as usual, except that a shared network does not become a submodule."""
        if name == CLIPScore.feature_network:
            self._scorer = self._scorer.sharing(getattr(value, "network", value))
        else:
            super().__setattr__(name, value)

    @property
    def processor(self) -> Any:
        """The processor of transformers, or the tokenizer."""
        return self._scorer.encoder.processor

    @property
    def cosines(self) -> torch.Tensor:
        """The cosine of each pair so far: float32 [n], those of this process; NaN where an embedding is not finite.

        Raises:
            ValueError: If they are not kept.
        """
        if not self.keep_cosines:
            raise ValueError("the cosines are not stored: create the metric with keep_cosines=True")
        parts = [self.kept] if isinstance(self.kept, torch.Tensor) else self.kept
        return torch.cat([torch.zeros(0), *(part.float().cpu() for part in parts)])

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], exclude_state: Sequence[str] = "") -> Any:
        """Applies as torchmetrics does, except that `set_dtype` keeps the sums whole, which exceed floats."""
        return super()._apply(fn, (*_SUMS, _SETUP) if self._dtype_convert else exclude_state)

    def update(self, source: Given, target: Given) -> None:
        """Adds pairs: the first of source with the first of target, and so on.

        Args:
            source: Images, a tensor [N, C, H, W] or [C, H, W] or a list of tensors [C, H, W]; or texts, a string or a
                list. Images are uint8 or other integers from 0 to 255, or floats from 0 to ``data_range``.
            target: The same; images and texts go with each other.

        Raises:
            ClipInputError: A `ValueError`: if it is neither, or empty, or an image is not [C, H, W], or out of range,
                or the numbers of items differ.
        """
        # `forward` passes its embeddings on.
        pairs = source if isinstance(source, _Pairs) else self._scorer(source, target)
        finite = ~np.isnan(pairs.cosines)
        whole = np.rint(pairs.cosines[finite] * _ONE).astype(np.int64)
        self.total += int(whole.sum())
        self.pairwise_total += int(np.maximum(whole, 0).sum())
        self.n_samples += len(pairs.cosines)
        self.zero_norms += pairs.zero_norms
        self.not_finite += int((~finite).sum())
        if self.keep_cosines:
            # Of the metric's own type: torchmetrics uses an empty tensor of it for a process without pairs.
            self.kept.append(torch.from_numpy(pairs.cosines).to(self.device, self.dtype))

    def forward(self, source: Given, target: Given) -> Any:
        """Adds pairs as `update` does, and returns the score of them alone. Encodes them once.

        Raises:
            ClipInputError: As `update`; the pairs before these are kept then.
        """
        return super().forward(self._scorer(source, target), None)

    def compute(self) -> torch.Tensor:
        """The score of all pairs since the last reset: a float32 scalar from 0 to 100.

        Raises:
            ClipInputError: A `ValueError`: if there are no pairs.
        """
        if isinstance(self, PlainMetric):
            with self.sync_context():
                return self._value(self.clamp)
        return self._value(self.clamp)

    def compute_pairwise(self) -> torch.Tensor:
        """The mean of 100 · max(cosine, 0), whatever ``clamp`` is; else as `compute`."""
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync, should_unsync=self._should_unsync
        ):
            return self._value("pair")

    def _value(self, clamp: str) -> torch.Tensor:
        count = int(self.n_samples)
        if count == 0:
            raise ClipInputError("there are no pairs to score: call update(source, target) before compute()")
        total = int(self.total if clamp == "mean" else self.pairwise_total)
        value = float("nan") if int(self.not_finite) else max(100 * total / (_ONE * count), 0.0)
        return torch.tensor(value, dtype=torch.float32, device=self.device)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """A figure of one value or several, as torchmetrics draws it.

        Args:
            val: A result of `forward` or `compute`, or a list of such; default the current result of `compute`.
            ax: A matplotlib axis to draw on.

        Returns:
            (figure, axis).

        Raises:
            MissingExtraError: If torchmetrics is not installed.
            ModuleNotFoundError: If matplotlib is not.
        """
        return self._plot(val, ax)


def clip_score(
    source: Given,
    target: Given,
    model_name_or_path: str | Callable[[], tuple[Any, Any]] | Any = DEFAULT_MODEL,
    *,
    clamp: Literal["mean", "pair"] = "mean",
    truncation: Truncation = "keep_end",
    data_range: float = 255.0,
    batch_size: int = 64,
    device: str | torch.device | None = None,
) -> torch.Tensor:
    """The CLIPScore of some pairs. It loads a model that is named each time; `CLIPScore` loads it once.

    Args:
        source: As for `CLIPScore.update`.
        target: The same.
        model_name_or_path: This and the others as for `CLIPScore`.
        clamp: The values that are clamped at 0.
        truncation: The treatment of texts that are too long.
        data_range: The upper end of float images.
        batch_size: The number of images or texts per batch.
        device: The device for encoding.

    Returns:
        A float32 scalar from 0 to 100, on the device of the first image; NaN where an embedding is not finite.

    Raises:
        ClipInputError: As `CLIPScore.update`.
    """
    if clamp not in CLAMPS:
        raise ValueError(f"clamp is one of {', '.join(CLAMPS)}, not {clamp!r}")
    scorer = _Scorer(model_name_or_path, truncation, data_range, batch_size, device)
    cosines = scorer(source, target).cosines
    mean = np.mean(np.maximum(cosines, 0)) if clamp == "pair" else np.maximum(np.mean(cosines), 0)
    return torch.tensor(100 * float(mean), dtype=torch.float32, device=scorer.image_device)


_SCORERS: WeakSet[_Scorer] = WeakSet()  # those in use, to be found by their networks


class _Scorer:
    """From sources and targets to cosines.

    Copies of a metric share it, and with it the network. Pickled with the name of a model, it loads that anew.
    """

    def __init__(
        self, model: Any, truncation: Truncation, data_range: float, batch_size: int, device: str | torch.device | None
    ) -> None:
        if truncation not in TRUNCATIONS:
            raise ValueError(f"truncation is one of {', '.join(TRUNCATIONS)}, not {truncation!r}")
        if data_range not in RANGES:
            raise ValueError(f"data_range is 255 or 1, not {data_range!r}")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise ValueError(f"batch_size is an integer larger than 0, not {batch_size!r}")
        self.model = model
        self.truncation: Truncation = truncation
        self.data_range = data_range
        self.batch_size = batch_size
        self.device = None if device is None else torch.device(device)
        self.image_device = torch.device("cpu")
        self.encoder: Encoder = encoder_of(model, truncation, self.device)
        self._warned = False
        _SCORERS.add(self)

    def sharing(self, network: Any) -> _Scorer:
        """The same scorer with the network of another one.

        Raises:
            ValueError: If the network is that of no scorer, or of one with another model or truncation.
        """
        other = next((scorer for scorer in list(_SCORERS) if scorer.encoder.network is network), None)
        if other is None or other.setup() != self.setup():
            raise ValueError(
                f"the network of {self.model!r} can be replaced by that of a CLIPScore with the same model and options"
            )
        return other

    def setup(self) -> int:
        """Returns a number that differs between setups with different cosines: another model, truncation or range."""
        model = self.model if isinstance(self.model, str) else id(self.model)
        described = repr((model, self.truncation, float(self.data_range))).encode()
        return int.from_bytes(hashlib.blake2b(described, digest_size=5).digest(), "big")

    def __deepcopy__(self, memo: dict[int, Any]) -> _Scorer:
        return self

    def __getstate__(self) -> dict[str, Any]:
        named = isinstance(self.model, str)
        # What is not named: the encoder alone, since the function or definition that it is from may be a local one.
        return {**vars(self), "encoder": None} if named else {**vars(self), "model": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if state["encoder"] is None:
            self.encoder = encoder_of(self.model, self.truncation, self.device)
        _SCORERS.add(self)

    def __call__(self, source: Given, target: Given) -> _Pairs:
        sides = [read_side("source", source, self.data_range), read_side("target", target, self.data_range)]
        if len(sides[0].items) != len(sides[1].items):
            raise ClipInputError(
                "Expected the number of source and target examples to be the same but got"
                f" {len(sides[0].items)} and {len(sides[1].items)}"
            )
        self._warn_dim(sides)
        self._place(sides)
        left, right = self._embedded(sides)
        cosines = pair_cosines(left, right)
        if np.isnan(cosines).any():
            warnings.warn(
                f"{np.isnan(cosines).sum()} of {len(cosines)} pairs have an embedding that is not finite; the score is"
                " NaN",
                UserWarning,
                stacklevel=3,
            )
        return _Pairs(cosines, int((~left.any(axis=1) | ~right.any(axis=1)).sum()))

    def _warn_dim(self, sides: Sequence[Side]) -> None:
        if not self._warned and any(side.dim for side in sides):
            self._warned = True
            warnings.warn(
                "the float images lie between 0 and 1, and are taken as nearly black ones with values up to 255; for"
                " images in [0, 1] make the metric with data_range=1.0",
                UserWarning,
                stacklevel=4,
            )

    def _place(self, sides: Sequence[Side]) -> None:
        devices = [side.device for side in sides if side.device is not None]
        self.image_device = devices[0] if devices else torch.device("cpu")
        if self.device is not None:
            self.encoder.to(self.device)
        elif not self.encoder.stays:
            self.encoder.to(devices[0] if devices else idle_device())

    def _embedded(self, sides: Sequence[Side]) -> list[Array]:
        """The embeddings of both sides, [n, D] each. What is equal is encoded once, also across the sides."""
        embedded, rows = {}, {}
        for kind, encode in (("image", self.encoder.images), ("text", self.encoder.texts)):
            items = {
                key: item
                for side in sides
                if side.kind == kind
                for key, item in zip(side.keys, side.items, strict=True)
            }
            rows[kind] = {key: row for row, key in enumerate(items)}
            different = list(items.values())
            parts = []
            for start in range(0, len(different), self.batch_size):
                with torch.no_grad():
                    part = encode(different[start : start + self.batch_size])
                parts.append(part.detach().float().cpu().numpy())
            if parts:
                embedded[kind] = np.concatenate(parts)
        return [embedded[side.kind][[rows[side.kind][key] for key in side.keys]] for side in sides]
