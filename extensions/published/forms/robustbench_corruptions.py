"""RobustBench's ``unaggregated_results.csv`` and ``…_3d.csv``: a row for each model, a column for each corruption and
severity.
"""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.errors import StoreError
from testbed.eval_settings.imagenet_c_bar import IMAGENET_3DCC, IN_3DCC
from testbed.metrics.scorers.classification import top

NAME = "RobustBench's corruptions"
OTHERS = True
SEVERITIES = {"1", "2", "3", "4", "5"}
SETTINGS = {"imagenet": "imagenet-c.{}.{}_on-disk"}  # testbed's settings of the data sets


def matches(document: Document) -> bool:
    """Recognizes the file by its second line, which has severities."""
    return bool(
        len(document.header) > 1
        and not document.header[0]
        and document.rows
        and set(document.rows[0][1:]) <= SEVERITIES
    )


def read(document: Document, reading: Reading) -> None:
    """Yields the model as ``robustbench/DATA SET/corruptions/NAME``."""
    dataset = (*document.folders, "", "")[1]
    pattern = SETTINGS.get(dataset, dataset + "-c.{}.{}")
    columns = list(zip(document.header[1:], document.rows[0][1:], strict=True))
    if len(set(columns)) < len(columns):
        raise StoreError(f"{document.path}: a corruption has a severity twice")
    reading.rows = len(document.rows) - 1
    for number, row in enumerate(document.rows[1:], start=3):
        model = f"robustbench/{dataset}/corruptions/{row[0]}"
        for (corruption, severity), text in zip(columns, row[1:], strict=True):
            in_3d = dataset == "imagenet" and corruption in IMAGENET_3DCC
            setting = f"{IN_3DCC}.{corruption}.{severity}" if in_3d else pattern.format(corruption, severity)
            reading.claim(model, setting, top(1), text, f"row {number}", f"{corruption} {severity}")
