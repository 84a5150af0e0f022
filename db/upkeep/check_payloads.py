"""Checks of arrays: their bytes, shapes and completeness."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from testbed.db.parts.items import AGAIN
from testbed.db.payloads import encoding
from testbed.db.payloads.locations import Location
from testbed.db.ranges import Ranges, merged
from testbed.db.tables import ArtifactRow, ItemValueRow, OutputChunkRow, SampleErrorRow, ScoreRow
from testbed.db.upkeep.damage import Fault, Inventory, RowChange
from testbed.errors import CorruptOutputError, StoreDamagedError, UnreadOutputError

UNKNOWN = "these outputs cannot be checked until their storage answers"
REMOVE = "remove the evaluation (testbed store remove evaluation) and run it again"
PURGE = "delete what was removed (testbed store purge)"
CHANGED = "the stored bytes differ from their checksum"


def check_chunks(known: Inventory) -> Iterator[Fault]:
    """Checks that outputs are undamaged, and that each kind covers every readable sample."""
    rows = sorted(
        (row for row in known.read(OutputChunkRow) if {"evaluation_id", "kind", "start"} <= row.keys()),
        key=lambda row: (row["evaluation_id"], row["kind"], row["start"]),
    )
    kinds: dict[int, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        kinds.setdefault(row["evaluation_id"], {}).setdefault(row["kind"], []).append(row)
        if row["evaluation_id"] not in known.evaluations:
            yield known.chunk(row, "outputs of no evaluation")
        elif row.keys() >= {"count", "dtype", "shape", "checksum", "size_bytes", "uri"}:
            yield from _check_chunk(known, row)
    for chunks in (chunks for of in kinds.values() for chunks in of.values()):
        yield from _check_row(known, chunks)
    yield from _check_coverage(known, kinds)
    for base, skipped in sorted(known.silent.items()):
        if skipped:
            yield Fault(f"{skipped:,} more files of outputs at {base} were not tried", lasts=UNKNOWN)


def _check_chunk(known: Inventory, row: dict[str, Any]) -> Iterator[Fault]:
    size = known.evaluations[row["evaluation_id"]].get("size")
    if row["start"] < 0 or row["count"] < 0 or (size is not None and row["start"] + row["count"] > size):
        yield known.chunk(row, f"the evaluation has {size} samples")
        return
    data: bytes | memoryview | str
    if row["uri"]:
        place = Location.of(row)
        if place.base in known.silent:
            known.silent[place.base] += 1
            return
        try:
            data = encoding.read(place)
        except UnreadOutputError as error:  # the disk or the bucket may return
            text = f"{known.cell(row['evaluation_id'])}, {row['kind']}, samples from {row['start']}: {error}"
            if error.silent:
                known.silent[error.silent] = 0
                yield Fault(text, lasts=f"{UNKNOWN}; the other files there are skipped")
            else:
                removed = known.evaluations[row["evaluation_id"]].get("hidden_at") is not None
                yield Fault(text, lasts=f"bring the file back, or {PURGE if removed else REMOVE}")
            return
    else:
        key = {name: row[name] for name in ("evaluation_id", "kind", "start")}
        data = _payload(known, OutputChunkRow, key)
    wrong = _wrong(data, row["checksum"], row["dtype"], [row["count"], *_as_list(row["shape"])])
    if wrong is None and len(data) != row["size_bytes"]:
        wrong = f"{len(data)} bytes are stored, {row['size_bytes']} were written"
    if wrong:
        yield known.chunk(row, wrong)


def _check_row(known: Inventory, chunks: Sequence[dict[str, Any]]) -> Iterator[Fault]:
    """Checks that the chunks of one kind have one shape and type, and do not overlap."""
    first, end = chunks[0], 0
    for record in chunks:
        if "count" not in record:
            continue
        if record["start"] < end:
            yield known.chunk(record, f"overlaps the outputs before, which end at {end}")
        end = max(end, record["start"] + record["count"])
        for column in ("shape", "dtype"):
            if column in record.keys() & first.keys() and record[column] != first[column]:
                yield known.chunk(record, f"has the {column} {record[column]}; the outputs before have {first[column]}")


def _check_coverage(known: Inventory, kinds: dict[int, dict[str, Any]]) -> Iterator[Fault]:
    unread: dict[int, Ranges] = {}
    errors = sa.select(SampleErrorRow.evaluation_id, SampleErrorRow.position)
    for evaluation_id, position in known.ask(lambda session: session.execute(errors).all()):
        unread.setdefault(evaluation_id, []).append((position, position + 1))
    for key, row in known.evaluations.items():
        if not known.is_complete(key) or row.get("origin") != "run" or not isinstance(row.get("size"), int):
            continue
        for kind, chunks in kinds.get(key, {"outputs": []}).items():
            pieces = [(chunk["start"], chunk["start"] + chunk.get("count", 0)) for chunk in chunks]
            covered = merged([*pieces, *unread.get(key, ())])
            if row["size"] and covered != [(0, row["size"])]:
                end = covered[0][1] if covered and covered[0][0] == 0 else 0
                text = f"{known.cell(key)} is complete, but its outputs end at {end} of {row['size']} ({kind})"
                yield Fault(text, again=known.with_derived(key))


def check_scores(known: Inventory) -> Iterator[Fault]:
    """Checks that scores are undamaged, with one value for each sample."""
    for row in list(known.read(ScoreRow)):
        owner = row.get("evaluation_id")
        if not row.keys() >= {"evaluation_id", "scorer", "name", "count", "dtype", "checksum"}:
            continue
        key = {name: row[name] for name in ("evaluation_id", "scorer", "name")}
        if owner not in known.evaluations:
            yield Fault(f"{known.cell(owner)}, score {row['name']}", (RowChange(ScoreRow, key),))
            continue
        wrong = _wrong(_payload(known, ScoreRow, key), row["checksum"], row["dtype"], [row["count"]])
        size = known.evaluations[owner].get("size")
        if wrong is None and size is not None and row["count"] != size:
            wrong = f"{row['count']} values for {size} samples"
        if wrong:
            yield known.scoring(owner, f"has a damaged score {row['name']}: {wrong}")


def check_artifacts(known: Inventory) -> Iterator[Fault]:
    """Checks that heads and probes are undamaged."""
    for row in list(known.read(ArtifactRow)):
        if row.keys() >= {"fingerprint", "dtype", "shape", "checksum"}:
            key = {"fingerprint": row["fingerprint"]}
            wrong = _wrong(_payload(known, ArtifactRow, key), row["checksum"], row["dtype"], _as_list(row["shape"]))
            if wrong:
                text = f"artifact {row['fingerprint']} ({row.get('kind')}{_about(row.get('spec'))}): {wrong}"
                yield Fault(text, (RowChange(ArtifactRow, key),))


def _about(spec: Any) -> str:
    """Describes the model and the setting of an artifact."""
    fields = spec if isinstance(spec, dict) else {}
    names = [name for name in ("model", "eval_setting", "setting") if isinstance(fields.get(name), str)]
    told = [f"{name} {fields[name]}" for name in names]
    return f" of {', '.join(told)}" if told else ""


def check_item_values(known: Inventory) -> Iterator[Fault]:
    """Checks that embeddings and answers are undamaged."""
    for row in list(known.read(ItemValueRow)):
        if row.keys() >= {"node", "digest", "dtype", "shape", "checksum"}:
            key = {name: row[name] for name in ("node", "digest")}
            wrong = _wrong(_payload(known, ItemValueRow, key), row["checksum"], row["dtype"], _as_list(row["shape"]))
            if wrong:
                what = f"the embedding of the text {row['digest']} ({known.cells(known.mentioning(row['node']))})"
                yield Fault(f"{what}: {wrong}; {AGAIN}", (RowChange(ItemValueRow, key),))


# Bytes ------------------------------------------------------------------------------------------------------------


def _payload(known: Inventory, table: Any, key: dict[str, Any]) -> bytes | str:
    """The bytes of a row; a text if there are none, or if the database reports them as corrupt."""
    columns = table.__table__.columns
    wanted = sa.select(columns.payload).where(*(columns[name] == key[name] for name in key))
    try:
        found = known.ask(lambda session: session.scalar(wanted))
    except StoreDamagedError as error:
        return f"the stored bytes cannot be read: {error.what}"
    return bytes(found) if isinstance(found, bytes | memoryview) else "no bytes are stored"


def _as_list(shape: Any) -> list[Any]:
    return shape if isinstance(shape, list) else [shape]


def _wrong(data: bytes | memoryview | str, checksum: str, dtype: str, shape: Sequence[Any]) -> str | None:
    """Describes the fault of an encoded array; None without a fault."""
    if isinstance(data, str):
        return data
    try:
        encoding.verify(data, checksum, "")
    except CorruptOutputError:
        return CHANGED
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        return f"the shape {list(shape)} is invalid"
    if dtype == encoding.JSON:
        try:
            values = json.loads(bytes(data))
        except (ValueError, RecursionError):
            return "the stored bytes are not JSON"
        return None if isinstance(values, list) and len(values) == shape[0] else f"{shape[0]} values were expected"
    try:
        width = encoding.width(dtype)
    except TypeError:
        return f"{dtype!r} is not a numeric type"
    expected = math.prod(shape) * width
    return None if len(data) == expected else f"{len(data)} bytes are stored; {list(shape)} of {dtype} take {expected}"
