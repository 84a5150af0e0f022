"""The digits family of settings, on the 540 held-out handwritten digits: real data that needs no download."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from testbed.corruptions import SEVERITIES, Corruption
from testbed.corruptions.adversarial import PGD
from testbed.corruptions.photometric import invert, rotate
from testbed.data.sets.digits import CLASS_NAMES
from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry

SIZE = 540
EVEN = [0, 2, 4, 6, 8]
COLLECTIONS = ("demo",)
# The prompts that digits-clip was trained with, and one that it never saw.
TEMPLATES = ["a photo of the digit {c}", "a handwritten {c}", "the number {c}", "an image of a {c}"]
UNSEEN_TEMPLATE = "somebody wrote a {c} here"
CORRUPTIONS = (
    "gaussian_noise",
    "impulse_noise",
    "gaussian_blur",
    "contrast",
    "brightness",
)


class DigitsDataset:
    """scikit-learn's digits: the split ``"train"`` or ``"test"``, all classes or some."""

    def __init__(self, split: str = "test", classes: Sequence[int] | None = None) -> None:
        self.split = split
        self.classes = list(classes) if classes is not None else None

    def with_split(self, split: str) -> DigitsDataset:
        """The same classes of another split."""
        return DigitsDataset(split, self.classes)

    def spec(self) -> dict[str, Any]:
        """Returns split and classes."""
        return {"digits": self.split, "classes": self.classes}

    def open(self) -> ImageSource:
        """The digits of the split."""
        from testbed.data.sets.digits import Digits

        return Digits(self.split, self.classes)


def _setting(name: str, **options: Any) -> EvalSetting:
    arguments: dict[str, Any] = {"dataset": DigitsDataset("test"), "size": SIZE}
    arguments.update(class_names=CLASS_NAMES, templates=TEMPLATES)
    arguments.update(options)
    return EvalSetting(name=name, **arguments)


def _attack() -> dict[str, Any]:
    attack = PGD("linf", eps=0.1, step_size=0.02, steps=20)
    return {"perturbation_fn_gpu": attack, "adversarial_attack": attack.spec()}


def _register() -> None:
    settings = [
        _setting("digits", description="the held-out digits as they are"),
        _setting("digits-inverted", perturbation_fn_gpu=invert, description="black on white"),
        _setting(
            "digits-rotated", perturbation_fn_gpu=partial(rotate, degrees=30), description="rotated by 30 degrees"
        ),
        _setting(
            "digits-unseen-prompt",
            templates=[UNSEEN_TEMPLATE],
            description="as digits, but zero-shot models get a prompt that digits-clip never saw in training",
        ),
        _setting(
            "digits-even",
            dataset=DigitsDataset("test", classes=EVEN),
            size=SIZE // 2,
            class_sublist=EVEN,
            description="the even digits, and only the even classes to choose from",
        ),
        _setting(
            "digits_10percent",
            size=SIZE // 10,
            idx_subsample_list=range(0, SIZE, 10),
            parent_eval_setting="digits",
            description="every tenth digit: a pure function of the outputs on digits",
        ),
        _setting("digits-pgd.linf.eps0.1", description="PGD, 20 steps, at most 0.1 per pixel", **_attack()),
    ]
    for name in CORRUPTIONS:
        for severity in SEVERITIES:
            settings.append(_setting(f"digits-c.{name}.{severity}", perturbation_fn_gpu=Corruption(name, severity)))
    for setting in settings:
        registry.add_eval_setting(setting, collections=COLLECTIONS)
    registry.add_eval_setting_collection("digits-c", ["digits-c.*"])


_register()
