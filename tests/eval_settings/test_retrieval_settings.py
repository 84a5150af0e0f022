"""Retrieval and compositionality data sets as settings: names, languages, collections, folders."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from caption_world import COCO, coco_form, draw_all, write
from tables import cases

from testbed.errors import DataError, TestbedError
from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.registry import registry
from testbed.registry.select import select

RETRIEVAL = {
    "mscoco_captions": 1,
    "flickr8k": 2,
    "flickr30k": 2,
    "multilingual_mscoco_captions": 11,
    "xtd10": 11,
    "crossmodal3600": 36,
    "flickr30k-200": 201,
    "xtd200": 201,
}
SELECTION = {
    "sugar_crepe/add_att": 692,
    "sugar_crepe/swap_obj": 245,
    "winoground": 800,
    "aro/vg_relation": 23937,
    "aro/vg_attribution": 28748,
    "aro/coco_order": 25010,
    "aro/flickr30k_order": 5000,
    "valse/existence": 505,
    "valse/existence.all": 534,
    "mmvp_vlm": 270,
    "pairs/mine": None,
}


@pytest.mark.parametrize("name", RETRIEVAL)
def test_retrieval_in_every_language(name):
    registry.load()
    dataset = BENCHMARKS.dataset(name)
    assert (dataset.kind, len(dataset.languages)) == ("retrieval", RETRIEVAL[name])
    first = registry.get_eval_setting(name)
    assert (first.name, first.task, first.language, first.image_set) == (name, "retrieval", dataset.languages[0], name)
    if len(dataset.languages) > 1:
        other = registry.get_eval_setting(f"{name}.zeroshot.{dataset.languages[1]}")
        assert (other.language, other.image_set) == (dataset.languages[1], name)


@cases("name", SELECTION)
def test_selection(name):
    setting = registry.get_eval_setting(name)
    assert (setting.name, setting.task, setting.size) == (name, "selection", SELECTION[name])


def chosen(word: str) -> list[str]:
    return select(registry.eval_settings, registry.eval_setting_collections, [word])


def test_collections():
    registry.load()
    assert set(chosen("retrieval")) == {"mscoco_captions", "flickr8k", "flickr30k"}
    sizes = {name: len(chosen(name)) for name in ("sugar_crepe", "aro", "valse")}
    assert sizes == {"sugar_crepe": 7, "aro": 4, "valse": 11}
    together = chosen("compositionality")
    assert len(together) == len(set(together)) == 7 + 4 + 11 + 2


@pytest.mark.parametrize("name", [*RETRIEVAL, *SELECTION])
def test_opening_without_data_says_what_is_expected_where(name, tmp_path, monkeypatch):
    dataset = registry.get_eval_setting(name).dataset
    with pytest.raises(DataError, match=r"no data root is set; give --data-root .*docs/datasets.md"):
        dataset.open()
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    with pytest.raises(DataError, match=rf"data set '{name.removesuffix('.all')}': .*{tmp_path}"):
        dataset.open()


def test_data_are_read_below_the_data_root_and_travel(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    draw_all(tmp_path / "mscoco_captions" / "val2014", COCO)
    write(tmp_path / "mscoco_captions" / "coco_test_karpathy.json", coco_form())
    dataset = pickle.loads(pickle.dumps(registry.get_eval_setting("mscoco_captions").dataset))
    assert len(dataset.open()) == 3
    assert dataset.spec()["split"] == "test"
    write(tmp_path / "pairs" / "mine.json", [{"image": "x.jpg", "captions": ["a", "b"]}])
    draw_all(tmp_path / "pairs", ["x.jpg"])
    assert registry.get_eval_setting("pairs/mine").dataset.open().ids == ["x.jpg#0"]


def test_settings_that_read_different_captions_have_different_data_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    names = [*RETRIEVAL, *SELECTION, "flickr30k.zeroshot.zh", "flickr30k.val", "mscoco_captions.captions_val2017"]
    specs = [json.dumps(registry.get_eval_setting(name).dataset.spec(), sort_keys=True) for name in names]
    assert len(set(specs)) == len(names)


def test_names_of_one_s_own_data_stay_below_their_folder():
    for name in ("pairs/../val", "pairs/x/../../y"):
        with pytest.raises(TestbedError):
            registry.get_eval_setting(name).dataset.open()


def test_sizes_of_coco_are_those_of_the_split():
    sizes = {split: registry.get_eval_setting(f"mscoco_captions.{split}").size for split in ("val", "train")}
    assert sizes == {"val": 5000, "train": 82783}
    assert registry.get_eval_setting("mscoco_captions.captions_val2014").size == 40504


def test_reading_annotation_files_imports_neither_torch_nor_pillow(tmp_path):
    draw_all(tmp_path / "val2014", COCO)
    write(tmp_path / "coco_test_karpathy.json", coco_form())
    script = (
        "import sys; from pathlib import Path; from testbed.data.formats.caption_files import coco_captions;"
        f"assert len(coco_captions(Path({str(tmp_path)!r}), 'test')) == 3;"
        "print({'torch', 'PIL', 'numpy', 'pandas'} & set(sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert finished.stdout == "set()\n"
