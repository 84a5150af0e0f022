"""Settings ``X+Y``: the setting X on images that are perturbed as in Y, such as ``MMStar+imagenet-c.fog.3``."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from testbed.errors import DefinitionError
from testbed.eval_settings.base.distinct import SUFFIX as DISTINCT
from testbed.eval_settings.base.image_embeddings import SUFFIX as IMAGE_EMBEDDINGS
from testbed.eval_settings.base.setting import EvalSetting

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog

PLUS = "+"
IN_MEMORY = "_in-memory"  # may be left out of Y
# What follows the whole name, and so is not part of Y.
JUDGED, SUFFIXES = "@", (IMAGE_EMBEDDINGS, DISTINCT)


class Perturbed:
    """The combinations of all settings of a catalog with the perturbations of all others."""

    name = "perturbed"

    def __init__(self, catalog: Catalog) -> None:
        self._settings = catalog.eval_settings

    def names(self) -> Iterable[str]:
        """None are listed; they are made of other names."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The name, if it is two known names with a plus between them."""
        base, plus, other = name.rpartition(PLUS)
        if not (base and plus and other) or PLUS in base or JUDGED in other or other.endswith(SUFFIXES):
            return None
        known, by = self._settings.canonical(base), self._perturbing(other)
        return None if known is None or by is None else f"{known}{PLUS}{by.removesuffix(IN_MEMORY)}"

    def build(self, name: str) -> EvalSetting:
        """The setting: in all but its perturbation the first one.

        Raises:
            DefinitionError: If the first one perturbs images itself, or the other one does not, or needs the model.
        """
        base_name, _, other_name = name.rpartition(PLUS)
        base, other = self._settings.get(base_name), self._settings.get(self._perturbing(other_name) or other_name)
        if base.perturbation:
            raise DefinitionError(f"{name}: {base.name} perturbs images itself")
        if not other.perturbation:
            raise DefinitionError(
                f"{name}: {other.name} perturbs no images; name a setting that does, such as imagenet-c.fog.3"
            )
        if other.perturbation.attacks or other.perturbation.needs_targets:
            raise DefinitionError(f"{name}: the perturbation of {other.name} is made for one model or one task")
        made = copy.copy(base)
        made.name, made.image_set, made.parent_eval_setting = name, name, None
        made.samples = replace(base.samples, setting=name)
        made.perturbation = replace(other.perturbation, setting=name, noise_key=name)
        made.description = f"{base.name} on images perturbed as in {other.name}"
        return made

    def _perturbing(self, name: str) -> str | None:
        """The setting that a name of a perturbation means."""
        known = self._settings.canonical(name)
        return known if known is not None else self._settings.canonical(name + IN_MEMORY)
