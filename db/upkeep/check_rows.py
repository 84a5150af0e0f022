"""Checks of rows: whether they are consistent, and whether their digests match their contents."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, get_args

import sqlalchemy as sa
from sqlalchemy.orm import Session

from testbed.data.source import dataset_of
from testbed.db.parts.matching import matching_positions
from testbed.db.parts.names import check_name
from testbed.db.parts.records import RECORD, SET_ASIDE
from testbed.db.tables import (
    CertificateRow,
    EvalSettingRow,
    EvaluationRecordRow,
    EvaluationRow,
    MetricRow,
    ModelRow,
    SampleErrorRow,
    SampleRow,
)
from testbed.db.upkeep.damage import Fault, Inventory, RowChange
from testbed.entities import Origin, SampleInfo, Status
from testbed.errors import StoreError
from testbed.identity.describe import digest
from testbed.identity.fingerprints import cell_fingerprint, forward_fingerprint, weights_identity

UNIDENTIFIED = "unidentified"
_PARTS = {"model", "forward", "view", "samples", "dtype"}


def check_names(known: Inventory) -> Iterator[Fault]:
    """Checks that names are usable."""
    for kind, rows in (("model", known.models), ("eval setting", known.settings)):
        for key, row in rows.items():
            try:
                if "name" in row:
                    check_name(kind, row["name"])  # type: ignore[arg-type]
            except StoreError as error:
                table = ModelRow if kind == "model" else EvalSettingRow
                yield Fault(str(error), (RowChange(table, {"id": key}, {"name": f"recovered-{key}"}),))


def check_samples(known: Inventory) -> Iterator[Fault]:
    """Checks that lists of samples are complete and match their fingerprint."""
    found = set(known.ask(lambda session: session.scalars(sa.select(SampleRow.dataset_id).distinct()).all()))
    for dataset_id in sorted(found - known.datasets.keys()):
        yield known.samples(dataset_id, "belong to a data set that is not in the store")
    for dataset_id in sorted(known.datasets):
        if dataset_id in found or any(known.is_complete(number) for number in known.of_dataset(dataset_id)):
            rows = list(known.read(SampleRow, dataset_id=dataset_id))
            yield from _check_list(known, dataset_id, sorted(rows, key=lambda row: row.get("position", -1)))


def _check_list(known: Inventory, dataset_id: int, rows: list[dict[str, Any]]) -> Iterator[Fault]:
    dataset = known.datasets[dataset_id]
    size = dataset.get("size")
    if [row.get("position") for row in rows] != list(range(size or 0)):
        yield known.samples(dataset_id, f"are {len(rows)}; {size} belong to it")
        return
    names = dataset.get("class_names")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        yield known.samples(dataset_id, "have class names that are not a list of texts")
    fields = ("sample_id", "digest", "target", "group_name", "slices")
    if not all(field in row for row in rows for field in fields):
        return  # already reported
    samples = [SampleInfo(*(row[field] for field in fields)) for row in rows]
    if len({sample.id for sample in samples}) != len({(sample.id, sample.digest) for sample in samples}):
        yield known.samples(dataset_id, "have a duplicate name")  # a setting may repeat a sample
    elif dataset.get("fingerprint") not in list(_fingerprints(samples, names)):
        yield known.samples(
            dataset_id, "do not match its fingerprint: an id, a digest, a target or a class was changed"
        )


def _fingerprints(samples: list[SampleInfo], names: Any) -> Iterator[str]:
    """The digests that a list of samples may have."""
    # SQLite stores the number 3.0 in a JSON column as 3.
    numbers = [
        SampleInfo(sample.id, sample.digest, float(sample.target), sample.group, sample.slices)
        if isinstance(sample.target, int) and not isinstance(sample.target, bool)
        else sample
        for sample in samples
    ]
    for part in (samples, numbers):
        yield dataset_of("", part, names if isinstance(names, list) else None).fingerprint


def check_definitions(known: Inventory) -> Iterator[Fault]:
    """Checks that definitions match their digest, and that none is missing."""
    for name, row in known.definitions.items():
        if "content" in row and name != digest(row["content"]):
            yield known.definition(name, "was changed: its content does not match its digest")
    for key, evaluation in known.evaluations.items():
        if not known.is_complete(key):
            continue  # its run will store them
        for part, value in _identity(evaluation).items():
            if part in ("model", "forward", "view", SET_ASIDE) and value not in known.definitions:
                hide = known.with_derived(key) if part == SET_ASIDE else frozenset[int]()
                again = frozenset([key]) - hide
                yield Fault(f"{known.cell(key)} has no definition of its {part} ({value})", again=again, hide=hide)


def check_evaluations(known: Inventory) -> Iterator[Fault]:
    """Checks that evaluations belong to a model, a setting and samples, and that fingerprints match identities."""
    for key, row in known.evaluations.items():
        hidden = known.with_derived(key)
        for link, names, table in (
            ("model_id", known.models, ModelRow),
            ("eval_setting_id", known.settings, EvalSettingRow),
        ):
            if link in row and row[link] not in names:
                change = RowChange(table, {}, {"id": row[link], "name": f"recovered-{row[link]}"})
                yield Fault(f"{known.cell(key)}: its {link} {row[link]} is missing from its table", (change,))
        for link, others in (("dataset_id", known.datasets), ("derived_from_id", known.evaluations)):
            if row.get(link) is not None and row[link] not in others:
                change = RowChange(EvaluationRow, {"id": key}, {link: None})
                yield Fault(
                    f"{known.cell(key)}: its {link} {row[link]} is missing from its table", (change,), hide=hidden
                )
        if row.get("hidden_at") is not None and row.get("status") == "failed":
            continue  # `repair` set it aside
        if known.is_complete(key) and None in (row.get("completed_at", ""), row.get("current_at", "")):
            yield known.scoring(key, "is complete, but without a completion time")
        for what in _wrong(known, key, row):
            yield Fault(f"{known.cell(key)} {what}", hide=hidden)
        if row.get("status") == "complete" and "derived_from_id" in row and row["derived_from_id"] in known.evaluations:
            pair = row.get("dataset_id"), known.evaluations[row["derived_from_id"]].get("dataset_id")
            places = known.ask(partial(_places, pair))
            if None in places:
                lacking = f"{places.count(None)} of its samples are not among those of its source"
                yield Fault(f"{known.cell(key)}: {lacking} (evaluation {row['derived_from_id']})", hide=hidden)


def _places(pair: tuple[Any, Any], session: Session) -> list[int | None]:
    return matching_positions(session, *pair)


def _wrong(known: Inventory, key: int, row: dict[str, Any]) -> Iterator[str]:
    """Describes faults of the columns of an evaluation."""
    if row.get("status", "failed") not in get_args(Status):
        yield f"has an unknown status {row['status']!r}"
    if row.get("origin", "run") not in get_args(Origin):
        yield f"has an unknown origin {row['origin']!r}"
    if row.get("origin") == "derived" and row.get("derived_from_id") is None and row.get("status") == "complete":
        yield "is derived, but from no evaluation"
    if row.get("derived_from_id") == key:
        yield "is derived from itself"
    if row.get("status") != "complete" or row.get("origin") == "imported":
        return
    dataset = known.datasets.get(row.get("dataset_id", -1))
    if dataset is None:
        yield "is complete, but has no samples"
    elif {"size"} <= row.keys() & dataset.keys() and row["size"] != dataset["size"]:
        yield f"has {row['size']} samples; its data set has {dataset['size']}"
    if row.get("sample_limit") is not None and not (row.get("size") or 0) <= row["sample_limit"]:
        yield f"was limited to {row['sample_limit']} samples, but has {row.get('size')}"
    yield from _wrong_identity(known, row, dataset or {})


def _wrong_identity(known: Inventory, row: dict[str, Any], dataset: dict[str, Any]) -> Iterator[str]:
    identity = _identity(row)
    if not identity.keys() >= _PARTS:
        return
    if identity["samples"] != dataset.get("fingerprint"):
        yield "has other samples than its identity"
    if identity["dtype"] != row.get("dtype"):
        yield f"ran in {row.get('dtype')}; its identity has {identity['dtype']}"
    model, forward, view = (known.definitions.get(identity[part], {}).get("content") for part in _FULL)
    if not (
        isinstance(model, dict) and {"spec", "weights"} <= model.keys() and forward is not None and view is not None
    ):
        return  # reported by `check_definitions`
    outputs = forward_fingerprint(weights_identity(model["spec"], model["weights"]), identity["dtype"], forward)
    before = known.definitions.get(identity.get(SET_ASIDE, ""), {}).get("content") or {}
    source = known.evaluations.get(row.get("derived_from_id") or -1, {})
    if source and SET_ASIDE not in identity and not _same_outputs(identity, _identity(source)):
        yield f"is derived from evaluation {source.get('id')}, which has different outputs"
    held, aside = row.get("forward_fingerprint"), _set_aside(before.get("forward"), row.get("id"), source)
    if held is None or held not in {outputs, source.get("forward_fingerprint"), *aside}:
        yield "has a fingerprint of outputs that does not match its identity"
    whole = {cell_fingerprint(entry, identity["samples"], view) for entry in (outputs, held)}
    if row.get("fingerprint") not in {*whole, *_set_aside(before.get("fingerprint"), row.get("id"), source)}:
        yield "has a fingerprint that does not match its identity"


_FULL = ("model", "forward", "view")


def _same_outputs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether two identities describe outputs that are computed in the same way, as far as comparable."""
    if SET_ASIDE in other:
        return True
    return all(one.get(part) == other.get(part) for part in ("model", "forward", "dtype"))


def _set_aside(before: str | None, own: Any, source: dict[str, Any]) -> set[str]:
    """The possible fingerprints of an evaluation that was set aside."""
    if before is None:
        return set()
    return {before, *(digest([before, SET_ASIDE, source_id]) for source_id in (own, source.get("id")))}


def _identity(row: dict[str, Any]) -> dict[str, Any]:
    identity = row.get("identity")
    return identity if isinstance(identity, dict) else {}


def check_metrics(known: Inventory) -> Iterator[Fault]:
    """Checks that complete evaluations have metrics, and that imported ones match their table."""
    having: set[int] = set()
    for row in known.read(MetricRow):
        owner = row.get("evaluation_id")
        having.add(owner)
        if owner not in known.evaluations:
            yield _orphan(known, MetricRow, row)
            continue
        what = f"has a metric {row.get('name')} ({row.get('slice')})"
        if row.get("n") is not None and row["n"] < 0:
            yield known.scoring(owner, f"{what} of {row['n']} samples")
        if row.get("stderr") is not None and row["stderr"] < 0:
            yield known.scoring(owner, f"{what} with a negative standard error")
        if {"value", "published"} <= row.keys() and row["published"] is not None and not _as_published(row):
            yield known.scoring(owner, f"{what} of {row['value']}; its table has {row['published']}")
    for key, row in known.evaluations.items():
        if row.get("status") == "complete" and key not in having:
            yield known.scoring(key, "is complete, but has no metrics")


def _as_published(row: dict[str, Any]) -> bool:
    try:
        published = Decimal(row["published"])
        return row["value"] in (float(published), float(published / 100))
    except (InvalidOperation, OverflowError):
        return False


def _orphan(known: Inventory, table: type[Any], row: dict[str, Any]) -> Fault:
    key = {column.name: row[column.name] for column in table.__table__.primary_key if column.name in row}
    return Fault(f"{table.__tablename__}: a row of {known.cell(row.get('evaluation_id'))}", (RowChange(table, key),))


def check_errors(known: Inventory) -> Iterator[Fault]:
    """Checks that unreadable samples belong to their evaluation."""
    for row in known.read(SampleErrorRow):
        owner = known.evaluations.get(row.get("evaluation_id", -1))
        if owner is None:
            yield _orphan(known, SampleErrorRow, row)
        elif not 0 <= row.get("position", 0) < (owner.get("size") or 0):
            change = RowChange(SampleErrorRow, {"evaluation_id": row["evaluation_id"], "position": row["position"]})
            text = f"{known.cell(row['evaluation_id'])} has an unreadable sample {row['position']} outside its samples"
            yield Fault(text, (change,), again=known.with_derived(row["evaluation_id"]))


def check_records(known: Inventory) -> Iterator[Fault]:
    """Checks that records and certificates belong to evaluations, and are consistent."""
    for row in known.read(EvaluationRecordRow):
        key = {name: row.get(name) for name in ("evaluation_id", "record")}
        if row.get("evaluation_id") not in known.evaluations:
            yield _orphan(known, EvaluationRecordRow, row)
        elif known.definitions.get(row.get("record", ""), {}).get("kind") != RECORD:
            text = f"{known.cell(row['evaluation_id'])} has no record {row.get('record')}"
            yield Fault(text, (RowChange(EvaluationRecordRow, key),))
    for row in known.read(CertificateRow):
        if row.get("evaluation_id") not in known.evaluations:
            yield _orphan(known, CertificateRow, row)
            continue
        samples = row.get("samples", 0)
        numbers = [number for number in (row.get("differing", 0), row.get("flips")) if number is not None]
        because = row.get("because", [])
        if not all(0 <= number <= samples for number in numbers) or not isinstance(because, list):
            text = f"{known.cell(row['evaluation_id'])} has a check (certificate {row.get('id')}) that cannot be true"
            yield Fault(text, (RowChange(CertificateRow, {"id": row.get("id")}),))
