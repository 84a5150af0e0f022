"""Models that answer in text, on a device against the CPU: the same tokens, greedily and in float32."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch
from coca_world import save_coca, tiny_coca
from device_under_test import DEVICE, sized
from PIL import Image

from testbed.models.base.capability import GenerationConfig, Message
from testbed.models.model_base import LoadOptions
from testbed.models.open_clip_coca import CaptionerFamily
from testbed.registry import registry

pytestmark = pytest.mark.gpu
with_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def picture(seed, width=40, height=30):
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def answers(model, device, messages, batch=100, **options):
    loaded = model.load(LoadOptions(device, **options.pop("load", {})))
    config, found = GenerationConfig(**options), []
    for start in range(0, len(messages), batch):
        found += loaded.generate(messages[start : start + batch], config)
    for answer in found:
        if isinstance(answer, Exception):
            raise answer
    return [(answer.text, answer.finish_reason) for answer in found]


# open_clip's CoCa -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coca(tmp_path_factory):
    return CaptionerFamily().build(
        f"captioner/local-dir:{save_coca(tiny_coca(), tmp_path_factory.mktemp('coca') / 'c')}"
    )


SEEN = [Message([picture(seed)], sample=str(seed)) for seed in range(sized(5, 3))]


@pytest.mark.parametrize("options", [{"top_k": 1}, {}, {"num_beams": 3}], ids=["greedy", "groups", "beams"])
def test_captions_of_coca(options, coca):
    expected = answers(coca, "cpu", SEEN, **options)
    assert len(set(expected)) > 1
    assert answers(coca, DEVICE, SEEN, **options) == expected


def test_captions_do_not_depend_on_the_batch(coca):
    assert answers(coca, DEVICE, SEEN, batch=2) == answers(coca, DEVICE, SEEN)


def test_captions_that_are_drawn_follow_from_the_seed(coca):
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(answers(coca, DEVICE, SEEN, temperature=1.0))
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_captions_of_lower_precision(dtype, coca):
    assert all(text for text, _ in answers(coca, DEVICE, SEEN[:2], top_k=1, load={"dtype": dtype}))


# transformers -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["llava", "qwen"])
def vlm(request, tmp_path_factory):
    from vlm_world import save_llava, save_qwen

    from testbed.models.transformers_vlm import VlmFamily

    folder = {"llava": save_llava, "qwen": save_qwen}[request.param](tmp_path_factory.mktemp("vlm") / request.param)
    return VlmFamily().build(f"vlm/{folder}")


def conversations():
    before = [Message([picture(3), "what is it"]), Message(["a cat"], role="assistant")]
    return [
        Message([picture(0), "what is this"]),
        Message([picture(5), "describe it"]),
        Message(["say yes"]),
        Message(["first", picture(1, 30, 60), "second", picture(2), "describe it"]),
        Message(["describe it again and be brief"], history=before),
    ]


@with_transformers
@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"repetition_penalty": 1.3}, {"presence_penalty": 0.5}])
def test_answers_of_vision_language_models(options, vlm):
    expected = answers(vlm, "cpu", conversations(), max_new_tokens=12, **options)
    assert len(set(expected)) > 1
    assert answers(vlm, DEVICE, conversations(), max_new_tokens=12, **options) == expected


@with_transformers
def test_answers_do_not_depend_on_the_batch(vlm):
    whole = answers(vlm, DEVICE, conversations(), max_new_tokens=12)
    assert answers(vlm, DEVICE, conversations(), batch=1, max_new_tokens=12) == whole


@with_transformers
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_answers_of_lower_precision(dtype, vlm):
    found = answers(vlm, DEVICE, conversations(), max_new_tokens=6, load={"dtype": dtype})
    assert len(found) == len(conversations())


# The digits' reader -----------------------------------------------------------------------------------------------


def test_answers_about_digits():
    question = "Which digit is it?\nA. three\nB. seven\nC. one\n"
    asked = [Message([picture(seed, 32, 32), question], sample=str(seed)) for seed in range(8)]
    model = registry.get_model("digits-talker")
    given = {"load": {"random_seed": 0}}
    assert answers(model, DEVICE, asked, **given) == answers(model, "cpu", asked, load={"random_seed": 0})
