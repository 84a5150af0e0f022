"""The table of results as a web page with plots: ``table.html`` beside the pages of samples."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

from testbed.plotting.frame import CORRUPTED, METRICS, grid, model_types, results_frame
from testbed.plotting.scatter import METRIC_LABELS, NOT_FITTED
from testbed.plotting.style import STANDARD, TYPES

PAGES = ("site.html", "site.css", "site.js")
TABLE, DATA = "table.html", "data.js"
DIGITS = 4  # of percentages: the published table has no more that mean something
GROUPS = (
    ("ImageNet", re.compile(r"val(_|-on-|$).*|imagenet-real")),
    ("ImageNetV2", re.compile(r"imagenetv2-.*")),
    ("natural shifts", re.compile(r"imagenet-(a|r|sketch|vid-robust.*)|objectnet.*|ytbb-robust.*|openimages.*")),
    ("averages", re.compile(r"avg_.*|[a-z_]+_(in-memory|on-disk)")),
    ("attacks", re.compile(r"(pgd|autoattack)\..*")),
    ("corruptions, in memory", re.compile(r"imagenet-c\..*_in-memory|greyscale")),
    ("corruptions, on disk", re.compile(r"imagenet-c\..*_on-disk|stylized_imagenet")),
)


def column_group(column: str) -> str:
    """The heading under which a column is listed."""
    return next((name for name, pattern in GROUPS if pattern.fullmatch(column)), "others")


def site_data(db_url: str | None, metric: str = "top1") -> dict[str, Any]:
    """What the page shows, as plain values; percentages, None where there is no result.

    Args:
        db_url: The store.
        metric: Which metric; with ``"top1"`` come the columns of pm0 and pm10.
    """
    frame = results_frame(db_url, metrics=METRICS if metric == "top1" else [metric])
    values = grid(frame)
    made = set(values.columns) - set(frame["column"])
    names = sorted(values.columns, key=_column_order)
    values = values[names]
    if "val" in values:
        values = values.sort_values("val", ascending=False, kind="stable")
    sizes = frame.groupby("column")["n"].max()
    types = model_types(frame)
    place = {name: index for index, name in enumerate(names)}
    own: dict[str, list[int]] = {}
    for row in frame[frame["origin"] != "imported"].itertuples():
        if row.column in place:
            own.setdefault(row.model, []).append(place[row.column])
    return {
        "models": [
            {"name": name, "type": types[name] if isinstance(types[name], str) else None} for name in values.index
        ],
        "columns": [
            {
                "name": name,
                "group": column_group(name),
                "n": None if math.isnan(sizes.get(name, math.nan)) else int(sizes[name]),
                "averaged": name in made,
            }
            for name in names
        ],
        "values": [[_percent(value) for value in row] for row in values.to_numpy()],
        "own": [sorted(own.get(name, ())) for name in values.index],
        "types": [{"name": name, "colour": colour, "symbol": symbol} for name, (colour, symbol) in TYPES.items()],
        "standard": STANDARD,
        "notFitted": list(NOT_FITTED),
        "metric": METRIC_LABELS.get(metric, metric),
        "written": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def _percent(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, DIGITS)


def _column_order(name: str) -> tuple[Any, ...]:
    """Val first, then group by group."""
    order = [group for group, _ in GROUPS]
    group = column_group(name)
    found = CORRUPTED.fullmatch(name)
    return (
        name != "val",
        order.index(group) if group in order else len(order),
        (found["corruption"], found["severity"]) if found else (name, ""),
    )


def page(name: str) -> bytes:
    """A file of the page, as it is installed."""
    return (files("testbed.plotting") / name).read_bytes()


def script(data: dict[str, Any]) -> bytes:
    """The data as a script, since a page of the file system may not read files."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    safe = text.replace("</", "<\\/")
    return f"window.TESTBED = {safe};\n".encode()


def contents(data: dict[str, Any]) -> dict[str, bytes]:
    """The files of the page.

    Args:
        data: As `site_data`, with the store's name as ``source``.
    """
    return {**{TABLE if name == "site.html" else name: page(name) for name in PAGES}, DATA: script(data)}
