"""Averaged and plain weights in one file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lab import lab, new_lab, work  # noqa: F401
from torchvision import models
from torchvision.transforms import functional as of
from toy import CLASSES, ToyDataset, toy_catalog

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.explain.named import command_for
from testbed.extensions.explain.search import explain
from testbed.models.checkpoint import checkpoint_model
from testbed.models.model_base import StandardNormalization, StandardTransform
from testbed.registry import registry

MEAN, STD, COUNT = (0.5, 0.4, 0.6), (0.2, 0.3, 0.2), 90


def network(seed):
    torch.manual_seed(seed)
    made = models.resnet18(num_classes=CLASSES)
    torch.nn.init.normal_(made.fc.bias, std=1.0)
    return made.eval()


@pytest.fixture
def file(tmp_path):
    """As torchvision's reference script writes it; the averaged weights are taken."""
    average = torch.optim.swa_utils.AveragedModel(network(0))
    torch.save({"model": network(1).state_dict(), "model_ema": average.state_dict()}, tmp_path / "w.pth")
    return tmp_path / "w.pth"


def accuracy(made):
    source = ToyDataset(COUNT, seed=3).open()
    images = [of.to_tensor(of.resize(source.image(place), 32)) for place in range(COUNT)]
    with torch.no_grad():
        guesses = made(of.normalize(torch.stack(images), MEAN, STD)).argmax(dim=1).numpy()
    return float(np.mean(guesses == source.targets))


@pytest.mark.long
def test_plain_weights_are_tried_where_averaged_ones_are_taken(lab, file):  # noqa: F811
    options = {"transform": StandardTransform(32, 32), "normalization": StandardNormalization(MEAN, STD)}
    catalog = toy_catalog(
        checkpoint_model("tuned", "resnet18", file, **options), EvalSetting("toy", ToyDataset(COUNT, seed=3), COUNT)
    )
    assert lab.run(catalog).ok
    stored, plain = accuracy(network(0)), accuracy(network(1))
    assert lab.metrics("tuned", "toy")["top1"].value == pytest.approx(stored)
    assert stored != plain
    with lab.open() as store:
        told = explain(store, catalog, "tuned", "toy", {"top1": (plain, 5e-5)}, samples=50_000, thorough=True)
    (row,) = [each for each in told.rows if each.name == "weights in the file: model (not averaged)"]
    assert row.verdict == "gives it"
    assert row.estimates[0].value == pytest.approx(plain)
    part = "~weights-in-the-file=model-not-averaged"
    assert command_for("tuned", "toy", row.variants) == f"testbed run 'tuned{part}' --on toy"


def test_they_are_a_model_of_their_own(file):
    name = f"resnet18,{file}"
    made = registry.get_model(f"{name}~weights-in-the-file=model-not-averaged")
    found, expected = made.make_network().state_dict(), network(1).state_dict()
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert made.remarks == ("weights from model",)
    assert made.spec() != registry.get_model(name).spec()
    with pytest.raises(DefinitionError, match="weights in the file is one of model-not-averaged; got 'ema'"):
        registry.get_model(f"{name}~weights-in-the-file=ema")


def test_a_file_of_one_state_dict_has_no_others(tmp_path):
    torch.save(network(0).state_dict(), tmp_path / "w.pth")
    with pytest.raises(DefinitionError, match="the weights are not a checkpoint with several entries"):
        registry.get_model(f"resnet18,{tmp_path}/w.pth~weights-in-the-file=model-not-averaged")
