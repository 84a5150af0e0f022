"""Some classes of a data set whose targets are those of all classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy import ToyImages, toy_catalog, toy_model, toy_setting

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting

CLASSES = [7, 2, 5]
TARGETS = np.array(ToyImages(600, 0, ()).targets)
POSITIONS = [int(position) for position in np.flatnonzero(np.isin(TARGETS, CLASSES))]


def some(name: str = "some", positions: list[int] = POSITIONS, **options: Any) -> EvalSetting:
    return toy_setting(
        name, size=len(positions), class_sublist=CLASSES, full_targets=True, idx_subsample_list=positions, **options
    )


def test_they_are_derived_from_the_full_set_with_all_metrics(lab: Any, work: Any) -> None:
    report = lab.run(toy_catalog(toy_model(), toy_setting(), some()))
    assert {each.setting: each.status for each in report.outcomes} == {"toy-all": "complete", "some": "derived"}
    assert work["images through networks"] == 600
    logits = lab.logits("toy", "toy-all")[POSITIONS][:, CLASSES]
    labels = np.array([CLASSES.index(target) for target in TARGETS[POSITIONS]])
    metrics = lab.metrics("toy", "some")
    assert metrics["top1"].value == pytest.approx(np.mean(logits.argmax(axis=1) == labels))
    shares = np.exp(logits.astype(np.float64))
    shares /= shares.sum(axis=1, keepdims=True)
    assert metrics["nll"].value == pytest.approx(-np.log(shares[np.arange(len(labels)), labels]).mean(), rel=1e-5)
    assert metrics["top1"].n == len(POSITIONS)
    assert metrics["top1"].stderr > 0


def test_a_perturbation_gets_the_targets_that_the_metrics_see(lab: Any) -> None:
    def told(images: Any, targets: Any) -> Any:
        return images * (targets[:, None, None, None] + 1) / 10

    indices = [CLASSES.index(target) for target in TARGETS[POSITIONS]]
    plain = toy_setting("plain", size=len(POSITIONS), idx_subsample_list=POSITIONS, perturbation_fn_gpu=told)
    assert lab.run(toy_catalog(toy_model(), plain, some(perturbation_fn_gpu=told))).ok
    assert not np.allclose(lab.logits("toy", "plain"), lab.logits("toy", "some"))
    pixels = np.moveaxis(ToyImages(600, 0, ()).pixels[POSITIONS], 3, 1).astype(np.float64) / 255
    dimmed = pixels * (np.array(indices)[:, None, None, None] + 1) / 10
    weight = toy_model().classifier_loader().weight.detach().double().numpy()
    expected = np.tanh(dimmed.reshape(len(indices), -1) - 0.5) @ weight
    np.testing.assert_allclose(lab.logits("toy", "some"), expected, atol=1e-4)


def test_a_sample_of_another_class_is_a_mistake(lab: Any) -> None:
    other = next(position for position in range(600) if position not in POSITIONS)
    (failed,) = lab.run(toy_catalog(toy_model(), some(positions=[*POSITIONS, other]))).of("failed")
    assert "which is not in class_sublist; choose samples of these classes by idx_subsample_list" in failed.reason


def test_it_goes_with_a_class_sublist() -> None:
    with pytest.raises(DefinitionError, match="full_targets=True goes with a class_sublist"):
        toy_setting(full_targets=True)
