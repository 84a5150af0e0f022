"""The type of numpy's arrays in signatures; docstrings state shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
