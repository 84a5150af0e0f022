"""``eval.py --scorers``, and scoring captions from the command line, in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_world import *  # noqa: F403
