"""Caption metrics as a captioning setting stores them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.canonical_text import canonical
from testbed.entities import Metric, Score
from testbed.metric_specs import HIGHER, MAIN, NEITHER, MetricSpec, rate
from testbed.metrics.captions.overlap import ORDERS, PTB, caption_overlap, check_tokenizer
from testbed.metrics.captions.spice import VERSION, lacking
from testbed.metrics.inference.statistics import mean_and_stderr

log = logging.getLogger("testbed")

OVERLAP = "overlap@2"  # what these scores and metrics carry as their scorer
CIDER = MetricSpec("CIDEr", "", HIGHER, 0, 10, headline=MAIN)
SPECS = {
    metric.name: metric
    for metric in (
        *(rate(f"Bleu_{order}", headline=MAIN - 1 if order == ORDERS else 0) for order in range(1, ORDERS + 1)),
        *(rate(name) for name in ("METEOR", "ROUGE_L", "SPICE")),
        CIDER,
    )
}
EXACT, REFERENCED = rate("exact", zero_one=True), rate("referenced", NEITHER)


@dataclass(frozen=True)
class OverlapOptions:
    """Options for comparing captions with references.

    Attributes:
        tokenizer: See `testbed.metrics.captions.overlap.caption_overlap`.
        meteor: Also computes METEOR; needs Java and the extra ``captions``.
        spice: Also computes SPICE, where its requirements are installed; see `testbed.metrics.captions.spice`.
        exact: Also computes the share of captions that equal a reference.
    """

    tokenizer: str = PTB
    meteor: bool = False
    exact: bool = False
    spice: bool = False

    def __post_init__(self) -> None:
        check_tokenizer(self.tokenizer)

    def spec(self) -> dict[str, Any]:
        """Returns the options that are not at their defaults, for an identity."""
        if self == OverlapOptions():
            return {}
        own: dict[str, Any] = {"exact": True} if self.exact else {}
        if self.spice:  # so that stored captions get it as soon as it can be computed
            own["spice"] = "left out" if lacking() else VERSION
        return {"tokenizer": self.tokenizer, "meteor": self.meteor, "scorer": OVERLAP, **own}


def overlap_rows(
    captions: Sequence[str | None], references: Sequence[Sequence[str]], options: OverlapOptions
) -> tuple[list[Score], list[Metric]]:
    """Computes the overlap of captions with references; nothing where no sample has any.

    Args:
        captions: One for each sample; None if there is none.
        references: The reference captions of each sample.
        options: The options of the comparison.

    Returns:
        The scores ``Bleu_4``, ``ROUGE_L`` and ``CIDEr`` (NaN without a caption or a reference); the metrics ``Bleu_1``
        to ``Bleu_4`` (of all captions together), ``ROUGE_L`` and ``CIDEr`` (means), and ``referenced``, the share of
        samples that have references; where they are asked for, ``METEOR``, ``SPICE`` and ``exact`` (1 for a caption
        that equals a reference, but for case and white space) as scores and as metrics. CIDEr is between 0 and 10; all
        others are fractions.
    """
    if not any(references):
        return [], []
    reason = lacking() if options.spice else ""
    if reason:
        _tell(f"SPICE is left out: {reason}")
    overlap = caption_overlap(captions, references, options.tokenizer, options.meteor, options.spice and not reason)
    scored = int((~np.isnan(overlap.scores["CIDEr"])).sum())
    metrics = []
    for name, value in overlap.metrics.items():
        stderr = None
        if name in ("ROUGE_L", "CIDEr", "SPICE"):  # means; the others are of all captions together
            values = overlap.scores[name]
            _, stderr = mean_and_stderr(values[~np.isnan(values)])
        metrics.append(SPECS[name].metric(value, scored, stderr, scorer=OVERLAP))
    share, error = mean_and_stderr(np.array([bool(several) for several in references]))
    metrics.append(REFERENCED.metric(share, len(references), error, scorer=OVERLAP))
    scores = [SPECS[name].score(values, OVERLAP) for name, values in overlap.scores.items()]
    if options.exact:
        exact = _exact(captions, references)
        scores.append(EXACT.score(exact, OVERLAP))
        counted = exact[~np.isnan(exact)]
        value, error = mean_and_stderr(counted)
        metrics.append(EXACT.metric(value, len(counted), error, scorer=OVERLAP))
    return scores, metrics


@lru_cache(maxsize=16)
def _tell(message: str) -> None:
    """Logs a warning, once in a process."""
    log.warning("%s", message)


def _exact(captions: Sequence[str | None], references: Sequence[Sequence[str]]) -> Array:
    """Returns 1 for captions that equal a reference, 0 for others, NaN without caption or reference; float [n]."""
    words = [[canonical(text).lower().split() for text in several] for several in references]
    return np.array(
        [
            np.nan if text is None or not several else float(canonical(text).lower().split() in several)
            for text, several in zip(captions, words, strict=True)
        ]
    )
