"""ImageNet's settings. The validation images lie below the data root as ``val/<wnid>/<image>.JPEG``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.registry import registry

NUM_CLASSES = 1000


def class_names() -> list[str]:
    """OpenAI's names of the 1,000 classes, in the order of the sorted WordNet ids (they come with open_clip)."""
    from open_clip import IMAGENET_CLASSNAMES

    return list(IMAGENET_CLASSNAMES)


def templates() -> list[str]:
    """OpenAI's 80 prompt templates (they come with open_clip)."""
    from open_clip import OPENAI_IMAGENET_TEMPLATES

    return [template("{c}") for template in OPENAI_IMAGENET_TEMPLATES]


def _val() -> EvalSetting:
    return EvalSetting(
        name="val",
        dataset=StandardDataset(name="val"),
        size=50000,
        class_names=class_names,
        templates=templates,
        num_classes=NUM_CLASSES,
        description="ImageNet's (ILSVRC 2012) validation set",
    )


class ImageNetFamily:
    """Settings on ImageNet's classes; made when they are asked for."""

    name = "imagenet"
    _builders: dict[str, Callable[[], EvalSetting]] = {"val": _val}  # noqa: RUF012 -- filled once, here

    def names(self) -> Iterable[str]:
        """The settings of the family."""
        return self._builders

    def canonical(self, name: str) -> str | None:
        """The name, when it is one of the family's."""
        return name if name in self._builders else None

    def build(self, name: str) -> EvalSetting:
        """The definition."""
        return self._builders[name]()


registry.add_eval_setting_family(ImageNetFamily())
