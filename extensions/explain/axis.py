"""Axes: differences between evaluations, each with its variants."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError
from testbed.extensions.explain.table import NotApplicableError as NotApplicableError

if TYPE_CHECKING:
    from testbed.extensions.explain.cell import EvaluatedCell


MARK = "~"  # in names of models and settings, before the axis and the variant


class Stage(IntEnum):
    """The inputs that a variant requires, the cheapest first."""

    SCORES = 1  # stored outputs
    TEXTS = 2  # stored image embeddings, and the text encoder
    IMAGES = 3  # the model, on some of the images
    ANSWERS = 4  # a model that answers in text, asked again


REPLACES, RESHAPES, CHANGES = 0, 1, 2  # order of application of variants of one stage


@dataclass(frozen=True)
class Variant:
    """A protocol that differs from the stored one in one respect.

    Attributes:
        axis: The name of its axis; two variants of one axis cannot be combined.
        name: Description of the difference.
        stage: Its required inputs.
        change: Function from a `Table`, `Texts`, `Pixels` or `Asked` to another one, by stage. Variants of one stage
            are applied by `in_order`.
        order: See `Axis`.
        alone: See `Axis`.
    """

    axis: str
    name: str
    stage: Stage
    change: Callable[[Any], Any]
    order: int = CHANGES
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.axis}: {self.name}"


@dataclass(frozen=True)
class Axis:
    """A difference between evaluations.

    Attributes:
        name: Display name, such as ``interpolation``.
        stage: The required inputs of its variants.
        variants: Function from a cell to (name, change) of each variant; raises `NotApplicableError` if there are none.
        order: Order of its changes within the stage: `REPLACES` (other weights, other labels) before `RESHAPES` (new
            sizes) before `CHANGES`, so that none undoes another.
        alone: Whether its variants cannot be combined with those of other axes.
    """

    name: str
    stage: Stage
    variants: Callable[[EvaluatedCell], Iterable[tuple[str, Callable[[Any], Any]]]]
    order: int = CHANGES
    alone: bool = False

    def of(self, cell: EvaluatedCell) -> list[Variant]:
        """Returns the variants for a cell."""
        found = self.variants(cell)
        return [Variant(self.name, name, self.stage, change, self.order, self.alone) for name, change in found]


def in_order(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Sorts variants in the order of application."""
    return tuple(sorted(variants, key=lambda each: (each.stage, each.order, each.axis)))


_added: dict[str, Axis] = {}


def add_axis(axis: Axis) -> Axis:
    """Adds an axis, for plug-ins and for the modules of `testbed.extensions.explain.axes`.

    Raises:
        DefinitionError: If the name is taken.
    """
    if _added.setdefault(axis.name, axis) is not axis:
        raise DefinitionError(f"there are two axes {axis.name!r}; give one of them another name")
    return axis


def axes() -> list[Axis]:
    """All axes that require no asking of a model, the cheapest first."""
    return sorted((axis for axis in _all() if axis.stage != Stage.ANSWERS), key=lambda each: each.stage)


def asked_axes() -> list[Axis]:
    """The axes that require asking a model its questions again."""
    return [axis for axis in _all() if axis.stage == Stage.ANSWERS]


def _all() -> list[Axis]:
    from testbed.extensions.explain import axes as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return list(_added.values())
