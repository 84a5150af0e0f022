"""Models that answer in text: what is asked of them, and recorded predictions in their place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from testbed.errors import DataError, DefinitionError, RunError, SampleError, UnknownNameError, WeightsError
from testbed.models.base.capability import GENERATE, Generates, Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.models.model_base import LoadOptions
from testbed.registry import registry
from testbed.registry.select import select

CONFIG = GenerationConfig()


def messages(*samples: str) -> list[Message]:
    return [Message([], sample=sample) for sample in samples]


class Parrot:
    """Says the id of the sample."""

    def __init__(self, answer: Callable[[list[Message]], Any] | None = None) -> None:
        self.answer = answer or (lambda asked: [Generation(each.sample) for each in asked])

    def generate(self, asked: list[Message], config: GenerationConfig) -> Any:
        return self.answer(asked)


def test_a_generator_answers_every_message() -> None:
    definition = Generator("parrot", Parrot, eval_batch_size=3, weights="parrot-1")
    assert definition.capabilities == {GENERATE}
    assert definition.transform is None
    assert definition.batch_size(adversarial=False) == 3
    loaded = definition.load(LoadOptions())
    assert isinstance(loaded, Generates)
    assert [each.text for each in loaded.generate(messages("b", "a"), CONFIG)] == ["b", "a"]
    assert loaded.generate([], CONFIG) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda asked: [Generation("x")], "a list of 2 generations was expected, one for each message; got 1"),
        (lambda asked: "xy", "got str"),
        (lambda asked: (Generation(each.sample) for each in asked), "got generator"),
        (lambda asked: ["x", "y"], "a Generation with a text was expected, got 'x'"),
        (lambda asked: [Generation(None)] * 2, "a Generation with a text was expected, got Generation"),  # type: ignore[arg-type]
    ],
)
def test_answers_that_do_not_fit_the_messages_are_refused(answer: Callable[[list[Message]], Any], said: str) -> None:
    loaded = Generator("parrot", lambda: Parrot(answer)).load(LoadOptions())
    with pytest.raises(RunError, match=f"^parrot: .*{said}"):
        loaded.generate(messages("a", "b"), CONFIG)


class Network(nn.Module):
    """Says whether it is in evaluation mode, keeps gradients, and in which type it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def generate(self, asked: list[Message], config: GenerationConfig) -> list[Generation]:
        result = self.layer(torch.ones(1, 2))
        return [Generation(f"{self.training} {result.requires_grad} {result.dtype}")] * len(asked)


def test_a_network_runs_in_evaluation_mode_without_gradients_at_the_precision_of_the_run() -> None:
    definition = Generator("net", Network)
    assert definition.load(LoadOptions()).generate(messages("a"), CONFIG)[0].text == "False False torch.float32"
    low = definition.load(LoadOptions(dtype="bfloat16"))
    assert low.generate(messages("a"), CONFIG)[0].text == "False False torch.bfloat16"
    assert torch.is_grad_enabled()


def test_what_a_generator_is() -> None:
    network = Network()
    definition = Generator("net", lambda: network, architecture={"layers": 1}, arch="net")
    found = definition.weights()
    assert found is not None
    assert found.id.startswith("state:")
    assert definition.spec()["generator"] == {"layers": 1}
    with pytest.raises(DefinitionError, match="generator_loader must be a function without arguments"):
        Generator("net", network.layer.weight)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="must return an object with generate"):
        Generator("net", lambda: 3).load(LoadOptions())


# Recorded predictions ---------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Predictions of three captioners."""
    (tmp_path / "internvl.json").write_text(json.dumps({"v1": "A dog.", "v2": "", "v3": 7, "v4": None}))
    (tmp_path / "longva.json").write_text(json.dumps({"v1": "A cat."}))
    (tmp_path / "oryx.jsonl").write_text(json.dumps({"id": "v1", "caption": "A cow."}))
    (tmp_path / "notes.txt").write_text("no predictions")
    return tmp_path


def model(name: Path | str) -> Any:
    return registry.get_model(f"replay:{name}")


def test_recorded_predictions_answer_by_sample(folder: Path) -> None:
    loaded = model(folder / "internvl.json").load(LoadOptions())
    answers = loaded.generate(messages("v2", "v1", "v3", "v4", "v5"), GenerationConfig(max_new_tokens=1))
    damaged = answers.pop(2)
    assert isinstance(damaged, SampleError)
    assert str(damaged) == "a text was expected, the value 7 was found"
    nothing = Generation("", "missing")
    assert answers == [Generation("", "stop"), Generation("A dog.", "stop"), nothing, nothing]
    assert loaded.coverage(["v1", "v2", "v3", "v4", "v5"]) == 2
    with pytest.raises(DataError, match="is 'v1' meant to be 'V1'"):
        loaded.coverage(["V1"])


def test_an_id_that_is_like_that_of_a_sample_without_a_prediction_is_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "misspelt.json").write_text(json.dumps({"video_001": "A dog.", "video_02": "A cat.", "other": "A cow."}))
    loaded = model(folder / "misspelt.json").load(LoadOptions())
    with caplog.at_level("WARNING"):
        assert loaded.coverage(["video_001"]) == 1  # nothing lacks a prediction
        assert not caplog.messages
        assert loaded.coverage(["video_001", "video_002"]) == 1
    (line,) = caplog.messages
    assert line.endswith("misspelt.json: 2 of its ids are of no sample; is 'video_02' meant to be 'video_002'?")


def test_recorded_predictions_are_told_apart_by_content(folder: Path) -> None:
    copy = folder / "copy" / "other.json"
    copy.parent.mkdir()
    copy.write_bytes((folder / "longva.json").read_bytes())
    one, other = model(folder / "longva.json"), model(copy)
    assert one.weights() == other.weights()
    assert one.spec() == other.spec()
    assert one.weights() != model(folder / "internvl.json").weights()


def test_names_in_the_folder_of_predictions(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [name for name in registry.model_names() if name.startswith("replay:")]
    with pytest.raises(
        WeightsError, match=r"give --predictions DIR or set TESTBED_PREDICTIONS, where DIR/longva\.json"
    ):
        model("longva").weights()
    monkeypatch.setenv("TESTBED_PREDICTIONS", str(folder))
    listed = [name for name in registry.model_names() if name.startswith("replay:")]
    assert listed == ["replay:internvl", "replay:longva", "replay:oryx"]
    assert model("oryx").load(LoadOptions()).generate(messages("v1"), CONFIG) == [Generation("A cow.")]
    assert model("longva").weights() == model(folder / "longva.json").weights()
    said = r"internvll\.json is missing in .*, which has internvl, longva, oryx; did you mean 'internvl'\?"
    with pytest.raises(WeightsError, match=said):
        model("internvll").weights()
    with pytest.raises(WeightsError, match=r"LongVA\.json does not exist; did you mean 'longva'\?"):
        model(folder / "LongVA.json").weights()
    with pytest.raises(WeightsError, match=r"zzz\.json does not exist$"):
        model(folder / "zzz.json").weights()
    monkeypatch.setenv("TESTBED_PREDICTIONS", str(folder / "absent"))
    with pytest.raises(WeightsError, match=r"which has no \.json file"):
        model("longva").weights()


def chosen(*words: str) -> list[str]:
    registry.load()
    return select(registry.models, registry.model_collections, words)


def test_patterns_stand_for_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    both = [f"replay:{folder / name}.json" for name in ("internvl", "longva")]
    assert chosen("replay:*.json") == both
    assert chosen(f"replay:{folder}/*.json") == both
    assert chosen("replay:./longva.json") == both[1:]
    assert chosen("replay:*.jsonl") == [f"replay:{folder / 'oryx.jsonl'}"]
    with pytest.raises(UnknownNameError, match=r"no file matches .*/x\*\.json'"):
        chosen("replay:x*.json")
    odd = folder / "run[1].json"
    odd.write_text('{"v1": "x"}')
    assert chosen(f"replay:{odd}") == [f"replay:{odd}"]  # brackets in the name of a file are letters
    monkeypatch.setenv("TESTBED_PREDICTIONS", str(folder))
    assert chosen("replay:*v*") == ["replay:internvl", "replay:longva"]
    with pytest.raises(UnknownNameError, match=r"no model matches the pattern 'replay:z\*'"):
        chosen("replay:z*")


def test_what_recorded_predictions_cannot_do(folder: Path) -> None:
    with pytest.raises(WeightsError, match=r"the file of predictions .*/absent\.json does not exist"):
        model(folder / "absent.json").weights()
    (folder / "absent.json").mkdir()
    with pytest.raises(WeightsError, match=r"the file of predictions .*/absent\.json is a folder"):
        model(folder / "absent.json").weights()
    with pytest.raises(WeightsError, match="recorded predictions have no weights; leave out --random-weights"):
        model(folder / "longva.json").load(LoadOptions(random_seed=0))
    (folder / "longva.json").write_text('{"v1": ')
    with pytest.raises(DataError, match=r"longva\.json is not valid JSON"):
        model(folder / "longva.json").load(LoadOptions())
    assert "replay:" not in registry.models


def test_replaying_needs_no_torch(folder: Path) -> None:
    code = (
        "import sys\nfrom testbed.models.base.capability import GenerationConfig, Message\n"
        "from testbed.models.base.definition import LoadOptions\nfrom testbed.models.replay import Replay\n"
        f"loaded = Replay('replay:{folder / 'longva.json'}').load(LoadOptions())\n"
        "print(loaded.generate([Message([], sample='v1')], GenerationConfig())[0].text, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["A", "cat.", "False"]
