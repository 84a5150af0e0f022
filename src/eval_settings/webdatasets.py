"""Data sets in CLIP benchmark's webdataset format, ``wds/…``: any folder below the data root, or a URL.

The folder declares its kind; class names and templates are the user's, else those that the folder holds.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from testbed.data.language.prompts import languages_beside
from testbed.data.webdataset.folder import PREFIX, WebDatasetFolder, local_copy
from testbed.data.webdataset.format import read_metadata, splits
from testbed.eval_settings.benchmark_families.benchmark import add_open_benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.clip_benchmark import Prompts, declare

DEFAULT_SPLIT = "test"
REMOTE_SPLITS = ("test", "train", "val", "valid", "trainval")  # a web server does not list its files


def webdataset_benchmark(name: str) -> BenchmarkDataset:
    """The data set of a name, as its folder describes it; of a URL, the small files are fetched.

    Args:
        name: Such as ``wds/vtab/cifar10``.

    Raises:
        DataError: If it is not there, or not in the format.
        DefinitionError: If the name leads elsewhere.
    """
    place = WebDatasetFolder(name).location()
    root = local_copy(place, None)
    metadata = read_metadata(root)
    known: tuple[str, ...] = REMOTE_SPLITS
    if isinstance(place, Path):
        known = (DEFAULT_SPLIT, *(split for split in splits(place) if split != DEFAULT_SPLIT))
    options: dict[str, Any] = {"splits": known, "description": f"webdataset, {place}", "any_language": True}
    if metadata.kind == "retrieval":
        return BenchmarkDataset(name, metadata.kind, partial(_folder, name), **options)
    count = len(metadata.class_names) if metadata.class_names is not None else None
    found = Prompts(name, count, own=True, folders=lambda: [local_copy(place, None)])
    options["languages"] = ("en", *languages_beside(root))
    return declare(found, partial(_folder, name), kind=metadata.kind, **options)


def _folder(name: str, split: str, language: str) -> WebDatasetFolder:
    return WebDatasetFolder(name, split)


add_open_benchmarks(PREFIX, webdataset_benchmark)
