"""Models as VLMEvalKit's guide has them written: they look at the pictures, and note what they were asked."""

# ruff: noqa: C408, F403, F405, SIM115 -- written as users of VLMEvalKit write

import hashlib
import json
import os

from vlmeval.api.base import BaseAPI
from vlmeval.smp import *
from vlmeval.vlm.base import BaseModel

from testbed.models.model_base import VLMEvalModel
from testbed.registry import registry

logger = get_logger(__name__)


def note(what, message, dataset):
    parts = [
        item["value"]
        if item["type"] == "text"
        else [osp.splitext(item["value"])[1], hashlib.sha256(open(item["value"], "rb").read()).hexdigest()]
        for item in message
    ]
    with open(osp.join(os.environ["WORLD_MARKS"], "asked"), "a") as file:
        file.write(json.dumps([what, dataset, parts]) + "\n")


def colour(path):
    mean = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3).mean(axis=0)
    return ["red", "green", "blue"][int(mean.argmax())]


class Seer(BaseModel):
    INTERLEAVE = True

    def __init__(self, model_path="none", own=False, **kwargs):
        super().__init__()
        assert model_path == "/models/seer"
        self.own = own
        self.kwargs = kwargs

    def use_custom_prompt(self, dataset):
        return self.own and dataset == "Colours"

    def build_prompt(self, line, dataset=None):
        assert self.use_custom_prompt(dataset)
        tgt_path = self.dump_image(line, dataset)
        hint = line["hint"] if ("hint" in line and not pd.isna(line["hint"])) else None
        msgs = [dict(type="text", value=f"{line['index'] + 1000}: {line['question']} ({hint})")]
        msgs.extend([dict(type="image", value=p) for p in tgt_path])
        return msgs

    def generate_inner(self, message, dataset=None):
        note("generate", message, dataset)
        if any("forbidden" in item["value"] for item in message if item["type"] == "text"):
            raise ValueError("I must not say")
        return " and ".join(colour(item["value"]) for item in message if item["type"] == "image").capitalize()

    def chat_inner(self, message, dataset=None):
        for turn in message:
            note(turn["role"], turn["content"], dataset)
        return f"turn {len(message)}"


class OnePicture(BaseModel):
    INTERLEAVE = False

    def generate_inner(self, message, dataset=None):
        prompt, image_path = self.message_to_promptimg(message, dataset=dataset)
        return f"{colour(image_path)}: {prompt}"


class Plain:
    """Derives from nothing."""

    def generate_inner(self, msgs, dataset=None):
        return colour(msgs[0]["value"])


class Served(BaseAPI):
    def generate_inner(self, inputs, **kwargs):
        text = inputs[-1]["value"]
        if "forbidden" in text:
            return 403, "", "it is forbidden"
        return 0, colour(inputs[0]["value"]), {"tokens": len(text)}


registry.add_model(VLMEvalModel("seer", Seer, model_path="/models/seer", weights="seer-1"))
registry.add_model(VLMEvalModel("own-prompt", Seer, model_path="/models/seer", own=True))
registry.add_model(VLMEvalModel("one-picture", OnePicture))
registry.add_model(VLMEvalModel("plain", Plain))
registry.add_model(VLMEvalModel("served", Served, retry=2, wait=0))
