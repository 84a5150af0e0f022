"""Classes in VLMEvalKit's form as models: how they are asked, and what counts as an answer."""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import Any

import pytest
from PIL import Image
from torch import nn

from testbed.calls import reason_of
from testbed.data.rows import Picture, Row
from testbed.errors import DefinitionError, RunError, SampleError
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.model_base import LoadOptions, VLMEvalModel
from testbed.standins.vlmevalkit.api import BaseAPI
from testbed.standins.vlmevalkit.vlm import BaseModel

CONFIG = GenerationConfig()


def picture(kind: str, shade: int = 0) -> Picture:
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (shade, 0, 0)).save(file, kind)
    return Picture(file.getvalue(), f"a {kind}")


ONE, OTHER = picture("JPEG"), picture("WEBP", 9)


def answers(cls: type, *messages: Message, **arguments: Any) -> list[Generation | Exception]:
    return VLMEvalModel("m", cls, **arguments).load(LoadOptions()).generate(messages, CONFIG)


def answer(cls: type, *parts: Any, **arguments: Any) -> Any:
    (found,) = answers(cls, Message(parts, data_set="Set"), **arguments)
    return found


class Recorder(BaseModel):
    """Says what it was given; files are read, and there only meanwhile."""

    paths: list[str] = []  # noqa: RUF012

    def told(self, message: list[dict[str, str]]) -> list[Any]:
        said: list[Any] = []
        for item in message:
            assert set(item) == {"type", "value"}
            if item["type"] == "image":
                self.paths.append(item["value"])
                with open(item["value"], "rb") as file:
                    said.append((os.path.splitext(item["value"])[1], file.read()))
            else:
                said.append(item["value"])
        return said

    def generate_inner(self, message: Any, dataset: str | None = None) -> str:
        return repr((self.told(message), dataset))


class Chatting(Recorder):
    def chat_inner(self, message: Any, dataset: str | None = None) -> str:
        return repr(([(turn["role"], self.told(turn["content"])) for turn in message], dataset))


def test_parts_keep_their_order_and_pictures_their_bytes() -> None:
    said = answer(Recorder, "first", ONE, "then", OTHER, "?")
    expected = ["first", (".jpg", ONE.data), "then", (".webp", OTHER.data), "?"]
    assert said.text == repr((expected, "Set"))
    assert Recorder.paths
    assert not any(os.path.exists(path) for path in Recorder.paths)
    assert answers(Recorder, Message(["no set"]))[0].text == repr((["no set"], None))  # type: ignore[union-attr]


def test_a_text_that_is_a_path_or_an_address_stays_a_text() -> None:
    texts = [os.path.abspath(__file__), "https://example.com/cat.jpg", "/tmp"]
    assert answer(Recorder, *texts).text == repr((texts, "Set"))


def test_a_conversation_has_roles_and_nothing_is_left_out_of_it() -> None:
    history = (Message(["one?", ONE]), Message(["yes"], "assistant"))
    message = Message(["two?"], history=history, data_set="Set")
    (said,) = answers(Chatting, message)
    turns = [("user", ["one?", (".jpg", ONE.data)]), ("assistant", ["yes"]), ("user", ["two?"])]
    assert said.text == repr((turns, "Set"))  # type: ignore[union-attr]
    (refused,) = answers(Recorder, message)
    assert str(refused) == "Recorder has no chat_inner(message, dataset), which multi-turn questions need"

    class Failing(Recorder):
        def chat_inner(self, message: Any, dataset: str | None = None) -> str:
            raise ValueError(f"{len(message)} turns are too many")

    (failed,) = answers(Failing, message)
    assert str(failed) == "3 turns are too many"


def test_a_model_that_takes_one_picture_gets_the_first_and_all_texts() -> None:
    class OnePicture(Recorder):
        INTERLEAVE = False

        def generate_inner(self, message: Any, dataset: str | None = None) -> str:
            prompt, path = self.message_to_promptimg(message, dataset=dataset)
            with Image.open(path or "") as image:
                return f"{prompt!r} {image.format} {image.width}x{image.height}"

    assert answer(OnePicture, "first", ONE, "then", OTHER).text == "'first\\nthen' JPEG 4x4"
    (blink,) = answers(OnePicture, Message([ONE, OTHER, "which?"], data_set="BLINK"))
    assert blink.text == "'which?' PNG 1024x512"  # type: ignore[union-attr]


def test_one_message_that_fails_takes_no_other_with_it() -> None:
    class Touchy:
        def generate_inner(self, msgs: Any, dataset: str | None = None) -> str:
            if msgs[0]["value"] == "b":
                raise ValueError("not b")
            return str(msgs[0]["value"])

    found = answers(Touchy, *(Message([text]) for text in "abc"))
    assert [getattr(each, "text", repr(each)) for each in found] == ["a", "ValueError('not b')", "c"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ((0, "cat", "fine"), Generation("cat")),
        ((0, "cat", {"calls": 2}), Generation("cat", extra={"extra_records": {"calls": 2}})),
        ({"prediction": "cat", "extra_records": {"at": ONE}}, ...),
        ((500, "", "busy"), "the API failed with the code 500:  busy"),
        ("Failed to obtain answer via API.", "Failed to obtain answer via API."),
        (None, "m: Returning answers with None; a text is expected"),
        (["cat"], "m: Returning answers with list (['cat']); a text is expected"),
    ],
)
def test_what_counts_as_an_answer(returned: Any, said: Any) -> None:
    class Returning:
        def generate_inner(self, message: Any, dataset: str | None = None) -> Any:
            return returned

    found = answer(Returning)
    if isinstance(said, str):
        assert isinstance(found, RunError)
        assert str(found) == said
    elif said is ...:
        assert (found.text, list(found.extra)) == ("cat", ["extra_records"])
    else:
        assert found == said


class Served(BaseAPI):
    asked = 0

    def generate_inner(self, inputs: Any, **kwargs: Any) -> tuple[int, str, Any]:
        type(self).asked += 1
        if "no" in inputs[-1].get("value", ""):
            return 403, "content policy", "refused"
        return 0, f"{[each.get('value', each.get('role')) for each in inputs]} {kwargs}", "ok"


def test_a_class_for_an_api_is_asked_as_often_as_it_says_and_its_failure_is_no_answer() -> None:
    definition = VLMEvalModel("api", Served, retry=3, wait=0, temperature=0)
    assert (definition.resource, definition.costs_money) == ("network", True)
    loaded = definition.load(LoadOptions())
    found = loaded.generate([Message(["yes"], data_set="Set"), Message(["no"], data_set="Set")], CONFIG)
    assert found[0] == Generation("['yes'] {'temperature': 0, 'dataset': 'Set'}")
    assert str(found[1]) == "Failed to obtain answer via API. refused"
    assert Served.asked == 4
    (chat,) = loaded.generate([Message(["b"], history=(Message(["a"]), Message(["x"], "assistant")))], CONFIG)
    assert chat == Generation("['user', 'assistant', 'user'] {'temperature': 0}")


class Prompting(BaseModel):
    def use_custom_prompt(self, dataset: str | None) -> bool:
        return dataset == "Mine"

    def build_prompt(self, line: Any, dataset: str | None = None) -> Any:
        if line["question"] == "bad":
            raise KeyError("hint")
        if line["question"] == "exit":
            sys.exit("no template")
        if line["question"] == "video":
            return [{"type": "video", "value": "x.mp4"}]
        assert line["image"]
        assert "B" not in line
        paths = self.dump_image(line, dataset)
        return [{"type": "image", "value": paths[1]}, {"type": "text", "value": f"{line['index'] + 1} {line['A']}"}]

    def generate_inner(self, message: Any, dataset: str | None = None) -> str:
        if message[0]["value"] == "exit":
            sys.exit(-1)
        return "an answer"


def test_code_that_exits_fails_at_its_question_alone() -> None:
    loaded = VLMEvalModel("m", Prompting).load(LoadOptions())
    lost, answer = loaded.generate([Message(["exit"]), Message(["what?"])], CONFIG)
    assert isinstance(lost, Exception)
    assert (reason_of(lost), answer) == ("SystemExit: -1", Generation("an answer"))
    with pytest.raises(SampleError, match="build_prompt fails: SystemExit: no template"):
        loaded.prompt_for(Row("7", {"question": "exit"}), "Mine")


def test_an_own_prompt_is_made_of_the_row() -> None:
    loaded = VLMEvalModel("m", Prompting).load(LoadOptions())
    row = Row("7", {"question": "what?", "A": "None"}, (ONE, OTHER))
    assert loaded.prompt_for(row, "Other") is None
    ((shown, text),) = loaded.prompt_for(row, "Mine") or ()
    assert isinstance(shown, Picture)
    assert (shown.data, text) == (OTHER.data, "8 None")
    for question, why in (("bad", "build_prompt fails: KeyError: 'hint'"), ("video", "a part of the type 'video'")):
        with pytest.raises(SampleError, match=why):
            loaded.prompt_for(Row("7", {"question": question}), "Mine")


def test_what_a_model_is() -> None:
    first, same, other = (VLMEvalModel("m", Served, retry=retry).spec() for retry in (1, 1, 2))
    assert first == same != other
    with pytest.raises(DefinitionError, match=r"a class with generate_inner\(message, dataset=None\) is expected"):
        VLMEvalModel("m", dict)


class Holding(BaseModel):
    def __init__(self, fill: float) -> None:
        self.network = nn.Linear(2, 2)
        nn.init.constant_(self.network.weight, fill)
        nn.init.zeros_(self.network.bias)
        self.lock = threading.Lock()  # which has no content that could be identified

    def generate_inner(self, message: Any, dataset: str | None = None) -> str:
        return str(self.network.weight[0, 0].item())


def test_the_weights_are_those_of_the_networks_that_the_object_holds() -> None:
    first, same, other = (VLMEvalModel("m", Holding, fill=fill).weights() for fill in (0.5, 0.5, 0.25))
    assert first == same
    assert first is not None
    assert other is not None
    assert first.id.startswith("state:")
    assert first.id != other.id
    assert first.size_bytes == 24
    assert answer(Holding, fill=0.5).text == "0.5"
