# ruff: noqa: F401  # each import is a name of the module
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

# All but the modules beside this one, and what serves it alone.
__all__ = [
    name
    for name, value in globals().items()
    if not name.startswith("_") and value is not refusing and getattr(value, "__package__", "") != __name__
]

__getattr__ = refusing(__name__)
