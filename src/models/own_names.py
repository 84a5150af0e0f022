"""Short names of models in files of the user's own, such as ``lite0``: a store keeps what each of them stands for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from testbed.errors import UnknownNameError
from testbed.inputs import OwnName, active, using
from testbed.models.base.definition import ModelDefinition
from testbed.registry import registry

OPTIONS = ("preprocessing", "class_order", "weights_entry", "match_by_order")


class OwnNames:
    """The short names that are active; see `Inputs.own_names`."""

    name = "own names"
    reads_files = True  # so that a definition is built anew each time
    changes_others = True  # a file in the working folder that is called like one is something else

    def names(self) -> Iterable[str]:
        """The names."""
        return [own_name.name for own_name in active().own_names]

    def canonical(self, name: str) -> str | None:
        """The name itself."""
        return None if self._find(name) is None else name

    def build(self, name: str) -> ModelDefinition:
        """The definition that it stands for, with the options that it was made with."""
        own = self._find(name)
        if own is None:
            raise UnknownNameError(f"{name} is not the short name of a model")
        options = {option: getattr(own, option) for option in OPTIONS}
        with using(replace(active(), **options)):
            return registry.get_model(own.reference).under_name(name)

    def _find(self, name: str) -> OwnName | None:
        return next((own_name for own_name in active().own_names if own_name.name == name), None)


registry.add_model_family(OwnNames())
