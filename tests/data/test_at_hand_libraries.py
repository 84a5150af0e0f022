"""Data of the packages datasets, pyarrow and webdataset at hand; each gives the numbers of plain torch."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from at_hand_world import CLASSES, COUNT, RIGHT, evaluated, make_pictures, right_of

from testbed.errors import DataError, MissingExtraError

datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")
ALL = (RIGHT, COUNT)
NAMES = [f"class {number}" for number in range(CLASSES)]


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    datasets.disable_progress_bars()
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")
    return make_pictures(tmp_path / "in" / "pictures")


def rows_of(pictures, inside=False, label=None):
    """A datasets.Dataset of paths, or with the bytes inside."""
    features = datasets.Features({"image": datasets.Image(), "label": label or datasets.ClassLabel(names=NAMES)})
    images = [{"bytes": path.read_bytes(), "path": None} if inside else str(path) for path in pictures.paths]
    return datasets.Dataset.from_dict({"image": images, "label": pictures.labels}, features=features)


def test_datasets(pictures, tmp_path):
    rows = rows_of(pictures)
    text = rows_of(pictures).cast_column("label", datasets.Value("string"))
    forms = {
        "paths": rows,
        "bytes": rows_of(pictures, inside=True),
        "numbers": rows_of(pictures, label=datasets.Value("int64")),
        "texts": text,
        "torch": rows.with_format("torch"),
        "transformed": rows.with_transform(lambda batch: {"x": batch["label"]}),
        "decoded": [(row["image"], row["label"]) for row in rows],
        "mapped": rows.map(lambda row: {"image": row["image"], "more": 1}).shuffle(seed=1).sort("label"),
    }
    found = evaluated(forms, tmp_path)
    assert found.failed.empty, found.failed.reason.tolist()
    best = found.frame.query("metric == 'top1' and slice == 'overall'")
    assert [(round(row.value * row.n), row.n) for row in best.itertuples()] == [ALL] * len(forms)


def test_names_of_classes_are_kept_and_numbers_are_not_renumbered(pictures, tmp_path):
    from testbed.registry import registry

    found = evaluated({"named": rows_of(pictures)}, tmp_path)
    opened = registry.get_eval_setting(found.frame.eval_setting.iloc[0]).dataset.open()
    assert (opened.class_names, opened.targets) == (NAMES, pictures.labels)


def test_what_is_nearly_one_says_what_to_pass(pictures, tmp_path):
    rows = rows_of(pictures)
    with pytest.raises(DataError, match="a DatasetDict has the splits train, test; pass one of them"):
        evaluated(datasets.DatasetDict({"train": rows, "test": rows}), tmp_path)
    with pytest.raises(DataError, match=r"IterableDataset .* positions"):
        evaluated(rows.to_iterable_dataset(), tmp_path)
    with pytest.raises(DataError, match="which one has the images"):
        evaluated(rows.remove_columns("image"), tmp_path)


def test_parquet(pictures, tmp_path):
    folder = tmp_path / "in"
    rows_of(pictures).to_parquet(folder / "paths.parquet")
    rows_of(pictures, inside=True).to_parquet(folder / "bytes.parquet")
    pd.DataFrame(pictures.rows, columns=["path", "label"]).to_parquet(folder / "frame.parquet")
    content = [path.read_bytes() for path in pictures.paths]
    pd.DataFrame({"image": content, "y": list(map(str, pictures.labels))}).to_parquet(folder / "binary.parquet")
    for name in ("paths", "bytes", "frame", "binary"):
        assert right_of(folder / f"{name}.parquet", tmp_path) == ALL
    from testbed.registry import registry

    assert registry.get_eval_setting("file/bytes.parquet").name == "file/bytes.parquet"


def test_damaged_parquet_and_a_missing_extra(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no more")
    from testbed.data.at_hand.files import open_file

    with pytest.raises(DataError, match=r"x.parquet cannot be read"):
        open_file(str(tmp_path / "x.parquet"), "x")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[parquet\]'"):
        open_file(str(tmp_path / "x.parquet"), "x")


def test_shards_by_webdataset_itself(pictures, tmp_path):
    webdataset = pytest.importorskip("webdataset")
    (tmp_path / "in" / "shards").mkdir()
    pattern = str(tmp_path / "in" / "shards" / "x-%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=7, verbose=0) as writer:
        for place, (path, label) in enumerate(pictures.rows):
            writer.write({"__key__": f"s{place:04d}", "png": Path(path).read_bytes(), "cls": label})
    with webdataset.TarWriter(str(tmp_path / "in" / "json.tar.gz")) as writer:
        for place, (path, label) in enumerate(pictures.rows):
            image = Path(path).read_bytes()
            writer.write({"__key__": f"a/{place}", "input.png": image, "json": {"label": label}, "txt": "words"})
    assert right_of(tmp_path / "in" / "shards" / "x-{000000..000002}.tar", tmp_path) == ALL
    assert right_of(tmp_path / "in" / "json.tar.gz", tmp_path) == ALL
