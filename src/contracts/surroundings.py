"""Restores what a run changes in the user's process besides its networks: random numbers and settings of torch."""

from __future__ import annotations

import contextlib
import os
import random
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def same_random_numbers() -> Iterator[None]:
    """Leaves the generators of random, numpy and torch, on GPUs as well, as they were before the block.

    If the block is the first to import torch, its generators end up as in a process that has set no seed.
    """
    import numpy as np

    ours, numbers = random.getstate(), np.random.get_state()
    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_rng_state()
    gpus = None if torch is None or not torch.cuda.is_initialized() else torch.cuda.get_rng_state_all()
    try:
        yield
    finally:
        random.setstate(ours)
        np.random.set_state(numbers)
        torch = sys.modules.get("torch")
        if torch is not None and before is None:
            torch.seed()
        elif torch is not None:
            torch.set_rng_state(before)
            if gpus is not None:
                torch.cuda.set_rng_state_all(gpus)
            elif torch.cuda.is_initialized():  # as if it were in use now for the first time
                torch.cuda.manual_seed_all(torch.default_generator.initial_seed())


@contextlib.contextmanager
def configured(device: str, threads: int) -> Iterator[None]:
    """Configures torch within a block for reproducible numbers, whatever the program around it has set."""
    import torch

    with contextlib.ExitStack() as stack:
        if device.startswith("cuda"):
            stack.enter_context(torch.cuda.device(device))
        stack.enter_context(torch.inference_mode(False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for kind in dict.fromkeys(("cpu", torch.device(device).type)):
            stack.enter_context(torch.autocast(kind, enabled=False))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_float32())
        count, dtype = torch.get_num_threads(), torch.get_default_dtype()
        try:
            if "OMP_NUM_THREADS" not in os.environ:
                torch.set_num_threads(threads)
            torch.set_default_dtype(torch.float32)
            yield
        finally:
            if torch.get_num_threads() != count:
                torch.set_num_threads(count)
            torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _float32() -> Iterator[None]:
    """Makes float32 mean float32: TensorFloat-32 has ten bits of mantissa, and its results depend on the batch size."""
    import torch

    products: Any = torch.backends.cuda.matmul
    convolutions: Any = torch.backends.cudnn
    mkldnn: Any = torch.backends.mkldnn
    flags = [(owner, "allow_tf32", _told(owner, "allow_tf32")) for owner in (products, convolutions)]
    flags.append((convolutions, "benchmark", convolutions.benchmark))
    try:
        precision: str | None = torch.get_float32_matmul_precision()
    except RuntimeError:
        precision = None
    parts = [(products, ""), (convolutions, "conv"), (convolutions, "rnn"), (mkldnn, "matmul")]
    owners = [getattr(owner, name, None) if name else owner for owner, name in parts]
    later = [(owner, "fp32_precision", _told(owner, "fp32_precision")) for owner in owners]
    try:
        torch.set_float32_matmul_precision("highest")
        products.allow_tf32 = convolutions.allow_tf32 = convolutions.benchmark = False
        yield
    finally:
        if precision is not None:
            torch.set_float32_matmul_precision(precision)
        for owner, name, value in [*flags, *later]:
            if value is not None and _told(owner, name) != value:
                setattr(owner, name, value)


def _told(owner: Any, name: str) -> Any:
    """Returns a setting of torch; None if it has none, or raises, as for settings made in its old and new ways."""
    try:
        return getattr(owner, name, None)
    except RuntimeError:
        return None
