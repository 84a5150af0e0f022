"""The device that tests marked ``gpu`` compare with the CPU.

It is a GPU. With ``TESTBED_TEST_DEVICE=cpu`` it is the CPU itself, with fewer and smaller inputs: this shows nothing
about GPUs, but runs the tests' own code where there is none. ``TESTBED_TEST_FULL=1`` keeps the inputs of a GPU.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")
VARIABLE = "TESTBED_TEST_DEVICE"
DEVICES = ("cuda", "cpu")

# Read on import, because conftest.py removes testbed's variables from the environment of the tests.
DEVICE = os.environ.get(VARIABLE, "cuda")
if DEVICE not in DEVICES:
    raise ValueError(f"{VARIABLE} is one of {', '.join(DEVICES)}, got {DEVICE!r}")
ON_GPU = DEVICE == "cuda"
FULL = ON_GPU or os.environ.get("TESTBED_TEST_FULL") == "1"


def sized(full: T, small: T) -> T:
    """The inputs for a GPU, or those for the CPU."""
    return full if FULL else small
