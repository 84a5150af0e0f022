"""Captioners whose server is down for some samples and refuses another; they note what they are asked."""

import os
from pathlib import Path
from urllib.error import HTTPError

import torch

from testbed.eval_settings.digits import DigitsDataset
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.base.capability import NETWORK
from testbed.models.model_base import Generation, Generator, TextEncoder
from testbed.registry import registry

MARKS = Path(os.environ["WORLD_MARKS"])


def answer(sample):
    with (MARKS / "asked").open("a") as file:
        file.write(f"{sample}\n")
    number = int(sample[-4:])
    if (MARKS / f"busy-{number}").exists():  # reading a file would make it a part of what answers are computed from
        raise HTTPError("http://server/v1", 503, "Service Unavailable", {}, None)
    if (MARKS / f"refused-{number}").exists():
        raise HTTPError("http://server/v1", 400, "content policy", {}, None)
    return Generation(f"a digit, {number}")


class Loop:
    """One request after the other: an error loses the answers before it."""

    def generate(self, messages, config):
        return [answer(message.sample) for message in messages]


class Careful:
    """Says for each message whether it got an answer."""

    def generate(self, messages, config):
        return [self.one(message.sample) for message in messages]

    def one(self, sample):
        try:
            return answer(sample)
        except OSError as error:
            return error


class Polite(Careful):
    """Puts the error into the answer."""

    def one(self, sample):
        found = super().one(sample)
        return Generation("", f"error: {found}") if isinstance(found, OSError) else found


class Lengths:
    def encode(self, texts):
        return torch.tensor([[1.0, len(text)] for text in texts])


class Served(Generator):
    resource = NETWORK


registry.add_model(Served("served", Loop, 4, architecture={"served": 1}))
registry.add_model(Generator("careful", Careful, 4, architecture={"careful": 1}))
registry.add_model(Generator("polite", Polite, 4, architecture={"polite": 1}))
registry.add_model(Generator("loop", Loop, 4, architecture={"loop": 1}))
registry.add_eval_setting(EvalSetting("said", DigitsDataset(), 540, task="captioning"))
registry.add_model(TextEncoder("toy-embedder", Lengths, weights="1", architecture={"lengths": 1}))
