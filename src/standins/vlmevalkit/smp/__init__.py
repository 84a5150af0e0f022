"""Names of ``from vlmeval.smp import *``: the helpers, and the modules that come with them."""

import csv
import datetime
import hashlib
import json
import mimetypes
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

from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.smp.file import (
    INFER_FAIL_MSG,
    RUN_STATUS_NAME,
    LMUDataRoot,
    dump,
    file_size,
    get_file_extension,
    get_intermediate_file_path,
    get_pred_file_format,
    load,
    md5,
    parse_file,
)
from testbed.standins.vlmevalkit.smp.log import get_logger
from testbed.standins.vlmevalkit.smp.misc import (
    cn_string,
    d2df,
    download_file,
    extract_json_objects,
    get_cache_path,
    get_gpu_memory,
    get_rank_and_world_size,
    istype,
    listinstr,
    load_env,
    localize_df,
    modelscope_flag_set,
    process_punctuation,
    proxy_set,
    splitlen,
    timestr,
    toliststr,
    version_cmp,
)
from testbed.standins.vlmevalkit.smp.vlm import (
    build_option_str,
    concat_images_vlmeval,
    decode_base64_to_image,
    decode_base64_to_image_file,
    encode_image_file_to_base64,
    encode_image_to_base64,
    gpt_key_set,
    isimg,
    mmqa_display,
    read_ok,
)

__all__ = [
    "INFER_FAIL_MSG",
    "RUN_STATUS_NAME",
    "Image",
    "LMUDataRoot",
    "Path",
    "build_option_str",
    "cn_string",
    "concat_images_vlmeval",
    "csv",
    "d2df",
    "datetime",
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
    "get_file_extension",
    "get_gpu_memory",
    "get_intermediate_file_path",
    "get_logger",
    "get_pred_file_format",
    "get_rank_and_world_size",
    "gpt_key_set",
    "hashlib",
    "isimg",
    "istype",
    "json",
    "listinstr",
    "load",
    "load_env",
    "localize_df",
    "md5",
    "mimetypes",
    "mmqa_display",
    "modelscope_flag_set",
    "mp",
    "np",
    "os",
    "osp",
    "parse_file",
    "pd",
    "process_punctuation",
    "proxy_set",
    "re",
    "read_ok",
    "shutil",
    "splitlen",
    "string",
    "time",
    "timestr",
    "toliststr",
    "version_cmp",
    "warnings",
]

__getattr__ = refusing(__name__)
