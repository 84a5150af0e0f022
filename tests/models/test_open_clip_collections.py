"""CLIP benchmark's collections of models, its lists of models, and several checkpoints of one architecture."""

from __future__ import annotations

import subprocess
import sys

import open_clip
import pytest

from testbed.errors import UnknownNameError
from testbed.registry import registry
from testbed.registry.select import select


def chosen(*words):
    registry.load()
    return select(registry.models, registry.model_collections, words)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with checkpoints of two runs."""
    monkeypatch.chdir(tmp_path)
    for run, epochs in (("a", (1, 2, 10)), ("b", (2,))):
        (tmp_path / run).mkdir()
        for epoch in epochs:
            (tmp_path / run / f"epoch_{epoch}.pt").touch()
    (tmp_path / "a" / "log.txt").touch()
    (tmp_path / "a" / "folder.pt").mkdir()
    return tmp_path


def test_the_members_of_a_collection_are_published_pairs():
    assert chosen("openai") == ["ViT-B-32,openai", "ViT-B-16,openai", "ViT-L-14,openai", "ViT-L-14-336,openai"]
    for collection, size in (("openai", 4), ("openclip_base", 9), ("openclip_multilingual", 2)):
        members = chosen(collection)
        assert len(members) == size
        assert {tuple(name.split(",")) for name in members} <= set(open_clip.list_pretrained())


def test_the_collection_of_all_is_every_published_pair():
    assert sorted(chosen("openclip_all")) == sorted(",".join(pair) for pair in open_clip.list_pretrained())
    assert chosen("openclip_full") == chosen("openclip_all")


def test_the_collections_are_listed_without_open_clip(library_lists):
    script = (
        "import sys; from testbed.registry import registry; registry.load();"
        " members = [registry.model_collections.members(name) for name in ('openai', 'openclip_all')];"
        " assert all(members); assert not {'open_clip', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "content",
    [
        b"ViT-B-32,openai\nViT-B-16,laion400m_e32\n",
        b"ViT-B-32,openai\r\nViT-B-16,laion400m_e32\r\n",
        b"# two\n\nViT-B-32,openai  # the first\n   \nViT-B-16,laion400m_e32",
        b"\xef\xbb\xbfViT-B-32,openai\n\tViT-B-16,laion400m_e32\n\n",
    ],
    ids=["plain", "windows", "comments", "byte order mark"],
)
def test_a_list_of_models_has_a_pair_on_each_line(tmp_path, content):
    path = tmp_path / "models.txt"
    path.write_bytes(content)
    assert chosen(str(path)) == ["ViT-B-32,openai", "ViT-B-16,laion400m_e32"]


# Several checkpoints ----------------------------------------------------------------------------------------------


EPOCHS = [f"ViT-B-32,{{root}}/a/epoch_{epoch}.pt" for epoch in (1, 2, 10)]
OWN, OTHER = "ViT-B-32,{root}/run[1].pt", "ViT-B-32,{root}/b/epoch_2.pt"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["ViT-B-32,a/*.pt"], EPOCHS),  # a model for each file, in natural order
        (["ViT-B-32,a/epoch_*.pt"], EPOCHS),
        (["ViT-B-32,{root}/a/epoch_*"], EPOCHS),
        (["ViT-B-32,a/epoch_[0-9]*.pt"], EPOCHS),
        (["ViT-B-32,./a/*.pt"], EPOCHS),
        (["ViT-B-32,*.pt"], [OWN]),  # in the working folder
        (["ViT-B-32,run[1].pt"], [OWN]),  # brackets in the name of a file are letters
        (["ViT-B-32,*/epoch_2.pt", "ViT-B-32,a/epoch_2.pt"], [EPOCHS[1], OTHER]),
        (["ViT-B-32,**/*.pt"], [*EPOCHS, OTHER, OWN]),
        (["models.txt"], ["ViT-B-32,openai", EPOCHS[0], EPOCHS[2]]),
        (["densenet121,a/epoch_*0.pt"], ["densenet121,{root}/a/epoch_10.pt"]),
    ],
)
def test_a_pattern_of_checkpoints_is_a_model_for_each_file(folder, words, names):
    (folder / "run[1].pt").touch()
    (folder / "models.txt").write_text("ViT-B-32,openai\nViT-B-32,a/epoch_1*.pt\n")
    assert chosen(*(word.format(root=folder) for word in words)) == [name.format(root=folder) for name in names]


def test_a_pattern_without_a_file_is_one_line_that_says_where(folder):
    with pytest.raises(UnknownNameError) as caught:
        chosen("ViT-B-32,a/*.safetensors")
    assert f"{folder}/a/*.safetensors" in str(caught.value)
    assert "ViT-B-32,a/*.safetensors" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pattern_of_tags_stays_one(folder):
    assert "ViT-B-32,laion2b_s34b_b79k" in chosen("ViT-B-32,laion2b*")
    assert set(chosen("openai")) <= set(chosen("ViT-*,openai"))
    with pytest.raises(UnknownNameError, match="matches the pattern"):
        chosen("ViT-B-32,nothing*")
    with pytest.raises(UnknownNameError, match="matches the pattern"):
        chosen("ViT-*,a/*.pt")
