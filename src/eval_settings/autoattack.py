"""AutoAttack on ImageNet's validation images (``val`` below the data root), with RobustBench's radius for ImageNet.

It needs the package pyautoattack: ``pip install -e '.[attacks]'``.
"""

from __future__ import annotations

from functools import partial

from testbed.corruptions.autoattack import AutoAttack
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    TEN_PERCENT,
    SettingFamily,
    imagenet_setting,
    ten_percent,
)
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.imagenet import PIXEL, VAL
from testbed.registry import registry

# The radii of linf are in units of 1/255, as those of PGD. That of l2 is the usual one for 224 × 224 pixels.
ATTACKS = {
    "autoattack.linf.eps4": ("linf", 4 * PIXEL),
    "autoattack.l2.eps3": ("l2", 3.0),
}


def _attacked(name: str) -> EvalSetting:
    attack = AutoAttack(*ATTACKS[name])
    return imagenet_setting(
        name,
        VAL,
        SIZES["val"],
        perturbation_fn_gpu=attack,
        adversarial_attack=attack.spec(),
        description="AutoAttack, standard version",
    )


def _tenth_of_attacked(name: str) -> EvalSetting:
    return ten_percent(_attacked(name), SIZES["val"])


registry.add_eval_setting_family(
    SettingFamily(
        "autoattack",
        {
            **{name: partial(_attacked, name) for name in ATTACKS},
            **{f"{name}{TEN_PERCENT}": partial(_tenth_of_attacked, name) for name in ATTACKS},
        },
    )
)
