"""Short names of models in files: given by themselves or chosen, and taken by every command afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from own_models import network, pictures
from timm import create_model

from testbed.db.store import Store

pytestmark = pytest.mark.usefixtures("shared_cache")

HOW = ("--on", "mine", "--executor", "inline", "--workers", "0")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's working folder with pictures and two checkpoints of one stem."""
    pictures(tmp_path / "mine")
    for seed, folder in enumerate(("a", "b")):
        torch.manual_seed(seed)
        (tmp_path / "runs" / folder).mkdir(parents=True)
        torch.save(create_model("test_resnet", num_classes=3).state_dict(), tmp_path / "runs" / folder / "best.pth")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(folder: Path) -> list[str]:
    with Store.open(str(folder / "testbed.db")) as store:
        return [each.name for each in store.names.all("model") if each.evaluations]


def evaluations(folder: Path) -> int:
    with Store.open(str(folder / "testbed.db")) as store:
        return len(store.evaluations.find())


A, B = "timm/test_resnet,runs/a/best.pth", "timm/test_resnet,runs/b/best.pth"


def test_a_checkpoint_is_named_by_its_stem_and_found_by_it(ask, here):
    assert "test_resnet," not in ask("run", A, *HOW).stdout
    assert stored(here) == ["best"]
    again = ask("run", "best", *HOW)
    assert "stored" in again.stdout
    assert evaluations(here) == 1
    ask("run", "best", "--on", "folder/mine+imagenet-c.contrast.1", "--data-root", ".", "--executor", "inline")
    assert evaluations(here) == 2
    assert ask("show", A, "folder/mine").stdout == ask("show", "best", "folder/mine").stdout
    assert "2 current" in ask("rescore").stdout


def test_two_files_of_one_stem_get_their_folders_names(ask, here):
    both = ask("run", A, B, *HOW)
    assert stored(here) == ["a/best", "b/best"]
    assert "is named a/best" in both.stderr
    assert "b/best" in ask("compare", "a/best", "b/best", "--on", "folder/mine").stdout


def test_a_second_file_of_a_stem_is_told_apart_from_the_first(ask, here):
    ask("run", A, *HOW)
    second = ask("run", B, *HOW)
    assert f"{here}/runs/b/best.pth is named b/best; best is timm/test_resnet,{here}/runs/a/best.pth" in second.stderr
    ask("run", A, B, *HOW)
    assert stored(here) == ["b/best", "best"]


def test_a_name_that_the_user_chose(ask, here):
    ask("run", A, *HOW, "--as", "lite0")
    ask("run", "lite0", *HOW)
    ask("run", A, *HOW)
    assert stored(here) == ["lite0"]
    changed = ask("run", A, *HOW, "--as", "renamed")
    assert "lite0 is now named renamed, also what is stored of it" in changed.stderr
    assert stored(here) == ["renamed"]
    assert evaluations(here) == 1


@pytest.mark.parametrize(
    ("models", "name", "said"),
    [
        ((A, B), "x", "is for one model in a file; there are 2 here"),
        (("digits-logreg",), "x", "is for one model in a file; there are 0 here"),
        ((A,), "resnet50", "the name 'resnet50' is another model's"),
        ((A,), "two words", "contains white space"),
    ],
)
def test_names_that_cannot_be_chosen(refusal, here, models, name, said):
    assert said in refusal("run", *models, *HOW, "--as", name)


def test_a_renamed_model_is_found_by_its_new_name(ask, here):
    ask("run", A, *HOW)
    assert "testbed run short finds its file" in ask("store", "rename", "model", "best", "short").stdout
    ask("run", "short", *HOW)
    ask("run", A, *HOW)
    assert stored(here) == ["short"]
    assert evaluations(here) == 1


def test_a_long_name_from_before_there_were_short_ones(ask, here):
    ask("run", A, *HOW)
    long = f"timm/test_resnet,{here}/runs/a/best.pth"
    with Store.open(str(here / "testbed.db"), "write") as store, store.database.engine.begin() as connection:
        from sqlalchemy import text

        connection.execute(text("UPDATE evaluations SET environment = json_remove(environment, '$.reference')"))
        connection.execute(text("UPDATE models SET name = :name"), {"name": long})
    ask("run", A, *HOW)
    assert stored(here) == [long]
    ask("store", "rename", "model", long, "lite0")
    ask("run", "lite0", *HOW)
    assert stored(here) == ["lite0"]
    assert evaluations(here) == 1


def test_a_file_that_has_moved_keeps_its_name(ask, here):
    ask("run", A, *HOW)
    (here / "elsewhere").mkdir()
    shutil.move(here / "runs/a/best.pth", here / "elsewhere/best.pth")
    assert "best.pth do not exist" in ask("run", "best", *HOW, "--override", code=1).stdout
    moved = ask("run", "timm/test_resnet,elsewhere/best.pth", *HOW)
    assert "best: the file has moved from" in moved.stderr
    assert stored(here) == ["best"]


def test_a_name_keeps_the_options_that_it_was_made_with(ask, here):
    torch.export.save(torch.export.export(network(), (torch.zeros(2, 3, 32, 32),)), here / "net.pt2")
    ask("run", "net.pt2", *HOW, "--mean", "0.5", "0.5", "0.5", "--std", "1", "1", "1")
    ask("run", "net", *HOW)
    assert evaluations(here) == 1
    ask("run", "net", *HOW, "--mean", "0.1", "0.1", "0.1")
    assert evaluations(here) == 2
    assert "mean 0.1 0.1 0.1, std 1 1 1" in ask("run", "net", *HOW).stdout
    assert stored(here) == ["net"]
    assert evaluations(here) == 2


def test_a_stem_that_is_the_name_of_a_model_is_made_unique(ask, here):
    shutil.copy(here / "runs/a/best.pth", here / "runs/a/resnet50.pth")
    ask("run", "timm/test_resnet,runs/a/resnet50.pth", *HOW)
    assert stored(here) == ["a/resnet50"]
