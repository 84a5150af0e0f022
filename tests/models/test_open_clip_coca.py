"""open_clip's CoCa as a captioner: what open_clip itself says, from tiny networks with weights drawn at random."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from coca_world import PREPROCESS, save_coca, tiny_coca
from open_clip import coca_model, tokenizer
from open_clip.transform import PreprocessCfg, image_transform_v2

from testbed.errors import DefinitionError, MissingExtraError, UnsupportedError, WeightsError
from testbed.identity import digest
from testbed.models.base.capability import GENERATE, GenerationConfig, Message
from testbed.models.model_base import LoadOptions
from testbed.models.open_clip_coca import CaptionerFamily, CocaCaptioner
from testbed.models.open_clip_models import OpenClipFamily
from testbed.registry import registry

FAMILY = CaptionerFamily()
CPU = LoadOptions("cpu")
TAG = "coca_ViT-B-32,mscoco_finetuned_laion2b_s13b_b90k"
generates = pytest.mark.skipif(not coca_model._has_transformers, reason="testbed[transformers] is not here")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    root = tmp_path_factory.mktemp("coca")
    return {brief: save_coca(tiny_coca(brief), root / str(brief)) for brief in (False, True)}


def captioner(folder: Path) -> CocaCaptioner:
    return FAMILY.build(f"captioner/local-dir:{folder}")


def captions_of(made: CocaCaptioner, pictures: list[Any], config: GenerationConfig | None = None) -> list[Any]:
    messages = [Message([picture], sample=str(place)) for place, picture in enumerate(pictures)]
    return made.load(CPU).generate(messages, config or GenerationConfig())


@generates
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


@generates
@pytest.mark.parametrize("brief", [False, True])
def test_captions_depend_on_nothing_but_the_image(brief: bool, folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[brief])
    together = captions_of(made, pictures)
    assert captions_of(made, pictures) == together
    assert captions_of(made, pictures[::-1])[::-1] == together
    assert [captions_of(made, [picture])[0] for picture in pictures] == together


@generates
def test_an_image_is_encoded_once(folders: dict[bool, Path], pictures: list[Any]) -> None:
    loaded = captioner(folders[False]).load(CPU)
    encoded = []
    loaded.generator.network.visual.register_forward_hook(lambda module, images, found: encoded.append(len(images[0])))
    loaded.generate([Message([picture]) for picture in pictures], GenerationConfig())
    assert encoded == [len(pictures)]


@generates
def test_the_configuration_shortens_captions(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[False])
    loaded = made.load(CPU)
    count = []
    network = loaded.generator.network
    generate = network.generate
    network.generate = lambda *given, **options: count.append(options["seq_len"]) or generate(*given, **options)
    messages = [Message([pictures[0]])]
    texts = [loaded.generate(messages, GenerationConfig(each))[0] for each in (1, 3, 8, 500)]
    assert count == [2, 4, 9, 20]
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


@generates
def test_what_it_cannot_do_is_told(folders: dict[bool, Path], pictures: list[Any]) -> None:
    made = captioner(folders[True])
    for parts, found in (([], "nothing"), (["describe this"], "str"), ([pictures[0], "and"], "Image, str")):
        with pytest.raises(UnsupportedError, match=rf"one image is expected in a message, got {found}"):
            made.load(CPU).generate([Message(parts)], GenerationConfig())
    for config in (GenerationConfig(temperature=0.5), GenerationConfig(0)):
        with pytest.raises(UnsupportedError, match="captions come from beam search, with temperature 0"):
            captions_of(made, pictures, config)
    with pytest.raises(DefinitionError, match="longest is a number of tokens larger than 5"):
        CocaCaptioner("x", made.encoder, longest=5)


@generates
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


@generates
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


def test_without_transformers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "version", missing)
        with pytest.raises(MissingExtraError, match=r"needs the package transformers: pip install 'testbed\[transf"):
            FAMILY.build(f"captioner/{TAG}")
    monkeypatch.setattr(coca_model, "_has_transformers", False)
    monkeypatch.setattr(importlib.metadata, "version", {"transformers": "4.57.6", "open_clip_torch": "3.3.0"}.get)
    with pytest.raises(UnsupportedError, match=r"open_clip 3\.3\.0 does not generate .*4\.57\.6; pip install 'transf"):
        FAMILY.build(f"captioner/{TAG}")
