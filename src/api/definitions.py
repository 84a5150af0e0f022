"""Models and eval settings that a script or a notebook defines."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition
    from testbed.registry import Registry


def register_model(model: ModelDefinition, collections: Iterable[str] = ()) -> ModelDefinition:
    """Registers a model under its name.

    In a notebook, a definition replaces an earlier one of the same name when its cell runs again; if its code has
    changed, the store treats it as a new model, which is evaluated again.

    Args:
        model: The definition, such as a `testbed.models.model_base.Model`.
        collections: Collections that it belongs to.

    Raises:
        DuplicateNameError: If a definition in a file has this name.
    """
    registry.load()
    return registry.add_model(model, collections)


def register_eval_setting(eval_setting: EvalSetting, collections: Iterable[str] = ()) -> EvalSetting:
    """Registers an eval setting, as `register_model` does a model.

    Args:
        eval_setting: The definition.
        collections: Collections that it belongs to.

    Raises:
        DuplicateNameError: If a definition in a file has this name.
    """
    registry.load()
    return registry.add_eval_setting(eval_setting, collections)


def registered(definition: Any, known: Registry[Any], add: Callable[[Any], Any]) -> str:
    """Returns the name of a definition, after adding it unless the registry has the same one under this name."""
    name = getattr(definition, "name", None)
    if not (isinstance(name, str) and name in known and known.get(name) is definition):
        add(definition)
    return str(definition.name)
