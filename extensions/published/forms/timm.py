"""timm's ``results-….csv``: top-1 and top-5 of its image classifiers on the validation set and on shifted sets."""

from __future__ import annotations

from testbed.claims.agreement import IMAGE_SIZE
from testbed.claims.document import Document
from testbed.claims.reading import PERCENT, Reading
from testbed.metrics.scorers.classification import top

NAME = "timm's results"
OTHERS = False
KEYS = ("model", "img_size", "top1", "top5", "crop_pct", "interpolation")
LEFT_OUT = ("top1_err", "top5_err", "param_count", "top1_diff", "top5_diff", "rank_diff")
METRICS = {"top1": top(1), "top5": top(5)}
# The file's name → the setting.
SETTINGS = {
    "results-imagenet": "val",
    "results-imagenet-real": "imagenet-real",
    "results-imagenetv2-matched-frequency": "imagenetv2-matched-frequency-format-val",
    "results-imagenet-a": "imagenet-a",
    "results-imagenet-a-clean": "val-on-imagenet-a-classes",
    "results-imagenet-r": "imagenet-r",
    "results-imagenet-r-clean": "val-on-imagenet-r-classes",
    "results-sketch": "imagenet-sketch",
}


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return set(KEYS) <= set(document.header)


def read(document: Document, reading: Reading) -> None:
    """Yields the models at their image sizes: ``timm/NAME@SIZE``."""
    document.require_columns((*KEYS, *LEFT_OUT))
    setting = SETTINGS.get(document.stem)
    why = None if setting else "the file's name has no eval setting"
    for row, fields in document.lines():
        model = f"timm/{fields['model']}@{fields['img_size']}"
        protocol = {
            IMAGE_SIZE: fields["img_size"],
            "crop": fields["crop_pct"],
            "interpolation": fields["interpolation"],
        }
        for column, spec in METRICS.items():
            reading.claim(model, setting or document.stem, spec, fields[column], row, column, PERCENT, protocol, why)
        for column in LEFT_OUT:
            reading.leave(column, fields.get(column))
