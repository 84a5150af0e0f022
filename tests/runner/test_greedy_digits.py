"""A greedy soup of fine-tuned networks on the digits, beside the recipe in torch alone; members are of a script."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import copy, json
import torch, testbed
from testbed.models.digits import load, train_data
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.registry import registry

VAL, TEST, DB = "digits-c.gaussian_noise.4", "digits-rotated", "digits.db"
images, labels, _ = train_data()
networks = {}
for seed, (rate, noise) in enumerate([(1e-3, 0.2), (1e-3, 0.35), (5e-3, 0.3), (1e-4, 0.3), (5e-2, 0.3)]):
    network = networks[f"tuned-{seed}"] = copy.deepcopy(load("digits-cnn"))
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.9)
    for _ in range(3):
        for rows in torch.randperm(len(images), generator=generator).split(64):
            noisy = images[rows] + noise * torch.randn(images[rows].shape, generator=generator)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network((noisy.clamp(0, 1) - 0.5) / 0.5), labels[rows]).backward()
            optimizer.step()


def model(name, loader, **options):
    half = StandardNormalization([0.5] * 3, [0.5] * 3)
    like = {"normalization": half, "eval_batch_size": 256, "num_classes": 10}
    return Model(name, StandardTransform(32, 32), classifier_loader=loader, **like, **options)


for name, network in networks.items():
    testbed.register_model(model(name, lambda network=network: copy.deepcopy(network)))
soup = "soup:" + "+".join(networks) + "@@greedy=" + VAL
testbed.evaluate([soup, *networks], [VAL, TEST], db=DB, raise_on_failure=True)


def accuracy(names):
    with torch.no_grad():
        return float((mean(names)(val).argmax(1) == targets).double().mean())


def mean(names):
    network = copy.deepcopy(networks[names[0]])
    states = [networks[name].state_dict() for name in names]
    weights = {key: torch.stack([each[key].double() for each in states]).mean(0).float() for key in states[0]}
    network.load_state_dict(weights)
    return network


def pixels(setting):  # what a network sees there: the images of the setting, as a model that returns them says
    kept = []

    class Keeps(torch.nn.Module):
        def forward(self, batch):
            kept.append(batch.clone())
            return batch.flatten(1)[:, :10]

    testbed.evaluate(model("keeps-" + setting, Keeps, weights="keeps"), setting, db="other.db", raise_on_failure=True)
    return torch.cat(kept)[-540:]


val = pixels(VAL)
targets = torch.tensor(registry.get_eval_setting("digits").dataset.open().targets)
order = sorted(networks, key=lambda name: -accuracy([name]))
kept = order[:1]
for name in order[1:]:
    if accuracy(sorted([*kept, name])) >= accuracy(sorted(kept)):
        kept.append(name)
with torch.no_grad():
    expected = mean(sorted(kept))(pixels(TEST))
with testbed.Store.open(DB) as store:
    (evaluation,) = [each for each in store.evaluations.find([soup], [TEST])]
    stored = torch.tensor(store.outputs.read(evaluation.id, "logits"))
print(
    json.dumps(
        {
            "kept": sorted(kept),
            "accuracies": [accuracy([name]) for name in order],
            "soup": accuracy(sorted(kept)),
            "difference": float((stored - expected).abs().max() / expected.abs().max()),
        }
    )
)
"""


@pytest.mark.long
def test_a_greedy_soup_of_digits_is_that_of_torch_alone(tmp_path: Path, warm_python: Any, shared_cache: Any) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = warm_python.run(tmp_path / "script.py", [], tmp_path, dict(os.environ))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert 1 < len(found["kept"]) < 5
    assert found["difference"] < 1e-6
    assert found["soup"] >= max(found["accuracies"])
    assert done.stderr.count("defined in this program only") == 1 + 2  # of the run, and of those that show the images
    assert f"soup:{'+'.join(found['kept'])}, chosen by top1 on digits-c.gaussian_noise.4: " in done.stderr
