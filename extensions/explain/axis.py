"""Axes: one thing each that people do differently when they evaluate, with its variants."""

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
    from testbed.extensions.explain.cell import StoredCell


MARK = "~"  # in the names of models and settings, before the axis and the variant that they are changed by


class Stage(IntEnum):
    """What a variant needs, the cheapest first."""

    SCORES = 1  # stored outputs
    TEXTS = 2  # stored image embeddings, and the text encoder
    IMAGES = 3  # the model, on some of the images
    ANSWERS = 4  # a model that answers in text, asked again


REPLACES, RESHAPES, CHANGES = 0, 1, 2  # in what order variants of one stage are applied


@dataclass(frozen=True)
class Variant:
    """A protocol that differs in one thing from the stored one.

    Attributes:
        axis: The name of its axis; two variants of one axis cannot be combined.
        name: What is different, for people.
        stage: What it needs.
        change: From a `Table`, `Texts`, `Pixels` or `Asked` to another one, by stage. Variants of one stage are applied
            by `in_order`.
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
    """One thing that people do differently.

    Attributes:
        name: For people, such as ``interpolation``.
        stage: What its variants need.
        variants: From a cell to (name, change) of each variant; raises `NotApplicableError` where there can be none.
        order: Of its changes among those of the stage: `REPLACES` (other weights, other labels) comes before `RESHAPES`
            (what sets a size anew), and this before `CHANGES`, so that none undoes another.
        alone: Whether its variants cannot be combined with those of other axes.
    """

    name: str
    stage: Stage
    variants: Callable[[StoredCell], Iterable[tuple[str, Callable[[Any], Any]]]]
    order: int = CHANGES
    alone: bool = False

    def of(self, cell: StoredCell) -> list[Variant]:
        """The variants for a cell."""
        found = self.variants(cell)
        return [Variant(self.name, name, self.stage, change, self.order, self.alone) for name, change in found]


def in_order(variants: Iterable[Variant]) -> tuple[Variant, ...]:
    """Variants as they are applied."""
    return tuple(sorted(variants, key=lambda each: (each.stage, each.order, each.axis)))


_added: dict[str, Axis] = {}


def add_axis(axis: Axis) -> Axis:
    """Adds an axis, for plug-ins and for the modules of `testbed.extensions.explain.axes`.

    Raises:
        DefinitionError: If there is another one of this name.
    """
    if _added.setdefault(axis.name, axis) is not axis:
        raise DefinitionError(f"there are two axes {axis.name!r}; give one of them another name")
    return axis


def axes() -> list[Axis]:
    """All axes for which no model is asked, the cheapest first."""
    return sorted((each for each in _all() if each.stage != Stage.ANSWERS), key=lambda each: each.stage)


def asked_axes() -> list[Axis]:
    """The axes for which a model is asked its questions again."""
    return [each for each in _all() if each.stage == Stage.ANSWERS]


def _all() -> list[Axis]:
    from testbed.extensions.explain import axes as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return list(_added.values())
