"""Models and settings under another protocol, by name.

``resnet50~interpolation=bicubic`` is resnet50 with bicubic interpolation, ``imagenet1k~templates=one-prompt-c`` is
imagenet1k with the class names as prompts; ``testbed explain`` lists the names. Several parts may follow.
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

AFTER = set(".+@")  # first characters of the other parts of a setting's name


def _parted(name: str) -> tuple[str, str]:
    """Splits a name into the base name and the changes. A name may contain a path with arbitrary folder names."""
    folders, slash, last = name.rpartition("/")
    base, _, parts = last.partition(MARK)
    return f"{folders}{slash}{base}", parts


class ModelVariants:
    """Each model with other preprocessing."""

    name = "protocol variants of models"
    changes_others = True
    reads_files = True  # like models of checkpoints

    def names(self) -> Iterable[str]:
        """Lists none, since each model has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The model's canonical name, with the same parts; None for derived models."""
        base, parts = _parted(name)
        found = registry.models.canonical(base) if base and parts and not looks_made(name) else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> ModelDefinition:
        """Builds the changed model."""
        from testbed.extensions.explain.named import changed_model

        base, parts = _parted(name)
        return changed_model(registry.get_model(base), name, parts.split(MARK))


class SettingVariants:
    """Each zero-shot setting with other prompts, and each setting of questions, asked or judged otherwise."""

    name = "protocol variants of settings"
    changes_others = True

    def names(self) -> Iterable[str]:
        """Lists none, since each setting has some."""
        return ()

    def canonical(self, name: str) -> str | None:
        """The setting's canonical name, with the same parts. Whatever follows these, such as a judge, is not a part."""
        base, parts = _parted(name)
        found = registry.eval_settings.canonical(base) if base and parts and not set(parts) & AFTER else None
        return f"{found}{MARK}{parts}" if found else None

    def build(self, name: str) -> EvalSetting:
        """Builds the changed setting."""
        from testbed.extensions.explain.named import changed_setting

        base, parts = _parted(name)
        return changed_setting(registry.get_eval_setting(base), name, parts.split(MARK))


registry.add_model_family(ModelVariants())
registry.add_eval_setting_family(SettingVariants())
