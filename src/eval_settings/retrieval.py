"""Image-text retrieval under CLIP benchmark's names; docs/datasets.md lists the files of each data set."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.data.sets.languages import CROSSMODAL_LANGUAGES, FLORES_CODES, XTD_LANGUAGES
from testbed.eval_settings.base.annotated import AnnotatedDataset
from testbed.eval_settings.benchmark_families.benchmark import add_benchmark
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset

if TYPE_CHECKING:
    from testbed.data.source import ImageSource

# Karpathy's splits, and COCO's own, which are called by their annotation files.
COCO_SIZES = {"test": 5000, "val": 5000, "train": 82783, "captions_val2017": 5000, "captions_train2017": 118287}
COCO_SIZES |= {"captions_val2014": 40504, "captions_train2014": 82783}
FLICKR_SIZES = {
    "flickr8k": {"test": 1000, "val": 1000, "train": 6000},
    "flickr30k": {"test": 1000, "val": 1014, "train": 29000},
}
LINES = {
    "multilingual_mscoco_captions": (XTD_LANGUAGES, "1,000 images of COCO, a caption each in 11 languages"),
    "xtd10": (XTD_LANGUAGES, "1,000 images of COCO, a caption each in 11 languages"),
    "flickr30k-200": (FLORES_CODES, "1,000 images of Flickr30k, a caption each machine-translated to 200 languages"),
    "xtd200": (FLORES_CODES, "XTD10's images, a caption each machine-translated to 200 languages"),
}


def _coco(root: Path, split: str) -> ImageSource:
    from testbed.data.formats.caption_files import coco_captions

    return coco_captions(root, split)


def _flickr(root: Path, split: str, language: str, name: str) -> ImageSource:
    from testbed.data.formats.caption_files import flickr_captions

    return flickr_captions(root, split, language, name)


def _lines(root: Path, language: str, name: str) -> ImageSource:
    from testbed.data.sets.multilingual_captions import line_captions

    return line_captions(root, language, name)


def _crossmodal(root: Path, language: str) -> ImageSource:
    from testbed.data.sets.multilingual_captions import crossmodal_captions

    return crossmodal_captions(root, language)


def _coco_dataset(split: str, language: str) -> AnnotatedDataset:
    return AnnotatedDataset("mscoco_captions", "mscoco_captions", partial(_coco, split=split), split=split)


def _flickr_dataset(split: str, language: str, name: str) -> AnnotatedDataset:
    read = partial(_flickr, split=split, language=language, name=name)
    return AnnotatedDataset(name, name, read, split=split, language=language)


def _lines_dataset(split: str, language: str, name: str) -> AnnotatedDataset:
    return AnnotatedDataset(name, name, partial(_lines, language=language, name=name), language=language)


def _crossmodal_dataset(split: str, language: str) -> AnnotatedDataset:
    read = partial(_crossmodal, language=language)
    return AnnotatedDataset("crossmodal3600", "crossmodal3600", read, language=language)


add_benchmark(
    BenchmarkDataset(
        name="mscoco_captions",
        kind="retrieval",
        dataset=_coco_dataset,
        splits=tuple(COCO_SIZES),
        sizes=COCO_SIZES,
        collections=("retrieval",),
        description="MS-COCO, five captions an image; Karpathy's split",
    )
)
for _name, _title in (("flickr8k", "Flickr8k"), ("flickr30k", "Flickr30k")):
    add_benchmark(
        BenchmarkDataset(
            name=_name,
            kind="retrieval",
            dataset=partial(_flickr_dataset, name=_name),
            splits=("test", "val", "train"),
            languages=("en", "zh"),
            sizes=FLICKR_SIZES[_name],
            collections=("retrieval",),
            description=f"{_title}, five captions an image; Karpathy's split",
        )
    )
for _name, (_languages, _description) in LINES.items():
    add_benchmark(
        BenchmarkDataset(
            name=_name,
            kind="retrieval",
            dataset=partial(_lines_dataset, name=_name),
            languages=_languages,
            sizes={"test": 1000},
            description=_description,
        )
    )
add_benchmark(
    BenchmarkDataset(
        name="crossmodal3600",
        kind="retrieval",
        dataset=_crossmodal_dataset,
        languages=CROSSMODAL_LANGUAGES,
        sizes={"test": 3600},
        description="3,600 images from all over the world, about two captions each by people in each of 36 languages",
    )
)
