"""Benchmarks in VLMEvalKit's form."""

from testbed.extensions.vlmevalkit.standin.absent import refusing
from testbed.extensions.vlmevalkit.standin.dataset.custom import (
    SUPPORTED_DATASETS,
    CustomMCQDataset,
    CustomVQADataset,
    MMMUDataset,
    build_dataset,
    infer_dataset_basename,
)
from testbed.extensions.vlmevalkit.standin.dataset.image_base import ImageBaseDataset, img_root_map
from testbed.extensions.vlmevalkit.standin.dataset.image_mcq import ImageMCQDataset
from testbed.extensions.vlmevalkit.standin.dataset.image_vqa import ImageVQADataset
from testbed.extensions.vlmevalkit.standin.dataset.image_yorn import ImageYORNDataset
from testbed.extensions.vlmevalkit.standin.dataset.kinds import DATASET_MODALITY, DATASET_TYPE
from testbed.extensions.vlmevalkit.standin.dataset.utils.judge_util import DEBUG_MESSAGE, build_judge

__all__ = [
    "DATASET_MODALITY",
    "DATASET_TYPE",
    "DEBUG_MESSAGE",
    "SUPPORTED_DATASETS",
    "CustomMCQDataset",
    "CustomVQADataset",
    "ImageBaseDataset",
    "ImageMCQDataset",
    "ImageVQADataset",
    "ImageYORNDataset",
    "MMMUDataset",
    "build_dataset",
    "build_judge",
    "img_root_map",
    "infer_dataset_basename",
]

__getattr__ = refusing(__name__)
