"""Settings ``X.image_embeddings``: the images of the setting X, embedded and stored, for any X."""

from __future__ import annotations

from testbed.eval_settings.base.setting import EvalSetting
from testbed.eval_settings.base.suffixed import Suffixed

SUFFIX = ".image_embeddings"  # of the names of these settings


def images_of(setting: EvalSetting) -> EvalSetting:
    """The setting whose outputs are the image embeddings of another setting: same images, same perturbation.

    For a captioning setting they are not perturbed: captions are compared with the original images.
    """
    perturbed = bool(setting.perturbation) and setting.task != "captioning"
    return EvalSetting(
        name=setting.name + SUFFIX,
        dataset=setting.dataset,
        size=setting.size,
        perturbation_fn_cpu=setting.perturbation_fn_cpu if perturbed else None,
        perturbation_fn_gpu=setting.perturbation_fn_gpu if perturbed else None,
        adversarial_attack=setting.adversarial_attack,
        idx_subsample_list=setting.idx_subsample_list,
        parent_eval_setting=setting.perturbation.noise_key if perturbed else None,
        transform=setting.transform,
        task="image_embedding",
        other_sizes=setting.other_sizes,
        description=f"the image embeddings of {setting.name}",
    )


class ImageEmbeddings(Suffixed):
    """The image-embedding settings of all settings of a catalog."""

    name, suffix = "image embeddings", SUFFIX

    def make(self, setting: EvalSetting) -> EvalSetting:
        """See `images_of`."""
        return images_of(setting)
