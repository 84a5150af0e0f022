"""A plug-in for tests of a run's inputs: its code tells which data root it sees, in which process and which thread."""

import os
import threading

import torch

from testbed.data.webdataset.folder import WebDatasetFolder
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.model_base import DualEncoder, Generation, Generator, Model, StandardTransform
from testbed.paths import data_root
from testbed.registry import registry

SIDE = 8
PLAIN = StandardTransform(SIDE, SIDE)


def tell(what):
    with (data_root() / "seen").open("a") as file:
        file.write(f"{what} {os.getpid()} {threading.current_thread().name.partition('_')[0]}\n")


if data_root() is not None:
    tell("loading")


def told(what, function):
    """The function, which tells each time that it is called."""

    def call(*arguments):
        tell(what)
        return function(*arguments)

    return call


class Network(torch.nn.Module):
    """Embeds images by a linear map of the pixels, and texts by a table of their characters."""

    def __init__(self, told=None):
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        self.image = torch.nn.Parameter(0.05 * torch.randn(3 * SIDE * SIDE, 3, generator=generator))
        self.text = torch.nn.Parameter(torch.randn(128, 3, generator=generator))
        self.told = told

    def encode_image(self, images):
        if self.told:
            tell(self.told)
        return torch.tanh(images.flatten(1) - 0.5) @ self.image

    forward = encode_image

    def encode_text(self, tokens):
        place = torch.arange(1, tokens.shape[1] + 1)[None, :, None]
        return (torch.sin(self.text[tokens] * place) * (tokens > 0)[..., None]).sum(dim=1)


def tokenize(texts):
    return torch.tensor([[ord(character) % 128 for character in text[:40].ljust(40, "\0")] for text in texts])


class Describer:
    """Says how bright an image is."""

    def generate(self, messages, config):
        tell("model")
        return [Generation(str(round(sum(message.parts[0].resize((1, 1)).getpixel((0, 0)))))) for message in messages]


def metrics(logits, targets):
    tell("metrics")
    return {"share": float((logits.argmax(1) == targets).float().mean())}


registry.add_model(DualEncoder("inputs-tower", PLAIN, lambda: (Network(), tokenize), 4, weights="by-heart"))
registry.add_model(
    Model("inputs-teller", lambda image: told("transform", PLAIN)(image), lambda: Network("model"), 4, weights="told")
)
registry.add_model(Generator("inputs-describer", Describer, eval_batch_size=2, weights="by-heart"))
registry.add_eval_setting(EvalSetting("inputs-images", StandardDataset("images"), None, metrics_fn=metrics))
registry.add_eval_setting(
    EvalSetting(
        "inputs-captions",
        WebDatasetFolder("told"),
        None,
        task="captioning",
        transform=lambda image: told("transform", image.convert)("RGB"),
    )
)
