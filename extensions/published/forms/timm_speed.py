"""timm's ``benchmark-….csv``: throughput and sizes, which are not claims about accuracy."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import Reading

NAME = "timm's benchmark"
OTHERS = False
PARTS = ("samples_per_sec", "step_time", "batch_size", "gmacs", "macts", "img_size")
LEFT_OUT = ("param_count", *(f"{kind}_{part}" for kind in ("infer", "train") for part in PARTS))


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return {"model", "param_count"} <= set(document.header) and any(
        name.endswith("_samples_per_sec") for name in document.header
    )


def read(document: Document, reading: Reading) -> None:
    """Counts the values."""
    document.require_columns(("model", *LEFT_OUT))
    for _, fields in document.lines():
        for column, text in fields.items():
            if column != "model":
                reading.leave(column, text)
