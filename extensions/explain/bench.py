"""Values of a cell under other protocols: computed from stored outputs or embeddings, or estimated from some images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.axis import NotApplicableError, Stage, Variant
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.images import ImageRunner
from testbed.extensions.explain.pixels import Pixels
from testbed.extensions.explain.sampling import Draw, SampledValue, Side, estimate, from_another, reach
from testbed.extensions.explain.stored_model import REPEATED, difference
from testbed.extensions.explain.table import CALIBRATION, Table, Values, margins, values
from testbed.extensions.explain.texts import Heads, Texts, stored_texts

Arm = tuple[Variant, ...]
UNKNOWN = SampledValue(0.5, 1.0)
FLIPS_BELOW_FLOAT32 = 2.0  # answers
_HELD = 2**28  # maximum number of cached logits of whole evaluations


def combinable(one: Arm, other: Arm) -> bool:
    """Checks whether two combinations can be joined: they change different axes, and no variant stands alone."""
    return not (
        {variant.axis for variant in one} & {variant.axis for variant in other}
        or any(variant.alone for variant in (*one, *other))
    )


class Bench:
    """Evaluates combinations of variants.

    Args:
        cell: The cell.
        metrics: The names of the metrics.
        device: Device of models.
        gap: Largest difference between published and stored values.
    """

    def __init__(self, cell: EvaluatedCell, metrics: Sequence[str], device: str = "cpu", gap: float = 0.0) -> None:
        self.cell = cell
        self.gap = gap
        self.images = ImageRunner(cell, device)
        self.heads = Heads(cell, self.images.loaded)
        self.metrics = list(metrics)
        self._logits: OrderedDict[Texts | None, Array] = OrderedDict()
        self._counts: dict[Arm, Array] = {}
        self._sides_of: dict[tuple[Arm, Texts | None], list[Side]] = {}

    @cached_property
    def draw(self) -> Draw:
        """The samples in the order of evaluation."""
        table = self.cell.table(self.metrics[0])
        close = np.zeros(len(self.cell))
        close[values(table).rows] = margins(table)
        return Draw(close, self.gap)

    @cached_property
    def _embeddings(self) -> Array | None:
        try:
            return self.cell.embeddings
        except NotApplicableError:
            return None

    @cached_property
    def own(self) -> Pixels:
        """The protocol of the stored outputs.

        Raises:
            NotApplicableError: If the images cannot be run as before.
        """
        return self.images.own

    def why_not_reproduced(self) -> str:
        """Recomputes some stored outputs; returns why other protocols would not be comparable, empty if they are."""
        rows = self.draw.rows(min(REPEATED, len(self.cell)))[:REPEATED]
        self.images.run([self.own], rows)
        differs = self.images.failed.get(self.own, "")
        if not differs:
            outputs = self.images.outputs(self.own, rows)
            if self.cell.zero_shot:
                outputs = self.heads.logits(outputs, stored_texts(self.cell))
            differs = difference(outputs, self.cell.logits[rows], self.cell.dtype)
            differs += "; the model, its preprocessing or the images have changed since" if differs else ""
        return f"the stored outputs cannot be reproduced: {differs}" if differs else ""

    def sampled(self, arm: Arm) -> bool:
        """Returns whether the arm requires running images."""
        stages = {variant.stage for variant in arm}
        return Stage.IMAGES in stages or (Stage.TEXTS in stages and self._embeddings is None)

    def pixels(self, arm: Arm) -> Pixels:
        """The protocol to run for the arm.

        Raises:
            NotApplicableError: If a metric is not a sum over samples and cannot be estimated from some.
        """
        if CALIBRATION in self.metrics:
            raise NotApplicableError(f"{CALIBRATION} is not estimated from some of the images")
        changed = self.own
        for variant in arm:
            changed = variant.change(changed) if variant.stage == Stage.IMAGES else changed
        return replace(changed, geometry=changed.geometry and changed.geometry.effective())

    def texts(self, arm: Arm) -> Texts | None:
        """The arm's texts; None for the stored ones."""
        changes = [variant for variant in arm if variant.stage == Stage.TEXTS]
        if not changes:
            return None
        changed = stored_texts(self.cell)
        for variant in changes:
            changed = variant.change(changed)
        return changed

    # Values -------------------------------------------------------------------------------------------------------

    def exact(self, arm: Arm) -> tuple[SampledValue, ...]:
        """The exact values of an arm that requires no images."""
        return tuple(SampledValue(values.value) for values in self._scored(arm, self._stored(self.texts(arm)), None))

    def idle(self, variant: Variant) -> bool:
        """Returns whether a variant that needs no images changes nothing."""
        arm = (variant,)
        if variant.stage == Stage.TEXTS:
            texts = self.texts(arm)
            return texts is not None and self.heads.same(texts, stored_texts(self.cell))
        pairs = zip(self._scored(arm, self.cell.logits, None), self._scored((), self.cell.logits, None), strict=True)
        return all(
            np.array_equal(getattr(new, name), getattr(old, name))
            for new, old in pairs
            for name in ("rows", "correct", "weights")
        )

    def rows(self, arm: Arm, size: int) -> Array:
        """The positions of about ``size`` samples that count under the arm: integers [m], in ascending order."""
        rows, counting = self.draw.rows(size), self._counting(arm)
        return rows if counting is None else rows[counting[rows]]

    def count(self, arm: Arm) -> int:
        """The number of samples that count under the arm, according to its variants of scoring."""
        counting = self._counting(arm)
        return len(self.cell) if counting is None else int(counting.sum())

    def _counting(self, arm: Arm) -> Array | None:
        """Boolean array [n]; None for all."""
        scoring = tuple(variant for variant in arm if variant.stage == Stage.SCORES)
        if not scoring:
            return None
        if scoring not in self._counts:
            counting = np.zeros(len(self.cell), dtype=bool)
            counting[self._scored(scoring, self.cell.logits, None)[0].rows] = True
            self._counts[scoring] = counting
        return self._counts[scoring]

    def estimated(self, arm: Arm, size: int, outputs: Array | None = None) -> tuple[SampledValue, ...]:
        """Estimates the values from about ``size`` samples with available outputs.

        Args:
            arm: The variants.
            size: See `Draw.rows`.
            outputs: Outputs of these samples, to use instead of those of the arm's own protocol.
        """
        if not len(self.rows(arm, size)):
            return (UNKNOWN,) * len(self.metrics)
        chances = self.draw.probabilities(size)
        found = (estimate(*sides, chances) for sides in self._compared(arm, size, outputs))
        return tuple(replace(value, error=max(value.error, self._floor(arm))) for value in found)

    def _floor(self, arm: Arm) -> float:
        """The minimal error: other processors round differently below float32, which flips some answers."""
        pixels = self.pixels(arm)
        return FLIPS_BELOW_FLOAT32 / len(self.cell) if pixels.dtype not in (None, "float32", self.own.dtype) else 0.0

    def from_another(
        self,
        arm: Arm,
        size: int,
        base: Arm,
        base_size: int,
        known: Sequence[SampledValue],
        outputs: Array | None = None,
    ) -> tuple[SampledValue, ...]:
        """Estimates the values from about ``size`` samples and from another arm that was run on more.

        Args:
            arm: Variants of images.
            size: See `Draw.rows`.
            base: A subset of these variants.
            base_size: At least ``size``.
            known: Its values.
            outputs: See `estimated`.
        """
        rows, more = self.draw.rows(size), self.draw.rows(base_size)
        chances, base_chances = self.draw.probabilities(size), self.draw.probabilities(base_size)
        protocol, other = self.pixels(arm), self.pixels(base)
        raw = self.images.outputs(protocol, rows) if outputs is None else outputs
        sides = zip(
            self._stored_sides((), None),
            known,
            self._sides(base, self._new_logits(self.images.outputs(other, more), None, other), more),
            self._sides(arm, self._new_logits(raw, None, protocol), rows),
            strict=True,
        )
        return tuple(from_another(*side, base_chances, chances) for side in sides)

    def reach(self, arm: Arm, size: int) -> float:
        """An upper bound for the share of samples whose answers an arm flips, given about ``size`` of them."""
        return max(reach(*sides) for sides in self._compared(arm, size))

    def _compared(self, arm: Arm, size: int, outputs: Array | None = None) -> Iterator[tuple[Side, Side, Side]]:
        """For each metric: all samples as stored, the drawn ones as stored, and the drawn ones under the arm."""
        rows = self.rows(arm, size)
        texts = self.texts(arm)
        raw = self.images.outputs(self.pixels(arm), rows) if outputs is None else outputs
        new = self._new_logits(raw, texts, self.pixels(arm))
        stored = self._stored_sides(arm, texts if self._embeddings is not None else None)
        for all_samples, now in zip(stored, self._sides(arm, new, rows), strict=True):
            yield all_samples, all_samples.take(rows), now

    def _stored_sides(self, arm: Arm, texts: Texts | None) -> list[Side]:
        """All samples as stored, under the variants of scoring and of texts."""
        key = tuple(variant for variant in arm if variant.stage == Stage.SCORES), texts
        if key not in self._sides_of:
            self._sides_of[key] = self._sides(arm, self._stored(texts), None)
        return self._sides_of[key]

    def added(self, arm: Arm, size: int) -> Array:
        """Predicts the outputs of several changes of the images as the sum of their single effects."""
        rows = self.draw.rows(size)
        own = self._own(rows)
        total = own.copy()
        for variant in arm:
            if variant.stage == Stage.IMAGES:
                total += self.images.outputs(self.pixels((variant,)), rows) - own
        return total

    def _own(self, rows: Array) -> Array:
        """The model's own outputs, stored ones if available."""
        stored = self._embeddings if self.cell.zero_shot else self.cell.logits
        if stored is not None:
            return stored[rows].astype(np.float32)
        self.images.run([self.own], rows)
        return self.images.outputs(self.own, rows)

    def _new_logits(self, outputs: Array, texts: Texts | None, pixels: Pixels) -> Array:
        if not self.cell.zero_shot:
            return outputs
        own = self.own
        network = pixels.weights, pixels.activation, pixels.dtype or self.cell.dtype
        same = network == (own.weights, own.activation, own.dtype)  # then texts are those of the stored head
        return self.heads.logits(outputs, texts or stored_texts(self.cell), None if same else network)

    def _stored(self, texts: Texts | None) -> Array:
        """Logits of all samples: the stored ones, or those of stored embeddings with other texts."""
        if texts is None:
            return self.cell.logits
        if texts not in self._logits:
            self._logits[texts] = self.heads.logits(self.cell.embeddings, texts)
            while sum(logit.size for logit in self._logits.values()) > _HELD and len(self._logits) > 1:
                self._logits.popitem(last=False)
        return self._logits[texts]

    def _sides(self, arm: Arm, logits: Array, rows: Array | None) -> list[Side]:
        return [Side(values(table), margins(table)) for table in self._tables(arm, logits, rows)]

    def _scored(self, arm: Arm, logits: Array, rows: Array | None) -> list[Values]:
        return [values(table) for table in self._tables(arm, logits, rows)]

    def _tables(self, arm: Arm, logits: Array, rows: Array | None) -> Iterator[Table]:
        for metric in self.metrics:
            table: Table = self.cell.table(metric, logits, rows)
            for variant in arm:
                table = variant.change(table) if variant.stage == Stage.SCORES else table
            yield table
