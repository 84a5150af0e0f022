"""The table of CLIP benchmark's scaling study: zero-shot results, with the number of training samples of each model."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import MEAN, Reading
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top
from testbed.metrics.scorers.retrieval import recall

NAME = "CLIP benchmark's scaling table"
OTHERS = False
KEYS = ("model_fullname", "downstream_dataset", "task")
TRAINING = {"samples_seen_pretty": "samples seen", "upstream_dataset": "training data"}
LEFT_OUT = ("samples_seen", "gmacs_total", "gmacs")
METRICS = {
    "acc1": top(1),
    "acc5": top(5),
    "mean_per_class_recall": MEAN_PER_CLASS_RECALL,
    "image_retrieval_recall@5": recall("image_retrieval", 5),
    "text_retrieval_recall@5": recall("text_retrieval", 5),
}
MEANS = ("imagenet_robustness", "vtab", "vtab+")


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return {*KEYS, "samples_seen"} <= set(document.header)


def read(document: Document, reading: Reading) -> None:
    """Yields the models as ``ARCHITECTURE,TAG``; ``model_fullname`` has a space between the two."""
    document.require_columns((*KEYS, "arch", *TRAINING, *LEFT_OUT, *METRICS))
    for row, fields in document.lines():
        model, dataset = fields["model_fullname"].strip().replace(" ", ",", 1), fields["downstream_dataset"]
        why = MEAN if dataset in MEANS else None
        protocol = {name: fields.get(column, "") for column, name in TRAINING.items()}
        for column, spec in METRICS.items():
            reading.claim(model, dataset, spec, fields.get(column), row, column, protocol=protocol, why=why)
        for column in LEFT_OUT:
            reading.leave(column, fields.get(column))
