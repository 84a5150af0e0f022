"""Benchmarks in VLMEvalKit's form."""

from testbed.vlmevalkit.dataset.image_base import ImageBaseDataset, img_root_map
from testbed.vlmevalkit.dataset.image_mcq import ImageMCQDataset
from testbed.vlmevalkit.dataset.image_vqa import ImageVQADataset
from testbed.vlmevalkit.dataset.image_yorn import ImageYORNDataset
from testbed.vlmevalkit.dataset.kinds import DATASET_MODALITY, DATASET_TYPE

__all__ = [
    "DATASET_MODALITY",
    "DATASET_TYPE",
    "ImageBaseDataset",
    "ImageMCQDataset",
    "ImageVQADataset",
    "ImageYORNDataset",
    "img_root_map",
]
