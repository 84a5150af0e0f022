"""``testbed explain``: which protocol gives a published number. The numbers are computed without testbed."""

from __future__ import annotations

import json
import shlex
import shutil
from functools import partial
from pathlib import Path

import colour_world as world
import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms
from torchvision.transforms import InterpolationMode


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("colours")
    world.make_images(folder)
    return folder


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return tmp_path_factory.mktemp("stores")


@pytest.fixture
def testbed(program, pictures, stores, tmp_path):
    """A function that runs ``testbed`` with the plug-in, on a store with both models' outputs."""
    plugin = str(Path(world.__file__))
    kept, own = stores / "testbed.db", tmp_path / "testbed.db"

    def run(*words, code=0):
        plugged = ["--plugin", plugin] if words[0] in ("run", "explain") else []
        return program("testbed", *map(str, words), *plugged, code=code, COLOUR_WORLD=str(pictures))

    if not kept.exists():
        run("run", "colour-clip", "colour-net", "--on", "colours", "colours.image_embeddings")
        shutil.copy(own, kept)
    shutil.copy(kept, own)
    return run


@pytest.fixture
def explain(testbed):
    return partial(testbed, "explain")


def images(pictures):
    paths = sorted(pictures.rglob("*.png"), key=lambda path: (path.parent.name, path.name))
    return [Image.open(path).convert("RGB") for path in paths], np.asarray([int(path.parent.name) for path in paths])


def inputs(pictures, mode=InterpolationMode.BILINEAR):
    steps = [transforms.Resize(24, interpolation=mode), transforms.CenterCrop(20), transforms.ToTensor()]
    whole = transforms.Compose([*steps, transforms.Normalize(world.MEAN, world.STD)])
    found, labels = images(pictures)
    return torch.stack([whole(image) for image in found]), labels


def accuracy(pictures, templates=world.TEMPLATES, names=world.NAMES, mode=InterpolationMode.BILINEAR):
    """CLIP's zero-shot accuracy in percent, by numpy."""
    return 100 * accuracy_of(pictures, [[each.replace("{c}", name) for each in templates] for name in names], mode)


def accuracy_of(pictures, prompts, mode=InterpolationMode.BILINEAR):
    """The share of right answers with some prompts for each class."""
    batch, labels = inputs(pictures, mode)
    embedded = world.Tower().encode_image(batch).detach().double().numpy()
    embedded /= np.linalg.norm(embedded, axis=1, keepdims=True)
    head = []
    for texts in prompts:
        vectors = np.stack([world.text_vector(each) for each in texts])
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        head.append(vectors.mean(axis=0) / np.linalg.norm(vectors.mean(axis=0)))
    return np.mean(np.argmax(embedded @ np.stack(head).T, axis=1) == labels)


def test_other_prompts_are_found_from_stored_embeddings_and_can_be_evaluated(testbed, pictures):
    published = accuracy(pictures, ["a photo of the {c}."])
    assert abs(published - accuracy(pictures)) > 1
    told = testbed("explain", "colour-clip", "colours", "--published", f"{published:.2f}", "--samples", 0).stdout
    rows = [line for line in told.splitlines() if "gives it" in line]
    assert f"{published:5.2f}   exact  gives it  templates: one prompt, 'a photo of the {{c}}.'" in rows
    assert len(rows) <= 3  # others that happen to give it on 600 images
    assert f"top1: published {published:.2f} (as given); stored {accuracy(pictures):.2f} on 600 samples" in told
    assert "Read 0 images, ran the network on 0 images (0.0 % of an evaluation)" in told
    command = shlex.split(told.splitlines()[-1])
    assert command[:4] == ["testbed", "run", "colour-clip", "--on"]
    assert f"{published:.2f}" in testbed(*command[1:4], "colours~templates=one-prompt-a-photo-of-the-c").stdout


def test_prompts_of_a_file_are_found_and_can_be_evaluated(testbed, pictures, tmp_path):
    sentences = {name: [f"{name} {10 * place}", f"a {place} of {name}"] for place, name in enumerate(world.NAMES)}
    file = tmp_path / "cupl.json"
    file.write_text(json.dumps(sentences))
    published = 100 * accuracy_of(pictures, list(sentences.values()))
    given = ["--published", f"{published:.2f}", "--samples", 0, "--json"]
    told = json.loads(testbed("explain", "colour-clip", "colours", *given, "--prompts", file).stdout)
    (found,) = [each for each in told["variants"] if each["variants"][0]["axis"] == "prompts of a file"]
    assert (found["verdict"], found["variants"][0]["name"]) == ("gives it", "cupl.json")
    assert f"{published:.2f}" in testbed(*shlex.split(found["command"])[1:]).stdout
    told = json.loads(testbed("explain", "colour-clip", "colours", *given).stdout)
    assert told["not_tried"]["prompts of a file"] == "no file was given (--prompts FILE)"


def test_other_preprocessing_is_found_from_some_images(explain, pictures):
    published = accuracy(pictures, mode=InterpolationMode.NEAREST)
    words = ["colour-clip", "colours", "--published", f"{published:.2f}", "--samples", "100000", "--json"]
    told = json.loads(explain(*words).stdout)
    verdicts = {each["variants"][0]["name"]: each["verdict"] for each in told["variants"]}
    assert verdicts["nearest"] == "gives it"
    assert told["explained"]
    assert "interpolation: nearest" in told["sentence"]
    nearest = next(each for each in told["variants"] if each["variants"][0]["name"] == "nearest")
    assert nearest["values"]["top1"]["value"] == pytest.approx(published / 100, abs=1e-9)  # every image was run
    assert nearest["command"] == "testbed run 'colour-clip~interpolation=nearest' --on colours"
    assert 0 < told["images_read"] <= told["forward_passes"]


def test_the_order_of_classes_is_found_from_stored_logits(explain, pictures):
    batch, labels = inputs(pictures)
    guesses = world.Classifier()(batch).argmax(dim=1).numpy()
    by_name = sorted(range(6), key=world.NAMES.__getitem__)
    published = 100 * np.mean(guesses == np.asarray([by_name.index(label) for label in labels]))
    shifted = 100 * np.mean(guesses == labels + 1)
    for value, name in ((shifted, "labels one too high (1 for the first class)"), (published, None)):
        told = json.loads(
            explain("colour-net", "colours", "--published", f"{value:.2f}", "--samples", 0, "--json").stdout
        )
        giving = [each["variants"][0]["name"] for each in told["variants"] if each["verdict"] == "gives it"]
        assert giving == ([name] if name else giving)
    assert told["images_read"] == 0
    assert told["not_tried"]["templates"] == "no class prompts are involved"


def test_what_stored_outputs_give_runs_no_image_and_what_they_cannot_give_says_why(program, pictures, tmp_path):
    """Of the images one cannot be read."""
    shutil.copytree(pictures, tmp_path / "broken")
    damaged, *_ = sorted((tmp_path / "broken").rglob("*.png"))
    damaged.write_bytes(damaged.read_bytes()[:60])
    run = partial(program, COLOUR_WORLD=str(tmp_path / "broken"))
    given = ("colour-net", "colours", "--plugin", world.__file__)
    run("testbed", "run", given[0], "--on", *given[1:])
    table = json.loads(run("testbed", "show", *given[:2], "--json").stdout)
    stored = {each["metric"]: 100 * each["value"] for each in table if each["slice"] == "overall"}
    for metric, value in (("top1", 100 - stored["top1"]), ("ece", stored["ece"] + 1)):
        told = json.loads(run("testbed", "explain", *given, "--published", f"{metric}={value:.4f}", "--json").stdout)
        assert told["forward_passes"] == 0, metric
    assert told["not_tried"]["interpolation"] == "ece is not estimated from some of the images"


def test_a_number_that_is_right_and_a_number_that_nothing_gives(explain, pictures):
    same = explain("colour-clip", "colours", "--published", f"{accuracy(pictures):.2f}").stdout
    assert same.endswith("The stored value is the published one; there is nothing to explain.\n")
    told = json.loads(explain("colour-clip", "colours", "--published", "99.97", "--samples", 0, "--json").stdout)
    assert not told["explained"]
    assert told["sentence"].startswith("Unexplained: ")


def test_published_values_come_from_the_store(explain, testbed, tmp_path):
    assert "no published accuracy of colour-clip on colours" in explain("colour-clip", "colours", code=1).stderr
    for name, value in (("blog", "71.5"), ("paper", "0.725")):
        file = tmp_path / f"{name}.csv"
        file.write_text(f"net,acc\ncolour-clip,{value}\n")
        unit = "percent" if name == "blog" else "fraction"
        testbed("published", "add", file, "--map", "model=net", "setting=colours", "value=acc", f"unit={unit}")
    told = explain("colour-clip", "colours", code=1).stderr
    assert "several sources have a value (blog: top1 71.5, paper: top1 0.725); choose one with --source" in told
    told = json.loads(explain("colour-clip", "colours", "--source", "paper", "--samples", 0, "--json").stdout)
    assert told["published"]["top1"]["value"] == 0.725
    assert told["published"]["top1"]["rounding"] == 0.0005
    assert told["source"] == "paper, paper.csv"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--published", "0.76"], "--published is in percent: write 76 for the fraction 0.76, or 0.76%"),
        (["--published", "seventy"], "--published expects a number in percent, such as 76.13 or top5=92.86"),
        (["--published", "176"], "from 0 to 100"),
        (["--published", "nll=1.5"], "'nll' of colour-clip on colours is neither a share of right answers"),
        (["--published", "70", "--source", "x"], "give either --published or --source"),
    ],
)
def test_what_cannot_be_explained_is_refused(explain, words, why):
    told = explain("colour-clip", "colours", *words, code=1).stderr
    assert why in told
    assert len([line for line in told.splitlines() if not line.startswith("note:")]) == 1


def test_a_cell_that_was_not_evaluated_is_refused(explain):
    told = explain("colour-clip", "digits", "--published", "70", code=1).stderr
    assert told.startswith("Error: unknown eval setting 'digits' in the store")


def test_a_model_is_asked_again_only_with_leave(program):
    program("testbed", "run", "digits-reader", "--on", "digits-vqa.choice", "--limit", "40")
    words = ["testbed", "explain", "digits-reader", "digits-vqa.choice", "--published", "accuracy=12.34", "--json"]
    told = json.loads(program(*words).stdout)
    assert told["requests"] == 0
    assert told["not_tried"]["hint"] == "the model is asked again only with --ask: at most 560 requests"
    done = program(*words, "--ask", "--samples", "150")
    told = json.loads(done.stdout)
    assert "asking digits-reader in 10 other ways: at most 150 requests" in done.stderr
    assert 0 < told["requests"] <= 150
    (row,) = [each for each in told["variants"] if each["variants"][0]["name"] == "after the text"]
    assert row["command"] == "testbed run digits-reader --on 'digits-vqa.choice~pictures=after-the-text'"
