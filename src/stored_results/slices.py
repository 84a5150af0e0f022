"""Groups of samples: by class, by a slice of the data set, or by a column of a CSV."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from testbed.db.store import Store
from testbed.entities import Better, SampleInfo
from testbed.errors import DataError
from testbed.metric_specs import MetricSpec
from testbed.metrics.inference.groups import Groups, by_group
from testbed.spreadsheet import plain, reading_csv
from testbed.stored_results.main_scores import larger_is_better, score_spec
from testbed.stored_results.mistakes import infos_of
from testbed.stored_results.predictions import best_names, class_names
from testbed.stored_results.side_by_side import SampleTable, SideBySide, Tell, choose, clusters_in, side_by_side

CLASS = "class"
GROUP = "group"
ID = "id"
TRAINING_SHARE = "_training_share"  # of the group that the slice or column without it names
Labels = list[str | None]


class GroupScores(NamedTuple):
    """Models on groups of samples.

    Attributes:
        by: What samples are grouped by.
        rows: Each model and its groups.
        binary: Whether all scores are 0 or 1.
        spec: What the score declares.
    """

    by: str
    rows: list[tuple[str, Groups]]
    binary: bool
    spec: MetricSpec


def grouped(
    store: Store,
    setting: str,
    models: Sequence[str],
    score: str,
    by: str | None = None,
    csv_file: Path | None = None,
    tell: Tell = lambda note: None,
    better: Better | None = None,
) -> GroupScores:
    """Means over groups of the samples that all models have; weighted by training shares, if these are known.

    The training share of a group is another slice of its samples, or another column of the file, named as the groups
    are with ``_training_share`` after it.

    Args:
        models: Names or patterns; none means all.
        score: The per-sample score.
        by: ``class``, ``group``, a key of the samples' slices, or a column of the file. None: the only choice, if it is
            unambiguous: the file's only column, else the samples' group, else their only slice, else their class.
        csv_file: A table with a column ``id`` and columns of groups.
        tell: Called with notes on what was left out.
        better: Whether the ``"higher"`` or the ``"lower"`` score is better; by default what it declares.

    Raises:
        StoreError: If there are no such scores, or it is not known which is better.
        DataError: If there are no such groups, or the file is invalid.
    """
    evaluations = choose(store, [setting], models, score, tell=tell)[setting]
    spec = score_spec(store, evaluations.values(), score)
    larger = larger_is_better(spec, better)
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, evaluations, score, tell)
    return grouped_in(store, samples, table, spec, larger, by, csv_file, tell)


def grouped_in(
    store: Store,
    samples: SampleTable,
    table: SideBySide,
    spec: MetricSpec,
    larger: bool,
    by: str | None = None,
    csv_file: Path | None = None,
    tell: Tell = lambda note: None,
) -> GroupScores:
    """Computes `grouped` for models that are already side by side.

    Args:
        samples: The data sets of that store.
        table: The models.
        spec: The declaration of their score.
        larger: Whether a larger score is better.
        by: See `grouped`.
        csv_file: See `grouped`.
        tell: Called with notes on what was left out.

    Raises:
        DataError: If there are no such groups, or the file is invalid.
    """
    by, labels = labels_by(store, samples, table, by, csv_file, tell)
    clusters = None if by == GROUP else clusters_in(samples, table)  # a group by itself is one cluster
    shares = training_shares(samples, table, by, labels, csv_file)
    found = [
        (model, by_group(table.scores[:, column], labels, larger, spec, clusters, shares))
        for column, model in enumerate(table.models)
    ]
    return GroupScores(by, found, table.binary, spec)


def groupings(samples: SampleTable, table: SideBySide) -> list[str]:
    """The possible values of ``by`` for the samples of a table, apart from ``class``."""
    infos = infos_of(samples, table)
    keys = _keys(infos)
    return keys if GROUP in keys or all(info.group is None for info in infos) else [GROUP, *keys]


def labels_by(
    store: Store,
    samples: SampleTable,
    table: SideBySide,
    by: str | None,
    csv_file: Path | None = None,
    tell: Tell = lambda note: None,
) -> tuple[str, Labels]:
    """Returns the grouping of a table's samples, and the group of each; see `grouped`.

    Raises:
        DataError: If there are no such groups, or the file is invalid.
    """
    infos, setting = infos_of(samples, table), table.eval_setting
    if csv_file is not None:
        rows = read_csv(csv_file)
        names = [name for name in next(iter(rows.values())) if name != ID and not name.endswith(TRAINING_SHARE)]
        by = _only(by, names, f"{csv_file}", "column")
        labels = _from_rows(rows, by, infos, f"{csv_file}", setting, tell)
    else:
        by = by or _default(infos, setting)
        labels = _by_class(store, samples, table, infos) if by == CLASS else _by_slice(infos, by, setting)
    missing = sum(label is None for label in labels)
    if missing == len(labels):
        raise DataError(f"no sample of {setting} has a group by {by}")
    if missing:
        tell(f"{missing:,} of {len(labels):,} samples have no group by {by} and are not counted")
    return by, labels


def training_shares(
    samples: SampleTable, table: SideBySide, by: str, labels: Labels, csv_file: Path | None = None
) -> dict[str, float] | None:
    """The training share of each group, as its samples declare it; None if they do not.

    Raises:
        DataError: If a share is not a number of 0 or more, or the samples of a group have different ones, or all are 0.
    """
    key, infos = by + TRAINING_SHARE, infos_of(samples, table)
    if csv_file is None:
        given = [(info.slices or {}).get(key) for info in infos]
    else:
        rows = read_csv(csv_file)
        given = [rows.get(info.id, {}).get(key) for info in infos]
    pairs = {(label, share) for label, share in zip(labels, given, strict=True) if label is not None}
    if all(share is None for _, share in pairs):
        return None
    shares: dict[str, float] = {}
    for label, share in sorted(pairs, key=str):
        number = _share(share)
        if number is None or label in shares:
            raise DataError(
                f"{table.eval_setting}: the group {label!r} has the {key} {share!r}; one number of 0 or more, the same"
                " for all of its samples, is expected"
            )
        shares[label] = number
    if not sum(shares.values()) > 0:
        raise DataError(f"{table.eval_setting}: every {key} is 0")
    return shares


def _share(value: Any) -> float | None:
    """Returns a share as a number; None if it is not one."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number >= 0 and math.isfinite(number) and not isinstance(value, bool) else None


# What the data set has --------------------------------------------------------------------------------------------


def _keys(infos: Sequence[SampleInfo]) -> list[str]:
    """The keys of the samples' slices, sorted; without those that are training shares."""
    keys = {key for info in infos for key in info.slices or {}}
    return sorted(key for key in keys if not key.endswith(TRAINING_SHARE))


def _default(infos: Sequence[SampleInfo], setting: str) -> str:
    if any(info.group is not None for info in infos):
        return GROUP
    keys = _keys(infos)
    return _only(None, keys, f"the samples of {setting}", "slice") if keys else CLASS


def _only(by: str | None, names: Sequence[str], whose: str, what: str) -> str:
    """The requested name, or the only one."""
    listed = ", ".join(names) or "none"
    if by is not None and by not in names:
        raise DataError(f"{whose}: there is no {what} {by!r}; available: {listed}")
    if by is None and len(names) != 1:
        raise DataError(f"{whose}: choose a {what} with --by; available: {listed}")
    return by if by is not None else names[0]


def _by_slice(infos: Sequence[SampleInfo], by: str, setting: str) -> Labels:
    keys = _keys(infos)
    if by == GROUP and GROUP not in keys:
        return [info.group for info in infos]
    if by not in keys:
        there = [CLASS, *([GROUP] if any(info.group is not None for info in infos) else []), *keys]
        raise DataError(f"the samples of {setting} have no slice {by!r}; --by takes: {', '.join(there)}")
    return [slice_text((info.slices or {}).get(by)) for info in infos]


def slice_text(value: Any) -> str | None:
    """The value of a slice as a label; other values than strings as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True)


def _by_class(store: Store, samples: SampleTable, table: SideBySide, infos: Sequence[SampleInfo]) -> Labels:
    """The name of the true class of each sample; None if it does not have exactly one."""
    cells = table.evaluations
    named = best_names(class_names(store.evaluations.identity(cell), samples.of(cell)) for cell in cells)
    labels: Labels = []
    for info in infos:
        target = info.target[0] if isinstance(info.target, list) and len(info.target) == 1 else info.target
        labels.append(named.of(target) if type(target) is int else None)
    return labels


# What a file has --------------------------------------------------------------------------------------------------


def read_csv(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a CSV table, by the column ``id``.

    Raises:
        DataError: If the file cannot be read, lacks the column ``id`` or any other column, or repeats an id.
    """
    rows: dict[str, dict[str, str]] = {}
    with reading_csv(path) as reader:
        columns = list(reader.fieldnames or ())
        if ID not in columns or len(set(columns)) != len(columns) or len(columns) < 2:
            raise DataError(
                f"{path}: expected a column 'id' and one or more columns of groups, with different names; found:"
                f" {', '.join(columns) or 'none'}"
            )
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{path}, line {reader.line_num}: expected {len(columns)} values")
            row = {name: plain(value) for name, value in row.items()}
            if row[ID] in rows:
                raise DataError(f"{path}, line {reader.line_num}: the id {row[ID]!r} occurs twice")
            rows[row[ID]] = row
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    return rows


def _from_rows(
    rows: dict[str, dict[str, str]], by: str, infos: Sequence[SampleInfo], path: str, setting: str, tell: Tell
) -> Labels:
    """The label of each sample in a column; None if the file has no row for it, or an empty cell."""
    known = {info.id for info in infos}
    strange = [name for name in rows if name not in known]
    if len(strange) == len(rows):
        raise DataError(
            f"{path}: none of its {len(rows):,} ids is a sample of {setting}; the first is {strange[0]!r}, while"
            f" the setting has ids such as {infos[0].id!r}"
        )
    if strange:
        tell(f"{len(strange):,} of the {len(rows):,} ids in {path} are not compared samples, such as {strange[0]!r}")
    return [rows[info.id][by].strip() or None if info.id in rows else None for info in infos]
