"""Models and settings under another protocol, by name.

``resnet50~interpolation=bicubic`` is resnet50 with bicubic interpolation, ``imagenet1k~templates=one-prompt-c`` is
imagenet1k with the class names as prompts; ``testbed explain`` says which names there are. Several parts may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from testbed.explain.axis import MARK
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition


class ModelVariants:
    """Each model with other preprocessing."""

    name = "protocol variants of models"

    def names(self) -> Iterable[str]:
        """None are listed: each model has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The model's canonical name, with the same parts."""
        base, mark, parts = name.partition(MARK)
        found = registry.models.canonical(base) if mark and parts and base else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> ModelDefinition:
        """The model, changed."""
        from testbed.explain.named import changed_model

        base, _, parts = name.partition(MARK)
        return changed_model(registry.get_model(base), name, parts.split(MARK))


class SettingVariants:
    """Each zero-shot setting with other prompts."""

    name = "protocol variants of settings"

    def names(self) -> Iterable[str]:
        """None are listed: each setting has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The setting's canonical name, with the same parts."""
        base, mark, parts = name.partition(MARK)
        found = registry.eval_settings.canonical(base) if mark and parts and base else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> EvalSetting:
        """The setting, changed."""
        from testbed.explain.named import changed_setting

        base, _, parts = name.partition(MARK)
        return changed_setting(registry.get_eval_setting(base), name, parts.split(MARK))


registry.add_model_family(ModelVariants())
registry.add_eval_setting_family(SettingVariants())
