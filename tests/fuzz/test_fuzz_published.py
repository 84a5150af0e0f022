"""Files of published values, damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fuzzing import damaged_json, damaged_table, fuzzed, robust, trial
from hypothesis import given
from hypothesis import strategies as st

from testbed.claims.document import read_document
from testbed.db.store import Store
from testbed.extensions.published.adding import add
from testbed.extensions.published.mapped import read_map
from testbed.registry.library_names import library_names

TIMM = ("model img_size top1 top5 crop_pct interpolation".split(), "resnet18 224 69.7 89.0 0.9 bicubic".split())
OPEN_CLIP = (
    ("name", "pretrained", "FLOPs (B)", "MNIST", "Flickr text retr. R@1"),
    ("ViT-B-32", "openai", "1", "0.5", ""),
)
MANY = (("model", "version", "avg", "crossmodal3600 image_retrieval_recall@1 de"), ("ViT-B-32", "openai", "0.5", "0.4"))
MTEB = ("model task split subset accuracy path".split(), "a/b DTDZeroShot test default 0.25 x".split())
CORRUPTIONS = (("", "fog", "fog"), ("", "1", "2"), ("Net", "0.5", "0.25"))
CELLS = ("100.0001", "nan", "1e400", "-0", "٣", "a+b", "x" * 600, "Flickr image retr. R@" + "9" * 5000)
PROBE = {"model": "ViT-B-32", "pretrained": "openai", "dataset": "mnist", "fewshot_k": 10, "epochs": 10, "seed": 0}
PROBE |= {"lr": 0.1, "bs": 256, "lp_acc1": 0.5, "lp_acc5": None}
DATACOMP = {"key": "mnist", "dataset": "MNIST", "metrics": {"acc1": 0.5, "acc_region:0": 0.5, "count_region:0": 7.0}}
ENTRY = {"dataset": "imagenet", "clean_acc": "70", "architecture": "x", "eps": "4/255", "autoattack_acc": "30.5"}
SCORES = [{"accuracy": 0.5, "main_score": 0.5, "hf_subset": "de", "languages": ["deu-Latn"], "mteb_version": "2"}]
RESULT = {"task_name": "DTDZeroShot", "mteb_version": None, "dataset_revision": "1", "scores": {"test": SCORES}}

tables = st.one_of(*(damaged_table(*each, cells=CELLS) for each in (TIMM, OPEN_CLIP, MANY, MTEB, CORRUPTIONS)))
records = damaged_json([PROBE], DATACOMP, ENTRY, RESULT)


@pytest.fixture(autouse=True, scope="module")
def _names_are_known() -> None:
    """Libraries are asked for their names in processes of their own, once."""
    for library in ("torchvision", "timm", "open_clip_torch"):
        library_names(library)


@fuzzed()
@given(content=st.one_of(tables, records), suffix=st.sampled_from(("csv", "tsv", "json", "jsonl")))
def test_published_files(content: bytes, suffix: str, tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder:
        path = folder / "results" / "imagenet" / "Linf" / f"results-imagenet.{suffix}"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        with Store.open(f"sqlite:///{shutil.copy(sqlite_template, folder / 'store.db')}", "write") as store:
            document = read_document(path)
            added = add(store, [document], "theirs")
            assert added.new == len(added.claims) == len(store.claims.find())
            assert add(store, [document], "theirs").new == 0


@fuzzed()
@given(content=damaged_table(*MTEB, cells=CELLS), words=st.lists(st.sampled_from(("model=model", "setting=task", "x"))))
def test_maps(content: bytes, words: list[str], tmp_path: Path, sqlite_template: Path) -> None:
    with trial(tmp_path, sqlite_template.parent) as folder:
        (folder / "t.csv").write_bytes(content)
        with robust():
            read_map(words)
        columns = read_map(("model=model", "setting=task", "value=accuracy", "n=path"))
        with Store.open(f"sqlite:///{shutil.copy(sqlite_template, folder / 'store.db')}", "write") as store:
            add(store, [read_document(folder / "t.csv")], "theirs", columns)
