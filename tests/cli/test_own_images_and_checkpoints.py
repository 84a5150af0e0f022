"""A folder and a checkpoint of one's own, given by their paths, and what a run says of its models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import models, transforms

CLASSES, EACH = 4, 6
MINE = ("--models", "resnet18,finetuned.pth", "--eval-settings", "mine")


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    torch.manual_seed(5)
    return models.resnet18(num_classes=CLASSES).eval()


@pytest.fixture
def mine(tmp_path: Path, network: torch.nn.Module) -> Path:
    """The folder of a user with images and a checkpoint."""
    random = np.random.default_rng(0)
    for label in range(CLASSES):
        folder = tmp_path / "mine" / f"kind-{label}"
        folder.mkdir(parents=True)
        for number in range(EACH):
            pixels = random.integers(0, 255, (80, 96, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    torch.save(network.state_dict(), tmp_path / "finetuned.pth")
    return tmp_path


def loss_by_hand(network: torch.nn.Module, folder: Path, resize: int, crop: int, mean: float, std: float) -> float:
    """The cross entropy by torchvision alone; unlike the accuracy of a random network, any preprocessing changes it."""
    prepare = transforms.Compose(
        [
            transforms.Resize(resize, transforms.InterpolationMode.BICUBIC),
            transforms.CenterCrop(crop),
            transforms.ToTensor(),
            transforms.Normalize([mean] * 3, [std] * 3),
        ]
    )
    files = sorted(folder.glob("*/*.png"))
    targets = torch.tensor([int(file.parent.name[-1]) for file in files])
    with torch.no_grad():
        logits = network(torch.stack([prepare(Image.open(file).convert("RGB")) for file in files]))
    return float(torch.nn.functional.cross_entropy(logits, targets))


def loss_of(told: dict[str, Any]) -> float:
    (value,) = [each["value"] for each in told["results"] if (each["metric"], each["slice"]) == ("nll", "overall")]
    return float(value)


def test_a_checkpoint_gets_the_preprocessing_that_the_command_names(program, mine, network):
    words = (*MINE, "--json", "--executor", "inline")
    asked = ("--image-size", "72", "64", "--mean", ".5", ".5", ".5", "--std", ".25", ".25", ".25")
    usual = json.loads(program("eval.py", *words).stdout)
    done = json.loads(program("eval.py", *words, *asked, "--interpolation", "bicubic").stdout)
    (model,) = done["models"]
    assert model["preprocessing"] == {
        "type": "StandardTransform",
        "img_resize_size": 72,
        "img_crop_size": 64,
        "interpolation": "bicubic",
    }
    assert model["normalization"]["mean"] == [0.5] * 3
    assert model["normalization"]["std"] == [0.25] * 3
    assert model["weights_files"] == [str(mine / "finetuned.pth")]
    assert usual["models"][0]["preprocessing"]["img_crop_size"] == 224
    assert usual["models"][0]["preprocessing_from"] == "the published weights of resnet18"
    expected = loss_by_hand(network, mine / "mine", 72, 64, 0.5, 0.25)
    assert loss_of(done) == pytest.approx(expected, rel=1e-5)
    assert loss_of(usual) != pytest.approx(expected, rel=1e-3)
    # another preprocessing is another evaluation, the same one is found again
    assert done["outcomes"][0]["evaluation_id"] != usual["outcomes"][0]["evaluation_id"]
    again = json.loads(program("eval.py", *words, *asked, "--interpolation", "bicubic").stdout)
    assert [each["status"] for each in again["outcomes"]] == ["stored"]


def test_a_run_tells_how_a_model_sees_images_and_that_it_guesses(program, mine):
    words = ("--models", "resnet18,finetuned.pth", "--eval-settings", str(mine / "mine"), "--executor", "inline")
    done = program("eval.py", *words, "--image-size", "64")
    line = next(line for line in done.stdout.splitlines() if "weights finetuned.pth sha256:" in line)
    assert "resize 64, crop 64, interpolation bilinear; mean 0.485 0.456 0.406, std 0.229 0.224 0.225" in line
    assert "from --image-size, the rest from the published weights of resnet18; 4 classes; float32" in line
    assert "At chance level: finetuned" in done.stdout  # the weights are random: nothing was learned
    assert "guessing among 4 classes gives 25.00 %" in done.stdout
    again = program("eval.py", *words, "--image-size", "64")
    assert "nothing was computed" in again.stdout
    assert line in again.stdout  # it is told whether or not anything is computed


def test_a_good_model_is_not_said_to_guess(program, tmp_path):
    done = program("eval.py", "--models", "digits-logreg", "--eval-settings", "digits", "--executor", "inline")
    assert "At chance level" not in done.stdout


def test_an_open_clip_checkpoint_is_loaded_without_a_warning_that_it_is_not(program, mine):
    import open_clip

    name = "ViT-S-32"
    torch.save(open_clip.create_model(name).state_dict(), mine / "epoch_3.pt")
    (mine / "mine" / "zeroshot_classification_templates.txt").write_text("a photo of {c}.\n")
    words = ("--models", f"{name},epoch_3.pt", "--eval-settings", "mine", "--limit", "4", "--executor", "inline")
    done = program("eval.py", *words)
    assert "1 cell: 1 complete." in done.stdout
    assert "from what the published weights of ViT-S-32 agree on, else OpenAI's CLIP" in done.stdout
    assert "No pretrained weights" not in done.stdout + done.stderr
    assert "weights epoch_3.pt sha256:" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--models", "finetuned.pth", "--eval-settings", "mine"), "write resnet50,finetuned.pth"),
        (("--models", "resnet18", "--eval-settings", "mine", "--image-size", "64"), "resnet18 is not such a model"),
        (("--models", "resnett*", "--eval-settings", "mine"), "did you mean 'resnet"),
        ((*MINE, "--mean", "0.5"), "--mean takes three"),
        ((*MINE, "--mean", "124", "116", "104"), "divide numbers of 0 to 255 by 255"),
        ((*MINE, "--std", "0", "nan", "1"), "--std takes numbers above 0 and at most 1"),
        ((*MINE, "--image-size", "64", "224"), "crops more than the resized image; RESIZE"),
        ((*MINE, "--data-root", "elsewhere"), "the folder mine is not below the data root"),
    ],
)
def test_mistakes_are_said_in_a_line(program, mine, words, said):
    done = program("eval.py", *words, code=None)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (mine / "testbed.db").exists()


def test_testbeds_own_settings_do_not_replace_each_other(program):
    done = program("eval.py", "--models", "digits-knn", "--eval-settings", "demo", "--dry-run")
    assert "replaces" not in done.stderr


# Sizes ------------------------------------------------------------------------------------------------------------


def line_of(done: Any, start: str) -> str:
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(start)]
    return str(line)


def test_preprocessing_that_a_training_script_saved_is_taken(program, mine, network):
    import argparse

    import timm
    from timm.models import save_for_hf

    arguments = argparse.Namespace(val_resize_size=72, val_crop_size=64, interpolation="bicubic", lr=0.1, device="cuda")
    torch.save({"model": network.state_dict(), "epoch": 3, "args": arguments}, mine / "reference.pth")
    own = {"input_size": (3, 96, 96), "crop_pct": 0.9, "mean": (0.5, 0.5, 0.5)}
    small = timm.create_model("resnet10t", num_classes=CLASSES, pretrained_cfg_overlay=own)
    save_for_hf(small, mine / "hub", safe_serialization=True)
    (mine / "hub" / "copy.pth").write_bytes((mine / "finetuned.pth").read_bytes())
    words = ("resnet18,reference.pth", "timm/resnet10t,hub/model.safetensors", "resnet18,hub/copy.pth")
    done = program("eval.py", "--models", *words, "--eval-settings", "mine", "--executor", "inline")
    line = line_of(done, "reference: ")
    assert ": resize 72, crop 64, interpolation bicubic; mean 0.485 0.456 0.406," in line
    assert "from args in reference.pth, the rest from the published weights of resnet18; 4 classes;" in line
    line = line_of(done, "model: ")
    assert ": resize 106, crop 96, interpolation bicubic; mean 0.5 0.5 0.5, std 0.229 0.224 0.225;" in line
    assert "from config.json beside model.safetensors, the rest from the published weights of timm/resnet10t" in line
    # that configuration is of another architecture: it says nothing about this one
    assert ": resize 256, crop 224," in line_of(done, "copy: ")
    # an option counts more than what was saved
    asked = ("--models", words[0], "--eval-settings", "mine", "--interpolation", "bilinear")
    done = program("eval.py", *asked, "--executor", "inline")
    assert ": resize 72, crop 64, interpolation bilinear;" in line_of(done, "reference: ")


def test_a_head_of_another_size_than_the_data_is_said_before_anything_is_computed(program, mine):
    torch.save(models.resnet18(num_classes=7).state_dict(), mine / "seven.pth")
    words = ("--models", "resnet18,seven.pth", "--eval-settings", "mine", "--executor", "inline")
    done = program("eval.py", *words, code=1)
    assert "folder/mine has 4 classes; seven returns 7 logits" in done.stdout
    assert "images" not in done.stderr
