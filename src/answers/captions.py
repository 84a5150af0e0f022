"""Captions as answers: compared with the list of references in the column ``answer``."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.answers.columns import references
from testbed.answers.verdict import Verdict
from testbed.metrics.captions.overlap import NONE, PTB, caption_overlap

ROUGE = "ROUGE_L"


def references_of(columns: Mapping[str, str]) -> list[str]:
    """The reference captions of a row; empty if it has none."""
    return references(columns) if "answer" in columns else []


def tokenized(columns: Mapping[str, str], text: str) -> Verdict:
    """ROUGE-L with COCO's tokenizer, as the score of a single caption; its method names the tokenizer."""
    return _verdict(columns, text, PTB)


def as_written(columns: Mapping[str, str], text: str) -> Verdict:
    """The same without a tokenizer, as VLMEvalKit compares captions."""
    return _verdict(columns, text, NONE)


def _verdict(columns: Mapping[str, str], text: str, tokenizer: str) -> Verdict:
    score = caption_overlap([text], [references_of(columns)], tokenizer).scores[ROUGE][0]
    return Verdict(text if text.strip() else None, float(score), tokenizer)
