"""Tests of compositionality: which caption belongs to which image; docs/datasets.md lists the files of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.errors import DefinitionError
from testbed.eval_settings.base.annotated import AnnotatedDataset, Reader
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark, add_open_benchmarks
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset

if TYPE_CHECKING:
    from testbed.data.source import ImageSource

PAIRS = "pairs/"  # your own files

# Instances with one image each.
SUGAR_CREPE = {
    "add_att": 692,
    "add_obj": 2062,
    "replace_att": 788,
    "replace_obj": 1652,
    "replace_rel": 1406,
    "swap_att": 666,
    "swap_obj": 245,
}
# Those that people found valid, and all.
VALSE = {
    "actant-swap": (949, 1042),
    "action-replacement": (648, 779),
    "coreference-hard": (104, 141),
    "coreference-standard": (708, 916),
    "counting-adversarial": (691, 756),
    "counting-hard": (868, 1000),
    "counting-small-quant": (900, 1000),
    "existence": (505, 534),
    "foil-it": (943, 1000),
    "plurals": (851, 1000),
    "relations": (535, 614),
}


def _sugar_crepe(root: Path, task: str) -> ImageSource:
    from testbed.data.formats.selection_files import sugar_crepe

    return sugar_crepe(root, task, f"sugar_crepe/{task}")


def _winoground(root: Path) -> ImageSource:
    from testbed.data.formats.selection_files import winoground

    return winoground(root)


def _visual_genome(root: Path, task: str) -> ImageSource:
    from testbed.data.formats.selection_files import aro_visual_genome

    return aro_visual_genome(root, task, f"aro/vg_{task}")


def _order(root: Path, source: str) -> ImageSource:
    from testbed.data.formats.selection_files import aro_order

    return aro_order(root, source, f"aro/{source}_order")


def _valse(root: Path, instrument: str, split: str) -> ImageSource:
    from testbed.data.formats.selection_files import valse

    return valse(root, instrument, split, f"valse/{instrument}")


def _mmvp(root: Path) -> ImageSource:
    from testbed.data.formats.selection_files import mmvp_vlm

    return mmvp_vlm(root)


def _own(root: Path, name: str) -> ImageSource:
    from testbed.data.formats.selection import own_pairs

    return own_pairs(root, name)


def _dataset(split: str, language: str, name: str, folder: str, read: Reader) -> AnnotatedDataset:
    return AnnotatedDataset(name, folder, read, split=split)


def _valse_dataset(split: str, language: str, instrument: str) -> AnnotatedDataset:
    read = partial(_valse, instrument=instrument, split=split)
    return AnnotatedDataset(f"valse/{instrument}", "valse", read, split=split)


def _add(name: str, folder: str, read: Reader, size: int | None, collection: str | None, description: str) -> None:
    add_benchmark(
        BenchmarkDataset(
            name=name,
            kind="selection",
            dataset=partial(_dataset, name=name, folder=folder, read=read),
            sizes={} if size is None else {"test": size},
            collections=(*((collection,) if collection else ()), "compositionality"),
            description=description,
        )
    )


def pairs(name: str) -> BenchmarkDataset:
    """Returns your own data set in the folder ``pairs``: ``pairs/X`` is ``X.jsonl`` (.json, .csv) or ``X/pairs.jsonl``.

    Raises:
        DefinitionError: If the name leads out of that folder.
    """
    if ".." in Path(name).parts or not name.removeprefix(PAIRS).strip("/"):
        raise DefinitionError(f"{name!r}: after {PAIRS} comes the name of a file or folder in that folder")
    return BenchmarkDataset(
        name=name,
        kind="selection",
        dataset=partial(_dataset, name=name, folder=name, read=partial(_own, name=name)),
        description="your own images and captions",
    )


def _add_valse(instrument: str, sizes: tuple[int, int]) -> None:
    both: Mapping[str, int] = dict(zip(("test", "all"), sizes, strict=True))
    add_benchmark(
        BenchmarkDataset(
            name=f"valse/{instrument}",
            kind="selection",
            dataset=partial(_valse_dataset, instrument=instrument),
            splits=tuple(both),
            sizes=both,
            collections=("valse", "compositionality"),
            description=f"VALSE, {instrument}: a caption or a foil; those that people found valid",
        )
    )


for _task, _size in SUGAR_CREPE.items():
    _about = f"SugarCrepe, {_task}: a caption or a wrong one"
    _add(f"sugar_crepe/{_task}", "sugar_crepe", partial(_sugar_crepe, task=_task), _size, "sugar_crepe", _about)
_add("winoground", "winoground", _winoground, 800, None, "400 times two images and two captions of the same words")
for _task, _size in (("relation", 23937), ("attribution", 28748)):
    _about = f"ARO, Visual Genome {_task}: a caption or one with two parts swapped"
    _add(f"aro/vg_{_task}", "aro", partial(_visual_genome, task=_task), _size, "aro", _about)
for _source, _size in (("coco", 25010), ("flickr30k", 5000)):
    _about = f"ARO: a caption of {_source} or four with its words in another order"
    _add(f"aro/{_source}_order", "aro", partial(_order, source=_source), _size, "aro", _about)
for _instrument, _sizes in VALSE.items():
    _add_valse(_instrument, _sizes)
_add("mmvp_vlm", "mmvp_vlm", _mmvp, 270, None, "135 times two images that CLIP takes for alike, and their statements")
add_open_benchmarks(PAIRS, pairs)
