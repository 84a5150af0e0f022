"""Other tasks on the handwritten digits: linear probes, retrieval, selection, multi-label, captioning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from testbed.data.sets.digits import CLASS_NAMES
from testbed.data.source import ImageSource
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.digits import SIZE, TEMPLATES, DigitsDataset
from testbed.eval_settings.eval_setting_base import Dataset, EvalSetting
from testbed.registry import registry

KINDS = {"digits-captions": "retrieval", "digits-selection": "selection", "digits-pairs": "multilabel"}
SIZES = {"digits-captions": 10, "digits-selection": SIZE, "digits-pairs": SIZE // 2}
CAPTIONING = "digits-captioning"
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
        """Returns its name."""
        return {"digits": self.name}

    def open(self) -> ImageSource:
        """The samples."""
        from testbed.data.sets import digit_tasks

        made = {
            "digits-captions": digit_tasks.CaptionedDigits,
            CAPTIONING: digit_tasks.DescribedDigits,
            "digits-selection": digit_tasks.DigitChoices,
            "digits-pairs": digit_tasks.DigitPairs,
        }
        return made[self.name]()


def _digits(split: str, language: str) -> Dataset:
    return DigitsDataset(split)


def _digit_task(name: str, split: str, language: str) -> Dataset:
    return DigitTask(name)


def _class_names(language: str) -> Sequence[str]:
    return CLASS_NAMES


def _templates(language: str) -> Sequence[str]:
    return TEMPLATES


def _register() -> None:
    # Its own task on the default split is the setting ``digits``, which is defined in digits.py.
    add_benchmark(
        BenchmarkDataset(
            "digits",
            "classification",
            _digits,
            splits=("test", "train"),
            sizes={"test": SIZE, "train": 1257},
            class_names=_class_names,
            templates=_templates,
        )
    )
    for name, kind in KINDS.items():
        multilabel = kind == "multilabel"
        add_benchmark(
            BenchmarkDataset(
                name,
                kind,
                partial(_digit_task, name),
                sizes={"test": SIZES[name]},
                class_names=_class_names if multilabel else None,
                templates=_templates if multilabel else None,
                description=DESCRIPTIONS[name],
            )
        )
    registry.add_eval_setting(
        EvalSetting(
            name=CAPTIONING,
            dataset=DigitTask(CAPTIONING),
            size=SIZE,
            task="captioning",
            task_options={"overlap": {"exact": True}},
            description="each digit is described in a sentence, such as 'a handwritten seven with straight lines.'",
        )
    )
    registry.add_eval_setting_collection(
        "digits-tasks", ["digits.linear_probe", "digits.linear_probe.k5", "digits.linear_probe.lbfgs", *KINDS]
    )


_register()
