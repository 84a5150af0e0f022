"""ImageNet-C (Hendrycks & Dietterich 2019): made while running, out of val, or read from disk as it was published.

On disk it lies below the data root as ``imagenet-c/<corruption>/<severity>/<WordNet id>/<image>.JPEG``, which is what
the archives of https://zenodo.org/records/2235448 hold.
"""

from __future__ import annotations

from functools import partial

from testbed.corruptions import IMAGENET_C, SEVERITIES, Corruption
from testbed.eval_settings.benchmark_families.imagenet import (
    SIZES,
    TEN_PERCENT,
    ImageNetDataset,
    SettingFamily,
    imagenet_setting,
    ten_percent,
)
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.imagenet import VAL
from testbed.registry import registry

# The distortion that the published ImageNet-C was made with, so that its columns compare.
AS_PUBLISHED = {"elastic_transform": "elastic_transform_affine"}


def _in_memory(corruption: str, severity: int) -> EvalSetting:
    return imagenet_setting(
        f"imagenet-c.{corruption}.{severity}_in-memory",
        VAL,
        SIZES["val"],
        perturbation_fn_gpu=Corruption(AS_PUBLISHED.get(corruption, corruption), severity),
        description=f"val under {corruption}, severity {severity} of 5, after the model's own transform",
    )


def _on_disk(corruption: str, severity: int) -> EvalSetting:
    return imagenet_setting(
        f"imagenet-c.{corruption}.{severity}_on-disk",
        ImageNetDataset(f"imagenet-c/{corruption}/{severity}"),
        SIZES["imagenet-c"],
        description=f"the published ImageNet-C: {corruption}, severity {severity} of 5",
    )


def _tenth_in_memory(corruption: str, severity: int) -> EvalSetting:
    return ten_percent(_in_memory(corruption, severity), SIZES["val"])


def _tenth_on_disk(corruption: str, severity: int) -> EvalSetting:
    return ten_percent(_on_disk(corruption, severity), SIZES["imagenet-c"])


FORMS = {
    "_in-memory": _in_memory,
    "_on-disk": _on_disk,
    f"_in-memory{TEN_PERCENT}": _tenth_in_memory,
    f"_on-disk{TEN_PERCENT}": _tenth_on_disk,
}
registry.add_eval_setting_family(
    SettingFamily(
        "imagenet-c",
        {
            f"imagenet-c.{corruption}.{severity}{form}": partial(build, corruption, severity)
            for form, build in FORMS.items()
            for corruption in IMAGENET_C
            for severity in SEVERITIES
        },
    )
)
registry.add_eval_setting_collection("imagenet-c", ["imagenet-c.*_in-memory", "imagenet-c.*_on-disk"])
# The published table has glass_blur from disk alone.
registry.add_eval_setting_collection(
    "imagenet-testbed",
    [
        f"imagenet-c.{corruption}.{severity}{form}"
        for form in ("_in-memory", "_on-disk")
        for corruption in IMAGENET_C
        for severity in SEVERITIES
        if (corruption, form) != ("glass_blur", "_in-memory")
    ],
)
