"""Whatever is at hand as a model of testbed.evaluate, against what the libraries compute by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from own_models import IMAGES, MEAN, NAMES, STD, WHOLE, logits_by_hand, network, pictures, stored_logits
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from torchvision import models, transforms
from torchvision.transforms import v2

import testbed
from testbed.errors import TestbedError

FILES: list[Path] = []
RANDOM = transforms.Compose([transforms.RandomHorizontalFlip(), *WHOLE.transforms])
EARLY = transforms.Compose([*IMAGES.transforms, transforms.Normalize(MEAN, STD), lambda image: image.clone()])
LARGE = transforms.Compose([transforms.Resize((32, 32)), transforms.PILToTensor(), lambda image: image.float()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hand") / "mine"
    FILES[:] = pictures(root)
    return root


@pytest.fixture
def evaluate(folder: Path, tmp_path: Path) -> Any:
    """A function that evaluates a model on the folder; returns the results and the stored logits."""

    def call(model: Any, on: Any = None, **options: Any) -> Any:
        db = str(tmp_path / "testbed.db")
        found = testbed.evaluate(model, on or folder, db=db, executor="inline", progress=False, **options)
        assert found.failed.empty, found.failed.reason.tolist()
        return found, stored_logits(found, db) if on is None and len(set(found.frame.model)) == 1 else None

    return call


def name_of(found: Any) -> str:
    (name,) = set(found.frame.model)
    return str(name)


# Networks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "transform",
    [
        WHOLE,
        transforms.Compose([IMAGES, transforms.Normalize(MEAN, STD)]),
        transforms.Compose([transforms.Resize(32), transforms.Compose(WHOLE.transforms[1:])]),
        v2.Compose(
            [*IMAGES.transforms[:2], v2.PILToTensor(), v2.ToDtype(torch.float32, True), v2.Normalize(MEAN, STD)]
        ),
    ],
    ids=["flat", "first part nested", "last part nested", "v2"],
)
def test_a_network_with_its_transform(evaluate, transform):
    net = network()
    found, logits = evaluate(net, transform=transform)
    assert np.allclose(logits, logits_by_hand(net, FILES), atol=1e-5)
    assert "its Normalize after corruptions" in found.preprocessing[0]


def test_corruptions_come_before_the_normalize_that_a_transform_ends_with(evaluate, folder):
    on = "folder/mine+imagenet-c.contrast.1"
    one, _ = evaluate(network(), on, transform=WHOLE, data_root=folder.parent)
    other, _ = evaluate(network(), on, image_size=32, mean=MEAN, std=STD, data_root=folder.parent)
    nll = [found.frame[found.frame.metric == "nll"].value.tolist() for found in (one, other)]
    assert nll[0] == nll[1]


def test_torchvisions_and_timms_own_transforms(evaluate):
    net = network()
    preset = transforms._presets.ImageClassification(crop_size=32, resize_size=40, mean=MEAN, std=STD)
    _, logits = evaluate(net, transform=preset)
    assert np.allclose(logits, logits_by_hand(net, FILES, preset), atol=1e-5)
    made = timm.data.create_transform(input_size=32, mean=MEAN, std=STD, is_training=False)
    _, logits = evaluate(net, transform=made)
    assert np.allclose(logits, logits_by_hand(net, FILES, made), atol=1e-5)


def test_timms_networks_say_themselves_how_images_are_prepared(evaluate):
    torch.manual_seed(1)
    net = timm.create_model("test_resnet", num_classes=3).eval()
    found, logits = evaluate(net)
    made = timm.data.create_transform(**timm.data.resolve_model_data_config(net), is_training=False)
    assert np.allclose(logits, logits_by_hand(net, FILES, made), atol=1e-5)
    assert name_of(found).startswith("test_resnet-")
    assert "pretrained_cfg" in found.preprocessing[0]


def test_a_network_that_was_trained_further_is_another_model(evaluate):
    net = network()
    first = evaluate(net, transform=WHOLE)[0]
    assert name_of(evaluate(net, transform=WHOLE)[0]) == name_of(first)
    with torch.no_grad():
        net[3].weight += 1
    second, logits = evaluate(net, transform=WHOLE)
    assert name_of(second) != name_of(first)
    assert np.allclose(logits, logits_by_hand(net, FILES), atol=1e-4)
    with pytest.raises(AssertionError, match="a network that has changed since"):
        evaluate(name_of(first))


def test_a_chosen_name_stays_while_the_network_changes(evaluate):
    net, losses = network(), []
    for _ in range(2):
        found, logits = evaluate(net, transform=WHOLE, name="held-in-hand")
        assert name_of(found) == "held-in-hand"
        assert np.allclose(logits, logits_by_hand(net, FILES), atol=1e-4)
        losses.append(float(logits.sum()))
        with torch.no_grad():
            net[3].weight += 1
    assert losses[0] != losses[1]


def test_several_networks_and_a_name_in_one_call(evaluate):
    found, _ = evaluate([network(0), network(1)], transform=WHOLE)
    assert len(set(found.frame.model)) == 2


def test_a_mapping_names_several_networks(evaluate):
    found, _ = evaluate({"one": network(0), "other": network(1)}, transform=WHOLE)
    assert set(found.frame.model) == {"one", "other"}


def test_a_network_of_one_channel_sees_pictures_after_corruptions(evaluate):
    net = network(channels=1)
    grey = transforms.Compose([transforms.Grayscale(), *WHOLE.transforms[:3], transforms.Normalize([0.5], [0.5])])
    found, logits = evaluate(net, transform=grey)
    assert np.allclose(logits, logits_by_hand(net, FILES, grey), atol=1e-5)
    assert "whole, after corruptions" in found.preprocessing[0]


@pytest.mark.parametrize("transform", [EARLY, LARGE, lambda image: WHOLE(image)], ids=["early", "0 to 255", "function"])
def test_a_transform_that_normalizes_inside_is_applied_whole_after_corruptions(evaluate, transform):
    net = network()
    found, logits = evaluate(net, transform=transform)
    assert np.allclose(logits, logits_by_hand(net, FILES, transform), atol=1e-4)
    assert "whole, after corruptions" in found.preprocessing[0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_network_in_another_precision_runs_in_it(evaluate, dtype):
    net = network().to(dtype)
    _, logits = evaluate(net, transform=WHOLE)
    by_hand = logits_by_hand(lambda images: net(images.to(dtype)).float(), FILES)
    assert np.allclose(logits, by_hand, rtol=2e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-3)


def test_a_network_that_returns_more_than_logits_says_what_it_returns(folder, tmp_path):
    net = network()
    found = testbed.evaluate(lambda x: (net(x), x), folder, transform=WHOLE, db=str(tmp_path / "x.db"), progress=False)
    why = found.failed.reason.item()
    assert "got tuple of a tensor of shape (" in why
    assert "lambda images: network(images)[0]" in why


def test_what_is_not_right_with_the_outputs_is_a_remark_also_of_stored_ones(folder, tmp_path, capsys):
    net, place = network(), {"db": str(tmp_path / "x.db"), "transform": WHOLE}
    for _ in range(2):
        found = testbed.evaluate({"soft": lambda images: net(images).softmax(1)}, folder, **place)
        assert any("add up to 1 " in line and "nll, brier, ece" in line for line in found.remarks)
        assert capsys.readouterr().err.count("add up to 1 ") == 1
    found = testbed.evaluate({"array": lambda images: net(images).numpy()}, folder, **place, progress=False)
    assert found.failed.reason.item().endswith("got ndarray; return a tensor: torch.from_numpy(…)")


def test_a_function_of_images(evaluate):
    found, logits = evaluate(lambda images: images.mean((2, 3)), transform=IMAGES)
    assert np.allclose(logits, logits_by_hand(lambda images: images.mean((2, 3)), FILES, IMAGES), atol=1e-5)
    assert name_of(found).startswith("lambda-")


def test_torchvisions_weights_are_the_name_of_a_model():
    from testbed.api.models_at_hand import model_names

    given = [
        models.MobileNet_V3_Small_Weights.DEFAULT,
        models.ResNet50_Weights.IMAGENET1K_V2,
        models.ViT_B_16_Weights.DEFAULT,
    ]
    expected = ["mobilenet_v3_small.imagenet1k_v1", "resnet50.imagenet1k_v2", "vit_b_16.imagenet1k_v1"]
    assert model_names(given) == (expected, None)
    with pytest.raises(TestbedError, match="are not weights of a torchvision image classifier"):
        model_names(models.detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT)


# scikit-learn -----------------------------------------------------------------------------------------------------


def features(image: Image.Image) -> Any:
    return np.asarray(image.convert("L").resize((8, 8)), dtype=np.float64).ravel()


@pytest.mark.parametrize(
    "classifier",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=0),
        KNeighborsClassifier(3),
        make_pipeline(PCA(4), SVC()),
        LinearSVC(),
    ],
    ids=["pipeline", "forest", "neighbours", "kernel", "linear"],
)
@pytest.mark.parametrize("named", [True, False])
def test_a_classifier_of_scikit_learn_on_features(evaluate, classifier, named):
    given = np.stack([features(Image.open(file)) for file in FILES])
    classes = [file.parent.name if named else NAMES.index(file.parent.name) for file in FILES]
    classifier.fit(given, classes)
    found, logits = evaluate(classifier, transform=features)
    if hasattr(classifier, "predict_proba"):
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert np.allclose(shares, classifier.predict_proba(given), atol=1e-6)
    else:
        assert np.allclose(logits, classifier.decision_function(given), atol=1e-5)
    said = found.samples(name_of(found), "folder/mine").prediction.tolist()
    expected = classifier.predict(given).tolist()
    assert said == (expected if named else [NAMES[each] for each in expected])


def test_a_classifier_of_scikit_learn_on_pixels(evaluate):
    small = transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()])
    given = np.stack([small(Image.open(file)).numpy().ravel() for file in FILES])
    classifier = LogisticRegression().fit(given, [file.parent.name for file in FILES])
    found, logits = evaluate(classifier, transform=small)
    assert np.allclose(np.exp(logits), classifier.predict_proba(given), atol=1e-6)
    again, _ = evaluate(LogisticRegression(C=0.1).fit(given, [file.parent.name for file in FILES]), transform=small)
    assert name_of(again) != name_of(found)


# What is refused ---------------------------------------------------------------------------------------------------


class Opaque:
    pass


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (None, {}, "got None for a model; a model is a name, a definition, a network"),
        (5, {}, "got int for a model"),
        ({"a": "resnet50"}, {}, "'a' is 'resnet50', which has a name: give a list"),
        (network().state_dict(), {}, r"a state dict has no code: load it into one, network.load_state_dict\(…\)"),
        ({"a": network()}, {"name": "b"}, "a dict of models has their names"),
        ([], {}, "no models were given"),
        (Opaque(), {}, "got Opaque for a model"),
        (["digits-logreg", None], {}, "got None for a model"),
        (np.zeros(3), {}, "got ndarray for a model"),
        (models.ResNet50_Weights, {}, r"is a class; give one of its members, as ResNet50_Weights\.DEFAULT"),
        (models.ResNet50_Weights.DEFAULT, {"transform": WHOLE}, "transform=… applies only to a network or a file"),
        (torch.nn.Linear, {}, r"Linear is a class; give an instance, as Linear\(…\)"),
        (network(), {}, "Sequential does not say how to prepare images for it; give transform=…"),
        (network(), {"transform": 5}, "transform is a function from a PIL image to a tensor"),
        (network(), {"transform": RANDOM}, r"makes something else each time for the same picture \(random crops"),
        (
            network(),
            {"transform": lambda image: {"image": IMAGES(image)}},
            r"a dict with image; .*\['image'\]",
        ),
        (network(), {"transform": transforms.Normalize(MEAN, STD)}, "put torchvision's ToTensor before it"),
        (network(), {"transform": transforms.Resize(8)}, "makes a PIL image; end it with torchvision's ToTensor"),
        (network(), {"transform": transforms.PILToTensor()}, "makes a tensor of torch.uint8"),
        (network(), {"transform": WHOLE, "mean": MEAN}, "give transform=… or mean, not both"),
        (network(), {"image_size": 32}, "its preprocessing is incomplete: --mean, --std missing"),
        (network(), {"transform": WHOLE, "name": "a b"}, "contains white space"),
        (network(), {"transform": WHOLE, "name": "resnet50"}, "belongs to another model"),
        ([network(), network(1)], {"transform": WHOLE, "name": "x"}, "names one network or file"),
        ("digits-logreg", {"transform": WHOLE}, "transform=… applies only to a network or a file"),
        ("digits-logreg", {"name": "x"}, "is for one model in a file; there are 0 here"),
        (LogisticRegression(), {"transform": features}, "is not fitted"),
        (LinearRegression(), {"transform": features}, "neither predict_proba nor decision_function"),
    ],
)
def test_anything_else_ends_with_one_line_that_says_what_is_right(folder, tmp_path, model, options, said):
    with pytest.raises(TestbedError, match=said) as caught:
        testbed.evaluate(model, folder, db=str(tmp_path / "x.db"), progress=False, **options)
    assert "\n" not in str(caught.value)


def test_a_classifier_of_other_features_says_both_numbers(folder, tmp_path):
    classifier = LogisticRegression().fit(np.eye(5), [0, 0, 1, 1, 2])
    with pytest.raises(TestbedError, match=r"takes 5 numbers for each image; its transform makes 64"):
        testbed.evaluate(classifier, folder, db=str(tmp_path / "x.db"), transform=features)
    with pytest.raises(TestbedError, match=r"takes 5 numbers for each image; give transform=…"):
        testbed.evaluate(classifier, folder, db=str(tmp_path / "x.db"))
