"""A model of CLIP's kind on an own folder of images: class names and templates follow from the folders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from testbed.data.language import folder_names
from testbed.data.language.folder_names import words_of
from testbed.inputs import Inputs, using
from testbed.registry import registry

PLUGIN = """
import torch
from testbed.models.model_base import DualEncoder, StandardTransform
from testbed.registry import registry

class Tower(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pixels = torch.nn.Parameter(torch.randn(3 * 64, 8, generator=torch.Generator().manual_seed(0)))

    def encode_image(self, images):
        return images.flatten(1) @ self.pixels

    forward = encode_image

    def encode_text(self, codes):
        return torch.sin(codes[:, :, None] * torch.arange(1, 9)).sum(dim=1)

def tokenize(texts):
    return torch.tensor([[ord(each) for each in text[:60].ljust(60)] for text in texts])

registry.add_model(DualEncoder("towers", StandardTransform(8, 8), lambda: (Tower(), tokenize), eval_batch_size=4))
"""


def plant(folder: Path, classes: Sequence[str]) -> None:
    random = np.random.default_rng(0)
    for each in classes:
        (folder / each).mkdir(parents=True)
        Image.fromarray(random.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(folder / each / "x.png")


def prompts_of(root: Path, name: str, **inputs: Any) -> list[list[str]]:
    with using(Inputs(data_root=str(root), **inputs)):
        setting = registry.get_eval_setting(f"folder/{name}")
        return setting.prompts.texts(setting.dataset.open().class_names)


def test_a_run_needs_no_file_and_says_what_it_took(program, tmp_path):
    (tmp_path / "towers.py").write_text(PLUGIN)
    plant(tmp_path / "pets", ["my_cat", "my_dog"])
    plant(tmp_path / "equal", ["polar bear", "polar_bear", "someone's dog"])
    run = ("run", "towers", "--plugin", "towers.py", "--on", "folder/pets", "folder/equal", "--data-root", ".")
    told = program("testbed", *run, "--executor", "inline").stdout
    flat = " ".join(told.split())
    assert "Prompts of folder/pets: the template 'a photo of a {c}.', with the class names my cat (my_cat)," in flat
    assert "--templates-file" in told
    assert "'polar bear' (polar bear, polar_bear) is the name of more than one class" in " ".join(told.split())
    (tmp_path / "pets/templates.txt").write_text("an x-ray of a {c}\n")
    told = " ".join(program("testbed", *run, "--executor", "inline").stdout.split())
    assert "Prompts of folder/pets: templates from a file, with the class names as they are, such as 'my_cat'" in told


def test_a_table_of_pictures_needs_no_file_either(tmp_path):
    plant(tmp_path / "pets", ["my_cat", "my_dog"])
    (tmp_path / "pets.csv").write_text("path,label\npets/my_cat/x.png,my_cat\npets/my_dog/x.png,my_dog\n")
    with using(Inputs(data_root=str(tmp_path))):
        setting = registry.get_eval_setting("file/pets.csv")
        found = setting.prompts.texts(setting.dataset.open().class_names)
        assert found == [["a photo of a my cat."], ["a photo of a my dog."]]
        assert "my cat (my_cat)" in setting.prompts.about()[0]


def test_names_and_templates_of_folders(tmp_path):
    plant(tmp_path / "pets", ["my_cat", "my_dog"])
    assert prompts_of(tmp_path, "pets") == [["a photo of a my cat."], ["a photo of a my dog."]]
    (tmp_path / "pets/classnames.txt").write_text("tabby\npoodle\n")
    assert prompts_of(tmp_path, "pets") == [["a photo of a tabby."], ["a photo of a poodle."]]


def test_prompts_that_come_from_files_stay_what_they_are(tmp_path):
    plant(tmp_path / "pets", ["my_cat", "my_dog"])
    (tmp_path / "pets/templates.txt").write_text("an x-ray of a {c}\n")
    assert prompts_of(tmp_path, "pets") == [["an x-ray of a my_cat"], ["an x-ray of a my_dog"]]
    (tmp_path / "t.json").write_text('{"pets": ["one {c}"]}')
    assert prompts_of(tmp_path, "pets", templates=str(tmp_path / "t.json")) == [["one my_cat"], ["one my_dog"]]


def test_prompts_by_class_are_found_by_the_names_in_words(tmp_path):
    plant(tmp_path / "pets", ["n01440764", "n03594945"])
    (tmp_path / "cupl.json").write_text('{"tench": ["a fish"], "jeep": ["a car", "a jeep"], "owl": ["a bird"]}')
    assert prompts_of(tmp_path, "pets", templates=str(tmp_path / "cupl.json")) == [["a fish"], ["a car", "a jeep"]]
    (tmp_path / "cupl.json").write_text('{"n01440764": ["A"], "n03594945": ["B"]}')
    assert prompts_of(tmp_path, "pets", templates=str(tmp_path / "cupl.json")) == [["A"], ["B"]]


@pytest.mark.parametrize(
    ("folders", "names", "imagenet"),
    [
        (["n01440764", "n03594945"], ["tench", "jeep"], True),
        (["n01614925-bald_eagle", "n02099601_x"], ["bald eagle", "Golden Retriever"], True),
        (["golden_retriever", "Bald-Eagle"], ["Golden Retriever", "bald eagle"], True),
        (["n01440764", "my_dog"], ["tench", "my dog"], False),
        (["001.Black_footed_Albatross", "002.Laysan_Albatross"], ["Black footed Albatross", "Laysan Albatross"], False),
        (["0", "1", "10"], ["0", "1", "10"], False),
        (["crane", "tench"], ["crane", "tench"], False),  # a bird or a machine
        (["jeep", "n03594945"], ["jeep", "jeep"], False),
        (["n04575824", "cat"], ["wheel and axle", "cat"], False),
    ],
)
def test_how_folders_are_read(folders, names, imagenet):
    found = words_of(tuple(folders))
    assert (list(found.names), found.imagenet) == (names, imagenet)
    assert len(found.templates()) == (80 if imagenet else 1)


def test_without_timms_tables_the_words_of_folders_remain(monkeypatch):
    from testbed.errors import DataError

    def missing() -> Any:
        raise DataError("timm is not installed")

    monkeypatch.setattr(folder_names, "imagenet", missing)
    assert words_of.__wrapped__(("golden_retriever", "n01440764")).names == ("golden retriever", "n01440764")
