"""Data sets in CLIP benchmark's webdataset format, ``wds/…``: any folder below the data root, or a URL.

Kind, class names and templates are those that the folder holds.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from testbed.data.webdataset_folder import PREFIX, WebDatasetFolder, local_copy
from testbed.data.webdataset_format import read_metadata, splits
from testbed.eval_settings.benchmark_base import BenchmarkDataset, add_open_benchmarks

DEFAULT_SPLIT = "test"
REMOTE_SPLITS = ("test", "train", "val", "valid", "trainval")  # a web server does not list what it has


def webdataset_benchmark(name: str) -> BenchmarkDataset:
    """The data set of a name, as its folder describes it; of a URL, the small files are fetched.

    Args:
        name: Such as ``wds/vtab/cifar10``.

    Raises:
        DataError: If it is not there, or not in the format.
        DefinitionError: If the name leads elsewhere.
    """
    place = WebDatasetFolder(name).location()
    metadata = read_metadata(local_copy(place, None))
    known: tuple[str, ...] = REMOTE_SPLITS
    if isinstance(place, Path):
        known = (DEFAULT_SPLIT, *(split for split in splits(place) if split != DEFAULT_SPLIT))
    return BenchmarkDataset(
        name,
        kind=metadata.kind,
        dataset=partial(_folder, name),
        splits=known,
        templates=partial(_same, metadata.templates) if metadata.templates else None,
        description=f"webdataset, {place}",
    )


def _folder(name: str, split: str, language: str) -> WebDatasetFolder:
    return WebDatasetFolder(name, split)


def _same(templates: list[str], language: str) -> list[str]:
    return templates


add_open_benchmarks(PREFIX, webdataset_benchmark)
