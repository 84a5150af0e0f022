"""RobustBench's entries: JSON files, one for each model, in folders by data set and threat model; percent."""

from __future__ import annotations

from testbed.claims.agreement import CLAIMED, DISPUTED, STANDING, VERIFIED
from testbed.claims.document import Document
from testbed.claims.reading import MEAN, PERCENT, Reading
from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.classification import top

NAME = "RobustBench's entry"
OTHERS = True
TEXTS = ("dataset", "clean_acc", "architecture")
KEYS = (*TEXTS, "eps")
ABOUT = ("link", "name", "authors", "venue", "footnote")
PROTOCOL = ("additional_data", "number_forward_passes", "unreliable")
CLEAN = {"imagenet": "val", "cifar10": "cifar10", "cifar100": "cifar100"}
# (data set, threat model, eps) → the setting of AutoAttack.
ATTACKED = {("imagenet", "Linf", "4/255"): "autoattack.linf.eps4", ("imagenet", "L2", "3"): "autoattack.l2.eps3"}
# How the accuracy under attack was measured, and the resulting status of the authors' claim, by key.
ROBUST = {
    "reported": ("the authors' own attack", CLAIMED),
    "autoattack_acc": ("AutoAttack, by RobustBench", VERIFIED),
    "external": ("an adaptive attack, by others", DISPUTED),
}
NOTHING = "null"  # as a text, in a few entries
CORRUPTED = ("corruptions_acc", "corruptions_mce", "corruptions_acc_3d", "corruptions_mce_3d")
MCE = MetricSpec("mce", "points", "lower", lowest=0)


def matches(document: Document) -> bool:
    """Recognizes the file by the keys of its record."""
    return bool(document.records) and set(KEYS) <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields the model as ``robustbench/DATA SET/THREAT MODEL/FILE``, as in RobustBench."""
    for record in document.records:
        document.require_columns((*KEYS, *ABOUT, *PROTOCOL, *ROBUST, *CORRUPTED), given=record)
        row = "the entry"
        document.require_texts(record, (*TEXTS, *(["eps"] if record.get("eps") is not None else [])), row)
        dataset, threat, eps = record["dataset"], (*document.folders, "")[0], record.get("eps") or ""
        model = f"robustbench/{dataset}/{threat}/{document.stem}"
        told = {key.replace("_", " "): str(record[key]) for key in PROTOCOL if key in record}
        about = {"architecture": record["architecture"], "eps": eps, "norm": threat if eps else "", **told}
        reading.claim(model, CLEAN.get(dataset, dataset), top(1), record["clean_acc"], row, "clean_acc", PERCENT, about)
        attacked = ATTACKED.get((dataset, threat, eps), f"{dataset} under attack, {threat} {eps}".strip())
        under_corruptions = any(key in record for key in CORRUPTED)
        for key, (attack, standing) in ROBUST.items():
            if under_corruptions:
                setting, why, protocol = f"{dataset} corruptions", MEAN, {"evaluation": attack, **about}
            else:
                setting, why, protocol = attacked, None, {STANDING: standing, "attack": attack, **about}
            text = "" if record.get(key) == NOTHING else record.get(key)
            reading.claim(model, setting, top(1), text, row, key, PERCENT, protocol, why)
        for key in CORRUPTED:
            kind = f"{dataset} corruptions{' 3d' if key.endswith('_3d') else ''}"
            spec, whole = (MCE, 1) if "mce" in key else (rate("top1"), PERCENT)
            reading.claim(model, kind, spec, record.get(key), row, key, whole, about, MEAN)
