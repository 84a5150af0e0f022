"""Reads published values from CLIP-CC-Bench's board: a row for each captioner, columns by decoder, cosines."""

from __future__ import annotations

from testbed.claims.document import Document
from testbed.claims.reading import Reading
from testbed.extensions.clip_cc_bench import clip_cc_results as results
from testbed.metrics.caption_similarity import SPECS

NAME = results.FORM
OTHERS = True


def matches(document: Document) -> bool:
    """Recognizes the file by its first column, or by the keys of a captioner's summary."""
    if document.header:
        return document.header[0] == results.NAME
    return bool(document.records) and results.is_summary(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields the captioners on ``clip-cc-bench@DECODER``."""
    places = {name: results.column_of(name, document.path) for name in document.header[1:]}
    for row, fields in document.lines():
        for column, (decoder, metric) in places.items():
            if fields[column].strip():
                results.cosine(fields[column], f"{document.path}, {row}, column {column}")
            spec = SPECS[metric + results.RAW]
            reading.claim(fields[results.NAME], f"{results.SETTING}@{decoder}", spec, fields[column], row, column)
    for record in document.records:
        captioner, decoder, means = results.means_of(record, document.path)
        for mean in means:
            place = captioner, f"{results.SETTING}@{decoder}", SPECS[mean.metric], mean.text, "the summary", mean.place
            reading.claim(*place, n=mean.n, stderr=mean.stderr)
