"""transformers' dual encoders: what transformers itself gives, from tiny networks with weights drawn at random."""

from __future__ import annotations

import importlib.util
import json
import shutil
import string

import numpy as np
import pytest
import torch
from clip_words import save_tokenizer

from testbed.errors import MissingExtraError, WeightsError
from testbed.identity.describe import digest
from testbed.models.base.weights import of_files
from testbed.models.model_base import LoadOptions
from testbed.models.transformers_clip import TransformersFamily
from testbed.registry import registry

FAMILY = TransformersFamily()
CPU = LoadOptions("cpu")
TEXTS = ["a photo of a cat", "A DOG", "three owls in a tree, a cat and a dog", "a"]
WORDS = sorted({word for text in TEXTS for word in text.lower().replace(",", "").split()})
here = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="testbed[transformers] is not here")

TOWER = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


def words_tokenizer(**options):
    """A tokenizer of whole words that keeps the case, as Gemma's does."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: index for index, word in enumerate(["<pad>", "<eos>", "<unk>", *WORDS])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", **options
    )


def clip(folder):
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    _, size = save_tokenizer(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    text = {**TOWER, "vocab_size": size, "max_position_embeddings": 24, "eos_token_id": size - 1}
    config = CLIPConfig(text_config=text, vision_config={**TOWER, "image_size": 32, "patch_size": 16}, projection_dim=8)
    return CLIPModel(config)


def siglip(folder):
    from transformers import SiglipConfig, SiglipImageProcessor, SiglipModel

    words_tokenizer(model_max_length=16).save_pretrained(folder)
    SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    text = {**TOWER, "vocab_size": 30, "max_position_embeddings": 16, "projection_size": 16}
    return SiglipModel(SiglipConfig(text_config=text, vision_config={**TOWER, "image_size": 32, "patch_size": 16}))


def siglip2(folder):
    from transformers import Siglip2Config, Siglip2ImageProcessor, Siglip2Model

    words_tokenizer(model_max_length=16).save_pretrained(folder)
    Siglip2ImageProcessor(patch_size=8, max_num_patches=16).save_pretrained(folder)
    text = {**TOWER, "vocab_size": 30, "max_position_embeddings": 16, "projection_size": 16}
    return Siglip2Model(Siglip2Config(text_config=text, vision_config={**TOWER, "num_patches": 16, "patch_size": 8}))


def bert_tokenizer(folder):
    from transformers import BertTokenizerFast

    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ",", *WORDS]))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)


def align(folder):
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessor

    bert_tokenizer(folder)
    EfficientNetImageProcessor(
        size={"height": 40, "width": 40}, do_center_crop=True, crop_size={"height": 32, "width": 32}, resample=2,
        rescale_factor=1 / 127.5, rescale_offset=True, include_top=True,
    ).save_pretrained(folder)  # fmt: skip
    text = {**TOWER, "vocab_size": 40, "max_position_embeddings": 80}
    vision = {
        "image_size": 32, "width_coefficient": 0.1, "depth_coefficient": 0.1, "hidden_dim": 16, "in_channels": [8],
        "out_channels": [8], "kernel_sizes": [3], "strides": [2], "depthwise_padding": [], "num_block_repeats": [1],
        "expand_ratios": [1], "squeeze_expansion_ratio": 0.25, "hidden_size": 16,
    }  # fmt: skip
    return AlignModel(AlignConfig(text_config=text, vision_config=vision, projection_dim=16))


def two_towers(folder):
    from transformers import (
        BertConfig,
        CLIPImageProcessor,
        CLIPVisionConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
    )  # fmt: skip

    bert_tokenizer(folder)
    CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return VisionTextDualEncoderModel(
        VisionTextDualEncoderConfig.from_vision_text_configs(
            CLIPVisionConfig(**TOWER, image_size=32, patch_size=16),
            BertConfig(**TOWER, vocab_size=40, max_position_embeddings=200),
            projection_dim=8,
        )
    )


KINDS = {"clip": clip, "siglip": siglip, "siglip2": siglip2, "align": align, "two towers": two_towers}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each kind, as save_pretrained writes it."""
    made = {}

    def get(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind.replace(" ", "-"))
            torch.manual_seed(0)
            KINDS[kind](folder).save_pretrained(folder)
            made[kind] = folder
        return made[kind]

    return get


def built(folder):
    return FAMILY.build(f"transformers/{folder}")


# What transformers gives ------------------------------------------------------------------------------------------


def tensor(features):
    """The embeddings, which transformers 5 puts into an object."""
    return features if isinstance(features, torch.Tensor) else features.pooler_output


def as_transformers_feeds(folder, picture):
    """What the folder's own processor makes of a picture."""
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(folder, use_fast=False)
    return processor(images=picture.convert("RGB"), return_tensors="pt")


@here
@pytest.mark.parametrize("kind", ["clip", "siglip", "align", "two towers"])
def test_pictures_are_fed_as_transformers_feeds_them(folders, pictures, kind):
    made = built(folders(kind))
    for picture in [*pictures, pictures[0].resize((35, 90)), pictures[0].resize((90, 37)), pictures[1].convert("L")]:
        image = made.transform(picture)
        assert 0 <= image.min() <= image.max() <= 1
        expected = as_transformers_feeds(folders(kind), picture).pixel_values[0]
        torch.testing.assert_close(made.normalization(image[None])[0], expected, rtol=0, atol=2e-5)


@here
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_embeddings_are_those_of_transformers(folders, pictures, kind):
    from transformers import AutoModel

    folder = folders(kind)
    made, network = built(folder), AutoModel.from_pretrained(folder).eval()
    loaded = made.load(CPU)
    square = pictures[0].resize((64, 64))
    with torch.no_grad():
        expected = tensor(network.get_image_features(**as_transformers_feeds(folder, square)))
    torch.testing.assert_close(loaded.embed_image(made.transform(square)[None]), expected, rtol=1e-4, atol=1e-5)
    batch = torch.stack([made.transform(picture) for picture in pictures])
    assert loaded.embed_image(batch).shape == (len(pictures), expected.shape[1])
    torch.testing.assert_close(loaded.embed_text(TEXTS), expected_texts(folder, network), rtol=1e-4, atol=1e-5)
    assert not any(parameter.requires_grad for parameter in loaded.network.parameters())


def expected_texts(folder, network):
    """Text embeddings one by one, as transformers' documentation says to get them."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    found = []
    for text in TEXTS:
        if "siglip" in network.config.model_type:
            # as big_vision's prompts are, and as open_clip's tokenizer of SigLIP 2 is told to
            bare = " ".join(text.replace("_", " ").translate(str.maketrans("", "", string.punctuation)).lower().split())
            tokens = tokenizer(bare, padding="max_length", max_length=16, truncation=True, return_tensors="pt")
            tokens = {"input_ids": tokens.input_ids}
        else:
            tokens = tokenizer(text, return_tensors="pt", truncation=True, max_length=24)
        with torch.no_grad():
            found.append(tensor(network.get_text_features(**tokens)))
    return torch.cat(found)


@here
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_text_has_one_embedding_whatever_it_is_embedded_with(folders, kind):
    loaded = built(folders(kind)).load(CPU)
    alone = torch.cat([loaded.embed_text([text]) for text in TEXTS])
    torch.testing.assert_close(loaded.embed_text(TEXTS), alone, rtol=1e-4, atol=1e-5)


@here
def test_the_patches_of_a_square_picture_are_those_of_siglip2s_processor(folders, pictures):
    from testbed.models.networks.transformers import in_patches

    made = built(folders("siglip2"))
    square = pictures[0].resize((64, 64))
    fed = as_transformers_feeds(folders("siglip2"), square)
    patches, shape = in_patches(made.normalization(made.transform(square)[None]), 8)
    torch.testing.assert_close(patches, fed.pixel_values, rtol=0, atol=1e-5)
    assert shape == tuple(fed.spatial_shapes[0].tolist()) == (4, 4)
    assert made.transform(pictures[0]).shape == (3, 32, 32)  # another shape becomes a square


# Names, weights, identity -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("transformers/google/siglip-base-patch16-224", "transformers/google/siglip-base-patch16-224"),
        ("transformers//data/clip", "transformers//data/clip"),
        ("transformers/~/clip", "transformers//home/me/clip"),
        ("transformers/./clip", "transformers/{root}/clip"),
        ("transformers/runs/clip", "transformers/{root}/runs/clip"),
        ("transformers/clip", "transformers/{root}/clip"),
        ("transformers/", None),
        ("hf-hub:owner/name", None),
        ("openai/clip-vit-base-patch32", None),
    ],
)
def test_names(tmp_path, monkeypatch, written, canonical):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    (tmp_path / "runs" / "clip").mkdir(parents=True)
    expected = canonical and canonical.format(root=tmp_path)
    assert FAMILY.canonical(written) == expected
    assert expected is None or FAMILY.canonical(expected) == expected


def test_no_other_family_claims_the_names(tmp_path):
    name = "transformers/openai/clip-vit-base-patch32"
    assert registry.load().models.canonical(name) == name
    assert registry.models.source(name) == "family transformers"


def test_a_missing_extra_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[transformers\]'") as caught:
        built(tmp_path)
    assert "\n" not in str(caught.value)


@here
def test_weights_are_told_by_content(folders, tmp_path):
    folder = folders("clip")
    made = built(folder)
    assert made.weights().id == built(folder).weights().id
    names = ["model.safetensors", "merges.txt", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
             "vocab.json"]  # fmt: skip
    read = [folder / name for name in names if (folder / name).is_file()]  # transformers 5 does not write all of them
    assert made.weights() == of_files(read)
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert built(copy).weights().id == made.weights().id
    assert digest(built(copy).spec()) == digest(made.spec())
    (copy / "merges.txt").write_text("#version: 0.2\na b\n")
    assert built(copy).weights().id != made.weights().id


@here
def test_tokens_that_a_slow_tokenizer_was_given_are_part_of_the_identity(folders, tmp_path):
    """A folder without tokenizer.json, as slow tokenizers write it."""
    from transformers import AutoTokenizer

    copies, tokens = [], []
    for word in ("cat", "dog"):
        copy = shutil.copytree(folders("clip"), tmp_path / word)
        (copy / "tokenizer.json").unlink()
        settings = json.loads((copy / "tokenizer_config.json").read_text())
        settings.pop("added_tokens_decoder", None)
        (copy / "tokenizer_config.json").write_text(json.dumps(settings))
        (copy / "added_tokens.json").write_text(json.dumps({word: 56}))
        copies.append(built(copy))
        tokens.append(AutoTokenizer.from_pretrained(copy)("a cat").input_ids)
    assert tokens[0] != tokens[1]  # transformers reads the file
    assert copies[0].weights().id != copies[1].weights().id


@here
def test_a_folder_without_safetensors_is_refused(folders, tmp_path):
    copy = shutil.copytree(folders("clip"), tmp_path / "copy")
    (copy / "model.safetensors").unlink()
    torch.save({}, copy / "pytorch_model.bin")
    with pytest.raises(WeightsError, match=r"has no model\.safetensors; other forms of weights are not read"):
        built(copy).weights()
    with pytest.raises(WeightsError) as caught:
        built(copy).load(CPU)
    assert "\n" not in str(caught.value)


@here
def test_weights_of_another_architecture_are_refused(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    copy = shutil.copytree(folders("clip"), tmp_path / "copy")
    state = load_file(copy / "model.safetensors")
    state.pop("visual_projection.weight")
    save_file(state, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match=r"visual_projection\.weight is missing"):
        built(copy).load(CPU)


@here
@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", None, "should be transformers' configuration of a model"),
        ("config.json", "{", "should be transformers' configuration of a model"),
        ("config.json", "[]", "a JSON object with 'model_type'"),
        ("config.json", '{"model_type": "mine", "auto_map": {"AutoModel": "code.Mine"}}', "is not run"),
        ("preprocessor_config.json", None, "the image processor in .* cannot be read"),
    ],
)
def test_a_folder_of_another_kind_is_one_line(folders, tmp_path, file, content, said):
    copy = shutil.copytree(folders("clip"), tmp_path / "copy")
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_text(content)
    with pytest.raises(WeightsError, match=said) as caught:
        built(copy)
    assert "\n" not in str(caught.value)


@here
def test_a_model_of_one_tower_is_refused(folders, tmp_path):
    from transformers import BertConfig, BertModel

    copy = shutil.copytree(folders("align"), tmp_path / "copy")
    BertModel(BertConfig(**TOWER, vocab_size=40)).save_pretrained(copy)
    with pytest.raises(WeightsError, match="BertModel is not a dual encoder"):
        built(copy).load(CPU)


@here
def test_random_weights_follow_from_the_seed(folders):
    made = built(folders("siglip"))
    one, same, other = (made.load(LoadOptions("cpu", random_seed=seed)) for seed in (0, 0, 1))
    assert torch.equal(one.embed_text(["a cat"]), same.embed_text(["a cat"]))
    assert not torch.equal(one.embed_text(["a cat"]), other.embed_text(["a cat"]))


@here
def test_a_repository_is_found_in_the_hubs_cache(folders, hub_cache, pictures):
    folder = folders("siglip")
    with pytest.raises(WeightsError, match="HF_HUB_OFFLINE is set"):
        FAMILY.build("transformers/owner/name")
    hub_cache("owner/name", {path.name: path for path in folder.iterdir()})
    made = FAMILY.build("transformers/owner/name")
    assert made.weights(fetch=False) == built(folder).weights()
    image = made.transform(pictures[0])[None]
    ours, theirs = made.load(CPU).embed_image(image), built(folder).load(CPU).embed_image(image)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@here
@pytest.mark.parametrize("kind", ["siglip", "siglip2"])
def test_open_clip_and_transformers_give_a_siglip_the_same_tokens(folders, kind):
    from open_clip.tokenizer import HFTokenizer

    folder = folders(kind)
    theirs = HFTokenizer(str(folder), context_length=16, clean="canonicalize")
    texts = ["A photo of an owl.", "a_dog,  barking!", "Caf\u00e9 &amp; cat's", "two  owls", ""]
    loaded = built(folder).load(CPU)
    assert loaded.tokenizer(texts)["input_ids"].tolist() == theirs(texts).tolist()
    sublime = loaded.embed_text(["A photo of an owl.", "a photo of an owl"])
    assert torch.equal(sublime[0], sublime[1])
