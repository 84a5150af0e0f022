"""open_clip's CoCa as a captioner: what open_clip itself says, from tiny networks with weights drawn at random."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch
from coca_world import END, PREPROCESS, save_coca, tiny_coca
from open_clip import coca_model, tokenizer
from open_clip.transform import PreprocessCfg, image_transform_v2

from testbed.data.rows import Picture
from testbed.errors import DefinitionError, UnsupportedError, WeightsError
from testbed.identity.describe import digest
from testbed.models.base.capability import GENERATE, GenerationConfig, Message
from testbed.models.model_base import LoadOptions
from testbed.models.networks.coca_decoding import Limits, beam_search, greedy, sample
from testbed.models.open_clip_coca import CaptionerFamily, CocaCaptioner
from testbed.models.open_clip_models import OpenClipFamily
from testbed.registry import registry

FAMILY = CaptionerFamily()
CPU = LoadOptions("cpu")
TAG = "coca_ViT-B-32,mscoco_finetuned_laion2b_s13b_b90k"
START = 49406
upstream = pytest.mark.skipif(
    not coca_model._has_transformers, reason="open_clip itself generates text only with transformers before 4.57"
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    root = tmp_path_factory.mktemp("coca")
    return {brief: save_coca(tiny_coca(brief), root / str(brief)) for brief in (False, True)}


def captioner(folder: Path) -> CocaCaptioner:
    return FAMILY.build(f"captioner/local-dir:{folder}")


def captions_of(made: CocaCaptioner, pictures: list[Any], config: GenerationConfig | None = None) -> list[Any]:
    messages = [Message([picture], sample=str(place)) for place, picture in enumerate(pictures)]
    return made.load(CPU).generate(messages, config or GenerationConfig())


@upstream
@pytest.mark.parametrize("brief", [False, True])
def test_captions_are_those_of_clip_benchmarks_way(brief: bool, folders: dict[bool, Path], pictures: list[Any]) -> None:
    preset = image_transform_v2(PreprocessCfg(size=32, **PREPROCESS), is_train=False)
    tokens = tiny_coca(brief).generate(torch.stack([preset(picture) for picture in pictures]), seq_len=20)
    expected = [
        tokenizer.decode(row).split("<end_of_text>")[0].replace("<start_of_text>", "").strip() for row in tokens
    ]
    made = captions_of(captioner(folders[brief]), pictures)
    assert [each.text for each in made] == expected
    assert {each.finish_reason for each in made} == {"stop" if brief else "length"}
    assert len(set(expected)) > 1
    assert all(expected)


def ending(share: float) -> Any:
    """A CoCa that ends some of its captions, the more the larger the share."""
    network = tiny_coca()
    torch.manual_seed(5)
    with torch.no_grad():
        network.text_decoder.ln_final.bias.fill_(1)
        network.text_decoder.text_projection[:, END] = share
    return network


def cut(tokens: list[int], longest: int = 99) -> list[int]:
    return tokens[: tokens.index(END) + 1 if END in tokens else longest][:longest]


@upstream
@torch.no_grad()
@pytest.mark.parametrize("share", [0.45, *(pytest.param(each, marks=pytest.mark.long) for each in (0, 1))])
def test_the_tokens_are_open_clips(share: float) -> None:
    network = ending(share)
    for seed, (longest, count) in enumerate([(2, 1), (5, 3), (9, 1), (20, 2)]):
        torch.manual_seed(seed)
        images, shortest = 3 * torch.randn(count, 3, 32, 32), min(5, longest - 1)
        for beams, groups in ((6, 3), (4, 1)):
            expected = network.generate(
                images, seq_len=longest, min_seq_len=shortest, num_beams=beams, num_beam_groups=groups
            )
            found = beam_search(network, images, Limits(START, END, longest, shortest), beams, groups)
            assert found == [cut(row) for row in expected.tolist()]
        if longest == 2:
            continue  # open_clip would only draw the end
        limits = Limits(START, END, longest - 1, shortest)
        for options in ({"top_k": 1}, {"top_k": 7, "temperature": 1.3}, {"top_p": 0.6, "temperature": 0.8}):
            kind = {"generation_type": next(iter(options)), "seq_len": longest, "min_seq_len": shortest}
            torch.manual_seed(seed)
            expected = network.generate(images, **kind, **options)
            torch.manual_seed(seed)
            drawn = sample(network, images, limits, **options) if len(options) > 1 else greedy(network, images, limits)
            assert drawn == [cut(row, longest - 1) for row in expected.tolist()]


def test_a_configuration_may_ask_for_another_search(folders: dict[bool, Path], pictures: list[Any]) -> None:
    loaded = captioner(folders[False]).load(CPU)

    def said(seed: int = 0, **options: Any) -> str:
        torch.manual_seed(seed)
        text: str = loaded.generate([Message([Picture(png(pictures[0]))])], GenerationConfig(**options))[0].text
        return text

    most_likely = said(top_k=1)
    assert most_likely == said(1, top_k=1, temperature=1.0) == said(1, temperature=1e-6)
    assert said(temperature=1.0) == said(temperature=1.0) != said(1, temperature=1.0)
    assert most_likely != said(temperature=1.0)
    rows = []
    loaded.generator.network.text_decoder.register_forward_hook(lambda module, given, found: rows.append(len(found)))
    for options, beams in (({}, 6), ({"num_beams": 4}, 4), ({"top_k": 1}, 1), ({"temperature": 1.0}, 1)):
        rows.clear()
        said(**options)
        assert set(rows) == {beams}


def png(picture: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_captions_depend_on_nothing_but_the_image(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[False])
    together = captions_of(made, pictures)
    assert captions_of(made, pictures[::-1])[::-1] == together
    assert [captions_of(made, [picture])[0] for picture in pictures] == together


def test_an_image_is_encoded_once(folders: dict[bool, Path], pictures: list[Any]) -> None:
    loaded = captioner(folders[False]).load(CPU)
    encoded = []
    loaded.generator.network.visual.register_forward_hook(lambda module, images, found: encoded.append(len(images[0])))
    loaded.generate([Message([picture]) for picture in pictures], GenerationConfig())
    assert encoded == [len(pictures)]


def test_the_configuration_shortens_captions(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[False])
    loaded = made.load(CPU)
    steps = []
    loaded.generator.network.text_decoder.register_forward_hook(lambda *given: steps.append(1))
    messages = [Message([pictures[0]])]
    texts, counts = [], []
    for longest in (1, 3, 8, 500):
        steps.clear()
        texts += loaded.generate(messages, GenerationConfig(longest))
        counts.append(len(steps))
    assert counts == [1, 3, 8, 19]
    assert [each.finish_reason for each in texts] == ["length"] * 4
    lengths = [len(each.text) for each in texts]
    assert lengths == sorted(lengths)
    cut = texts[-1].text[5:8]
    stopped = loaded.generate(messages, GenerationConfig(stop=(cut, "never said", "")))[0]
    assert stopped.text == texts[-1].text[: texts[-1].text.index(cut)].strip()
    assert stopped.finish_reason == "stop"
    brief = CocaCaptioner("brief", made.encoder, longest=6)
    assert len(captions_of(brief, pictures[:1])[0].text) < lengths[-1]
    assert digest(brief.spec()) != digest(made.spec())


def test_what_it_cannot_do_is_told(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[True])
    for parts, found in (([], "nothing"), (["describe this"], "str"), ([pictures[0], "and"], "Image, str")):
        with pytest.raises(UnsupportedError, match=rf"one image is expected in a message, got {found}"):
            made.load(CPU).generate([Message(parts)], GenerationConfig())
    second = Message([pictures[0]], history=[Message(["what is this?"])])
    with pytest.raises(UnsupportedError, match=r"takes no instruction: .* got str, Image"):
        made.load(CPU).generate([second], GenerationConfig())
    for options, said in {
        "max_new_tokens": (0, "takes max_new_tokens from 1 up; got 0"),
        "temperature": (-1.0, "takes temperature from 0 up; got -1.0"),
        "top_k": (4, "draws nothing at temperature 0"),
        "top_p": (0.5, "draws nothing at temperature 0"),
        "system": ("You are a parrot.", "takes no system prompt"),
        "presence_penalty": (1.0, "no penalties"),
    }.items():
        with pytest.raises(UnsupportedError, match=said[1]):
            captions_of(made, pictures, GenerationConfig(**{options: said[0]}))
    with pytest.raises(UnsupportedError, match="draws nothing in a beam search"):
        captions_of(made, pictures, GenerationConfig(num_beams=2, temperature=1.0))
    with pytest.raises(DefinitionError, match="longest is a number of tokens larger than 5"):
        CocaCaptioner("x", made.encoder, longest=5)


def test_its_identity_is_that_of_its_weights_and_its_own(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made, other = captioner(folders[False]), captioner(folders[True])
    encoder = OpenClipFamily().build(f"local-dir:{folders[False]}")
    assert made.capabilities == {GENERATE}
    assert made.weights() == encoder.weights() != other.weights()
    assert digest(made.spec()) != digest(encoder.spec())
    renamed = made.under_name("renamed", transform=lambda image: torch.zeros(3, 32, 32))
    assert len({each.text for each in captions_of(renamed, pictures)}) == 1
    first, again, drawn = (made.load(LoadOptions("cpu", random_seed=seed)).generator.network for seed in (1, 1, 2))
    assert torch.equal(first.text_decoder.text_projection, again.text_decoder.text_projection)
    assert not torch.equal(first.text_decoder.text_projection, drawn.text_decoder.text_projection)
    assert torch.isfinite(first.text_decoder.text_projection).all()
    assert made.weights(random_seed=1).id == "random:1"


def test_what_is_no_coca_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"captioner/ViT-B-32,openai: ViT-B-32,openai has no text decoder"):
        FAMILY.build("captioner/ViT-B-32,openai")
    with pytest.raises(WeightsError, match="names an architecture but no weights"):
        FAMILY.build("captioner/coca_ViT-B-32,").weights()


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    registry.load()
    known = registry.models.canonical
    assert known(f"captioner/{TAG}") == f"captioner/{TAG}"
    assert known("captioner/open_clip/coca_ViT-L-14,runs/x.pt") == f"captioner/coca_ViT-L-14,{tmp_path}/runs/x.pt"
    assert known("captioner/hf-hub:laion/CoCa") == "captioner/hf-hub:laion/CoCa"
    assert known("captioner/coca_ViT-B-32,no_such_tag") is None
    assert known("captioner/resnet18") is None
    assert known(TAG) == TAG
    listed = list(FAMILY.names())
    assert len(listed) == 4
    assert f"captioner/{TAG}" in listed
    assert all(FAMILY.canonical(name) == name for name in listed)
