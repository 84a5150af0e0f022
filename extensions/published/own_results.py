"""Reads the output of ``testbed publish``: a manifest, and the table of results with its digest."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.claims.document import Document
from testbed.claims.reading import FRACTION, Reading
from testbed.claims.tables import read_csv
from testbed.entities import OVERALL
from testbed.errors import DefinitionError, StoreError
from testbed.metric_specs import DIRECTIONS, MetricSpec
from testbed.paths import read_regular

NAME = FORM = "results published with testbed"
OTHERS = True
VERSION = 1
MANIFEST, TABLE = "manifest.json", "results.csv"
COLUMNS = (
    *("model", "eval_setting", "cell", "metric", "slice", "value", "stderr", "n", "unit"),
    *("better", "lowest", "highest", "headline", "zero_one", "scorer"),
)
_LONGEST = 256  # characters of the name of a metric, a slice or a unit
_TRUTH = {"true": True, "false": False}


def matches(document: Document) -> bool:
    """Recognizes the file by the manifest's first key."""
    return bool(document.records) and document.records[0].get("form") == FORM


def read(document: Document, reading: Reading) -> None:
    """Yields all rows of the table with the protocols of their cells.

    Raises:
        StoreError: If the table is missing, or does not match the manifest.
    """
    manifest = document.records[0]
    if manifest.get("version") != str(VERSION):
        raise StoreError(
            f"{document.path} is of version {manifest.get('version')!r:.40}; this testbed reads version {VERSION}"
        )
    path = Path(document.path).with_name(TABLE)
    _require_digest(path, _object(manifest.get("results"), f"{document.path}: results"))
    header, rows = read_csv(path)
    if tuple(header) != COLUMNS:
        raise StoreError(f"{path} should have the columns {', '.join(COLUMNS)}")
    protocols = _protocols(manifest, document.path)
    for number, row in enumerate(rows, start=2):
        fields = dict(zip(header, row, strict=True))
        key = fields["model"], fields["eval_setting"], fields["cell"]
        where = f"{path}, row {number}"
        if key not in protocols:
            raise StoreError(f"{where}: {MANIFEST} has no protocol for {key[0]} on {key[1]}")
        told = {**protocols[key], "cell": fields["cell"], "scorer": fields["scorer"]}
        reading.claim(
            *(key[0], key[1], _spec(fields, where), fields["value"], f"row {number}", "value", FRACTION, told),
            n=_count(fields["n"], where),
            slice=_name(fields, "slice", where) if fields["slice"] != OVERALL else OVERALL,
            stderr=_number(fields["stderr"], where),
        )
    reading.rows = len(rows)


def _require_digest(path: Path, about: Mapping[str, Any]) -> None:
    try:
        found = hashlib.sha256(read_regular(path)).hexdigest()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error
    if found != about.get("sha256"):
        raise StoreError(
            f"{path} does not match its {MANIFEST}: its SHA-256 is {found[:12]}…; take both from the same"
            " version, or read another table with --map"
        )


def _protocols(manifest: Mapping[str, Any], path: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """Model, setting and fingerprint of each cell → its protocol."""
    cells = manifest.get("cells")
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for number, each in enumerate(cells if isinstance(cells, list) else [], start=1):
        where = f"{path}: cell {number}"
        model, setting, cell = (_object(each, where).get(name) for name in ("model", "eval_setting", "cell"))
        protocol = _object(each.get("protocol"), f"{where}, protocol")
        if not all(isinstance(text, str) for text in (model, setting, cell, *protocol.values())):
            raise StoreError(f"{where} should have a model, an eval_setting, a cell and a protocol of texts")
        found[str(model), str(setting), str(cell)] = dict(protocol)
    return found


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise StoreError(f"{where} should be an object")
    return value


def _spec(fields: Mapping[str, str], where: str) -> MetricSpec:
    """Parses the declaration of the metric.

    Raises:
        StoreError: If a field has an invalid value.
    """
    better, headline, zero_one = fields["better"], fields["headline"], fields["zero_one"]
    if better not in ("", *DIRECTIONS) or not re.fullmatch(r"-?[0-9]{1,3}", headline) or zero_one not in _TRUTH:
        raise StoreError(f"{where}: better, headline and zero_one are not as testbed publish writes them")
    bounds = _number(fields["lowest"], where), _number(fields["highest"], where)
    unit = fields["unit"]
    if len(unit) > 32:
        raise StoreError(f"{where}: the unit {unit!r:.40} has more than 32 characters")
    try:
        name, direction = (
            _name(fields, "metric", where),
            next((literal for literal in DIRECTIONS if literal == better), None),
        )
        return MetricSpec(name, unit, direction, *bounds, int(headline), _TRUTH[zero_one])
    except DefinitionError as error:
        raise StoreError(f"{where}: {error}") from None


def _name(fields: Mapping[str, str], key: str, where: str) -> str:
    if not 0 < len(fields[key]) <= _LONGEST:
        raise StoreError(f"{where}: {key} should have 1 to {_LONGEST} characters")
    return fields[key]


def _number(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        found = float(text) if re.fullmatch(r"[-+0-9.e]{1,40}", text) else math.nan
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise StoreError(f"{where}: a number was expected, not {text!r:.40}")
    return found


def _count(text: str, where: str) -> int | None:
    if not re.fullmatch(r"[0-9]{0,9}", text):
        raise StoreError(f"{where}: n should be a number of samples, not {text!r:.40}")
    return int(text) if text else None
