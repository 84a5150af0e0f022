"""timm's models: names with tags, timm's own preprocessing, encoders without a head, and weights in the hub's cache."""

from __future__ import annotations

import dataclasses
import pickle

import pytest
import timm
import torch
from safetensors.torch import save_file
from tables import cases
from timm.data import create_transform, resolve_data_config
from weights_world import difference, same

from testbed.errors import WeightsError
from testbed.models import timm_models
from testbed.models.base.weights import of_files
from testbed.models.model_base import ImageEncoder, LoadOptions, Model
from testbed.models.timm_models import TimmFamily, TimmTransform, TimmWeights

FAMILY = TimmFamily()
BARE = "test_vit.r160_in1k"
CPU = LoadOptions("cpu")


def reference(bare):
    """The evaluation transform that timm makes for a pretrained name."""
    config = resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(bare).to_dict())
    return create_transform(**config, is_training=False)


def test_every_different_configuration_is_fed_as_timm_feeds_it(pictures):
    seen = set()
    for bare in timm.list_pretrained():
        config = resolve_data_config({}, pretrained_cfg=timm.get_pretrained_cfg(bare).to_dict())
        key = repr(sorted(config.items()))
        if key in seen or max(config["input_size"]) > 640 or config["crop_mode"] == "border":
            continue
        seen.add(key)
        # The large photos cost seconds over all configurations; the small one is resized up, too.
        assert difference(FAMILY.build(f"timm/{bare}"), reference(bare), pictures[3:]) < 1e-6, bare
    assert len(seen) > 50


def test_a_border_has_the_colour_of_the_configurations_mean(pictures, monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))  # which remembers nothing of timm's own configuration
    config = dataclasses.replace(timm.get_pretrained_cfg(BARE), crop_mode="border", mean=(0.1, 0.2, 0.9))
    monkeypatch.setattr(timm_models, "pretrained_config", lambda name: config)
    made = FAMILY.build(f"timm/{BARE}")
    assert made.transform.crop_mode == "border"
    preset = create_transform(**resolve_data_config({}, pretrained_cfg=config.to_dict()), is_training=False)
    assert difference(made, preset, pictures) < 1e-6


@cases("crop_mode", ["center", "squash"])
@cases("input_size", [(3, 64, 64), (3, 96, 64), (3, 48, 80)])
@cases(("interpolation", "crop_pct"), [("bicubic", 0.875), ("bilinear", 1.0), ("bicubic", 0.9)])
def test_every_crop_mode_and_shape_is_timms(pictures, crop_mode, input_size, interpolation, crop_pct):
    arguments = {"input_size": input_size, "interpolation": interpolation, "crop_pct": crop_pct, "crop_mode": crop_mode}
    expected = create_transform(**arguments, mean=(0, 0, 0), std=(1, 1, 1), is_training=False)
    ours = TimmTransform(**arguments)
    for picture in pictures:
        got = ours(picture)
        assert got.shape == input_size
        torch.testing.assert_close(got, expected(picture), rtol=0, atol=1e-6)
        assert 0 <= got.min() <= got.max() <= 1


def test_the_transform_is_plain_data_and_travels(pictures):
    transform = TimmTransform((3, 64, 64), "bicubic", 0.875, "center")
    before = transform(pictures[3])
    assert transform.spec() == {
        "input_size": [3, 64, 64],
        "interpolation": "bicubic",
        "crop_pct": 0.875,
        "crop_mode": "center",
        "fill": None,
    }
    torch.testing.assert_close(pickle.loads(pickle.dumps(transform))(pictures[3]), before, rtol=0, atol=0)


@pytest.mark.usefixtures("library_lists")
@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("timm/resnet18.a1_in1k", "timm/resnet18.a1_in1k"),
        ("timm/resnet18.tv_in1k", "timm/resnet18.tv_in1k"),
        ("timm/resnet18.nope", None),
        ("timm/resnet18.", None),
        ("timm/nope", None),
        ("resnet18.a1_in1k", None),
        ("timm/", None),
        ("timm/resnet18,/path/to.pth", None),
    ],
)
def test_canonical_names(written, canonical):
    assert FAMILY.canonical(written) == canonical


@pytest.mark.usefixtures("library_lists")
@pytest.mark.parametrize("architecture", ["resnet18", "vit_base_patch16_224", "convnext_base", "test_vit"])
def test_a_name_without_a_tag_means_timms_default(architecture):
    default = timm.get_pretrained_cfg(architecture).tag
    assert default
    assert FAMILY.canonical(f"timm/{architecture}") == f"timm/{architecture}.{default}"


@pytest.mark.usefixtures("library_lists")
def test_names_are_canonical_and_hold_every_published_checkpoint():
    names = list(FAMILY.names())
    assert len(names) == len(set(names))
    assert all(FAMILY.canonical(name) == name for name in names)
    assert {f"timm/{bare}" for bare in timm.list_pretrained()} <= set(names)
    assert {name.removeprefix("timm/").partition(".")[0] for name in names} == set(timm.list_models())


def test_classes_are_those_of_the_configuration():
    assert FAMILY.build("timm/resnet18.a1_in1k").num_classes == 1000
    assert FAMILY.build("timm/vit_base_patch16_224.augreg_in21k").num_classes == 21843
    assert isinstance(FAMILY.build("timm/resnet18.a1_in1k"), Model)


def test_a_name_without_classes_is_an_image_encoder(pictures):
    made = FAMILY.build("timm/vit_small_patch16_224.dino")
    assert isinstance(made, ImageEncoder)
    assert made.capabilities == {"embed_image", "gradients"}
    assert made.num_classes is None
    assert difference(made, reference("vit_small_patch16_224.dino"), pictures) < 1e-6


# Weights in the hub's cache ---------------------------------------------------------------------------------------


@pytest.fixture
def network():
    torch.manual_seed(3)
    return timm.create_model("test_vit", pretrained=False).eval()


def test_weights_in_the_hubs_cache_are_found_loaded_and_told_by_content(hub_cache, network, tmp_path, pictures):
    made = FAMILY.build(f"timm/{BARE}")
    assert made.weights(fetch=False) is None
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    hub_cache(f"timm/{BARE}", {"model.safetensors": tmp_path / "w.safetensors"})
    assert made.weights(fetch=False) == made.weights() == of_files([tmp_path / "w.safetensors"])
    loaded = made.load(CPU)
    assert same(loaded.network, network)
    with torch.no_grad():
        expected = network(reference(BARE)(pictures[0])[None])
    torch.testing.assert_close(loaded.logits(made.transform(pictures[0])[None]), expected, rtol=1e-5, atol=1e-5)


def test_the_older_format_is_found_but_of_two_the_one_that_timm_loads_counts(hub_cache, network, tmp_path):
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    torch.manual_seed(4)
    torch.save(timm.create_model("test_vit").state_dict(), tmp_path / "w.bin")
    hub_cache(f"timm/{BARE}", {"pytorch_model.bin": tmp_path / "w.bin"})
    assert FAMILY.build(f"timm/{BARE}").weights(fetch=False) == of_files([tmp_path / "w.bin"])
    hub_cache(
        f"timm/{BARE}", {"model.safetensors": tmp_path / "w.safetensors", "pytorch_model.bin": tmp_path / "w.bin"}
    )
    made = FAMILY.build(f"timm/{BARE}")
    assert made.weights() == of_files([tmp_path / "w.safetensors"])
    assert same(made.load(CPU).network, network)


def test_weights_behind_a_plain_url_are_found_in_the_folder_of_torch_hub(torch_home):
    bare = next(each for each in timm.list_pretrained() if not timm.get_pretrained_cfg(each).hf_hub_id)
    assert TimmWeights(f"timm/{bare}").files(fetch=False) is None
    path = torch_home / timm.get_pretrained_cfg(bare).url.rpartition("/")[2]
    path.write_bytes(b"weights")
    assert TimmWeights(f"timm/{bare}").files(fetch=False) == [path]


@pytest.mark.usefixtures("library_lists")
def test_an_architecture_without_published_weights_says_so():
    pretrained = {bare.partition(".")[0] for bare in timm.list_pretrained()}
    bare = next(each for each in timm.list_models() if each not in pretrained)
    assert f"timm/{bare}" in FAMILY.names()
    made = FAMILY.build(f"timm/{bare}")
    for fetch in (True, False):
        with pytest.raises(WeightsError, match=rf"timm/{bare}: timm publishes no weights.*--random-weights"):
            made.weights(fetch=fetch)


# Random weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bare", ["vit_tiny_patch16_224.augreg_in21k", "vit_small_patch16_224.dino"])
def test_random_weights_have_the_classes_of_the_name(bare):
    made = FAMILY.build(f"timm/{bare}")
    wanted = timm.get_pretrained_cfg(bare).num_classes
    assert wanted == (made.num_classes or 0)
    assert made.make_random_network(0).num_classes == wanted


def test_a_model_at_another_size_has_the_crop_of_its_test_configuration_there():
    config = timm.get_pretrained_cfg("convnext_tiny.fb_in1k")
    assert (config.test_input_size, config.crop_pct, config.test_crop_pct) == ((3, 288, 288), 0.875, 1.0)
    for size, crop in ((288, 1.0), (224, 0.875), (160, 0.875)):
        made = FAMILY.build(f"timm/convnext_tiny.fb_in1k@{size}")
        assert (made.transform.input_size, made.transform.crop_pct) == ([3, size, size], crop)
        assert made.weights_source == TimmWeights("timm/convnext_tiny.fb_in1k")
    assert FAMILY.canonical("timm/test_vit@0192") == f"timm/{BARE}@192"
    assert [FAMILY.canonical(f"timm/{BARE}@{size}") for size in ("", "0", "big", "99999")] == [None] * 4


def test_a_network_of_one_size_is_built_for_the_other_one():
    made = FAMILY.build(f"timm/{BARE}@192")
    assert made.load(LoadOptions("cpu", random_seed=0)).logits(torch.rand(2, 3, 192, 192)).shape == (2, 1000)
    assert made.spec() != FAMILY.build(f"timm/{BARE}").spec()
