"""open_clip's tables of zero-shot results: a row for each pretrained model, a column for each data set, fractions."""

from __future__ import annotations

import re

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.extensions.published.forms.columns import DATACOMP
from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.retrieval import recall

NAME = "open_clip's table"
OTHERS = False
KEYS = ("name", "pretrained")
LEFT_OUT = re.compile(r"params \(M\)|FLOPs \(B\)|Average (score|perf\. on \d+ datasets)")
RETRIEVAL = re.compile(r"(Flickr|MSCOCO) (image|text) retr\. R@(\d+)")
WINOGAVIL = re.compile(r"WinoGAViL (avg jaccard score|jaccard score [\d-]+)")
PROTOCOL = {"prompts": "DataComp's"}


def matches(document: Document) -> bool:
    """Recognizes the file by its columns."""
    return tuple(document.header[:2]) == KEYS


def read(document: Document, reading: Reading) -> None:
    """Yields the models as ``NAME,PRETRAINED``."""
    places = {name: found for name in document.header if (found := _place(name)) is not None}
    left_out = [name for name in document.header if LEFT_OUT.fullmatch(name)]
    document.require_columns((*KEYS, *places, *left_out))
    for row, fields in document.lines():
        model = f"{fields['name']},{fields['pretrained']}"
        for column, (setting, spec) in places.items():
            reading.claim(model, setting, spec, fields[column], row, column, protocol=PROTOCOL)
        for column in left_out:
            reading.leave(column, fields[column])


def _place(column: str) -> tuple[str, MetricSpec] | None:
    if found := RETRIEVAL.fullmatch(column):
        return DATACOMP[found[1]][0], recall(f"{found[2]}_retrieval", int(found[3]))
    if found := WINOGAVIL.fullmatch(column):
        return DATACOMP["WinoGAViL"][0], rate(found[1].replace(" ", "_"))
    return DATACOMP.get(column)
