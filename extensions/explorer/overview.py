"""Documents of all results: the index of models and columns, and the values of each column."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pandas as pd

from testbed.claims.agreement import DIFFERS, PublishedValues, in_words
from testbed.claims.names import trained_on
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, FRACTION, OVERALL, PUBLISHED, ModelFacts
from testbed.eval_settings.benchmark_families.benchmark import parse_name
from testbed.extensions.explorer.bibliography import bibliography
from testbed.extensions.explorer.boards import FillCounts, board_of
from testbed.extensions.explorer.defaults import FirstColumns, newest_own_model
from testbed.extensions.explorer.documents import item_at
from testbed.extensions.explorer.origins import Origins
from testbed.extensions.explorer.packing import exact, rounded, same
from testbed.metric_specs import MetricSpec, agreed, main_metric
from testbed.metrics.inference.intervals import interval
from testbed.plotting.frame import filled, load_grid, with_averages
from testbed.plotting.marks import COLOURS, GREY, IMAGENET_ONLY, SYMBOLS, family_of, model_marks
from testbed.plotting.scatter import BASELINES, FEWEST, NOT_FITTED
from testbed.plotting.style import STANDARD, type_order
from testbed.registry.catalog import Catalog
from testbed.registry.table import natural_key
from testbed.stored_results.imagenet_testbed_table import METRIC_SUFFIXES
from testbed.stored_results.leading import in_order
from testbed.tasks.classification import task as classification

MOST_SCORES = 4_000_000  # maximum samples × models to rank while a page waits
USUAL = ("val", "imagenet1k", "digits")
CLIP_BENCHMARK, DATACOMP, OTHERS = "CLIP benchmark", "DataComp", "others"
GROUPS = (
    ("ImageNet", re.compile(r"val(_|-on-|$).*|imagenet-real")),
    ("ImageNetV2", re.compile(r"imagenetv2-.*")),
    ("natural shifts", re.compile(r"imagenet-(a|r|sketch|hard.*|vid-robust.*)|objectnet.*|ytbb-robust.*|openimages.*")),
    (
        "objects and backgrounds",
        re.compile(r"(imagenet-(9|d-diffusion)|counteranimal|si-score)\..*|(pug|hard)-imagenet"),
    ),
    ("averages", re.compile(r"avg_.*|[a-z_]+_(in-memory|on-disk)")),
    ("attacks", re.compile(r"(.*-)?(pgd|autoattack)\..*")),
    ("corruptions, in memory", re.compile(r"imagenet-c(-bar)?\..*_in-memory|greyscale|(?!laion).+-c\.[a-z_]+\.\d")),
    ("corruptions, on disk", re.compile(r"imagenet-(c|c-bar|3dcc)\..*|laion-c\..*|stylized_imagenet")),
    (DATACOMP, re.compile(r"(datacomp|fairness|misc|wilds)/.*")),
)
FIELDS = ("model", "value", "n", "stderr", "origin", "evaluation_id", "unit", "clusters")


def column_group(column: str) -> str:
    """The heading under which a column is listed."""
    found = next((name for name, pattern in GROUPS if pattern.fullmatch(column)), None)
    return found or (CLIP_BENCHMARK if parse_name(column) and "digits" not in column else OTHERS)


def pretraining_of(model: str) -> str:
    """The training data of the weights, if named by the model."""
    return ", ".join(trained_on(model)) or "not stated"


class Overview:
    """The index and the columns.

    A column is the main metric of a setting, one of ImageNet-testbed's two metrics of frames (``X_pm0``), or one of
    its averages.

    Args:
        store: The results store.
        catalog: The registry; settings may be unknown to it.
        settings: The names of the settings, by number.
        source: The store's name.
        metric: The metric of all columns; None for each setting's main one.
        sampled: The settings with sample documents.
        scored: The settings with stored samples, on which models can be ranked.
        measured: Whether published values were measured by whom the pages are of.
        pinned: The pinned models; None for the newest one of this store's own beside published values.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        settings: Sequence[str],
        source: str,
        metric: str | None = None,
        sampled: Collection[str] = (),
        scored: Collection[str] = (),
        measured: bool = False,
        pinned: Sequence[str] | None = None,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.settings = list(settings)
        self.sampled = set(sampled)
        self.scored = set(scored)
        self.source = source
        self.metric = metric
        self.measured = measured
        self.pinned = pinned

    def paths(self) -> Iterator[str]:
        """The index, and each column; then each metric of a setting that is not a column."""
        yield "index"
        for number in range(len(self._columns)):
            yield f"values/{number}"
        for index, metrics in enumerate(self._index["settings"]):
            yield from (f"metric/{index}/{number}" for number in range(len(metrics["metrics"])))

    def document(self, path: str) -> Any:
        """Returns one of these."""
        kind, *numbers = path.split("/")
        if path == "index":
            return self._index
        if kind == "values" and len(numbers) == 1:
            return self._column(item_at(self._columns, numbers[0]))
        if kind == "metric" and len(numbers) == 2:
            setting = item_at(self._index["settings"], numbers[0])
            return self._values(setting["name"], item_at(setting["metrics"], numbers[1]))
        raise KeyError(path)

    # Index --------------------------------------------------------------------------------------------------------

    @cached_property
    def _metrics(self) -> dict[str, dict[str, tuple[MetricSpec, int | None]]]:
        """Setting → metric → its declaration and the largest number of samples."""
        return {name: of for name, of in self.store.results.metric_specs().items() if name in self._numbers}

    @cached_property
    def _models(self) -> list[ModelFacts]:
        return sorted(self.store.results.model_facts(), key=lambda each: natural_key(each.name))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {model.name: index for index, model in enumerate(self._models)}

    @cached_property
    def _columns(self) -> list[dict[str, Any]]:
        columns: list[dict[str, Any]] = []
        for name in self._metrics:
            metrics = self._metrics[name]
            frames = [metric for metric in METRIC_SUFFIXES if metric in metrics]
            others = [spec for metric, (spec, _) in metrics.items() if metric not in frames]
            declared = main_metric(others)
            main = self.metric if self.metric in metrics else None if declared is None else declared.name
            if main is not None:
                columns.append({"name": name, "setting": name, "metric": main})
            columns += [{"name": f"{name}_{metric}", "setting": name, "metric": metric} for metric in frames]
        names = {column["name"] for column in columns if column["metric"] in ("top1", *METRIC_SUFFIXES)}
        every = pd.DataFrame(0.0, index=["m"], columns=sorted(names))
        made = [name for name in with_averages(filled(every)) if name not in names]
        columns += [{"name": name, "setting": None, "metric": "top1"} for name in made]
        return sorted(columns, key=lambda each: _order(each["name"]))

    @cached_property
    def _index(self) -> dict[str, Any]:
        models = self._models
        names = [model.name for model in models]
        found = model_marks({model.name: model.model_type for model in models})
        marks = [found[name] for name in names]
        firsts = FirstColumns(self.catalog)
        kinds = {mark.kind: mark.symbol for mark in sorted(marks, key=lambda each: type_order(each.kind))}
        return {
            "source": self.source,
            "written": datetime.now(UTC).strftime("%Y-%m-%d"),
            "sources": [] if self.measured else bibliography(self.store.claims.sources()),
            "pinned": [name for name in self._pinned if name in self._places],
            "standard": STANDARD,
            "disagreements": bool(self.store.claims.order()),
            **({"training": True} if self.store.checkpoints.training_runs() else {}),
            "metrics": sorted({metric for metrics in self._metrics.values() for metric in metrics}),
            "baselines": [{"value": key, "text": text} for key, text in BASELINES.items()],
            "imagenetOnly": ", ".join(IMAGENET_ONLY),
            "fewest": FEWEST,
            "notFitted": list(NOT_FITTED),
            "kinds": [{"name": kind, "symbol": symbol} for kind, symbol in kinds.items()],
            "colours": [*COLOURS, GREY],
            "symbols": list(SYMBOLS),
            "groups": {mark.colour: mark.group for mark in marks},
            "models": {
                "name": names,
                "type": [model.model_type or "not stated" for model in models],
                "family": [family_of(name) for name in names],
                "pretraining": [pretraining_of(name) for name in names],
                "parameters": [model.parameters for model in models],
                "since": [model.since.date().isoformat() for model in models],
                "kind": [list(kinds).index(mark.kind) for mark in marks],
                "colour": [[*COLOURS, GREY].index(mark.colour) for mark in marks],
                "symbol": [SYMBOLS.index(mark.symbol) for mark in marks],
            },
            "settings": [
                {
                    "name": name,
                    "metrics": sorted(self._metrics.get(name, {})),
                    "n": self._size(name),
                    "samples": name in self.sampled,
                }
                for name in self.settings
            ],
            "columns": [
                {
                    "name": column["name"],
                    "setting": None if column["setting"] is None else self._numbers[column["setting"]],
                    "metric": column["metric"],
                    "group": column_group(column["name"]),
                    "first": firsts.rank(column["name"], column["setting"]),
                    "task": self._board(column["setting"], column["metric"]),
                    **self._filled.about(column["setting"], column["metric"]),
                    "ranked": self._ranked(column["setting"], column["metric"]),
                    "n": None if column["setting"] is None else self._size(column["setting"]),
                    **self._about(column["setting"], column["metric"]),
                }
                for column in self._columns
            ],
        }

    @cached_property
    def _pinned(self) -> Sequence[str]:
        return newest_own_model(self.store, *self._filled.totals()) if self.pinned is None else self.pinned

    @cached_property
    def _filled(self) -> FillCounts:
        return FillCounts(self.store.results.counts(("eval_setting", "metric", "origin"), slices=[OVERALL]))

    @cached_property
    def _tasks(self) -> dict[str, tuple[str | None, str | None]]:
        return self.store.names.tasks()

    def _board(self, setting: str | None, metric: str) -> str:
        if setting is None:
            return classification.name
        return board_of(setting, self._tasks.get(setting, (None, None))[0], metric, self.catalog)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.settings)}

    def _ranked(self, setting: str | None, metric: str) -> bool:
        """Returns whether to rank models on the samples of a setting: there are some, but not too many to wait for."""
        own = self._filled.about(setting, metric)["own"]
        return setting in self.scored and own > 1 and own * (self._size(str(setting)) or 0) <= MOST_SCORES

    def _about(self, setting: str | None, metric: str) -> dict[str, Any]:
        if setting is None:  # for ImageNet-testbed's averages, their components
            spec = self._of_averages
        else:
            spec, _ = self._metrics[setting][metric]
        return {
            "percent": spec.unit == FRACTION,
            "unit": spec.unit,
            "better": spec.better,
            "range": [spec.lowest, spec.highest],
            "rate": spec.zero_one and setting is not None,
        }

    @cached_property
    def _of_averages(self) -> MetricSpec:
        """The declaration of the averages' metric, top-1."""
        return agreed(of["top1"][0] for of in self._metrics.values() if "top1" in of)

    def _size(self, setting: str) -> int | None:
        """The number of samples, from the results or the registry."""
        sizes = [size for _, size in self._metrics.get(setting, {}).values() if size]
        if sizes:
            return int(max(sizes))
        known = self.catalog.find_eval_setting(setting)
        return None if known is None else known.size

    # Values -------------------------------------------------------------------------------------------------------

    def _column(self, column: dict[str, Any]) -> dict[str, Any]:
        name = column["name"]  # an average, or values from another setting?
        if column["metric"] != "top1" or not (name in self._made or f"{name}_10percent" in self._metrics):
            return self._values(column["setting"], column["metric"])
        values = self._grid[name].dropna()
        own = {} if column["setting"] is None else {row[0]: row for row in self._rows(column["setting"], "top1")}
        rows = [
            (model, value, *own.get(model, (model, None, None, None, "", 0, "", None))[2:])
            for model, value in values.items()
        ]
        return self._packed(rows, column["setting"], "top1")

    @cached_property
    def _made(self) -> set[str]:
        return {column["name"] for column in self._columns if column["setting"] is None}

    @cached_property
    def _grid(self) -> pd.DataFrame:
        return load_grid(self.store.full_url, "top1").values

    def _values(self, setting: str, metric: str) -> dict[str, Any]:
        return self._packed(self._rows(setting, metric), setting, metric)

    def _rows(self, setting: str, metric: str) -> list[tuple[Any, ...]]:
        """The reported value of each model; its own evaluation takes precedence over imported numbers."""
        found: dict[str, tuple[Any, ...]] = {}
        for row in self.store.results.rows(FIELDS, None, [setting], [metric], [OVERALL]):
            if row[1] is not None and (row[0] not in found or row[4] not in ELSEWHERE):
                found[row[0]] = tuple(row)
        return list(found.values())

    def _packed(self, rows: list[tuple[Any, ...]], setting: str | None, metric: str) -> dict[str, Any]:
        """Packs rows into parallel lists; lists of equal values become one value."""
        rows = sorted((row for row in rows if row[0] in self._places), key=lambda row: self._places[row[0]])
        size = None if setting is None else self._size(setting)
        return {
            "metric": metric,
            **self._about(setting, metric),
            "models": [self._places[row[0]] for row in rows],
            "values": [exact(row[1]) for row in rows],
            "n": same([size if row[2] is None else int(row[2]) for row in rows]),
            "stderr": same([rounded(row[3]) for row in rows]),
            **self._intervals(rows, setting, metric, size),
            "evaluations": same([0 if row[4] in ELSEWHERE else int(row[5]) for row in rows]),
            "origins": same([self._origin(row, setting, metric) for row in rows]),
            "unread": self._unread(rows),
            "order": self._in_order(rows, setting, metric),
            "published": self._beside({row[0] for row in rows if row[4] not in ELSEWHERE}, setting, metric),
        }

    def _intervals(
        self, rows: list[tuple[Any, ...]], setting: str | None, metric: str, size: int | None
    ) -> dict[str, list[float | None]]:
        """The ends of the 95 % interval of each row; unknown for averages."""
        if setting is None:
            return {"low": [None] * len(rows), "high": [None] * len(rows)}
        spec, _ = self._metrics[setting][metric]
        numbers = ((*map(rounded, (row[1], row[3])), row[2] or size, row[7]) for row in rows)
        ends = [interval(spec, value, stderr, n and int(n), of) or (None, None) for value, stderr, n, of in numbers]
        low, high = zip(*ends, strict=True) if ends else ((), ())
        return {"low": [rounded(end) for end in low], "high": [rounded(end) for end in high]}

    def _in_order(self, rows: list[tuple[Any, ...]], setting: str | None, metric: str) -> str:
        """The best models in words, for columns without a ranking on samples."""
        about = self._about(setting, metric)
        spec = MetricSpec(metric, about["unit"], better=about["better"])
        return in_order(
            [(row[0], row[1]) for row in rows if math.isfinite(row[1])],
            spec,
            not self.measured and all(row[4] == PUBLISHED for row in rows),
        )

    def _unread(self, rows: list[tuple[Any, ...]]) -> dict[str, int]:
        """The model's position → number of unreadable samples, if there are any."""
        if not self._any_unread:
            return {}
        own = {int(row[5]): str(self._places[row[0]]) for row in rows if row[4] not in ELSEWHERE and row[5]}
        return {own[each]: count for each, count in self.store.outputs.unreadable(own).items()}

    @cached_property
    def _any_unread(self) -> bool:
        return self.store.outputs.any_unreadable()

    @cached_property
    def _published(self) -> PublishedValues:
        return PublishedValues.of_measured(self.store)

    @cached_property
    def _origins(self) -> Origins:
        return Origins(self.store, self.measured)

    def _origin(self, row: tuple[Any, ...], setting: str | None, metric: str) -> str:
        if setting is None:
            return self._origins.of_average(row[0])
        return self._origins.of_result(row[0], setting, metric, str(row[4] or ""))

    def _beside(self, models: Collection[str], setting: str | None, metric: str) -> dict[str, Any]:
        """Published values beside measured ones, by the model's position: whether one differs, and lines."""
        claimed = [] if setting is None else [text for text in models if self._published.about(text, setting)]
        if setting is None or not claimed:
            return {}
        found: dict[str, dict[str, Any]] = {}
        for comparison in self._published.compare(self.store.results.find(claimed, [setting], [metric], [OVERALL])):
            told = found.setdefault(str(self._places[comparison.model]), {"differs": False, "lines": []})
            told["differs"] |= comparison.verdict == DIFFERS
            told["lines"].append(in_words(comparison, about=False))
        return found


def _order(name: str) -> tuple[Any, ...]:
    """The usual clean setting first, then group by group."""
    names = [*(group for group, _ in GROUPS[:-1]), CLIP_BENCHMARK, DATACOMP]
    group = column_group(name)
    return (
        name not in USUAL,
        names.index(group) if group in names else -1 if "digits" in name else len(names),
        natural_key(name),
    )
