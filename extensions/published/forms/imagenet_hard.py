"""ImageNet-Hard's ``openclip_results.csv``: top-1 of open_clip's models (github.com/taesiri/ZoomIsAllYouNeed)."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import PERCENT, Reading
from testbed.metrics.scorers.classification import top

NAME = "ImageNet-Hard's table"
OTHERS = False
MODEL, WEIGHTS, TOP1 = COLUMNS = ("Model", "Pretrained", "Top-1 Accuracy")


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return tuple(document.header) == COLUMNS


def read(document: Document, reading: Reading) -> None:
    """Yields the models as ``MODEL,WEIGHTS``."""
    document.require_columns(COLUMNS)
    for row, fields in document.lines():
        model = f"{fields[MODEL]},{fields[WEIGHTS]}"
        reading.claim(model, "imagenet-hard", top(1), fields[TOP1], row, TOP1, PERCENT)
