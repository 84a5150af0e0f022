"""In which order a checkpoint's classes are: what timm and torchvision read, what files say, and ``--class-order``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

# Sorted as text: 1, 10, 2, 20, Zebra, ant. In timm's order: 1, 2, 10, 20, ant, Zebra.
CLASSES = ("1", "2", "10", "20", "ant", "Zebra")
ARCHITECTURE = "test_resnet"
SCRIPT = {"model": ARCHITECTURE, "data_dir": "/data", "dataset": "", "class_map": ""}  # a few of timm's arguments


@pytest.fixture(scope="module")
def network() -> Any:
    import timm

    torch.manual_seed(1)
    made = timm.create_model(ARCHITECTURE, num_classes=len(CLASSES)).eval()
    made.fc.weight.data *= 100
    return made


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    for number, name in enumerate(CLASSES):
        (tmp_path / "mine" / name).mkdir(parents=True)
        for each in range(3):
            pixels = random.integers(0, 80 + 30 * number, (40, 48, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "mine" / name / f"{each}.png")
    return tmp_path


def by_timm(network: Any, folder: Path, class_map: dict[str, int] | None = None) -> float:
    """The cross entropy by timm alone: its reader with its order of classes, its transform."""
    from timm.data import create_dataset, create_transform, resolve_model_data_config

    transform = create_transform(**resolve_model_data_config(network), is_training=False)
    images = create_dataset("", str(folder), class_map=class_map or "")
    images.transform = transform
    with torch.no_grad():
        losses = [torch.nn.functional.cross_entropy(network(image[None])[0], torch.tensor(y)) for image, y in images]
    return float(torch.stack(losses).mean())


def told(program: Any, *words: str) -> tuple[dict[str, float], dict[str, Any]]:
    """The loss of each model, by the name of its file, and all that a run says."""
    words = (*words, "--eval-settings", "mine", "--image-size", "168", "160", "--json", "--executor", "inline")
    found = json.loads(program("eval.py", *words, code=None).stdout)
    losses = {
        file_of(each["model"]): each["value"]
        for each in found["results"]
        if (each["metric"], each["slice"]) == ("nll", "overall")
    }
    return losses, found


def file_of(model: str) -> str:
    return model.rpartition("/")[2]


def order(names: Sequence[str]) -> dict[str, int]:
    return {name: index for index, name in enumerate(names)}


SHUFFLED = ("Zebra", "10", "ant", "1", "20", "2")
FILES = {  # what was saved besides the state dict -> the order in which timm's reader has the classes, and who says so
    "timm's script": (
        {"args": argparse.Namespace(**SCRIPT)},
        None,
        "natural order of their names (from args in w.pth)",
    ),
    "its arguments as a dictionary": (
        {"args": dict(SCRIPT)},
        None,
        "natural order of their names (from args in w.pth)",
    ),
    "timm's script with torchvision's reader": (
        {"args": argparse.Namespace(**{**SCRIPT, "dataset": "torch/image_folder"})},
        sorted(CLASSES),
        "order of their sorted names (from args in w.pth)",
    ),
    "class_to_idx": ({"class_to_idx": order(SHUFFLED)}, SHUFFLED, "listed (from class_to_idx in w.pth)"),
    "class_to_idx with timm's arguments": (
        {"class_to_idx": order(SHUFFLED), "args": argparse.Namespace(**SCRIPT)},
        SHUFFLED,
        "listed (from class_to_idx in w.pth)",
    ),
    "idx_to_class": ({"idx_to_class": dict(enumerate(SHUFFLED))}, SHUFFLED, "listed (from idx_to_class in w.pth)"),
    "classes": ({"classes": list(SHUFFLED)}, SHUFFLED, "listed (from classes in w.pth)"),
    "Lightning": ({"hyper_parameters": {"class_names": list(SHUFFLED)}}, SHUFFLED, "hyper_parameters in w.pth)"),
    "a number of classes": ({"classes": len(CLASSES)}, sorted(CLASSES), "the setting's order (assumed)"),
    "nothing": ({}, sorted(CLASSES), "the setting's order (assumed)"),
}


@pytest.mark.long
def test_the_order_is_the_one_that_the_file_says(program: Any, mine: Path, network: Any) -> None:
    models = [f"timm/{ARCHITECTURE},w{number}.pth" for number in range(len(FILES))]
    for number, (entries, _, _) in enumerate(FILES.values()):
        torch.save({"state_dict": network.state_dict(), **entries}, mine / f"w{number}.pth")
    arguments = argparse.Namespace(**{**SCRIPT, "class_map": "/elsewhere/map.txt"})
    torch.save({"state_dict": network.state_dict(), "args": arguments}, mine / "mapped.pth")
    models.append(f"timm/{ARCHITECTURE},mapped.pth")
    losses, found = told(program, "--models", *models)
    said = {file_of(each["model"]): each["class_order"] for each in found["models"]}
    orders = {str(each): by_timm(network, mine / "mine", order(each)) for each in (sorted(CLASSES), CLASSES, SHUFFLED)}
    orders[str(None)] = by_timm(network, mine / "mine")  # in the order of its own reader
    kinds = list(orders.values())[:3]
    for number, (_, names, words) in enumerate(FILES.values()):
        expected = orders[str(names)]
        assert sum(abs(each - expected) < 1e-3 for each in kinds) == 1  # another order would be seen
        assert losses[f"w{number}"] == pytest.approx(expected, rel=1e-4)
        assert words.replace("w.pth", f"w{number}.pth") in said[f"w{number}"]
    (failed,) = [each["reason"] for each in found["outcomes"] if each["status"] == "failed"]
    assert "class map /elsewhere/map.txt" in failed
    (mine / "map.txt").write_text("\n".join(SHUFFLED) + "\n")  # is read beside the checkpoint
    losses, found = told(program, "--models", models[-1])
    assert losses == {"mapped": pytest.approx(kinds[2], rel=1e-4)}
    assert "map.txt, the class_map of args in mapped.pth" in found["models"][0]["class_order"]


def test_an_option_counts_more_than_the_file_and_is_another_evaluation(program: Any, mine: Path, network: Any) -> None:
    torch.save({"state_dict": network.state_dict(), "args": argparse.Namespace(**SCRIPT)}, mine / "w.pth")
    (mine / "names.txt").write_text("\n".join(SHUFFLED))
    (mine / "names.json").write_text(json.dumps(order(SHUFFLED)))
    model = ("--models", f"timm/{ARCHITECTURE},w.pth")
    losses, found = told(program, *model)
    assert losses["w"] == pytest.approx(by_timm(network, mine / "mine"), rel=1e-4)
    evaluations = {found["outcomes"][0]["evaluation_id"]}
    for option, names in {
        "natural": CLASSES,
        "setting": sorted(CLASSES),
        "names.txt": SHUFFLED,
        "names.json": SHUFFLED,
    }.items():
        losses, found = told(program, *model, "--class-order", option)
        assert losses["w"] == pytest.approx(by_timm(network, mine / "mine", order(names)), rel=1e-4), option
        assert "--class-order" in found["models"][0]["class_order"]
        evaluations.add(found["outcomes"][0]["evaluation_id"])
    assert len(evaluations) == 3  # as many as there are orders


def test_the_run_says_the_order_and_warns_where_it_is_only_assumed(program: Any, mine: Path, network: Any) -> None:
    torch.save(network.state_dict(), mine / "bare.pth")
    words = ("--models", f"timm/{ARCHITECTURE},bare.pth", "--eval-settings", "mine", "--executor", "inline")
    said = program("eval.py", *words).stdout
    assert "classes in the setting's order (assumed)" in said
    assert "Class order?" in said
    assert "1, 10, 2, 20" in said
    assert "--class-order natural" in said
    told_now = program("eval.py", *words, "--class-order", "natural").stdout
    assert "classes in timm's natural order of their names (from --class-order)" in told_now
    assert "Class order?" not in told_now


def test_names_that_are_not_the_settings_are_said_and_not_used(program: Any, mine: Path, network: Any) -> None:
    reasons = {
        "folder/mine has '1', '10', '2'": {"class_to_idx": order(("a", "b", "c", "d", "e", "f"))},
        "names 5 classes, but the network has 6 outputs": {"class_to_idx": order(CLASSES[:5])},
        "classes have the name 'a', the outputs 0 and 1": {"classes": ["a", "a", "b", "c", "d", "e"]},
    }
    for number, entries in enumerate(reasons.values()):
        torch.save({"state_dict": network.state_dict(), **entries}, mine / f"w{number}.pth")
    models = ("--models", *(f"timm/{ARCHITECTURE},w{number}.pth" for number in range(3)))
    _, found = told(program, *models)
    for outcome, reason in zip(found["outcomes"], reasons, strict=True):
        assert outcome["status"] == "failed"
        assert reason in outcome["reason"]
    losses, _ = told(program, *models, "--class-order", "sorted")
    expected = by_timm(network, mine / "mine", order(sorted(CLASSES)))
    assert losses == {f"w{number}": pytest.approx(expected, rel=1e-4) for number in range(3)}


def test_an_unknown_order_is_a_mistake(program: Any, mine: Path) -> None:
    done = program(
        "eval.py",
        *("--models", "resnet18,w.pth", "--eval-settings", "mine", "--class-order", "alphabetical"),
        code=None,
    )
    assert done.returncode != 0
    assert "--class-order is natural, sorted or setting, or a file" in done.stderr
