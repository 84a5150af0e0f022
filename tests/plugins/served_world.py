"""A model that a server would run, and one that runs here: each notes in which process it works."""

import os
from pathlib import Path

import torch

from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.base.capability import NETWORK
from testbed.models.model_base import Generation, Generator, Model, StandardTransform
from testbed.registry import registry

MARKS = Path(os.environ["WORLD_MARKS"])


def note(what):
    with (MARKS / "processes").open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


class Answers:
    def generate(self, messages, config):
        note("served")
        return [Generation("a digit") for _ in messages]


class Served(Generator):
    resource = NETWORK


class Network(torch.nn.Module):
    def forward(self, images):
        note("here")
        return images.flatten(1)[:, :10]


registry.add_model(Served("served", Answers, architecture={"served": 1}))
registry.add_model(
    Model(name="here", transform=StandardTransform(8, 8), classifier_loader=Network, eval_batch_size=64, weights="1")
)
registry.add_eval_setting(EvalSetting("shown-digits", DigitsDataset(), 540))
registry.add_eval_setting(EvalSetting("said-digits", DigitsDataset(), 540, task="captioning"))
