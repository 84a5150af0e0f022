"""transformers' vision-language models: what transformers itself answers, from tiny networks drawn at random."""

from __future__ import annotations

import base64
import importlib.metadata
import importlib.util
import io
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import table_world
import torch
from PIL import Image
from vlm_world import TEMPLATE, save_llava, save_qwen

from testbed.data.rows import Picture
from testbed.db.store import Store
from testbed.errors import DefinitionError, MissingExtraError, UnsupportedError, WeightsError
from testbed.identity.describe import digest
from testbed.models.base.capability import GENERATE, GenerationConfig, Message
from testbed.models.model_base import LoadOptions
from testbed.models.transformers_vlm import ImageTextModel, VlmFamily
from testbed.registry import registry

FAMILY = VlmFamily()
CPU = LoadOptions("cpu")
SHORT = GenerationConfig(12)
here = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="testbed[vlm] is not here")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of each kind."""
    root, made = tmp_path_factory.mktemp("vlm"), {}

    def get(kind: str) -> Path:
        if kind not in made:
            made[kind] = {"llava": save_llava, "qwen": save_qwen}[kind](root / kind)
        return made[kind]

    return get


def built(folder: Path) -> ImageTextModel:
    return FAMILY.build(f"vlm/{folder}")


def picture(seed: int, width: int = 40, height: int = 30) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def encoded(image: Image.Image) -> Picture:
    file = io.BytesIO()
    image.save(file, "PNG")
    return Picture(file.getvalue())


def conversations() -> list[Message]:
    """A picture and a text, a text alone, two pictures between texts, a second turn."""
    before = [Message([picture(3), "what is it"]), Message(["a cat"], role="assistant")]
    return [
        Message([picture(0), "what is this"]),
        Message(["say yes"]),
        Message(["first", encoded(picture(1, 30, 60)), "second", picture(2), "describe it"]),
        Message(["describe it again and be brief"], history=before),
    ]


# What transformers answers ----------------------------------------------------------------------------------------


def as_documented(folder: Path, turns: list[dict[str, Any]], pictures: list[Any], longest: int) -> str:
    """The answer by the way of transformers' documentation."""
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(folder)
    network = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    prompt = processor.apply_chat_template(turns, add_generation_prompt=True)
    inputs = processor(text=prompt, images=pictures or None, return_tensors="pt", add_special_tokens=False)
    inputs.pop("token_type_ids", None)
    found = network.generate(**inputs, max_new_tokens=longest, do_sample=False)
    text: str = processor.decode(found[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return text.strip()


def said(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


@here
@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_answers_are_those_of_transformers(folders: Callable[[str], Path], kind: str) -> None:
    image = {"type": "image"}
    second = [said("first"), image, said("second"), image, said("describe it")]
    turns = [
        [{"role": "user", "content": [image, said("what is this")]}],
        [{"role": "user", "content": [said("say yes")]}],
        [{"role": "user", "content": second}],
        [
            {"role": "user", "content": [image, said("what is it")]},
            {"role": "assistant", "content": [said("a cat")]},
            {"role": "user", "content": [said("describe it again and be brief")]},
        ],
    ]
    pictures = [[picture(0)], [], [picture(1, 30, 60), picture(2)], [picture(3)]]
    expected = [as_documented(folders(kind), *given, 12) for given in zip(turns, pictures, strict=True)]
    loaded = built(folders(kind)).load(CPU)
    found = loaded.generate(conversations(), SHORT)
    assert [each.text for each in found] == expected
    assert len(set(expected)) > 2
    prompted = loaded.generate([conversations()[0]], GenerationConfig(12, system="be brief"))[0]
    system = {"role": "system", "content": [said("be brief")]}
    assert prompted.text == as_documented(folders(kind), [system, *turns[0]], pictures[0], 12)
    assert prompted.extra["prompt_tokens"] == found[0].extra["prompt_tokens"] + 4


@here
@pytest.mark.parametrize("kind", ["llava", "qwen"])
def test_an_answer_does_not_depend_on_its_batch(folders: Callable[[str], Path], kind: str) -> None:
    loaded = built(folders(kind)).load(CPU)
    messages = conversations() + [Message([picture(seed), "what is this " * seed]) for seed in range(4, 8)]
    alone = [loaded.generate([message], SHORT)[0] for message in messages]
    assert loaded.generate(messages, SHORT) == alone
    assert loaded.generate(messages[:4], SHORT) == alone[:4]
    assert loaded.generate(messages[::-1], SHORT) == alone[::-1]
    assert len({each.text for each in alone}) > 3


@here
def test_messages_whose_pictures_have_one_shape_share_a_batch(folders: Callable[[str], Path]) -> None:
    loaded = built(folders("llava")).load(CPU)
    rows = []
    loaded.generator.network.register_forward_hook(lambda module, given, found: rows.append(len(found.logits)))
    loaded.generate([Message([picture(seed), "what is this"]) for seed in range(4)], GenerationConfig(1))
    assert rows == [4]
    rows.clear()
    loaded.generate(conversations(), GenerationConfig(1))
    assert sorted(rows) == ([1, 3] if importlib.metadata.version("transformers") >= "5" else [1] * 4)


@here
def test_a_message_that_cannot_be_answered_takes_no_other_with_it(folders: Callable[[str], Path]) -> None:
    loaded = built(folders("llava")).load(CPU)
    good = conversations()[0]
    broken = Message([Picture(b"\x89PNG\r\n\x1a\nno", "x.png"), "what"])
    found = loaded.generate([broken, good, Message([3])], SHORT)
    assert "x.png" in str(found[0])
    assert found[1] == loaded.generate([good], SHORT)[0]
    assert isinstance(found[2], UnsupportedError)
    assert "the parts of a message are texts and pictures; got int" in str(found[2])


# How text is generated --------------------------------------------------------------------------------------------


@here
def test_the_configuration_decides_and_the_folders_own_does_not(folders: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders("llava"), tmp_path / "drawing")
    path = folder / "generation_config.json"
    own = {"do_sample": True, "temperature": 2.0, "repetition_penalty": 9.0, "max_new_tokens": 2, "num_beams": 2}
    path.write_text(json.dumps(json.loads(path.read_text()) | own))
    loaded, plain = built(folder).load(CPU), built(folders("llava")).load(CPU)
    messages = conversations()
    assert loaded.generate(messages, SHORT) == plain.generate(messages, SHORT)

    def answer(seed: int = 0, **options: Any) -> str:
        torch.manual_seed(seed)
        text: str = loaded.generate(messages[:1], GenerationConfig(12, **options))[0].text
        return text

    greedy = answer()
    assert answer(temperature=1.0) == answer(temperature=1.0)
    assert len({answer(seed, temperature=1.0) for seed in range(5)}) > 1
    assert {answer(seed, temperature=1.0, top_k=1) for seed in range(5)} == {greedy}
    assert {answer(seed, temperature=1.0, top_p=0.0) for seed in range(5)} == {greedy}
    assert answer(num_beams=3) == answer(1, num_beams=3)
    words = answer(presence_penalty=1e6).split()
    assert len(set(words)) == len(words) > 1
    assert answer(repetition_penalty=50.0) != greedy
    for options in ({"temperature": -1.0}, {"top_k": -1}, {"num_beams": 0}, {"repetition_penalty": 0.0}):
        with pytest.raises(UnsupportedError, match=next(iter(options))):
            answer(**options)


@here
def test_why_an_answer_ends(folders: Callable[[str], Path], tmp_path: Path) -> None:
    loaded = built(folders("llava")).load(CPU)
    message = conversations()[:1]
    whole = loaded.generate(message, SHORT)[0]
    assert whole.extra["output_tokens"] <= 12
    words = whole.text.split()
    stopped = loaded.generate(message, GenerationConfig(12, stop=("", words[1])))[0]
    assert stopped.finish_reason == "stop"
    assert stopped.text == whole.text[: whole.text.index(words[1])].strip()
    cut = loaded.generate(message, GenerationConfig(2))[0]
    assert (cut.finish_reason, cut.extra["output_tokens"]) == ("length", 2)
    first = loaded.generator.tokenizer.convert_tokens_to_ids(words[0])
    folder = shutil.copytree(folders("llava"), tmp_path / "ending")
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": [2, first]}))
    ended = built(folder).load(CPU).generate(message, SHORT)[0]
    assert (ended.text, ended.finish_reason, ended.extra["output_tokens"]) == ("", "stop", 1)


# Names, weights, identity -----------------------------------------------------------------------------------------


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "llava").mkdir(parents=True)
    known = registry.load().models.canonical
    assert known("vlm/owner/name") == "vlm/owner/name"
    assert registry.models.source("vlm/owner/name") == "family vlm"
    assert known("vlm/runs/llava") == known("vlm/./runs/llava") == f"vlm/{tmp_path}/runs/llava"
    assert FAMILY.canonical("vlm/") is None
    assert FAMILY.canonical("resnet18") is None


def test_missing_and_old_libraries_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"needs the package transformers: pip install -e '\.\[vlm\]'"):
        FAMILY.build("vlm/owner/name")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "4.49.1")
    with pytest.raises(DefinitionError, match=r"needs transformers 4\.52 or later, found 4\.49\.1: pip install"):
        FAMILY.build("vlm/owner/name")


@here
def test_its_identity(folders: Callable[[str], Path], tmp_path: Path) -> None:
    made = built(folders("llava"))
    assert made.capabilities == {GENERATE}
    copy = shutil.copytree(folders("llava"), tmp_path / "copy")
    same = built(copy)
    assert made.weights() == same.weights() != built(folders("qwen")).weights()
    assert digest(made.spec()) == digest(same.spec())
    (copy / "chat_template.jinja").write_text(TEMPLATE.replace("assistant : ", "assistant "))
    assert digest(made.spec()) != digest(same.spec())
    own = ImageTextModel("own", str(folders("llava")), chat_template=TEMPLATE.replace("assistant : ", ""))
    assert digest(own.spec()) != digest(made.spec())
    answers = [each.load(CPU).generate(conversations()[:1], SHORT)[0] for each in (made, own)]
    assert answers[0].extra["prompt_tokens"] == answers[1].extra["prompt_tokens"] + 2
    renamed = made.under_name("renamed")
    assert digest(renamed.spec()) == digest(made.spec())


@here
def test_limits_of_pixels(folders: Callable[[str], Path]) -> None:
    folder = str(folders("qwen"))
    whole, small = ImageTextModel("whole", folder), ImageTextModel("small", folder, max_pixels=4 * 28 * 28)
    assert digest(whole.spec()) != digest(small.spec())
    message = [Message([picture(0, 112, 112), "what is this"])]
    tokens = [each.load(CPU).generate(message, SHORT)[0].extra["prompt_tokens"] for each in (whole, small)]
    assert tokens[0] - tokens[1] == 16 - 4
    with pytest.raises(UnsupportedError, match="min_pixels and max_pixels are for processors that have such limits"):
        ImageTextModel("llava", str(folders("llava")), min_pixels=9).load(CPU)
    with pytest.raises(DefinitionError, match="max_pixels is a positive number of pixels; got 0"):
        ImageTextModel("none", folder, max_pixels=0)


@here
def test_random_weights_follow_from_the_seed(folders: Callable[[str], Path]) -> None:
    made = built(folders("llava"))
    first, again, other = (made.load(LoadOptions("cpu", random_seed=seed)).generator for seed in (1, 1, 2))
    states = [torch.cat([each.flatten() for each in one.state_dict().values()]) for one in (first, again, other)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])
    assert made.weights(random_seed=1).id == "random:1"


@here
@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", None, "should be transformers' configuration of a vision-language model"),
        ("config.json", "{", "cannot be read"),
        ("config.json", '{"model_type": "mine", "auto_map": {"AutoModel": "code.Mine"}}', "is not run"),
        ("tokenizer.json", "{", "the processor in .* cannot be read"),
        ("model.safetensors", None, r"lacks model\.safetensors"),
        ("chat_template.jinja", None, "its processor has no chat template"),
    ],
)
def test_a_folder_of_another_kind_is_one_line(
    folders: Callable[[str], Path], tmp_path: Path, file: str, content: str | None, said: str
) -> None:
    copy = shutil.copytree(folders("llava"), tmp_path / "copy")
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_text(content)
    with pytest.raises((WeightsError, UnsupportedError), match=said) as caught:
        built(copy).load(CPU)
    assert "\n" not in str(caught.value)


@here
def test_a_repository_is_found_in_the_hubs_cache(folders: Callable[[str], Path], hub_cache: Any) -> None:
    with pytest.raises(WeightsError, match="HF_HUB_OFFLINE is set"):
        FAMILY.build("vlm/owner/name").weights()
    hub_cache("owner/name", {path.name: path for path in folders("llava").iterdir()})
    made = FAMILY.build("vlm/owner/name")
    assert made.weights(fetch=False) == built(folders("llava")).weights()
    assert made.load(CPU).generate(conversations(), SHORT) == built(folders("llava")).load(CPU).generate(
        conversations(), SHORT
    )


# The whole way: tables of photos, the program, the store ------------------------------------------------------------

SETS = {
    "MMStar": (["A", "B", "answer"], ["a cat", "a dog", "A"], 68),
    "VSR-zeroshot": (["answer"], ["Yes"], 4),
    "ChartQA_TEST": (["answer"], ["a cat"], 4),
    "COCO_VAL": (["answer"], ["['a cat', 'the picture']"], 4),
    "Talks": (["answer"], ["yes"], 4),
}
PLUGIN = Path(__file__).parent.parent / "plugins" / "counted_vlm.py"


def save_tables(folder: Path) -> None:
    """A table of each kind, of crops of photos."""
    for name, (columns, cells, count) in SETS.items():
        rows = []
        for number in range(count):
            photo = Image.open(io.BytesIO(table_world.photo(table_world.PHOTOS[number % 4], 64)))
            file = io.BytesIO()
            photo.crop((number % 8, number % 9, 40 + number % 8, 50)).save(file, "PNG")
            question = "['what is it ?', 'describe it again']" if name == "Talks" else f"what is in picture {number}"
            rows.append([str(number), base64.b64encode(file.getvalue()).decode(), question, *cells])
        table_world.write_table(folder / f"{name}.tsv", ["index", "image", "question", *columns], rows)


@here
def test_answers_to_tables_of_photos_whatever_the_batch_and_after_a_kill(
    tmp_path: Path, warm_python: Any, root: Path
) -> None:
    save_llava(tmp_path / "llava")
    save_tables(tmp_path / "LMU")
    marks = tmp_path / "asked"
    environment = {**os.environ, "WORLD_MARKS": str(tmp_path), "LMUData": str(tmp_path / "LMU")}

    def run(store: str, batch: int) -> tuple[int, list[str]]:
        """The exit code, and what was asked; the file that lets the plug-in kill is no reason for doubt."""
        words = ["--plugin", str(PLUGIN), "--models", "counted", "--eval-settings", *SETS, "--executor", "inline"]
        words += ["--batch-size", str(batch), "--db-url", f"sqlite:///{tmp_path}/{store}.db", "--trust"]
        marks.write_text("")
        done = warm_python.run(root / "eval.py", words, tmp_path, environment)
        assert "Traceback" not in done.stderr
        return done.returncode, marks.read_text().splitlines()

    def done_with(store: str) -> set[str]:
        """The questions whose answers are stored."""
        with Store.open(f"sqlite:///{tmp_path}/{store}.db") as opened:
            names = {each.id: each.eval_setting for each in opened.evaluations.find()}
            ranges = opened.outputs.stored_ranges(names)
        return {f"{names[own]} {place} 0" for own, of in ranges.items() for pair in of for place in range(*pair)}

    def stored(store: str) -> dict[str, list[Any]]:
        """The answers to each set."""
        with Store.open(f"sqlite:///{tmp_path}/{store}.db") as opened:
            return {each.eval_setting: list(opened.outputs.read(each.id, "text")) for each in opened.evaluations.find()}

    code, every = run("alone", 1)
    assert code == 0
    assert len(every) == len(set(every)) == 68 + 3 * 4 + 2 * 4
    (tmp_path / "deadly").touch()
    code, _ = run("killed", 4)
    assert code == -signal.SIGKILL
    before = done_with("killed")
    assert before in [{f"MMStar {place} 0" for place in range(count)} for count in (32, 64)]  # it was killed amidst
    (tmp_path / "deadly").unlink()
    code, rest = run("killed", 4)
    assert code == 0
    assert len(rest) == len(set(rest))
    assert set(rest) == {each for each in every if each not in before}
    answers = stored("killed")
    assert answers == stored("alone")
    assert {name: len(own) for name, own in answers.items()} == {name: count for name, (*_, count) in SETS.items()}
    assert len({value["text"] for own in answers.values() for value in own}) > 5
    assert all(len(value["turns"]) == 1 for value in answers["Talks"])
