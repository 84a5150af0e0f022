"""Tables in any format, with user-defined columns for the model, the setting, the metric and the value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from testbed.claims.document import Document
from testbed.claims.reading import FRACTION, PERCENT, Reading
from testbed.claims.tables import repeated
from testbed.errors import StoreError
from testbed.metric_specs import MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top

NEEDED = ("model", "setting", "value")
FURTHER = ("metric", "unit", "n")
KNOWN = {metric_spec.name: metric_spec for metric_spec in (top(1), top(5), MEAN_PER_CLASS_RECALL)}
IN_PERCENT, IN_FRACTIONS = "percent", "fraction"


@dataclass(frozen=True)
class Map:
    """A mapping of columns.

    Attributes:
        words: Of ``model``, ``setting``, ``metric``, ``value``, ``unit`` and ``n`` each: a column, or a value common to
            all rows.
    """

    words: Mapping[str, str]
    OTHERS: ClassVar[bool] = False

    @property
    def NAME(self) -> str:
        """The display name, which also distinguishes files read with different mappings."""
        return f"a table with {' '.join(f'{key}={word}' for key, word in sorted(self.words.items()))}"

    def read(self, document: Document, reading: Reading) -> None:
        """Reads the table; other columns become the protocol of the values.

        Raises:
            StoreError: If a column is missing or a value is out of range.
        """
        if not document.header:
            raise StoreError(f"{document.path}: --map reads tables (.csv, .tsv)")
        if twice := repeated(document.header):
            raise StoreError(f"{document.path} has the column {twice!r} twice")
        for key in ("model", "value"):
            if self.words[key] not in document.header:
                columns = ", ".join(document.header[:10])
                raise StoreError(f"{document.path} has no column {self.words[key]!r}; its columns are {columns}")
        others = [text for text in document.header if text not in self.words.values()]
        for row, fields in document.lines():
            told = {key: fields.get(word, word) for key, word in self.words.items()}
            spec, whole = _spec(told.get("metric", "top1"), told.get("unit", IN_FRACTIONS))
            n = told.get("n", "").strip()
            if n and not re.fullmatch(r"\d{1,9}", n, re.ASCII):
                raise StoreError(f"{document.path}, {row}: n should be a number of samples, not {n!r}")
            reading.claim(
                *(told["model"].strip(), told["setting"].strip(), spec, told["value"], row, self.words["value"], whole),
                protocol={name: fields[name] for name in others},
                n=int(n) if n else None,
            )


def read_map(words: Sequence[str]) -> Map | None:
    """Parses the words after ``--map``; None without words.

    Raises:
        StoreError: If a word is not ``model=…``, ``setting=…`` and so on, or a required one is missing.
    """
    if not words:
        return None
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value or key not in (*NEEDED, *FURTHER) or key in found:
            raise StoreError(
                f"--map {word} is invalid; expected model=COLUMN setting=COLUMN|NAME value=COLUMN, and"
                " metric=COLUMN|NAME unit=percent|fraction|NAME n=COLUMN|NUMBER, each once"
            )
        found[key] = value
    if missing := [name for name in NEEDED if name not in found]:
        raise StoreError(f"--map also requires {', '.join(f'{name}=…' for name in missing)}")
    return Map(found)


def _spec(metric: str, unit: str) -> tuple[MetricSpec, int]:
    if unit in (IN_PERCENT, IN_FRACTIONS):
        return KNOWN.get(metric) or rate(metric), PERCENT if unit == IN_PERCENT else FRACTION
    return MetricSpec(metric, unit), FRACTION
