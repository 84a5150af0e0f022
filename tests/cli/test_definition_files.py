"""Files in ``src/models`` and ``src/eval_settings``: also as ImageNet-testbed's README has them, and broken ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from own_copy import copy_testbed
from PIL import Image

MODEL = """
import torch
from registry import registry
from models.model_base import Model, StandardTransform, StandardNormalization


class Net(torch.nn.Module):
    def forward(self, images):
        return images.mean(dim=(2, 3))


registry.add_model(
    Model(
        name = 'my_net',
        transform = StandardTransform(img_resize_size=8, img_crop_size=8),
        normalization = StandardNormalization(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        classifier_loader = lambda: Net(),
        eval_batch_size = 2,

        # OPTIONAL
        arch = 'net',
        classify = lambda images, model, class_sublist, adversarial_attack: model(images)
    )
)
"""
SETTING = """
from registry import registry
from eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
import models.model_base, mldb.utils

registry.add_eval_setting(
    EvalSetting(
        name = 'mysmall',
        dataset = StandardDataset(path='{path}'),
        size = 3,
        perturbation_fn_cpu = lambda image: image.flip(-1),
        metrics_fn = lambda logits, targets, image_paths: accuracy_topk(logits, targets),
    )
)
"""


@pytest.fixture
def copy(root: Path, tmp_path: Path) -> Path:
    """A folder with a copy of testbed beside its eval.py, and images of three classes."""
    copy_testbed(root, tmp_path)
    for name, colour in (("r", (250, 0, 0)), ("g", (0, 250, 0)), ("b", (0, 0, 250))):
        (tmp_path / "small" / name).mkdir(parents=True)
        Image.new("RGB", (8, 8), colour).save(tmp_path / "small" / name / "x.png")
    return tmp_path


def test_the_readmes_files_work_in_testbeds_packages_and_a_broken_one_stops_only_itself(copy: Path, warm_python: Any):
    (copy / "testbed/models/new_model.py").write_text(MODEL)
    (copy / "testbed/eval_settings/new_setting.py").write_text(SETTING.format(path=copy / "small"))
    (copy / "testbed/models/broken.py").write_text("x = 1\n1 / 0\n")
    (copy / "testbed/models/unfinished.py").write_text("from registry import registry\nregistry.add_model(\n")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return warm_python.run(copy / "eval.py", (*words, "--executor", "inline"), copy, os.environ, anew=True)

    done = run("--models", "my_net", "--eval-settings", "mysmall")
    assert done.returncode == 0, done.stderr
    assert "1 cell: 1 complete" in done.stdout
    lines = [line for line in done.stderr.splitlines() if "cannot be loaded" in line]
    assert [line.partition(" cannot")[0] for line in lines] == [
        "the definition file testbed.models.broken",
        "the definition file testbed.models.unfinished",
    ]
    assert "broken.py:2); it defines nothing" in lines[0]
    done = run("--models", "their_net", "--eval-settings", "mysmall")
    assert done.returncode == 1
    error = done.stderr.splitlines()[-1]
    assert error.startswith("Error: unknown model 'their_net'")
    assert "ZeroDivisionError" in error
