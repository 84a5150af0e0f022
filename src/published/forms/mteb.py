"""MTEB's zero-shot image classification, collected in one table: a row for each model on each task, fractions."""

from __future__ import annotations

from testbed.metrics.scorers.classification import top
from testbed.published.document import Document
from testbed.published.forms.columns import MTEB
from testbed.published.reading import Reading

NAME = "MTEB's results"
OTHERS = True
KEYS = ("model", "task", "split", "subset", "accuracy")
PROTOCOL = {
    "split": "split",
    "subset": "subset",
    "model_revision": "model revision",
    "dataset_revision": "data revision",
    "mteb_version": "mteb",
    "path": "file",
}
SUFFIX = "ZeroShot"
DEFAULT = "default"


def matches(document: Document) -> bool:
    """By its columns."""
    return set(KEYS) <= set(document.header)


def read(document: Document, reading: Reading) -> None:
    """The models under the names of their repositories."""
    document.require_columns((*KEYS, *PROTOCOL))
    for row, fields in document.lines():
        setting = MTEB.get(fields["task"].removesuffix(SUFFIX), fields["task"])
        protocol = {name: fields.get(column, "") for column, name in PROTOCOL.items()}
        if protocol["subset"] == DEFAULT:
            del protocol["subset"]
        reading.claim(fields["model"], setting, top(1), fields["accuracy"], row, "accuracy", protocol=protocol)
