"""Other tasks on the handwritten digits: linear probes, retrieval, selection and multi-label, without a download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.eval_settings.benchmark_base import BenchmarkDataset, add_benchmark
from testbed.eval_settings.digits import CLASS_NAMES, SIZE, TEMPLATES, DigitsDataset
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.data.source import ImageSource

KINDS = {"digits-captions": "retrieval", "digits-selection": "selection", "digits-pairs": "multilabel"}
SIZES = {"digits-captions": 10, "digits-selection": SIZE, "digits-pairs": SIZE // 2}
DESCRIPTIONS = {
    "digits-captions": "a digit of each class, with four captions each",
    "digits-selection": "each digit with its own caption and that of the next digit",
    "digits-pairs": "two digits side by side, both of which apply",
}


class DigitTask:
    """One of the data sets that are made from the digits."""

    def __init__(self, name: str) -> None:
        self.name = name

    def spec(self) -> dict[str, Any]:
        """Its name."""
        return {"digits": self.name}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data import digit_tasks

        made = {
            "digits-captions": digit_tasks.CaptionedDigits,
            "digits-selection": digit_tasks.DigitChoices,
            "digits-pairs": digit_tasks.DigitPairs,
        }
        return made[self.name]()


def _register() -> None:
    # Its own task on the default split is the setting ``digits``, which is defined in digits.py.
    add_benchmark(
        BenchmarkDataset(
            "digits",
            "classification",
            lambda split, language: DigitsDataset(split),
            splits=("test", "train"),
            sizes={"test": SIZE, "train": 1257},
            class_names=lambda language: CLASS_NAMES,
            templates=lambda language: TEMPLATES,
        )
    )
    for name, kind in KINDS.items():
        named = {"class_names": lambda language: CLASS_NAMES, "templates": lambda language: TEMPLATES}
        add_benchmark(
            BenchmarkDataset(
                name,
                kind,
                lambda split, language, name=name: DigitTask(name),
                sizes={"test": SIZES[name]},
                description=DESCRIPTIONS[name],
                **(named if kind == "multilabel" else {}),
            )
        )
    registry.add_eval_setting_collection(
        "digits-tasks", ["digits.linear_probe", "digits.linear_probe.k5", "digits.linear_probe.lbfgs", *KINDS]
    )


_register()
