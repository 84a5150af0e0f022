"""ImageNet-testbed's published models: their names, weights, preprocessing, types and accuracies."""

from __future__ import annotations

from dataclasses import replace

import pytest
import timm
import torch
from tables import cases
from torchvision import models, transforms

from testbed.errors import WeightsError
from testbed.models import imagenet_testbed
from testbed.models.base.weights import of_files
from testbed.models.imagenet_testbed import imagenet_among_21k, imagenet_logits
from testbed.models.model_base import DualEncoder, LoadOptions
from testbed.models.networks import imagenet_testbed_table as published_table
from testbed.models.networks.imagenet_testbed_table import MORE_DATA, ROWS, STANDARD, Row
from testbed.registry import registry
from testbed.registry.library_names import library_names
from testbed.registry.select import select

CPU = LoadOptions("cpu")
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@pytest.fixture(scope="module", autouse=True)
def catalog(library_lists):
    return registry.load()


def test_the_collection_selects_a_hundred_models_and_more():
    names = select(registry.models, registry.model_collections, ["imagenet-testbed"])
    assert names == list(ROWS)
    assert len(names) >= 100
    assert set(names) <= set(registry.model_names())


def test_every_name_means_weights_that_a_library_of_today_holds():
    held = {
        **{name: weights[:1] for name, weights in library_names("torchvision").items()},
        **{f"timm/{name}": tags for name, tags in library_names("timm").items()},
        **library_names("open_clip_torch"),
    }
    without_url = [row for row in ROWS.values() if row.url is None]
    assert len(without_url) == 100
    for row in without_url:
        for separator in (".", ","):
            architecture, _, tag = row.model.partition(separator)
            if tag:
                assert tag in held[architecture], row.name
                break
        else:
            assert held[row.model], row.name


def test_what_torchvision_documents_is_what_was_published():
    """To a few images of 50,000: not another training of the same architecture."""
    rows = [row for row in ROWS.values() if row.origin is published_table.TORCHVISION]
    assert len(rows) == 29
    for row in rows:
        (weights, *_) = models.get_model_weights(row.model)
        assert weights.meta["_metrics"]["ImageNet-1K"]["acc@1"] == pytest.approx(row.top1, abs=0.003), row.name


@pytest.mark.parametrize(
    ("name", "model_type"),
    [
        ("resnet50", STANDARD),
        ("googlenet/inceptionv1", STANDARD),
        ("efficientnet-b3-advprop-autoaug", "Other robustness intervention"),
        ("efficientnet-l2-noisystudent", MORE_DATA),
        ("dpn68", STANDARD),
        ("dpn68b", MORE_DATA),
        ("vit_b_32_clip_zeroshot", MORE_DATA),
    ],
)
def test_a_model_has_the_published_type_and_accuracy(name, model_type):
    made = registry.get_model(name)
    assert made.name == name
    assert made.model_type == model_type
    top1 = next(each for each in made.published if each.metric == "top1")
    assert top1.eval_setting == "val"
    assert top1.value == pytest.approx(ROWS[name].top1 / 100, abs=1e-9)
    assert top1.source


def test_torchvisions_own_names_are_torchvisions_models_and_others_have_no_type():
    assert registry.models.source("resnet50") == "family torchvision"
    assert registry.get_model("resnet50.imagenet1k_v2").model_type is None
    assert registry.models.source("xception") == "family imagenet-testbed"


def published_transform(resize, crop, interpolation, mean, std):
    mode = transforms.InterpolationMode(interpolation)
    return transforms.Compose(
        [
            transforms.Resize(resize, interpolation=mode),
            transforms.CenterCrop(crop),
            transforms.ToTensor(),
            transforms.Normalize(mean, std),
        ]
    )


SIZES = (224, 240, 260, 300, 380, 456, 528, 600, 672, 800)


def efficientnets():
    """All of them: each is resized to 32 pixels more than its size."""
    sizes = dict(zip([*(f"b{number}" for number in range(9)), "l2"], SIZES, strict=True))
    for name in ROWS:
        if name.startswith("efficientnet-"):
            size = sizes[name.split("-")[1]]
            yield name, size + 32, size, "bicubic", HALVES if "advprop" in name else IMAGENET


@cases(
    ("name", "resize", "crop", "interpolation", "normalization"),
    [
        ("googlenet/inceptionv1", 256, 224, "bilinear", IMAGENET),
        ("senet154", 256, 224, "bilinear", IMAGENET),
        ("inceptionv3", 341, 299, "bilinear", HALVES),
        ("xception", 341, 299, "bilinear", HALVES),
        ("pnasnet5large", 378, 331, "bilinear", HALVES),
        # Dual Path Networks scale by 0.0167 on the range of bytes.
        ("dpn92", 256, 224, "bilinear", ((124 / 255, 117 / 255, 104 / 255), (1 / (0.0167 * 255),) * 3)),
        *efficientnets(),
        ("resnet50_swsl", 256, 224, "bilinear", IMAGENET),
        ("instagram-resnext101_32x48d", 256, 224, "bilinear", IMAGENET),
        ("BiT-M-R50x1-ILSVRC2012", (480, 480), 480, "bilinear", HALVES),
        ("BiT-M-R50x1-nonfinetuned", (480, 480), 480, "bilinear", HALVES),
        ("vit_base_patch16_224", 248, 224, "bicubic", HALVES),
        ("vit_large_patch16_384", 384, 384, "bicubic", HALVES),
    ],
)
def test_a_model_is_fed_as_for_the_published_row(pictures, name, resize, crop, interpolation, normalization):
    made = registry.get_model(name)
    mean, std = normalization
    theirs = published_transform(resize, crop, interpolation, mean, std)
    for picture in pictures[:3]:
        ours = made.normalization(made.transform(picture)[None])[0]
        assert ours.shape == theirs(picture).shape
        assert (ours - theirs(picture)).abs().max() < 1e-5


def architectures():
    """A row for each architecture; torchvision's are tested elsewhere. All but a few take long."""
    rows = {row.model.partition(".")[0]: row.name for row in ROWS.values() if "timm" in row.model or row.url}
    names = sorted(rows.values())
    return [pytest.param(name, marks=[pytest.mark.long] if place % 6 else []) for place, name in enumerate(names)]


@pytest.mark.parametrize("name", architectures())
def test_a_network_takes_images_of_its_size_and_gives_logits_of_imagenets_classes(name):
    made = registry.get_model(name)
    with torch.device("meta"), torch.no_grad():  # shapes alone: no numbers are computed
        network = made.make_random_network(0).eval()
        size = getattr(made.transform, "img_crop_size", None) or made.transform.input_size[1:]
        height, width = (size, size) if isinstance(size, int) else size
        images = torch.empty(2, 3, height, width)
        logits = made.classify(images, network) if made.classify else network(images)
    assert logits.shape == (2, 1000) == (2, made.num_classes)


def test_clip_is_zero_shot():
    for name in ("resnet50_clip_zeroshot", "vit_b_32_clip_zeroshot"):
        assert isinstance(registry.get_model(name), DualEncoder)
    quick = registry.get_model("vit_b_32_clip_zeroshot").architecture
    assert quick["quick_gelu"] is True  # as OpenAI trained it; without it points are lost


# ImageNet-21k -----------------------------------------------------------------------------------------------------


def test_imagenets_classes_are_found_among_imagenet_21ks():
    positions = imagenet_among_21k()
    assert len(positions) == 1000
    assert positions[:3] == (359, 368, 460)  # tench, goldfish, great white shark
    assert positions[848:852] == (11110, 11137, 0, 11168)  # no teddy bear
    assert positions[-3:] == (21200, 21369, 21817)
    assert len(set(positions)) == 1000


def test_a_model_of_21843_classes_becomes_one_of_1000():
    made = registry.get_model("BiT-M-R50x1-nonfinetuned")
    assert made.classify is imagenet_logits
    assert made.classify_fn_args == {"images", "model"}
    logits = made.classify(torch.zeros(2, 3, 4, 4), lambda images: torch.arange(21843.0).repeat(len(images), 1))
    assert logits[1].tolist() == [float(position) for position in imagenet_among_21k()]


def test_restricting_the_classes_is_part_of_what_a_model_is():
    tuned, untuned = (registry.get_model(f"BiT-M-R50x1-{kind}") for kind in ("ILSVRC2012", "nonfinetuned"))
    assert tuned.spec()["classify"] is None
    assert untuned.spec()["classify"] is imagenet_logits


# Weights by their URL ---------------------------------------------------------------------------------------------

URL = "https://files.example.org/models/tiny-0123abcd.pth"


def test_a_file_that_timm_once_published_is_loaded_as_timm_does(monkeypatch, torch_home):
    row = Row("tiny", "timm/vit_tiny_patch16_224", MORE_DATA, 70.0, published_table.VIT, url=URL)
    monkeypatch.setitem(ROWS, "tiny", row)
    made = imagenet_testbed.ImageNetTestbedFamily().build("tiny")
    assert made.weights(fetch=False) is None
    there = timm.create_model("vit_tiny_patch16_224", pretrained=False)
    torch.save(there.state_dict(), torch_home / "tiny-0123abcd.pth")
    assert made.weights(fetch=False) == of_files([torch_home / "tiny-0123abcd.pth"])
    loaded = made.make_network()
    for name, value in there.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)


def test_a_resnext_that_torchvision_does_not_name_is_loaded(monkeypatch, torch_home):
    size = {"layers": [1, 1, 1, 1], "groups": 2, "width_per_group": 4}
    monkeypatch.setitem(imagenet_testbed.RESNEXT_SIZES, "small", size)
    row = replace(ROWS["instagram-resnext101_32x48d"], name="small-one", model="small", url=URL)
    monkeypatch.setitem(ROWS, "small-one", row)
    made = imagenet_testbed.ImageNetTestbedFamily().build("small-one")
    network = made.make_random_network(3)
    torch.save(network.state_dict(), torch_home / "tiny-0123abcd.pth")
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        expected = network.eval()(made.normalization(images))
        assert torch.allclose(made.load(CPU).logits(images), expected, atol=1e-6)
    torch.save({"conv1.weight": torch.zeros(3)}, torch_home / "tiny-0123abcd.pth")
    with pytest.raises(WeightsError, match="small-one does not fit the architecture"):
        made.make_network()


def test_weights_that_cannot_be_had_are_named_with_their_url(torch_home):
    made = registry.get_model("vit_large_patch16_384")
    with pytest.raises(WeightsError, match=r"vit_large_patch16_384: .*jx_vit_large_p16_384-b3be5167\.pth"):
        made.weights()


def test_another_name_is_another_definition_and_changes_nothing_else():
    base = registry.get_model("timm/resnet18.fb_swsl_ig1b_ft_in1k")
    renamed = base.under_name("mine", model_type="x")
    assert (renamed.name, renamed.model_type) == ("mine", "x")
    assert (base.name, base.model_type) == ("timm/resnet18.fb_swsl_ig1b_ft_in1k", None)
    assert renamed.spec() == base.spec()
    with pytest.raises(Exception, match="no field 'model_typ'"):
        base.under_name("mine", model_typ="x")
