"""Stored results as pandas frames, the data of every figure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from testbed.db.store import Store
from testbed.entities import ELSEWHERE, OVERALL
from testbed.errors import StoreError
from testbed.metric_specs import DECLARED, NEITHER, MetricSpec, agreed, main_metric
from testbed.registry.references import is_part, says_parts
from testbed.stored_results.imagenet_testbed_table import METRIC_SUFFIXES

METRICS = ("top1", *METRIC_SUFFIXES)
FIELDS = (
    "model",
    "model_type",
    "eval_setting",
    "metric",
    "slice",
    "value",
    "n",
    "stderr",
    "clusters",
    "unit",
    "origin",
    "sample_limit",
    "random_weights",
    "evaluation_id",
    *DECLARED,
)
TEN_PERCENT = "_10percent"
CORRUPTED = re.compile(r"imagenet-c\.(?P<corruption>[a-z_]+)\.(?P<severity>[1-5])_(?P<form>in-memory|on-disk)")
SEVERITIES = 5
# Families of corruptions with an average of their own, and how many cells it has.
FAMILIES = {"imagenet-c-bar": 50, "imagenet-3dcc": 60, "laion-c": 30}
OF_FAMILY = re.compile(rf"(?P<family>{'|'.join(FAMILIES)})\.[a-z0-9_]+\.[1-5](?P<form>_in-memory|_on-disk|)")
MINUS = " - "  # between two columns, the name of their difference
AVERAGED_TOO = ("greyscale", "stylized_imagenet")


def results_frame(
    db_url: str | None = None,
    models: Iterable[str] | None = None,
    eval_settings: Iterable[str] | None = None,
    metrics: Sequence[str] | None = METRICS,
    origin: str = "any",
    sizes: bool = True,
    headlines: bool = False,
) -> pd.DataFrame:
    """Returns the reported results, one row for each model, setting and metric.

    Args:
        db_url: The store; the default is that of `testbed.results`.
        models: Only these.
        eval_settings: Only these.
        metrics: Only these; None means all.
        origin: ``"own"``, ``"elsewhere"`` (imported or published), or ``"any"``: ``"any"`` prefers the cell's own.
        sizes: Whether to look up the number of samples of published results among the registered settings.
        headlines: Whether to add declared main metrics to ``metrics``.

    Returns:
        A tidy frame: ``model``, ``model_type``, ``eval_setting``, ``column`` (the setting, or the setting and the
        metric as in ImageNet-testbed's table: ``X_pm0``), ``metric``, ``slice``, ``value`` (a fraction where it is a
        rate), ``n``, ``stderr``, ``clusters``, ``unit``, ``origin``, ``sample_limit``, ``random_weights``,
        ``evaluation_id``, and the metric's declaration (see `testbed.metric_specs.MetricSpec`): ``better``, ``lowest``,
        ``highest``, ``headline``, ``zero_one``.

    Raises:
        StoreError: If there is no store.
    """
    if origin not in ("own", "elsewhere", "any"):
        raise ValueError(f"origin must be 'own', 'elsewhere' or 'any', not {origin!r}")
    with Store.open(db_url) as store:
        rows = store.results.rows(FIELDS, models, eval_settings, metrics, [OVERALL], headlines)
    frame = pd.DataFrame(rows, columns=list(FIELDS))
    frame["n"] = pd.to_numeric(frame["n"]).astype(np.float64)
    for name in ("value", "stderr", "clusters"):
        frame[name] = pd.to_numeric(frame[name]).astype(np.float64)
    elsewhere = frame["origin"].isin(ELSEWHERE)
    if origin != "any":
        frame = frame[elsewhere if origin == "elsewhere" else ~elsewhere]
    else:  # evaluations that were run take precedence over imported ones
        frame = frame.assign(_elsewhere=elsewhere).sort_values("_elsewhere", kind="stable")
        frame = frame.drop_duplicates(["model", "eval_setting", "metric"]).drop(columns="_elsewhere")
    frame = frame.sort_values(["model", "eval_setting", "metric"], kind="stable").reset_index(drop=True)
    frame.insert(3, "column", _columns(frame))
    if sizes:
        frame["n"] = frame["n"].fillna(frame["eval_setting"].map(_registered_sizes(frame)))
    return frame


def _columns(frame: pd.DataFrame) -> pd.Series:
    """Column names: the setting, with a suffix for metrics that share a setting."""
    suffix = np.where(frame["metric"].isin(METRIC_SUFFIXES), "_" + frame["metric"].astype(str), "")
    return frame["eval_setting"].astype(str) + suffix


def _registered_sizes(frame: pd.DataFrame) -> dict[str, float]:
    """Fills in missing numbers of samples from the registry, or from the store's other models."""
    from testbed.registry import registry

    unknown = frame.loc[frame["n"].isna(), "eval_setting"].unique()
    counted = frame.groupby("eval_setting")["n"].max()
    sizes: dict[str, float] = {}
    for name in unknown:
        known = registry.find_eval_setting(name)
        size = None if known is None else known.size
        if size is None and not np.isnan(counted.get(name, np.nan)):
            size = int(counted[name])
        sizes[name] = np.nan if size is None else float(size)
    return sizes


# Models × settings ------------------------------------------------------------------------------------------------


def wide_frame(frame: pd.DataFrame, what: str = "value") -> pd.DataFrame:
    """Models × columns of a tidy frame: values (fractions), or with ``what="n"`` the numbers of samples."""
    wide = frame.pivot(index="model", columns="column", values=what)
    wide.columns.name = None
    return wide.astype(np.float64)


def model_types(frame: pd.DataFrame) -> pd.Series:
    """The type of each model of a tidy frame; None if unknown."""
    types: pd.Series = frame.drop_duplicates("model").set_index("model")["model_type"]
    return types


def filled(wide: pd.DataFrame) -> pd.DataFrame:
    """Fills gaps of a setting from its ``…_10percent`` child and drops the child's columns: ImageNet-testbed's rule."""
    wide = wide.copy()
    for child in [column for column in wide.columns if column.endswith(TEN_PERCENT)]:
        parent = child.removesuffix(TEN_PERCENT)
        wide[parent] = wide[parent].fillna(wide[child]) if parent in wide else wide[child]
        wide = wide.drop(columns=child)
    return wide


def with_averages(wide: pd.DataFrame, keep: bool = True, reduce: str = "mean") -> pd.DataFrame:
    """Adds ImageNet-testbed's averages to the columns of models × settings.

    ``<corruption>_in-memory`` and ``<corruption>_on-disk`` are means over the five severities, ``avg_corruptions`` the
    mean over all of these and the settings ``greyscale`` and ``stylized_imagenet``, ``avg_pgd`` the mean over the
    attacks. ``avg_imagenet-c-bar_on-disk`` and ``…_in-memory``, ``avg_imagenet-3dcc`` and ``avg_laion-c`` are means
    over all corruptions and severities of these families. Each is defined only for models that have all of its
    components, and only if all five severities are columns.

    Args:
        wide: Models × columns, the output of `filled`.
        keep: Whether the columns of the single severities stay.
        reduce: ``"mean"``; or ``"min"``, for numbers of samples: the smallest among an average's components.
    """
    groups: dict[str, list[str]] = {}
    for column in wide.columns:
        found = CORRUPTED.fullmatch(column)
        if found:
            groups.setdefault(f"{found['corruption']}_{found['form']}", []).append(column)
    made = {name: _reduced(wide, parts, reduce) for name, parts in groups.items() if len(parts) == SEVERITIES}
    averaged = pd.DataFrame(made, index=wide.index)
    over = pd.concat([averaged, wide[[text for text in AVERAGED_TOO if text in wide]]], axis=1)
    if made:
        averaged["avg_corruptions"] = _reduced(over, list(over.columns), reduce)
    attacks = [column for column in wide.columns if column.startswith("pgd.")]
    if attacks:
        averaged["avg_pgd"] = _reduced(wide, attacks, reduce)
    families: dict[str, list[str]] = {}
    for column in wide.columns:
        if cell := OF_FAMILY.fullmatch(column):
            families.setdefault(f"avg_{cell['family']}{cell['form']}", []).append(column)
    for name, parts in families.items():
        if len(parts) == FAMILIES[name.removeprefix("avg_").partition("_")[0]]:
            averaged[name] = _reduced(wide, parts, reduce)
    kept = wide if keep else wide.drop(columns=[part for parts in groups.values() for part in parts])
    return pd.concat([kept, averaged], axis=1)


def in_averages(column: str) -> bool:
    """Returns whether a column is a component of one of ImageNet-testbed's averages."""
    corrupted = CORRUPTED.fullmatch(column) or OF_FAMILY.fullmatch(column)
    return corrupted is not None or column in AVERAGED_TOO or column.startswith("pgd.")


def _reduced(wide: pd.DataFrame, columns: list[str], reduce: str) -> pd.Series:
    return getattr(wide[columns], reduce)(axis=1, skipna=False)


def grid(frame: pd.DataFrame, averages: bool = True, what: str = "value") -> pd.DataFrame:
    """Returns models × settings for figures: `filled`, and with the averages by default.

    Numbers of samples (``what="n"``) follow the filled values; an average has the smallest of its components.
    """
    wide = wide_frame(frame, what)
    if what == "n":
        values = wide_frame(frame)
        wide = wide.where(values.notna())
    wide = filled(wide)
    if not averages:
        return wide
    return with_averages(wide, reduce="min" if what == "n" else "mean")


class Grid(NamedTuple):
    """The data of figures.

    Attributes:
        values: Models × columns, fractions.
        sizes: Models × columns, numbers of samples; NaN where unknown.
        types: The type of each model.
        metric: The metric of the values.
        others: Column → its metric, where it differs.
        specs: Column → declaration of its metric; averages have that of their components.
        parts: The columns of parts of settings, such as ``val.random-500``.
    """

    values: pd.DataFrame
    sizes: pd.DataFrame
    types: pd.Series
    metric: str = "top1"
    others: Mapping[str, str] = {}
    specs: Mapping[str, MetricSpec] = {}
    parts: Collection[str] = ()

    def matching(self, pattern: str = "*") -> list[str]:
        """The columns that a name or pattern matches; those of parts only if it names a part."""
        known = [str(column) for column in self.values if says_parts(pattern) or column not in self.parts]
        return [column for column in known if column == pattern or fnmatchcase(column, pattern)]


def load_grid(db_url: str | None = None, metric: str | None = "top1", sizes: bool = True) -> Grid:
    """Loads the stored results for figures, with fills and averages.

    Args:
        db_url: The store.
        metric: The metric; ``"top1"`` includes the columns of pm0 and pm10. None: the main one of each setting.
        sizes: Whether to include numbers of samples; else all are NaN.
    """
    others: dict[str, str] = {}
    if metric is None:
        frame = results_frame(db_url, None, None, METRICS, sizes=sizes, headlines=True)
        main = frame["eval_setting"].map(main_metrics(frame))
        frame = frame[(frame["metric"] == main) | frame["metric"].isin(METRIC_SUFFIXES)]
        named = frame[~frame["metric"].isin(METRICS)]
        others = dict(zip(named["column"], named["metric"], strict=True))
    else:
        frame = results_frame(db_url, None, None, METRICS if metric == "top1" else [metric], sizes=sizes)
    values = grid(frame)
    counted = grid(frame, what="n") if sizes else values * np.nan
    of_parts = [name for name in frame["eval_setting"].unique() if is_part(name)]
    parts = set(frame.loc[frame["eval_setting"].isin(of_parts), "column"])
    return Grid(values, counted, model_types(frame), metric or METRICS[0], others, _specs(frame, values), parts)


def with_differences(grid: Grid, names: Iterable[str]) -> Grid:
    """Adds the columns among some names that are differences of two others, ``A - B``; sizes are the smaller ones.

    Raises:
        StoreError: If one of the two is not stored.
    """
    values, sizes, specs = grid.values.copy(), grid.sizes.copy(), dict(grid.specs)
    for name in names:
        one, minus, other = name.partition(MINUS)
        if not minus or name in values:
            continue
        require_columns(values, [one, other])
        values[name] = values[one] - values[other]
        sizes[name] = sizes[[one, other]].min(axis=1, skipna=False)
        specs[name] = replace(specs[one], better=NEITHER, lowest=None, highest=None)
    return grid._replace(values=values, sizes=sizes, specs=specs)


def _specs(frame: pd.DataFrame, values: pd.DataFrame) -> dict[str, MetricSpec]:
    """Column → declaration of its metric, also for the columns that `filled` and `with_averages` add."""
    own = specs_of(frame, "column")
    every = list(own)
    for column in every:
        own.setdefault(column.removesuffix(TEN_PERCENT), own[column])
    of_table = agreed(replace(own[text], name=METRICS[0]) for text in every) if every else MetricSpec(METRICS[0])
    return {str(column): own.get(str(column), of_table) for column in values.columns}


def specs_of(frame: pd.DataFrame, by: str = "eval_setting") -> dict[str, MetricSpec]:
    """Declarations of the metrics in a tidy frame, by the values of a column."""
    found: dict[str, list[MetricSpec]] = {}
    columns = [by, "metric", "unit", *DECLARED]
    for key, name, *declared in frame[columns].drop_duplicates().itertuples(index=False):
        known: list[Any] = [None if isinstance(value, float) and np.isnan(value) else value for value in declared]
        found.setdefault(str(key), []).append(MetricSpec(str(name), *known))
    return {key: agreed(several) for key, several in found.items()}


def main_metrics(frame: pd.DataFrame) -> dict[str, str]:
    """Setting → its main metric in a tidy frame, other than those with columns of their own."""
    mains = {}
    others = frame[~frame["metric"].isin(METRIC_SUFFIXES)]
    for setting, rows in others.drop_duplicates(["eval_setting", "metric", "unit", *DECLARED]).groupby("eval_setting"):
        found = main_metric(specs_of(rows, "metric").values())
        mains[str(setting)] = "" if found is None else found.name
    return mains


def require_columns(wide: pd.DataFrame, columns: Iterable[str]) -> None:
    """Checks that the settings of a figure are stored.

    Raises:
        StoreError: If one is missing; the message has the nearest names.
    """
    from testbed.errors import unknown_name

    for column in columns:
        if column not in wide:
            if not len(wide.columns):
                raise StoreError("the store has no results to draw; testbed run or testbed import adds some")
            raise unknown_name(
                "column",
                column,
                [str(entry) for entry in wide.columns],
                "the stored results",
                "testbed list settings --stored",
            )
