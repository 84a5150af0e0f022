"""Models and settings under another protocol, by name.

``resnet50~interpolation=bicubic`` is resnet50 with bicubic interpolation, ``imagenet1k~templates=one-prompt-c`` is
imagenet1k with the class names as prompts; ``testbed explain`` says which names there are. Several parts may follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from testbed.extensions.explain.axis import MARK
from testbed.models.made.names import looks_made
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

AFTER = set(".+@")  # what other parts of a setting's name begin with


def _parted(name: str) -> tuple[str, str]:
    """The name that is changed, and by what. A name may have a path in it, whose folders have any names."""
    folders, slash, last = name.rpartition("/")
    base, _, parts = last.partition(MARK)
    return f"{folders}{slash}{base}", parts


class ModelVariants:
    """Each model with other preprocessing."""

    name = "protocol variants of models"
    changes_others = True
    reads_files = True  # as models of checkpoints

    def names(self) -> Iterable[str]:
        """None are listed: each model has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The model's canonical name, with the same parts; not for a model that is made of others."""
        base, parts = _parted(name)
        found = registry.models.canonical(base) if base and parts and not looks_made(name) else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> ModelDefinition:
        """The model, changed."""
        from testbed.extensions.explain.named import changed_model

        base, parts = _parted(name)
        return changed_model(registry.get_model(base), name, parts.split(MARK))


class SettingVariants:
    """Each zero-shot setting with other prompts, and each setting of questions, asked or judged otherwise."""

    name = "protocol variants of settings"
    changes_others = True

    def names(self) -> Iterable[str]:
        """None are listed: each setting has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The setting's canonical name, with the same parts. What follows these, such as a judge, is no part."""
        base, parts = _parted(name)
        found = registry.eval_settings.canonical(base) if base and parts and not set(parts) & AFTER else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> EvalSetting:
        """The setting, changed."""
        from testbed.extensions.explain.named import changed_setting

        base, parts = _parted(name)
        return changed_setting(registry.get_eval_setting(base), name, parts.split(MARK))


registry.add_model_family(ModelVariants())
registry.add_eval_setting_family(SettingVariants())
