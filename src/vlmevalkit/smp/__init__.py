"""What ``from vlmeval.smp import *`` gives: the helpers, and the modules that come with them."""

import csv
import json
import multiprocessing as mp
import os
import os.path as osp
import re
import shutil
import string
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from testbed.vlmevalkit.smp.file import (
    INFER_FAIL_MSG,
    LMUDataRoot,
    dump,
    file_size,
    get_eval_file_format,
    get_file_extension,
    get_intermediate_file_path,
    get_pred_file_format,
    load,
    md5,
    parse_file,
)
from testbed.vlmevalkit.smp.log import get_logger
from testbed.vlmevalkit.smp.misc import (
    cn_string,
    d2df,
    download_file,
    extract_json_objects,
    get_cache_path,
    get_gpu_memory,
    get_rank_and_world_size,
    istype,
    listinstr,
    localize_df,
    modelscope_flag_set,
    splitlen,
    toliststr,
)
from testbed.vlmevalkit.smp.vlm import (
    concat_images_vlmeval,
    decode_base64_to_image,
    decode_base64_to_image_file,
    encode_image_file_to_base64,
    encode_image_to_base64,
    read_ok,
)

__all__ = [
    "INFER_FAIL_MSG",
    "Image",
    "LMUDataRoot",
    "Path",
    "cn_string",
    "concat_images_vlmeval",
    "csv",
    "d2df",
    "decode_base64_to_image",
    "decode_base64_to_image_file",
    "defaultdict",
    "download_file",
    "dump",
    "encode_image_file_to_base64",
    "encode_image_to_base64",
    "extract_json_objects",
    "file_size",
    "get_cache_path",
    "get_eval_file_format",
    "get_file_extension",
    "get_gpu_memory",
    "get_intermediate_file_path",
    "get_logger",
    "get_pred_file_format",
    "get_rank_and_world_size",
    "istype",
    "json",
    "listinstr",
    "load",
    "localize_df",
    "md5",
    "modelscope_flag_set",
    "mp",
    "np",
    "os",
    "osp",
    "parse_file",
    "pd",
    "re",
    "read_ok",
    "shutil",
    "splitlen",
    "string",
    "time",
    "toliststr",
    "warnings",
]
