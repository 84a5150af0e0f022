"""A plug-in of models and settings of the digits whose names are too long for a narrow terminal."""

from long_names import MODELS, SETTINGS

from testbed.corruptions.photometric import invert
from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.digits import _classifier
from testbed.registry import registry

for name, like in zip(MODELS, ("digits-knn", "digits-logreg", "digits-logreg"), strict=True):
    model = _classifier(like, False, "Standard training")
    model.name = name
    registry.add_model(model)
for name, perturbation in zip(SETTINGS, (None, invert), strict=True):
    registry.add_eval_setting(
        EvalSetting(name=name, dataset=DigitsDataset(), size=540, perturbation_fn_gpu=perturbation)
    )
