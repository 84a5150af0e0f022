"""`testbed explain` for a checkpoint that was evaluated with options: the numbers are made by torch and timm alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms import functional as of

CLASSES, EACH, RESIZE, CROP = 12, 12, 40, 32
MEAN, STD = (0.3, 0.5, 0.4), (0.3, 0.2, 0.25)
EVERY = ("--thorough", "--samples", 20_000)  # each variant on each image: whatever the processor, all is decided
GIVEN = ("--image-size", RESIZE, CROP, "--mean", *MEAN, "--std", *STD, "--interpolation", "bicubic")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Coarse coloured patterns in folders 0 … 11, and two checkpoints whose outputs are in the order 0, 1, 2, …"""
    folder = tmp_path_factory.mktemp("checkpoint")
    random = np.random.default_rng(1)
    patterns = random.integers(0, 256, (CLASSES, 6, 6, 3))
    for number, pattern in enumerate(patterns):
        (folder / "data" / "own" / str(number)).mkdir(parents=True)
        for place in range(EACH):
            noisy = np.clip(pattern + random.normal(0, 90, pattern.shape), 0, 255).astype(np.uint8)
            size = int(random.integers(44, 80)), int(random.integers(44, 80))
            Image.fromarray(noisy).resize(size, Image.BICUBIC).save(
                folder / "data" / "own" / str(number) / f"{place}.png"
            )
    pictures, targets = images(folder)
    for seed in (0, 1):
        torch.save(trained(inputs(pictures), torch.tensor(targets), seed).state_dict(), folder / f"epoch_{seed}.pth")
    return folder


def images(folder):
    files = sorted((folder / "data" / "own").glob("*/*.png"))
    return [Image.open(file).convert("RGB") for file in files], np.array([int(file.parent.name) for file in files])


def inputs(pictures, resize=RESIZE, mode=Mode.BICUBIC, mean=MEAN, std=STD):
    made = [of.to_tensor(of.center_crop(of.resize(picture, resize, mode), CROP)) for picture in pictures]
    return of.normalize(torch.stack(made), mean, std)


def trained(x, y, seed):
    torch.manual_seed(seed)
    network = timm.create_model("test_resnet", num_classes=CLASSES)
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    for _ in range(12):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()
    return network.eval()


def accuracy(folder, x, targets, epoch=0):
    network = timm.create_model("test_resnet", num_classes=CLASSES).eval()
    network.load_state_dict(torch.load(folder / f"epoch_{epoch}.pth", weights_only=True))
    with torch.no_grad():
        return 100 * float(np.mean(network(x).argmax(dim=1).numpy() == targets))


@pytest.fixture
def explain(program, world):
    """Evaluates the checkpoints, and explains a number of the first."""
    names = [f"timm/test_resnet,{world / f'epoch_{each}.pth'}" for each in (0, 1)]
    words = ("run", *names, "--on", "folder/own", "--data-root", world / "data", *GIVEN, "--class-order", "natural")
    program("testbed", *map(str, words))

    def ask(value, *more):
        told = ("explain", "epoch_0", "folder/own", "--data-root", world / "data", "--published", f"{value:.4f}", *more)
        return program("testbed", *map(str, told))

    return ask


def verdicts(done):
    found = json.loads(done.stdout)
    return {
        f"{each['variants'][0]['axis']}: {each['variants'][0]['name']}": each["verdict"] for each in found["variants"]
    }


def test_what_differs_is_found_with_the_preprocessing_that_was_given(explain, world):
    """One of these differences; that of the interpolation is found for a soup, below."""
    pictures, targets = images(world)
    stored = accuracy(world, inputs(pictures), targets)
    protocols = {
        "mean and standard deviation: 0.5 and 0.5": accuracy(
            world, inputs(pictures, mean=(0.5,) * 3, std=(0.5,) * 3), targets
        ),
        "weights: epoch_1": accuracy(world, inputs(pictures), targets, epoch=1),
    }
    asked = {name: value for name, value in protocols.items() if abs(value - stored) > 0.1}
    assert asked, (stored, protocols)
    name, value = next(iter(asked.items()))
    found = verdicts(explain(value, *EVERY, "--json"))
    assert found.get(name) == "gives it", (name, value, stored, found)


def test_a_model_that_gives_other_outputs_now_explains_nothing(explain, world, program):
    """The file was written over since: other protocols of it say nothing about the stored value."""
    pictures, targets = images(world)
    explain(accuracy(world, inputs(pictures, mode=Mode.NEAREST), targets))  # keeps outputs, and soon finds it
    kept = (world / "epoch_0.pth").read_bytes()
    try:
        (world / "epoch_0.pth").write_bytes((world / "epoch_1.pth").read_bytes())
        told = explain(50, *EVERY)
        assert "the stored outputs cannot be reproduced" in " ".join(told.stdout.split())
        assert not any(name.startswith("interpolation") for name in verdicts(explain(50, *EVERY, "--json")))
    finally:
        (world / "epoch_0.pth").write_bytes(kept)


def networks(folder):
    for epoch in (0, 1):
        network = timm.create_model("test_resnet", num_classes=CLASSES).eval()
        network.load_state_dict(torch.load(folder / f"epoch_{epoch}.pth", weights_only=True))
        yield network


def made_of_both(how, folder):
    members = "+".join(f"timm/test_resnet,{folder / f'epoch_{each}.pth'}" for each in (0, 1))
    return f"{how}:{members}"


@pytest.mark.parametrize("how", ["ensemble", "soup"])
def test_models_made_of_checkpoints_take_their_members_options(how, program, world):
    pictures, targets = images(world)
    first, second = networks(world)
    x = inputs(pictures)
    with torch.no_grad():
        if how == "soup":
            mean = {k: (v + second.state_dict()[k]) / 2 for k, v in first.state_dict().items() if v.is_floating_point()}
            first.load_state_dict(mean, strict=False)
            made = first(x)
        else:
            made = sum(network(x).softmax(dim=1) for network in (first, second))
    expected = float(np.mean(made.argmax(dim=1).numpy() == targets))
    name, data = made_of_both(how, world), ("--data-root", world / "data")
    program("testbed", *map(str, ("run", name, "--on", "folder/own", *data, *GIVEN, "--class-order", "natural")))
    shown = json.loads(program("testbed", "show", name, "folder/own", "--json").stdout)
    assert next(each["value"] for each in shown if each["metric"] == "top1") == pytest.approx(expected, abs=1e-9)


def test_a_soup_of_checkpoints_is_explained_with_their_options(program, world):
    pictures, targets = images(world)
    network = next(networks(world))
    state = network.state_dict()
    for name, factor in (("a.pth", 0.98), ("b.pth", 1.02)):  # around the first one, which is their mean
        torch.save({k: v * factor if v.is_floating_point() else v for k, v in state.items()}, world / name)
    with torch.no_grad():
        made = network(inputs(pictures, mode=Mode.NEAREST)).argmax(dim=1).numpy()
    name = f"soup:timm/test_resnet,{world / 'a.pth'}+timm/test_resnet,{world / 'b.pth'}"
    data = ("--data-root", world / "data")
    program("testbed", *map(str, ("run", name, "--on", "folder/own", *data, *GIVEN, "--class-order", "natural")))
    published = f"{100 * float(np.mean(made == targets)):.4f}"
    words = ("explain", name, "folder/own", *data, "--published", published, *EVERY, "--json")
    assert verdicts(program("testbed", *map(str, words))).get("interpolation: nearest") == "gives it"


def test_options_that_would_not_reach_a_member_are_refused(program, world):
    data = ("--data-root", world / "data")
    of = f"timm/test_resnet,{world / 'epoch_0.pth'}"
    told = program(
        "testbed", *map(str, ("run", f"ensemble:{of}+resnet18", "--on", "folder/own", *data, *GIVEN)), code=2
    )
    assert "resnet18 is not such a model" in told.stderr
    program("testbed", *map(str, ("run", of, "--on", "folder/own", *data, *GIVEN, "--as", "mine")))
    other = f"timm/test_resnet,{world / 'epoch_1.pth'}"
    told = program("testbed", *map(str, ("run", f"soup:mine+{other}", "--on", "folder/own", *data, *GIVEN)), code=2)
    assert "mine keeps the options that it was registered with" in told.stderr
