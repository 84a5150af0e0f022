"""The linear probes of CLIP benchmark's scaling study: JSON records with shots, learning rate and epochs."""

from __future__ import annotations

import re
from functools import cache

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.errors import StoreError, shortened
from testbed.eval_settings.benchmark_families.benchmark_names import LINEAR_PROBE
from testbed.eval_settings.benchmark_families.clip_benchmark_names import ENGLISH, ClipBenchmarkFields, setting_of
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top

NAME = "CLIP benchmark's probes"
OTHERS = False
KEYS = ("model", "pretrained", "dataset", "fewshot_k", "epochs", "seed", "lr", "bs")
METRICS = {"lp_acc1": top(1), "lp_acc5": top(5), "lp_mean_per_class_recall": MEAN_PER_CLASS_RECALL}
NUMBERS = ("fewshot_k", "epochs", "seed")
LEFT_OUT = ("k", "macts", "gmacs_total", "samples_seen")
ABOUT = ("pretrained_short", "pretrained_clean", "model_short", "upstream_dataset", "samples_seen_pretty")
SPELT = {"vtab_svhn": "vtab/svhn"}  # a typo in the file


def matches(document: Document) -> bool:
    """Recognizes the file by the keys of its first record."""
    return bool(document.records) and {*KEYS, "lp_acc1"} <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields the probes as settings, ``SET.linear_probe.k10``; the learning rate belongs to the protocol."""
    for number, record in enumerate(document.records, start=1):
        document.require_columns((*KEYS, *METRICS, *LEFT_OUT, *ABOUT), given=record)
        row = f"record {number}"
        document.require_texts(record, KEYS, row)
        model = f"{record['model']},{record['pretrained']}"
        dataset = SPELT.get(record["dataset"], record["dataset"])
        setting = _setting(dataset, *(_whole(document, record[key], f"{row}, {key}") for key in NUMBERS))
        protocol = {
            "learning rate": record["lr"],
            "batch size": record["bs"],
            "weights": str(record.get("model_short") or ""),
        }
        for key, spec in METRICS.items():
            reading.claim(model, setting, spec, record.get(key), row, key, protocol=protocol)
        for key in LEFT_OUT:
            reading.leave(key, record.get(key))


def _whole(document: Document, text: str, place: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise StoreError(f"{document.path}, {place}: a whole number was expected, {shortened(text)} was found")
    return int(text)


@cache
def _setting(dataset: str, shots: int, epochs: int, seed: int) -> str:
    return setting_of(
        ClipBenchmarkFields(
            dataset, LINEAR_PROBE, ENGLISH, {"fewshot_k": shots, "epochs": epochs, "seed": seed, "normalized": True}
        )
    )
