"""The models and eval settings of the blind test of `testbed explain`."""

from __future__ import annotations

from pathlib import Path

import blind_world as world

from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.model_base import DualEncoder, Model, StandardNormalization, StandardTransform
from testbed.registry import Catalog

SUBSET = 12  # classes of the setting with fewer


def catalog(folder: Path) -> Catalog:
    """A catalog with the definitions of a world."""
    made = Catalog(packages=(), entry_points=False)
    for state in ("last", "average"):
        made.add_model(
            Model(
                name=f"blind.{state}",
                arch="blind-residual",
                transform=StandardTransform(36, 32),
                normalization=StandardNormalization(world.IMAGENET_MEAN, world.IMAGENET_STD),
                classifier_loader=lambda state=state: world.load(folder, state),  # type: ignore[misc]
                eval_batch_size=200,
                num_classes=world.CLASSES,
            )
        )
    made.add_model(
        DualEncoder(
            name="blind-clip",
            transform=StandardTransform(32, 32, "bicubic"),
            normalization=StandardNormalization(world.CLIP_MEAN, world.CLIP_STD),
            encoder_loader=lambda: world.load(folder, "clip"),
            eval_batch_size=200,
        )
    )
    for name in ("test", "relabelled"):
        made.add_eval_setting(
            EvalSetting(
                f"blind-{name}",
                StandardDataset(path=folder / name),
                None,
                class_names=world.CLASS_NAMES,
                templates=list(world.TEMPLATES),
                keep_embeddings=True,
            )
        )
    fewer = sum(len(list((folder / "test" / name).iterdir())) for name in world.FOLDERS[:SUBSET])
    made.add_eval_setting(
        EvalSetting(
            "blind-fewer",
            StandardDataset(path=folder / "test"),
            fewer,
            class_sublist=range(SUBSET),
            idx_subsample_list=range(fewer),
            full_targets=True,
        )
    )
    return made
