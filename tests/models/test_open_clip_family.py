"""open_clip's dual encoders: names, open_clip's own preprocessing, QuickGELU, and weights of all origins."""

from __future__ import annotations

import copy
import json

import open_clip
import pytest
import torch
from open_clip import factory, pretrained
from open_clip.transform import PreprocessCfg, image_transform_v2, merge_preprocess_dict
from safetensors.torch import save_file
from tables import cases
from weights_world import Malicious, difference, same

from testbed.errors import WeightsError
from testbed.models.base.weights import of_files
from testbed.models.model_base import LoadOptions
from testbed.models.open_clip_models import OpenClipFamily, OpenClipTransform

FAMILY = OpenClipFamily()
CPU = LoadOptions("cpu")
TEXTS = ["a photo of a cat", "a dog", "three owls in a tree"]
CONFIG = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
    "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}
PREPROCESS = {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.6, 0.7], "interpolation": "bilinear", "resize_mode": "squash"}


def tiny(seed=0, quick_gelu=False):
    """open_clip's CLIP in a tiny configuration, untrained."""
    torch.manual_seed(seed)
    return open_clip.model.CLIP(**copy.deepcopy(CONFIG), quick_gelu=quick_gelu).eval()


def save(network, path):
    if path.suffix == ".safetensors":
        save_file({key: value.contiguous() for key, value in network.state_dict().items()}, path)
    else:
        torch.save(network.state_dict(), path)
    return path


def assert_embeds_like(made, network, pictures, preset, tokenizer):
    """The loaded definition gives open_clip's embeddings of pictures and texts."""
    loaded = made.load(CPU)
    assert same(loaded.network, network)
    with torch.no_grad():
        expected = network.encode_image(torch.stack([preset(picture) for picture in pictures]))
        got = loaded.embed_image(torch.stack([made.transform(picture) for picture in pictures]))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            loaded.embed_text(TEXTS), network.encode_text(tokenizer(TEXTS)), rtol=1e-4, atol=1e-5
        )


# Preprocessing ----------------------------------------------------------------------------------------------------


def reference(architecture, tag):
    """The evaluation transform that open_clip attaches to a model with these weights."""
    config = merge_preprocess_dict(PreprocessCfg(), open_clip.get_pretrained_cfg(architecture, tag))
    config["size"] = open_clip.get_model_config(architecture)["vision_cfg"].get("image_size", 224)
    return image_transform_v2(PreprocessCfg(**config), is_train=False)


def test_every_published_pair_is_fed_as_open_clip_feeds_it(pictures):
    seen = {}
    for architecture, tag in open_clip.list_pretrained():
        made, preset = FAMILY.build(f"{architecture},{tag}"), reference(architecture, tag)
        key = (repr(preset), repr(made.transform), repr(made.normalization.spec()))
        if key not in seen:
            seen[key] = difference(made, preset, pictures[3:])
        assert seen[key] < 1e-6, (architecture, tag)
    assert len(seen) > 10


@cases("resize_mode", ["shortest", "longest", "squash"])
@cases("interpolation", ["bicubic", "bilinear"])
@cases("size", [64, [64, 48], [40, 72]])
def test_every_resize_mode_is_open_clips(pictures, resize_mode, interpolation, size):
    config = PreprocessCfg(
        size=size if isinstance(size, int) else tuple(size),
        mean=(0.5, 0.5, 0.5),
        std=(0.25, 0.25, 0.25),
        interpolation=interpolation,
        resize_mode=resize_mode,
    )
    expected, ours = image_transform_v2(config, is_train=False), OpenClipTransform(size, interpolation, resize_mode)
    for picture in pictures:
        got = ours(picture)
        assert 0 <= got.min() <= got.max() <= 1
        torch.testing.assert_close((got - 0.5) / 0.25, expected(picture), rtol=0, atol=1e-6)


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("library_lists")
@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("ViT-B-32,laion400m_e32", "ViT-B-32,laion400m_e32"),
        ("ViT-B-32,openai", "ViT-B-32,openai"),
        ("ViT-B-32", None),
        ("ViT-B-32,", "ViT-B-32,"),
        ("ViT-B-32,nope", None),
        ("ViT-B-99,openai", None),
        ("ViT-B-32,/data/run 1/epoch_3.pt", "ViT-B-32,/data/run 1/epoch_3.pt"),
        ("ViT-B-32,/data/epoch", "ViT-B-32,/data/epoch"),
        ("hf-hub:owner/name", "hf-hub:owner/name"),
        ("local-dir:/data/clip", "local-dir:/data/clip"),
        ("resnet50", None),
        ("", None),
    ],
)
def test_canonical_names(written, canonical):
    assert FAMILY.canonical(written) == canonical


@pytest.mark.usefixtures("library_lists")
def test_relative_paths_are_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert FAMILY.canonical("ViT-B-32,epoch.pt") == f"ViT-B-32,{tmp_path}/epoch.pt"
    assert FAMILY.canonical("ViT-B-32,runs/epoch") == f"ViT-B-32,{tmp_path}/runs/epoch"
    assert FAMILY.canonical("ViT-B-32,~/epoch.pt") == "ViT-B-32,/home/me/epoch.pt"
    assert FAMILY.canonical("local-dir:clip") == f"local-dir:{tmp_path}/clip"
    assert FAMILY.canonical("local-dir:~/clip") == "local-dir:/home/me/clip"


@pytest.mark.usefixtures("library_lists")
def test_names_are_canonical_and_hold_every_published_pair():
    names = list(FAMILY.names())
    assert len(names) == len(set(names))
    assert all(FAMILY.canonical(name) == name for name in names)
    assert set(names) == {f"{architecture},{tag}" for architecture, tag in open_clip.list_pretrained()}


def test_a_name_without_weights_says_how_to_give_some():
    with pytest.raises(WeightsError) as caught:
        FAMILY.build("ViT-B-32,").weights()
    for word in ("'ViT-B-32,'", "no weights", "TAG", "checkpoint", "--random-weights"):
        assert word in str(caught.value)


# QuickGELU and preprocessing of checkpoints of one's own ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "quick_gelu"),
    [
        ("ViT-B-32,openai", True),
        ("ViT-B-32,laion2b_s34b_b79k", False),
        ("ViT-B-32-quickgelu,laion400m_e32", True),
        ("RN50,openai", True),
        ("RN50,/own.pt", False),  # as open_clip builds it for a file, whatever its published weights are
        ("RN50-quickgelu,/own.pt", True),
        ("ViT-B-32,/own.pt", False),
        ("ViT-S-32-quickgelu,/own.pt", True),  # open_clip has no configuration of that name
        ("ViT-B-16-SigLIP,/own.pt", False),
    ],
)
def test_quick_gelu_is_what_the_weights_were_trained_with(name, quick_gelu):
    assert FAMILY.build(name).spec()["network"]["quick_gelu"] is quick_gelu


def test_a_checkpoint_of_ones_own_is_fed_as_all_published_ones_of_its_architecture(pictures):
    made = FAMILY.build("ViT-B-16-SigLIP,/own.pt")
    assert difference(made, reference("ViT-B-16-SigLIP", "webli"), pictures) < 1e-6


@pytest.fixture
def tiny_architecture(monkeypatch, tmp_path):
    """A tiny configuration of one's own among open_clip's, with a published tag of weights trained with QuickGELU."""
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", list(factory._MODEL_CONFIG_PATHS))
    (tmp_path / "tiny-dual.json").write_text(json.dumps(CONFIG))
    open_clip.add_model_config(tmp_path / "tiny-dual.json")
    tag = {"hf_hub": "owner/tiny/", "quick_gelu": True, **PREPROCESS}
    monkeypatch.setitem(pretrained._PRETRAINED, "tiny-dual", {"web": tag})
    return "tiny-dual"


@pytest.mark.parametrize("suffix", [".pt", ".safetensors", ".bin"])
def test_a_checkpoint_of_ones_own_is_loaded_and_told_by_content(tiny_architecture, tmp_path, pictures, suffix):
    network = tiny(3)
    path = save(network, tmp_path / f"epoch{suffix}")
    made = FAMILY.build(f"{tiny_architecture},{path}")
    assert made.weights() == of_files([path])
    preset = image_transform_v2(PreprocessCfg(size=32, **PREPROCESS), is_train=False)
    assert difference(made, preset, pictures) < 1e-6
    assert_embeds_like(made, network, pictures, preset, open_clip.get_tokenizer(tiny_architecture))


def test_a_missing_checkpoint_is_one_line(tiny_architecture, tmp_path):
    with pytest.raises(WeightsError, match=r"gone\.pt do not exist"):
        FAMILY.build(f"{tiny_architecture},{tmp_path}/gone.pt").weights()
    with pytest.raises(WeightsError) as caught:
        FAMILY.build(f"{tiny_architecture},{tmp_path}/gone.pt").load(CPU)
    assert "\n" not in str(caught.value)
    assert f"{tmp_path}/gone.pt" in str(caught.value)


def test_loading_a_checkpoint_runs_no_code_in_it(tiny_architecture, tmp_path, monkeypatch):
    torch.save({"state_dict": {"visual.proj": Malicious(tmp_path / "made")}}, tmp_path / "w.pt")
    with pytest.raises(WeightsError):
        FAMILY.build(f"{tiny_architecture},{tmp_path}/w.pt").load(CPU)
    assert not (tmp_path / "made").exists()
    # Not by torch's default alone, which older versions do not have.
    asked = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **options: asked.append(options) or load(*args, **options))
    FAMILY.build(f"{tiny_architecture},{save(tiny(), tmp_path / 'good.pt')}").load(CPU)
    assert {options.get("weights_only") for options in asked} == {True}


# Weights in the hub's cache ---------------------------------------------------------------------------------------


def test_a_published_tag_is_found_in_the_hubs_cache(tiny_architecture, hub_cache, tmp_path, pictures):
    made = FAMILY.build(f"{tiny_architecture},web")
    assert made.weights(fetch=False) is None
    network = tiny(4, quick_gelu=True)
    path = save(network, tmp_path / "w.safetensors")
    hub_cache("owner/tiny", {"open_clip_model.safetensors": path})
    assert made.weights(fetch=False) == made.weights() == of_files([path])
    preset = image_transform_v2(PreprocessCfg(size=32, **PREPROCESS), is_train=False)
    assert_embeds_like(made, network, pictures, preset, open_clip.get_tokenizer(tiny_architecture))


def plant_hub_model(hub_cache, tmp_path, files):
    (tmp_path / "config.json").write_text(json.dumps({"model_cfg": CONFIG, "preprocess_cfg": PREPROCESS}))
    hub_cache("owner/clip", {"open_clip_config.json": tmp_path / "config.json", **files})
    return FAMILY.build("hf-hub:owner/clip")


@pytest.mark.parametrize("file", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin"])
def test_a_repository_of_the_hub_is_found_in_its_cache(hub_cache, tmp_path, pictures, file):
    network = tiny(5)
    path = save(network, tmp_path / file)
    made = plant_hub_model(hub_cache, tmp_path, {file: path})
    assert made.weights(fetch=False) == made.weights() == of_files([path])
    preset = image_transform_v2(PreprocessCfg(size=32, **PREPROCESS), is_train=False)
    assert difference(made, preset, pictures) < 1e-6
    assert_embeds_like(made, network, pictures, preset, open_clip.get_tokenizer("hf-hub:owner/clip"))


def test_what_is_identified_in_the_hubs_cache_is_what_runs(hub_cache, tmp_path):
    network = tiny(5)
    path = save(network, tmp_path / "w.safetensors")
    made = plant_hub_model(hub_cache, tmp_path, {"open_clip_pytorch_model.safetensors": path})
    if made.weights(fetch=False) == of_files([path]):
        assert same(made.load(CPU).network, network)


def test_a_repository_that_is_not_here_cannot_be_described(hub_cache):
    with pytest.raises(WeightsError) as caught:
        FAMILY.build("hf-hub:owner/gone")
    for word in ("hf-hub:owner/gone", "open_clip_config.json", "HF_HUB_OFFLINE"):
        assert word in str(caught.value)


# A folder of one's own --------------------------------------------------------------------------------------------


def folder(tmp_path, preprocess=None, config=None):
    made = tmp_path / "clip"
    made.mkdir(exist_ok=True)
    whole = {"model_cfg": config or CONFIG, "preprocess_cfg": PREPROCESS if preprocess is None else preprocess}
    (made / "open_clip_config.json").write_text(json.dumps(whole))
    return made


@pytest.mark.parametrize("file", ["open_clip_model.safetensors", "open_clip_pytorch_model.bin", "epoch_3.pth"])
def test_a_folder_gives_the_embeddings_that_open_clip_gives(tmp_path, pictures, file):
    root = folder(tmp_path)
    path = save(tiny(6), root / file)
    name = f"local-dir:{root}"
    made = FAMILY.build(name)
    assert made.weights() == of_files([path])
    network, _, preset = open_clip.create_model_and_transforms(name)
    assert difference(made, preset, pictures) < 1e-6
    assert_embeds_like(made, network.eval(), pictures, preset, open_clip.get_tokenizer(name))
    assert same(network, tiny(6))


@pytest.mark.parametrize(
    "preprocess",
    [
        {},
        {**PREPROCESS, "size": 64},  # the size is the network's
        {"mean": None, "std": None, "interpolation": None, "resize_mode": None},
    ],
)
def test_a_folder_is_fed_as_open_clip_feeds_it(tmp_path, pictures, preprocess):
    root = folder(tmp_path, preprocess=preprocess)
    save(tiny(6), root / "open_clip_model.safetensors")
    _, _, preset = open_clip.create_model_and_transforms(f"local-dir:{root}")
    assert difference(FAMILY.build(f"local-dir:{root}"), preset, pictures) < 1e-6


def test_of_two_weight_files_the_one_that_runs_is_identified(tmp_path):
    root = folder(tmp_path)
    save(tiny(1), root / "a_former_run.bin")
    path = save(tiny(2), root / "open_clip_model.safetensors")
    made = FAMILY.build(f"local-dir:{root}")
    assert same(made.load(CPU).network, tiny(2))
    assert made.weights() == of_files([path])


def test_a_folder_with_a_pt_file_runs_its_weights_or_says_that_it_cannot(tmp_path):
    root = folder(tmp_path)
    save(tiny(3), root / "epoch_1.pt")
    made = FAMILY.build(f"local-dir:{root}")
    try:
        made.weights()
        loaded = made.load(CPU)
    except WeightsError:
        return
    assert same(loaded.network, tiny(3))


def test_a_folder_without_weights_is_an_error(tmp_path):
    root = folder(tmp_path)
    with pytest.raises(
        WeightsError, match=rf"{root}: one checkpoint is expected in the folder \(open_clip_model\.safetensors"
    ):
        FAMILY.build(f"local-dir:{root}").weights()
    with pytest.raises(WeightsError):
        FAMILY.build(f"local-dir:{root}").load(CPU)


@pytest.mark.parametrize("content", [None, "", "{", "{}", "[]", '{"model_cfg": 3}'])
def test_a_folder_without_a_configuration_says_what_it_wants(tmp_path, content):
    if content is not None:
        (tmp_path / "open_clip_config.json").write_text(content)
    with pytest.raises(WeightsError) as caught:
        FAMILY.build(f"local-dir:{tmp_path}")
    for word in ("open_clip_config.json", "model_cfg"):
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


# Random weights ---------------------------------------------------------------------------------------------------


def test_random_weights_follow_from_the_seed(tmp_path, pictures):
    made = FAMILY.build(f"local-dir:{folder(tmp_path)}")
    one, again, other = (made.load(LoadOptions("cpu", random_seed=seed)) for seed in (0, 0, 1))
    assert same(one.network, again.network)
    assert not same(one.network, other.network)
    image = made.transform(pictures[0])[None]
    assert one.embed_image(image).shape == (1, 16)
    assert one.embed_text(TEXTS).shape == (3, 16)


def test_random_weights_of_a_coca_are_finite(tmp_path):
    # open_clip leaves one of CoCa's projections uninitialised.
    config = {
        **CONFIG,
        "multimodal_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
        "custom_text": True,
    }
    config["text_cfg"] = {**CONFIG["text_cfg"], "embed_cls": True, "output_tokens": True}
    config["vision_cfg"] = {**CONFIG["vision_cfg"], "attentional_pool": True, "output_tokens": True}
    made = FAMILY.build(f"local-dir:{folder(tmp_path, config=config)}")
    one, again = (made.load(LoadOptions("cpu", random_seed=0)).network for _ in range(2))
    assert same(one, again)
    projection = one.text_decoder.text_projection
    assert projection.abs().max() < 10 * projection.shape[0] ** -0.5
    assert projection.std() > 0


def test_the_definition_is_plain_data():
    network = FAMILY.build("ViT-B-32,openai").spec()["network"]
    assert json.loads(json.dumps(network)) == network
    assert network["config"] == open_clip.get_model_config("ViT-B-32")
