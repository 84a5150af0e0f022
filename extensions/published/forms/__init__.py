"""Forms of files of published values, one module each; `ALL` has them in the order in which they are tried."""

from __future__ import annotations

from typing import Protocol

from testbed.extensions.published import own_results
from testbed.claims.document import Document
from testbed.extensions.clip_benchmark import claims as clip_benchmark
from testbed.extensions.clip_cc_bench import claims as clip_cc
from testbed.extensions.published.forms import clip_scaling, datacomp, every_eval_ever, imagenet_testbed, mteb, open_clip, open_clip_multilingual, probes, robustbench, robustbench_corruptions, set_types, timm, timm_speed
from testbed.claims.reading import Reading


class Form(Protocol):
    """A kind of file.

    Attributes:
        NAME: For people.
        OTHERS: Whether its models have names of the publisher's own, which need not be testbed's.
    """

    NAME: str
    OTHERS: bool

    def matches(self, document: Document) -> bool:
        """Whether a file is of this form, by its columns or keys."""

    def read(self, document: Document, reading: Reading) -> None:
        """Reads all of the file.

        Raises:
            StoreError: If it has a column that the form does not know, or a value out of range.
        """


ALL: tuple[Form, ...] = (
    own_results,
    timm,
    timm_speed,
    open_clip,
    open_clip_multilingual,
    clip_benchmark,
    clip_scaling,
    probes,
    set_types,
    datacomp,
    robustbench,
    robustbench_corruptions,
    mteb,
    every_eval_ever,
    clip_cc,
    imagenet_testbed,
)
