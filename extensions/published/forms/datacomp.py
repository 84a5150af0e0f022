"""DataComp's ``eval_results.jsonl``: a record for each data set, with all metrics.

The model is the file's name; that of the folder, for a file of DataComp's own name; or that in the records, which
``testbed export datacomp`` writes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.entities import OVERALL
from testbed.errors import StoreError
from testbed.extensions.published.forms.columns import KEYS
from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top
from testbed.metrics.scorers.retrieval import recall
from testbed.metrics.scorers.selection import ACC, IMAGE_ACC, TEXT_ACC

NAME = "DataComp's results"
OTHERS = False
METRICS = {
    "acc1": top(1),
    "acc5": top(5),
    "mean_per_class_recall": MEAN_PER_CLASS_RECALL,
    **{metric_spec.name: metric_spec for metric_spec in (ACC, IMAGE_ACC, TEXT_ACC)},
}
RECALL = re.compile(r"(image|text)_retrieval_recall@(\d+)")
FURTHER = re.compile(r"mean_recall@\d+|(avg_)?jaccard_score[\d_-]*|(F1|recall)-macro_all|(acc|toxicity)_[\w:-]+")
COPY = "main_metric"  # a copy of one of the other values
COUNT = "count_"
SUGAR_CREPE = "comp/sugarcrepe_"
FIELDS = ("key", "dataset", "metrics")
MODEL = "model"
OWN_NAME = "eval_results"
# The files of Apple's MobileCLIPs → open_clip's names.
MODELS = {
    "mobileclip_s1": "MobileCLIP-S1,datacompdr",
    "mobileclip_s2": "MobileCLIP-S2,datacompdr",
    "mobileclip_b": "MobileCLIP-B,datacompdr",
    "mobileclip_b_lt": "MobileCLIP-B,datacompdr_lt",
    "mobileclip2_b": "MobileCLIP2-B,dfndr2b",
    "mobileclip2_l14": "MobileCLIP2-L-14,dfndr2b",
    "mobileclip2_s0": "MobileCLIP2-S0,dfndr2b",
    "mobileclip2_s2": "MobileCLIP2-S2,dfndr2b",
    "mobileclip2_s3": "MobileCLIP2-S3,dfndr2b",
    "mobileclip2_s4": "MobileCLIP2-S4,dfndr2b",
}


def matches(document: Document) -> bool:
    """Recognizes the file by the keys of its first record."""
    return bool(document.records) and set(FIELDS) <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields all metrics; those of a group of samples, ``acc_region:0``, have the group as their slice."""
    name = document.stem if document.stem != OWN_NAME else next(iter(document.folders), document.stem)
    for number, record in enumerate(document.records, start=1):
        document.require_columns((*FIELDS, *((MODEL,) if MODEL in record else ())), given=record)
        metrics, row = record.get("metrics"), f"record {number}"
        document.require_texts(record, ("key", *((MODEL,) if MODEL in record else ())), row)
        model = record.get(MODEL) or MODELS.get(name, name)
        if not isinstance(metrics, dict):
            raise StoreError(f"{document.path}, {row}: metrics should be an object")
        document.require_columns([metric for metric in metrics if _is_known(metric)], given=metrics)
        for key, text in metrics.items():
            if key == COPY or key.startswith(COUNT):
                reading.leave(key.partition(":")[0], text)
                continue
            spec, slice = _metric(key)
            n = _count(key, metrics) if slice != OVERALL else None
            reading.claim(model, _setting(record["key"]), spec, text, row, f"{record['key']} {key}", n=n, slice=slice)


def _is_known(key: str) -> bool:
    return (
        key in METRICS
        or key == COPY
        or key.startswith(COUNT)
        or bool(RECALL.fullmatch(key))
        or bool(FURTHER.fullmatch(key))
    )


def _metric(key: str) -> tuple[MetricSpec, str]:
    if key in METRICS:
        return METRICS[key], OVERALL
    if found := RECALL.fullmatch(key):
        return recall(f"{found[1]}_retrieval", int(found[2])), OVERALL
    name, colon, group = key.partition(":")
    return rate(name), group if colon else OVERALL


def _setting(key: str) -> str:
    if key.startswith(SUGAR_CREPE):
        return f"sugar_crepe/{key.removeprefix(SUGAR_CREPE)}"
    return KEYS.get(key, key)


def _count(key: str, metrics: Mapping[str, Any]) -> int | None:
    """The number of samples of a group: that of ``acc_race_race_binary:0`` is ``count_race_binary:0``."""
    fitting = [
        metric for metric in metrics if metric.startswith(COUNT) and key.endswith(f"_{metric.removeprefix(COUNT)}")
    ]
    longest = max(fitting, key=len, default=None)
    number = re.fullmatch(r"(\d{1,9})(\.0*)?", str(metrics[longest]), re.ASCII) if longest else None
    return int(number[1]) if number else None
