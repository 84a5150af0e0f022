"""Formats of files of published values, one module each; `forms` returns them in the order of trial."""

from __future__ import annotations

import logging
from functools import cache

from testbed import extending
from testbed.claims.form import Form
from testbed.extensions.published import own_results
from testbed.extensions.published.forms import (
    clip_scaling,
    datacomp,
    every_eval_ever,
    imagenet_hard,
    mteb,
    open_clip,
    open_clip_multilingual,
    probes,
    robustbench,
    robustbench_corruptions,
    set_types,
    timm,
    timm_speed,
)

OWN: tuple[Form, ...] = (
    own_results,
    timm,
    timm_speed,
    imagenet_hard,
    open_clip,
    open_clip_multilingual,
    clip_scaling,
    probes,
    set_types,
    datacomp,
    robustbench,
    robustbench_corruptions,
    mteb,
    every_eval_ever,
)


@cache
def forms() -> tuple[Form, ...]:
    """Returns all formats in the order of trial: `OWN`, then those of other extensions."""
    return (*OWN, *extending.load_all(extending.CLAIMS, logging.getLogger("testbed").warning).values())
