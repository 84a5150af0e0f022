"""vLLM in this process: what it is given and how its answers are stored, with a stand-in that has its signatures.

Where vLLM itself is installed, our arguments are those of its own classes.
"""

from __future__ import annotations

import base64
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import save_file
from table_world import photo

from testbed.data.rows import Picture
from testbed.errors import DefinitionError, MissingExtraError, UnreachedError, UnsupportedError, WeightsError
from testbed.identity.describe import digest
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.model_base import LoadOptions
from testbed.models.vllm_models import VllmFamily, VllmModel, sampling

STANDINS = Path(__file__).parent.parent / "standins"
SHORT = GenerationConfig(8)
CPU = LoadOptions("cpu")
DRAWN = GenerationConfig(16, 0.7, ("\n", ""), 0.0, 40, 1, 1.1, 0.5, seed=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder; the stand-in reads nothing of it."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text('{"model_type": "qwen2_vl", "hidden_size": 8}')
    (made / "tokenizer.json").write_text("{}")
    save_file({"weight": np.ones((2, 2), np.float32)}, made / "model.safetensors")
    return made


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], list[Any]]]:
    """The stand-in in place of vLLM, and a function that gives what it was told."""
    path = tmp_path / "vllm.jsonl"
    path.touch()
    monkeypatch.syspath_prepend(str(STANDINS))
    monkeypatch.setenv("VLLM_LOG", str(path))
    monkeypatch.delenv("VLLM_BATCH_INVARIANT", raising=False)
    real = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "vllm"}
    yield lambda what: [found[what] for line in path.read_text().splitlines() if what in (found := json.loads(line))]
    sys.modules.pop("vllm", None)
    sys.modules.update(real)


def encoded(name: str) -> Picture:
    return Picture(photo(name))


def messages() -> list[Message]:
    """Two questions about each of two pictures in turn, one without any, and a second turn."""
    before = [Message([encoded("coffee"), "what is it"]), Message(["a cup"], role="assistant")]
    return [
        Message([encoded("rocket"), "one"], sample="0"),
        Message([encoded("chelsea"), "two"], sample="1"),
        Message([encoded("rocket"), "three"], sample="2"),
        Message(["four"], sample="3"),
        Message([encoded("chelsea"), "five"], sample="4"),
        Message(["sure"], history=before, sample="5"),
    ]


def test_all_messages_are_one_call_ordered_by_picture(folder: Path, log: Callable[[str], list[Any]]) -> None:
    loaded = VllmFamily().build(f"vllm/{folder}").load(CPU)
    found = loaded.generate(messages(), SHORT)
    (chats,) = log("chats")
    said = [turns[-1]["content"] if isinstance(turns[-1]["content"], str) else turns[-1]["content"][-1]["text"]
            for turns in chats]  # fmt: skip
    assert sorted(said) == ["five", "four", "one", "sure", "three", "two"]
    assert abs(said.index("one") - said.index("three")) == abs(said.index("two") - said.index("five")) == 1
    again = [loaded.generate([message], SHORT)[0] for message in messages()]
    assert found == again  # in the order of the messages, not of the call
    assert all(isinstance(each, Generation) and each.text in [f"{a} it is" for a in "ABCD"] for each in found)
    assert found[0].finish_reason == "stop"
    assert found[0].extra["output_tokens"] == 3
    assert found[0].extra["prompt_tokens"] > 10
    cut = loaded.generate(messages()[:1], GenerationConfig(2))[0]
    assert (cut.finish_reason, cut.extra["output_tokens"]) == ("length", 2)


def test_pictures_go_as_their_bytes_and_earlier_turns_as_turns(folder: Path, log: Callable[[str], list[Any]]) -> None:
    loaded = VllmModel("m", str(folder), chat_template="{{ messages }}").load(CPU)
    loaded.generate([messages()[5]], GenerationConfig(8, system="be brief"))
    ((turns,),) = log("chats")
    assert [each["role"] for each in turns] == ["system", "user", "assistant", "user"]
    url = turns[1]["content"][0]["image_url"]["url"]
    assert base64.b64decode(url.removeprefix("data:image/png;base64,")) == photo("coffee")
    assert log("template") == ["{{ messages }}"]
    loaded.generate([Message([Image.new("RGB", (4, 4)), "what"])], SHORT)
    assert log("chats")[1][0][0]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_refused_message_takes_no_other_with_it(folder: Path, log: Callable[[str], list[Any]]) -> None:
    loaded = VllmModel("m", str(folder)).load(CPU)
    asked = [*messages(), Message(["REFUSE"]), Message([Picture(b"no", "x.png"), "what"]), Message(["BREAK"])]
    found = loaded.generate(asked, SHORT)
    assert found[:6] == loaded.generate(messages(), SHORT)
    assert "longer than the maximum model length" in str(found[6])
    assert "x.png" in str(found[7])
    assert isinstance(found[8], UnreachedError)  # asked again by the next run


def test_what_is_drawn_follows_from_the_sample_alone(folder: Path, log: Callable[[str], list[Any]]) -> None:
    loaded = VllmModel("m", str(folder)).load(CPU)
    drawn = loaded.generate(messages(), DRAWN)
    assert loaded.generate(messages()[::-1], DRAWN)[::-1] == drawn
    assert [loaded.generate([each], DRAWN)[0] for each in messages()] == drawn
    (first, *_) = log("sampling")
    assert len({each["seed"] for each in first}) == 6
    shared = {"temperature": 0.7, "top_k": 40, "top_p": 1e-9, "stop": ["\n"], "max_tokens": 16, "n": 1}
    assert all(first[0][key] == value for key, value in shared.items())
    assert (first[0]["repetition_penalty"], first[0]["presence_penalty"]) == (1.1, 0.5)
    loaded.generate(messages()[:1], SHORT)
    assert (log("sampling")[-1][0]["temperature"], log("sampling")[-1][0]["seed"]) == (0, None)


def test_what_vllm_does_not_do_is_said(folder: Path, log: Callable[[str], list[Any]]) -> None:
    model = VllmModel("m", str(folder))
    loaded = model.load(CPU)
    with pytest.raises(UnsupportedError, match="no beam search, but num_beams is 4"):
        loaded.generate(messages(), GenerationConfig(8, num_beams=4))
    with pytest.raises(UnsupportedError, match=r"m: vLLM does not take this generation: .*presence_penalty"):
        loaded.generate(messages(), GenerationConfig(8, presence_penalty=3))
    with pytest.raises(WeightsError, match="leave out --random-weights"):
        model.load(LoadOptions("cpu", random_seed=1))
    for options in ({"max_model_len": 0}, {"tensor_parallel": 1.5}, {"gpu_memory": 2}, {"engine": {"dtype": "half"}}):
        with pytest.raises(DefinitionError, match="'m'"):
            VllmModel("m", str(folder), **options)


def test_the_engine_gets_the_options_and_the_device(
    folder: Path, log: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"max_model_len": 4096, "quantization": "fp8", "limit_mm_per_prompt": {"image": 64}}
    model = VllmModel("m", str(folder), **options, engine={"mm_processor_kwargs": {"max_pixels": 9}})
    model.load(LoadOptions("cuda:1", "bfloat16"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    model.load(LoadOptions("cuda:1"))
    found, devices = log("engine"), [each["CUDA_VISIBLE_DEVICES"] for each in log("environment")]
    assert devices == ["1", "6"]
    assert found[0] == {
        **options, "model": str(folder), "trust_remote_code": False, "load_format": "safetensors",
        "dtype": "bfloat16", "tensor_parallel_size": 1, "mm_processor_kwargs": {"max_pixels": 9},
    }  # fmt: skip
    assert found[1]["dtype"] == "auto"
    with pytest.raises(UnsupportedError, match="run it with --gpus 0"):
        VllmModel("m", str(folder), tensor_parallel=2).load(LoadOptions("cuda:1"))


def test_the_identity_has_what_answers_follow_from(
    folder: Path, log: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(**options: Any) -> str:
        return digest(VllmModel("m", str(folder), **options).spec())

    plain = found()
    assert found(gpu_memory=0.5, eval_batch_size=3) == plain
    others: list[dict[str, Any]] = [
        {"dtype": "float16"}, {"max_model_len": 99}, {"quantization": "fp8"}, {"tensor_parallel": 2},
        {"limit_mm_per_prompt": {"image": 3}}, {"chat_template": "x"}, {"engine": {"enforce_eager": True}},
    ]  # fmt: skip
    digests = {plain, *(found(**each) for each in others)}
    monkeypatch.setenv("VLLM_BATCH_INVARIANT", "1")
    digests.add(found())
    assert VllmModel("m", str(folder)).spec()["generator"]["version"] == "0.33.0"
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    digests.add(found())
    assert len(digests) == len(others) + 3


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is here")
def test_without_vllm_one_line_names_the_extra(folder: Path) -> None:
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[vllm\]'"):
        VllmFamily().build(f"vllm/{folder}")


@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="testbed[vllm] is not here")
def test_our_arguments_are_those_of_vllm_itself() -> None:
    import vllm

    made = vllm.SamplingParams(**sampling(Message(["x"], sample="1"), DRAWN))
    assert (made.max_tokens, made.temperature, made.top_k, made.n) == (16, 0.7, 40, 1)
    vllm.SamplingParams(**sampling(Message(["x"]), SHORT))
    given = {"messages", "sampling_params", "use_tqdm", "chat_template"}
    assert given <= set(inspect.signature(vllm.LLM.chat).parameters)
    named = {"model", "trust_remote_code", "dtype", "gpu_memory_utilization", "tensor_parallel_size", "quantization"}
    assert named <= set(inspect.signature(vllm.LLM.__init__).parameters)


def test_thoughts_that_the_prompt_opens_are_known_and_their_marks_are_written(
    folder: Path, log: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = VllmModel("m", str(folder)).load(CPU)
    (plain,) = loaded.generate(messages()[:1], SHORT)
    assert "thinking_begun" not in plain.extra
    monkeypatch.setenv("VLLM_PROMPT", "assistant: <think>\n")
    (begun,) = loaded.generate(messages()[:1], SHORT)
    assert begun.extra["thinking_begun"] is True
    monkeypatch.setenv("VLLM_SPECIAL", "</s> [THINK] [/THINK]")
    loaded.generate(messages()[:1], SHORT)
    assert [each[0]["skip_special_tokens"] for each in log("sampling")] == [True, True, False]
