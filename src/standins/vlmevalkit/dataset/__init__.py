"""Benchmarks in VLMEvalKit's form."""

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.dataset.custom import build_dataset, infer_dataset_basename
from testbed.standins.vlmevalkit.dataset.image_base import ImageBaseDataset, img_root_map
from testbed.standins.vlmevalkit.dataset.image_mcq import CustomMCQDataset, ImageMCQDataset, MMMUDataset
from testbed.standins.vlmevalkit.dataset.image_vqa import CustomVQADataset, ImageVQADataset
from testbed.standins.vlmevalkit.dataset.image_yorn import ImageYORNDataset
from testbed.standins.vlmevalkit.dataset.kinds import DATASET_MODALITY, DATASET_TYPE
from testbed.standins.vlmevalkit.dataset.utils.judge_util import DEBUG_MESSAGE, build_judge

__all__ = [
    "DATASET_MODALITY",
    "DATASET_TYPE",
    "DEBUG_MESSAGE",
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
