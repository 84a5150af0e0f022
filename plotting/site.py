"""The results as a web page: a folder that opens from the file system, needs no server and asks nobody for anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from testbed.console.options import ManyWords, ManyWordsCommand, data_root_option, run_command, store_options, use
from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.inputs import Inputs
from testbed.plotting.frame import CORRUPTED, METRICS, grid, model_types, results_frame
from testbed.plotting.gallery import Hard, hardest_samples
from testbed.plotting.scatter import METRIC_LABELS, NOT_FITTED
from testbed.plotting.style import STANDARD, TYPES

PAGES = ("site.html", "site.css", "site.js")
INDEX = "index.html"
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


def write_site(out: Path, data: dict[str, Any], hard: Mapping[str, Sequence[Hard]]) -> list[Path]:
    """Writes the page.

    Args:
        out: The folder; created if missing. Files of the same names are replaced.
        data: As `site_data`.
        hard: The hardest samples of settings, with their pictures.

    Raises:
        TestbedError: If it cannot be written.
    """
    gallery: dict[str, list[dict[str, Any]]] = {}
    contents: dict[str, bytes] = {INDEX if name == "site.html" else name: page(name) for name in PAGES}
    for place, (setting, samples) in enumerate(hard.items()):
        gallery[setting] = []
        for number, each in enumerate(samples):
            image = f"samples/{place}-{number}.jpg" if each.picture else None
            if image and each.picture:
                contents[image] = each.picture
            gallery[setting].append({**each.described, "image": image})
    contents["data.js"] = script({**data, "gallery": gallery})
    written = []
    try:
        for name, content in contents.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            written.append(path)
    except OSError as error:
        raise TestbedError(f"{out} cannot be written: {error.strerror or error}") from error
    return written


@click.command(cls=ManyWordsCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--out", type=click.Path(path_type=Path), default=Path("site"), show_default=True, help="The folder.")
@click.option("--metric", default="top1", show_default=True, help="The metric to show.")
@click.option(
    "--gallery",
    cls=ManyWords,
    metavar="SETTING",
    help="Settings whose hardest samples to show, with pictures if the data are available.",
)
@store_options
@data_root_option
def command(
    out: Path,
    metric: str,
    gallery: Sequence[str],
    db_url: str | None,
    plugins: Sequence[str],
    data_root: str | None,
) -> int:
    """Write the stored results as a web page, to be opened from the file system or put on any server."""
    from testbed.db.store import Store
    from testbed.registry import registry

    use(Inputs.from_environment().but(data_root=data_root))
    registry.load(plugins)
    data = site_data(db_url, metric)
    if not data["models"]:
        raise TestbedError(f"the store has no results of {metric}; run eval.py, or db.py --import-results FILE")
    with Store.open(db_url) as store:
        data["source"] = store.display_url.rpartition("/")[2]
        hard = {setting: hardest_samples(store, registry, setting) for setting in gallery}
    written = write_site(out, data, hard)
    size = sum(path.stat().st_size for path in written)
    click.echo(
        f"{count(len(data['models']), 'model')} × {count(len(data['columns']), 'column')}:"
        f" {out / INDEX} ({count(len(written), 'file')}, {size / 1e6:.1f} MB)"
    )
    return 0


def main() -> None:
    """The program."""
    run_command(command)


if __name__ == "__main__":
    main()
